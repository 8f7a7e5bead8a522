"""`auth.*` before a connection: register, log in, refresh, renew, rekey (aun.md, 4.3).

They run on a socket that has proved nothing yet; the signatures in their parameters are the proof.
`auth.connect`, which makes the socket a connection, is the gateway's.
"""

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from sqlalchemy import delete
from sqlmodel import col

from app.aun import login, queries, registration, tokens
from app.aun.caller import Stranger
from app.aun.errors import BadParams, LoginFailed, Throttled
from app.aun.method import Method
from app.aun.names import Aid
from app.aun.pki import certificates, chain, issuers, keys
from app.aun.pki.keys import PublicKey
from app.aun.pki_models import Certificate, DeviceKey
from app.aun.tokens import NoRefresh
from app.aun.wire import Params, Result
from app.kernel import clock, rates
from app.kernel.db import Work
from app.kernel.errors import TooMany

RENEW_BEFORE = timedelta(days=30)  # a login gives a new certificate when the old one ends so soon


def _p256(text: str) -> str:
    keys.of_base64(text)
    return text


PublicKeyText = Annotated[str, Field(max_length=200), AfterValidator(_p256)]
Text = Annotated[str, Field(min_length=1, max_length=200)]
Signature = Annotated[str, Field(min_length=1, max_length=200)]
Pem = Annotated[str, Field(max_length=8_192)]


class CreateAid(Params):
    """`auth.create_aid`."""

    aid: Aid
    public_key: PublicKeyText
    curve: Literal["P-256"] = "P-256"


class Login1(Params):
    """`auth.aid_login1`."""

    aid: Aid
    cert: Pem
    client_nonce: Text


class Proof(Params):
    """What every second step brings: the nonce of the first, signed."""

    aid: Aid
    request_id: Text
    nonce: Text
    signature: Signature


class Login2(Proof):
    """`auth.aid_login2`."""

    client_time: Text


class Rekey(Proof):
    """`auth.rekey`."""

    new_public_key: PublicKeyText


class Refresh(Params):
    """`auth.refresh_token`."""

    refresh_token: str = Field(max_length=200)


class Created(Result):
    """A registered AID."""

    aid: str
    cert: str
    ca_cert: str
    curve: str = "P-256"


class Challenge(Result):
    """What to sign, and the gateway's own proof."""

    request_id: str
    nonce: str
    auth_cert: str
    client_nonce_signature: str


class LoggedIn(Result):
    """Tokens; a certificate where the client's ends soon, or is not the newest."""

    aid: str
    access_token: str
    refresh_token: str
    expires_in: int
    new_cert: str | None = None
    active_cert: str | None = None


def create_aid(work: Work, stranger: Stranger, params: CreateAid) -> Created:
    """Register an AID for a key, or get its certificate again."""
    _count(stranger)
    tenant_id = _tenant(params.aid)
    key = keys.of_base64(params.public_key)
    row = registration.register(work, tenant_id, params.aid, key)
    return Created(
        aid=params.aid,
        cert=certificates.pem(row.der),
        ca_cert=chain.pem(work.session, tenant_id),
    )


def aid_login1(work: Work, stranger: Stranger, params: Login1) -> Challenge:
    """Get something to sign, from a gateway that proves itself."""
    _count(stranger)
    tenant_id = _tenant(params.aid)
    made = login.begin(work, tenant_id, params.aid, params.cert)
    gateway = issuers.gateway(work.session, tenant_id)
    return Challenge(
        request_id=made.id,
        nonce=made.nonce,
        auth_cert=certificates.pem(issuers.one(work.session, tenant_id).auth_certificate),
        client_nonce_signature=keys.sign(gateway.key, params.client_nonce),
    )


def aid_login2(work: Work, stranger: Stranger, params: Login2) -> LoggedIn:
    """Get tokens for a signature over nonce and time."""
    _count(stranger)
    tenant_id = _tenant(params.aid)
    proved = _proved(work, tenant_id, params, f"{params.nonce}:{params.client_time}")
    pair = tokens.begin(work, tenant_id, params.aid)
    return LoggedIn(
        aid=params.aid,
        access_token=pair.access_token,
        refresh_token=pair.refresh_token,
        expires_in=pair.expires_in,
        **_newer(work, proved),
    )


def refresh_token(work: Work, stranger: Stranger, params: Refresh) -> dict[str, Any]:
    """Get the next tokens of a chain; a failure is a result, as clients expect it."""
    _count(stranger)
    try:
        pair = tokens.refresh(work, params.refresh_token)
    except NoRefresh as refused:
        return {
            "success": False,
            "error": refused.says,
            "relogin_required": refused.needs_login,
        }
    return {
        "success": True,
        "access_token": pair.access_token,
        "refresh_token": pair.refresh_token,
        "expires_in": pair.expires_in,
    }


def renew_cert(work: Work, stranger: Stranger, params: Proof) -> dict[str, Any]:
    """Get another certificate for the same key; everything made with it stays valid."""
    _count(stranger)
    tenant_id = _tenant(params.aid)
    proved = _proved(work, tenant_id, params, params.nonce)
    return _certificate(work, tenant_id, params.aid, certificates.public_key(proved))


def rekey(work: Work, stranger: Stranger, params: Rekey) -> dict[str, Any]:
    """Replace the key: certificates of the old one are revoked, prekeys forgotten."""
    _count(stranger)
    tenant_id = _tenant(params.aid)
    proved = _proved(work, tenant_id, params, params.nonce + params.new_public_key)
    old, new = certificates.public_key(proved), keys.of_base64(params.new_public_key)
    if old == new:
        raise BadParams("new_public_key is the old one")
    made = _certificate(work, tenant_id, params.aid, new)
    certificates.revoke(work, tenant_id, params.aid, but=new)
    work.session.execute(
        delete(DeviceKey).where(
            col(DeviceKey.tenant_id) == tenant_id, col(DeviceKey.aid) == params.aid
        )
    )
    return made


def _count(stranger: Stranger) -> None:
    try:
        rates.of_process().hit("aun_auth", stranger.address)
    except TooMany as refused:
        raise Throttled(retry_after_ms=refused.retry_after_s * 1_000) from refused


def _tenant(aid: str) -> str:
    _, _, domain = aid.partition(".")
    tenant_id = issuers.of_domain(domain)
    if tenant_id is None:
        raise BadParams(f"not an issuer here: {domain}")
    return tenant_id


def _proved(work: Work, tenant_id: str, params: Proof, signed: str) -> Certificate:
    return login.finish(
        work, tenant_id, params.aid, params.request_id, params.nonce, signed, params.signature
    )


def _newer(work: Work, proved: Certificate) -> dict[str, str]:
    active = queries.active_certificate(work.session, proved.tenant_id, proved.aid)
    if active is None or active.key_fingerprint != proved.key_fingerprint:
        raise LoginFailed(f"{login.SECOND}: certificate is revoked")
    if active.not_after < clock.now() + RENEW_BEFORE:
        key = certificates.public_key(active)
        active = certificates.issue(work, proved.tenant_id, proved.aid, key)
        return {"new_cert": certificates.pem(active.der)}
    is_newest = active.serial == proved.serial
    return {} if is_newest else {"active_cert": certificates.pem(active.der)}


def _certificate(work: Work, tenant_id: str, aid: str, key: PublicKey) -> dict[str, Any]:
    row = certificates.issue(work, tenant_id, aid, key)
    return {
        "aid": aid,
        "cert": certificates.pem(row.der),
        "ca_cert": chain.pem(work.session, tenant_id),
    }


BEFORE: dict[str, Method] = {
    "auth.create_aid": Method(create_aid, CreateAid),
    "auth.aid_login1": Method(aid_login1, Login1),
    "auth.aid_login2": Method(aid_login2, Login2),
    "auth.refresh_token": Method(refresh_token, Refresh),
    "auth.renew_cert": Method(renew_cert, Proof),
    "auth.rekey": Method(rekey, Rekey),
}
