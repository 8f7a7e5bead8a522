"""Tokens of forms: an HMAC of the session, or of the cookie a browser has before one (SEC-35)."""

from app.kernel import keyring

PURPOSE = "csrf"


def of_session(session_id: str) -> str:
    """The token of every form of this session."""
    return keyring.sign(PURPOSE, f"session:{session_id}")


def of_pre_session(value: str) -> str:
    """The token of forms before there is a session."""
    return keyring.sign(PURPOSE, f"pre:{value}")


def is_of_session(token: str, session_id: str) -> bool:
    """Whether `token` was made for this session."""
    return keyring.verifies(PURPOSE, f"session:{session_id}", token)


def is_of_pre_session(token: str, value: str) -> bool:
    """Whether `token` was made for the browser with this cookie."""
    return keyring.verifies(PURPOSE, f"pre:{value}", token)
