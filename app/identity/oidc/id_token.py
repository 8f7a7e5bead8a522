"""An ID token: proof of who a provider's account is, or refused (SEC-22)."""

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.util import urlsafe_b64encode
from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from app.identity.oidc import discovery
from app.identity.oidc.discovery import Metadata
from app.identity.oidc.errors import ProviderRefused
from app.kernel import clock
from app.kernel import json as strict_json
from app.kernel.errors import Invalid
from app.kernel.settings import OidcProvider

LONGEST = 16_384  # characters
LEEWAY = timedelta(seconds=60)  # clocks of providers are not ours
OLDEST = timedelta(minutes=10)  # as old as the dance may be
HASHES = {
    "RS256": hashlib.sha256,
    "PS256": hashlib.sha256,
    "ES256": hashlib.sha256,
    "EdDSA": hashlib.sha512,  # Ed25519
}


class Claims(BaseModel):
    """What we look at of an ID token."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    iss: StrictStr
    sub: StrictStr = Field(min_length=1, max_length=255)
    aud: StrictStr | list[StrictStr]
    azp: StrictStr | None = None
    exp: StrictInt
    iat: StrictInt
    nonce: StrictStr
    auth_time: StrictInt | None = None
    at_hash: StrictStr | None = None
    name: str | None = None
    preferred_username: str | None = None
    email: str | None = None
    email_verified: bool = False


async def read(
    provider: OidcProvider, metadata: Metadata, token: str, nonce: str, access_token: str | None
) -> Claims:
    """The claims of a sound ID token that was made for us and for this very sign-in.

    Raises:
        ProviderRefused: one of the checks failed.
        ProviderUnusable: the provider's keys cannot be read.
    """
    if len(token) > LONGEST:
        raise ProviderRefused("size")
    algorithm, kid = _header(token)
    if algorithm not in metadata.algorithms:
        raise ProviderRefused("algorithm")
    keys = await discovery.keys(provider, kid)
    try:
        proven = jws.deserialize_compact(
            token, keys, algorithms=[algorithm], registry=_Registry(algorithm)
        )
        claims = Claims.model_validate(strict_json.loads(proven.payload))
    except (JoseError, ValueError, Invalid, ValidationError):
        raise ProviderRefused("token") from None  # the original may quote it
    _check(provider, claims, nonce)
    if claims.at_hash is not None:
        _check_at_hash(claims.at_hash, access_token, algorithm)
    return claims


def _header(token: str) -> tuple[str, str | None]:
    try:
        header: dict[str, Any] = jws.extract_compact(token.encode()).headers()
    except (JoseError, ValueError):
        raise ProviderRefused("token") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(kid, str | None):
        raise ProviderRefused("token")
    return algorithm, kid


class _Registry(jws.JWSRegistry):
    """One algorithm; the library would warn of the name `EdDSA`, which providers go on using."""

    def __init__(self, algorithm: str) -> None:
        super().__init__(algorithms=[algorithm], strict_check_header=False)
        self._one = algorithm

    def get_alg(self, name: str) -> Any:
        """The algorithm `name`, if it is the one."""
        if name != self._one:
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]


def _check(provider: OidcProvider, claims: Claims, nonce: str) -> None:
    audience = [claims.aud] if isinstance(claims.aud, str) else claims.aud
    if claims.iss != provider.issuer:
        raise ProviderRefused("iss")
    if provider.client_id not in audience:
        raise ProviderRefused("aud")
    if claims.azp != provider.client_id and (len(audience) > 1 or claims.azp is not None):
        raise ProviderRefused("azp")
    now = clock.now()
    if _time(claims.exp) <= now - LEEWAY:
        raise ProviderRefused("exp")
    if not now - OLDEST - LEEWAY <= _time(claims.iat) <= now + LEEWAY:
        raise ProviderRefused("iat")
    if not hmac.compare_digest(claims.nonce.encode(), nonce.encode()):
        raise ProviderRefused("nonce")


def _check_at_hash(at_hash: str, access_token: str | None, algorithm: str) -> None:
    if access_token is None:
        raise ProviderRefused("at_hash")
    digest = HASHES[algorithm](access_token.encode()).digest()  # of a known algorithm, see above
    half = urlsafe_b64encode(digest[: len(digest) // 2])
    if not hmac.compare_digest(half, at_hash.encode()):
        raise ProviderRefused("at_hash")


def _time(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, clock.now().tzinfo)
    except (OverflowError, ValueError, OSError):
        raise ProviderRefused("time") from None
