//! Profit of a trading day by strategy and security, before and after fees. It is computed from the
//! trades of the day, with the rounding of one conversion to money.
//!
//! ```text
//! gross = quantity at the end × price − quantity at the begin × price at the begin − Σ quantity × price
//! ```
//!
//! The end of the running day is now. When a day ends, its totals are kept until their owner takes
//! them, because the trades themselves are dropped.

use std::collections::{BTreeMap, VecDeque};

use super::{View, ViewSettings};
use crate::id::{Currency, PositionId, SecurityId, ShardId, StrategyId};
use crate::number::{Money, Notional, Price, Qty};
use crate::refdata::RefData;
use crate::shard::Shard;
use crate::time::Day;

/// Ended days of each shard that wait to be taken. Beyond it the oldest are dropped.
const ENDED_DAYS_MAX: usize = 4;

/// Result of one strategy in one security, in the currency of the security. An amount is absent if
/// it cannot be counted, or if a price or a trade that it needs is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayResult {
    pub strategy: StrategyId,
    pub security: SecurityId,
    pub currency: Currency,
    /// Quantity that is held at the end, signed.
    pub qty: Qty,
    /// Price of that quantity, with which the next day begins. Absent if nothing is held.
    pub price: Option<Price>,
    /// Trades of the day.
    pub trades: u64,
    /// Profit without fees, realised or not.
    pub gross: Option<Money>,
    pub fees: Option<Money>,
    pub net: Option<Money>,
}

/// What the result of one strategy in one security is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayTotals {
    pub position: PositionId,
    qty: Qty,
    price: Option<Price>,
    trades: TradeSums,
    /// Whether all trades of the day are counted.
    is_whole: bool,
}

/// A trading day that has ended at one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedDay {
    pub day: Day,
    shard: ShardId,
    /// By strategy and security: positions that are not flat or were traded.
    pub totals: Vec<DayTotals>,
}

impl EndedDay {
    /// Returns the trading day of a shard as if it ended now. A reader that starts after the next
    /// day has begun does not hear of it; `None` before the first day.
    pub fn of_running(shard: &Shard) -> Option<EndedDay> {
        let kept = shard.settings().transactions_max;
        let settings =
            ViewSettings { transactions_max: kept, shard_transactions_max: kept, ..ViewSettings::default() };
        let id = shard.id();
        let mut view = View::new(id.0 + 1, settings);
        shard.visit_ledger(|event| view.apply(id, event));
        let day = view.shards[id.0 as usize].day?;
        Some(EndedDay { day, shard: id, totals: view.day_totals(|_, _| true) })
    }

    /// Returns whether its shard has begun a later day; `None` as long as the view does not know.
    pub fn is_over(&self, view: &View) -> Option<bool> {
        view.shards.get(self.shard.0 as usize)?.day.map(|day| day > self.day)
    }
}

/// Sums of the trades of one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl DayTotals {
    /// Returns the result; `None` if the reference data do not know the security. `begin` is the
    /// price at which the day begins.
    pub fn result(&self, begin: Option<Price>, reference: &RefData) -> Option<DayResult> {
        let (strategy, security) = (self.position.strategy(), self.position.security());
        let family = reference.family_of(reference.security(security)?);
        let gross = self.gross(begin).filter(|_| self.is_whole);
        let gross = gross.and_then(|gross| gross.money(family.contract_size));
        let fees = i64::try_from(self.trades.fees).ok().filter(|_| self.is_whole).map(Money::from_raw);
        Some(DayResult {
            strategy,
            security,
            currency: family.currency,
            qty: self.qty,
            price: self.price,
            trades: self.trades.trades,
            gross,
            fees,
            net: gross.zip(fees).and_then(|(gross, fees)| gross.checked_sub(fees)),
        })
    }

    fn gross(&self, begin: Option<Price>) -> Option<Notional> {
        let value = |qty: Qty, price: Option<Price>| match qty.is_zero() {
            true => Some(Notional::ZERO),
            false => price.map(|price| Notional::of(price, qty)),
        };
        let begin_qty = i64::try_from(self.qty.raw() as i128 - self.trades.qty).ok().map(Qty::from_raw)?;
        let end = value(self.qty, self.price)?;
        end.checked_sub(value(begin_qty, begin)?)?.checked_sub(self.trades.paid?)
    }
}

impl View {
    /// Returns the results of the selected strategies, by strategy and security: of every position
    /// that is not flat or was traded today. `begin` is the price at which the day begins.
    pub fn day_results(
        &self,
        wanted: impl Fn(StrategyId) -> bool,
        begin: impl Fn(PositionId) -> Option<Price>,
        reference: &RefData,
    ) -> Vec<DayResult> {
        let totals = self.day_totals(|strategy, _| wanted(strategy));
        totals.iter().filter_map(|totals| totals.result(begin(totals.position), reference)).collect()
    }

    fn day_totals(&self, wanted: impl Fn(StrategyId, ShardId) -> bool) -> Vec<DayTotals> {
        let mut sums: BTreeMap<(StrategyId, SecurityId), TradeSums> = BTreeMap::new();
        for trade in self.transactions(None).filter(|trade| wanted(trade.strategy, trade.shard)) {
            let Some(security) = trade.security else { continue };
            let sum = sums.entry((trade.strategy, security)).or_default();
            sum.trades += 1;
            sum.qty += trade.qty.raw() as i128;
            sum.fees += trade.commission.raw() as i128;
            sum.paid = sum.paid.and_then(|paid| paid.checked_add(Notional::of(trade.price, trade.qty)));
        }
        let held = self.ledger.held().filter(|(position, shard)| wanted(position.strategy(), *shard));
        for (position, _) in held {
            sums.entry((position.strategy(), position.security())).or_default();
        }
        let totals = |((strategy, security), trades)| {
            let position = PositionId::new(strategy, security);
            let qty = self.position(position).map_or(Qty::ZERO, |position| position.state.qty);
            let price = (!qty.is_zero()).then(|| self.market_price(security, qty)).flatten();
            let is_whole = !self.ledger.is_day_cut(position);
            DayTotals { position, qty, price, trades, is_whole }
        };
        sums.into_iter().map(totals).collect()
    }

    /// Keeps the totals of the day that ends at a shard, before its trades are dropped.
    pub(super) fn keep_ended_day(&mut self, shard: ShardId, day: Day) {
        let totals = self.day_totals(|_, of| of == shard);
        let waiting = self.ended_days.iter().filter(|ended| ended.shard == shard).count();
        if waiting >= ENDED_DAYS_MAX
            && let Some(oldest) = self.ended_days.iter().position(|ended| ended.shard == shard)
        {
            self.ended_days.remove(oldest);
        }
        self.ended_days.push_back(EndedDay { day, shard, totals });
    }

    /// Takes the days that have ended at shards, in the order of their ends.
    pub fn take_ended_days(&mut self) -> VecDeque<EndedDay> {
        std::mem::take(&mut self.ended_days)
    }
}
