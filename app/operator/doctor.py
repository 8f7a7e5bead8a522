"""Look for what is wrong with this installation; changes nothing. Exit status 1 on a fault."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from urllib.parse import urlsplit

from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import select

from app.kernel import db, migrations, sealing
from app.kernel.models import SealedKey
from app.kernel.settings import Settings
from app.operator.refusing import chosen_settings

ROOM_BYTES = 1 << 30
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Verdict(StrEnum):
    """What a look found."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "FAULT"


Finding = tuple[Verdict, str]
Look = Callable[[Settings], Iterator[Finding]]


def arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(_chosen: argparse.Namespace) -> int:
    """Print every finding."""
    given = chosen_settings()
    worst = 0
    for look in LOOKS:
        for verdict, says in look(given):
            sys.stdout.write(f"{verdict:<9}{says}\n")
            worst = max(worst, int(verdict == Verdict.FAULT))
    return worst


def _folder(given: Settings) -> Iterator[Finding]:
    folder = given.data_dir
    if not folder.is_dir():
        yield Verdict.FAULT, f"{folder} does not exist yet: start the server once."
        return
    if not os.access(folder, os.W_OK):
        yield Verdict.FAULT, f"{folder} cannot be written to."
    if (free := shutil.disk_usage(folder).free) < ROOM_BYTES:
        yield Verdict.WARNING, f"{folder} has {free >> 20} MiB of room left."
    else:
        yield Verdict.OK, f"{folder} can be written to and has room."


def _database(given: Settings) -> Iterator[Finding]:
    kind = "SQLite" if given.database.startswith("sqlite") else "PostgreSQL"
    try:
        is_current = migrations.is_current(given.database)
    except SQLAlchemyError as fault:
        yield Verdict.FAULT, f"{kind} does not answer: {type(fault).__name__}."
        return
    if is_current:
        yield Verdict.OK, f"{kind} answers, and its schema is current."
    else:
        yield Verdict.FAULT, f"{kind} answers, but its schema is not this version's: run migrate."


def _keys(given: Settings) -> Iterator[Finding]:
    if given.master_key is None and not (given.data_dir / sealing.FILE).exists():
        yield Verdict.FAULT, "There is no master key; the server makes one at its first start."
        return
    try:
        sealing.open_with(given)
        count = _unsealed(given)
    except (sealing.MasterKeyProblem, OSError) as fault:
        yield Verdict.FAULT, str(fault)
    except sealing.CannotUnseal:
        yield Verdict.FAULT, "The master key is not the one that sealed this database's keys."
    except SQLAlchemyError:
        return  # said already
    else:
        yield Verdict.OK, f"The master key opens all {count} sealed keys."


def _unsealed(given: Settings) -> int:
    engine = db.engine_for(given.database)
    try:
        with engine.connect() as connection:
            query = select(SealedKey.purpose, SealedKey.number, SealedKey.sealed)
            rows = connection.execute(query).all()
    finally:
        engine.dispose()
    for purpose, number, sealed in rows:
        sealing.unseal(sealed, f"sealed_key:{purpose}:{number}")
    return len(rows)


def _address(given: Settings) -> Iterator[Finding]:
    parts = urlsplit(given.origin)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        yield (
            Verdict.FAULT,
            f"{given.origin} is plain http: browsers keep no session there. Use https.",
        )
    elif parts.hostname in LOOPBACK:
        yield Verdict.WARNING, f"{given.origin} is reachable from this machine only."
    else:
        yield Verdict.OK, f"People reach it at {given.origin}."
    if parts.scheme == "https" and given.tls_port is None and not given.trusted_proxies:
        yield (
            Verdict.WARNING,
            "Behind a proxy, name it in ASSENT_TRUSTED_PROXIES, or all people share one address.",
        )


def _checkpoints(given: Settings) -> Iterator[Finding]:
    where = given.checkpoints
    try:
        is_beside = where.resolve().is_relative_to(given.data_dir.resolve())
    except OSError as fault:
        yield Verdict.FAULT, f"{where} cannot be read: {fault.strerror}."
        return
    if is_beside:
        yield (
            Verdict.WARNING,
            "Audit checkpoints lie beside the data; ASSENT_CHECKPOINT_DIR puts them elsewhere.",
        )
    else:
        yield Verdict.OK, f"Audit checkpoints go to {where}."


LOOKS: tuple[Look, ...] = (_folder, _database, _keys, _address, _checkpoints)
