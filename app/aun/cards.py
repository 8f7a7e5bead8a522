"""agent.md: the public card of an AID, signed by it (aun.md, 2.1).

Outside AIDs and groups bring theirs; those of hosted AIDs are written and signed here when
somebody asks first. A card says who to talk to and how, and promises nothing (AUN-6).
"""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from sqlmodel import Session

from app.aun import identities, queries
from app.aun.errors import AunError, NotAdmitted, VersionConflict
from app.aun.group_models import Group
from app.aun.models import Identity, IdentityKind
from app.aun.pki import building, keys
from app.aun.pki.keys import PrivateKey
from app.aun.pki_models import CertificateState
from app.identity.models import Agent
from app.kernel import clock
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.i18n import N_

LONGEST = 4_096 + 2_048  # bytes: what is signed, and the signatures
TAGS = 'tags: ["autonomous"]\n'  # for display; there is no opposite (AUN-7)
TYPES = {
    IdentityKind.USER: "human",
    IdentityKind.AGENT: "agent",
    IdentityKind.SYSTEM: "service",
}


class CardInvalid(AunError):
    """The document is no signed card of this AID."""

    reason = "card_invalid"
    status = 422
    says = N_("This is no signed agent.md of this AID.")


class CardTooLarge(AunError):
    """The document is larger than a card may be."""

    reason = "card_too_large"
    status = 413
    says = N_("An agent.md has at most 4096 bytes, and 2048 of signatures.")


class CardChanged(AunError):
    """The card is not the one the upload builds on."""

    reason = "card_changed"
    status = 412
    says = N_("The agent.md changed meanwhile.")


@dataclass(frozen=True, slots=True)
class Card:
    """A card as it is served."""

    text: str
    etag: str  # strong, with its quotes
    at: datetime


@dataclass(frozen=True, slots=True)
class Ownership:
    """What is known of the owner of a group, with a card or without."""

    owner_aid: str
    fingerprint: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class Look:
    """A card, whose group it is, and whether it has yet to be written here."""

    card: Card | None
    owner: Ownership | None
    is_to_write: bool


@dataclass(frozen=True, slots=True)
class Upload:
    """A card somebody wants to be theirs; `if_match` is None where there must be none yet."""

    tenant_id: str
    aid: str
    text: str
    if_match: str | None


@dataclass(frozen=True, slots=True)
class Signing:
    """What the signature of an upload is checked with."""

    certificate: x509.Certificate
    known: dict[tuple[str, str], x509.Certificate]  # of the owner of a group, too


def of_text(text: str, at: datetime) -> Card:
    """A card and its mark."""
    return Card(text, f'"{hashlib.sha256(text.encode()).hexdigest()}"', at)


def look(session: Session, tenant_id: str, aid: str) -> Look:
    """What there is of an AID's card.

    Raises:
        NotFound: nobody has this name.
    """
    found = queries.identity(session, tenant_id, aid)
    if found is None:
        raise NotFound
    card = _card(found)
    return Look(card, ownership(session, tenant_id, aid), card is None and _is_hosted(found))


def written(work: Work, tenant_id: str, aid: str) -> Card:
    """The card of a hosted AID, written and signed if there is none."""
    found = work.session.get(Identity, (tenant_id, aid))
    if found is None:  # pragma: no cover - it was read just now
        raise NotFound
    kept = _card(found)
    if kept is not None:
        return kept
    text = _signed(work.session, found, _draft(work.session, found))
    return _keep(work, found, text)


def ownership(session: Session, tenant_id: str, aid: str) -> Ownership | None:
    """Who owns a group with a key of its own; None for whatever else it is."""
    group = session.get(Group, (tenant_id, aid))
    active = queries.active_certificate(session, tenant_id, aid) if group else None
    if group is None or active is None:
        return None
    identity = queries.identity(session, tenant_id, aid)
    card = identity.card if identity else None
    is_current = not card or f"sha256:{active.fingerprint}" in card
    return Ownership(group.owner_aid, f"sha256:{active.fingerprint}", is_current)


def signing(session: Session, upload: Upload, by: str) -> Signing:
    """What an upload by the AID `by` is checked with.

    Raises:
        NotFound: nobody has this name.
        NotAdmitted: `by` is neither this AID nor the owner of this group.
    """
    owner = ownership(session, upload.tenant_id, upload.aid)
    identity = queries.identity(session, upload.tenant_id, upload.aid)
    if identity is None:
        raise NotFound
    if by != (owner.owner_aid if owner else upload.aid) or _is_hosted(identity):
        raise NotAdmitted("this card is not yours to write")
    active = queries.active_certificate(session, upload.tenant_id, upload.aid)
    if active is None:
        raise VersionConflict("there is no active certificate")
    known = {
        (row.aid, f"sha256:{row.fingerprint}"): building.parsed(row.der)
        for aid in {upload.aid, by}
        for row in queries.certificates(session, upload.tenant_id, aid)
        if row.state != CertificateState.REVOKED
    }
    return Signing(building.parsed(active.der), known)


def check(upload: Upload, found: Signing) -> None:
    """Whether the document is a card of its AID, signed with its current key; takes a while.

    Raises:
        CardInvalid: it is not.
        VersionConflict: it is signed with a certificate that is not the current one.
    """
    # loading these takes a second
    from aun_core._cert_utils import parse_agent_md_tail_signature  # noqa: PLC0415
    from aun_core.agent_md_schema import verify_agent_md_signature  # noqa: PLC0415
    from aun_core.errors import AUNError  # noqa: PLC0415

    def resolve(signer: str, fingerprint: str, _timestamp: int) -> x509.Certificate:
        return found.known[signer.lower(), fingerprint]

    _, fields, _ = parse_agent_md_tail_signature(upload.text)
    current = f"sha256:{found.certificate.fingerprint(hashes.SHA256()).hex()}"
    signed_with = (fields or {}).get("cert_fingerprint", current)
    if signed_with != current and (upload.aid, signed_with) in found.known:
        raise VersionConflict("signed with a certificate that was replaced")
    try:
        verify_agent_md_signature(
            upload.text,
            found.certificate,
            expected_aid=upload.aid,
            now=clock.epoch_s(),
            for_upload=True,
            certificate_resolver=resolve,
        )
    except (AUNError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as fault:
        raise CardInvalid(str(fault)[:200]) from fault


def put(work: Work, upload: Upload) -> Card:
    """Keep an upload that was checked.

    Raises:
        CardChanged: the card is not the one it builds on.
    """
    identity = work.session.get(
        Identity, (upload.tenant_id, upload.aid), with_for_update=True, populate_existing=True
    )
    if identity is None:  # pragma: no cover - it was read just now
        raise NotFound
    before = _card(identity)
    if upload.if_match != (before.etag if before else None):
        raise CardChanged
    return _keep(work, identity, upload.text)


def _card(identity: Identity) -> Card | None:
    if identity.card is None or identity.card_at is None:
        return None
    return Card(identity.card, f'"{identity.card_etag}"', identity.card_at)


def _keep(work: Work, identity: Identity, text: str) -> Card:
    made = of_text(text, clock.now())
    identity.card, identity.card_etag, identity.card_at = text, made.etag.strip('"'), made.at
    work.session.add(identity)
    work.session.flush()
    return made


def _is_hosted(identity: Identity) -> bool:
    return identity.kind in TYPES


def _draft(session: Session, identity: Identity) -> str:
    from aun_core.agent_md import build_default_agent_md  # noqa: PLC0415 - it takes a second

    name, description = identity.aid.partition(".")[0], ""
    if identity.kind == IdentityKind.AGENT:
        agent = session.get(Agent, (identity.tenant_id, identity.owner_id or ""))
        name, description = (_plain(agent.name), _plain(agent.description)) if agent else (name, "")
    text: str = build_default_agent_md(
        identity.aid,
        document_type=TYPES[IdentityKind(identity.kind)],
        name=name,
        description=description,
    )
    head, mark, rest = text.partition("\n---\n")
    return f"{head}\n{TAGS.rstrip()}{mark}{rest}"


def _plain(text: str) -> str:
    """One line that is no markup; a comment in it would look like a signature."""
    return " ".join(text.replace("<", " ").replace(">", " ").split())


@dataclass(frozen=True, slots=True)
class _Signer:
    """An identity as the client's library wants it."""

    aid: str
    _cert_obj: x509.Certificate
    _private_key_obj: PrivateKey

    def is_cert_valid(self) -> bool:
        return True

    def is_private_key_valid(self) -> bool:
        return True


def _signed(session: Session, identity: Identity, text: str) -> str:
    from aun_core._cert_utils import sign_document  # noqa: PLC0415 - it takes a second

    row = queries.active_certificate(session, identity.tenant_id, identity.aid)
    if row is None:
        raise NotFound
    key = keys.of_scalar(identities.key_of(session, identity.tenant_id, identity.aid))
    signer = _Signer(identity.aid, building.parsed(row.der), key)
    signed: dict[str, Any] = sign_document(signer, text, now=clock.epoch_s())
    return str(signed["signed"])
