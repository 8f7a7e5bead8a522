"""What one writes with fastmcp and SQLModel in an afternoon: the same four rows in one commit.

In its own environment: `python mcp_peer.py FILE PORT`. A session for each call, `BEGIN IMMEDIATE`,
no policy at all; it keeps keys and an audit table, as the subject does.
"""

import sys
import uuid
from datetime import UTC, datetime
from typing import Any

from fastmcp import FastMCP  # type: ignore[import-not-found,unused-ignore]
from sqlalchemy import JSON, event
from sqlmodel import Field, Session, SQLModel, create_engine


class Trip(SQLModel, table=True):
    """The business."""

    id: str = Field(primary_key=True)
    title: str = ""
    version: int = 0


class Audit(SQLModel, table=True):
    """Who did what."""

    id: int | None = Field(default=None, primary_key=True)
    at: datetime
    user: str
    record: str = Field(index=True)
    changes: dict[str, Any] = Field(sa_type=JSON)


class Outcome(SQLModel, table=True):
    """Answers by key."""

    key: str = Field(primary_key=True)
    answer: dict[str, Any] = Field(sa_type=JSON)


class Outbox(SQLModel, table=True):
    """What has to be told."""

    id: str = Field(primary_key=True)
    data: dict[str, Any] = Field(sa_type=JSON)


engine = create_engine(
    f"sqlite:///{sys.argv[1]}", connect_args={"timeout": 60, "check_same_thread": False}
)
served = FastMCP("peer")


@event.listens_for(engine, "connect")
def _prepare(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


@event.listens_for(engine, "begin")
def _begin(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


@served.tool(name="update")  # type: ignore[untyped-decorator,unused-ignore]
def update(record: str, title: str, key: str) -> dict[str, Any]:
    """Change a title."""
    with Session(engine) as session:
        if first := session.get(Outcome, key):
            return first.answer
        trip = session.get(Trip, record) or Trip(id=record)
        changes = {"title": [trip.title, title]}
        trip.title, trip.version = title, trip.version + 1
        answer = {"record": record, "version": trip.version}
        session.add(trip)
        session.add(Audit(at=datetime.now(UTC), user="u", record=record, changes=changes))
        session.add(Outcome(key=key, answer=answer))
        session.add(Outbox(id=uuid.uuid4().hex, data={"id": record}))
        session.commit()
    return answer


if __name__ == "__main__":
    SQLModel.metadata.create_all(engine)
    served.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[2]),
        path="/mcp",
        stateless_http=True,
        json_response=True,
        show_banner=False,
        log_level="error",
    )
