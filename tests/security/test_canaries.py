"""Secrets sent through a real server, into failures too: none is ever told again."""

import re
from pathlib import Path

import httpx2
import pytest
from sqlalchemy import MetaData, select

from app.kernel import db
from tests.server import RunningServer
from tests.signing_in import hidden

# what a person types, sends or is given; each is looked for everywhere afterwards
TYPED = {
    "password": "canary-password-4711",
    "token": "eyJjYW5hcnkiOjQ3MTF9.canary-access-4711.c2lnbmF0dXJl",
    "refresh": "01ARZ3NDEKTSV4RRFFQ69G5FAV.canary-refresh-4711-AAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "code": "canary-code-4711",
    "client": "canary-client-secret-4711",
    "link": "01ARZ3NDEKTSV4RRFFQ69G5FAV.canary-link-4711-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "passkey": "canary-passkey-4711",
}
OIDC = "canary-oidc-secret-4711"
MASTER = "Y2FuYXJ5LW1hc3Rlci1rZXktNDcxMS1jYW5hcnkhISE="
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
PASSWORD = "canary-own-password-0815"


@pytest.mark.requirement("SEC-T26", "SEC-53", "SEC-5")
def test_no_secret_is_told_again(database: str, scratch: Path) -> None:
    env = {
        "ASSENT_MASTER_KEY": MASTER,
        "ASSENT_OIDC__IDP__ISSUER": "https://idp.invalid",
        "ASSENT_OIDC__IDP__CLIENT_ID": "assent",
        "ASSENT_OIDC__IDP__CLIENT_SECRET": OIDC,
        "ASSENT_OIDC__IDP__TENANT": "acme",
    }
    with RunningServer(scratch / "server", database, env=env) as server:
        (setup,) = re.findall(r"/setup/(\S+)", server.log())[:1]
        with httpx2.Client(base_url=server.base_url, headers=SAME_ORIGIN) as browser:
            given = own_an_account(browser, setup)
            told = through_every_door(browser)
            told += browser.get("/metrics").text
        log = server.log().replace(setup, "", 1)  # it is printed once, for the operator
        secrets = {**TYPED, "oidc": OIDC, "master": MASTER, "setup": setup, **given}
        del secrets["cookie_name"]

        for name, secret in secrets.items():
            assert secret not in log, f"{name} in the log"
            assert secret not in told, f"{name} in an answer"
        assert log.count('"event":"request"') > 30, "there is a log"
        assert "assent_http_requests_total" in told
    dumped = rows_of(database)
    assert "identity.session.refused" in dumped, "there is a trail"
    for name, secret in secrets.items():
        assert secret not in dumped, f"{name} in the database"


def own_an_account(browser: httpx2.Client, setup: str) -> dict[str, str]:
    """Become the first owner; gives the secrets that came of it."""
    page = browser.get(f"/setup/{setup}")
    form = {
        "_csrf": hidden(page, "_csrf"),
        "tenant_name": "Acme",
        "slug": "acme",
        "display_name": "Olga",
        "login": "olga",
        "password": PASSWORD,
        "again": PASSWORD,
    }
    # the jar keeps no Secure cookie of an http address, so they are carried by hand
    cookies = carried(page, {})
    made = browser.post(f"/setup/{setup}", data=form, headers={"Cookie": joined(cookies)})
    assert made.status_code == 303, made.text
    cookies = carried(made, cookies)
    browser.headers["Cookie"] = joined(cookies)
    return {"own": PASSWORD, "cookie": cookies["__Host-sid"], "cookie_name": "__Host-sid"}


def through_every_door(browser: httpx2.Client) -> str:
    """Send each secret wherever one is taken, rightly and wrongly; all that was answered."""
    answers = []
    page = browser.get("/settings/password")
    csrf = {"_csrf": hidden(page, "_csrf")}
    bare = {"Cookie": ""}
    for name, secret in TYPED.items():
        fields = ("password", "again", "old", "current", "credential", "code")
        form = {**csrf, **dict.fromkeys(fields, secret), "login": "olga", "tenant": "acme"}
        people = ("/sign-in", "/step-up", "/settings/password", "/settings/passkeys")
        answers += [browser.post(path, data=form) for path in people]
        stranger = browser.get("/sign-in", headers=bare)
        entry = {"_csrf": hidden(stranger, "_csrf"), "tenant": "acme", "login": "olga"}
        theirs = {"Cookie": joined(carried(stranger, {}))}
        tried = browser.post("/sign-in", data={**entry, "password": secret}, headers=theirs)
        answers += [tried, browser.post("/step-up", data={**csrf, "password": secret})]
        wire = {"grant_type": "refresh_token", "client_id": "x", "client_secret": secret}
        wire |= {"refresh_token": secret, "token": secret, "code": secret, "code_verifier": secret}
        for path in ("/oauth/token", "/oauth/revoke", "/oauth/introspect"):
            answers.append(browser.post(path, data=wire, headers=bare))
            answers.append(browser.post(path, data=wire, headers=bare, auth=("x", secret)))
            answers.append(browser.post(f"{path}?token={secret}", data=wire, headers=bare))
        linked = ("invite", "reset", "setup")
        for kind in linked:  # such a page may name its own address
            browser.get(f"/{kind}/{secret}", headers=bare)
        bearer = {**bare, "Authorization": f"Bearer {secret}"}
        answers.append(browser.get("/v1/me", headers=bearer))
        answers.append(browser.get("/admin/users", headers=bearer))
        answers.append(browser.get("/v1/me", headers={"Cookie": f"__Host-sid={secret}"}))
        answers.append(
            browser.get("/sign-in/idp/callback", params={"code": secret, "state": secret})
        )
        answers.append(browser.post("/v1/me", json={name: secret}))
        answers.append(browser.request("TRACE", "/sign-in", headers={"Cookie": f"x={secret}"}))
    answers.append(browser.get("/admin"))
    answers.append(browser.get("/settings/sessions"))
    return "\n".join(
        f"{answer.headers} {answer.text}" if answer.status_code != 200 else answer.text
        for answer in answers
    )


def carried(answer: httpx2.Response, before: dict[str, str]) -> dict[str, str]:
    """The cookies of a browser after this answer."""
    given = dict(
        line.partition(";")[0].split("=", 1) for line in answer.headers.get_list("set-cookie")
    )
    return {**before, **given}


def joined(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def rows_of(url: str) -> str:
    """Everything that stands in the database."""
    engine = db.engine_for(url, read_only=True)
    known = MetaData()
    known.reflect(engine)
    with engine.connect() as connection:
        found = [
            repr(tuple(row))
            for table in known.sorted_tables
            for row in connection.execute(select(table))
        ]
    engine.dispose()
    return "\n".join(found)
