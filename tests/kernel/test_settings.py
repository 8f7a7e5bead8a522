"""What the operator sets."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.kernel.settings import Settings, current, sqlalchemy_url
from app.operator.refusing import Refused, chosen_settings

pytestmark = pytest.mark.requirement("KERNEL-3")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in list(os.environ):
        if name.startswith("ASSENT_"):
            monkeypatch.delenv(name)
    current.cache_clear()


def test_nothing_needs_to_be_set() -> None:
    chosen = Settings()

    assert chosen.origin == "http://localhost:8000"
    assert chosen.database.endswith("/var/assent.db")
    assert chosen.database.startswith("sqlite:///")


def test_a_variable_nobody_knows_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_PUBLIC_ULR", "https://acme.example")

    with pytest.raises(ValidationError, match="ASSENT_PUBLIC_ULR"):
        Settings()


def test_lists_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_TRUSTED_PROXIES", "10.0.0.0/8, 192.168.0.0/16,")

    assert Settings().trusted_proxies == ["10.0.0.0/8", "192.168.0.0/16"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRUSTED_PROXIES", "10.0.0.0/8,the-proxy"),
        ("OUTBOUND_ALLOW", "models.internal"),
        ("OUTBOUND_ALLOW", "models.internal:8080,https://models.internal"),
        ("RATE_TOKEN", "often"),
        ("RATE_SESSIONS", "600"),
    ],
)
def test_what_is_malformed_stops_the_start_and_is_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ASSENT_{name}", value)

    with pytest.raises(Refused, match=f"ASSENT_{name}: "):
        chosen_settings()


def test_providers_of_sign_ins_are_named_in_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "ISSUER": "https://id.acme.example",
        "CLIENT_ID": "assent",
        "CLIENT_SECRET": "s3cret-of-acme",
        "TENANT": "acme",
    }.items():
        monkeypatch.setenv(f"ASSENT_OIDC__CORP__{name}", value)

    chosen = Settings()

    assert chosen.oidc["corp"].issuer == "https://id.acme.example"
    assert "s3cret-of-acme" not in repr(chosen)


def test_making_accounts_needs_a_role(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "ISSUER": "https://id.acme.example",
        "CLIENT_ID": "assent",
        "TENANT": "acme",
        "ACCOUNTS": "create",
    }.items():
        monkeypatch.setenv(f"ASSENT_OIDC__CORP__{name}", value)

    with pytest.raises(ValidationError, match="ROLE"):
        Settings()


@pytest.mark.parametrize("origin", ["ftp://acme.example", "https://acme.example/console", "acme"])
def test_the_public_address_is_an_origin(monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    monkeypatch.setenv("ASSENT_PUBLIC_URL", origin)

    with pytest.raises(ValidationError, match="https://host"):
        Settings()


def test_plain_cookies_are_for_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_PLAIN_COOKIE", "true")
    assert Settings().plain_cookie

    monkeypatch.setenv("ASSENT_PUBLIC_URL", "http://acme.example")
    with pytest.raises(ValidationError, match="PLAIN_COOKIE"):
        Settings()


def test_a_secret_may_be_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ASSENT_MASTER_KEY").write_text("from-a-file\n")
    monkeypatch.setenv("ASSENT_SECRETS_DIR", str(tmp_path))

    chosen = Settings()

    assert chosen.master_key is not None
    assert chosen.master_key.get_secret_value() == "from-a-file"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_a_postgresql_url_means_the_driver_we_ship(scheme: str) -> None:
    assert sqlalchemy_url(f"{scheme}://u@h/d") == "postgresql+psycopg://u@h/d"
