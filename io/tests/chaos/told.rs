//! What a client was told, as far as it must still hold after the next start.

use std::collections::BTreeMap;

use pitlane_engine::number::Qty;
use serde_json::Value;

/// Statuses that do not change any more.
pub const FINAL: [&str; 4] = ["FILLED", "CANCELED", "REJECTED", "EXPIRED"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// A word of REST; empty: it was only said that the order is there.
    pub status: String,
    pub filled: Qty,
}

#[derive(Clone, Debug, Default)]
pub struct Told {
    /// By any id the order has had.
    pub orders: BTreeMap<String, Standing>,
    /// Orders whose cancel was taken: they are open no more.
    pub cancelled: Vec<String>,
    /// Quantity and price by UUID, as they were written.
    pub transactions: BTreeMap<String, (String, String)>,
}

impl Told {
    /// Tells of an order; what was told earlier about it does not count any more.
    pub fn order(&mut self, id: &str, status: &str, filled: Qty) {
        self.orders.insert(id.to_string(), Standing { status: status.to_string(), filled });
    }

    /// That it is there, whatever became of it.
    pub fn is_there(&mut self, id: &str) {
        self.orders
            .entry(id.to_string())
            .or_insert(Standing { status: String::new(), filled: Qty::default() });
    }

    pub fn transaction(&mut self, row: &Value) {
        let written = (row["quantity"].to_string(), row["price"].to_string());
        self.transactions.insert(text(row, "uuid"), written);
    }
}

pub fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_string()
}

/// A quantity of JSON. What is absent is zero.
pub fn qty(row: &Value, name: &str) -> Qty {
    match &row[name] {
        Value::Null => Qty::default(),
        written => Qty::parse(written.to_string().as_bytes()).unwrap_or_else(|_| panic!("{name} of {row}")),
    }
}
