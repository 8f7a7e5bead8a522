"""One command as a tool of MCP: described in the user's language, with every hint said (SEC-59).

Hints inform clients; the pipeline enforces.
"""

from typing import Any

from app.commands.definition import Operation, Risk
from app.commands.descriptors import Descriptor
from app.commands.stored import StoredDefinition
from app.kernel import i18n
from app.kernel.i18n import N_

UNDO = N_("Undo: %(command)s.")
TELL_FIRST = N_("Tell the user what will change before you call.")
ASK_FIRST = N_("A person must approve this exact call.")
NO_UNDO = N_("It cannot be undone.")
NOT_TWICE = N_("Do not repeat after a failure: read the record first.")

DIALECT = "https://json-schema.org/draft/2020-12/schema"
OUTCOMES = ["done", "replayed", "dispatched"]
DONE, REFUSED = ["cmdCode", "outcome"], ["type", "title", "status", "reason", "detail"]


def tool(descriptor: Descriptor, language: str) -> dict[str, Any]:
    """The tool of a command, by the names of the wire."""
    told = descriptor.definition
    return {
        "name": told.code,
        "title": told.display_name.in_(language),
        "description": description(told, language),
        "inputSchema": input_schema(told),
        "outputSchema": output_schema(told),
        "annotations": annotations(told, language),
        "_meta": meta(descriptor, language),
    }


def description(told: StoredDefinition, language: str) -> str:
    """What a model reads before it chooses: name, hint, way back, and what the risk asks of it."""
    hint = told.agent_hint.in_(language)
    said = [f"{told.display_name.in_(language)} — {hint}"]
    with i18n.speaking(language):
        if told.undo is not None and told.undo not in hint:
            said.append(i18n.gettext(UNDO) % {"command": told.undo})
        if told.needs_approval:
            said.append(i18n.gettext(ASK_FIRST))
        elif is_told_first(told):
            said.append(i18n.gettext(TELL_FIRST))
        if not told.reversible:
            said.append(i18n.gettext(NO_UNDO))
        if not told.idempotent:
            said.append(i18n.gettext(NOT_TWICE))
    return " ".join(said)


def is_told_first(told: StoredDefinition) -> bool:
    """Whether its user is to be told before it runs, and nobody has to assent."""
    return told.risk is Risk.L2 and not told.needs_approval


def input_schema(told: StoredDefinition) -> dict[str, Any]:
    """The schema as it was published; its dialect is said."""
    return {"$schema": DIALECT, **told.input_schema}


def output_schema(told: StoredDefinition) -> dict[str, Any]:
    """What a call answers with: a body of the command API, or the problem of a refusal.

    Both, since the clients of the TypeScript SDK hold refusals to it as well, and show nothing of
    one that does not fit.
    """
    result: dict[str, Any] = {"type": "object", "description": "What the command answers."}
    return {
        "$schema": DIALECT,
        "type": "object",
        "properties": {
            "callId": {"type": "string", "description": "The id of this call."},
            "cmdCode": {"const": told.code, "description": "The command."},
            "version": {"type": "integer", "description": "The version that ran."},
            "outcome": {"enum": OUTCOMES, "description": "How the call ended, or that it is out."},
            "result": result,
            "record": {"type": ["object", "null"], "description": "The record afterwards."},
            "auditSeq": {"type": "integer", "description": "Its number in the audit trail."},
            "undo": {
                "type": ["object", "null"],
                "description": "The command that takes it back, with its input.",
            },
            "timings": {"type": "object", "description": "Milliseconds of each stage."},
            "reason": {"type": "string", "description": "Why it was refused."},
            "stage": {"type": "string", "description": "The stage that refused it."},
            "advice": {"type": "string", "description": "What to do next."},
            "detail": {"type": "string", "description": "The refusal, for people."},
        },
        "required": ["callId"],
        "anyOf": [{"required": DONE}, {"required": REFUSED}],
    }


def annotations(told: StoredDefinition, language: str) -> dict[str, Any]:
    """All four hints, since clients assume the worst for one that is missing; then our own."""
    reads = told.risk is Risk.L0
    return {
        "title": told.display_name.in_(language),
        "readOnlyHint": reads,
        "destructiveHint": not reads and (told.risk.level >= 3 or not told.reversible),
        "idempotentHint": reads or told.idempotent,
        "openWorldHint": not reads and (told.risk is Risk.L3 or reaches_outside(told)),
        **_auraboot(told),
    }


def meta(descriptor: Descriptor, language: str) -> dict[str, Any]:
    """The descriptor's own words; and the annotations again, which clients of the SDK drop."""
    told = descriptor.definition
    return {
        "assent/cmdCode": told.code,
        "assent/version": descriptor.version,
        "assent/agentHint": told.agent_hint.in_(language),
        "assent/riskLevel": told.risk.value,
        "assent/idempotent": told.idempotent,
        "assent/reversible": told.reversible,
        "assent/undoCommand": told.undo,
        "assent/needsApproval": told.needs_approval,
        "assent/requiredFeature": told.feature,
        "assent/exampleInput": told.example,
        **_auraboot(told),
    }


def reaches_outside(told: StoredDefinition) -> bool:
    """Whether a call has an effect outside of the house."""
    return told.operation is Operation.EXTERNAL or bool(told.api_calls or told.webhooks)


def _auraboot(told: StoredDefinition) -> dict[str, Any]:
    return {
        "auraboot.riskLevel": told.risk.value,
        "auraboot.idempotent": told.idempotent,
        "auraboot.reversible": told.reversible,
    }
