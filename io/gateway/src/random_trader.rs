//! A demo trader without a plan, for demonstrations: orders of every type and time in force around
//! the market, sometimes a modification, a cancel, a closed position. All its choices come from a
//! seed.
//!
//! The trader is calm: simulated prices move by ticks, so a tick is worth little for each of its
//! orders, and an order in a security that its strategy holds reduces the position. Ten crude oil
//! futures once lost ten thousand in two minutes.

use pitlane_engine::desk::{CloseRequest, Desk, Ticket};
use pitlane_engine::event::Tick;
use pitlane_engine::id::{IntId, Origin, PositionId, Source, StrategyId};
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::number::{Money, Notional, Price, Qty};
use pitlane_engine::refdata::{RefData, SecurityFamily};
use pitlane_engine::rng::Rng;
use pitlane_engine::sender::{Protocol, Sender, SenderText};
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_engine::view::{OrderView, View};

/// Number of open orders from which the trader only cancels, so that the list stays readable and
/// memory bounded.
pub const OPEN_MAX: usize = 40;
/// Largest distance of its prices from the market, in ticks.
const REACH_TICKS: u64 = 6;
const LOTS_MAX: u64 = 10;
/// Largest change of an order's value by one tick of the price, in the currency of the security: a
/// contract of an option in the shipped reference data.
const TICK_VALUE_MAX: i64 = 5;
/// Largest value of an order, in the currency of the security: half the cash of a strategy in the
/// preset `dev`.
const ORDER_VALUE_MAX: i64 = 500_000;

#[derive(Debug)]
pub struct RandomTrader {
    rng: Rng,
    strategies: Vec<StrategyId>,
    /// Mean time between two actions, in nanoseconds.
    pause_ns: u64,
    next: Timestamp,
    token: u32,
}

impl RandomTrader {
    /// Creates a trader that acts for these strategies.
    pub fn new(strategies: Vec<StrategyId>, seed: u64, pause_ns: u64) -> RandomTrader {
        RandomTrader { rng: Rng::new(seed), strategies, pause_ns, next: Timestamp::ZERO, token: 0 }
    }

    /// Returns the time of the next action.
    pub fn next_at(&self) -> Timestamp {
        self.next
    }

    /// Acts once if it is time. Returns the id of the request, or an empty id if it was declined,
    /// or None if the trader did nothing.
    pub fn poll(
        &mut self,
        now: Timestamp,
        desk: &mut Desk,
        port: &mut PortEnd,
        view: &View,
        reference: &RefData,
    ) -> Option<Option<IntId>> {
        if now < self.next {
            return None;
        }
        self.next = now.plus(1 + self.rng.below(2 * self.pause_ns));
        self.token = self.token.wrapping_add(1);
        let source = Source { origin: Origin::Strategy, port: port.id(), session: 0 };
        let login = SenderText::new("demo-trader");
        let sender =
            port.register_sender(Sender { protocol: Protocol::Internal, login, ..Sender::default() });
        let ticket = Ticket { source, token: self.token, sender, ..Ticket::default() };
        // A declined request is not an error; the next action follows soon.
        let outcome = match self.choose(now, view, reference)? {
            DemoAction::Submit(terms) => desk.submit(port, ticket, terms),
            DemoAction::Modify(order, changes) => desk.modify(port, ticket, &order.id, changes),
            DemoAction::Cancel(order) => desk.cancel(port, ticket, &order.id),
            DemoAction::Close(closing) => desk.close(port, ticket, closing),
        };
        Some(outcome.ok())
    }

    fn choose(&mut self, now: Timestamp, view: &View, reference: &RefData) -> Option<DemoAction> {
        let open = view.open_orders_len();
        let choice = self.rng.below(100);
        match choice {
            _ if open >= OPEN_MAX => self.any_order(view).map(DemoAction::Cancel),
            0..15 if open > 0 => self.any_order(view).map(DemoAction::Cancel),
            15..35 if open > 0 => self.modification(view, reference),
            35..40 => self.closing(view, reference),
            _ => self.submission(now, view, reference),
        }
    }

    fn submission(&mut self, now: Timestamp, view: &View, reference: &RefData) -> Option<DemoAction> {
        let quoted = view.ticks().filter(|tick| tick.bid_size.is_positive() && tick.ask_size.is_positive());
        let tick = *self.pick(quoted.collect())?;
        let security = reference.security(tick.security)?;
        let family = reference.family_of(security);
        let account = reference.default_account(reference.exchange_of(security))?;
        let kind = self.pick(OrderKind::ALL.to_vec())?;
        let strategy = self.pick(self.strategies.clone())?;
        let held = view.position(PositionId::new(strategy, tick.security));
        let held = held.map_or(Qty::ZERO, |position| position.state.qty);
        let lots = self.lots(family, tick.ask)?;
        let (side, qty) = if held.is_zero() {
            (self.pick(Side::BOTH.to_vec())?, lots)
        } else {
            (if held.is_positive() { Side::Sell } else { Side::Buy }, lots.min(held.abs()))
        };
        let (limit, stop) = self.prices(&tick, family, kind, side)?;
        let tif = self.tif(kind)?;
        let patience_ns = (1 + self.rng.below(30)) * NS_PER_S;
        Some(DemoAction::Submit(Terms {
            qty,
            limit: limit.unwrap_or_default(),
            stop: stop.unwrap_or_default(),
            tif_date: if tif == Tif::Gtd { now.plus(patience_ns) } else { Timestamp::ZERO },
            security: tick.security,
            strategy,
            account: account.id,
            side,
            kind,
            tif,
            limit_given: limit.is_some(),
            stop_given: stop.is_some(),
            ..Terms::default()
        }))
    }

    /// Returns limit and stop as the order type needs them: a limit around the market, a stop
    /// beyond it.
    fn prices(
        &mut self,
        tick: &Tick,
        family: &SecurityFamily,
        kind: OrderKind,
        side: Side,
    ) -> Option<(Option<Price>, Option<Price>)> {
        let (market, outward) = match side {
            Side::Buy => (tick.ask, 1),
            Side::Sell => (tick.bid, -1),
        };
        let size = family.tick_size;
        let at = market.ticks(size)?;
        let stop = at + outward * (1 + self.rng.below(REACH_TICKS) as i64);
        let inward = self.rng.below(2 * REACH_TICKS) as i64 - REACH_TICKS as i64 / 2;
        let limit = if kind.has_stop() { stop + outward } else { at - outward * inward };
        let price = |ticks: i64| Price::from_ticks(ticks.max(1), size);
        let limit = if kind.has_limit() { Some(price(limit)?) } else { None };
        let stop = if kind.has_stop() { Some(price(stop)?) } else { None };
        Some((limit, stop))
    }

    /// Returns a time in force that suits the type, and sometimes one that does not.
    fn tif(&mut self, kind: OrderKind) -> Option<Tif> {
        if self.rng.below(40) == 0 {
            return self.pick(Tif::ALL.to_vec());
        }
        match kind {
            OrderKind::Market => self.pick(vec![Tif::Day, Tif::Ioc, Tif::Fok]),
            OrderKind::Limit => self.pick(vec![Tif::Day, Tif::Day, Tif::Gtc, Tif::Gtd, Tif::Ioc, Tif::Fok]),
            OrderKind::Stop | OrderKind::StopLimit => self.pick(vec![Tif::Day, Tif::Gtc, Tif::Gtd]),
        }
    }

    /// Returns another quantity, or a price one tick away.
    fn modification(&mut self, view: &View, reference: &RefData) -> Option<DemoAction> {
        let order = self.any_order(view)?;
        let family = reference.family_of(reference.security(order.terms.security)?);
        let tick = family.tick_size;
        let changes = if order.terms.kind == OrderKind::Limit && self.rng.below(2) == 0 {
            let step = 1 - 2 * self.rng.below(2) as i64;
            let limit = Price::from_ticks((order.terms.limit.ticks(tick)? + step).max(1), tick)?;
            Changes::default().with_limit(limit)
        } else {
            let price = view.tick(order.terms.security)?.ask;
            Changes::default().with_qty(self.lots(family, price)?)
        };
        Some(DemoAction::Modify(order, changes))
    }

    fn closing(&mut self, view: &View, reference: &RefData) -> Option<DemoAction> {
        let own = |strategy: &StrategyId| self.strategies.contains(strategy);
        let held =
            view.positions().filter(|position| !position.state.qty.is_zero() && own(&position.id.strategy()));
        let held = held.map(|position| position.id).collect();
        let id = self.pick(held)?;
        let security = reference.security(id.security())?;
        let account = reference.default_account(reference.exchange_of(security))?;
        let closing = CloseRequest {
            strategy: id.strategy(),
            account: account.id,
            security: id.security(),
            qty: Qty::ZERO,
        };
        Some(DemoAction::Close(closing))
    }

    fn any_order(&mut self, view: &View) -> Option<OrderView> {
        let own = |order: &OrderView| self.strategies.contains(&order.terms.strategy);
        let open = view.open_orders().filter(own).collect();
        self.pick(open)
    }

    /// Returns a small quantity; `None` if one lot is too large for a calm trader.
    fn lots(&mut self, family: &SecurityFamily, price: Price) -> Option<Qty> {
        let most = lots_max(family, price);
        let lots = (most > 0).then(|| 1 + self.rng.below(most) as i64)?;
        Some(Qty::from_raw(family.lot_size.raw().saturating_mul(lots)))
    }

    fn pick<T>(&mut self, mut from: Vec<T>) -> Option<T> {
        let at = (!from.is_empty()).then(|| self.rng.index(from.len()))?;
        Some(from.swap_remove(at))
    }
}

/// Returns the largest number of lots of an order.
fn lots_max(family: &SecurityFamily, price: Price) -> u64 {
    let lots_within = |most: i64, price: Price| {
        let lot = Notional::of(price, family.lot_size).money(family.contract_size);
        let most = Money::whole(most).map_or(0, Money::raw);
        // A lot that is worth more than can be counted is too large.
        lot.map_or(0, |lot| most / lot.raw().max(1))
    };
    let most = lots_within(TICK_VALUE_MAX, family.tick_size).min(lots_within(ORDER_VALUE_MAX, price));
    u64::try_from(most).unwrap_or(0).min(LOTS_MAX)
}

enum DemoAction {
    Submit(Terms),
    Modify(OrderView, Changes),
    Cancel(OrderView),
    Close(CloseRequest),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_small_in_every_kind_of_security() {
        let reference = pitlane_config::refdata::shipped().unwrap();
        let lots = |symbol: &str, price: &str| {
            let security = reference.securities().iter().find(|row| row.symbol == symbol).unwrap();
            lots_max(reference.family_of(security), Price::parse(price.as_bytes()).unwrap())
        };
        assert_eq!([lots("AAPL", "230"), lots("EURUSD", "1.08"), lots("BTCUSD", "94000")], [LOTS_MAX; 3]);
        // The value of an order of ten lots is 1.5 million yen.
        assert_eq!(lots("USDJPY", "154"), 3);
        assert_eq!([lots("AAPL280121C00250000", "32.55"), lots("NQZ7", "20900")], [1, 1]);
        assert_eq!(lots("NQZ7", "26000"), 0);
        assert_eq!([lots("ESZ7", "6000"), lots("CLZ7", "68"), lots("GCZ7", "2650")], [0; 3]);
    }
}
