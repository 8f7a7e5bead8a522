"""Records by what people call them: looked up, never guessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.commands import registry
from app.commands.descriptors import Descriptor
from app.identity.search import fold
from app.kernel import i18n
from app.runs.models.planner import kin
from app.runs.models.planner.moves import Call, LookFirst
from app.runs.models.planner.reading import READ, Purpose, Scene
from app.runs.models.planner.slots import schema
from app.runs.models.planner.slots.filling import Named
from app.runs.models.planner.tokens import tokens

AT_MOST = 10
WORDS = 100  # characters that a record is described by
TITLES = ("title", "name", "subject", "description", "supplier")


@dataclass(frozen=True, slots=True)
class Found:
    """A record as `read_record` shows it."""

    type: str
    id: str
    label: str
    state: str
    fields: Mapping[str, Any]
    may: tuple[str, ...] | None

    @classmethod
    def of(cls, told: Mapping[str, Any], type: str) -> "Found":
        """One of a result; `may` is None where the result does not say it."""
        may = told.get("may")
        return cls(
            str(told.get("type") or type),
            str(told.get("id", "")),
            str(told.get("number") or told.get("label") or ""),
            str(told.get("state") or ""),
            told.get("fields") or {},
            tuple(map(str, may)) if isinstance(may, list) else None,
        )

    @property
    def title(self) -> str:
        """What else tells it apart: its title or name."""
        for name in TITLES:
            if isinstance(value := self.fields.get(name), str) and value and value != self.label:
                return value
        return ""

    @property
    def currency(self) -> str:
        """Of its amounts; empty where it has none."""
        return str(self.fields.get("currency") or "")

    def kept(self) -> dict[str, Any]:
        """What a question keeps of it."""
        wanted = {
            name: value
            for name, value in self.fields.items()
            if name in {*TITLES, "period", "currency"}
            or name.endswith(("total_minor", "totalMinor"))
        }
        return {
            "type": self.type,
            "id": self.id,
            "label": self.label[:60],
            "state": self.state,
            "fields": {k: v[:80] if isinstance(v, str) else v for k, v in wanted.items()},
        }

    def is_called(self, text: str) -> bool:
        """Whether this is its number, its label or another code of its own."""
        wanted = fold(text)
        values = [self.label, self.id, *(v for v in self.fields.values() if isinstance(v, str))]
        return wanted in {fold(value) for value in values}

    def ends_in(self, number: str) -> bool:
        """Whether its number ends in these digits: 12 is EXP-12 and EXP-0012."""
        digits = self.label.rpartition("-")[2].lstrip("0")
        return digits == number.lstrip("0")


def look(scene: Scene, *queries: Mapping[str, Any]) -> list[list[Found]]:
    """What each query finds.

    Raises:
        LookFirst: some were not made yet; they are made together.
    """
    answers = [scene.results(READ, query) for query in queries]
    missing = [
        Call(READ, query, Purpose.LOOK)
        for query, answer in zip(queries, answers, strict=True)
        if not answer
    ]
    if missing:
        raise LookFirst(*missing)
    return [
        _found(answer[-1], str(query["type"]))
        for query, answer in zip(queries, answers, strict=True)
    ]


def by_name(scene: Scene, types: Sequence[str], named: Named) -> list[Found]:
    """The records of these types with this number or code; one that is the only hit is taken."""
    queries = [query_of(type, named) for type in types]
    found = [record for part in look(scene, *queries) for record in part]
    if named.is_id:
        return found
    exact = [each for each in found if each.is_called(named.text)]
    if not exact and named.text.isdigit():
        return [each for each in found if each.ends_in(named.text)]
    return exact or (found if len(found) == 1 else [])


def query_of(type: str, named: Named) -> dict[str, Any]:
    """How a record with a name is asked for."""
    if named.is_id:
        return {"type": type, "id": named.text}
    return {"type": type, "query": named.text, "limit": AT_MOST}


def by_words(
    scene: Scene,
    type: str,
    words: str,
    month: str | None,
    ignored: Sequence[str],
    *,
    is_mine: bool = False,
) -> tuple[list[Found], bool]:
    """Records that words and a month describe, and whether the words told them apart.

    Without words one's own come first: that is how `is_mine` knows whose they are.
    """
    terms = _terms(words, ignored)
    queries: list[dict[str, Any]] = [{"type": type, "query": "", "limit": AT_MOST}]
    if month:
        queries.append({"type": type, "query": month, "limit": AT_MOST})
    if terms and words:
        queries.append({"type": type, "query": words[:WORDS], "limit": AT_MOST})
    parts = look(scene, *queries)
    merged: dict[str, Found] = {}
    for part in parts:
        merged |= {each.id: each for each in part if each.id not in merged}
    found = list(merged.values())
    if is_mine and parts[0]:
        owner = parts[0][0].fields.get("owner_id")
        found = [each for each in found if each.fields.get("owner_id") == owner]
    if month:
        found = [each for each in found if _is_of_month(each, month)]
    if not terms:
        return found, True
    scored = [(_score(each, terms), each) for each in found]
    best = max((score for score, _ in scored), default=0.0)
    if best <= 0:
        return found, False
    return [each for score, each in scored if score >= best * 0.999], True


def _found(result: Mapping[str, Any], type: str) -> list[Found]:
    inner = result.get("result")
    listed = inner.get("records") if isinstance(inner, Mapping) else None
    return [Found.of(each, type) for each in listed or () if isinstance(each, Mapping)]


def _is_of_month(record: Found, month: str) -> bool:
    values = [value for value in record.fields.values() if isinstance(value, str)]
    months = [value for value in values if len(value) == len(month) and value[4:5] == "-"]
    if months:
        return month in months
    return any(value.startswith(month) for value in values)


def is_described(record: Found, words: str, command: Descriptor) -> bool:
    """Whether words say something of a record, or only what the command and its kind are called."""
    terms = _terms(words, schema.names_of(command))
    return not terms or _score(record, terms) > 0


def _terms(words: str, ignored: Sequence[str]) -> list[str]:
    own = {token for name in ignored for token, _ in tokens(name)}
    told = tokens(words[:WORDS])
    return [token for token, weight in told if weight >= 1 and token not in own]


def _score(record: Found, terms: Sequence[str]) -> float:
    """How many of the terms it has, itself or by a word of their family."""
    text = "\n".join(str(value) for value in (record.label, *record.fields.values()) if value)
    folded, had = fold(text), {token for token, _ in tokens(text)}
    return sum(1.0 for term in terms if term in had or kin.is_meant(term, folded))


def name_of(type: str) -> str:
    """What people call a record of a type."""
    model = registry.record_types().get(type)
    if model is None:
        return type.rpartition(".")[2].replace("_", " ")
    told = model.NAMES.get(i18n.language(), type)
    return told.lower() if i18n.language() == "en" else told
