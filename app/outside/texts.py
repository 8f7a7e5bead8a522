"""Words that others wrote, made safe to read: what could hide in them is shown (SEC-68)."""

import unicodedata

from app.kernel import unseen

LONGEST = 2_000  # characters of a description
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
KEPT = frozenset("\n\t")
SEEN_AS_NOTHING = (unseen.BLANKS - {0x00A0}) | (unseen.SELECTORS - {0xFE0F})
REMEMBERED = 20_000  # letters


def shown(text: str, limit: int = LONGEST) -> str:
    """`text` with control, bidi, invisible and escape characters written out, cut at `limit`."""
    made = text[: limit + 1].translate(_letters)
    return made if len(made) <= limit else f"{made[: limit - 1]}…"


def is_plain(text: str) -> bool:
    """Whether nothing hides in `text`, which may have several lines."""
    parts = text.replace("\t", "\n").split("\n")
    return all(unseen.is_plain(part) for part in parts if part.strip(" "))


class _Letters(dict[int, str]):
    """Each letter as it is shown; what came once is known."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        is_hidden = letter not in KEPT and (
            unicodedata.category(letter) in HIDDEN or code in SEEN_AS_NOTHING
        )
        made = f"[U+{code:04X}]" if is_hidden else letter
        if len(self) < REMEMBERED:
            self[code] = made
        return made


_letters = _Letters()
