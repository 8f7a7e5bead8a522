"""What one writes with FastAPI and SQLModel in an afternoon: the same four rows in one commit.

A session for each request, `BEGIN IMMEDIATE`, a plain `def` route; no policy at all. It keeps keys
and an audit table, as the subject does. `python -m tests.bench.naive FILE PORT` serves it.
"""

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, Header
from pydantic import BaseModel
from sqlalchemy import JSON, Engine, event
from sqlmodel import Field, Session, SQLModel, create_engine

from app.kernel import ids


class Trip(SQLModel, table=True):
    """The business."""

    __tablename__ = "naive_trip"
    id: str = Field(primary_key=True)
    title: str = ""
    version: int = 0
    updated_at: datetime


class Audit(SQLModel, table=True):
    """Who did what."""

    __tablename__ = "naive_audit"
    id: int | None = Field(default=None, primary_key=True)
    at: datetime
    user: str
    command: str
    record: str = Field(index=True)
    input: dict[str, Any] = Field(sa_type=JSON)
    changes: dict[str, Any] = Field(sa_type=JSON)


class Outcome(SQLModel, table=True):
    """Answers by key."""

    __tablename__ = "naive_outcome"
    key: str = Field(primary_key=True)
    answer: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime


class Outbox(SQLModel, table=True):
    """What has to be told."""

    __tablename__ = "naive_outbox"
    id: str = Field(primary_key=True)
    kind: str
    data: dict[str, Any] = Field(sa_type=JSON)
    created_at: datetime


class Body(BaseModel):
    """A call."""

    input: dict[str, Any]


def create_app(file: str) -> FastAPI:
    """The service, on a SQLite file of its own."""
    engine = made_engine(file)
    app = FastAPI()

    def session() -> Iterator[Session]:
        with Session(engine) as opened:
            yield opened

    @app.post("/v1/commands/{code}/calls")
    def call(
        code: str,
        body: Body,
        session: Annotated[Session, Depends(session)],
        idempotency_key: Annotated[str, Header()],
    ) -> dict[str, Any]:
        if first := session.get(Outcome, idempotency_key):
            return first.answer
        now, id = datetime.now(UTC), str(body.input["targetRecordId"])
        trip = session.get(Trip, id) or Trip(id=id, updated_at=now)
        before, trip.title = trip.title, str(body.input["title"])
        trip.version, trip.updated_at = trip.version + 1, now
        changes = {"title": [before, trip.title]}
        answer = {"callId": ids.ulid(), "cmdCode": code, "record": id, "version": trip.version}
        session.add(trip)
        session.add(
            Audit(at=now, user="u", command=code, record=id, input=body.input, changes=changes)
        )
        session.add(Outcome(key=idempotency_key, answer=answer, created_at=now))
        session.add(Outbox(id=ids.ulid(), kind=f"{code}d", data={"id": id}, created_at=now))
        session.commit()
        return answer

    return app


def made_engine(file: str) -> Engine:
    """SQLite as one should set it up."""
    engine = create_engine(
        f"sqlite:///{file}", connect_args={"timeout": 60, "check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    tables = [SQLModel.metadata.tables[f"naive_{name}"] for name in TABLES]
    SQLModel.metadata.create_all(engine, tables=tables)
    return engine


TABLES = ("trip", "audit", "outcome", "outbox")

if __name__ == "__main__":
    uvicorn.run(
        create_app(sys.argv[1]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        log_level="warning",
        access_log=False,
        loop="uvloop",
        http="httptools",
    )
