"""What a call comes to, as a tool's result: one shape for every refusal (SEC-62)."""

from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult, TextContent

from app.commands.refused import Refused
from app.kernel import i18n, json, problems
from app.kernel.errors import AppError, FieldError
from app.kernel.i18n import N_

CHANGED = N_("A person changed the arguments before they approved. What ran: %(arguments)s")
UNKNOWN_TOOL, INTERNAL = "Unknown tool", "Internal error"
# What an agent does next, by the advice of a refusal.
ADVICE = {
    "fix_arguments": N_("Correct the arguments, then call again."),
    "wait_and_reread": N_("Wait a moment and read the record: the first call may still end well."),
    "do_not_retry": N_("Do not call again: it will not help."),
    "escalate_to_other_user": N_("Somebody else has to do this; tell the user."),
    "reread_state": N_("Read the record before you go on."),
    "report_to_user": N_("Tell the user, and do not call again by yourself."),
    "ask_user": N_("Ask the user; only a person can go on from here."),
    "retry_later": N_("Nothing was changed. Call again in a moment."),
}


def done(data: dict[str, Any], changed: dict[str, Any] | None = None) -> CallToolResult:
    """A call that was done, replayed or sent out; `data` is the body of the command API.

    `changed`: the arguments it ran with, where a person changed them before they assented.
    """
    content = [_text(json.dumps(data).decode())]
    if changed is not None:
        data = {**data, "changedInput": changed}
        said = {"arguments": json.dumps(changed).decode()}
        content = [_text(json.dumps(data).decode()), _text(i18n.gettext(CHANGED) % said)]
    return CallToolResult(content=content, structured_content=data)  # type: ignore[arg-type]


def refused(error: AppError, call_id: str, **more: Any) -> CallToolResult:
    """A refusal, with everything an agent can act on; in the language that is spoken now.

    Raises:
        MCPError: there is no such tool, or the fault is ours.
    """
    problem = problem_of(error, call_id, **more)
    if isinstance(error, Refused) and error.stage == "load":
        raise MCPError(INVALID_PARAMS, UNKNOWN_TOOL, problem)
    if isinstance(error, Refused) and problem["status"] >= 500:
        raise fault(call_id)
    return CallToolResult(
        content=[_text(words(problem))], structured_content=problem, is_error=True
    )


def problem_of(error: AppError, call_id: str, **more: Any) -> dict[str, Any]:
    """The problem that every door tells of this refusal."""
    told: dict[str, Any] = {"call_id": call_id, **more}
    if isinstance(error, Refused):
        told |= {"stage": error.stage, "call_id": error.call_id, "cmd_code": error.code}
        told["detail"] = error.words(i18n.language())
        if error.errors:
            told["errors"] = [_field(each) for each in error.errors]
    _, _, body = problems.render(error, **told)
    problem: dict[str, Any] = json.loads(body)
    return problem


def words(problem: dict[str, Any]) -> str:
    """What, then the advice."""
    said = [str(problem["detail"])]
    said += [f"{each['pointer']}: {each['message']}" for each in problem.get("errors", [])]
    if (advice := ADVICE.get(problem.get("advice", ""))) is not None:
        said.append(i18n.gettext(advice))
    return " ".join(said)


def fault(call_id: str) -> MCPError:
    """What a client learns of a fault of ours: by which id it is found in the log and the trail."""
    return MCPError(INTERNAL_ERROR, INTERNAL, {"callId": call_id})


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _field(error: FieldError) -> dict[str, Any]:
    told = {"pointer": f"/{error.pointer}", "message": problems.words(error.says, error.facts)}
    expected = error.facts.get("expected")
    return told if expected is None else {**told, "expected": str(expected)}
