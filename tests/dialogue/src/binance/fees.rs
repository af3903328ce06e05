//! Fees and balances of the account.

use std::collections::BTreeMap;

use pitlane_engine::number::{ContractSize, Money, Notional, Price, Qty};

use super::BinanceExchange;

/// The fee of every trade, as the venue charges it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FeeRule {
    #[default]
    None,
    /// A thousandth of the received asset.
    Received { base: String, quote: String },
    /// An amount in this asset.
    Fixed { asset: String, amount: Money },
}

impl FeeRule {
    /// Returns amount and asset of the fee of a trade; an empty asset means that there is none.
    pub(super) fn fee(&self, is_buy: bool, qty: Qty, price: Price) -> (Money, String) {
        match self {
            FeeRule::None => (Money::ZERO, String::new()),
            FeeRule::Received { base, .. } if is_buy => (Money::from_raw(qty.raw() / 1_000), base.clone()),
            FeeRule::Received { quote, .. } => {
                let value = Notional::of(price, qty).money(ContractSize::ONE);
                (Money::from_raw(value.expect("a value of a test is small").raw() / 1_000), quote.clone())
            }
            FeeRule::Fixed { asset, amount } => (*amount, asset.clone()),
        }
    }
}

impl BinanceExchange {
    /// Returns how the trades of a symbol have changed the balances of the account, by asset.
    pub fn balances(&self, symbol: &str, [base, quote]: [&str; 2]) -> BTreeMap<String, i64> {
        let mut balances: BTreeMap<String, i64> = BTreeMap::new();
        for trade in self.trades.iter().filter(|trade| trade.symbol == symbol) {
            let sign = if self.orders[&trade.order].side == "BUY" { 1 } else { -1 };
            let value = Notional::of(trade.price, trade.qty).money(ContractSize::ONE);
            let value = value.expect("a value of a test is small").raw();
            *balances.entry(base.to_string()).or_default() += sign * trade.qty.raw();
            *balances.entry(quote.to_string()).or_default() -= sign * value;
            *balances.entry(trade.commission_asset.clone()).or_default() -= trade.commission.raw();
        }
        balances.retain(|asset, _| !asset.is_empty());
        balances
    }
}
