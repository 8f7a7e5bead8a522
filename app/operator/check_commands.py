"""Say of every command whether it may be published, and what its author should look at.

What packs declare is checked without a database; what is in force in each tenant, with one. Exit
status 1 where there are errors. `--ask` asks the model of agents instead, and nothing is done: for
every command by its name and example, or for the TEXT of a user. Exit status 1 where it would call
a command that nobody asked for, or none.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select

from app.commands import publishing, readiness
from app.commands.readiness import Finding, Known
from app.commands.stored import StoredDefinition
from app.identity.models import Tenant
from app.kernel import db
from app.kernel.i18n import DEFAULT, LANGUAGES
from app.operator import asking_commands
from app.operator.asking_commands import Verdict
from app.operator.refusing import Refused, opened


@dataclass(frozen=True, slots=True)
class Checked:
    """One definition, and what was found. `where`: a tenant, or nothing for what packs declare."""

    where: str
    code: str
    findings: list[Finding]


def arguments(parser: argparse.ArgumentParser) -> None:
    """How to tell, and in which language."""
    parser.add_argument("--json", action="store_true", help="the findings for programs")
    parser.add_argument(
        "--language", choices=list(LANGUAGES), default=DEFAULT, help="of the sentences"
    )
    parser.add_argument(
        "--ask", nargs="?", const="", metavar="TEXT", help="what the model of agents would call"
    )
    parser.add_argument("--user", default="", help="who asks: login, or tenant/login")
    parser.add_argument("--agent", default="", help="code of the agent; else the user's newest")


def run(chosen: argparse.Namespace) -> int:
    """Print every finding, or what the model goes for."""
    if chosen.ask is not None:
        return _ask(chosen)
    with opened():
        checked = [*_declared(), *db.read_now(_in_force)]
    if chosen.json:
        _print_json(_report(checked))
    else:
        _print(_lines(checked, chosen.language))
    return int(any(readiness.errors(each.findings) for each in checked))


def _ask(chosen: argparse.Namespace) -> int:
    if chosen.ask and not chosen.user:
        raise Refused("Say whose sentence it is: --user login, or tenant/login.")
    with opened():
        return _ask_sentence(chosen) if chosen.ask else _ask_examples(chosen)


def _ask_examples(chosen: argparse.Namespace) -> int:
    model, found = asyncio.run(asking_commands.of_examples(chosen.user, chosen.agent))
    if chosen.json:
        _print_json({"model": model, "requests": [each.data() for each in found]})
    else:
        _print(asking_commands.lines_of_examples(model, found))
    return int(any(each.verdict is Verdict.MISTAKEN for each in found))


def _ask_sentence(chosen: argparse.Namespace) -> int:
    asking = asking_commands.of_sentence(chosen.ask, chosen.user, chosen.agent, chosen.language)
    made = asyncio.run(asking)
    if chosen.json:
        _print_json(made.data(chosen.language))
    else:
        _print(asking_commands.lines_of_sentence(made, chosen.language))
    return int(made.wanted.code is None or made.refused is not None)


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _print_json(report: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(report, indent=1, ensure_ascii=False, default=str) + "\n")


def _declared() -> Iterator[Checked]:
    declared = publishing.declared_definitions()
    known = Known.of(declared, declared)
    yield from _each("", declared.values(), known)


def _in_force(session: Session) -> list[Checked]:
    found: list[Checked] = []
    for tenant in session.exec(select(Tenant).order_by(col(Tenant.slug))).all():
        known = publishing.known_in(session, tenant.id)
        found += _each(tenant.slug, known.commands.values(), known)
    return found


def _each(where: str, definitions: Any, known: Known) -> Iterator[Checked]:
    ordered: list[StoredDefinition] = sorted(definitions, key=lambda each: each.code)
    for definition in ordered:
        yield Checked(where, definition.code, readiness.check(definition, known))


def _report(checked: list[Checked]) -> dict[str, Any]:
    return {
        "checked": len(checked),
        "errors": sum(len(readiness.errors(each.findings)) for each in checked),
        "findings": [
            {"tenant": each.where or None, "cmdCode": each.code, **finding.data()}
            for each in checked
            for finding in each.findings
        ],
    }


def _lines(checked: list[Checked], language: str) -> Iterator[str]:
    for each in checked:
        for finding in each.findings:
            where = f"{each.where}: " if each.where else ""
            yield (
                f"{finding.severity:<9}{where}{each.code} ({finding.field}): "
                f"{finding.text(language)}"
            )
    bad = sum(bool(readiness.errors(each.findings)) for each in checked)
    yield f"{len(checked)} definitions checked, {bad} with errors."
