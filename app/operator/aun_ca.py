"""Show the authority that signs AUN names, replace it by one's own, or take the root's key away."""

import argparse
import os
import sys
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from sqlmodel import Session

from app.aun.pki import building, chain, importing, issuers
from app.aun.pki.building import Signer
from app.aun.pki.importing import Authority
from app.aun.pki.keys import PrivateKey
from app.kernel import db
from app.kernel.db import Work
from app.operator import people
from app.operator.refusing import Refused, opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """The act, and for which tenant."""
    acts = parser.add_subparsers(dest="act", required=True)
    show = acts.add_parser("show", help="domain, fingerprints, and where the root's key is")
    take = acts.add_parser("import", help="let an authority of yours sign; names keep their keys")
    take.add_argument("--root", required=True, type=Path, help="root certificate, PEM")
    take.add_argument("--root-key", type=Path, help="its key, PEM: a new issuer is signed with it")
    take.add_argument("--issuer", type=Path, help="issuer certificate, PEM, signed by the root")
    take.add_argument("--issuer-key", type=Path, help="its key, PEM")
    export = acts.add_parser("export-root-key", help="write the root's key to FILE, keep it not")
    export.add_argument("file", type=Path)
    for each in (show, take, export):
        each.add_argument("--tenant", default="", help="its short name, where there are several")


def run(chosen: argparse.Namespace) -> int:
    """Do it and say what came of it."""
    with opened():
        if chosen.act == "import":
            count = db.transact_now(_import, chosen.tenant, _given(chosen))
            sys.stdout.write(f"{count} names were signed anew. Their clients have to trust it:\n")
        elif chosen.act == "export-root-key":
            _export(chosen.tenant, chosen.file)
        lines = db.read_now(_show, chosen.tenant)
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _show(session: Session, slug: str) -> list[str]:
    tenant_id = people.tenant(session, slug).id
    root = chain.root(session, tenant_id)
    auth = building.parsed(issuers.one(session, tenant_id).auth_certificate)
    return [
        f"domain   {issuers.domain_of(session, tenant_id)}",
        f"root     {chain.root_fingerprint(session, tenant_id)}",
        f"issuer   {chain.issuer_fingerprint(session, tenant_id)}",
        f"gateway  valid until {auth.not_valid_after_utc:%Y-%m-%d}",
        f"root key {'here' if root.key_sealed else 'not here'}",
    ]


def _import(work: Work, slug: str, given: Authority) -> int:
    return importing.take(work, people.tenant(work.session, slug).id, given)


def _export(slug: str, file: Path) -> None:
    """Take the file first: the key exists nowhere else afterwards."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as fault:
        raise Refused(f"{file} cannot be made: {fault.strerror}.") from fault
    with os.fdopen(descriptor, "wb") as out:
        try:
            db.transact_now(_write_key, slug, out.fileno())
        except BaseException:
            file.unlink()
            raise


def _write_key(work: Work, slug: str, descriptor: int) -> None:
    pem = importing.let_root_key_go(work, people.tenant(work.session, slug).id)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, pem, 0)
    os.fsync(descriptor)  # before the commit that forgets it


def _given(chosen: argparse.Namespace) -> Authority:
    if bool(chosen.issuer) != bool(chosen.issuer_key):
        raise Refused("--issuer and --issuer-key belong together.")
    issuer = chosen.issuer and Signer(_certificate(chosen.issuer), _key(chosen.issuer_key))
    return Authority(
        root=_certificate(chosen.root),
        root_key=_key(chosen.root_key) if chosen.root_key else None,
        issuer=issuer or None,
    )


def _certificate(file: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError) as fault:
        raise Refused(f"{file} is not a certificate that can be read.") from fault


def _key(file: Path) -> PrivateKey:
    try:
        key = load_pem_private_key(file.read_bytes(), None)
    except (OSError, ValueError, TypeError) as fault:
        raise Refused(f"{file} is not a key that can be read without a password.") from fault
    if not isinstance(key, PrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise Refused(f"{file} is not a P-256 key.")
    return key
