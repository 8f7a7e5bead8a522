"""Servers that are programs: named in the operator's file alone, as that runs something (SEC-68).

{"acme": {"files": {"command": ["/usr/bin/files-server", "--read-only"],
                    "env": {"ROOT": "/srv"}, "cwd": "/srv"}}}
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from sqlmodel import Session

from app.identity.models import Tenant
from app.kernel import settings
from app.outside.endpoint import Program
from app.outside.models import McpServer
from app.outside.results import Lost


class Listed(BaseModel):
    """One program of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: tuple[str, ...] = Field(min_length=1)
    env: dict[str, str] = {}
    cwd: str = ""


_FILE = TypeAdapter(dict[str, dict[str, Listed]])


def listed(session: Session, tenant_id: str) -> Mapping[str, Listed]:
    """The programs that the operator lets a tenant use, by name."""
    path = settings.current().mcp_programs
    tenant = session.get(Tenant, tenant_id)
    if path is None or tenant is None:
        return {}
    return _read(path, _stamp(path)).get(tenant.slug, {})


def of(session: Session, server: McpServer) -> Program:
    """The program of a server.

    Raises:
        Lost: the operator's file does not name it any more.
    """
    found = listed(session, server.tenant_id).get(server.name)
    if found is None:
        raise Lost("not_in_file")
    return Program(found.command, found.env, found.cwd)


@lru_cache(maxsize=4)
def _read(path: Path, _stamped: float) -> dict[str, dict[str, Listed]]:
    try:
        return _FILE.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise Lost("file_unreadable") from None


def _stamp(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
