"""Fills a command's input from a sentence, by its schema; what is not said stays missing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from app.commands.descriptors import Descriptor
from app.identity.search import fold
from app.kernel import i18n
from app.kernel.i18n import LANGUAGES
from app.runs.models.planner import kin
from app.runs.models.planner.slots import amounts, codes, dates, numbers, schema, texts
from app.runs.models.planner.slots.said import Said
from app.runs.models.planner.slots.schema import Field, Kind

AMBIGUOUS_DAY, SEVERAL, TOO_EXACT, NO_SIGN, UNFIT = "ambiguous", "several", "exact", "sign", "unfit"
_LONG = texts.REASONS | texts.MESSAGES  # fields whose texts have commas
_YES = re.compile(r"(?:y|yes|true|on|是|对|要|需要)")
_NO = re.compile(r"(?:n|no|false|off|否|不|不是|不要)")
_EMAIL = re.compile(r"[^@\s,，;；<>]+@[^@\s,，;；<>]+\.[a-z]{2,}", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"(?:\b(from|to|into|at|in|of)|([从由自到至往在]))\s*(?:the\s+)?(?:[a-z]+\s+)?$"
)


@dataclass(slots=True)
class Named:
    """A code or an id by which the sentence names a record, and the word that stood before it."""

    text: str
    before: str = ""
    is_id: bool = False
    is_bare: bool = False


@dataclass(slots=True)
class Filled:
    """What a sentence says of an input.

    Attributes:
        problems: field -> why what was said of it does not do.
        named: codes of records, not looked up yet.
        words: what is left of the sentence, to look for a record by.
        said_currency: of the amount that was taken.
    """

    values: dict[str, Any] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    named: list[Named] = field(default_factory=list)
    month: str | None = None
    day: date | None = None
    words: str = ""
    said_currency: str | None = None

    def missing(self, command: Descriptor) -> list[Field]:
        """Required fields without a value, references and targets aside."""
        return [
            each
            for each in schema.fields(command)
            if each.name not in self.values
            and each.kind not in {Kind.TARGET, Kind.REFERENCE}
            and (each.is_required or each.name in self.problems)
        ]


def fill(command: Descriptor, text: str, today: date) -> Filled:
    """Every value the sentence names."""
    filling = _Filling(command, Said(text), today)
    return filling.run()


def answer(command: Descriptor, wanted: Sequence[str], text: str, today: date) -> Filled:
    """The values of an answer to a question about the fields `wanted`."""
    filling = _Filling(command, Said(text), today, only=frozenset(wanted))
    filled = filling.run()
    if len(wanted) == 1 and wanted[0] not in filled.values and wanted[0] not in filled.problems:
        only = next((each for each in filling.fields if each.name == wanted[0]), None)
        if only is not None and only.kind in {Kind.TEXT, Kind.SEARCH}:
            filled.values[only.name] = texts.trimmed(text)
        elif only is not None and only.kind is Kind.CODE:
            filled.values[only.name] = texts.trimmed(text).upper()
    return filled


class _Filling:
    """One sentence and one command."""

    def __init__(
        self, command: Descriptor, said: Said, today: date, only: frozenset[str] | None = None
    ) -> None:
        self.command, self.said, self.today = command, said, today
        self.is_answer = only is not None
        self.fields = [
            each
            for each in schema.fields(command)
            if only is None or each.name in only or each.kind is Kind.FIXED
        ]
        self.filled = Filled()

    def run(self) -> Filled:
        """Take the values out, the surest first."""
        self._fixed()
        self._by_name()
        self._named()
        self._quoted()
        self._calendar()
        self._amounts()
        self._introduced()
        self._choices()
        self._currency()
        self._numbers()
        self._texts()
        return self.filled

    def _open(self, *kinds: Kind, required: bool | None = None) -> list[Field]:
        return [
            each
            for each in self.fields
            if each.kind in kinds
            and each.name not in self.filled.values
            and (required is None or each.is_required is required)
        ]

    def _fixed(self) -> None:
        for each in self._open(Kind.FIXED, required=True):
            values = each.schema.get("enum") or [each.schema.get("const")]
            self.filled.values[each.name] = values[0]

    def _by_name(self) -> None:
        """`key: value`, by the field's name or by what people call it."""
        for each in self.fields:
            if each.kind in {Kind.FIXED, Kind.TARGET, Kind.OTHER}:
                continue
            names = "|".join(sorted(map(re.escape, self._names(each)), key=len, reverse=True))
            ends = r"[^;；\n]+" if each.name in _LONG else r"[^,，;；\n]+"
            pattern = re.compile(rf"(?<![a-z0-9])(?:{names})\s*[:：=]\s*({ends})")
            for match in self.said.find(pattern):
                raw = texts.trimmed(self.said.text[slice(*match.span(1))])
                if self._take(each, raw):
                    self.said.take(match)
                break

    def _names(self, each: Field) -> set[str]:
        names = {fold(each.name), schema.words(each.name), fold(str(each.schema.get("title", "")))}
        for tag in LANGUAGES:
            with i18n.speaking(tag):
                names.add(fold(schema.label(self.command, each.name)))
        return names - {""}

    def _take(self, each: Field, raw: str) -> bool:
        """The value of one field from the text that stands for it alone."""
        match each.kind:
            case Kind.TEXT | Kind.SEARCH:
                self.filled.values[each.name] = raw.strip("\"'“”「」")
            case Kind.CODE:
                self.filled.values[each.name] = raw.strip("\"'“”「」")
            case Kind.REFERENCE:
                is_id = bool(codes.ULID.fullmatch(raw))
                self.filled.named.append(Named(raw, before=f"={each.name}", is_id=is_id))
            case Kind.BOOLEAN:
                return self._boolean(each, fold(raw))
            case _:
                inner = _Filling(self.command, Said(raw), self.today, only=frozenset({each.name}))
                inner.filled.values = {}
                for step in (
                    inner._amounts,
                    inner._calendar,
                    inner._choices,
                    inner._currency,
                    inner._numbers,
                ):
                    step()
                if each.name not in inner.filled.values:
                    return False
                self.filled.values[each.name] = inner.filled.values[each.name]
        return True

    def _boolean(self, each: Field, raw: str) -> bool:
        if _YES.fullmatch(raw):
            self.filled.values[each.name] = True
        elif _NO.fullmatch(raw):
            self.filled.values[each.name] = False
        return each.name in self.filled.values

    def _named(self) -> None:
        """Codes fill fields that are codes themselves in a command that begins something."""
        for text, match in list(codes.ids(self.said)):
            self.filled.named.append(Named(text, self._before(match), is_id=True))
            self.said.take(match)
        for match in list(self.said.find(_EMAIL)):
            for each in self._open(Kind.CODE):
                if "mail" in each.name.lower():
                    self.filled.values[each.name] = self.said.text[slice(*match.span())]
                    self.said.take(match)
                    break
        wants = (
            self._open(Kind.CODE, required=True)
            if self.command.definition.operation == "create"
            else []
        )
        for text, match in list(codes.codes(self.said)):
            if wants and text not in self._taken_codes():
                self.filled.values[wants.pop(0).name] = text
            else:
                self.filled.named.append(Named(text, self._before(match)))
            self.said.take(match)
        if not wants and not self.filled.named and not self.is_answer:
            return

    def _taken_codes(self) -> set[str]:
        return {str(value) for value in self.filled.values.values()}

    def _before(self, match: re.Match[str]) -> str:
        found = _PREPOSITION.search(self.said.folded[: match.start()])
        return (found[1] or found[2]) if found else ""

    def _quoted(self) -> None:
        for text, match in list(texts.quoted(self.said)):
            wants = (
                self._open(Kind.TEXT, required=True)
                or self._open(Kind.SEARCH)
                or self._open(Kind.TEXT)
            )
            if wants:
                self.filled.values[wants[0].name] = text
                self.said.take(match)

    def _amounts(self) -> None:
        found = list(amounts.amounts(self.said))
        wants = self._open(Kind.AMOUNT)
        if wants and not found:
            counts = self._open(Kind.INTEGER, required=True)
            is_bare = self.is_answer and not counts
            found = list(amounts.plain(self.said, decimals_only=not is_bare))[:1]
        if not wants:
            for each in found:
                self.said.take(each.match)
            return
        if len(found) > len(wants):
            self.filled.problems[wants[0].name] = SEVERAL
            return
        for each, want in zip(found, wants, strict=False):
            self.said.take(each.match)
            self.filled.said_currency = each.currency
            if (minor := each.minor) is None:
                self.filled.problems[want.name] = TOO_EXACT
            else:
                self.filled.values[want.name] = minor

    def _calendar(self) -> None:
        days = list(dates.days(self.said, self.today))
        for each in days:
            self.said.take(each.match)
        months = list(dates.months(self.said, self.today))
        for month in months:
            self.said.take(month.match, is_soft=True)
        wants = self._open(Kind.DAY)
        if wants and days:
            if days[0].value is None:
                self.filled.problems[wants[0].name] = AMBIGUOUS_DAY
            elif len(days) > len(wants):
                self.filled.problems[wants[0].name] = SEVERAL
            else:
                self.filled.values[wants[0].name] = days[0].value.isoformat()
        self.filled.day = days[0].value if days else None
        self._months([each.value for each in months])

    def _months(self, found: list[str]) -> None:
        self.filled.month = found[0] if found else None
        if not found and self.filled.day is not None and not self._open(Kind.DAY):
            found = [self.filled.day.isoformat()[:7]]
        for want, value in zip(self._open(Kind.MONTH), found, strict=False):
            if (
                self.command.definition.targeted
                and not want.is_required
                and not self._is_changing(want)
            ):
                continue  # it tells which record, not what shall stand in it
            self.filled.values[want.name] = value

    def _is_changing(self, want: Field) -> bool:
        names = self._names(want)
        return any(name in self.said.folded for name in names)

    def _choices(self) -> None:
        folded = self.said.folded
        for each in self._open(Kind.CHOICE):
            exact = [
                value
                for value in each.choices
                if re.search(rf"(?<![a-z]){re.escape(fold(value))}(?![a-z])", folded)
            ]
            found = exact or [value for value in each.choices if kin.is_meant(value, folded)]
            if len(found) == 1:
                self.filled.values[each.name] = found[0]
            elif len(found) > 1 and each.is_required:
                self.filled.problems[each.name] = SEVERAL
        for each in self._open(Kind.BOOLEAN):
            if all(kin.is_meant(word, folded) for word in schema.words(each.name).split()):
                self.filled.values[each.name] = True
            elif self.is_answer:
                self._boolean(each, texts.trimmed(folded))

    def _currency(self) -> None:
        wants = self._open(Kind.CURRENCY)
        named = self.filled.said_currency or amounts.currency(self.said)
        if not wants or named is None:
            return
        allowed = wants[0].choices
        if allowed and named not in allowed:
            self.filled.problems[wants[0].name] = UNFIT
        else:
            self.filled.values[wants[0].name] = named

    def _numbers(self) -> None:
        wants = self._open(Kind.INTEGER, required=True) or [
            each
            for each in self._open(Kind.INTEGER)
            if each.name not in schema.PAGING and self.is_answer
        ]
        wants += [
            each
            for each in self._open(Kind.AMOUNT, required=True)
            if each.name not in self.filled.problems
        ]
        found = list(numbers.numbers(self.said))
        if not wants or not found:
            self._bare_targets()
            return
        if len(found) > len(wants):
            self.filled.problems[wants[0].name] = SEVERAL
            return
        for (value, match), want in zip(found, wants, strict=False):
            self.said.take(match)
            self._number(want, value, match[0].strip())

    def _number(self, want: Field, value: int, raw: str) -> None:
        if want.kind is Kind.AMOUNT:
            value *= 10**amounts.HUNDREDTHS
        elif int(want.schema.get("minimum", 0)) < 0 and raw[0] not in "+-":
            sign = numbers.sign(self.said.folded)
            if not sign:
                self.filled.problems[want.name] = NO_SIGN
                return
            value *= sign
        self.filled.values[want.name] = value

    def _bare_targets(self) -> None:
        """Where nothing is counted, plain numbers name records: "approve 12 and 13"."""
        if self.filled.named or not self.command.definition.targeted or self.is_answer:
            return
        for text, match in list(codes.bare(self.said)):
            self.filled.named.append(Named(text, is_bare=True))
            self.said.take(match)

    def _introduced(self) -> None:
        for each in self._open(Kind.TEXT):
            found = texts.introduced(self.said, each.name)
            if found is not None and not self._is_name(found):
                self.filled.values[each.name] = found
                begin = self.said.text.index(found)
                self.said.taken.append((begin, begin + len(found)))

    def _texts(self) -> None:
        self.filled.words = texts.left(self.said, self._own_names())
        wants = self._open(Kind.TEXT, required=True)
        if len(wants) == 1 and not self.is_answer:
            told = texts.tail(self.said) if wants[0].name in texts.REASONS else None
            if told or (self.filled.words and wants[0].name not in texts.REASONS):
                self.filled.values[wants[0].name] = told or self.filled.words
                self.filled.words = ""
        if any(self.filled.words in str(value) for value in self.filled.values.values()):
            self.filled.words = ""  # it fills a field, and names no record besides

    def _is_name(self, found: str) -> bool:
        """Whether it only says what the command is about: "for the report"."""
        return not texts.left(Said(found), self._own_names())

    def _own_names(self) -> tuple[str, ...]:
        return schema.names_of(self.command)
