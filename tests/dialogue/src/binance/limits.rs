//! Limits of the venue: the weight of requests, and the number of orders.

use serde_json::{Value, json};

use super::{BinanceExchange, Refusal};

/// Weight that the stand-in allows in a minute, as the venue does.
const WEIGHT_PER_MINUTE: u64 = 6_000;

impl BinanceExchange {
    /// Counts the weight of a request, which the venue limits for each minute.
    pub(super) fn charge(&mut self, method: &str) -> Result<(), Refusal> {
        let weight = match method {
            "session.logon" | "userDataStream.subscribe" | "userDataStream.subscribe.signature" => 2,
            "account.rateLimits.orders" => 40,
            "depth" => 25,
            "order.amend.keepPriority" | "order.status" => 4,
            "myTrades" => 5,
            _ => 1,
        };
        let minute = self.now_ms / 60_000;
        let used = if self.weight.0 == minute { self.weight.1 } else { 0 };
        self.weight = (minute, used + weight);
        if self.weight.1 <= WEIGHT_PER_MINUTE {
            return Ok(());
        }
        let data = json!({"serverTime": self.now_ms, "retryAfter": (minute + 1) * 60_000});
        Err((429, -1003, "Too much request weight used.".to_string(), data))
    }

    pub(super) fn rate_limits(&self, method: &str) -> Value {
        let mut limits = vec![json!({
            "rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1,
            "limit": WEIGHT_PER_MINUTE, "count": self.weight.1,
        })];
        if matches!(method, "order.place" | "order.cancelReplace") {
            limits.extend(self.order_limits().as_array().cloned().unwrap_or_default());
        }
        Value::Array(limits)
    }

    pub(super) fn order_limits(&self) -> Value {
        let used = if self.placed.0 == self.now_ms / 10_000 { self.placed.1 } else { 0 };
        json!([{
            "rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10,
            "limit": self.orders_per_10_s.unwrap_or(50_000), "count": used,
        }])
    }
}
