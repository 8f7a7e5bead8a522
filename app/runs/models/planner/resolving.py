"""Turns what a sentence calls records into the records: one hit is taken, several are offered."""

from collections.abc import Sequence

from app.identity.search import fold
from app.kernel.i18n import gettext as _
from app.runs.models.planner import asking, focus, language, moves, records, wording
from app.runs.models.planner.commands import Commands
from app.runs.models.planner.moves import Decided, LookFirst
from app.runs.models.planner.reading import Purpose, Scene
from app.runs.models.planner.records import Found
from app.runs.models.planner.slots import schema
from app.runs.models.planner.slots.filling import Named
from app.runs.models.planner.slots.schema import Field, Kind
from app.runs.models.planner.wishes import Wish

AT_MOST = 5  # records of one request


def resolve(scene: Scene, known: Commands, wish: Wish) -> None:
    """Find the records of a request: those it is about, and those its fields name.

    Raises:
        LookFirst: something has to be read before.
        Decided: a question to the person, or the news that there is no such record.
    """
    if any(each.kind is Kind.REFERENCE for each in schema.fields(wish.command)):
        _references(scene, wish)
    if wish.command.definition.targeted and not wish.targets:
        wish.targets = _targets(scene, known, wish)


def nothing_called(text: str) -> moves.Move:
    """The news that no record has this number, of whatever kind it would be."""
    told = _("I found nothing called %(text)s, or it is not yours to see.")
    return moves.say(told % {"text": wording.quoted(text)})


def _targets(scene: Scene, known: Commands, wish: Wish) -> list[Found]:
    type = wish.command.definition.record or ""
    named = [each for each in wish.filled.named if not each.before.startswith("=")]
    if len(named) > AT_MOST:
        raise Decided(
            moves.say(_("That is more than five at once. Please give me five at the most."))
        )
    if named:
        return _by_name(scene, known, wish, type, named)
    spoken = language.read(wish.text).spoken
    names = schema.names_of(wish.command)
    if language.refers(spoken) or language.is_only(spoken, *names):
        if (found := focus.last(scene, known, type)) is not None:
            return [found]
        if language.refers(spoken) and not (wish.filled.words or wish.filled.month):
            raise Decided(asking.for_target(wish))
    return [_by_words(scene, wish, type, names)]


def _by_name(
    scene: Scene, known: Commands, wish: Wish, type: str, named: Sequence[Named]
) -> list[Found]:
    queries = [records.query_of(type, each) for each in named]
    records.look(scene, *queries)  # together, in one batch
    found: list[Found] = []
    for each in named:
        hits = records.by_name(scene, [type], each)
        if not hits and (by_parts := _by_parts(scene, known, wish, type)) is not None:
            return [by_parts]
        found.append(_one(wish, hits, each.text, type))
    return list({each.id: each for each in found}.values())


def _one(
    wish: Wish, hits: Sequence[Found], text: str, type: str, field: str | None = None
) -> Found:
    if not hits:
        told = {"record": records.name_of(type), "text": wording.quoted(text)}
        raise Decided(
            moves.say(_("I found no %(record)s called %(text)s, or it is not yours to see.") % told)
        )
    if len(hits) > 1:
        raise Decided(asking.for_record(wish, hits, field))
    return hits[0]


def _by_words(scene: Scene, wish: Wish, type: str, names: Sequence[str]) -> Found:
    words, month = wish.filled.words, wish.filled.month
    found, told_apart = records.by_words(
        scene, type, words, month, names, is_mine=language.is_own(wish.text)
    )
    code = wish.command.code
    able = [each for each in found if each.may is None or code in each.may]
    states = wish.command.definition.transition
    if states is not None:
        able = [each for each in able if not each.state or each.state in states.from_]
    if not able:
        raise Decided(_nothing(wish, found, type))
    if len(able) > 1:
        raise Decided(asking.for_record(wish, able))
    is_described = bool(words or month)
    if not told_apart or (wish.command.definition.needs_approval and not is_described):
        raise Decided(asking.to_confirm(wish, able[0]))
    return able[0]


def _nothing(wish: Wish, found: Sequence[Found], type: str) -> moves.Move:
    name = records.name_of(type)
    if not found:
        if not wish.filled.words and not wish.filled.month:
            return asking.for_target(wish)
        text = _("I found no %(record)s that fits what you said. Its number would help me.")
        return moves.say(text % {"record": name})
    shown = [f"- {wording.record(each)} · {wording.word(each.state or '-')}" for each in found[:3]]
    head = _("I found this, but what you want is not possible with it now:")
    return moves.say("\n".join([head, "", *shown]))


def _by_parts(scene: Scene, known: Commands, wish: Wish, type: str) -> Found | None:
    """A record without a name of its own, by the records it belongs to: stock of an item."""
    for command in known.all:
        told = command.definition
        wants = [each for each in schema.fields(command) if each.kind is Kind.REFERENCE]
        if told.record != type or told.writes or told.targeted or not wants:
            continue
        parts = _assign(scene, wants, wish.filled.named, wish)
        if not parts:
            continue
        given = {name: found.id for name, found in parts.items()}
        call = known.call(command, given, Purpose.LOOK)
        answers = scene.results(call.tool, call.arguments)
        if not answers:
            raise LookFirst(call)
        rows = wording.rows_of(answers[-1].get("result")) or []
        label = " · ".join(found.label for found in parts.values())
        hits = [Found(type, str(row["id"]), label, "", row, None) for row in rows if row.get("id")]
        if hits:
            return _one(wish, hits, label, type)
    return None


def _references(scene: Scene, wish: Wish) -> None:
    wants = [
        each
        for each in schema.fields(wish.command)
        if each.kind is Kind.REFERENCE and each.name not in wish.references
    ]
    targeted = wish.command.definition.targeted
    named = [
        each
        for each in wish.filled.named
        if not targeted or each.before.startswith("=") or each.is_id
    ]
    wish.references |= _assign(scene, wants, named, wish)
    if not wish.asked:
        _check_found(scene, wish, wants, named)
    wish.references |= _people(scene, wants, wish)
    _by_their_words(scene, wish, [each for each in wants if each.name not in wish.references])


def _check_found(scene: Scene, wish: Wish, wants: Sequence[Field], named: Sequence[Named]) -> None:
    """What was named and is not there is said, before anything else is asked or shown."""
    types = sorted({each.record for each in wants if each.record})
    lacks = any(
        each.record and each.is_required and each.name not in wish.references for each in wants
    )
    shows_others = not wish.command.definition.writes and not wish.references
    if not types or not (lacks or shows_others):
        return
    for each in named:
        if not each.is_id and not records.by_name(scene, types, each):
            raise Decided(nothing_called(each.text))


def _assign(
    scene: Scene, wants: Sequence[Field], named: Sequence[Named], wish: Wish
) -> dict[str, Found]:
    """Which field each named record belongs to: by its type, and by the word that stood before."""
    types = sorted({each.record for each in wants if each.record})
    if types and named:
        records.look(scene, *(records.query_of(type, each) for each in named for type in types))
    given: dict[str, Found] = {}
    for each in named:
        hits = records.by_name(scene, types, each) if types else []
        if not hits:
            plain = [field for field in wants if field.record is None and each.is_id]
            if plain and plain[0].name not in given:
                given[plain[0].name] = Found("", each.text, each.text, "", {}, None)
            continue
        open_fields = [
            field
            for field in wants
            if field.name not in given and field.record in {hit.type for hit in hits}
        ]
        if not open_fields:
            continue
        field = min(open_fields, key=lambda field: _distance(field, each.before))
        fitting = [hit for hit in hits if hit.type == field.record]
        given[field.name] = _one(wish, fitting, each.text, field.record or "", field.name)
    return given


def _people(scene: Scene, wants: Sequence[Field], wish: Wish) -> dict[str, Found]:
    """Somebody who is called by a visible name, for a field that names no record."""
    field = next((each for each in wants if not each.record), None)
    if field is None or field.name in wish.references:
        return {}
    text = fold(wish.text)
    called = [name for name in scene.people if len(name) > 1 and fold(name) in text]
    if len(called) != 1:
        return {}
    return {field.name: Found("", scene.people[called[0]], called[0], "", {}, None)}


_FROM, _TO = frozenset({"from", "从", "由", "自"}), frozenset({"to", "into", "到", "至", "往"})


def _distance(field: Field, before: str) -> int:
    if before == f"={field.name}":
        return -1
    name = field.name.lower()
    if before in _FROM:
        return 0 if name.startswith("from") else 2 if name.startswith("to") else 1
    if before in _TO:
        return 0 if name.startswith("to") else 2 if name.startswith("from") else 1
    return 0 if field.is_required else 1


def _by_their_words(scene: Scene, wish: Wish, wants: Sequence[Field]) -> None:
    """A required record that is described and not named: the only one that fits is taken."""
    open_fields = [each for each in wants if each.is_required and each.record]
    words = wish.filled.words
    if (
        len(open_fields) != 1
        or len(words) < 2
        or any(v == words for v in wish.filled.values.values())
    ):
        return
    field = open_fields[0]
    query = {"type": field.record, "query": words[: records.WORDS], "limit": records.AT_MOST}
    [hits] = records.look(scene, query)
    if len(hits) == 1:
        wish.references[field.name] = hits[0]
    elif hits:
        raise Decided(asking.for_record(wish, hits, field.name))
