"""Every problem code of the service has an exception class."""

import re
from pathlib import Path

import pytest
from pitlane import BadRequest, Conflict, NotFound, Overloaded, Problem, Refused, Unavailable, problems, refusals
from pitlane.problems import problem_of
from service import ROOT

# Reasons in events and in the `reason` of an order, never in a response.
NEVER = {
    "requested",
    "expired-day",
    "expired-gtd",
    "expired-auction",
    "security-expired",
    "triggered",
    "stop-here",
    "late-fill",
    "report-lost",
    "missed-fill",
    "overfill",
    "bust",
    "correction",
    "in-doubt",
    "adjusted",
}
# Codes of the WebSocket handshake, which is not a call of the client.
HANDSHAKE = {"bad-websocket", "no-upgrade", "upgrade-required"}


def classes():
    return {
        kind.code: kind
        for module in (problems, refusals)
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Problem) and kind.code
    }


def test_every_reason_of_the_platform_has_a_class():
    source = (ROOT / "engine" / "src" / "reason.rs").read_text()
    codes = set(re.findall(r'^    \w+ = "([a-z-]+)", "', source, re.MULTILINE))
    assert len(codes) > 50
    assert codes - NEVER - set(classes()) == set()
    assert NEVER <= codes and not NEVER & set(classes())


def test_every_problem_of_the_http_thread_has_a_class():
    maker = re.compile(
        r'(?:Problem::(?:bad_request|unknown|conflict|unprocessable|new)|unauthorized)\(\s*(?:StatusCode::\w+,\s*)?"([a-z-]+)"'
    )
    folder: Path = ROOT / "io" / "http" / "src"
    codes = {
        code for path in folder.rglob("*.rs") if path.name != "tests.rs" for code in maker.findall(path.read_text())
    }
    assert len(codes) > 25
    assert codes - HANDSHAKE - set(classes()) == set()


def test_an_unknown_code_gives_the_class_of_its_status():
    families = {
        400: BadRequest,
        404: NotFound,
        409: Conflict,
        422: Refused,
        429: Overloaded,
        503: Unavailable,
        418: Problem,
    }
    for status, family in families.items():
        problem = problem_of(status, {"code": "brand-new", "detail": "words"}, "")
        assert type(problem) is family
        assert (problem.status, problem.reason, problem.message) == (status, "brand-new", "words")


def test_an_error_without_problem_json_is_a_problem_too():
    problem = problem_of(502, {}, "<html>bad gateway" + "x" * 1000)
    assert problem.reason == "http-502" and problem.message.startswith("<html>") and len(problem.message) == 200


@pytest.mark.parametrize(
    "code, detail, field",
    [
        ("bad-body", "unknown field `stopp`, expected one of `intId`", "stopp"),
        ("bad-body", "missing field `limit` at line 1 column 20", "limit"),
        ("bad-query", "the query parameter `limit` is a whole number above zero", "limit"),
        ("bad-query", "`accountId` is no account's id", "accountId"),
        ("bad-body", "`BUYY` is none of BUY, SELL at line 1 column 42", None),
        ("bad-lot", "the quantity is not a multiple of the lot size", "quantity"),
    ],
)
def test_the_field_is_set_if_it_is_known(code, detail, field):
    status = 400 if code.startswith("bad-b") or code == "bad-query" else 422
    assert problem_of(status, {"code": code, "detail": detail}, "").field == field
