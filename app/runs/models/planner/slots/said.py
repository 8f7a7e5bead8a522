"""A text from which values are taken out, one after the other; what is left is what nobody took."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.identity.search import fold


@dataclass(slots=True)
class Said:
    """A person's text and what of it is taken.

    Attributes:
        soft: where something begins that may be a part of a longer text: a month, a choice.
    """

    text: str
    taken: list[tuple[int, int]] = field(default_factory=list)
    soft: set[int] = field(default_factory=set)
    _folded: str = ""

    def __post_init__(self) -> None:
        folded = fold(self.text)
        self._folded = folded if len(folded) == len(self.text) else self.text.lower()

    @property
    def folded(self) -> str:
        """In lower case, place by place as the text."""
        return self._folded

    def find(self, pattern: re.Pattern[str], *, cased: bool = False) -> Iterator[re.Match[str]]:
        """What matches and is not taken yet; the pattern reads lower case unless it is `cased`."""
        for match in pattern.finditer(self.text if cased else self.folded):
            if self.is_free(*match.span()):
                yield match

    def is_free(self, begin: int, end: int) -> bool:
        """Whether nothing of this stretch is taken."""
        return all(end <= b or e <= begin for b, e in self.taken)

    def take(self, match: re.Match[str], group: int | str = 0, *, is_soft: bool = False) -> None:
        """Nobody else gets this."""
        self.taken.append(match.span(group))
        if is_soft:
            self.soft.add(match.start(group))

    def is_hard(self, place: int) -> bool:
        """Whether what begins here ends a longer text."""
        return place not in self.soft

    def rest(self) -> str:
        """The text without what is taken."""
        made, at = [], 0
        for begin, end in sorted(self.taken):
            made.append(self.text[at:begin])
            at = max(at, end)
        return "\n".join([*made, self.text[at:]])
