"""The image: pinned, small, without root, and it says whether it is well."""

import fnmatch
import json
import re
import shlex

from tests.sources import ROOT


def instructions() -> list[tuple[str, str]]:
    """Each instruction and what it says, lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", code)
    pairs = (line.partition(" ") for line in joined.splitlines() if line.strip())
    return [(word, rest) for word, _, rest in pairs]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    begin = max(number for number, (word, _) in enumerate(found) if word == "FROM")
    return found[begin:]


def test_its_bases_are_named_releases_and_one() -> None:
    bases = [rest.partition(" ")[0] for word, rest in instructions() if word == "FROM"]

    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", bases[0])


def test_it_runs_as_somebody_without_rights() -> None:
    [user] = [rest for word, rest in last_stage() if word == "USER"]

    assert user.isdigit()  # a cluster that refuses root has to see that it is not
    assert int(user) > 0
    assert ("VOLUME", "/data") in last_stage()


def test_it_installs_by_hash_and_only_what_users_need() -> None:
    [install] = [rest for word, rest in instructions() if word == "RUN" and "pip install" in rest]

    assert "--require-hashes" in install
    assert "requirements.lock" in install


def test_it_says_whether_it_is_ready() -> None:
    [check] = [rest for word, rest in last_stage() if word == "HEALTHCHECK"]
    command = json.loads(check[check.index("[") :])

    assert "/readyz" in command[-1]
    compile(command[-1], "HEALTHCHECK", "exec")


def test_what_it_copies_is_there_and_reaches_it() -> None:
    allowed = [
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    ]
    copied = [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in shlex.split(rest)[:-1]
    ]

    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert [name for name in copied if not fnmatch.filter(allowed, name)] == []
