"""What a provider says of itself, fetched by us and cut down before anything sees it (SEC-21).

Of the document eight members count; endpoints must be https, or http on a loopback host that the
operator listed; algorithms are those we take. Document and keys are kept an hour; an unknown key id
fetches the keys again once a minute at most.
"""

import ipaddress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from app.identity.oidc.errors import ProviderUnusable
from app.kernel import clock, http, settings
from app.kernel import json as strict_json
from app.kernel.errors import Invalid
from app.kernel.http import Pairs
from app.kernel.settings import OidcProvider

ALGORITHMS = ("RS256", "PS256", "ES256", "EdDSA")
KEPT = timedelta(hours=1)
KEYS_AGAIN = timedelta(minutes=1)
WELL_KNOWN = "/.well-known/openid-configuration"


class Metadata(BaseModel):
    """The eight members we look at; what else the document says is dropped unread."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    issuer: StrictStr
    authorization_endpoint: StrictStr
    token_endpoint: StrictStr
    jwks_uri: StrictStr
    userinfo_endpoint: StrictStr | None = None
    end_session_endpoint: StrictStr | None = None
    id_token_signing_alg_values_supported: list[StrictStr] = Field(default=["RS256"])
    authorization_response_iss_parameter_supported: StrictBool = False

    @property
    def algorithms(self) -> list[str]:
        """The algorithms that both sides take."""
        return [name for name in ALGORITHMS if name in self.id_token_signing_alg_values_supported]

    @property
    def endpoints(self) -> list[str]:
        """Every address in it."""
        named = (self.authorization_endpoint, self.token_endpoint, self.jwks_uri)
        return [*named, *filter(None, (self.userinfo_endpoint, self.end_session_endpoint))]


@dataclass(slots=True)
class _Kept:
    metadata: Metadata
    fetched_at: datetime
    keys: KeySet | None = None
    keys_fetched_at: datetime | None = None
    names: set[str] = field(default_factory=set)


_kept: dict[str, _Kept] = {}


async def metadata(provider: OidcProvider) -> Metadata:
    """The provider's document, at most an hour old.

    Raises:
        ProviderUnusable: it cannot be fetched, names another issuer, or has an unsafe address.
    """
    return (await _known(provider)).metadata


async def keys(provider: OidcProvider, kid: str | None) -> KeySet:
    """The provider's keys, at most an hour old; fetched again for a `kid` that is not among them.

    Raises:
        ProviderUnusable: they cannot be fetched or read.
    """
    known, now = await _known(provider), clock.now()
    fetched = known.keys_fetched_at
    is_old = fetched is None or now - fetched > KEPT
    is_missing = kid is not None and kid not in known.names
    if known.keys is None or is_old or (is_missing and fetched and now - fetched > KEYS_AGAIN):
        known.keys_fetched_at = now  # first, so that a provider that fails is not asked at once
        known.keys = _key_set(await _json(provider, known.metadata.jwks_uri))
        known.names = {key.kid for key in known.keys.keys if key.kid}
    return known.keys


def forget() -> None:
    """Drop what is kept of every provider."""
    _kept.clear()


def allowed(provider: OidcProvider) -> Pairs:
    """The pairs exempt from the guard: the issuer's own, and what the operator listed (SEC-56)."""
    return frozenset({_pair(provider.issuer)}) | http.pairs(
        ",".join(settings.current().outbound_allow)
    )


async def _known(provider: OidcProvider) -> _Kept:
    known = _kept.get(provider.issuer)
    if known is None or clock.now() - known.fetched_at > KEPT:
        address = provider.issuer.rstrip("/") + WELL_KNOWN
        known = _Kept(_cut(provider, await _json(provider, address)), clock.now())
        _kept[provider.issuer] = known
    return known


def _cut(provider: OidcProvider, document: Any) -> Metadata:
    try:
        found = Metadata.model_validate(document)
    except ValidationError:
        raise ProviderUnusable("metadata") from None  # the original quotes the document
    if found.issuer != provider.issuer:
        raise ProviderUnusable("issuer")
    if not found.algorithms:
        raise ProviderUnusable("algorithms")
    exempt = allowed(provider)
    if not all(_is_safe(address, exempt) for address in found.endpoints):
        raise ProviderUnusable("endpoint")
    return found


def _is_safe(address: str, exempt: Pairs) -> bool:
    try:
        parts = urlsplit(address)
        if not parts.hostname or parts.username is not None or parts.fragment:
            return False
        if parts.scheme == "https":
            return True
        return parts.scheme == "http" and _is_loopback(parts.hostname) and _pair(address) in exempt
    except ValueError:
        return False


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _pair(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


async def _json(provider: OidcProvider, address: str) -> Any:
    try:
        async with http.client(allowed(provider)) as client:
            status, _, body = await http.fetch(client, "GET", address)
        if status != 200:
            raise ProviderUnusable("status")
        return strict_json.loads(body)
    except Invalid:
        raise ProviderUnusable("json") from None
    except (http.Refused, http.Unreachable) as refused:
        raise ProviderUnusable(refused.rule) from None


def _key_set(document: Any) -> KeySet:
    """The keys that may verify a signature; one we cannot read is left out."""
    listed = document.get("keys") if isinstance(document, dict) else None
    usable = []
    for jwk in listed if isinstance(listed, list) else ():
        if not isinstance(jwk, dict) or jwk.get("use", "sig") != "sig" or jwk.get("kty") == "oct":
            continue
        try:
            usable += KeySet.import_key_set({"keys": [jwk]}).keys
        except (JoseError, ValueError, TypeError, KeyError):
            continue
    if not usable:
        raise ProviderUnusable("keys")
    return KeySet(usable)
