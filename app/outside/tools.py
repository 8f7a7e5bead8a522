"""The tools of outside servers: what was offered, what a person enabled, and what changed since.

A tool is used as it was pinned, or not at all: another name, description or schema turns it off
until a person has looked at it (SEC-68).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, func, select

from app.commands import publishing, readiness
from app.commands.definition import Risk
from app.identity import facts
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.outside import definitions
from app.outside.models import McpServer, McpTool, ToolState
from app.outside.offers import Offer

READ_ONLY_AT_MOST = 40  # enabled in a tenant: each is a tool of every run


class NotAsLooked(Conflict):
    """The tool is another one than was looked at."""

    reason = "tool_changed"
    says = N_("The server offers another tool now than the one you looked at. Look at it again.")


class CannotBeEnabled(Conflict):
    """The tool breaks a rule."""

    reason = "tool_unfit"
    says = N_("This tool cannot be enabled (rule: %(rule)s).")


def of_server(session: Session, server: McpServer) -> Sequence[McpTool]:
    """Every tool of a server, by name."""
    query = select(McpTool).where(
        McpTool.tenant_id == server.tenant_id, McpTool.server_id == server.id
    )
    return session.exec(query.order_by(col(McpTool.name))).all()


def one(session: Session, server: McpServer, tool_id: str) -> McpTool:
    """A tool of this server.

    Raises:
        NotFound: there is none of that id.
    """
    found = session.get(McpTool, (server.tenant_id, tool_id), populate_existing=True)
    if found is None or found.server_id != server.id:
        raise NotFound
    return found


def take_in(work: Work, server: McpServer, offers: Iterable[Offer]) -> None:
    """Keep what an administrator's look at the server found; the server is fine now."""
    offered = {offer.name: offer for offer in offers}
    known = {tool.name: tool for tool in of_server(work.session, server)}
    now = clock.now()
    for name, offer in offered.items():
        tool = known.pop(name, None) or _new(server, offer, now)
        tool.offered_pin, tool.offered, tool.unfit = offer.pin, dict(offer.content), offer.unfit
        tool.local, tool.seen_at = offer.local, now
        if tool.state == ToolState.GONE:
            tool.state = ToolState.CHANGED  # it was away, and a person looks at what came back
        work.session.add(tool)
    for gone in known.values():
        if gone.state == ToolState.OFF:
            work.session.delete(gone)
        elif gone.state != ToolState.GONE:
            _turn(work, gone, ToolState.GONE, server)
    server.looked_at, server.fault = now, ""
    work.session.add(server)
    _turn_off_changed(work, server, offered)
    work.session.flush()
    publishing.sync(work, server.tenant_id)


def take_fault(work: Work, server: McpServer, rule: str) -> None:
    """Keep that a server could not be looked at, and why."""
    server.looked_at, server.fault = clock.now(), rule[:64]
    work.session.add(server)


def notice(work: Work, tenant_id: str, server_id: str, offers: Mapping[str, Offer]) -> bool:
    """Turn off what is not what was enabled, as somebody's connection found; whether anything was.

    What a connection does not list says nothing: each caller may be offered other tools.
    """
    server = work.session.get(McpServer, (tenant_id, server_id), populate_existing=True)
    if server is None or not _turn_off_changed(work, server, offers):
        return False
    work.session.flush()
    publishing.sync(work, tenant_id)
    return True


def pinned(session: Session, tenant_id: str, server_id: str) -> dict[str, Offer]:
    """What is enabled of a server, by name, as it was pinned: nothing else of it is looked at."""
    query = select(McpTool).where(
        McpTool.tenant_id == tenant_id,
        McpTool.server_id == server_id,
        McpTool.state == ToolState.ENABLED,
    )
    return {
        tool.name: Offer(tool.name, tool.local, tool.pin or "", tool.pinned or {})
        for tool in session.exec(query)
    }


def has_changed(
    session: Session, tenant_id: str, server_id: str, offers: Mapping[str, Offer]
) -> bool:
    """Whether `notice` would turn anything off; most connections find that it would not."""
    query = select(McpTool.name, McpTool.pin).where(
        McpTool.tenant_id == tenant_id,
        McpTool.server_id == server_id,
        McpTool.state == ToolState.ENABLED,
    )
    return any(
        name in offers and offers[name].pin != pin for name, pin in session.exec(query).all()
    )


def enable(
    work: Work, person: Principal, server: McpServer, tool: McpTool, *, risk: Risk, pin: str
) -> None:
    """Let a tool be used as it is offered now: `pin` is what was looked at.

    `L0` says that it only reads: it runs as a tool. Any other risk makes it a command.

    Raises:
        NotAsLooked: it is another one by now.
        CannotBeEnabled: it breaks a rule, or its command could not be published.
        Invalid: too many are read-only.
    """
    if tool.state == ToolState.GONE or tool.offered_pin != pin:
        raise NotAsLooked
    if tool.unfit:
        raise CannotBeEnabled(rule=tool.unfit)
    if risk is Risk.L0 and _read_only(work.session, tool) >= READ_ONLY_AT_MOST:
        raise Invalid(FieldError("risk", N_("At most 40 tools can be read-only.")))
    before = (tool.state, tool.risk, tool.pin)
    tool.pin, tool.pinned, tool.risk = tool.offered_pin, dict(tool.offered), risk.value
    tool.state = ToolState.ENABLED
    tool.enabled_at, tool.enabled_by = clock.now(), person.user_id
    if risk is not Risk.L0:
        _check_command(work.session, server, tool)
    work.session.add(tool)
    after = (tool.state, tool.risk, tool.pin)
    fields = ("state", "risk", "pin")
    changes = dict(
        zip(fields, zip(map(_word, before), map(_word, after), strict=True), strict=True)
    )
    _record(work, person, "enable", tool, server, changes)
    publishing.sync(work, tool.tenant_id)


def turn_off(work: Work, person: Principal, server: McpServer, tool: McpTool) -> None:
    """Let nobody use a tool any more."""
    if tool.state == ToolState.OFF:
        return
    before = tool.state
    tool.state = ToolState.OFF
    work.session.add(tool)
    _record(work, person, "turn_off", tool, server, {"state": (before, ToolState.OFF.value)})
    publishing.sync(work, tool.tenant_id)


def _new(server: McpServer, offer: Offer, now: datetime) -> McpTool:
    return McpTool(
        tenant_id=server.tenant_id,
        id=ids.ulid(),
        server_id=server.id,
        name=offer.name,
        local=offer.local,
        offered_pin=offer.pin,
        offered=dict(offer.content),
        seen_at=now,
    )


def _turn_off_changed(work: Work, server: McpServer, offers: Mapping[str, Offer]) -> bool:
    has_changed = False
    for tool in of_server(work.session, server):
        offer = offers.get(tool.name)
        if tool.state == ToolState.ENABLED and offer is not None and offer.pin != tool.pin:
            tool.offered_pin, tool.offered, tool.unfit = offer.pin, dict(offer.content), offer.unfit
            _turn(work, tool, ToolState.CHANGED, server)
            has_changed = True
    return has_changed


def _turn(work: Work, tool: McpTool, state: ToolState, server: McpServer) -> None:
    before, tool.state = tool.state, state
    work.session.add(tool)
    pins = (tool.pin, tool.offered_pin if state is ToolState.CHANGED else None)
    changes = {"state": (_word(before), state.value), "pin": pins}
    _record(work, None, "changed", tool, server, changes)


def _check_command(session: Session, server: McpServer, tool: McpTool) -> None:
    definition = definitions.of(server, tool)
    known = publishing.known_in(session, tool.tenant_id, besides=definition)
    if refused := readiness.errors(readiness.check(definition, known)):
        raise CannotBeEnabled(rule=refused[0].code)


def _read_only(session: Session, besides: McpTool) -> int:
    query = (
        select(func.count())
        .select_from(McpTool)
        .where(
            McpTool.tenant_id == besides.tenant_id,
            McpTool.state == ToolState.ENABLED,
            McpTool.risk == Risk.L0,
            McpTool.id != besides.id,
        )
    )
    return session.exec(query).one()


def _word(value: Any) -> Any:
    return str(value) if value is not None else None


def _record(
    work: Work,
    person: Principal | None,
    verb: str,
    tool: McpTool,
    server: McpServer,
    changes: dict[str, tuple[Any, Any]],
) -> None:
    facts.record(
        work,
        f"outside.tool.{verb}",
        person,
        tenant_id=tool.tenant_id,
        target=("mcp_tool", tool.id),
        changes=changes,
        details={"server": server.name, "tool": tool.name},
    )
