"""What a JSON Schema has to say about an input, as errors at fields, in words people can use."""

from typing import Any

import jsonschema_rs

from app.kernel.errors import FieldError
from app.kernel.i18n import N_

MOST = 20  # errors that are told at once
Kind = jsonschema_rs.ValidationErrorKind

_TYPES = {
    "string": N_("Send a text."),
    "integer": N_("Send a whole number."),
    "number": N_("Send a number."),
    "boolean": N_("Send true or false."),
    "array": N_("Send a list."),
    "object": N_("Send an object."),
    "null": N_("Send null."),
}
REQUIRED, UNKNOWN = N_("Fill this in."), N_("There is no such field.")


def of(validator: Any, value: Any) -> list[FieldError]:
    """The errors of `value`, at most twenty; `facts["expected"]` says what would have done."""
    found: list[FieldError] = []
    for error in validator.iter_errors(value):
        found += _read(error)
        if len(found) >= MOST:
            break
    return found[:MOST]


def _read(error: Any) -> list[FieldError]:
    kind, place = error.kind, "/".join(map(str, error.instance_path))
    match kind:
        case Kind.Required():
            name = kind.property
            return [FieldError(_below(place, name), REQUIRED, {"expected": "a value"})]
        case Kind.AdditionalProperties():
            return [
                FieldError(_below(place, name), UNKNOWN, {"expected": "no such field"})
                for name in kind.unexpected
            ]
    return [FieldError(place, *_words(kind))]


def _words(kind: Any) -> tuple[str, dict[str, Any]]:
    match kind:
        case Kind.Type():
            wanted = [str(each) for each in getattr(kind, "types", [])]
            says = (
                _TYPES.get(wanted[0], N_("This has another type."))
                if wanted
                else N_("This has another type.")
            )
            return says, {"expected": " or ".join(wanted) or "another type"}
        case Kind.Enum() | Kind.Constant():
            options = getattr(kind, "options", None) or [getattr(kind, "expected_value", None)]
            return N_("Choose one of: %(expected)s."), {"expected": ", ".join(map(str, options))}
        case Kind.MaxLength():
            return N_("At most %(expected)s characters."), {"expected": kind.limit}
        case Kind.MinLength():
            return N_("At least %(expected)s characters."), {"expected": kind.limit}
        case Kind.Maximum():
            return N_("At most %(expected)s."), {"expected": kind.limit}
        case Kind.Minimum():
            return N_("At least %(expected)s."), {"expected": kind.limit}
        case Kind.ExclusiveMinimum():
            return N_("More than %(expected)s."), {"expected": kind.limit}
        case Kind.ExclusiveMaximum():
            return N_("Less than %(expected)s."), {"expected": kind.limit}
        case Kind.MaxItems():
            return N_("At most %(expected)s entries."), {"expected": kind.limit}
        case Kind.MinItems():
            return N_("At least %(expected)s entries."), {"expected": kind.limit}
        case Kind.Pattern():
            return N_("This does not have the form %(expected)s."), {"expected": kind.pattern}
        case Kind.Format():
            return N_("This is no %(expected)s."), {"expected": kind.format}
    return N_("This does not do."), {"expected": type(kind).__name__}


def _below(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name
