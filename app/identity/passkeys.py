"""Passkeys: added, used to sign in and to confirm, renamed and taken away (SEC-39).

The server makes each challenge, for one browser or session and one purpose; it can be answered once
within two minutes. A passkey is never locked out by failures of others.
"""

from datetime import timedelta
from typing import Any, Literal
from urllib.parse import urlsplit

from sqlalchemy import delete, update
from sqlmodel import Session, col, select
from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.authentication.verify_authentication_response import VerifiedAuthentication
from webauthn.helpers import (
    base64url_to_bytes,
    bytes_to_base64url,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    CredentialDeviceType,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from app.identity import facts, sessions, sign_in, step_up, users, ways_in
from app.identity.errors import PasskeyRefused
from app.identity.models import Credential, CredentialKind, PasskeyChallenge
from app.identity.principal import Principal
from app.identity.sessions import Signed
from app.identity.sign_in import Arrival
from app.kernel import clock, db, ids, settings
from app.kernel import json as strict_json
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

Purpose = Literal["sign_in", "register", "step_up"]

LIVES = timedelta(minutes=2)
AT_MOST = 20  # passkeys of one person
LABEL = 100  # characters
ANSWER = 20_000  # characters of a browser's answer
RELYING_PARTY = "Assent"


async def registration_options(signed: Signed) -> str:
    """What the browser needs to make a passkey, as JSON."""
    challenge = await db.transaction(_ask, "register", signed.session.id)
    known = await db.read(ways_in.passkeys, signed.user)
    options = generate_registration_options(
        rp_id=rp_id(),
        rp_name=RELYING_PARTY,
        user_id=_handle(signed.user.tenant_id, signed.user.id),
        user_name=signed.user.login,
        user_display_name=signed.user.display_name,
        challenge=challenge,
        timeout=_milliseconds(),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.PREFERRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=_descriptors(known),
    )
    return options_to_json(options)


async def register(signed: Signed, answer: str, label: str) -> Credential:
    """Keep the passkey the browser made.

    Raises:
        PasskeyRefused: the answer is not one to a challenge of this session, or not a sound one.
        Invalid: the person has twenty of them, or has this one.
    """
    credential = _parsed_registration(answer)
    challenge = await _take(credential.response.client_data_json, "register", signed.session.id)
    try:
        verified = verify_registration_response(
            credential=credential,
            expected_challenge=challenge,
            expected_rp_id=rp_id(),
            expected_origin=settings.current().origin,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError) as refused:
        raise PasskeyRefused from refused
    made = Credential(
        tenant_id=signed.user.tenant_id,
        id=ids.ulid(),
        user_id=signed.user.id,
        kind=CredentialKind.PASSKEY,
        passkey_id=bytes_to_base64url(verified.credential_id),
        public_key=verified.credential_public_key,
        sign_count=verified.sign_count,
        backup_eligible=verified.credential_device_type is CredentialDeviceType.MULTI_DEVICE,
        backed_up=verified.credential_backed_up,
        transports=[transport.value for transport in credential.response.transports or []],
        label=label,
        created_at=clock.now(),
    )
    return await db.transaction(_keep, sessions.person(signed), made)


async def sign_in_options(browser_mark: str) -> str:
    """What the browser needs to find a passkey of its own accord, as JSON."""
    challenge = await db.transaction(_ask, "sign_in", ids.sha256(browser_mark))
    return options_to_json(
        generate_authentication_options(
            rp_id=rp_id(),
            challenge=challenge,
            timeout=_milliseconds(),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
    )


async def with_passkey(browser_mark: str, answer: str, arrival: Arrival) -> str:
    """Begin a session of whoever the passkey belongs to; returns the cookie's secret.

    Raises:
        PasskeyRefused: it is not a passkey of ours, or it does not answer a challenge of this
            browser.
        SignInFailed: the person cannot sign in.
    """
    parsed = _parsed_authentication(answer)
    await _take(parsed.response.client_data_json, "sign_in", ids.sha256(browser_mark))
    tenant_id, user_id = _from_handle(parsed.response.user_handle)
    stored = await db.read(_find, tenant_id, user_id, bytes_to_base64url(parsed.raw_id))
    if stored is None:
        raise PasskeyRefused
    try:
        verified = _verified(parsed, stored)
    except PasskeyRefused:
        await db.transaction(_refuse_sign_in, stored)
        raise
    return await db.transaction(_begin, stored, verified, arrival)


async def step_up_options(signed: Signed) -> str:
    """What the browser needs to confirm with one of the person's passkeys, as JSON."""
    challenge = await db.transaction(_ask, "step_up", signed.session.id)
    known = await db.read(ways_in.passkeys, signed.user)
    return options_to_json(
        generate_authentication_options(
            rp_id=rp_id(),
            challenge=challenge,
            timeout=_milliseconds(),
            allow_credentials=_descriptors(known),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
    )


async def confirm(signed: Signed, answer: str) -> str:
    """Confirm that it is still the person; returns the session's new secret.

    Raises:
        PasskeyRefused: not a passkey of this person, or no answer to a challenge of this session.
        NotFound: the session ended meanwhile.
    """
    parsed = _parsed_authentication(answer)
    await _take(parsed.response.client_data_json, "step_up", signed.session.id)
    user = signed.user
    stored = await db.read(_find, user.tenant_id, user.id, bytes_to_base64url(parsed.raw_id))
    if stored is None:
        await db.transaction(step_up.refuse, signed, "unknown_passkey")
        raise PasskeyRefused
    try:
        verified = _verified(parsed, stored)
    except PasskeyRefused:
        await db.transaction(step_up.refuse, signed, "wrong_passkey")
        raise
    return await db.transaction(_confirm, signed, stored, verified)


async def decision_options(signed: Signed, challenge: bytes) -> str:
    """What the browser needs to confirm one decision, as JSON; the challenge is of its dialog."""
    known = await db.read(ways_in.passkeys, signed.user)
    return options_to_json(
        generate_authentication_options(
            rp_id=rp_id(),
            challenge=challenge,
            timeout=_milliseconds(),
            allow_credentials=_descriptors(known),
            user_verification=UserVerificationRequirement.REQUIRED,
        )
    )


async def asserted(signed: Signed, answer: str, challenge: bytes) -> str:
    """The assertion of one of the person's passkeys over `challenge`, which is kept as it came.

    Raises:
        PasskeyRefused: not a passkey of this person, or no answer to this challenge.
    """
    parsed = _parsed_authentication(answer)
    user = signed.user
    stored = await db.read(_find, user.tenant_id, user.id, bytes_to_base64url(parsed.raw_id))
    if stored is None:
        await db.transaction(step_up.refuse, signed, "unknown_passkey")
        raise PasskeyRefused
    try:
        verified = _verified(parsed, stored, challenge)
    except PasskeyRefused:
        await db.transaction(step_up.refuse, signed, "wrong_passkey")
        raise
    await db.transaction(_count, stored, verified)
    return answer


def own(session: Session, person: Principal, credential_id: str) -> Credential:
    """A passkey of the person's own.

    Raises:
        NotFound: there is none with this id, or it is somebody else's.
    """
    row = session.get(Credential, (person.tenant_id, credential_id))
    if (
        row is None
        or row.user_id != person.user_id
        or row.kind != CredentialKind.PASSKEY
        or row.revoked_at is not None
    ):
        raise NotFound
    return row


def rename(work: Work, person: Principal, credential_id: str, label: str) -> None:
    """Call a passkey something else.

    Raises:
        NotFound: as in `own`.
    """
    row = own(work.session, person, credential_id)
    _record(work, "identity.passkey.rename", person, row, label=(row.label, label))
    row.label = label
    work.session.add(row)


def remove(work: Work, person: Principal, credential_id: str) -> None:
    """Take a passkey away; it opens nothing any more.

    Raises:
        NotFound: as in `own`.
        LastWayIn: the person could not sign in again.
    """
    row = own(work.session, person, credential_id)
    user = users.one(work.session, person.tenant_id, person.user_id)
    ways_in.keep_one_besides(work.session, user, row.id)
    _record(work, "identity.passkey.remove", person, row, label=(row.label, None))
    row.revoked_at = clock.now()
    work.session.add(row)


def rp_id() -> str:
    """The host of the public origin: what passkeys are bound to."""
    return urlsplit(settings.current().origin).hostname or "localhost"


def _ask(work: Work, purpose: Purpose, bound_to: str) -> bytes:
    now, made = clock.now(), ids.random_token()
    work.session.execute(delete(PasskeyChallenge).where(col(PasskeyChallenge.expires_at) < now))
    work.session.add(
        PasskeyChallenge(
            challenge_sha256=ids.sha256(made),
            purpose=purpose,
            bound_to=bound_to,
            expires_at=now + LIVES,
        )
    )
    return base64url_to_bytes(made)


async def _take(client_data: bytes, purpose: Purpose, bound_to: str) -> bytes:
    """The challenge the browser answered, used up whatever comes of it."""
    try:
        challenge = parse_client_data_json(client_data).challenge
    except (WebAuthnException, ValueError, KeyError, TypeError) as refused:
        raise PasskeyRefused from refused
    if not await db.transaction(_use_up, bytes_to_base64url(challenge), purpose, bound_to):
        raise PasskeyRefused
    return challenge


def _use_up(work: Work, challenge: str, purpose: Purpose, bound_to: str) -> bool:
    now = clock.now()
    taken = work.session.execute(
        update(PasskeyChallenge)
        .where(col(PasskeyChallenge.challenge_sha256) == ids.sha256(challenge))
        .where(col(PasskeyChallenge.purpose) == purpose, col(PasskeyChallenge.bound_to) == bound_to)
        .where(col(PasskeyChallenge.used_at).is_(None), col(PasskeyChallenge.expires_at) > now)
        .values(used_at=now)
    )
    return bool(taken.rowcount == 1)  # type: ignore[attr-defined]


def _keep(work: Work, person: Principal, made: Credential) -> Credential:
    user = users.one(work.session, person.tenant_id, person.user_id)
    if len(ways_in.passkeys(work.session, user)) >= AT_MOST:
        raise Invalid(FieldError("", N_("Twenty passkeys are the most. Remove one first.")))
    if _by_passkey_id(work.session, made.tenant_id, made.passkey_id or "") is not None:
        raise Invalid(FieldError("", N_("This passkey is in use already.")))
    row = Credential(**made.model_dump())
    work.session.add(row)
    work.session.flush()
    _record(work, "identity.passkey.add", person, row, label=(None, row.label))
    return row


def _find(session: Session, tenant_id: str, user_id: str, passkey_id: str) -> Credential | None:
    row = _by_passkey_id(session, tenant_id, passkey_id)
    return row if row and row.user_id == user_id and row.revoked_at is None else None


def _by_passkey_id(session: Session, tenant_id: str, passkey_id: str) -> Credential | None:
    return session.exec(
        select(Credential).where(
            Credential.tenant_id == tenant_id, Credential.passkey_id == passkey_id
        )
    ).first()


def _verified(
    parsed: AuthenticationCredential, stored: Credential, challenge: bytes | None = None
) -> VerifiedAuthentication:
    """The checked answer; without `challenge` that of the answer was looked up and used up."""
    try:
        return verify_authentication_response(
            credential=parsed,
            expected_challenge=challenge
            or parse_client_data_json(parsed.response.client_data_json).challenge,
            expected_rp_id=rp_id(),
            expected_origin=settings.current().origin,
            credential_public_key=stored.public_key or b"",
            credential_current_sign_count=stored.sign_count,
            require_user_verification=True,
        )
    except (WebAuthnException, ValueError) as refused:
        raise PasskeyRefused from refused


def _begin(
    work: Work, stored: Credential, verified: VerifiedAuthentication, arrival: Arrival
) -> str:
    _count(work, stored, verified)
    secret, _ = sign_in.begin(work, stored.tenant_id, stored.user_id, sign_in.PASSKEY, arrival)
    return secret


def _confirm(
    work: Work, signed: Signed, stored: Credential, verified: VerifiedAuthentication
) -> str:
    _count(work, stored, verified)
    return sessions.step_up(work, signed, [sign_in.PASSKEY])


def _count(work: Work, stored: Credential, verified: VerifiedAuthentication) -> None:
    row = work.session.get(Credential, (stored.tenant_id, stored.id), with_for_update=True)
    if row is None or row.revoked_at is not None or _went_back(row, verified):
        raise PasskeyRefused
    row.sign_count = verified.new_sign_count
    row.backed_up = verified.credential_backed_up
    row.last_used_at = clock.now()
    work.session.add(row)


def _went_back(row: Credential, verified: VerifiedAuthentication) -> bool:
    """Whether a counter that counts stands still or goes back: there is a copy of the key."""
    return row.sign_count > 0 and verified.new_sign_count <= row.sign_count


def _refuse_sign_in(work: Work, stored: Credential) -> None:
    facts.record(
        work,
        "identity.session.refused",
        None,
        tenant_id=stored.tenant_id,
        user_id=stored.user_id,
        target=("user", stored.user_id),
        outcome="refused",
        stage="authorize",
        reason="wrong_passkey",
    )


def _record(
    work: Work, action: str, person: Principal, row: Credential, **changes: tuple[Any, Any]
) -> None:
    facts.record(work, action, person, target=("credential", row.id), changes=changes)


def _descriptors(known: list[Credential]) -> list[PublicKeyCredentialDescriptor]:
    return [
        PublicKeyCredentialDescriptor(id=base64url_to_bytes(row.passkey_id))
        for row in known
        if row.passkey_id
    ]


def _parsed_registration(answer: str) -> RegistrationCredential:
    try:
        return parse_registration_credential_json(_strict(answer))
    except (WebAuthnException, ValueError, KeyError, TypeError) as refused:
        raise PasskeyRefused from refused


def _parsed_authentication(answer: str) -> AuthenticationCredential:
    try:
        return parse_authentication_credential_json(_strict(answer))
    except (WebAuthnException, ValueError, KeyError, TypeError) as refused:
        raise PasskeyRefused from refused


def _strict(answer: str) -> dict[str, Any]:
    if len(answer) > ANSWER:
        raise PasskeyRefused
    try:
        parsed = strict_json.loads(answer.encode())
    except Invalid as refused:
        raise PasskeyRefused from refused
    if not isinstance(parsed, dict):
        raise PasskeyRefused
    return parsed


def _handle(tenant_id: str, user_id: str) -> bytes:
    return f"{tenant_id}.{user_id}".encode()


def _from_handle(handle: bytes | None) -> tuple[str, str]:
    tenant_id, dot, user_id = (handle or b"").decode("ascii", "replace").partition(".")
    if not dot or not ids.is_ulid(tenant_id) or not ids.is_ulid(user_id):
        raise PasskeyRefused
    return tenant_id, user_id


def _milliseconds() -> int:
    return int(LIVES.total_seconds() * 1000)
