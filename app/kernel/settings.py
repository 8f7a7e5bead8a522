"""What the operator sets: `ASSENT_*` in the environment, or a file each in a secrets folder.

What is malformed stops the start with a line that names the variable.
"""

import ipaddress
import os
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    SecretStr,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

PREFIX = "ASSENT_"
FOREIGN = (
    "ASSENT_TEST_",
    "ASSENT_E2E_",
    "ASSENT_REAL_MODEL",
)  # read by the test suite, not by the server
NOT_FIELDS = {"ASSENT_SECRETS_DIR"}


def _comma_separated(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _networks(listed: list[str]) -> list[str]:
    for text in listed:
        ipaddress.ip_network(text, strict=False)
    return listed


def _host_port_pairs(listed: list[str]) -> list[str]:
    from app.kernel import http  # noqa: PLC0415 - most deployments list none, and it takes a while

    http.pairs(",".join(listed))
    return listed


def _rate(text: str) -> str:
    import limits  # noqa: PLC0415 - likewise

    limits.parse(text)
    return text


def _domain(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", text):
        raise ValueError("a domain in small letters, with a dot in it")
    return text


def _model(text: str) -> str:
    if text != "offline" and not re.fullmatch(r"(openai|anthropic|scripted):\S+", text):
        raise ValueError("offline, openai:NAME or anthropic:NAME")
    return text


def _base_url(text: str) -> str:
    parts = urlsplit(text)
    is_base = parts.scheme in {"http", "https"} and parts.hostname and not parts.username
    if text and (not is_base or parts.query or parts.fragment):
        raise ValueError("an address of the form https://host/path")
    return text.rstrip("/")


Domain = Annotated[str, AfterValidator(_domain)]
ModelName = Annotated[str, AfterValidator(_model)]
BaseUrl = Annotated[str, AfterValidator(_base_url)]
CommaList = Annotated[list[str], NoDecode, BeforeValidator(_comma_separated)]
Networks = Annotated[CommaList, AfterValidator(_networks)]
Pairs = Annotated[CommaList, AfterValidator(_host_port_pairs)]
Rate = Annotated[str, AfterValidator(_rate)]  # `60/minute`


class OidcProvider(BaseModel, extra="forbid"):
    """One provider of sign-ins: `ASSENT_OIDC__<NAME>__ISSUER` and so on (security.md, 3)."""

    issuer: str
    client_id: str
    client_secret: SecretStr | None = None
    tenant: str
    label: str = ""
    accounts: Literal["link", "create"] = "link"
    role: str = ""  # with `create`: the code of the role a new user gets
    org: str = ""  # with `create`: the path or name of its organisation; empty is the root

    @model_validator(mode="after")
    def _create_needs_a_role(self) -> Self:
        if self.accounts == "create" and not self.role:
            raise ValueError("ACCOUNTS=create needs a ROLE")
        return self


class Settings(BaseSettings):
    """Every setting of the process, with its default. Nothing prints them (SEC-80)."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=0, le=65535)
    data_dir: Path = Path("var")
    database_url: SecretStr | None = None
    public_url: str = ""  # empty: http://localhost:PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_port: int | None = None
    aun_issuer: Domain = "assent.localhost"
    aun_registration: Literal["reserved", "open", "closed"] = "reserved"
    trusted_proxies: Networks = []  # networks whose forwarded headers count
    plain_cookie: bool = False  # for browsers that refuse Secure cookies on http://localhost
    master_key: SecretStr | None = None
    checkpoint_dir: Path | None = None
    outbound_allow: Pairs = []  # host:port pairs exempt from the outbound guard
    oauth_registration: bool = False
    cimd_hosts: CommaList = []  # empty: client metadata documents of any public host
    cors_origins: CommaList = []  # for /mcp and /oauth/token, without credentials
    oidc: dict[str, OidcProvider] = {}
    packs_dir: Path | None = None  # a folder with packs, or commands for them, of one's own
    mcp_programs: Path | None = None  # a JSON file: outside servers that are programs, by tenant
    model: ModelName = "offline"  # of the profile `default`, as all MODEL_* (RUN-101)
    model_base_url: BaseUrl = ""
    model_api_key: SecretStr | None = None
    model_context_tokens: int = Field(default=128_000, ge=4_096)
    model_output_tokens: int = Field(default=4_096, ge=16)
    model_requires_finish: bool = True  # false for servers known to send no finish reason
    model_usage: Literal["sum", "last"] = "sum"  # last: every chunk repeats what was used so far
    model_call_ids: Literal["run", "response"] = "run"  # within what the ids of calls are unique
    model_max_tokens_field: Literal["new", "old"] = "new"  # old: `max_tokens`
    model_thinking: Literal["off", "low", "medium", "high"] = "off"
    model_price_input: float | None = Field(default=None, ge=0)  # of a million tokens
    model_price_output: float | None = Field(default=None, ge=0)
    model_currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")
    run_lease_s: float = Field(default=60.0, ge=1)  # of a run in hand; kept up every third of it
    runs_at_once: int = Field(default=8, ge=1)  # of one process
    metrics_open: bool = False
    log_format: Literal["auto", "json", "console"] = "auto"
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    retention_events_days: int = Field(default=7, ge=1)
    heartbeat_s: float = Field(default=15.0, gt=0)
    streams_per_user: int = Field(default=8, ge=1)
    rate_sessions: Rate = "600/minute"
    rate_calls: Rate = "120/minute"
    rate_writes: Rate = "60/minute"
    rate_token: Rate = "60/minute"  # noqa: S105 - a rate
    rate_device: Rate = "30/minute"
    rate_authorize: Rate = "30/minute"
    rate_sign_in: Rate = "10/minute"
    rate_register: Rate = "5/hour"
    rate_aun_auth: Rate = "60/minute"

    @model_validator(mode="after")
    def _has_an_origin(self) -> Self:
        parts = urlsplit(self.origin)
        is_origin = parts.scheme in {"http", "https"} and parts.hostname and not parts.path
        if not is_origin or parts.query or parts.username:
            raise ValueError("ASSENT_PUBLIC_URL has the form https://host or https://host:port")
        if self.plain_cookie and not (parts.scheme == "http" and parts.hostname == "localhost"):
            raise ValueError("ASSENT_PLAIN_COOKIE is for http://localhost only")
        return self

    @model_validator(mode="after")
    def _know_every_variable(self) -> Self:
        known = {PREFIX + name.upper() for name in type(self).model_fields} | NOT_FIELDS
        unknown = [
            name
            for name in os.environ
            if name.startswith(PREFIX)
            and not name.startswith(FOREIGN)
            and name not in known
            and not name.startswith("ASSENT_OIDC__")
        ]
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then files of `ASSENT_SECRETS_DIR` named alike."""
        folder = os.environ.get("ASSENT_SECRETS_DIR")
        files = (SecretsSettingsSource(settings_cls, folder),) if folder else ()
        return (init_settings, env_settings, *files)

    @property
    def origin(self) -> str:
        """The public origin, `scheme://host[:port]`, without a slash at the end."""
        return self.public_url.rstrip("/") or f"http://localhost:{self.port}"

    @property
    def database(self) -> str:
        """The SQLAlchemy URL of the database."""
        if self.database_url is not None:
            return sqlalchemy_url(self.database_url.get_secret_value())
        return f"sqlite:///{(self.data_dir / 'assent.db').absolute()}"

    @property
    def checkpoints(self) -> Path:
        """Where signed audit checkpoints are appended (SEC-76)."""
        return self.checkpoint_dir or self.data_dir / "checkpoints"


def sqlalchemy_url(url: str) -> str:
    """`url` with the driver we ship: `postgres://` and `postgresql://` mean psycopg 3."""
    scheme, _, rest = url.partition("://")
    return f"postgresql+psycopg://{rest}" if scheme in {"postgres", "postgresql"} else url


@cache
def current() -> Settings:
    """The settings of this process, read once.

    Raises:
        pydantic.ValidationError: a variable is malformed or unknown; nothing starts then.
    """
    return Settings()
