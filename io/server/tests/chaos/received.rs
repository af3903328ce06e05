//! What a client received, as far as it must still hold after the next start.

use std::collections::{BTreeMap, BTreeSet};

use pitlane_engine::number::Qty;
use serde_json::Value;

/// Final statuses. A refused order may be sent again under the same id, and may then be accepted.
pub(crate) const FINAL: [&str; 3] = ["FILLED", "CANCELED", "EXPIRED"];

/// Statuses that a cancel ends.
pub(crate) const OPEN: [&str; 2] = ["NEW", "PARTIALLY_FILLED"];

/// Scope of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckScope {
    /// Orders about which something was received since the last check.
    Fresh,
    All,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LastStatus {
    /// A status of REST; empty: only the existence of the order is known.
    pub status: String,
    pub filled: Qty,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedState {
    /// Orders by any id they have had.
    orders: BTreeMap<String, LastStatus>,
    /// Orders about which something was received since the last check.
    fresh: BTreeSet<String>,
    aliases: BTreeMap<String, Vec<String>>,
    /// Orders whose cancel was accepted: they are no longer open.
    pub cancelled: Vec<String>,
    /// Quantity and price by UUID, as they were written.
    pub transactions: BTreeMap<String, (String, String)>,
}

impl ReceivedState {
    /// Records the status of an order; earlier statuses no longer count.
    pub(crate) fn order(&mut self, id: &str, status: &str, filled: Qty) {
        self.fresh.insert(id.to_string());
        self.orders.insert(id.to_string(), LastStatus { status: status.to_string(), filled });
    }

    /// Forgets an order: what was received about it no longer holds.
    pub(crate) fn forget(&mut self, id: &str) {
        self.orders.remove(id);
    }

    /// Adds another id of an order, the newest last: an order that is modified repeatedly is known
    /// by its last two ids only.
    pub(crate) fn alias(&mut self, id: &str, other: &str) {
        let aliases = self.aliases.entry(id.to_string()).or_default();
        if id != other && aliases.last().is_none_or(|last| last != other) {
            aliases.push(other.to_string());
        }
    }

    /// Returns the other ids, the newest first.
    pub(crate) fn aliases(&self, id: &str) -> impl Iterator<Item = &String> {
        self.aliases.get(id).into_iter().flatten().rev()
    }

    /// Records that an order exists, whatever its status.
    pub(crate) fn is_there(&mut self, id: &str) {
        if !self.orders.contains_key(id) {
            self.order(id, "", Qty::default());
        }
    }

    pub(crate) fn orders(&self, how: CheckScope) -> impl Iterator<Item = (&String, &LastStatus)> {
        self.orders.iter().filter(move |(id, _)| how == CheckScope::All || self.fresh.contains(*id))
    }

    /// Marks everything as checked.
    pub(crate) fn is_known(&mut self) {
        self.fresh.clear();
    }

    pub(crate) fn transaction(&mut self, row: &Value) {
        let written = (row["quantity"].to_string(), row["price"].to_string());
        self.transactions.insert(text(row, "uuid"), written);
    }
}

pub(crate) fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_string()
}

/// Returns a quantity of JSON. An absent value is zero.
pub(crate) fn qty(row: &Value, name: &str) -> Qty {
    if row[name].is_null() {
        return Qty::default();
    }
    Qty::parse(row[name].to_string().as_bytes()).unwrap_or_else(|_| panic!("{name} of {row}"))
}
