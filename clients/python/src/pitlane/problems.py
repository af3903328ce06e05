"""One class for each code of a problem, below the family that says what kind of no it is.

```python
try:
    client.buy(1, "0.5", limit="100")
except BadLot as problem:
    print(problem.status, problem.reason, problem.message, problem.field)
```
"""

from __future__ import annotations

from typing import Any, Mapping

from . import refusals
from .errors import (
    BadRequest,
    Conflict,
    LoginRequired,
    NotFound,
    NotPermitted,
    Overloaded,
    Problem,
    Refused,
    Unavailable,
)
from .values import Order
from .enums import OrderStatus


def problem_of(status: int, members: Mapping[str, Any], text: str) -> Problem:
    """The exception for an answer that is not 2xx. A code that we do not know yet falls to the family of its status."""
    reason = str(members.get("code", "")) or f"http-{status}"
    message = str(members.get("detail", "")) or text.strip()[:TEXT_MAX] or "no further words"
    kind = _BY_CODE.get(reason) or _BY_STATUS.get(status, Problem)
    return kind(status, reason, message, members)


def raise_if_rejected(order: Order) -> Order:
    """An order that was rejected is a refusal, by whatever answer it is told."""
    if order.status is not OrderStatus.REJECTED:
        return order
    reason = order.reason or "rejected"
    raise _BY_CODE.get(reason, Refused)(422, reason, "the order was rejected", {"intId": order.int_id})


TEXT_MAX = 200
"""Of an answer that is no problem+json, as much is quoted: it may be a page."""

_BY_STATUS: Mapping[int, type[Problem]] = {
    400: BadRequest,
    401: LoginRequired,
    403: NotPermitted,
    404: NotFound,
    409: Conflict,
    422: Refused,
    429: Overloaded,
    503: Unavailable,
}


class LoginMissing(LoginRequired):
    """This takes a login."""

    code = "login-required"


class BadCredentials(LoginRequired):
    """The login or the secret is wrong."""

    code = "bad-credentials"


class BadAuthorization(LoginRequired):
    """The Authorization is neither Bearer nor Basic."""

    code = "bad-authorization"


class RoleTooLow(NotPermitted):
    """The login may not do this."""

    code = "role-too-low"


class OtherStrategy(NotPermitted):
    """It belongs to a strategy that the login may not touch."""

    code = "other-strategy"


class ForeignOrigin(NotPermitted):
    """A web page of another origin asked."""

    code = "foreign-origin"


class LockedOut(Overloaded):
    """Too many failed logins."""

    code = "locked-out"


class TooManyRequests(Overloaded):
    """Too many requests from this address or by this login."""

    code = "too-many-requests"


class BadBody(BadRequest):
    """The body is not what the call takes."""

    code = "bad-body"


class BadQuery(BadRequest):
    """A parameter is unknown, doubled or wrong."""

    code = "bad-query"


class BadPath(BadRequest):
    """The path is not percent-encoded UTF-8."""

    code = "bad-path"


class BadSearch(BadRequest):
    """The expression of a search is wrong."""

    code = "bad-search"


class BadUuid(BadRequest):
    """The uuid is none."""

    code = "bad-uuid"
    about = "uuid"


class DuplicateUuid(Refused):
    """The uuid was used for another transaction."""

    code = "duplicate-uuid"
    about = "uuid"


class BodyTooLarge(BadRequest):
    """The body is too large."""

    code = "body-too-large"


class BodyTooSlow(BadRequest):
    """The body came too slowly."""

    code = "body-too-slow"


class NotJson(BadRequest):
    """The body is not said to be JSON."""

    code = "not-json"


class MethodNotAllowed(BadRequest):
    """The path exists, but not with this method."""

    code = "method-not-allowed"


class ForeignHost(BadRequest):
    """The service does not go by this name."""

    code = "foreign-host"


class BadHost(BadRequest):
    """The Host is none."""

    code = "bad-host"


class AmbiguousRequest(BadRequest):
    """The request can be read in two ways."""

    code = "ambiguous-request"


class UnexpectedBody(BadRequest):
    """The call takes no body."""

    code = "unexpected-body"


class SubscribeContradicts(BadRequest):
    """The body wants the opposite of the path."""

    code = "subscribe-contradicts"
    about = "subscribe"


class NoSuchPath(NotFound):
    """There is nothing at this path."""

    code = "not-found"


class UnknownFamily(NotFound):
    """There is no such security family."""

    code = "unknown-family"


class UnknownPair(NotFound):
    """There is no such currency pair."""

    code = "unknown-pair"


class UnknownSession(NotFound):
    """There is no such session."""

    code = "unknown-session"


class UnknownTransaction(NotFound):
    """There is no such transaction."""

    code = "unknown-transaction"


class NoListener(NotFound):
    """The broker does not listen there."""

    code = "no-listener"


class AmbiguousOrderId(Conflict):
    """Several open orders have this id; account_id tells which is meant."""

    code = "ambiguous-order-id"


class PhaseOrder(Conflict):
    """The strategy cannot go to this phase from where it is."""

    code = "phase-order"


class ServerRuns(Refused):
    """The server itself has no other phase."""

    code = "server-runs"


class AccountRequired(Refused):
    """The exchange has no active account, or more than one."""

    code = "account-required"
    about = "accountId"


class WrongExchange(Refused):
    """The security trades on another exchange."""

    code = "wrong-exchange"
    about = "exchangeId"


class StrategiesDiffer(Refused):
    """Strategy_id and strategy_name are different strategies."""

    code = "strategies-differ"


class CannotChange(Refused):
    """This cannot be changed in an order."""

    code = "cannot-change"


class BadLimits(Refused):
    """The limits are none."""

    code = "bad-limits"


class BadReferenceData(Refused):
    """The reference data has faults, and nothing was changed."""

    code = "bad-reference-data"


class NoReferenceFiles(Refused):
    """There are no files to be read again."""

    code = "no-reference-files"


class CacheBusy(Conflict):
    """The reference data is being read already."""

    code = "cache-busy"


class Starting(Unavailable):
    """The service is starting."""

    code = "starting"


class Stopping(Unavailable):
    """The service is stopping."""

    code = "stopping"


class NoRoom(Unavailable):
    """Too many connections; those left are for clients with a valid login."""

    code = "no-room"


class NoAnswer(Unavailable):
    """No answer in time; it may still take effect."""

    code = "no-answer"


class AuditFailed(Unavailable):
    """The audit log cannot be written, so nothing was done."""

    code = "audit-failed"


def _by_code() -> dict[str, type[Problem]]:
    assert refusals.BadLot in Refused.__subclasses__(), "known by having been read"
    families = list(_BY_STATUS.values())
    kinds = [kind for family in families for kind in family.__subclasses__()]
    return {kind.code: kind for kind in kinds}


_BY_CODE = _by_code()
