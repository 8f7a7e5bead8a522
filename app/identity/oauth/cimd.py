"""Client metadata documents: a client is known by the https URL that describes it (SEC-13)."""

import re
from collections import OrderedDict
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col, select

from app.identity import facts, stops
from app.identity.models import Agent, AuthMethod, ClientSource, Delegation, OAuthClient
from app.identity.oauth import clients, redirects
from app.kernel import clock, db, http, ids, settings
from app.kernel import json as strict_json
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.kernel.i18n import N_

LARGEST = 64 * 1024
FRESH_AT_LEAST = timedelta(minutes=5)
FRESH_AT_MOST = timedelta(hours=24)
FAILURES_KEPT_S = 60.0
FAILURES_AT_MOST = 1000
LONGEST = 500
USABLE_GRANTS = (clients.CODE, clients.REFRESH, clients.DEVICE)

_URL = re.compile(r"https://[a-z0-9.\-]+(:\d{1,5})?/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]+")
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)

_failures: OrderedDict[str, float] = OrderedDict()


class DocumentUnusable(AppError):
    """The document that describes a client cannot be had, or is not what it must be."""

    reason = "invalid_client"
    status = 400
    says = N_("The description of this application cannot be used: %(url)s")


class Document(BaseModel):
    """The members of a document that count here."""

    model_config = ConfigDict(extra="ignore")

    client_id: str
    client_name: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    redirect_uris: Annotated[list[str], Field(min_length=1, max_length=20)]
    grant_types: list[str] = [clients.CODE]
    token_endpoint_auth_method: AuthMethod = AuthMethod.NONE


def is_document(client_id: str) -> bool:
    """Whether a client id is meant as the URL of a document."""
    return client_id.startswith(("https:", "http:"))


async def ensure(client_id: str, *, known_only: bool = False) -> None:
    """Have the document of a client at hand, fetched anew when its time is over.

    `known_only`: fetch nothing for a client nobody consented to; what strangers send is no reason
    to call somewhere.

    Raises:
        DocumentUnusable: the URL, the answer or the document will not do.
    """
    if not is_document(client_id):
        return
    row = await db.read(_known, client_id) if _URL.fullmatch(client_id) else None
    if row is not None and row.fresh_until is not None and row.fresh_until > clock.now():
        return
    if not is_acceptable(client_id) or (known_only and row is None) or _failed_lately(client_id):
        raise DocumentUnusable(url=client_id[:LONGEST])
    try:
        document, fresh_for = await _fetch(client_id)
    except AppError as problem:
        _note_failure(client_id)
        raise DocumentUnusable(url=client_id) from problem
    await db.transaction(keep, document, fresh_for)


def is_acceptable(url: str) -> bool:
    """Whether a client id is the URL of a document we would fetch."""
    if len(url) > LONGEST or not _URL.fullmatch(url):
        return False
    parts = urlsplit(url)
    segments = parts.path.lower().replace("%2e", ".").split("/")
    if "." in segments or ".." in segments or parts.netloc.endswith(":443"):
        return False
    allowed = settings.current().cimd_hosts
    return not allowed or parts.hostname in allowed


def keep(work: Work, document: Document, fresh_for: timedelta) -> None:
    """Store a document; other redirect URIs end every delegation of the client."""
    now = clock.now()
    row = work.session.get(OAuthClient, document.client_id)
    if row is None:
        row = OAuthClient(
            id=document.client_id,
            source=ClientSource.CIMD,
            name="",
            auth_method=AuthMethod.NONE,
            created_at=now,
        )
    elif row.redirect_uris != document.redirect_uris:
        _end_delegations(work, row)
    row.name = document.client_name or urlsplit(document.client_id).hostname or ""
    row.redirect_uris = list(document.redirect_uris)
    row.grant_types = [grant for grant in document.grant_types if grant in USABLE_GRANTS]
    row.metadata_sha256 = digest(document)
    row.fetched_at, row.fresh_until = now, now + fresh_for
    try:
        with work.session.begin_nested():
            work.session.add(row)
    except IntegrityError:
        work.session.expunge_all()  # another process stored it first, and it is as good


def digest(document: Document) -> str:
    """SHA-256 over what counts of a document: another digest is another release (SEC-11)."""
    return ids.sha256(strict_json.canonical(document.model_dump()).decode())


def fresh_for(headers: Mapping[str, str]) -> timedelta:
    """How long an answer may be kept: its max-age, within our bounds."""
    found = _MAX_AGE.search(headers.get("cache-control", ""))
    wished = timedelta(seconds=int(found[1])) if found else FRESH_AT_LEAST
    return min(max(wished, FRESH_AT_LEAST), FRESH_AT_MOST)


def read(url: str, body: bytes) -> Document:
    """The document, if it describes the client of this URL.

    Raises:
        DocumentUnusable: it does not.
    """
    try:
        document = Document.model_validate(strict_json.loads(body, max_bytes=LARGEST))
    except (ValidationError, AppError, ValueError) as problem:
        raise DocumentUnusable(url=url) from problem
    origin = _origin(url)
    is_own = all(
        redirects.is_acceptable(uri) and (redirects.is_loopback(uri) or _origin(uri) == origin)
        for uri in document.redirect_uris
    )
    if (
        document.client_id != url
        or not is_own
        or document.token_endpoint_auth_method != AuthMethod.NONE
    ):
        raise DocumentUnusable(url=url)
    return document


async def _fetch(url: str) -> tuple[Document, timedelta]:
    allow = http.pairs(",".join(settings.current().outbound_allow))
    async with http.client(allow, body_limit=LARGEST) as client:
        status, headers, body = await http.fetch(
            client, "GET", url, headers={"accept": "application/json"}
        )
    if status != httpx2.codes.OK or "json" not in headers.get("content-type", "").lower():
        raise DocumentUnusable(url=url)
    return read(url, body), fresh_for(headers)


def _known(session: Session, client_id: str) -> OAuthClient | None:
    return session.get(OAuthClient, client_id)


def _end_delegations(work: Work, row: OAuthClient) -> None:
    query = (
        select(Delegation)
        .join(
            Agent,
            (col(Agent.tenant_id) == Delegation.tenant_id) & (col(Agent.id) == Delegation.agent_id),
        )
        .where(Agent.client_id == row.id, col(Delegation.revoked_at).is_(None))
    )
    for delegation in work.session.exec(query).all():
        facts.record(
            work,
            "identity.delegation.revoke",
            None,
            tenant_id=delegation.tenant_id,
            user_id=delegation.user_id,
            target=("delegation", delegation.id),
            reason="client_changed",
            details={"client_id": row.id},
        )
        delegation.revoked_at = clock.now()
        work.session.add(delegation)
        work.session.flush()
        stops.end_delegation(work, delegation, "client_changed")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower().removesuffix(":443")


def _failed_lately(client_id: str) -> bool:
    return _failures.get(client_id, float("-inf")) > clock.monotonic_s()


def _note_failure(client_id: str) -> None:
    _failures[client_id] = clock.monotonic_s() + FAILURES_KEPT_S
    while len(_failures) > FAILURES_AT_MOST:
        _failures.popitem(last=False)
