//! The value types as schemas, by name.

use pitlane_protocols::rest::{
    AccountVO, AdapterVO, AnyOrderVO, CashBalanceVO, ConfirmationVO, ExchangeVO, ForexVO, IdentityVO,
    LimitOrderChangeVO, LimitOrderVO, LimitsVO, MarketDataSubscriptionVO, MarketOrderChangeVO, MarketOrderVO,
    OrderVO, PhaseVO, PortfolioVO, PositionVO, RatesVO, RiskVO, SecurityFamilyVO, SecurityVO, SenderVO,
    SessionVO, StopLimitOrderChangeVO, StopLimitOrderVO, StopOrderChangeVO, StopOrderVO, StrategyVO,
    TransactionRequestVO, TransactionVO,
};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::super::{cluster, health, latency};

/// Schemas collected so far. Those of responses never have `null`: absent values are omitted.
#[derive(Default)]
pub struct Gathered {
    schemas: Map<String, Value>,
}

impl Gathered {
    /// Adds the schema of a response.
    pub fn said<T: ToSchema>(&mut self) {
        self.add::<T>(without_null);
    }

    /// Adds the schema of a request, where `null` means absent.
    fn told<T: ToSchema>(&mut self) {
        self.add::<T>(|schema| schema);
    }

    fn add<T: ToSchema>(&mut self, change: impl Fn(Value) -> Value) {
        let mut found = vec![(T::name().into_owned(), T::schema())];
        T::schemas(&mut found);
        for (name, schema) in found {
            let schema = serde_json::to_value(schema).expect("a schema is JSON");
            self.schemas.entry(name).or_insert_with(|| change(schema));
        }
    }
}

pub fn all() -> Value {
    let mut gathered = Gathered::default();
    // Occurs in responses too, but is added as a request first: in a request `null` means absent.
    gathered.told::<LimitsVO>();
    gathered.said::<AccountVO<'_>>();
    gathered.said::<AdapterVO<'_>>();
    gathered.said::<CashBalanceVO<'_>>();
    gathered.said::<ExchangeVO<'_>>();
    gathered.said::<ForexVO<'_>>();
    gathered.said::<IdentityVO<'_>>();
    gathered.said::<OrderVO<'_>>();
    gathered.said::<SenderVO>();
    gathered.said::<PortfolioVO<'_>>();
    gathered.said::<PositionVO<'_>>();
    gathered.said::<RiskVO>();
    gathered.said::<ConfirmationVO>();
    gathered.said::<SecurityFamilyVO<'_>>();
    gathered.said::<SecurityVO<'_>>();
    gathered.said::<SessionVO>();
    gathered.said::<StrategyVO<'_>>();
    gathered.said::<TransactionVO<'_>>();
    health::describe(&mut gathered);
    latency::describe(&mut gathered);
    cluster::shown::describe(&mut gathered);
    gathered.told::<AnyOrderVO>();
    gathered.told::<MarketOrderVO>();
    gathered.told::<LimitOrderVO>();
    gathered.told::<StopOrderVO>();
    gathered.told::<StopLimitOrderVO>();
    gathered.told::<MarketOrderChangeVO>();
    gathered.told::<LimitOrderChangeVO>();
    gathered.told::<StopOrderChangeVO>();
    gathered.told::<StopLimitOrderChangeVO>();
    gathered.told::<MarketDataSubscriptionVO>();
    gathered.told::<PhaseVO>();
    gathered.told::<RatesVO>();
    gathered.told::<TransactionRequestVO>();
    gathered.schemas.insert("Problem".to_string(), problem());
    Value::Object(gathered.schemas)
}

/// Returns a schema without `null`, in whichever form it was allowed.
fn without_null(schema: Value) -> Value {
    let is_null = |part: &Value| part.get("type").is_some_and(|kind| kind == "null") || part == "null";
    match schema {
        Value::Object(mut object) => {
            if let Some(Value::Array(kinds)) = object.get_mut("type") {
                kinds.retain(|kind| !is_null(kind));
                if let [one] = &kinds[..] {
                    let one = one.clone();
                    object.insert("type".to_string(), one);
                }
            }
            if let Some(Value::Array(parts)) = object.get_mut("oneOf") {
                parts.retain(|part| !is_null(part));
                if let [Value::Object(one)] = &parts[..] {
                    let one = one.clone();
                    object.remove("oneOf");
                    object.extend(one);
                }
            }
            Value::Object(object.into_iter().map(|(name, value)| (name, without_null(value))).collect())
        }
        Value::Array(parts) => Value::Array(parts.into_iter().map(without_null).collect()),
        plain => plain,
    }
}

/// Returns the schema of RFC 9457, with our additions.
fn problem() -> Value {
    json!({
        "type": "object",
        "description": "Something that was not done, and why: RFC 9457.",
        "required": ["type", "title", "status", "detail", "instance", "code", "requestId"],
        "properties": {
            "type": { "type": "string", "description": "`urn:pitlane:problem:` and the code." },
            "title": { "type": "string", "description": "The status in words." },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string", "description": "For people." },
            "instance": { "type": "string", "description": "The path that was asked for." },
            "code": { "type": "string", "description": "For machines, stable; where a shard refused, its reason, as FIX and STOMP have it." },
            "requestId": { "type": "string", "description": "The request's id, as in X-Request-Id." },
            "field": { "type": "string", "description": "With 400: the member of the body that something is wrong with, where it is one's fault." },
            "intId": { "type": "string", "description": "The order that was refused and can be read all the same." },
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

pub fn problem_example(status: u16) -> Value {
    let (title, code, detail) = match status {
        400 => ("Bad Request", "bad-query", "there is no parameter `limt`"),
        401 => (
            "Unauthorized",
            "login-required",
            "this takes a login: Authorization with a Bearer token, or Basic",
        ),
        403 => ("Forbidden", "role-too-low", "alice may not do this: it takes the role admin"),
        404 => ("Not Found", "unknown-order", "unknown order"),
        408 => ("Request Timeout", "body-too-slow", "the body did not come in time"),
        409 => ("Conflict", "order-finished", "the order is finished"),
        413 => ("Payload Too Large", "body-too-large", "a body has at most 65536 bytes"),
        415 => ("Unsupported Media Type", "not-json", "a body must have the Content-Type application/json"),
        421 => (
            "Misdirected Request",
            "foreign-host",
            "the Host is none of ours; name it in http.public_host if it should be",
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
