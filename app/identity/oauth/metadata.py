"""What the server says about itself: RFC 8414, and RFC 9728 for each door."""

from typing import Any

from app.identity.doors import Door
from app.identity.oauth import clients
from app.identity.oauth.adapter import METHODS
from app.identity.principal import Scope
from app.kernel import settings


def of_server() -> dict[str, Any]:
    """The document of `/.well-known/oauth-authorization-server`."""
    chosen = settings.current()
    oauth = f"{chosen.origin}/oauth"
    document = {
        "issuer": chosen.origin,
        "authorization_endpoint": f"{oauth}/authorize",
        "token_endpoint": f"{oauth}/token",
        "jwks_uri": f"{oauth}/jwks",
        "device_authorization_endpoint": f"{oauth}/device_authorization",
        "revocation_endpoint": f"{oauth}/revoke",
        "introspection_endpoint": f"{oauth}/introspect",
        "scopes_supported": [scope.value for scope in Scope],
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": list(clients.GRANT_TYPES),
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": METHODS,
        "revocation_endpoint_auth_methods_supported": METHODS,
        "introspection_endpoint_auth_methods_supported": METHODS,
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
        "protected_resources": [door.resource for door in Door],
    }
    if chosen.oauth_registration:
        document["registration_endpoint"] = f"{oauth}/register"
    return document


def of_door(door: Door) -> dict[str, Any]:
    """The document of one protected resource."""
    return {
        "resource": door.resource,
        "authorization_servers": [settings.current().origin],
        "scopes_supported": [scope.value for scope in door.scopes],
        "bearer_methods_supported": ["header"],
    }
