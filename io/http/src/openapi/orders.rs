//! Descriptions of submitting and modifying orders of each type.

use pitlane_engine::terms::OrderKind;
use serde_json::{Value, json};

use super::about::{CallDescription, ORDERS, ResponseSpec, input, write};

pub(super) fn submit(kind: OrderKind) -> CallDescription {
    let (schema, summary, prices) = match kind {
        OrderKind::Market => ("MarketOrderVO", "Submit a market order", json!({})),
        OrderKind::Limit => ("LimitOrderVO", "Submit a limit order", json!({ "limit": 100.25 })),
        OrderKind::Stop => ("StopOrderVO", "Submit a stop order", json!({ "stop": 99.5 })),
        OrderKind::StopLimit => {
            ("StopLimitOrderVO", "Submit a stop limit order", json!({ "limit": 100.25, "stop": 99.5 }))
        }
    };
    let mut example =
        json!({ "securityId": 1, "side": "BUY", "quantity": 10, "strategyName": "SERVER", "tif": "DAY" });
    merge(&mut example, prices);
    write(ORDERS, summary, input(schema, example), ResponseSpec::Order)
}

pub(super) fn modify(kind: OrderKind) -> CallDescription {
    let (schema, summary, prices) = match kind {
        OrderKind::Market => ("MarketOrderChangeVO", "Modify a market order", json!({})),
        OrderKind::Limit => ("LimitOrderChangeVO", "Modify a limit order", json!({ "limit": 100.5 })),
        OrderKind::Stop => ("StopOrderChangeVO", "Modify a stop order", json!({ "stop": 99.25 })),
        OrderKind::StopLimit => {
            ("StopLimitOrderChangeVO", "Modify a stop limit order", json!({ "limit": 100.5 }))
        }
    };
    let mut example = json!({ "intId": "R1-1", "quantity": 20 });
    merge(&mut example, prices);
    write(ORDERS, summary, input(schema, example), ResponseSpec::Order)
}

fn merge(into: &mut Value, more: Value) {
    if let (Value::Object(into), Value::Object(more)) = (into, more) {
        into.extend(more);
    }
}
