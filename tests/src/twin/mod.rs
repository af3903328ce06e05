//! The naive twin: the same rules as the engine, written from the rules alone in the simplest way
//! that can be right. Plain lists, linear scans, everything recomputed at each request. It is slow,
//! and that is its use: when it and the engine disagree, one look at the rules shows which is
//! wrong.
//!
//! A twin belongs to one shard. It knows orders by their index in [`Twin::orders`]; it learns their
//! handles from [`Twin::bind`].
//!
//! Not modelled: the venue's random numbers, its delays, and which port receives what.

mod auction;
mod books;
mod check;
mod closing;
mod credit;
mod depth;
mod feed_levels;
mod lifecycle;
mod market;
mod operator;
mod order;
mod portions;
mod reconcile;
mod special;
mod venue;

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::command::{
    BudgetKind, Command, CommandKind, ExecRef, RiskLimits, Scope, StrategyPhase, TradingSession, VenueFee,
};
use pitlane_engine::directive::{DirectiveKey, DirectiveVersion};
use pitlane_engine::event::{Alert, ExecType, RequestKind};
use pitlane_engine::id::{AdapterId, ExchangeId, IntId, OrderHandle, SecurityId, Source, StrategyId, Uuid};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::terms::{SpecialTerms, Status, Terms};
use pitlane_engine::time::Timestamp;

pub use books::{TwinPosition, TwinTransaction};
pub use market::TwinMarket;
pub use order::{OrderBase, OrderPlace, TwinOrder};
pub use portions::ShownSizes;

/// What the twin expects a shard to emit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwinEvent {
    Report(Report),
    Refused(TwinRefusal),
    /// A new order that is reported as rejected, but not recorded.
    Unrecorded(Reason),
    Booked(TwinBooking),
    Alert(Alert),
    /// How a command ended that is not about an order.
    Done(Reason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Index in the twin's orders.
    pub order: usize,
    pub id: IntId,
    pub orig_id: IntId,
    pub what: ExecType,
    pub status: Status,
    pub reason: Reason,
    pub qty: Qty,
    pub cum_qty: Qty,
    pub avg_price: Price,
    pub last_qty: Qty,
    pub last_price: Price,
    pub in_doubt: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwinRefusal {
    /// `None`: the order is unknown.
    pub order: Option<usize>,
    pub request_id: IntId,
    pub request: RequestKind,
    pub status: Status,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwinBooking {
    pub order: Option<usize>,
    pub transaction: TwinTransaction,
    pub position: TwinPosition,
    pub cash: Money,
}

/// A position that is to be closed when its other orders have ended.
#[derive(Clone, Copy, Debug)]
struct Closing {
    source: Source,
    id: IntId,
    terms: Terms,
    /// Reason of its failure, if a cancel was refused.
    refused: Reason,
}

/// An execution of an external venue.
#[derive(Clone, Debug)]
struct TwinExecution {
    order: usize,
    /// Its own id, and those of its corrections.
    ids: Vec<ExecRef>,
    /// Zero once it was busted.
    qty: i64,
    price: i64,
    /// Whether it stands for missed fills.
    presumed: bool,
    /// Its fee, and whether that came after the fill was booked.
    fee: Option<(VenueFee, bool)>,
}

/// Budgets as assigned; an absent one means that there is no such limit.
type Budgets = BTreeMap<(Scope, BudgetKind), i64>;

#[derive(Debug)]
pub struct Twin {
    pub reference: Arc<RefData>,
    pub settings: ShardSettings,
    pub orders: Vec<TwinOrder>,
    pub markets: BTreeMap<SecurityId, TwinMarket>,
    pub transactions: Vec<TwinTransaction>,
    pub sessions: BTreeMap<ExchangeId, TradingSession>,
    /// Exchanges that close by a calendar.
    pub with_hours: Vec<ExchangeId>,
    pub phases: BTreeMap<StrategyId, StrategyPhase>,
    pub adapters: BTreeMap<AdapterId, bool>,
    pub limits: BTreeMap<Scope, RiskLimits>,
    pub budgets: Budgets,
    pub restricted: Vec<(Scope, SecurityId)>,
    pub killed: Vec<Scope>,
    directives: BTreeMap<DirectiveKey, DirectiveVersion>,
    pub subscriptions: Vec<(StrategyId, SecurityId)>,
    handles: BTreeMap<OrderHandle, usize>,
    executions: Vec<TwinExecution>,
    /// Fee of the fill that is being counted, if its venue has reported one.
    fill_fee: Option<VenueFee>,
    /// Special terms whose request has not arrived, and those of the current request.
    announced: Vec<(Source, u32, SpecialTerms)>,
    special: Option<SpecialTerms>,
    closings: Vec<Closing>,
    /// Positions whose reduce-only orders request more than is left of them.
    excess: Vec<(StrategyId, SecurityId)>,
    /// Securities whose adapter has refused to send something since its last status.
    suspects: Vec<SecurityId>,
    uuids: Vec<Uuid>,
    /// Expiries: number of transactions before, security, and price.
    expiries: Vec<(usize, SecurityId, Price)>,
    /// New orders that passed the checks.
    sent: Vec<(Timestamp, Terms)>,
    /// New orders and modifications that passed the checks.
    asked: Vec<(Timestamp, Terms)>,
    arrivals: u64,
    now: Timestamp,
    events: Vec<TwinEvent>,
}

impl Twin {
    pub fn new(reference: Arc<RefData>, settings: ShardSettings) -> Twin {
        let market = |security| {
            let lot = reference.family_of(security).lot_size.raw();
            TwinMarket { lot, ..TwinMarket::default() }
        };
        let markets = reference.securities().iter().map(|row| (row.id, market(row))).collect();
        Twin {
            reference,
            settings,
            orders: Vec::new(),
            markets,
            transactions: Vec::new(),
            sessions: BTreeMap::new(),
            with_hours: Vec::new(),
            phases: BTreeMap::new(),
            adapters: BTreeMap::new(),
            limits: BTreeMap::new(),
            budgets: BTreeMap::new(),
            directives: BTreeMap::new(),
            restricted: Vec::new(),
            killed: Vec::new(),
            subscriptions: Vec::new(),
            handles: BTreeMap::new(),
            executions: Vec::new(),
            fill_fee: None,
            announced: Vec::new(),
            special: None,
            closings: Vec::new(),
            excess: Vec::new(),
            suspects: Vec::new(),
            uuids: Vec::new(),
            expiries: Vec::new(),
            sent: Vec::new(),
            asked: Vec::new(),
            arrivals: 0,
            now: Timestamp::ZERO,
            events: Vec::new(),
        }
    }

    /// Returns what a shard should emit for one command, including follow-up work.
    pub fn apply(&mut self, now: Timestamp, command: &Command) -> Vec<TwinEvent> {
        self.now = now;
        match command.body {
            CommandKind::Submit { id, terms } => {
                if terms.special {
                    self.take_announced(command);
                }
                self.submit(command.source, id, terms);
            }
            CommandKind::Modify { order, id, changes } => {
                if changes.special() == Some(true) {
                    self.take_announced(command);
                }
                self.modify(command.source, order, id, &changes);
            }
            CommandKind::SpecialTerms(special) => self.announce(command, special),
            CommandKind::Cancel { order, id } => self.cancel(command.source, order, id),
            CommandKind::Close { id, strategy, account, security, qty } => {
                self.close(command.source, id, strategy, account, security, qty);
            }
            CommandKind::Subscribe { strategy, security, on } => self.subscribe(strategy, security, on),
            CommandKind::Quote { security, quote } => self.feed(security, Some(quote), None),
            CommandKind::Trade { security, trade } => self.feed(security, None, Some(trade)),
            CommandKind::Tick { security, quote, trade } => self.feed(security, Some(quote), Some(trade)),
            CommandKind::Level { security, level } => self.level(security, level),
            CommandKind::Report { order, report } => self.venue_report(order, report),
            CommandKind::Adapter { adapter, connected } => self.adapter(adapter, connected),
            CommandKind::Transaction(movement) => self.movement(&movement),
            CommandKind::Expire { security, price } => self.expire_security(security, price),
            CommandKind::ResetPositions | CommandKind::ResetCash => self.done(Reason::None),
            CommandKind::Limits { scope, limits } => self.set_limits(scope, limits),
            CommandKind::Restrict { scope, security, on } => self.restrict(scope, security, on),
            CommandKind::Kill { scope, on } => self.kill(scope, on),
            CommandKind::Direct { version, directive } => self.direct(version, directive),
            CommandKind::Phase { strategy, phase } => self.phase(strategy, phase),
            CommandKind::Halt { security, on } => self.halt(security, on),
            CommandKind::Budget(budget) => self.budget(&budget),
            CommandKind::Session { exchange, session } => self.session(exchange, session),
            CommandKind::TradingDay { .. } => self.trading_day(),
            CommandKind::Schedule { exchange, session, has_hours, .. } => {
                self.schedule(exchange, session, has_hours);
            }
            CommandKind::Expiry { exchange, day } => self.expiry(exchange, day),
            CommandKind::CancelOrders { id, filter } => self.cancel_orders(id, &filter),
            CommandKind::Timer => self.timer(),
            // The workload contains none of these: they change nothing, or need files.
            CommandKind::Reference { .. } | CommandKind::Validate { .. } | CommandKind::AuditAnchor(_) => {}
            CommandKind::Watch { .. } | CommandKind::Snapshot { .. } | CommandKind::Sender { .. } => {}
            // The twin publishes no books.
            CommandKind::VenueLevels(_) | CommandKind::VenueBook { .. } => {}
        }
        self.settle_closings();
        std::mem::take(&mut self.events)
    }

    /// Records the handle by which the shard knows this order of the twin.
    pub fn bind(&mut self, handle: OrderHandle, order: usize) {
        self.handles.insert(handle, order);
    }

    /// Removes the handle of an order that the shard has forgotten, and returns the order.
    pub fn forget(&mut self, handle: OrderHandle) -> Option<usize> {
        self.handles.remove(&handle)
    }

    /// Returns the order of a handle.
    pub fn order(&self, handle: OrderHandle) -> Option<usize> {
        self.handles.get(&handle).copied()
    }

    fn done(&mut self, reason: Reason) {
        self.events.push(TwinEvent::Done(reason));
    }

    fn alert(&mut self, alert: Alert) {
        self.events.push(TwinEvent::Alert(alert));
    }

    fn next_arrival(&mut self) -> u64 {
        self.arrivals += 1;
        self.arrivals
    }

    /// Returns whether the security trades at a venue inside the shard.
    fn is_simulated(&self, security: SecurityId) -> bool {
        self.adapter_of(security) == AdapterId::SIM
    }

    fn adapter_of(&self, security: SecurityId) -> AdapterId {
        let row = self.reference.security(security).expect("asked of known securities only");
        self.reference.exchange_of(row).adapter
    }

    fn exchange_of(&self, security: SecurityId) -> ExchangeId {
        let row = self.reference.security(security).expect("asked of known securities only");
        self.reference.exchange_of(row).id
    }

    fn session_of(&self, security: SecurityId) -> TradingSession {
        self.sessions.get(&self.exchange_of(security)).copied().unwrap_or_default()
    }

    /// Returns whether orders match and stops trigger.
    fn is_trading(&self, security: SecurityId) -> bool {
        self.session_of(security) == TradingSession::Continuous && !self.markets[&security].halted
    }

    fn known_securities(&self) -> Vec<SecurityId> {
        self.reference.securities().iter().map(|row| row.id).collect()
    }

    fn enter(&mut self, source: Source, id: IntId, terms: Terms) -> usize {
        let special = self.special.filter(|_| terms.special);
        self.orders.push(TwinOrder { special, ..TwinOrder::new(source, id, terms) });
        self.orders.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::ShardId;
    use pitlane_engine::index::index_u32;

    use super::*;
    use crate::dice::Dice;
    use crate::workload::{Action, ActionGenerator, Profile};
    use crate::{shard_and_twin, test_market};

    /// Runs the twin alone: its state never contradicts itself.
    #[test]
    fn the_twin_is_consistent_in_any_flow() {
        let mut fills = 0;
        for seed in 0..100 {
            let mut dice = Dice::new(seed);
            let mut workload = ActionGenerator::new(dice.fork(), Profile::random(&mut dice));
            let mut twin = Twin::new(test_market::reference(), ShardSettings::default());
            let mut now = test_market::start();
            for action in ActionGenerator::opening() {
                apply(&mut twin, now, action);
            }
            for _ in 0..200 {
                let action = workload.next(now);
                if let Action::Wait(ns) = action {
                    now = now.plus(ns);
                    apply(&mut twin, now, Action::Plain(CommandKind::Timer));
                } else {
                    let events = apply(&mut twin, now, action);
                    fills += events.iter().filter(|events| matches!(events, TwinEvent::Booked(_))).count();
                }
                agrees_with_itself(&twin);
            }
        }
        assert!(fills > 1_000, "only {fills} fills");
    }

    fn apply(twin: &mut Twin, now: Timestamp, action: Action) -> Vec<TwinEvent> {
        let handle = |nth: usize| OrderHandle::new(ShardId(0), 0, index_u32(nth));
        let body = match action {
            Action::Plain(body) => body,
            Action::Modify { nth, id, changes } => CommandKind::Modify { order: handle(nth), id, changes },
            Action::Cancel { nth, id } => CommandKind::Cancel { order: handle(nth), id },
            Action::Report { nth, report } => CommandKind::Report { order: handle(nth), report },
            Action::Wait(_) => CommandKind::Timer,
        };
        let events = twin.apply(now, &Command::new(shard_and_twin::source(), 1, body));
        for order in 0..twin.orders.len() {
            twin.bind(handle(order), order);
        }
        events
    }

    fn agrees_with_itself(twin: &Twin) {
        for order in &twin.orders {
            assert!(order.is_over() || order.leaves() > 0, "{order:?}");
            assert!(order.is_over() || order.cum < order.terms.qty.raw(), "{order:?}");
        }
        for security in test_market::SECURITIES {
            if twin.is_trading(security) {
                let best =
                    |side| twin.book_side(security, side).first().map(|&at| twin.orders[at].terms.limit);
                let sides = (best(pitlane_engine::terms::Side::Buy), best(pitlane_engine::terms::Side::Sell));
                assert!(!matches!(sides, (Some(bid), Some(ask)) if bid >= ask), "crossed: {sides:?}");
            }
        }
    }
}
