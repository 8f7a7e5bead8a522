"""/admin/mcp: servers that others run, what they offer, and which of it may be used."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from sqlmodel import Session

from app.commands.definition import Risk
from app.console import faults, flash, forms
from app.console.forms import Form
from app.console.nav import NavItem
from app.console.params import Id
from app.console.view import render
from app.identity.deps import FreshPerson, Person
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.kernel.i18n import N_
from app.outside import differences, looking, programs, servers, tools
from app.outside.differences import Line
from app.outside.models import Access, McpServer, McpTool, ToolState
from app.outside.results import Lost
from app.outside.servers import MANAGE, TooManyServers
from app.outside.tools import CannotBeEnabled, NotAsLooked

router = APIRouter(prefix="/admin/mcp")
NAV = NavItem(N_("Outside servers"), "/admin/mcp", "external", "administration", MANAGE, order=92)
LOOKED = flash.notice(N_("This is what the server offers now."))
AWAY = flash.notice(N_("The server could not be asked. The reason stands below."), "warn")
PAUSED = flash.notice(N_("None of its tools can be used for now."))
RESUMED = flash.notice(N_("Its enabled tools can be used again."))
REMOVED = flash.notice(N_("The server was removed."))
ENABLED = flash.notice(N_("The tool can be used, as it is now."))
TURNED_OFF = flash.notice(N_("Nobody can use the tool any more."))

RULES = {
    "name": N_("Its name has other characters than letters, digits, dots, dashes and underscores."),
    "same_name_here": N_("Another tool of the server would have the same name here."),
    "same_name": N_("The server lists two tools of one name."),
    "too_many_tools": N_("The server lists more than 200 tools."),
    "foreign_reference": N_("Its schema points out of its own document."),
    "dynamic_reference": N_("Its schema uses dynamic references."),
    "reference": N_("Its schema points to a part that is not there."),
    "dialect": N_("Its schema is of a dialect that is not taken."),
    "too_deep": N_("Its schema is nested too deeply."),
    "too_many_subschemas": N_("Its schema has too many parts."),
    "too_large": N_("Its schema is too large."),
    "pattern": N_("A pattern in its schema is too long."),
    "too_many_patterns": N_("Its schema, or the whole list, has too many patterns."),
    "list_too_large": N_("The server lists more than can be read."),
    "hidden_text": N_("A text in its schema hides something."),
    "property_name": N_("An input has a name that hides something."),
    "not_an_object": N_("Its input is not an object."),
    "not_a_schema": N_("Its schema is none."),
    "not_json": N_("Its schema holds what cannot be stored."),
    "invalid": N_("Its schema is not valid, or uses a pattern that may take for ever."),
    "name_clash": N_("A command has this name already."),
    "link_needed": N_("You have to link yourself to the server first."),
    "unauthorized": N_("It does not accept the access that it was shown."),
    "protocol": N_("It does not answer as an MCP server should."),
    "stream": N_("It wants a stream that nobody asked for."),
    "not_in_file": N_("The operator's file does not name this program."),
    "file_unreadable": N_("The operator's file cannot be read."),
    "server_off": N_("It is turned off."),
}


class NewServer(BaseModel):
    """A server: its address, or a program of the operator's file."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=24)] = ""
    url: Annotated[str, Field(max_length=500)] = ""
    access: Access = Access.OPEN
    client_id: Annotated[str, Field(max_length=500)] = ""
    client_secret: SecretStr = SecretStr("")
    program: Annotated[str, Field(max_length=24)] = ""


class Enabling(BaseModel):
    """What an administrator says of a tool: how much is at stake, and which words were read."""

    model_config = ConfigDict(extra="forbid")

    risk: Risk
    pin: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Listed:
    """A server in the list, with its tools by state."""

    server: McpServer
    enabled: int
    offered: int
    changed: int


@dataclass(frozen=True, slots=True)
class Profile:
    """Everything the page of one server shows."""

    server: McpServer
    tools: Sequence[McpTool]


@dataclass(frozen=True, slots=True)
class Detail:
    """Everything the page of one tool shows."""

    server: McpServer
    tool: McpTool
    differences: list[Line]
    schema: str


@router.get("")
async def index(request: Request, person: Person) -> HTMLResponse:
    """Every server, and how many of its tools are used."""
    listed = await db.read(_listed, person)
    return render(request, "admin_mcp/index.html", listed=listed, rule=rule)


@router.get("/new")
async def new(request: Request, person: FreshPerson) -> HTMLResponse:
    """The form that makes a server known."""
    return await _form_page(request, person, forms.blank(NewServer, access=Access.OPEN.value))


@router.post("")
async def create(request: Request, person: FreshPerson) -> Response:
    """Make a server known, and look at what it offers."""
    form = await forms.read(request, NewServer)
    if form.data:
        with form.catching(TooManyServers):
            made = await db.transaction(_create, person, form.data)
            return await _look(person, made.id)
    return await _form_page(request, person, form, status_code=422)


@router.get("/{server_id}")
async def show(request: Request, person: Person, server_id: Id) -> HTMLResponse:
    """One server, and every tool it offers or offered."""
    profile = await db.read(_profile, person, server_id)
    return render(
        request,
        "admin_mcp/show.html",
        server=profile.server,
        tools=profile.tools,
        rule=rule,
    )


@router.post("/{server_id}/look")
async def look(_request: Request, person: Person, server_id: Id) -> Response:
    """Ask the server what it offers now."""
    return await _look(person, server_id)


@router.post("/{server_id}/pause")
async def pause(_request: Request, person: Person, server_id: Id) -> Response:
    """Let none of its tools be used for now."""
    await db.transaction(_set_enabled, person, server_id, False)
    return flash.see_other(f"/admin/mcp/{server_id}", PAUSED)


@router.post("/{server_id}/resumption")
async def resume(_request: Request, person: Person, server_id: Id) -> Response:
    """Let its enabled tools be used again."""
    await db.transaction(_set_enabled, person, server_id, True)
    return flash.see_other(f"/admin/mcp/{server_id}", RESUMED)


@router.get("/{server_id}/removal")
async def ask_to_remove(request: Request, person: Person, server_id: Id) -> HTMLResponse:
    """What goes with a server."""
    return await _ask(request, person, server_id)


@router.post("/{server_id}/removal")
async def remove(request: Request, person: Person, server_id: Id) -> Response:
    """Forget a server."""
    form = await forms.read(request, Nothing)
    if form.data:
        await db.transaction(_remove, person, server_id)
        return flash.see_other("/admin/mcp", REMOVED)
    return await _ask(request, person, server_id, form)


@router.get("/{server_id}/tools/{tool_id}")
async def show_tool(
    request: Request, person: FreshPerson, server_id: Id, tool_id: Id
) -> HTMLResponse:
    """One tool: what it says, what changed, and how much is at stake."""
    return await _tool_page(request, person, server_id, tool_id)


@router.post("/{server_id}/tools/{tool_id}")
async def enable(request: Request, person: FreshPerson, server_id: Id, tool_id: Id) -> Response:
    """Let a tool be used, as it was read."""
    form = await forms.read(request, Enabling)
    if form.data:
        with form.catching(NotAsLooked, CannotBeEnabled, at="risk"):
            await db.transaction(_enable, person, server_id, tool_id, form.data)
            return flash.see_other(f"/admin/mcp/{server_id}", ENABLED)
    return await _tool_page(request, person, server_id, tool_id, form)


@router.post("/{server_id}/tools/{tool_id}/turning-off")
async def turn_off(_request: Request, person: Person, server_id: Id, tool_id: Id) -> Response:
    """Let nobody use a tool any more."""
    await db.transaction(_turn_off, person, server_id, tool_id)
    return flash.see_other(f"/admin/mcp/{server_id}", TURNED_OFF)


def rule(name: str) -> str:
    """Why a tool or a server is not taken, as people read it; English source text."""
    return RULES.get(name) or faults.fault(name)


async def _look(person: Principal, server_id: str) -> Response:
    fault = await looking.look(person, server_id)
    return flash.see_other(f"/admin/mcp/{server_id}", AWAY if fault else LOOKED)


def _listed(session: Session, person: Principal) -> list[Listed]:
    servers.check(session, person)
    found = []
    for server in servers.all_of(session, person.tenant_id):
        states = [tool.state for tool in tools.of_server(session, server)]
        found.append(
            Listed(
                server,
                enabled=states.count(ToolState.ENABLED),
                offered=len(states) - states.count(ToolState.GONE),
                changed=states.count(ToolState.CHANGED),
            )
        )
    return found


def _one(session: Session, person: Principal, server_id: str) -> McpServer:
    servers.check(session, person)
    return servers.one(session, person.tenant_id, server_id)


def _profile(session: Session, person: Principal, server_id: str) -> Profile:
    server = _one(session, person, server_id)
    return Profile(server, tools.of_server(session, server))


def _detail(session: Session, person: Principal, server_id: str, tool_id: str) -> Detail:
    server = _one(session, person, server_id)
    tool = tools.one(session, server, tool_id)
    is_other = tool.pinned is not None and tool.offered_pin != tool.pin
    lines = differences.between(tool.pinned, tool.offered) if is_other else []
    return Detail(server, tool, lines, differences.written(tool.offered.get("input", {})))


def _programs(session: Session, person: Principal) -> list[str]:
    servers.check(session, person)
    known = {server.name for server in servers.all_of(session, person.tenant_id)}
    try:
        return sorted(set(programs.listed(session, person.tenant_id)) - known)
    except Lost:
        return []


def _create(work: Work, person: Principal, new: NewServer) -> McpServer:
    servers.check(work.session, person)
    if new.program:
        return servers.add_program(work, person, new.program)
    return servers.add(
        work,
        person,
        name=new.name.strip(),
        url=new.url.strip(),
        access=new.access,
        client_id=new.client_id.strip(),
        client_secret=new.client_secret.get_secret_value(),
    )


def _set_enabled(work: Work, person: Principal, server_id: str, is_enabled: bool) -> None:
    servers.set_enabled(work, person, _one(work.session, person, server_id), is_enabled)


def _remove(work: Work, person: Principal, server_id: str) -> None:
    servers.remove(work, person, _one(work.session, person, server_id))


def _enable(work: Work, person: Principal, server_id: str, tool_id: str, said: Enabling) -> None:
    server = _one(work.session, person, server_id)
    tool = tools.one(work.session, server, tool_id)
    tools.enable(work, person, server, tool, risk=said.risk, pin=said.pin)


def _turn_off(work: Work, person: Principal, server_id: str, tool_id: str) -> None:
    server = _one(work.session, person, server_id)
    tools.turn_off(work, person, server, tools.one(work.session, server, tool_id))


async def _form_page(
    request: Request, person: Principal, form: Form[NewServer], status_code: int = 200
) -> HTMLResponse:
    offered = await db.read(_programs, person)
    return render(
        request, "admin_mcp/form.html", status_code=status_code, form=form, programs=offered
    )


async def _tool_page(
    request: Request,
    person: Principal,
    server_id: str,
    tool_id: str,
    form: Form[Enabling] | None = None,
) -> HTMLResponse:
    detail = await db.read(_detail, person, server_id, tool_id)
    return render(
        request,
        "admin_mcp/tool.html",
        status_code=422 if form else 200,
        detail=detail,
        server=detail.server,
        tool=detail.tool,
        form=form or forms.blank(Enabling, risk=detail.tool.risk, pin=detail.tool.offered_pin),
        rule=rule,
    )


async def _ask(
    request: Request, person: Principal, server_id: str, form: Form[Nothing] | None = None
) -> HTMLResponse:
    server = await db.read(_one, person, server_id)
    status = 422 if form else 200
    return render(request, "admin_mcp/remove.html", status_code=status, form=form, server=server)
