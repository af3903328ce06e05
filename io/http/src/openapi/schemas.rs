//! The value types as schemas, by name.

use pitlane_protocols::rest::{
    AccountVO, AdapterVO, AlertVO, AnyOrderVO, BarVO, CanceledOrdersVO, CashBalanceVO, ConfirmationVO,
    ExchangeVO, ForexVO, IdentityVO, LimitOrderChangeVO, LimitOrderVO, LimitUseVO, LimitsVO, LogEventVO,
    MarketDataSubscriptionVO, MarketOrderChangeVO, MarketOrderVO, OrderChangesVO, OrderVO, PhaseVO,
    PortfolioSampleVO, PortfolioVO, PositionVO, ProfitDayVO, ProfitVO, QuoteVO, RatesVO, RiskVO,
    SecurityFamilyVO, SecurityVO, SenderVO, SessionVO, StatusChangeVO, StopLimitOrderChangeVO,
    StopLimitOrderVO, StopOrderChangeVO, StopOrderVO, StrategyVO, TickVO, TransactionRequestVO,
    TransactionVO, VenueLimitVO,
};
use serde_json::{Value, json};

use crate::schema_set::SchemaSet;
use crate::{cluster_members, health, latency};

pub(super) fn all() -> Value {
    let mut schemas = SchemaSet::default();
    // Occurs in responses too, but is added as a request first: in a request `null` means absent.
    schemas.add_request::<LimitsVO>();
    schemas.add_response::<AccountVO<'_>>();
    schemas.add_response::<AdapterVO<'_>>();
    schemas.add_response::<CanceledOrdersVO>();
    schemas.add_response::<CashBalanceVO<'_>>();
    schemas.add_response::<ExchangeVO<'_>>();
    schemas.add_response::<ForexVO<'_>>();
    schemas.add_response::<IdentityVO<'_>>();
    schemas.add_response::<OrderVO<'_>>();
    schemas.add_response::<OrderChangesVO<'_>>();
    schemas.add_response::<StatusChangeVO>();
    schemas.add_response::<SenderVO>();
    schemas.add_response::<PortfolioVO<'_>>();
    schemas.add_response::<PositionVO<'_>>();
    schemas.add_response::<PortfolioSampleVO>();
    schemas.add_response::<ProfitVO>();
    schemas.add_response::<ProfitDayVO>();
    schemas.add_response::<LogEventVO<'_>>();
    schemas.add_response::<RiskVO>();
    schemas.add_response::<LimitUseVO>();
    schemas.add_response::<ConfirmationVO>();
    schemas.add_response::<SecurityFamilyVO<'_>>();
    schemas.add_response::<SecurityVO<'_>>();
    schemas.add_response::<AlertVO>();
    schemas.add_response::<BarVO>();
    schemas.add_response::<TickVO>();
    schemas.add_response::<QuoteVO>();
    schemas.add_response::<SessionVO>();
    schemas.add_response::<VenueLimitVO>();
    schemas.add_response::<StrategyVO<'_>>();
    schemas.add_response::<TransactionVO<'_>>();
    health::describe(&mut schemas);
    latency::describe(&mut schemas);
    cluster_members::describe(&mut schemas);
    schemas.add_request::<AnyOrderVO>();
    schemas.add_request::<MarketOrderVO>();
    schemas.add_request::<LimitOrderVO>();
    schemas.add_request::<StopOrderVO>();
    schemas.add_request::<StopLimitOrderVO>();
    schemas.add_request::<MarketOrderChangeVO>();
    schemas.add_request::<LimitOrderChangeVO>();
    schemas.add_request::<StopOrderChangeVO>();
    schemas.add_request::<StopLimitOrderChangeVO>();
    schemas.add_request::<MarketDataSubscriptionVO>();
    schemas.add_request::<PhaseVO>();
    schemas.add_request::<RatesVO>();
    schemas.add_request::<TransactionRequestVO>();
    schemas.insert("Depth", depth());
    schemas.insert("Problem", problem());
    schemas.into_json()
}

/// Returns the schema of price levels, whose body is that of the STOMP topic.
fn depth() -> Value {
    let decimal = json!({ "type": "number" });
    let levels = |about: &str| {
        let level = json!({ "type": "array", "items": decimal, "minItems": 2, "maxItems": 2 });
        json!({ "type": "array", "description": about, "items": level })
    };
    json!({
        "type": "object",
        "description": "Price levels of a security: the whole book, or what has changed.",
        "required": ["type", "seq", "ts", "securityId", "dateTime"],
        "properties": {
            "type": { "type": "string", "enum": ["SNAPSHOT", "UPDATE"] },
            "prevSeq": { "type": "integer", "description": "Of an update: the book to which it applies." },
            "seq": { "type": "integer", "description": "The book after it." },
            "ts": { "type": "integer", "description": "Nanoseconds since 1970." },
            "securityId": { "type": "integer" },
            "symbol": { "type": "string" },
            "feed": { "type": "string" },
            "bids": levels("Of a snapshot: price and size, best first."),
            "asks": levels("Of a snapshot: price and size, best first."),
            "changes": {
                "type": "array",
                "description": "Of an update: side (B or A), price and new size; zero removes the level.",
                "items": { "type": "array", "items": {}, "minItems": 3, "maxItems": 3 },
            },
            "checksum": { "type": "integer", "description": "CRC-32C of the ten best levels of each side." },
            "dateTime": { "type": "string", "format": "date-time" },
        },
    })
}

/// Returns the schema of RFC 9457, with our additions.
fn problem() -> Value {
    json!({
        "type": "object",
        "description": "A request that was not executed, and the reason: RFC 9457.",
        "required": ["type", "title", "status", "detail", "instance", "code", "requestId"],
        "properties": {
            "type": { "type": "string", "description": "`urn:pitlane:problem:` and the code." },
            "title": { "type": "string", "description": "Text of the status." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string", "description": "For people." },
            "instance": { "type": "string", "description": "The requested path." },
            "code": { "type": "string", "description": "For machines, stable; where a shard refused, its reason, as FIX and STOMP have it." },
            "requestId": { "type": "string", "description": "The request's id, as in X-Request-Id." },
            "field": { "type": "string", "description": "With 400: the member of the body that is invalid, if there is one." },
            "intId": { "type": "string", "description": "The refused order, which can still be read." },
            "candidates": {
                "type": "array",
                "description": "With 409 `ambiguous-order-id`: the orders that may be meant.",
                "items": {
                    "type": "object",
                    "required": ["intId", "accountId"],
                    "properties": { "intId": { "type": "string" }, "accountId": { "type": "integer" } },
                },
            },
        },
    })
}

pub(super) fn problem_example(status: u16) -> Value {
    let (title, code, detail) = match status {
        400 => ("Bad Request", "bad-query", "there is no parameter `limt`"),
        401 => (
            "Unauthorized",
            "login-required",
            "this requires a login: Authorization with a Bearer token, or Basic",
        ),
        403 => ("Forbidden", "role-too-low", "alice may not do this: it requires the role admin"),
        404 => ("Not Found", "unknown-order", "unknown order"),
        408 => ("Request Timeout", "body-too-slow", "the body did not arrive in time"),
        409 => ("Conflict", "order-finished", "the order is finished"),
        413 => ("Payload Too Large", "body-too-large", "a body has at most 65536 bytes"),
        415 => ("Unsupported Media Type", "not-json", "a body must have the Content-Type application/json"),
        421 => (
            "Misdirected Request",
            "foreign-host",
            "the Host is not one of this server; name it in http.public_host if it should be",
        ),
        422 => ("Unprocessable Entity", "off-tick", "the price is not on the tick grid"),
        429 => ("Too Many Requests", "too-many-requests", "too many requests by this login"),
        _ => ("Service Unavailable", "busy", "too much to do: try again"),
    };
    json!({
        "type": format!("urn:pitlane:problem:{code}"), "title": title, "status": status, "detail": detail,
        "instance": "/rest/execution/order", "code": code, "requestId": "19a8f0c2b1d-42",
    })
}
