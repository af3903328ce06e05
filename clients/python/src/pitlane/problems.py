"""One exception class for each problem code, derived from the class of its status.

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
from .enums import OrderStatus
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


def problem_of(status: int, members: Mapping[str, Any], text: str) -> Problem:
    """Returns the exception for a response other than 2xx.

    An unknown code gives the class of its status.
    """
    reason = str(members.get("code", "")) or f"http-{status}"
    message = str(members.get("detail", "")) or text.strip()[:TEXT_MAX] or "no message"
    kind = _BY_CODE.get(reason) or _BY_STATUS.get(status, Problem)
    return kind(status, reason, message, members)


def raise_if_rejected(order: Order) -> Order:
    """Returns the order, or raises its reject reason, whatever response reported it."""
    if order.status is not OrderStatus.REJECTED:
        return order
    reason = order.reason or "rejected"
    raise _BY_CODE.get(reason, Refused)(422, reason, "the order was rejected", {"intId": order.int_id})


TEXT_MAX = 200
"""Characters quoted from a response that is not problem+json: it may be a whole web page."""

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
    """The call needs a login."""

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
    """The resource belongs to a strategy that the login may not access."""

    code = "other-strategy"


class ForeignOrigin(NotPermitted):
    """The request came from a web page of another origin."""

    code = "foreign-origin"


class LockedOut(Overloaded):
    """There were too many failed logins."""

    code = "locked-out"


class TooManyRequests(Overloaded):
    """There were too many requests from this address or by this login."""

    code = "too-many-requests"


class BadBody(BadRequest):
    """The body does not match the call."""

    code = "bad-body"


class BadQuery(BadRequest):
    """A query parameter is unknown, repeated or invalid."""

    code = "bad-query"


class BadPath(BadRequest):
    """The path is not percent-encoded UTF-8."""

    code = "bad-path"


class BadSearch(BadRequest):
    """The search query is invalid."""

    code = "bad-search"


class BadUuid(BadRequest):
    """The uuid is invalid."""

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
    """The body arrived too slowly."""

    code = "body-too-slow"


class NotJson(BadRequest):
    """The Content-Type of the body is not JSON."""

    code = "not-json"


class NotAcceptable(BadRequest):
    """The call has none of the media types that Accept names."""

    code = "not-acceptable"


class MethodNotAllowed(BadRequest):
    """The path does not support this method."""

    code = "method-not-allowed"


class ForeignHost(BadRequest):
    """The service does not accept this host name."""

    code = "foreign-host"


class BadHost(BadRequest):
    """The Host header is invalid."""

    code = "bad-host"


class AmbiguousRequest(BadRequest):
    """The request is ambiguous."""

    code = "ambiguous-request"


class UnexpectedBody(BadRequest):
    """The call takes no body."""

    code = "unexpected-body"


class SubscribeContradicts(BadRequest):
    """The body contradicts the path."""

    code = "subscribe-contradicts"
    about = "subscribe"


class NoSuchPath(NotFound):
    """There is no resource at this path."""

    code = "not-found"


class UnknownFamily(NotFound):
    """There is no such security family."""

    code = "unknown-family"


class HistoryOff(NotFound):
    """The service keeps no history of the market."""

    code = "history-off"


class HistoryUnreadable(Problem):
    """The service cannot read the files of its history; its log has the reason."""

    code = "history-unreadable"


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
    """Several open orders have this id; pass account_id to choose one."""

    code = "ambiguous-order-id"


class PhaseOrder(Conflict):
    """The strategy cannot enter this phase from its current phase."""

    code = "phase-order"


class ServerRuns(Refused):
    """The phase of the server itself cannot change."""

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
    """The strategy_id and the strategy_name belong to different strategies."""

    code = "strategies-differ"


class CannotChange(Refused):
    """This value of an order cannot be changed."""

    code = "cannot-change"


class BadLimits(Refused):
    """The limits are invalid."""

    code = "bad-limits"


class BadReferenceData(Refused):
    """The reference data has errors, and nothing was changed."""

    code = "bad-reference-data"


class NoReferenceFiles(Refused):
    """There are no reference data files to reload."""

    code = "no-reference-files"


class CacheBusy(Conflict):
    """The reference data is already being reloaded."""

    code = "cache-busy"


class Starting(Unavailable):
    """The service is starting."""

    code = "starting"


class Stopping(Unavailable):
    """The service is stopping."""

    code = "stopping"


class NoRoom(Unavailable):
    """Too many connections; the remaining ones are reserved for clients with a valid login."""

    code = "no-room"


class NoAnswer(Unavailable):
    """The service did not respond in time; the request may still take effect."""

    code = "no-answer"


class AuditFailed(Unavailable):
    """The audit log cannot be written, so nothing was done."""

    code = "audit-failed"


def _by_code() -> dict[str, type[Problem]]:
    assert refusals.BadLot in Refused.__subclasses__(), "the module refusals is imported"
    families = list(_BY_STATUS.values())
    kinds = [kind for family in families for kind in family.__subclasses__()]
    return {kind.code: kind for kind in kinds}


_BY_CODE = _by_code()
