"""Public faults of HTTP stacks, tried on ours: they must answer, and answer rightly.

A quadratic parser does not answer within the patience of `edge_server`; nothing else is timed.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles

from app.kernel.asgi.bodies import BodyLimit
from app.kernel.asgi.heads import HeadLimit
from tests.edge_server import ask, get, serving, status_of

MIB = 1 << 20


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("site")
    (folder / "static").mkdir()
    (folder / "static" / "app.css").write_text("body{}")
    (folder / "secret.txt").write_text("hunter2")
    (folder / "static-secret").mkdir()
    (folder / "static-secret" / "x").write_text("hunter2")
    with serving(application(folder / "static")) as listening:
        yield listening


def application(static: Path) -> HeadLimit:
    web = FastAPI(openapi_url=None)
    web.mount("/static", StaticFiles(directory=static))

    async def form(request: Request) -> dict[str, int]:
        return {"fields": len(await request.form())}

    async def typed(body: dict[str, int]) -> dict[str, int]:
        return body

    web.add_api_route("/form", form, methods=["POST"])
    web.add_api_route("/typed", typed, methods=["POST"])
    return HeadLimit(BodyLimit(web))


def post(port: int, path: str, kind: str, body: bytes) -> int:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return status_of(ask(port, head.encode("latin-1"), body))


@pytest.mark.requirement("SEC-P34")
@pytest.mark.parametrize(
    "path",
    [
        "/static/../secret.txt", "/static/%2e%2e/secret.txt", "/static/..%2fsecret.txt",
        "/static/%2e%2e%2fsecret.txt", "/static/..%5csecret.txt", "/static//../secret.txt",
        "/static/..;/secret.txt", "/static/../static-secret/x", "/static-secret/x",
        "/static/....//secret.txt", "/static/%00/../../secret.txt",
        "/static/app.css/../../secret.txt",
    ],
)  # fmt: skip
def test_no_path_leads_out_of_the_static_folder(path: str, port: int) -> None:
    answer = get(port, path)

    assert status_of(answer) in (400, 404)
    assert b"hunter2" not in answer
    assert status_of(get(port, "/static/app.css")) == 200


@pytest.mark.requirement("SEC-P32")
@pytest.mark.parametrize(
    "ranges", ["bytes=" + "0-," * 5000, "bytes=" + "0-0," * 4000 + "1-2", "bytes=" + "1" * 16_000]
)
def test_a_range_made_to_be_slow_is_answered(ranges: str, port: int) -> None:
    answer = get(port, "/static/app.css", range=ranges[:16_000])

    assert status_of(answer) in (200, 206, 400, 416)
    assert len(answer) < 4000, "and is not answered with the file over and over"


@pytest.mark.requirement("SEC-P36")
@pytest.mark.parametrize(
    "kind",
    [
        "application/x-www-form-urlencoded; !=\"" + "\\" * 15_000,
        "multipart/form-data; boundary=" + "a" * 15_000,
        "multipart/form-data; " + ";" * 15_000,
        "application/json; " + "a=" * 7_000,
        "application/" + "+" * 15_000 + "json",
    ],
    ids=["escapes", "boundary", "semicolons", "parameters", "suffix"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/form", "/typed"])
def test_a_content_type_made_to_be_slow_is_answered(kind: str, path: str, port: int) -> None:
    assert post(port, path, kind, b"{}") in (200, 400, 413, 415, 422)


@pytest.mark.requirement("SEC-P37", "SEC-P33")
@pytest.mark.parametrize(
    ("kind", "body", "statuses"),
    [
        ("application/x-www-form-urlencoded", b"a;" * 30_000, (200, 400)),
        ("application/x-www-form-urlencoded", b"a&" * 30_000, (200, 400)),
        ("application/x-www-form-urlencoded", b"a&" * (MIB // 2), (413,)),
        ("multipart/form-data; boundary=x", b"x" * 60_000, (200, 400)),
        ("multipart/form-data; boundary=x", b"\r\n" * 30_000, (200, 400)),
        ("multipart/form-data; boundary=x", b"--x\r\n" + b"a: b\r\n" * 10_000, (200, 400)),
        ("multipart/form-data; boundary=x", b"--x\r\n\r\n\r\n" * 7_000, (200, 400)),
        ("multipart/form-data; boundary=x", b"x" * MIB, (413,)),
    ],
    ids=lambda value: None if isinstance(value, (bytes, tuple)) else value.partition(";")[0],
)
def test_a_form_made_to_be_slow_is_answered(
    kind: str, body: bytes, statuses: tuple[int, ...], port: int
) -> None:
    assert post(port, "/form", kind, body) in statuses
