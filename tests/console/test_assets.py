"""Style, scripts and icon: served for ever under the name of their content, and small."""

import hashlib
import re

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.console import assets, refusals
from app.console.view import TEMPLATES

HTMX_4_0_1 = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
SWAGGER_UI_5_35_0 = {
    "swagger-ui-bundle.js": "e6a898692f2d768e807c3ba4626068a69a2c5dd960dd6c76f3e4d3a3de180af2",
    "swagger-ui.css": "5ed08757e53da3e026d6cbecc61fe5d43585c9560b302d534ad56692519a273d",
}


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    app.include_router(assets.router)
    refusals.install(app, lambda request: True)
    return TestClient(app)


def test_the_style_sheet_may_be_kept_for_ever_under_its_version(client: TestClient) -> None:
    answer = client.get(assets.static("app.css"))

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "etag" not in answer.headers
    assert answer.text.startswith("@layer reset, tokens, base, layout, components, utilities;")


def test_the_version_follows_the_content() -> None:
    before = assets.load().version

    assert re.fullmatch(r"[0-9a-f]{12}", before)
    assert assets.static("js/app.js") == f"/static/{before}/js/app.js"


def test_a_page_of_another_release_still_gets_a_style_but_does_not_keep_it(
    client: TestClient,
) -> None:
    answer = client.get("/static/000000000000/app.css")

    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "name",
    [
        "../pyproject.toml",
        "..%2fpyproject.toml",
        "%2e%2e/%2e%2e/pyproject.toml",
        "js/../../app/main.py",
        "js/..%5c..%5cpyproject.toml",
        "/etc/passwd",
        "vendor/README.md",
        "css/tokens.css",
        "js/",
        "js",
        "",
        "app.css%00.js",
    ],
)
def test_nothing_but_the_listed_files_is_served(client: TestClient, name: str) -> None:
    version = assets.load().version

    assert client.get(f"/static/{version}/app.css").status_code == 200
    assert client.get(f"/static/{version}/{name}").status_code == 404


@pytest.mark.requirement("UI-52")
def test_htmx_is_the_release_we_looked_at() -> None:
    body = assets.load().files["vendor/htmx.min.js"]

    assert hashlib.sha256(body).hexdigest() == HTMX_4_0_1


@pytest.mark.requirement("CMD-7")
def test_swagger_ui_is_the_release_we_looked_at(client: TestClient) -> None:
    for name, digest in SWAGGER_UI_5_35_0.items():
        served = client.get(assets.static(f"vendor/{name}"))

        assert hashlib.sha256(served.content).hexdigest() == digest


@pytest.mark.requirement("UI-104")
def test_the_style_of_no_page_is_larger_than_25_kb() -> None:
    sizes = {name: len(body) for name, body in assets.load().files.items()}
    templates = {path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html")}
    pages = {
        (assets.shared_sheet(template), area)
        for template in templates
        if (area := assets.area_sheet(template))
    }

    assert sizes["app.css"] > sizes["core.css"] > 10_000
    assert {area for _, area in pages} == {name for name in sizes if name.startswith("css/")}
    assert {page for page in pages if sum(sizes[sheet] for sheet in page) >= 25_000} == set()


def test_pages_of_an_area_have_its_sheet_and_no_other() -> None:
    sheets = {
        template: assets.area_sheet(template)
        for template in (
            "admin_users/index.html",
            "admin/x.html",
            "oauth/consent.html",
            "_error.html",
        )
    }

    assert list(sheets.values()) == ["css/admin.css", "css/admin.css", "css/oauth.css", None]
    assert {sheet for sheet in sheets.values() if sheet} <= assets.load().files.keys()


@pytest.mark.requirement("UI-104")
def test_the_scripts_are_as_small_as_promised() -> None:
    sizes = {
        name: sum(
            len(line.strip()) + 1
            for line in body.decode().splitlines()
            if line.strip() and not line.strip().startswith("//")
        )
        for name, body in assets.load().files.items()
        if name.startswith("js/")
    }

    assert sizes["js/app.js"] < 6_000
    assert sizes["js/passkey.js"] < 8_000
