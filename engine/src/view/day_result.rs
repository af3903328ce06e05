//! Profit of the trading day by strategy and security, before and after fees. It is computed on
//! request from the trades of the day, with the rounding of one conversion to money.
//!
//! ```text
//! gross = quantity now × market price − quantity at the begin × close of the day before − Σ quantity × price
//! ```

use std::collections::BTreeMap;

use super::View;
use crate::id::{Currency, PositionId, SecurityId, StrategyId};
use crate::number::{Money, Notional, Price, Qty};
use crate::refdata::RefData;

/// Result of one strategy in one security, in the currency of the security. An amount is absent if
/// it cannot be counted, or if a price or a trade that it needs is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayResult {
    pub strategy: StrategyId,
    pub security: SecurityId,
    pub currency: Currency,
    /// Quantity that is held now, signed.
    pub qty: Qty,
    /// Trades of the day.
    pub trades: u64,
    /// Profit without fees, realised or not.
    pub gross: Option<Money>,
    pub fees: Option<Money>,
    pub net: Option<Money>,
}

/// Sums of the trades of one position.
#[derive(Clone, Copy, Debug)]
struct TradeSums {
    trades: u64,
    /// Signed, in raw units. 128 bits hold more trades than there can be.
    qty: i128,
    fees: i128,
    /// `None` if it cannot be counted.
    paid: Option<Notional>,
}

impl Default for TradeSums {
    fn default() -> TradeSums {
        TradeSums { trades: 0, qty: 0, fees: 0, paid: Some(Notional::ZERO) }
    }
}

impl View {
    /// Returns the results of the selected strategies, by strategy and security: of every position
    /// that is not flat or was traded today. `close` is the last price of the day before.
    pub fn day_results(
        &self,
        wanted: impl Fn(StrategyId) -> bool,
        close: impl Fn(SecurityId) -> Option<Price>,
        reference: &RefData,
    ) -> Vec<DayResult> {
        let mut sums: BTreeMap<(StrategyId, SecurityId), TradeSums> = BTreeMap::new();
        for trade in self.transactions(None).filter(|trade| wanted(trade.strategy)) {
            let Some(security) = trade.security else { continue };
            let sum = sums.entry((trade.strategy, security)).or_default();
            sum.trades += 1;
            sum.qty += trade.qty.raw() as i128;
            sum.fees += trade.commission.raw() as i128;
            sum.paid = sum.paid.and_then(|paid| paid.checked_add(Notional::of(trade.price, trade.qty)));
        }
        let held = self.positions().filter(|position| !position.state.qty.is_zero());
        for position in held.filter(|position| wanted(position.id.strategy())) {
            sums.entry((position.id.strategy(), position.id.security())).or_default();
        }
        let rows = sums.into_iter();
        rows.filter_map(|(key, sums)| self.day_result(key, &sums, &close, reference)).collect()
    }

    /// Returns `None` if the reference data do not know the security.
    fn day_result(
        &self,
        (strategy, security): (StrategyId, SecurityId),
        sums: &TradeSums,
        close: impl Fn(SecurityId) -> Option<Price>,
        reference: &RefData,
    ) -> Option<DayResult> {
        let family = reference.family_of(reference.security(security)?);
        let id = PositionId::new(strategy, security);
        let qty = self.position(id).map_or(Qty::ZERO, |position| position.state.qty);
        let is_whole = !self.ledger.is_day_cut(id);
        let value = |qty: Qty, price: Option<Price>| match qty.is_zero() {
            true => Some(Notional::ZERO),
            false => price.map(|price| Notional::of(price, qty)),
        };
        let gross = || {
            let begin = i64::try_from(qty.raw() as i128 - sums.qty).ok().map(Qty::from_raw)?;
            let now = value(qty, self.market_price(security, qty))?;
            let result = now.checked_sub(value(begin, close(security))?)?.checked_sub(sums.paid?)?;
            result.money(family.contract_size)
        };
        let gross = is_whole.then(gross).flatten();
        let fees = i64::try_from(sums.fees).ok().filter(|_| is_whole).map(Money::from_raw);
        Some(DayResult {
            strategy,
            security,
            currency: family.currency,
            qty,
            trades: sums.trades,
            gross,
            fees,
            net: gross.zip(fees).and_then(|(gross, fees)| gross.checked_sub(fees)),
        })
    }
}
