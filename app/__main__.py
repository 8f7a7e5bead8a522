"""`python -m app`: serve, or one of the operator's commands.

Only the chosen command is imported, so that `--help` and starting are quick.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

COMMANDS = {
    "serve": "serve the console and all doors (what runs without a command)",
    "migrate": "bring the database to the newest schema, or only --check it",
    "backup": "write everything into one archive, while the server runs",
    "restore": "fill an empty database, SQLite or PostgreSQL, from an archive",
    "doctor": "look for what is wrong with this installation",
    "token": "mint a short-lived token of an agent for one of its users",
    "reset-link": "print a one-time link with which a person sets a new password",
    "tenant": "list, add, suspend or resume tenants",
    "rotate-keys": "make new signing and form keys",
    "aun-ca": "show or replace the authority that signs AUN names, take its root's key away",
    "verify-audit": "verify the audit trail, offline",
    "check-commands": "say of every command whether it may be published, or agents find it (--ask)",
    "diagnose-call": "tell why an agent's call fell over: what nobody else is told",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = given[0] if given and given[0] in COMMANDS else "serve"
    rest = given[1:] if given and given[0] in COMMANDS else given
    if rest and rest[0] in {"-h", "--help"} and name == "serve" and given[0] != "serve":
        _help()
        return 0
    if rest and name == "serve" and not rest[0].startswith("-"):
        _unknown(rest[0])
    module = importlib.import_module(f"app.operator.{name.replace('-', '_')}")
    parser = argparse.ArgumentParser(prog=f"python -m app {name}", description=module.__doc__)
    module.arguments(parser)
    return _run(module.run, parser.parse_args(rest))


def _run(run: object, chosen: argparse.Namespace) -> int:
    from app.operator.refusing import Refused  # noqa: PLC0415 - after the quick exits

    assert callable(run)  # noqa: S101 - a command module without `run` is a bug
    try:
        return int(run(chosen) or 0)
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        return 2


def _help() -> None:
    lines = [f"  {name:<16}{says}" for name, says in COMMANDS.items()]
    sys.stdout.write(
        "usage: python -m app [command] [options]\n\n"
        + "\n".join(lines)
        + "\n\n`python -m app <command> --help` tells its options."
        + "\nSettings are ASSENT_* variables; README.md has the table.\n"
    )


def _unknown(name: str) -> NoReturn:
    sys.stderr.write(f"There is no command {name}; see python -m app --help.\n")
    raise SystemExit(2)


if __name__ == "__main__":
    raise SystemExit(main())
