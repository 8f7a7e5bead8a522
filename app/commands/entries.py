"""What the trail is told about a call: the one place that makes its entries (CMD-17)."""

from typing import Any

from app.audit import redaction, trail
from app.audit.trail import NewEntry
from app.commands import idempotency
from app.commands.approved import Consent
from app.commands.call import Call
from app.commands.context import Context
from app.commands.published import Published
from app.commands.refused import Refused
from app.kernel import clock, tracing
from app.kernel.db import Work

NAME_LIMIT = 128  # characters of a code that nobody published


def write(ctx: Context, outcome: str) -> int:
    """The entry of a call that ran, or of a repeat; returns its number."""
    is_replay = ctx.replay is not None
    return trail.append(
        ctx.work,
        NewEntry(
            **_call(ctx.work, ctx.call, ctx.published),
            **_consent(ctx.consent),
            at=ctx.now,
            outcome=outcome,
            reason=ctx.remarks[0] if ctx.remarks else None,
            org_id=ctx.user.org_id,
            brief=_brief(ctx),
            input_digest=ctx.input_digest,
            **_target(ctx),
            changes=None if is_replay else [each.data() for each in ctx.changes],
            timings={name: str(took) for name, took in ctx.timings.items()},
        ),
    )


def write_refusal(
    work: Work,
    call: Call,
    refusal: Refused,
    *,
    published: Published | None,
    org_id: str | None,
    target_type: str | None,
    timings: dict[str, float],
    approval_id: str | None = None,
) -> int:
    """The entry of a call that was refused."""
    return trail.append(
        work,
        NewEntry(
            **_call(work, call, published),
            at=clock.now(),
            outcome="refused",
            stage=refusal.stage,
            reason=refusal.reason,
            org_id=org_id,
            approval_id=approval_id,
            brief=call.origin.brief,
            target_type=target_type,
            target_id=_named_target(call),
            timings={name: str(took) for name, took in timings.items()},
        ),
    )


def _call(work: Work, call: Call, published: Published | None) -> dict[str, Any]:
    who, origin = call.principal, call.origin
    definition = published.definition if published else None
    secrets = published.machinery.secrets if published else frozenset()
    kept = redaction.redact(work, who.tenant_id, dict(call.input), secrets)
    return {
        "tenant_id": who.tenant_id,
        "call_id": call.call_id,
        "parent_call_id": call.parent_call_id,
        "command": definition.code if definition else call.code[:NAME_LIMIT],
        "version": published.version if published else None,
        "risk": definition.risk.value if definition else None,
        "idempotent": definition.idempotent if definition else None,
        "reversible": definition.reversible if definition else None,
        "user_id": who.user_id,
        "agent_id": who.agent_id,
        "agent_release": who.agent_release_id,
        "model": origin.model,
        "model_version": origin.model_version,
        "channel": who.channel.value,
        "session_id": who.session_id,
        "conversation_id": origin.conversation_id,
        "run_id": origin.run_id,
        "turn": origin.turn,
        "prompt_digest": origin.prompt_digest,
        "prompt_ref": origin.prompt_ref,
        "idempotency_key_digest": idempotency.scope_digest(call) if call.idempotency_key else None,
        "input_redacted": kept.stored,
        "trace_id": tracing.request_id(),
        "is_plain": True,  # redacted input, changes and timings are
    }


def _consent(consent: Consent | None) -> dict[str, Any]:
    if consent is None:
        return {}
    return {
        "approval_id": consent.approval_id,
        "approved_by": consent.approved_by,
        "approved_at": consent.approved_at,
    }


def _brief(ctx: Context) -> str | None:
    if ctx.command.risk.level != 2 or ctx.call.principal.is_person:
        return None
    return ctx.call.origin.brief or "none"


def _target(ctx: Context) -> dict[str, Any]:
    if ctx.record is not None:
        return {"target_type": ctx.record.RECORD, "target_id": ctx.record.id}
    return {"target_type": ctx.command.record, "target_id": _named_target(ctx.call)}


def _named_target(call: Call) -> str | None:
    named = call.input.get("targetRecordId")
    return named[:500] if isinstance(named, str) else None
