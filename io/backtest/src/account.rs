//! Results of a simulation: orders, fills and round trips, and the equity of each strategy in
//! samples.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_config::Config;
use pitlane_engine::command::{CommandKind, Movement};
use pitlane_engine::event::{Booking, Event, EventKind, ExecType, OrderReport, OrderTerms};
use pitlane_engine::id::{Currency, OrderHandle, PositionId, SecurityId, ShardId, StrategyId};
use pitlane_engine::number::{ContractSize, Money, Notional};
use pitlane_engine::refdata::RefData;
use pitlane_engine::shard::shard_of;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{Missing, View, ViewSettings};
use pitlane_gateway::strategies;
use pitlane_market_data::TickRow;
use pitlane_strategy::market::MarketCache;

use super::fees::FeeSchedule;
use super::records::{BoundedRows, EquitySample, FillRecord, OrderRecord, PriceCurve, RoundTrip};
use super::round_trips::{ClosedTrip, PositionChange, TripTracker};
use super::run_hash::RunHash;
use super::sampling::{Months, SampleClock, mid_price, observed_securities, thin_out};
use super::totals::TradeTotals;

/// Samples of a curve. Beyond this number, every second sample is dropped and the interval is
/// doubled: enough for any plot, and a run may have any length.
const SAMPLES_MAX: usize = 65_536;

/// Results of one strategy.
#[derive(Clone, Debug, Default)]
pub struct StrategyResult {
    pub strategy: StrategyId,
    pub name: String,
    pub equity: Vec<EquitySample>,
    /// At the end of each day with data, in UTC, and at the end of the run.
    pub daily: Vec<EquitySample>,
    pub orders: u64,
    pub rejected: u64,
    /// Reports of fills; one order may have several.
    pub fills: u64,
    pub totals: TradeTotals,
    pub by_security: BTreeMap<SecurityId, TradeTotals>,
    /// By month such as `2026-11`, in UTC.
    pub by_month: BTreeMap<String, TradeTotals>,
    /// Time during which it held a position, and positions that are open at the end.
    pub in_market_ns: u64,
    pub open_positions: usize,
    /// Reason and time of its failure.
    pub failure: Option<(Timestamp, String)>,
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
    orders: BoundedRows<OrderRecord>,
    /// Index of each order's record, until the shard has forgotten the order.
    order_rows: BTreeMap<OrderHandle, usize>,
    fills: BoundedRows<FillRecord>,
    round_trips: BoundedRows<RoundTrip>,
    tracker: TripTracker,
    /// Profit realised so far, by position.
    realized: BTreeMap<PositionId, Money>,
    prices: Vec<PriceCurve>,
    clock: SampleClock,
    months: Months,
    begun: Timestamp,
    ended: Timestamp,
    missing: Vec<Missing>,
    fees: Option<FeeSchedule>,
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
        let observed = observed_securities(config, &reference);
        let price_curve = |security| PriceCurve { security, ..PriceCurve::default() };
        let rows_max = config.simulation.records_max;
        SimulationAccount {
            base: config.service.base_currency,
            shards,
            view: View::new(
                shards,
                ViewSettings { seed: config.service.seed, changes_max: 0, ..config.view },
            ),
            market,
            lines: here.into_iter().map(line).collect(),
            orders: BoundedRows::new(rows_max),
            order_rows: BTreeMap::new(),
            fills: BoundedRows::new(rows_max),
            round_trips: BoundedRows::new(rows_max),
            tracker: TripTracker::default(),
            realized: BTreeMap::new(),
            prices: observed.into_iter().map(price_curve).collect(),
            clock: SampleClock::new(config.simulation.sample_ns),
            months: Months::default(),
            begun: Timestamp::ZERO,
            ended: Timestamp::ZERO,
            missing: Vec::new(),
            fees: FeeSchedule::of(&config.simulation),
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

    pub fn orders(&self) -> &BoundedRows<OrderRecord> {
        &self.orders
    }

    pub fn fills(&self) -> &BoundedRows<FillRecord> {
        &self.fills
    }

    pub fn round_trips(&self) -> &BoundedRows<RoundTrip> {
        &self.round_trips
    }

    /// Returns the prices of the securities of the strategies and of the benchmark.
    pub fn prices(&self) -> &[PriceCurve] {
        &self.prices
    }

    /// Returns what could not be valued or converted at the end.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    pub fn sample_ns(&self) -> u64 {
        self.clock.every_ns
    }

    pub fn range(&self) -> (Timestamp, Timestamp) {
        (self.begun, self.ended)
    }

    /// Returns the hash of the run so far.
    pub fn hash(&self) -> u64 {
        self.hash.digest()
    }

    /// Starts the sampling of equity.
    pub fn begin(&mut self, now: Timestamp) {
        self.begun = now;
        self.clock.begin(now);
        self.sample(now);
    }

    /// Ends the run; `rows` is the number of its rows of data.
    pub fn end(&mut self, now: Timestamp, rows: u64) {
        self.sample(now);
        if self.clock.has_data {
            self.close_day(now);
        }
        for line in &mut self.lines {
            line.in_market_ns = self.tracker.time_in_market_ns(line.strategy, now);
            line.open_positions = self.tracker.open(line.strategy);
        }
        self.hash.add_range(self.begun, now, rows);
        self.ended = now;
    }

    pub fn sample_at(&self) -> Timestamp {
        self.clock.next
    }

    /// Called before a row of data is applied.
    #[inline]
    pub fn see(&mut self, row: &TickRow) {
        self.begin_step();
        self.clock.has_data = true;
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

    /// Separates what happens from now on from what happened before, for the fees of makers and
    /// takers.
    #[inline]
    pub fn begin_step(&mut self) {
        if let Some(fees) = &mut self.fees {
            fees.begin_step();
        }
    }

    /// Returns the next fee that must be booked.
    #[inline]
    pub fn poll_fee(&mut self) -> Option<Movement> {
        self.fees.as_mut()?.poll_movement()
    }

    /// Applies an event of a shard.
    pub fn handle(&mut self, shard: ShardId, event: &Event) {
        self.view.apply(shard, event);
        match &event.body {
            EventKind::Order(order) => self.note_terms(event.at, order),
            EventKind::Status(report) => self.note_status(event.at, report),
            EventKind::Forgotten { order, .. } => {
                self.order_rows.remove(order);
                self.fees.iter_mut().for_each(|fees| fees.forget(*order));
            }
            EventKind::Booked(booking) => {
                if let Some(security) = booking.security {
                    self.book(event.at, security, booking);
                }
            }
            EventKind::Refused(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_)
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. } => {}
        }
        if let Some(report) = event.report() {
            self.hash.add_report(event.at, &report);
            let Some(line) = self.lines.iter_mut().find(|line| line.strategy == report.strategy) else {
                return;
            };
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
    }

    /// Records a new order, or the new terms of a known one.
    fn note_terms(&mut self, at: Timestamp, order: &OrderTerms) {
        let OrderTerms { terms, status, reason, .. } = order;
        let (limit, stop) =
            (terms.limit_given.then_some(terms.limit), terms.stop_given.then_some(terms.stop));
        self.fees.iter_mut().for_each(|fees| fees.note_arrival(order.order));
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
            filled: Default::default(),
            avg_price: Default::default(),
            status: *status,
            reason: *reason,
        });
        // A rejected order may have no place in the shard, and then no handle of its own.
        if let Some(row) = row.filter(|_| !status.is_finished()) {
            self.order_rows.insert(order.order, row);
        }
    }

    fn note_status(&mut self, at: Timestamp, report: &OrderReport) {
        if matches!(report.what, ExecType::Accepted | ExecType::Replaced | ExecType::Triggered) {
            self.fees.iter_mut().for_each(|fees| fees.note_arrival(report.order));
        }
        let Some(row) = self.order_rows.get(&report.order).and_then(|row| self.orders.row_mut(*row)) else {
            return;
        };
        (row.qty, row.filled, row.avg_price) = (report.qty, report.cum_qty, report.avg_price);
        (row.status, row.reason) = (report.status, report.reason);
        row.ended = report.status.is_finished().then_some(row.ended.unwrap_or(at));
    }

    fn book(&mut self, at: Timestamp, security: SecurityId, booking: &Booking) {
        let Booking { strategy, qty, price, position, .. } = *booking;
        let Some(place) = self.lines.iter().position(|line| line.strategy == strategy) else { return };
        let before = self.realized.insert(PositionId::new(strategy, security), position.realized);
        let realized = position.realized.checked_sub(before.unwrap_or_default()).unwrap_or_default();
        let row = self.reference.security(security).map(|row| self.reference.family_of(row));
        let contract_size = row.map_or(ContractSize::ONE, |family| family.contract_size);
        let value = Notional::of(price, qty).money(contract_size).unwrap_or_default().abs();
        let in_base = self.to_base(value, booking.currency);
        let month = self.months.of(at);
        let tier_fee = self.fees.as_mut().and_then(|fees| fees.charge(booking, value, in_base, month));
        let fee = booking.commission.checked_add(tier_fee.unwrap_or_default()).unwrap_or(booking.commission);
        self.hash.add_booking(at, booking, fee);
        let is_fill = booking.order != OrderHandle::NONE;
        let order_id = is_fill.then_some(booking.order_id);
        self.fills.push(FillRecord {
            at,
            strategy,
            security,
            order_id,
            qty,
            price,
            fee,
            realized,
            position: position.qty,
        });
        let fee_in_base = self.to_base(fee, booking.currency);
        let line = &mut self.lines[place];
        for totals in [
            &mut line.totals,
            line.by_security.entry(security).or_default(),
            line.by_month.entry(month.to_string()).or_default(),
        ] {
            totals.add_fill(in_base, fee_in_base);
        }
        let change = PositionChange { at, strategy, security, qty, price, fee, contract_size };
        if let Some(closed) = self.tracker.apply(&change) {
            self.add_trip(place, &change, &closed, booking.currency);
        }
    }

    fn add_trip(&mut self, place: usize, change: &PositionChange, closed: &ClosedTrip, currency: Currency) {
        let trip = RoundTrip {
            strategy: change.strategy,
            security: change.security,
            side: closed.side,
            opened: closed.opened,
            closed: change.at,
            qty: closed.qty,
            entry: closed.entry,
            exit: closed.exit,
            fills: closed.fills,
            fees: self.to_base(closed.fees, currency),
            profit: self.to_base(closed.profit.unwrap_or_default(), currency),
        };
        let month = self.months.of(change.at);
        let line = &mut self.lines[place];
        for totals in [
            &mut line.totals,
            line.by_security.entry(change.security).or_default(),
            line.by_month.entry(month.to_string()).or_default(),
        ] {
            totals.add_trip(&trip);
        }
        self.round_trips.push(trip);
    }

    /// Converts an amount to the base currency at the rates of the last sample. Without a rate the
    /// amount counts as zero, and the report names the currency.
    fn to_base(&self, amount: Money, currency: Currency) -> Money {
        if amount.is_zero() || currency == self.base {
            return amount;
        }
        self.view.convert(amount, currency, self.base, &self.reference).unwrap_or_default()
    }

    pub fn note_failure(&mut self, now: Timestamp, name: &str, reason: &str) {
        if let Some(line) = self.lines.iter_mut().find(|line| line.name == name) {
            line.failure = Some((now, reason.to_string()));
        }
    }

    /// Samples the equity of every strategy and the prices. At the end of a day with data, the
    /// sample also closes the day.
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
            let equity = owned.net_liquidation.unwrap_or_default();
            let exposure = exposure(&self.view, line.strategy, self.base, &self.reference);
            let sample = EquitySample { at: now, equity, exposure };
            match line.equity.last_mut() {
                Some(last) if last.at == now => *last = sample,
                _ => line.equity.push(sample),
            }
        }
        for curve in &mut self.prices {
            let Some(price) = self.market.tick(curve.security).and_then(mid_price) else { continue };
            match curve.samples.last_mut() {
                Some(last) if last.0 == now => last.1 = price,
                _ => curve.samples.push((now, price)),
            }
        }
        if self.clock.is_day_end(now) {
            if self.clock.has_data {
                self.close_day(now);
            }
            self.clock.begin_day(now);
        }
        self.clock.advance(now);
        if self.lines.iter().any(|line| line.equity.len() >= SAMPLES_MAX) {
            self.clock.double(now);
            self.lines.iter_mut().for_each(|line| thin_out(&mut line.equity));
            self.prices.iter_mut().for_each(|curve| thin_out(&mut curve.samples));
        }
    }

    /// Records the values of the last sample as those of the end of a day.
    fn close_day(&mut self, now: Timestamp) {
        self.clock.has_data = false;
        for line in &mut self.lines {
            let Some(last) = line.equity.last().copied() else { continue };
            self.hash.add_value(now, line.strategy.0.into(), last.equity);
            line.daily.push(last);
        }
        for curve in &mut self.prices {
            curve.daily.extend(curve.samples.last().copied());
        }
    }
}

/// Returns the sum of the absolute values of a strategy's positions in the base currency. Positions
/// without a price or a rate are not counted; the report names them.
fn exposure(view: &View, strategy: StrategyId, base: Currency, reference: &RefData) -> Money {
    let mut sum = Money::ZERO;
    for position in view.positions().filter(|position| position.id.strategy() == strategy) {
        let Some(valuation) = view.valuation(&position, reference) else { continue };
        let value = valuation.market_value.unwrap_or_default().abs();
        let in_base = view.convert(value, valuation.currency, base, reference).unwrap_or_default();
        sum = sum.checked_add(in_base).unwrap_or(Money::MAX);
    }
    sum
}

#[cfg(test)]
mod tests;
