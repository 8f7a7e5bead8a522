"""The settings of a group: those that are columns of it, and documents its clients keep there."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from app.aun import names
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.group_models import Group, JoinMode, MentionMode, Visibility
from app.aun.groups import changes, patterns
from app.aun.groups.refusals import IndexMoved
from app.aun.groups.told import ms
from app.kernel import clock, json
from app.kernel.db import Work

INDEX = "group.index"
MENTION, LEGACY_MENTION = "mention_mode", "dispatch_mode"
MODES = {
    "disabled": MentionMode.DISABLED,
    "broadcast": MentionMode.DISABLED,
    "mention-only": MentionMode.MENTION_ONLY,
    "mention": MentionMode.MENTION_ONLY,
}
DOCUMENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\.(content|attachments)")
LONGEST_TEXT = 64_000  # characters of a document
LONGEST_INDEX = 256_000  # bytes as JSON
MOST_DOCUMENTS = 100
MOST_PENDING = 100
DEFAULTS: Mapping[str, Any] = {
    "rules.content": "",
    "announcement.content": "",
    "join.question": "",
    "join.auto_approve_patterns": [],
    "join.max_pending": MOST_PENDING,
}
# what a change is called, by the first of these that is among the keys
ACTIONS = {"announcement.content": "announcement_updated", "rules.content": "rules_updated"}


def value(group: Group, key: str) -> Any:
    """What a setting is now."""
    if key in _COLUMNS:
        return getattr(group, _COLUMNS[key])
    kept = group.settings.get(key)
    return kept["value"] if kept else DEFAULTS.get(key)


def listed(group: Group, keys: Iterable[str] | None) -> list[dict[str, Any]]:
    """Settings as clients read them; all that are set, or have a default, where none are named."""
    if keys is None:
        keys = dict.fromkeys([*_COLUMNS, *DEFAULTS, *sorted(group.settings)])
    canonical = dict.fromkeys(_canonical(key) for key in keys)
    return [_item(group, key) for key in canonical if _is_there(group, key)]


def write(
    work: Work,
    caller: Caller,
    group: Group,
    given: Mapping[str, Any],
    expected_etag: str | None = None,
) -> list[str]:
    """Change settings of a group whose row is locked; returns the keys that were given.

    Raises:
        BadParams: a key or a value will not do.
        IndexMoved: the index of the settings is not the one this builds on.
    """
    checked = understood(given)
    if INDEX in checked and expected_etag is not None:
        _need_index(group, expected_etag)
    documents = dict(group.settings)
    for key, new in checked.items():
        if key in _COLUMNS:
            setattr(group, _COLUMNS[key], new)
        else:
            documents[key] = {
                "value": new,
                "updated_by": caller.aid,
                "updated_at": ms(clock.now()),
            }
    if len(documents) > MOST_DOCUMENTS:
        raise BadParams("too many settings")
    group.settings = documents
    action = next((ACTIONS[key] for key in ACTIONS if key in checked), "settings_updated")
    changes.note(work, caller, group, action, updated_keys=sorted(checked))
    return list(checked)


def understood(given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the names we keep, with values that will do.

    Raises:
        BadParams: a key or a value will not do.
    """
    checked: dict[str, Any] = {}
    for key, new in given.items():
        name = _canonical(key)
        if name in checked and key == LEGACY_MENTION:
            continue  # the new name wins over the old one
        checked[name] = _checked(name, new)
    return checked


def index_etag(group: Group) -> str:
    """The etag of the index a client signed last; empty where there is none."""
    body = (value(group, INDEX) or {}).get("body", "")
    try:
        first = json.loads(str(body).partition("\n")[0].encode())
    except json.BadJSON:
        return ""
    return str(first.get("etag", "")) if isinstance(first, dict) else ""


def index_meta(group: Group) -> dict[str, Any]:
    """What `_meta` of an answer says of the index; empty where there is none."""
    kept = group.settings.get(INDEX)
    if kept is None:
        return {}
    told = {"etag": index_etag(group), "last_modified": kept["updated_at"]}
    return {"_meta": {"group_indexes": {group.id: told | {"schema": "aun.group.index.v1"}}}}


def _canonical(key: str) -> str:
    return MENTION if key == LEGACY_MENTION else key


def _is_there(group: Group, key: str) -> bool:
    return key in _COLUMNS or key in DEFAULTS or key in group.settings


def _item(group: Group, key: str) -> dict[str, Any]:
    kept = group.settings.get(key, {})
    return {
        "key": key,
        "value": value(group, key),
        "updated_by": kept.get("updated_by", ""),
        "updated_at": kept.get("updated_at", ms(group.updated_at) if key in _COLUMNS else 0),
    }


def _need_index(group: Group, expected: str) -> None:
    if index_etag(group) != expected:
        raise IndexMoved


def _checked(key: str, new: Any) -> Any:
    check = _CHECKS.get(key)
    if check is None:
        found = DOCUMENT.fullmatch(key)
        if found is None:
            raise BadParams(f"unknown setting: {key[:80]}")
        check = _text(LONGEST_TEXT) if found[1] == "content" else _attachments
    try:
        return check(new)
    except ValueError as fault:
        raise BadParams(f"invalid setting {key[:80]}: {fault}") from fault


def _text(longest: int, shortest: int = 0) -> Callable[[Any], str]:
    def check(new: Any) -> str:
        if not isinstance(new, str) or not shortest <= len(new.strip()) or len(new) > longest:
            raise ValueError(f"a text of {shortest} to {longest} characters")
        return new

    return check


def _name(new: Any) -> str:
    return names.shown(_text(200, 1)(new))


def _choice(choices: Mapping[str, Any]) -> Callable[[Any], Any]:
    def check(new: Any) -> Any:
        if not isinstance(new, str) or new not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return choices[new]

    return check


def _count(new: Any) -> int:
    if type(new) is not int or not 0 <= new <= MOST_PENDING:
        raise ValueError(f"a number from 0 to {MOST_PENDING}")
    return new


def _patterns(new: Any) -> list[str]:
    if not isinstance(new, list) or len(new) > patterns.MOST:
        raise ValueError(f"a list of at most {patterns.MOST} patterns")
    for each in new:
        if not isinstance(each, str):
            raise ValueError("a list of texts")  # noqa: TRY004 - of its words
        patterns.understood(each)
    return new


def _attachments(new: Any) -> list[Any]:
    if not isinstance(new, list) or len(json.dumps(new)) > LONGEST_TEXT:
        raise ValueError("a list of attachments")
    return new


def _index(new: Any) -> dict[str, Any]:
    if not isinstance(new, dict) or not isinstance(new.get("body"), str):
        raise ValueError("an object with a body")  # noqa: TRY004 - of its words
    if len(json.dumps(new)) > LONGEST_INDEX:
        raise ValueError("too large")
    return new


_COLUMNS = {
    "name": "name",
    "description": "description",
    "visibility": "visibility",
    "join.mode": "join_mode",
    MENTION: "mention_mode",
}
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "name": _name,
    "description": _text(2_000),
    "visibility": _choice({each.value: each for each in Visibility}),
    "join.mode": _choice({each.value: each for each in JoinMode}),
    "join.question": _text(500),
    "join.auto_approve_patterns": _patterns,
    "join.max_pending": _count,
    MENTION: _choice(MODES),
    INDEX: _index,
}
