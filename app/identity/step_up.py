"""Proving again who one is, in a live session: it is fresh then, under a new secret (SEC-38)."""

from app.identity import facts, passwords, sessions, sign_in, throttle
from app.identity.models import Credential
from app.identity.sessions import Browser, Signed
from app.kernel import db, rates
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_


async def with_password(signed: Signed, password: str, browser: Browser) -> str:
    """Confirm with the password; returns the session's new secret.

    Failures are counted for this session alone: nobody else can keep its owner from confirming.

    Raises:
        Invalid: it is not the password.
        TooMany: this session failed too often.
        NotFound: the session ended meanwhile.
    """
    tenant_id, name = signed.session.tenant_id, f"session:{signed.session.id}"
    await db.read(throttle.check, tenant_id, name, browser.ip_prefix)
    rates.of_process().hit("sign_in", tenant_id, name, browser.ip_prefix)
    credential = await db.read(passwords.of_user, signed.user)
    if not await passwords.is_right(credential.argon2id if credential else None, password):
        await db.transaction(_refuse, signed, name, browser)
        raise Invalid(FieldError("password", N_("This is not your password.")))
    return await db.transaction(_confirm, signed, credential, name, browser)


def refuse(work: Work, signed: Signed, why: str) -> None:
    """Put on record that a confirmation failed."""
    facts.record(
        work,
        "identity.session.step_up",
        sessions.person(signed),
        target=("session", signed.session.id),
        outcome="refused",
        stage="authorize",
        reason=why,
    )


def _refuse(work: Work, signed: Signed, name: str, browser: Browser) -> None:
    throttle.failed(work, signed.session.tenant_id, name, browser.ip_prefix)
    refuse(work, signed, "wrong_password")


def _confirm(
    work: Work, signed: Signed, credential: Credential | None, name: str, browser: Browser
) -> str:
    throttle.succeeded(work, signed.session.tenant_id, name, browser.ip_prefix)
    current = passwords.of_user(work.session, signed.user)
    if current is None or credential is None or current.id != credential.id:
        raise Invalid(FieldError("password", N_("This is not your password.")))
    return sessions.step_up(work, signed, [sign_in.PASSWORD])
