"""A form made from a command's input schema, and the input read back from what was sent (UI-103).

The name of a control is the JSON pointer of its value, so an error of the pipeline finds its field.
The same form runs a command, takes one back, and edits what an approval asks for:

    form = schema_forms.form_for(session, person, definition, values={"targetRecordId": id})
    …{{ schema.fields(form) }} in a template of `_schema.html`…
    values = schema_forms.parse(definition, await request.form(max_files=0))

Everything works without script: rows come and go by buttons that send the form to an address which
draws it again; `is_redrawing` says that one of them was pressed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlmodel import Session, col, select
from starlette.datastructures import FormData

from app.access import scope
from app.commands import registry
from app.commands.definition import Operation
from app.commands.governed import field_name
from app.commands.stored import StoredDefinition
from app.console import record_choices, schema_text, words
from app.console.forms import CSRF_FIELD, SAYS
from app.console.record_choices import Offered
from app.console.said import label_of
from app.console.schema_shape import Kind, Shape, said_name, shape_of, snake
from app.identity.principal import Principal
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import gettext, language

ROWS = "rows"  # button: `add:/lines`, `remove:/lines/1`, `up:/lines/1`, `down:/lines/1`
FIND = "find"  # button beside the search for a record; the words stand in `find:<pointer>`
EMPTIED = "emptied"  # pointers of texts that were there when the form was drawn
TARGET = frozenset({"targetRecordId", "operationType"})
ID = re.compile(r"\bids?\b")
NOTHING = object()
NOTHING_OFFERED = Offered()

Sent = FormData | Mapping[str, Sequence[str]]
Typed = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Option:
    """One choice of a field."""

    value: str
    label: str


@dataclass(slots=True)
class Field:
    """One control, or a group of them, as it is drawn.

    Attributes:
        pointer: its name in the form: the JSON pointer of its value, in which the parts of an
            alternative also say which one it is.
        id: of its element: `field-<n>`.
        text: how the value stands in it; nothing for a secret.
        may_be_emptied: leaving it blank takes a text away, and is not only leaving it out.
        parts: the fields of an object, the rows of a list, the alternatives of a union.
    """

    shape: Shape
    pointer: str
    id: str
    label: str
    hint: str = ""
    text: str = ""
    chosen: tuple[str, ...] = ()
    error: str | None = None
    options: tuple[Option, ...] = ()
    offered: Offered = NOTHING_OFFERED
    may_be_emptied: bool = False
    parts: "list[Field]" = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        """Which control it is."""
        return self.shape.kind

    @property
    def is_required(self) -> bool:
        """Whether leaving it blank is an error."""
        return self.shape.is_required

    @property
    def may_grow(self) -> bool:
        """Whether a list takes one row more."""
        return len(self.parts) < int(self.shape.schema.get("maxItems", 100))

    @property
    def attributes(self) -> dict[str, Any]:
        """What else the control says about itself."""
        schema = self.shape.schema
        modes: dict[Kind, str] = {"integer": "numeric", "number": "decimal", "money": "decimal"}
        said = {"inputmode": modes.get(self.kind), "maxlength": schema.get("maxLength")}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def currency(self) -> str:
        """The currency of an amount, where the schema names one."""
        said = str(self.shape.schema.get("x-money", ""))
        return said if len(said) == 3 and said.isupper() else ""

    def all(self) -> "Iterator[Field]":
        """The field and everything in it."""
        yield self
        for part in self.parts:
            yield from part.all()


@dataclass(slots=True)
class SchemaForm:
    """The form of one command for one caller."""

    definition: StoredDefinition
    fields: list[Field]
    values: Mapping[str, Any]
    loose: Sequence[FieldError] = ()  # errors that belong to no field of it

    @property
    def target(self) -> record_choices.Choice | None:
        """The record that is chosen, if the caller reaches it."""
        for each in self.fields:
            if each.shape.name == "targetRecordId":
                return each.offered.of(each.text)
        return None

    @property
    def has_secret(self) -> bool:
        """Whether something in it is never written back and has to be typed each time."""
        return any(each.kind == "secret" for top in self.fields for each in top.all())

    def summary(self) -> list[tuple[str, str, str]]:
        """All errors: id and label of the field (empty for one of the whole form), the sentence."""
        placed = [each for top in self.fields for each in top.all() if each.error]
        said = [(each.id, each.label, str(each.error)) for each in placed]
        return said + [("", "", words.of(one)) for one in self.loose]


def form_for(
    session: Session,
    principal: Principal,
    definition: StoredDefinition,
    *,
    values: Mapping[str, Any] | None = None,
    target: str = "",
    errors: Sequence[FieldError] = (),
    searches: Mapping[str, str] | None = None,
) -> SchemaForm:
    """The form of `definition`, as `principal` may fill it in.

    Args:
        session: of the read.
        principal: whose records are offered.
        definition: the version in force.
        values: what stands in it, by the names of the wire; None for a form nobody filled in yet.
        target: the record such a form begins with, if the principal reaches it; where the command
            changes its columns, they stand in it as they are.
        errors: of the call that was refused; each is laid at its field.
        searches: pointer of a record field -> the words its choices are narrowed to.
    """
    builder = _Builder(session, principal, definition, errors, searches or {})
    if values is None and target and definition.targeted:
        values = _begun(session, principal, definition, target)
    fields = builder.fields(values)
    return SchemaForm(definition, fields, values or {}, builder.loose)


def parse(
    definition: StoredDefinition, sent: Sent, *, besides: frozenset[str] | None = None
) -> dict[str, Any]:
    """The input that a form holds, by the names of the wire; what it cannot read stays as typed.

    Args:
        definition: the version in force.
        sent: the form.
        besides: the names of the page's own fields; with it, every other field is refused.

    Raises:
        Invalid: there is a field that the form does not offer, or a text holds a character that
            cannot be stored.
    """
    typed = _typed(sent)
    if unfit := [name for name, texts in typed.items() if "\0" in "".join(texts)]:
        raise Invalid(*(FieldError(name, SAYS["string_unicode"]) for name in unfit))
    reading = _Reading(typed)
    read = reading.object(_shape(definition), "")
    own = reading.known | {ROWS, FIND, EMPTIED, CSRF_FIELD} | (besides or frozenset())
    strangers = [
        name
        for name in typed
        if name not in own
        and not name.startswith(f"{FIND}:")
        and (name.startswith("/") or besides is not None)
    ]
    if strangers:
        raise Invalid(*(FieldError(name, SAYS["extra_forbidden"]) for name in strangers))
    for pressed in typed.get(ROWS, ()):
        _rearrange(read, pressed)
    return read


def is_redrawing(sent: Sent) -> bool:
    """Whether a button was pressed that only changes the form: its rows, or a search."""
    return bool(_typed(sent).keys() & {ROWS, FIND})


def searches_of(sent: Sent) -> dict[str, str]:
    """The words that choices of records are narrowed to, by the pointer of their field."""
    prefix = f"{FIND}:"
    return {
        name.removeprefix(prefix): texts[-1]
        for name, texts in _typed(sent).items()
        if name.startswith(prefix) and texts
    }


def pointer_of(error: FieldError) -> str:
    """Where an error belongs, as a JSON pointer; empty for the whole form."""
    bare = error.pointer.removeprefix("/")
    return f"/{bare}" if bare else ""


class _Builder:
    """Draws values into fields, numbered in their order."""

    def __init__(
        self,
        session: Session,
        principal: Principal,
        definition: StoredDefinition,
        errors: Sequence[FieldError],
        searches: Mapping[str, str],
    ) -> None:
        self.session = session
        self.principal = principal
        self.definition = definition
        self.errors = [(pointer_of(error), error) for error in errors]
        self.searches = searches
        self.loose: list[FieldError] = []
        self.count = 0
        self.chosen: dict[str, str] = {}  # pointer of a union -> of its alternative

    def fields(self, values: Mapping[str, Any] | None) -> list[Field]:
        """The fields of the whole input."""
        top = self._object(_shape(self.definition), "", values)
        self._place(top)
        return top

    def _object(self, shape: Shape, at: str, values: Any) -> list[Field]:
        """The parts of an object; without values each stands at its default."""
        made = []
        for part in shape.parts:
            if part.kind == "fixed" or self._is_paging(part):
                continue
            if values is None:
                value = part.schema.get("default")
            else:
                value = values.get(part.name) if isinstance(values, Mapping) else None
            made.append(self._field(part, f"{at}/{_escaped(part.name)}", value))
        return made

    def _is_paging(self, part: Shape) -> bool:
        """Whether it says where a page of a list begins, which the page's own links do."""
        return part.name == "cursor" and not self.definition.writes

    def _field(self, shape: Shape, pointer: str, value: Any, label: str = "") -> Field:
        self.count += 1
        made = Field(
            shape,
            pointer,
            f"field-{self.count}",
            label or self._label(shape),
            self._hint(shape),
        )
        match shape.kind:
            case "object":
                made.parts = self._object(shape, pointer, value)
            case "list":
                made.parts = self._rows(shape, pointer, value)
            case "variant":
                self._alternatives(made, value)
            case "secret":
                pass
            case "json" if self._holds_secret(pointer):
                pass
            case "choices":
                given = value if isinstance(value, list | tuple) else ()
                made.chosen = tuple(map(schema_text.option, given))
            case "boolean":
                made.text = "true" if value is True or value == "true" else ""
            case _:
                made.text = schema_text.write(shape, value)
                made.may_be_emptied = shape.may_be_empty and isinstance(value, str)
        made.options = _options(shape)
        if shape.kind == "record":
            made.offered = self._offered(shape, pointer, made.text)
        return made

    def _holds_secret(self, pointer: str) -> bool:
        """Whether a part that is written as JSON is secret, or has something secret in it."""
        parts = pointer.removeprefix("/").split("/")
        at = "/".join("*" if part.isdigit() else part for part in parts)
        return any(f"{secret}/".startswith(f"{at}/") for secret in self.definition.secrets)

    def _rows(self, shape: Shape, pointer: str, value: Any) -> list[Field]:
        item = shape.item
        given = list(value) if isinstance(value, list | tuple) else []
        while item and len(given) < max(shape.schema.get("minItems", 0), shape.is_required):
            given.append(None)
        return [
            self._field(item, f"{pointer}/{place}", row, f"{self._label(shape)} {place + 1}")
            for place, row in enumerate(given)
            if item
        ]

    def _alternatives(self, made: Field, value: Any) -> None:
        shape = made.shape
        given = value if isinstance(value, Mapping) else {}
        made.text = str(given.get(shape.tag, ""))
        for tag, variant in shape.variants.items():
            inside = given if tag == made.text else None
            at = f"{made.pointer}/{_escaped(tag)}"
            if inside is not None:
                self.chosen[made.pointer] = at
            made.parts.append(self._field(variant, at, inside, gettext(said_name(tag))))

    def _offered(self, shape: Shape, pointer: str, chosen: str) -> Offered:
        return record_choices.offered(
            self.session,
            self.principal,
            self.definition,
            shape.record,
            is_target=shape.name == "targetRecordId",
            search=self.searches.get(pointer, ""),
            chosen=chosen,
        )

    def _label(self, shape: Shape) -> str:
        """What people call a value: by the schema, by the record type, else by its name."""
        if title := shape.schema.get("title"):
            return gettext(str(title))
        model = registry.record_types().get(self.definition.record or "")
        if model and shape.name == "targetRecordId":
            return record_name(model.RECORD)
        own = snake(shape.name)
        column = self.definition.map.get(own, own)
        if model and column in {**model.FIELDS, **model.COMMON_FIELDS}:
            return gettext(field_name(model, column))
        return label_of(shape.name)

    def _hint(self, shape: Shape) -> str:
        """What the schema says about the value, where it holds for what is typed here."""
        if shape.kind == "money":
            return gettext("An amount with decimals, such as 3420.00.")
        described = str(shape.schema.get("description", ""))
        if shape.kind == "record" and ID.search(described):
            return ""  # a name is chosen here, and not an id
        return gettext(described) if described else ""

    def _place(self, top: list[Field]) -> None:
        """Lay each error at its field, or at the nearest one around it."""
        all_fields = {each.pointer: each for field in top for each in field.all()}
        said: dict[str, list[str]] = {}
        for pointer, error in self.errors:
            for union, chosen in self.chosen.items():
                if pointer.startswith(f"{union}/") and not pointer.startswith(f"{chosen}/"):
                    pointer = chosen + pointer.removeprefix(union)
            place = _nearest(pointer, all_fields)
            if place is None:
                self.loose.append(error)
            else:
                said.setdefault(place, []).append(_sentence(all_fields[place], error))
        for place, sentences in said.items():
            all_fields[place].error = " ".join(dict.fromkeys(sentences))


class _Reading:
    """Reads the controls of a form into values."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed
        self.emptied = set(typed.get(EMPTIED, ()))
        self.is_redrawn = ROWS in typed  # then rows that are still blank stay
        self.known: set[str] = set()  # names that belong to the form

    def object(self, shape: Shape, at: str) -> dict[str, Any]:
        """The parts that say something."""
        read = {}
        for part in shape.parts:
            value = self.value(part, f"{at}/{_escaped(part.name)}")
            if value is not NOTHING:
                read[part.name] = value
        return read

    def value(self, shape: Shape, at: str) -> Any:
        """What stands at a pointer; NOTHING where it was left blank."""
        match shape.kind:
            case "fixed":
                schema = shape.schema
                return schema["const"] if "const" in schema else schema["enum"][0]
            case "boolean":
                return bool(self._text(at))
            case "object":
                read = self.object(shape, at)
                return read if shape.is_required or _says_something(read) else NOTHING
            case "list":
                return self._rows(shape, at)
            case "variant":
                return self._alternative(shape, at)
            case "choices":
                chosen = [schema_text.read(shape, text) for text in self._texts(at) if text]
                return chosen or ([] if shape.is_required else NOTHING)
            case _:
                return self._scalar(shape, at)

    def _scalar(self, shape: Shape, at: str) -> Any:
        text = self._text(at)
        if text.strip():
            return schema_text.read(shape, text)
        return "" if at in self.emptied and shape.may_be_empty else NOTHING

    def _rows(self, shape: Shape, at: str) -> Any:
        prefix = f"{at}/"
        places = {
            int(place)
            for name in self.typed
            if name.startswith(prefix)
            and (place := name.removeprefix(prefix).partition("/")[0]).isdecimal()
            and len(place) < 6
        }
        read = []
        self.known |= {f"{at}/{number}" for number in places}
        for number in sorted(places):
            value = self.value(shape.item, f"{at}/{number}") if shape.item else NOTHING
            if self.is_redrawn or (value is not NOTHING and _says_something(value)):
                read.append(None if value is NOTHING else value)
        return read if read or shape.is_required else NOTHING

    def _alternative(self, shape: Shape, at: str) -> Any:
        tag = self._text(f"{at}/{_escaped(shape.tag)}")
        variant = shape.variants.get(tag)
        self.known |= {name for name in self.typed if name.startswith(f"{at}/")}
        if variant is None:
            return NOTHING
        return {**self.object(variant, f"{at}/{_escaped(tag)}"), shape.tag: tag}

    def _text(self, at: str) -> str:
        texts = self._texts(at)
        return texts[-1] if texts else ""

    def _texts(self, at: str) -> Sequence[str]:
        self.known.add(at)
        return self.typed.get(at, ())


def _shape(definition: StoredDefinition) -> Shape:
    target = definition.record or ""
    family = target.partition(".")[0] or definition.code.partition(".")[0]

    def record_of(name: str) -> str:
        """By its name: the target, a record of the family (`fromLocationId`), or `userId`."""
        if name == "targetRecordId":
            return target
        words = snake(name).split("_")
        if len(words) < 2 or words.pop() != "id":
            return ""
        known = {*registry.record_types(), *record_choices.IDENTITY}
        ends = ["_".join(words[start:]) for start in range(len(words))]
        asked = [f"{whose}.{end}" for whose in (family, "identity") for end in ends]
        return next((each for each in asked if each in known), "")

    return shape_of(definition.input_schema, record_of)


def _begun(
    session: Session, principal: Principal, definition: StoredDefinition, target: str
) -> dict[str, Any]:
    """The defaults, the target, and of an update what the target's columns hold now."""
    properties: Mapping[str, Any] = definition.input_schema.get("properties", {})
    values = {name: part["default"] for name, part in properties.items() if "default" in part}
    model = registry.record_types().get(definition.record or "")
    if model is None:
        return values
    reached = scope.within(principal, definition.permission, model)
    row = session.exec(select(model).where(reached, col(model.id) == target)).first()
    if row is None:
        return values
    if definition.operation is Operation.UPDATE:
        columns = {name: definition.map.get(snake(name)) for name in properties}
        values |= {name: getattr(row, column) for name, column in columns.items() if column}
    return {**values, "targetRecordId": target}


def record_name(record: str) -> str:
    """What people call one record of a type, in the reader's language."""
    model = registry.record_types().get(record)
    names = model.NAMES if model else {}
    return names.get(language()) or names.get("en") or said_name(record.rpartition(".")[2])


def _typed(sent: Sent) -> Typed:
    if not isinstance(sent, FormData):
        return sent
    typed: dict[str, list[str]] = {}
    for name, value in sent.multi_items():
        if isinstance(value, str):
            typed.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return typed


def _rearrange(values: dict[str, Any], pressed: str) -> None:
    """Do what a button of a list says; one that names no list of the form does nothing."""
    act, _, pointer = pressed.partition(":")
    path = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    place = None if act == "add" else path.pop() if path else ""
    around: Any = values
    for step in path[:-1]:
        around = _inside(around, step)
    if not isinstance(around, dict) or not path:
        return
    rows = around.setdefault(path[-1], []) if act == "add" else around.get(path[-1])
    if not isinstance(rows, list):
        return
    if place is None:
        rows.append(None)
    elif place.isdecimal() and int(place) < len(rows):
        _move(rows, int(place), act)


def _move(rows: list[Any], place: int, act: str) -> None:
    if act == "remove":
        del rows[place]
    elif act in {"up", "down"}:
        to = max(0, place - 1) if act == "up" else min(len(rows) - 1, place + 1)
        rows.insert(to, rows.pop(place))


def _inside(around: Any, step: str) -> Any:
    if isinstance(around, dict):
        return around.get(step)
    if isinstance(around, list) and step.isdecimal() and int(step) < len(around):
        return around[int(step)]
    return None


def _says_something(value: Any) -> bool:
    match value:
        case dict():
            return any(map(_says_something, value.values()))
        case list():
            return any(map(_says_something, value))
        case _:
            return value not in (None, "", False)


def _options(shape: Shape) -> tuple[Option, ...]:
    if shape.kind == "variant":
        return tuple(Option(tag, gettext(said_name(tag))) for tag in shape.variants)
    if shape.kind not in {"choice", "choices"}:
        return ()
    said = (Option(schema_text.option(each), _said(each)) for each in shape.choices)
    return tuple(option for option in said if option.value)


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return gettext("Yes") if value else gettext("No")
    is_word = isinstance(value, str) and not value.isupper()  # `CNY` stays what it is
    return gettext(said_name(value)) if is_word and value else str(value)


def _sentence(field: Field, error: FieldError) -> str:
    """What is wrong; of a text that is no value of its kind, how to write one."""
    if field.kind in schema_text.EXPECTED and field.text:
        is_read = schema_text.read(field.shape, field.text) != field.text
        if not is_read and not isinstance(field.text, int):
            return gettext(schema_text.EXPECTED[field.kind])
    return words.of(error)


def _nearest(pointer: str, known: Any) -> str | None:
    """The longest of the `known` pointers at or around `pointer`."""
    while pointer:
        if pointer in known:
            return pointer
        pointer = pointer.rpartition("/")[0]
    return None


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
