"""Forms: what was typed, what is wrong with it, and in which words.

A page reads a form, tries, and shows the same page again with everything kept but the secrets:

    class NewUser(BaseModel):
        model_config = ConfigDict(extra="forbid")
        name: Annotated[str, Field(max_length=200)]
        password: SecretStr

    @router.get("/new")
    async def new(request: Request, person: Person) -> HTMLResponse:
        return render(request, "users/new.html", form=forms.blank(NewUser))

    @router.post("/new")
    async def create(request: Request, person: Person) -> Response:
        form = await forms.read(request, NewUser)
        if form.data:
            with form.catching():
                await db.transaction(add_user, person, form.data)
                return flash.see_other("/admin/users", ADDED)
        return render(request, "users/new.html", status_code=422, form=form)

`catching()` takes `Invalid` and lays each of its errors at its field; refusals it is told of
(`catching(LastOwner, at="role_id")`) become an error there, and every other one is a page of its
own. A field left blank, or in which there is nothing to see, counts as not sent: a required one is
then missing, an optional one has its default. A validator of a model says what it means in a marked
sentence: `raise ValueError(N_("The end comes before the start."))`.
"""

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, get_args

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic_core import ErrorDetails
from starlette.requests import Request

from app.console import words
from app.kernel import unseen
from app.kernel.errors import AppError, FieldError, Invalid
from app.kernel.i18n import N_

Model = TypeVar("Model", bound=BaseModel)

CSRF_FIELD = "_csrf"
SAYS = {
    "missing": N_("Fill this in."),
    "string_too_short": N_("Too short: at least %(min_length)s characters."),
    "string_too_long": N_("Too long: at most %(max_length)s characters."),
    "string_pattern_mismatch": N_("This does not have the form it needs."),
    "string_type": N_("Write some text here."),
    "string_unicode": N_("This holds a character that cannot be stored."),
    "too_short": N_("Choose at least %(min_length)s."),
    "too_long": N_("Choose at most %(max_length)s."),
    "enum": N_("Choose one of the offered values."),
    "literal_error": N_("Choose one of the offered values."),
    "bool_parsing": N_("Choose yes or no."),
    "bool_type": N_("Choose yes or no."),
    "int_parsing": N_("Write a whole number."),
    "int_from_float": N_("Write a whole number."),
    "int_parsing_size": N_("This number is too large."),
    "float_parsing": N_("Write a number."),
    "decimal_parsing": N_("Write a number."),
    "decimal_max_digits": N_("At most %(max_digits)s digits."),
    "decimal_max_places": N_("At most %(decimal_places)s decimal places."),
    "finite_number": N_("Write a number."),
    "greater_than": N_("This must be more than %(gt)s."),
    "greater_than_equal": N_("This must be %(ge)s or more."),
    "less_than": N_("This must be less than %(lt)s."),
    "less_than_equal": N_("This must be %(le)s or less."),
    "date_parsing": N_("Write a date, such as 2026-11-25."),
    "date_from_datetime_parsing": N_("Write a date, such as 2026-11-25."),
    "date_from_datetime_inexact": N_("Write a date, such as 2026-11-25."),
    "datetime_parsing": N_("Write a date and a time, such as 2026-11-25 14:02."),
    "datetime_from_date_parsing": N_("Write a date and a time, such as 2026-11-25 14:02."),
    "timezone_aware": N_("Write a date and a time with its zone."),
    "time_parsing": N_("Write a time, such as 14:02."),
    "url_parsing": N_("Write a full address, such as https://example.com/path."),
    "url_scheme": N_("The address must start with %(expected_schemes)s."),
    "url_too_long": N_("Too long: at most %(max_length)s characters."),
    "json_invalid": N_("This is not valid JSON."),
    "uuid_parsing": N_("This is not an id."),
    "extra_forbidden": N_("The form sent a field that does not belong to it. Reload the page."),
}
OTHERWISE = N_("This value does not do.")


class Form(Generic[Model]):
    """One form on its way round: typed values, errors, and `data` once it is sound."""

    def __init__(self, model: type[Model], typed: Mapping[str, list[str]]) -> None:
        self.model = model
        self.typed = dict(typed)
        self.data: Model | None = None
        self.errors: list[FieldError] = []
        self.labels: dict[str, str] = {}

    def label(self, name: str, label: str) -> str:
        """`label`, which the error summary then calls the field by."""
        self.labels[name] = label
        return label

    def value(self, name: str) -> str:
        """What stands in the field; nothing, if it is a secret."""
        values = self.values(name)
        return values[0] if values else ""

    def values(self, name: str) -> list[str]:
        """What stands in a field that may have several values."""
        return [] if self.is_secret(name) else self.typed.get(name, [])

    def error(self, name: str) -> str | None:
        """What is wrong with the field, in the reader's language."""
        said = dict.fromkeys(words.of(error) for error in self.errors if error.pointer == name)
        return " ".join(said) or None

    def summary(self) -> list[tuple[str, str, str]]:
        """All errors: id and label of the field (empty for one of the whole form), the sentence."""
        return [
            (dom_id(error.pointer), self.labels[error.pointer], words.of(error))
            if error.pointer in self.labels
            else ("", "", words.of(error))
            for error in self.errors
        ]

    def is_required(self, name: str) -> bool:
        """Whether leaving the field blank is an error."""
        field = self.model.model_fields.get(name)
        return field is not None and field.is_required()

    def is_secret(self, name: str) -> bool:
        """Whether the field is never written back into a page."""
        field = self.model.model_fields.get(name)
        return field is not None and SecretStr in _types_in(field.annotation)

    def add(self, refused: Invalid) -> None:
        """Lay the errors of `refused` at their fields; one without any is an error of the form."""
        self.errors += refused.errors or [FieldError("", refused.says, refused.facts)]

    def catching(self, *others: type[AppError], at: str = "") -> "_Catching":
        """A block in which `Invalid` becomes errors of this form, and `others` one at `at`."""
        return _Catching(self, others, at)

    def check(self) -> Self:
        """Validate what was typed: sets `data`, or `errors`."""
        if unfit := [name for name, values in self.typed.items() if "\0" in "".join(values)]:
            self.errors = [FieldError(name, SAYS["string_unicode"]) for name in unfit]
            return self
        try:
            self.data = self.model.model_validate(self._sent())
        except ValidationError as refused:
            self.errors = list(map(_field_error, refused.errors(include_url=False)))
        return self

    def _sent(self) -> dict[str, str | list[str]]:
        sent: dict[str, str | list[str]] = {}
        for name, values in self.typed.items():
            field = self.model.model_fields.get(name)
            if field is not None and _types_in(field.annotation) & {list, set, tuple, frozenset}:
                sent[name] = [value for value in values if value]
            elif values and unseen.is_seen(values[-1]):
                sent[name] = values[-1]
        return sent


class _Catching:
    def __init__(self, form: Form[Any], others: tuple[type[AppError], ...], at: str) -> None:
        self.form, self.others, self.at = form, others, at

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if isinstance(error, Invalid):
            self.form.add(error)
            return True
        if isinstance(error, self.others):
            self.form.errors.append(FieldError(self.at, error.says, error.facts))
            return True
        return False


async def read(request: Request, model: type[Model]) -> Form[Model]:
    """The form of this POST, checked."""
    sent = await request.form(max_files=0)  # files are for upload routes alone (SEC-48)
    typed: dict[str, list[str]] = {}
    for name, value in sent.multi_items():
        if name != CSRF_FIELD and isinstance(value, str):
            typed.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Form(model, typed).check()


def blank(model: type[Model], /, **values: object) -> Form[Model]:
    """A form nobody has sent yet, with `values` standing in its fields."""
    return Form(model, {name: _as_typed(value) for name, value in values.items()})


def dom_id(pointer: str) -> str:
    """The id of the element that holds a field: `field-<name>`."""
    return "field-" + pointer.replace("/", "-")


def _as_typed(value: object) -> list[str]:
    match value:
        case None | False:
            return []
        case True:
            return ["true"]
        case str():
            return [value]
        case Iterable():
            return [str(one) for one in value]
        case _:
            return [str(value)]


def _field_error(problem: ErrorDetails) -> FieldError:
    pointer = "/".join(map(str, problem["loc"]))
    context = dict(problem.get("ctx", {}))
    if problem["type"] == "value_error":
        return FieldError(pointer, str(context["error"]), {})
    kind = problem["type"]
    if kind in {"too_short", "too_long"} and isinstance(problem["input"], str):
        kind = f"string_{kind}"  # of a secret, pydantic counts items
    return FieldError(pointer, SAYS.get(kind, OTHERWISE), context)


def _types_in(annotation: Any) -> set[Any]:
    inner = get_args(annotation)
    found = {annotation, getattr(annotation, "__origin__", None)}
    return found.union(*map(_types_in, inner)) if inner else found
