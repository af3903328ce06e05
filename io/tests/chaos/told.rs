//! What a client was told, as far as it must still hold after the next start.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::number::Qty;
use serde_json::Value;

/// Statuses that do not change any more. What was refused may be asked for again under the same id, and be taken then.
pub const FINAL: [&str; 3] = ["FILLED", "CANCELED", "EXPIRED"];

/// Statuses from which a cancel leads away.
pub const OPEN: [&str; 2] = ["NEW", "PARTIALLY_FILLED"];

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Orders that something was told of since the last look.
    Fresh,
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// A word of REST; empty: it was only said that the order is there.
    pub status: String,
    pub filled: Qty,
}

#[derive(Clone, Debug, Default)]
pub struct Told {
    /// By any id the order has had.
    orders: BTreeMap<String, Standing>,
    /// Those of which something was told since the last look.
    fresh: BTreeSet<String>,
    aliases: BTreeMap<String, Vec<String>>,
    /// Orders whose cancel was taken: they are open no more.
    pub cancelled: Vec<String>,
    /// Quantity and price by UUID, as they were written.
    pub transactions: BTreeMap<String, (String, String)>,
}

impl Told {
    /// Tells of an order; what was told earlier about it does not count any more.
    pub fn order(&mut self, id: &str, status: &str, filled: Qty) {
        self.fresh.insert(id.to_string());
        self.orders.insert(id.to_string(), Standing { status: status.to_string(), filled });
    }

    /// What was told of it does not hold any more.
    pub fn forget(&mut self, id: &str) {
        self.orders.remove(id);
    }

    /// Another id that an order has had, the newest last: who is modified again and again is known by the last two only.
    pub fn alias(&mut self, id: &str, other: &str) {
        let aliases = self.aliases.entry(id.to_string()).or_default();
        if id != other && aliases.last().is_none_or(|last| last != other) {
            aliases.push(other.to_string());
        }
    }

    /// The other ids, the newest first.
    pub fn aliases(&self, id: &str) -> impl Iterator<Item = &String> {
        self.aliases.get(id).into_iter().flatten().rev()
    }

    /// That it is there, whatever became of it.
    pub fn is_there(&mut self, id: &str) {
        if !self.orders.contains_key(id) {
            self.order(id, "", Qty::default());
        }
    }

    pub fn orders(&self, how: Depth) -> impl Iterator<Item = (&String, &Standing)> {
        self.orders.iter().filter(move |(id, _)| how == Depth::All || self.fresh.contains(*id))
    }

    /// All of it was looked at.
    pub fn is_known(&mut self) {
        self.fresh.clear();
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
