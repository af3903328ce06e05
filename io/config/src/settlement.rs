//! Price at which positions in expired securities are closed: `[settlement]`.

use std::collections::BTreeMap;

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;

use super::section::Section;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementConfig {
    pub by: SettleBy,
    /// Known prices, by id or symbol of the security or of the underlying of an option.
    pub prices: BTreeMap<String, Price>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleBy {
    /// At the last price; an option at its intrinsic value by the last price of its underlying.
    Last,
    /// An operator records the EXPIRATION transactions.
    Operator,
}

impl SettlementConfig {
    pub(super) fn read(section: &mut Section<'_>) -> SettlementConfig {
        let by = section.word("by", &[("last", SettleBy::Last), ("operator", SettleBy::Operator)]);
        let mut prices = BTreeMap::new();
        for (name, text) in section.texts_by_name("prices") {
            match Price::parse(text.as_bytes()) {
                Ok(price) => _ = prices.insert(name, price),
                Err(_) => section.fault(&format!("prices.{name}"), "it must be a price such as 5985.25"),
            }
        }
        SettlementConfig { by, prices }
    }

    /// Returns the securities of a price's name. A symbol may stand for securities of several
    /// exchanges: all of them.
    pub fn ids(name: &str, reference: &RefData) -> Vec<SecurityId> {
        let by_id = name.parse().ok().and_then(|id| reference.security(SecurityId(id)));
        match by_id {
            Some(row) => vec![row.id],
            None => reference.by_symbol(name).to_vec(),
        }
    }
}
