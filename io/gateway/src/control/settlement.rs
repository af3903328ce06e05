//! Positions in expired securities, and the prices at which they are closed.
//!
//! ```text
//! Alert::Unsettled ─► configured price ──────────────────────────► Expire
//!                  ─► last price: watch the market that has it ─► tick ─► Expire
//!                  ─► operator: a warning, once for each alert
//! ```
//!
//! A shard repeats the alert at each start and each trading day while a position is left, so
//! nothing is persisted here.

use std::collections::BTreeMap;

use pitlane_config::{Config, SettleBy, SettlementConfig};
use pitlane_engine::command::{CommandKind, WatchTarget};
use pitlane_engine::event::Tick;
use pitlane_engine::id::{PortId, SecurityId};
use pitlane_engine::number::Price;
use pitlane_engine::refdata::{OptionKind, RefData, Security, SecurityKind};

/// The rules that give the settlement prices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettlementPrices {
    prices: BTreeMap<SecurityId, Price>,
    /// All securities that expire, with the market that determines their price; `None` if an
    /// operator has to give it.
    basis: BTreeMap<SecurityId, Option<SettlementBasis>>,
    /// Whether the last price is used.
    by_last: bool,
}

/// The market that determines a settlement price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SettlementBasis {
    market: SecurityId,
    /// Kind and strike of an option; `None` if the market price is the settlement price.
    option: Option<(OptionKind, Price)>,
}

/// How to settle a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    Settle(Price),
    /// At the next known last price of this market.
    Await(SecurityId),
    Ask,
}

impl SettlementPrices {
    pub fn of(config: &Config, reference: &RefData) -> SettlementPrices {
        let SettlementConfig { by, prices } = &config.settlement;
        let named = |(name, price): (&String, &Price)| {
            SettlementConfig::ids(name, reference).into_iter().map(|id| (id, *price)).collect::<Vec<_>>()
        };
        let expiring = reference.securities().iter().filter(|row| row.expiration.is_some());
        SettlementPrices {
            prices: prices.iter().flat_map(named).collect(),
            basis: expiring.map(|row| (row.id, SettlementBasis::of(row))).collect(),
            by_last: *by == SettleBy::Last,
        }
    }

    pub fn resolve(&self, security: SecurityId) -> Resolution {
        if let Some(price) = self.prices.get(&security) {
            return Resolution::Settle(*price);
        }
        let Some(basis) = self.basis.get(&security).copied().flatten() else { return Resolution::Ask };
        let known = self.prices.get(&basis.market).and_then(|price| basis.price(*price));
        match known {
            Some(price) => Resolution::Settle(price),
            None if self.by_last => Resolution::Await(basis.market),
            None => Resolution::Ask,
        }
    }

    /// Returns the value of a security at this price of its market.
    fn price(&self, security: SecurityId, market: Price) -> Option<Price> {
        self.basis.get(&security).copied().flatten()?.price(market)
    }
}

impl SettlementBasis {
    fn of(row: &Security) -> Option<SettlementBasis> {
        if row.kind != SecurityKind::Option {
            return Some(SettlementBasis { market: row.id, option: None });
        }
        Some(SettlementBasis { market: row.underlying?, option: Some((row.option?, row.strike?)) })
    }

    /// Returns the price. An option is worth its intrinsic value, at least zero.
    fn price(self, market: Price) -> Option<Price> {
        let Some((kind, strike)) = self.option else { return Some(market) };
        let gain = match kind {
            OptionKind::Call => market.checked_sub(strike),
            OptionKind::Put => strike.checked_sub(market),
        };
        gain.map(|gain| gain.max(Price::ZERO))
    }
}

/// Securities that wait for the last price of a market, at most as many as there are securities.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingSettlements {
    by_market: BTreeMap<SecurityId, Vec<SecurityId>>,
}

impl PendingSettlements {
    /// Registers a security that waits for a market, and returns the command that subscribes to the
    /// market. For a market that is already subscribed, the command requests another tick, because
    /// the first may have had no price.
    pub(super) fn wait(&mut self, port: PortId, security: SecurityId, market: SecurityId) -> CommandKind {
        let waiting = self.by_market.entry(market).or_default();
        if !waiting.contains(&security) {
            waiting.push(security);
        }
        CommandKind::Watch { port, what: WatchTarget::Ticks(market), on: true }
    }

    /// Returns the securities that a tick settles, with their prices. Their market need not be
    /// watched any more.
    pub(super) fn settle(&mut self, tick: &Tick, by: &SettlementPrices) -> Vec<(SecurityId, Price)> {
        if !tick.traded {
            return Vec::new();
        }
        let waiting = self.by_market.remove(&tick.security).unwrap_or_default();
        waiting.into_iter().filter_map(|id| Some((id, by.price(id, tick.last)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use pitlane_config::refdata;

    use super::*;

    fn price(text: &str) -> Price {
        Price::parse(text.as_bytes()).unwrap()
    }

    fn settlement(prices: &[(&str, &str)], by: SettleBy) -> (SettlementPrices, RefData) {
        let reference = refdata::shipped().expect("the shipped set is sound");
        let mut config = Config::default();
        config.settlement.by = by;
        config.settlement.prices =
            prices.iter().map(|(name, text)| (name.to_string(), price(text))).collect();
        (SettlementPrices::of(&config, &reference), reference)
    }

    fn id(reference: &RefData, symbol: &str) -> SecurityId {
        reference.by_symbol(symbol)[0]
    }

    #[test]
    fn futures_settle_at_their_own_price_and_options_at_their_intrinsic_value() {
        let (settlement, reference) = settlement(&[], SettleBy::Last);
        let (apple, future) = (id(&reference, "AAPL"), id(&reference, "ESZ7"));
        let call = id(&reference, "AAPL280121C00250000");
        let put = id(&reference, "AAPL280121P00200000");
        assert_eq!(settlement.resolve(future), Resolution::Await(future));
        assert_eq!(settlement.resolve(call), Resolution::Await(apple));
        assert_eq!(settlement.price(future, price("5000")), Some(price("5000")));
        for (market, of_call, of_put) in [("240", "0", "0"), ("262.5", "12.5", "0"), ("180", "0", "20")] {
            assert_eq!(settlement.price(call, price(market)), Some(price(of_call)));
            assert_eq!(settlement.price(put, price(market)), Some(price(of_put)));
        }
    }

    #[test]
    fn a_configured_price_takes_precedence_and_an_operator_gives_the_rest() {
        let prices = [("ESZ7", "5000.25"), ("AAPL", "262.5")];
        let (settlement, reference) = settlement(&prices, SettleBy::Operator);
        let resolve = |symbol| settlement.resolve(id(&reference, symbol));
        assert_eq!(resolve("ESZ7"), Resolution::Settle(price("5000.25")));
        assert_eq!(resolve("AAPL280121C00250000"), Resolution::Settle(price("12.5")));
        assert_eq!(resolve("NQZ7"), Resolution::Ask);
        assert_eq!(resolve("MSFT280121C00450000"), Resolution::Ask);
    }

    #[test]
    fn settlement_waits_for_a_market_without_a_last_price() {
        let (settlement, reference) = settlement(&[], SettleBy::Last);
        let (apple, call) = (id(&reference, "AAPL"), id(&reference, "AAPL280121C00250000"));
        let mut awaited = PendingSettlements::default();
        for _ in 0..2 {
            awaited.wait(PortId(0), call, apple);
        }
        let tick = |traded| Tick {
            security: apple,
            bid: Price::ZERO,
            bid_size: Default::default(),
            ask: Price::ZERO,
            ask_size: Default::default(),
            last: price("251"),
            last_size: Default::default(),
            traded,
            volume: Default::default(),
            at: Default::default(),
        };
        assert_eq!(awaited.settle(&tick(false), &settlement), []);
        assert_eq!(awaited.settle(&tick(true), &settlement), [(call, price("1"))]);
        assert_eq!(awaited.settle(&tick(true), &settlement), [], "once");
    }
}
