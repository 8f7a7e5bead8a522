"""Whether agents find commands: what their model goes for when it is asked, and nothing is done.

Either every command is asked for by its own name and example, in each language, or somebody's own
sentence is put to the model, and what it goes for is rehearsed as that person's agent (CMD-2).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

from sqlmodel import Session

from app.commands import catalogue, pipeline, publishing
from app.commands.call import Call
from app.commands.descriptors import Descriptor
from app.commands.outcome import Preview
from app.identity import agents, delegations
from app.identity.models import User
from app.identity.principal import Channel, Principal, Scope
from app.kernel import clock, db, settings
from app.kernel.errors import AppError
from app.kernel.i18n import LANGUAGES
from app.operator import people
from app.operator.dry_asking import Sentence, Wanted
from app.operator.refusing import Refused
from app.runs import record_search
from app.runs.faults import words_of
from app.runs.models import chosen, profiles
from app.runs.models.protocol import Model, ModelFault
from app.runs.record_search import Looked

SHOWN = 5  # of the commands that fit
SCALAR = (str, int, float)


class Verdict(StrEnum):
    """What came of asking for a command."""

    FOUND = "found"
    OFFERED = "offered"  # the model would ask which of some it is, and it is one of them
    MISSED = "missed"
    MISTAKEN = "MISTAKEN"  # another one that writes would be called


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a command, and what the model went for."""

    code: str
    language: str
    request: str
    wanted: Wanted
    verdict: Verdict

    def data(self) -> dict[str, Any]:
        """For programs."""
        return {
            "cmdCode": self.code,
            "language": self.language,
            "request": self.request,
            "verdict": self.verdict.value.lower(),
            "wentFor": self.wanted.code,
            "among": list(self.wanted.among),
        }


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A sentence: which commands fit it, what the model went for, and what that would change."""

    model: str
    fits: Sequence[tuple[Descriptor, float]]
    wanted: Wanted
    preview: Preview | None = None
    refused: AppError | None = None

    def data(self, language: str) -> dict[str, Any]:
        """For programs."""
        return {
            "model": self.model,
            "fits": [{"cmdCode": each.code, "score": round(score, 2)} for each, score in self.fits],
            "wentFor": self.wanted.code,
            "input": self.wanted.input,
            "among": list(self.wanted.among),
            "said": list(self.wanted.said),
            "preview": self.preview.data() if self.preview else None,
            "refused": words_of(self.refused, language) if self.refused else None,
        }


async def of_examples(user: str, agent: str) -> tuple[str, list[Asked]]:
    """The model's name, and what it makes of the name and example of each command.

    Raises:
        Refused: there is no such user or agent, or the model gives no answer.
    """
    commands = await _commands_of(user, agent) if user else _declared()
    model = await _model()
    look = partial(_any_record, commands)
    found = []
    for each in commands:
        for language in LANGUAGES:
            request = _request(each, language)
            wanted = await _put(Sentence(request, commands, language, look), model)
            verdict = _verdict(each.code, wanted, commands)
            found.append(Asked(each.code, language, request, wanted, verdict))
    return f"{model.name} {model.version}", found


async def of_sentence(text: str, user: str, agent: str, language: str) -> Rehearsed:
    """What the model makes of a sentence of a user, and what that would change.

    Raises:
        Refused: there is no such user or agent, or the model gives no answer.
    """
    from app.runs.models.planner import ranking  # noqa: PLC0415 - loads with the first search

    person, principal = await db.read(_acting, user, agent)
    commands = await db.read(_catalogue, principal)
    model, zone = await _model(), person.time_zone or "UTC"
    look = partial(_look, principal, zone)
    sentence = Sentence(text, commands, language, look, zone)
    wanted = await _put(sentence, model)
    fits = [pair for pair in ranking.ranked(text, commands, language)[:SHOWN] if pair[1] > 0]
    made = Rehearsed(f"{model.name} {model.version}", fits, wanted)
    if wanted.code is None or wanted.input is None:
        return made
    return await _rehearsed(made, principal)


def lines_of_examples(model: str, found: Iterable[Asked]) -> Iterator[str]:
    """A table for people."""
    counts = dict.fromkeys(Verdict, 0)
    for each in found:
        counts[each.verdict] += 1
        went = each.wanted.code or ", ".join(each.wanted.among) or "nothing"
        told = "" if each.verdict is Verdict.FOUND else f"  it went for {went}"
        yield f"{each.verdict:<9}{each.code:<34}{each.language:<6}{told}".rstrip()
    said = ", ".join(f"{count} {verdict.value.lower()}" for verdict, count in counts.items())
    yield f"{sum(counts.values())} requests put to {model}: {said}."


def lines_of_sentence(made: Rehearsed, language: str) -> Iterator[str]:
    """What came of a sentence, for people."""
    for each, score in made.fits:
        yield f"{score:>5.2f}  {each.code:<34}{each.definition.display_name.in_(language)}"
    yield from (f"{made.model} would say: {line}" for line in made.wanted.said)
    if made.wanted.code is None:
        among = ", ".join(made.wanted.among)
        yield f"It would ask which: {among}." if among else "It would call nothing."
    elif made.wanted.input is None:
        yield f"It would go for {made.wanted.code}, and asks first."
    else:
        yield f"It would call {made.wanted.code} with {dict(made.wanted.input)}"
    if made.refused:
        yield f"A preview is refused: {words_of(made.refused, language)}"
    if made.preview:
        yield from _changes(made.preview)


def _changes(preview: Preview) -> Iterator[str]:
    if not preview.changes and not preview.outside:
        yield "A preview changes nothing."
    for change in preview.changes:
        yield f"It would {change.operation} {change.record} {change.label or change.id}:"
        for name, (before, after) in change.fields.items():
            yield f"    {name}: {before} → {after}"
    for each in preview.outside:
        yield f"It would send {each.get('kind')} {each.get('name')} out of the house."


async def _model() -> Model:
    with _answering():
        return await chosen.model_for(profiles.of_settings(settings.current()))


async def _put(sentence: Sentence, model: Model) -> Wanted:
    with _answering():
        return await sentence.put_to(model)


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except ModelFault as fault:
        raise Refused(f"The model gives no answer ({fault.kind}). {fault.public}") from None


def _declared() -> tuple[Descriptor, ...]:
    """Every command of the packs that an agent may have."""
    declared = publishing.declared_definitions()
    return tuple(
        Descriptor(declared[code], 1, declared[code].content_hash)
        for code in sorted(declared)
        if not declared[code].people_only
    )


async def _commands_of(user: str, agent: str) -> tuple[Descriptor, ...]:
    _, principal = await db.read(_acting, user, agent)
    return await db.read(_catalogue, principal)


def _catalogue(session: Session, principal: Principal) -> tuple[Descriptor, ...]:
    return catalogue.of(session, principal).entries


def _acting(session: Session, named: str, code: str) -> tuple[User, Principal]:
    """The user, and an agent that acts for them: the one named, or the newest."""
    user = people.user(session, named)
    for delegation, agent in delegations.of_user(session, user.tenant_id, user.id):
        release = agents.latest_release(session, agent)
        is_asked = code in {"", agent.code}
        if release is None or not is_asked or not delegations.is_usable(delegation, clock.now()):
            continue
        return user, Principal(
            tenant_id=user.tenant_id,
            user_id=user.id,
            agent_release_id=release.id,
            delegation_id=delegation.id,
            session_id=None,
            channel=Channel.RUN,
            actors=(agent.id,),
            scopes=Scope.among(delegation.scopes),
            epoch=user.authz_epoch,
        )
    raise Refused(f"{named} lets no agent {code} act here.".replace("  ", " "))


def _request(command: Descriptor, language: str) -> str:
    """What somebody would say who wants just this: its name, and the values of its example."""
    told = command.definition
    fields: Mapping[str, Any] = told.input_schema.get("properties", {})
    values = [
        f"{fields.get(name, {}).get('title') or name}: {value}"
        for name, value in told.example.items()
        if name != "operationType" and isinstance(value, SCALAR)
    ]
    return "\n".join([told.display_name.in_(language), *values])


def _verdict(code: str, wanted: Wanted, commands: Sequence[Descriptor]) -> Verdict:
    if wanted.code == code:
        return Verdict.FOUND
    if code in wanted.among:
        return Verdict.OFFERED
    writes = any(each.code == wanted.code and each.definition.writes for each in commands)
    return Verdict.MISTAKEN if writes and wanted.input is not None else Verdict.MISSED


async def _any_record(
    commands: Sequence[Descriptor], name: str, given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Whatever is looked up is there, and takes every command of its type."""
    if name != "read_record":
        return {"outcome": "done", "result": {}}
    type, label = str(given.get("type")), str(given.get("query") or "X-1")
    record = {
        "id": str(given.get("id") or "1".zfill(26)),
        "type": type,
        "label": label,
        "number": label,
        "state": "",
        "version": 1,
        "fields": {},
        "may": [each.code for each in commands if each.definition.record == type],
    }
    return {"outcome": "done", "result": {"records": [record], "more": False}}


async def _look(
    principal: Principal, timezone: str, name: str, given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The records as they are, through the filter of the principal; reads are rehearsed."""
    try:
        if name == "read_record":
            looked = Looked(timezone=timezone, **given)
            result = await db.read(record_search.find, principal, looked)
        else:
            call = Call(code=name, input=given, principal=principal, preview=True)
            result = dict((await pipeline.preview(call)).result)
    except AppError as refused:
        return {"outcome": "refused", "reason": refused.reason, "advice": "report_to_user"}
    return {"outcome": "done", "result": result}


async def _rehearsed(made: Rehearsed, principal: Principal) -> Rehearsed:
    wanted = made.wanted
    code, given = str(wanted.code), dict(wanted.input or {})
    try:
        call = Call(code=code, input=given, principal=principal, preview=True)
        return replace(made, preview=await pipeline.preview(call))
    except AppError as refused:
        return replace(made, refused=refused)
