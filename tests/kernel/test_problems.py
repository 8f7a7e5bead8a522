"""Refusals as RFC 9457 problems."""

import json
from datetime import UTC, datetime

from app.kernel import i18n, problems
from app.kernel.errors import AppError, Busy, FieldError, Invalid, NotFound, TooMany
from app.kernel.i18n import N_


class Late(AppError):
    reason = "too_late"
    status = 409
    says = N_("This address must not be called from here (rule: %(rule)s).")
    advice = "reread_state"


def test_a_problem_has_the_standard_members_and_the_facts() -> None:
    problem = problems.problem_of(Late(rule="port", expected_version=3), call_id="01C")

    assert problem == {
        "type": "/problems/too_late",
        "title": "Conflict",
        "status": 409,
        "detail": "This address must not be called from here (rule: port).",
        "reason": "too_late",
        "advice": "reread_state",
        "rule": "port",
        "expectedVersion": 3,
        "callId": "01C",
    }


def test_it_speaks_the_language_of_the_request() -> None:
    with i18n.speaking("zh-CN"):
        status, headers, body = problems.render(Late(rule="port"))

    assert (status, headers["content-language"]) == (409, "zh-CN")
    assert json.loads(body)["detail"] == "不允许从此处访问该地址（规则：port）。"


def test_each_field_says_what_is_wrong_with_it() -> None:
    error = Invalid(
        FieldError("login", N_("It is too large.")),
        FieldError(
            "lines/0", N_("The other server did not answer as it should (%(rule)s)."), {"rule": "x"}
        ),
    )

    assert problems.problem_of(error)["errors"] == [
        {"pointer": "login", "message": "It is too large."},
        {"pointer": "lines/0", "message": "The other server did not answer as it should (x)."},
    ]


def test_a_fact_cannot_take_the_place_of_a_standard_member() -> None:
    problem = problems.problem_of(NotFound(status=200, reason="fine", type="x", title="OK"))

    assert (problem["status"], problem["reason"]) == (404, "not_found")
    assert (problem["type"], problem["title"]) == ("/problems/not_found", "Not Found")
    assert problem["advice"] == "do_not_retry"


def test_who_has_to_wait_is_told_how_long() -> None:
    _, many, body = problems.render(TooMany(17))
    _, busy, _ = problems.render(Busy())
    _, missing, _ = problems.render(NotFound())

    assert (many["retry-after"], busy["retry-after"]) == ("17", "1")
    assert "retry-after" not in missing
    assert json.loads(body)["retryAfterS"] == 17
    assert many["content-type"] == "application/problem+json"
    assert many["cache-control"] == "no-store"


def test_a_percent_sign_is_just_that_where_there_are_no_facts() -> None:
    assert problems.words("100 % of it", {"rule": "x"}) == "100 % of it"


def test_any_fact_can_be_written() -> None:
    _, _, body = problems.render(AppError(at=datetime(2026, 3, 1, tzinfo=UTC), kind=AppError))

    assert json.loads(body)["at"] == "2026-03-01T00:00:00+00:00"
