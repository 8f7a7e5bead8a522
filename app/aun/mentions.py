"""Mentions: whom a message to a group means, as structured data beside its text (aun.md, 6.4).

Receivers never look for "@" in a text; whoever writes it down says whom it stands for. That is
done here, when a person or an agent sends.
"""

from collections.abc import Mapping
from typing import Any

from app.aun.identities import Named

EVERYBODY = ("all", "everyone", "所有人", "全体成员")


def found(text: str, parties: Mapping[str, Named]) -> list[dict[str, Any]]:
    """The parties that `text` names after an "@", the longest name first; `all` for everybody."""
    wanted: list[dict[str, Any]] = []
    rest = text
    named = sorted(parties.items(), key=lambda each: -len(each[1].name))
    for aid, each in named:
        at = f"@{each.name}"
        if at in rest:
            place = text.index(at)
            wanted.append({"aid": aid, "display": each.name, "offset": place, "length": len(at)})
            rest = rest.replace(at, " ")
    if any(f"@{word}" in rest for word in EVERYBODY):
        wanted.append({"scope": "all"})
    return wanted
