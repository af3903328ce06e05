//! Results of a simulation: orders, trades, and the equity of each strategy in samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_config::Config;
use pitlane_engine::command::CommandKind;
use pitlane_engine::event::{Booking, Event, EventKind, ExecType, OrderReport, OrderTerms};
use pitlane_engine::id::{Currency, OrderHandle, PositionId, SecurityId, ShardId, StrategyId};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{Missing, View, ViewSettings};
use pitlane_gateway::strategies;
use pitlane_market_data::TickRow;
use pitlane_strategy::market::MarketCache;

use super::records::{BoundedRows, FillRecord, OrderRecord};
use super::run_hash::RunHash;

/// Samples of a curve. Beyond this number, every second sample is dropped and the interval is
/// doubled: enough for any plot, and a run may have any length.
const SAMPLES_MAX: usize = 65_536;
/// Trades that are listed; all are counted.
const TRADES_MAX: usize = 10_000;
/// Orders and fills that are kept, each; further ones are counted. A million takes 150 MB.
const RECORDS_MAX: usize = 1_000_000;

/// Results of one strategy.
#[derive(Clone, Debug, Default)]
pub struct StrategyResult {
    pub strategy: StrategyId,
    pub name: String,
    /// Time and value in the base currency of each sample.
    pub equity: Vec<(Timestamp, Money)>,
    pub orders: u64,
    pub rejected: u64,
    pub fills: u64,
    pub commission: Money,
    /// Transactions that closed a position or a part of it: their number at a profit and at a loss,
    /// and the sums.
    pub wins: u64,
    pub losses: u64,
    pub won: Money,
    pub lost: Money,
    /// Reason and time of its failure.
    pub failure: Option<(Timestamp, String)>,
}

/// A transaction, as the report lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedTrade {
    pub at: Timestamp,
    pub strategy: StrategyId,
    pub security: SecurityId,
    pub qty: Qty,
    pub price: Price,
    pub commission: Money,
    /// Realised profit.
    pub realized: Money,
    pub position: Qty,
}

#[derive(Debug)]
pub struct SimulationAccount {
    reference: Arc<RefData>,
    base: Currency,
    shards: u8,
    view: View,
    /// The newest market of every security.
    market: MarketCache,
    lines: Vec<StrategyResult>,
    deals: Vec<SimulatedTrade>,
    deals_more: u64,
    /// Profit realised so far, by position.
    realized: BTreeMap<PositionId, Money>,
    sample_ns: u64,
    sample_at: Timestamp,
    begun: Timestamp,
    ended: Timestamp,
    missing: Vec<Missing>,
    orders: BoundedRows<OrderRecord>,
    /// Index of each order's record, until the shard has forgotten the order.
    order_rows: BTreeMap<OrderHandle, usize>,
    fills: BoundedRows<FillRecord>,
    hash: RunHash,
}

impl SimulationAccount {
    pub fn new(config: &Config, reference: Arc<RefData>, shards: u8) -> SimulationAccount {
        let mut market = MarketCache::default();
        for row in reference.securities() {
            market.follow(row.id, 0, true);
        }
        let name = |id| reference.strategy(id).map(|row| row.name.clone()).unwrap_or_default();
        let here = strategies::run_here(&config.strategies, &reference);
        let line = |strategy| StrategyResult { strategy, name: name(strategy), ..StrategyResult::default() };
        SimulationAccount {
            base: config.service.base_currency,
            shards,
            view: View::new(shards, ViewSettings { seed: config.service.seed, ..config.view }),
            market,
            lines: here.into_iter().map(line).collect(),
            deals: Vec::new(),
            deals_more: 0,
            realized: BTreeMap::new(),
            sample_ns: config.simulation.sample_ns,
            sample_at: Timestamp::MAX,
            begun: Timestamp::ZERO,
            ended: Timestamp::ZERO,
            missing: Vec::new(),
            orders: BoundedRows::new(RECORDS_MAX),
            order_rows: BTreeMap::new(),
            fills: BoundedRows::new(RECORDS_MAX),
            hash: RunHash::default(),
            reference,
        }
    }

    pub fn reference(&self) -> &RefData {
        &self.reference
    }

    pub fn lines(&self) -> &[StrategyResult] {
        &self.lines
    }

    pub fn deals(&self) -> &[SimulatedTrade] {
        &self.deals
    }

    /// Returns the number of transactions that are not listed.
    pub fn deals_more(&self) -> u64 {
        self.deals_more
    }

    /// Returns what could not be valued or converted at the end.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// Returns the hash of the run so far.
    pub fn hash(&self) -> u64 {
        self.hash.digest()
    }

    pub fn orders(&self) -> &BoundedRows<OrderRecord> {
        &self.orders
    }

    pub fn fills(&self) -> &BoundedRows<FillRecord> {
        &self.fills
    }

    pub fn sample_ns(&self) -> u64 {
        self.sample_ns
    }

    pub fn range(&self) -> (Timestamp, Timestamp) {
        (self.begun, self.ended)
    }

    /// Starts the sampling of equity.
    pub fn begin(&mut self, now: Timestamp) {
        self.begun = now;
        self.sample(now);
    }

    /// Ends the run; `rows` is the number of its rows of data.
    pub fn end(&mut self, now: Timestamp, rows: u64) {
        self.ended = now;
        for line in &self.lines {
            for (at, worth) in &line.equity {
                self.hash.add_value(*at, line.strategy.0.into(), *worth);
            }
        }
        self.hash.add_range(self.begun, now, rows);
    }

    pub fn sample_at(&self) -> Timestamp {
        self.sample_at
    }

    /// Called before a row of data is applied.
    #[inline]
    pub fn see(&mut self, row: &TickRow) {
        let Some(tick) = self.market.tick_mut(row.security) else { return };
        if let CommandKind::Quote { quote, .. } | CommandKind::Tick { quote, .. } = &row.body {
            (tick.bid, tick.bid_size, tick.ask, tick.ask_size) =
                (quote.bid, quote.bid_size, quote.ask, quote.ask_size);
        }
        if let CommandKind::Trade { trade, .. } | CommandKind::Tick { trade, .. } = &row.body {
            (tick.last, tick.last_size, tick.traded) = (trade.price, trade.size, true);
        }
        tick.at = Timestamp(row.at.0.max(1));
    }

    /// Applies an event of a shard.
    pub fn handle(&mut self, shard: ShardId, event: &Event) {
        self.view.apply(shard, event);
        if let EventKind::Order(order) = &event.body {
            self.note_terms(event.at, order);
        } else if let EventKind::Status(report) = &event.body {
            self.note_status(event.at, report);
        } else if let EventKind::Forgotten { order, .. } = &event.body {
            self.order_rows.remove(order);
        }
        if let Some(report) = event.report() {
            let Some(line) = self.lines.iter_mut().find(|line| line.strategy == report.strategy) else {
                return;
            };
            self.hash.add_report(event.at, &report);
            match report.what {
                ExecType::Entered => line.orders += 1,
                ExecType::Rejected => {
                    line.orders += 1;
                    line.rejected += 1;
                }
                ExecType::Filled => line.fills += 1,
                ExecType::Accepted
                | ExecType::CancelPending
                | ExecType::Canceled
                | ExecType::Expired
                | ExecType::ReplacePending
                | ExecType::Replaced
                | ExecType::Triggered
                | ExecType::Corrected
                | ExecType::Snapshot => {}
            }
        }
        if let EventKind::Booked(booking) = &event.body
            && let Some(security) = booking.security
        {
            self.book(event.at, security, booking);
        }
    }

    /// Records a new order, or the new terms of a known one.
    fn note_terms(&mut self, at: Timestamp, order: &OrderTerms) {
        let OrderTerms { terms, status, reason, .. } = order;
        let (limit, stop) =
            (terms.limit_given.then_some(terms.limit), terms.stop_given.then_some(terms.stop));
        if let Some(row) = self.order_rows.get(&order.order).and_then(|row| self.orders.row_mut(*row)) {
            (row.qty, row.limit, row.stop, row.status) = (terms.qty, limit, stop, *status);
            return;
        }
        let row = self.orders.push(OrderRecord {
            order: order.order,
            id: order.id,
            strategy: terms.strategy,
            security: terms.security,
            side: terms.side,
            kind: terms.kind,
            tif: terms.tif,
            qty: terms.qty,
            limit,
            stop,
            entered: at,
            ended: status.is_finished().then_some(at),
            filled: Qty::ZERO,
            avg_price: Price::ZERO,
            status: *status,
            reason: *reason,
        });
        // A rejected order may have no place in the shard, and then no handle of its own.
        if let Some(row) = row.filter(|_| !status.is_finished()) {
            self.order_rows.insert(order.order, row);
        }
    }

    fn note_status(&mut self, at: Timestamp, report: &OrderReport) {
        let Some(row) = self.order_rows.get(&report.order).and_then(|row| self.orders.row_mut(*row)) else {
            return;
        };
        (row.qty, row.filled, row.avg_price) = (report.qty, report.cum_qty, report.avg_price);
        (row.status, row.reason) = (report.status, report.reason);
        row.ended = report.status.is_finished().then_some(row.ended.unwrap_or(at));
    }

    fn book(&mut self, at: Timestamp, security: SecurityId, booking: &Booking) {
        let Booking { strategy, qty, price, commission, position, .. } = *booking;
        let Some(line) = self.lines.iter_mut().find(|line| line.strategy == strategy) else { return };
        let before = self.realized.insert(PositionId::new(strategy, security), position.realized);
        let realized = position.realized.checked_sub(before.unwrap_or_default()).unwrap_or_default();
        let add = |sum: Money, amount: Money| sum.checked_add(amount).unwrap_or(sum);
        line.commission = add(line.commission, commission);
        if realized.is_positive() {
            line.wins += 1;
            line.won = add(line.won, realized);
        } else if realized.is_negative() {
            line.losses += 1;
            line.lost = add(line.lost, realized.abs());
        }
        self.hash.add_booking(at, booking, commission);
        self.fills.push(FillRecord {
            at,
            strategy,
            security,
            order_id: (booking.order != OrderHandle::NONE).then_some(booking.order_id),
            qty,
            price,
            fee: commission,
            realized,
            position: position.qty,
        });
        if self.deals.len() < TRADES_MAX {
            let position = position.qty;
            self.deals.push(SimulatedTrade {
                at,
                strategy,
                security,
                qty,
                price,
                commission,
                realized,
                position,
            });
        } else {
            self.deals_more += 1;
        }
    }

    pub fn note_failure(&mut self, now: Timestamp, name: &str, reason: &str) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.name == name) {
            line.failure = Some((now, reason.to_string()));
        }
    }

    /// Samples the equity of every strategy.
    pub fn sample(&mut self, now: Timestamp) {
        for tick in self.market.ticks() {
            let shard = shard_of(tick.security, self.shards);
            // This event is not new, so it has the number of the last event.
            let event = Event { seq: self.view.seq(shard), at: now, body: EventKind::Tick(*tick) };
            self.view.apply(shard, &event);
        }
        self.missing.clear();
        for line in &mut self.lines {
            let owned = self.view.portfolio(Some(line.strategy), self.base, &self.reference);
            self.missing.extend(owned.missing);
            let worth = owned.net_liquidation.unwrap_or_default();
            match line.equity.last_mut() {
                Some(last) if last.0 == now => last.1 = worth,
                _ => line.equity.push((now, worth)),
            }
        }
        self.sample_at = Timestamp(now.0 - now.0 % self.sample_ns).plus(self.sample_ns);
        if self.lines.iter().any(|line| line.equity.len() >= SAMPLES_MAX) {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        self.sample_ns = self.sample_ns.saturating_mul(2);
        for line in &mut self.lines {
            let mut at = 0;
            line.equity.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::command::MovementKind;
    use pitlane_engine::event::PositionState;
    use pitlane_engine::id::{AccountId, IntId, OrderHandle, TransactionId};

    use super::*;

    const STRATEGY: StrategyId = StrategyId(1);

    fn account() -> SimulationAccount {
        let reference = Arc::new(pitlane_config::refdata::shipped().unwrap());
        let mut account = SimulationAccount::new(&Config::default(), reference, 1);
        account.lines = vec![StrategyResult { strategy: STRATEGY, ..StrategyResult::default() }];
        account
    }

    #[test]
    fn a_curve_has_so_many_samples_and_is_thinned_out_beyond() {
        let mut account = account();
        let every_ns = account.sample_ns;
        let at = |n: usize| Timestamp(n as u64 * every_ns);
        account.lines[0].equity = (0..SAMPLES_MAX - 2).map(|n| (at(n), Money::ZERO)).collect();
        account.sample(at(SAMPLES_MAX - 2));
        assert_eq!((account.lines[0].equity.len(), account.sample_ns), (SAMPLES_MAX - 1, every_ns));
        account.sample(at(SAMPLES_MAX - 1));
        assert_eq!((account.lines[0].equity.len(), account.sample_ns), (SAMPLES_MAX / 2, 2 * every_ns));
        let times = account.lines[0].equity.iter().map(|(at, _)| *at);
        assert!(times.eq((0..SAMPLES_MAX).step_by(2).map(at)), "every second one is left");
        assert_eq!(account.sample_at(), at(SAMPLES_MAX), "and they are taken half as often");
    }

    #[test]
    fn so_many_trades_are_listed_and_all_are_counted() {
        let mut account = account();
        let book = |account: &mut SimulationAccount, n: usize| {
            let realized = Money::from_raw(n as i64 + 1);
            let booking = Booking {
                id: TransactionId(n as u64),
                order: OrderHandle::NONE,
                order_id: IntId::NONE,
                exec: Default::default(),
                kind: MovementKind::Buy,
                strategy: STRATEGY,
                account: AccountId(1),
                security: Some(SecurityId(1)),
                qty: Qty::ZERO,
                price: Price::ZERO,
                commission: Money::ZERO,
                currency: Currency::default(),
                position: PositionState { realized, ..PositionState::default() },
                cash: Money::ZERO,
            };
            account.book(Timestamp(n as u64), SecurityId(1), &booking);
        };
        (0..TRADES_MAX).for_each(|n| book(&mut account, n));
        assert_eq!((account.deals().len(), account.deals_more()), (TRADES_MAX, 0));
        book(&mut account, TRADES_MAX);
        assert_eq!((account.deals().len(), account.deals_more()), (TRADES_MAX, 1));
        assert_eq!(account.lines[0].wins, TRADES_MAX as u64 + 1);
    }
}
