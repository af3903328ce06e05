//! Work that a command has left. A shard with work left takes no command, so there is at most one
//! security in progress and one sweep over many, and their events carry the time of the command
//! that caused them.

use super::Shard;
use super::closing::PendingClose;
use super::order_filter::{CancelOrigin, OrderFilter};
use crate::command::{Quote, TradingSession};
use crate::event::{Adjustment, EventKind, VenueRequest};
use crate::id::{AdapterId, IntId, PortMask, Source, StrategyId};
use crate::number::Price;
use crate::order::Order;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::terms::Tif;
use crate::time::Day;
use crate::timers::Timed;

/// Orders changed in one step; each emits at most six events.
const ACTS_PER_STEP: usize = 8;
/// Slots visited in one step: some 10 µs.
const SLOTS_PER_STEP: u32 = 1_024;
/// Orders forgotten in one step, with one event each.
const FORGOTTEN_PER_STEP: usize = 64;
/// Positions or balances visited in one step, with one event each at most.
pub(super) const ROWS_PER_STEP: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Continuation {
    /// Whether something was added since all was done: without it there is nothing, as after most
    /// commands.
    touched: bool,
    /// The security with work left at the venue, or stops to check.
    busy: Option<u32>,
    /// Whether its tick has changed.
    moved: bool,
    /// The second half of a tick.
    quote: Option<Quote>,
    /// A security to halt as soon as its work is done.
    halt: Option<u32>,
    sweep: Option<BulkOperation>,
    /// Whether to check the pending closes.
    pending_closes: bool,
    /// Positions whose reduce-only orders ask for more than the rest of them, by security and
    /// strategy. At most as many as a command can fill.
    excess: Vec<(u32, StrategyId)>,
    /// Source, token and reason of the report when all is done.
    done: Option<(Source, u32, Reason)>,
}

/// An operation on many rows, done step by step.
#[derive(Clone, Copy, Debug)]
pub(super) enum BulkOperation {
    /// All due timers.
    Timers,
    /// Cancels orders, then closes a position if that was the purpose.
    Cancel {
        filter: OrderFilter,
        reason: Reason,
        cursor: u32,
        /// `None` if the shard itself cancels.
        request: Option<CancelOrigin>,
        then: Option<PendingClose>,
    },
    /// Moves every security of an exchange into a session; after the close it ends the orders of
    /// the day.
    Session {
        place: u16,
        session: TradingSession,
        local: u32,
        cursor: u32,
    },
    /// Ends the orders of the day where there is no close, then forgets finished ones.
    Day {
        day: Day,
        cursor: u32,
    },
    Forget {
        day: Day,
    },
    /// Ends the orders of an expired security, then its positions.
    Expire {
        local: u32,
        price: Price,
        cursor: u32,
        position: u16,
    },
    /// Ends the orders of the securities that have expired at an exchange, then reports the
    /// positions left in them.
    Expired {
        place: u16,
        cursor: u32,
        local: u32,
    },
    Positions {
        local: u32,
        at: u16,
    },
    Cash {
        at: usize,
    },
    /// After a restart: marks what is in flight outside as in doubt, then runs the due timers.
    Begin {
        cursor: u32,
    },
    /// Marks what is in flight as in doubt; or queries it, and then triggers the stops that waited
    /// for the connection.
    Adapter {
        adapter: AdapterId,
        connected: bool,
        cursor: u32,
        local: u32,
    },
}

impl Continuation {
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.touched
            && (self.busy.is_some() | self.sweep.is_some() | self.pending_closes | !self.excess.is_empty())
    }

    /// Begins an operation on many rows.
    fn begin(&mut self, operation: BulkOperation) {
        (self.touched, self.sweep) = (true, Some(operation));
    }

    pub(super) fn recheck_closes(&mut self) {
        (self.touched, self.pending_closes) = (true, true);
    }

    pub(super) fn closes_checked(&mut self) {
        self.pending_closes = false;
    }

    pub(super) fn reduce_later(&mut self, local: u32, strategy: StrategyId) {
        self.touched = true;
        if !self.excess.contains(&(local, strategy)) {
            self.excess.push((local, strategy));
        }
    }

    /// Returns whether any work was added since all was done.
    #[inline]
    pub(super) fn is_begun(&self) -> bool {
        self.touched && (self.has_work() || self.done.is_some())
    }

    #[inline]
    pub(super) fn set_busy(&mut self, local: u32) {
        assert!(self.busy.is_none_or(|busy| busy == local), "one security at a time");
        (self.touched, self.busy) = (true, Some(local));
    }

    #[inline]
    pub(super) fn mark_moved(&mut self) {
        self.moved = true;
    }

    pub(super) fn quote_later(&mut self, quote: Quote) {
        self.quote = Some(quote);
    }

    pub(super) fn halt_later(&mut self, local: u32) {
        self.halt = Some(local);
    }

    pub(super) fn report_done_to(&mut self, source: Source, token: u32) {
        (self.touched, self.done) = (true, Some((source, token, Reason::None)));
    }

    pub(super) fn refuse(&mut self, reason: Reason) {
        if let Some(done) = &mut self.done {
            done.2 = reason;
        }
    }

    pub(super) fn begin_timers(&mut self) {
        self.begin(BulkOperation::Timers);
    }

    pub(super) fn begin_cancel(&mut self, filter: OrderFilter, reason: Reason) {
        self.begin(BulkOperation::Cancel { filter, reason, cursor: 0, request: None, then: None });
    }

    pub(super) fn begin_requested_cancel(&mut self, filter: OrderFilter, request: CancelOrigin) {
        let (reason, request) = (Reason::Requested, Some(request));
        self.begin(BulkOperation::Cancel { filter, reason, cursor: 0, request, then: None });
    }

    pub(super) fn begin_close(&mut self, closing: PendingClose) {
        let filter = OrderFilter::Position(closing.terms.strategy, closing.local);
        let (reason, then) = (Reason::Requested, Some(closing));
        self.begin(BulkOperation::Cancel { filter, reason, cursor: 0, request: None, then });
    }

    pub(super) fn begin_session(&mut self, place: u16, session: TradingSession) {
        self.begin(BulkOperation::Session { place, session, local: 0, cursor: 0 });
    }

    pub(super) fn begin_day(&mut self, day: Day) {
        self.begin(BulkOperation::Day { day, cursor: 0 });
    }

    pub(super) fn begin_expire(&mut self, local: u32, price: Price) {
        self.begin(BulkOperation::Expire { local, price, cursor: 0, position: 0 });
    }

    pub(super) fn begin_expired(&mut self, place: u16) {
        self.begin(BulkOperation::Expired { place, cursor: 0, local: 0 });
    }

    pub(super) fn begin_positions(&mut self) {
        self.begin(BulkOperation::Positions { local: 0, at: 0 });
    }

    pub(super) fn begin_cash(&mut self) {
        self.begin(BulkOperation::Cash { at: 0 });
    }

    pub(super) fn begin_start(&mut self) {
        self.begin(BulkOperation::Begin { cursor: 0 });
    }

    /// Checks only the stops of an adapter that was connected all the time.
    pub(super) fn recheck_stops(&mut self, adapter: AdapterId) {
        self.begin(BulkOperation::Adapter { adapter, connected: true, cursor: u32::MAX, local: 0 });
    }

    pub(super) fn begin_adapter(&mut self, adapter: AdapterId, connected: bool) {
        self.begin(BulkOperation::Adapter { adapter, connected, cursor: 0, local: 0 });
    }
}

impl Shard {
    /// Does one step of the remaining work: the security in progress first, then the sweep.
    pub(super) fn work(&mut self, out: &mut Outbox) {
        let Some(local) = self.continuation.busy else {
            return self.continue_sweep(out);
        };
        if self.venue.has_work(local) {
            self.venue.work(local);
        } else if let Some(quote) = self.continuation.quote.take() {
            self.venue.quote(local, &quote);
        } else if self.continuation.halt.take().is_some() {
            self.halt_local(local, true, out);
        } else if let Some(slot) = self.reached_stop(local) {
            self.trigger(slot, out);
        }
    }

    fn continue_sweep(&mut self, out: &mut Outbox) {
        if self.continuation.sweep.is_some() {
            return self.sweep(out);
        }
        if let Some((local, strategy)) = self.continuation.excess.pop() {
            self.requests.begin_internal();
            return self
                .continuation
                .begin_cancel(OrderFilter::Reducing(strategy, local), Reason::ReduceOnly);
        }
        self.release_close(out);
    }

    /// Ends a step: drops finished work, and reports when all is done.
    #[inline]
    pub(super) fn finish_step(&mut self, out: &mut Outbox) {
        if let Some(local) = self.continuation.busy {
            let left = self.venue.has_work(local)
                || self.continuation.quote.is_some()
                || self.continuation.halt.is_some();
            if left || self.reached_stop(local).is_some() {
                return;
            }
            self.continuation.busy = None;
            if std::mem::take(&mut self.continuation.moved) {
                self.show(local, out);
            }
        }
        if !self.continuation.has_work()
            && let Some((source, token, reason)) = self.continuation.done.take()
        {
            out.emit(PortMask::one(source.port), self.now, EventKind::Done { source, token, reason });
        }
        self.continuation.touched = self.continuation.is_begun();
    }

    fn sweep(&mut self, out: &mut Outbox) {
        let Some(sweep) = self.continuation.sweep.take() else {
            return;
        };
        self.continuation.sweep = match sweep {
            BulkOperation::Timers => self.sweep_timers(out),
            BulkOperation::Cancel { filter, reason, cursor, request, then } => {
                self.sweep_cancel(filter, reason, cursor, request, then, out)
            }
            BulkOperation::Session { place, session, local, cursor } => {
                self.sweep_session(place, session, local, cursor, out)
            }
            BulkOperation::Day { day, cursor } => self.sweep_day(day, cursor, out),
            BulkOperation::Forget { day } => self.sweep_forget(day, out),
            BulkOperation::Expire { local, price, cursor, position } => {
                self.sweep_expire(local, price, cursor, position, out)
            }
            BulkOperation::Expired { place, cursor, local } => self.sweep_expired(place, cursor, local, out),
            BulkOperation::Positions { local, at } => self.sweep_positions(local, at, out),
            BulkOperation::Cash { at } => self.sweep_cash(at, out),
            BulkOperation::Begin { cursor } => self.sweep_begin(cursor, out),
            BulkOperation::Adapter { adapter, connected, cursor, local } => {
                self.sweep_adapter(adapter, connected, cursor, local, out)
            }
        };
    }

    fn sweep_timers(&mut self, out: &mut Outbox) -> Option<BulkOperation> {
        let due = self.deadlines.pop(self.now)?;
        match due {
            Timed::Date(order) => {
                if let Some(slot) = self.orders.find(order)
                    && self.orders.get(slot).terms.tif == Tif::Gtd
                    && self.orders.get(slot).terms.tif_date <= self.now
                {
                    self.expire_dated(slot, order, out);
                }
            }
            Timed::ToVenue { order, request } => {
                if let Some(slot) = self.orders.find(order) {
                    self.arrive(slot, request, out);
                }
            }
            Timed::FromVenue { order, report } => {
                if let Some(slot) = self.orders.find(order) {
                    self.report(slot, &report, out);
                }
            }
            Timed::Shown(tick) => self.emit_delayed_tick(tick, out),
        }
        Some(BulkOperation::Timers)
    }

    fn sweep_cancel(
        &mut self,
        filter: OrderFilter,
        reason: Reason,
        cursor: u32,
        request: Option<CancelOrigin>,
        then: Option<PendingClose>,
        out: &mut Outbox,
    ) -> Option<BulkOperation> {
        let cursor = self.visit(
            cursor,
            |shard, order| filter.matches(order, &shard.directory),
            |shard, slot, out| {
                if shard.orders.requests(slot).is_none_or(|requests| requests.cancel.is_none()) {
                    let CancelOrigin { id, source } = request.unwrap_or_else(|| CancelOrigin {
                        id: IntId::NONE,
                        source: Source { port: shard.orders.get(slot).source.port, ..Source::default() },
                    });
                    shard.begin_cancel(slot, &id, source, reason, out);
                }
            },
            out,
        );
        if cursor < self.orders.len() {
            return Some(BulkOperation::Cancel { filter, reason, cursor, request, then });
        }
        if let Some(closing) = then {
            self.handle_outcomes(out);
            self.await_cancels(closing);
        }
        None
    }

    fn sweep_forget(&mut self, day: Day, out: &mut Outbox) -> Option<BulkOperation> {
        for _ in 0..FORGOTTEN_PER_STEP {
            if !self.forget_aged(out) {
                self.days.publish(day);
                self.emit(EventKind::TradingDay { day }, out);
                return None;
            }
        }
        Some(BulkOperation::Forget { day })
    }

    fn sweep_positions(&mut self, mut local: u32, mut at: u16, out: &mut Outbox) -> Option<BulkOperation> {
        for _ in 0..ROWS_PER_STEP {
            while at as usize >= self.ledger.positions(local).len() {
                (local, at) = (local + 1, 0);
                if local as usize >= self.directory.locals.len() {
                    return None;
                }
            }
            if let Some((before, after)) = self.ledger.adjust_position(local, at) {
                let strategy = self.ledger.position(local, at).strategy;
                let security = self.directory.locals[local as usize].instrument.security;
                let what = Adjustment::Position { security, before, after };
                self.emit(EventKind::Adjusted { strategy, what }, out);
            }
            at += 1;
        }
        Some(BulkOperation::Positions { local, at })
    }

    fn sweep_cash(&mut self, at: usize, out: &mut Outbox) -> Option<BulkOperation> {
        let end = self.ledger.cash().len().min(at + ROWS_PER_STEP);
        for at in at..end {
            if let Some((before, after)) = self.ledger.adjust_cash(at) {
                let cash = self.ledger.cash()[at];
                let what = Adjustment::Cash { currency: cash.currency, before, after };
                self.emit(EventKind::Adjusted { strategy: cash.strategy, what }, out);
            }
        }
        (end < self.ledger.cash().len()).then_some(BulkOperation::Cash { at: end })
    }

    fn sweep_begin(&mut self, cursor: u32, out: &mut Outbox) -> Option<BulkOperation> {
        let cursor = self.visit(
            cursor,
            |_, order| order.outside() && order.at_venue(),
            |shard, slot, out| shard.mark_in_doubt_if_pending(slot, out),
            out,
        );
        Some(if cursor < self.orders.len() { BulkOperation::Begin { cursor } } else { BulkOperation::Timers })
    }

    fn sweep_adapter(
        &mut self,
        adapter: AdapterId,
        connected: bool,
        cursor: u32,
        local: u32,
        out: &mut Outbox,
    ) -> Option<BulkOperation> {
        if cursor < self.orders.len() {
            let cursor = self.visit_all(
                cursor,
                |shard, order| {
                    // A finished order is queried if it was not possible when it became necessary.
                    let is_concerned =
                        if order.base.is_finished() { connected && order.unsure() } else { order.at_venue() };
                    is_concerned && OrderFilter::Adapter(adapter).matches(order, &shard.directory)
                },
                |shard, slot, out| match (connected, shard.orders.get(slot).unsure()) {
                    (true, true) => shard.instruct(slot, VenueRequest::Status, out),
                    (true, false) => shard.instruct(slot, VenueRequest::Query, out),
                    (false, _) => shard.mark_in_doubt_if_pending(slot, out),
                },
                out,
            );
            return Some(BulkOperation::Adapter { adapter, connected, cursor, local });
        }
        let end = self.directory.local_count();
        let is_concerned = |at: &u32| self.directory.locals[*at as usize].adapter == adapter;
        let is_reached = |at: &u32| is_concerned(at) && self.reached_stop(*at).is_some();
        let reached = (local..end).find(is_reached).filter(|_| connected)?;
        self.continuation.set_busy(reached);
        Some(BulkOperation::Adapter { adapter, connected, cursor, local: reached + 1 })
    }

    /// Acts on open orders from a slot on, as far as a step goes. Returns where to continue.
    pub(super) fn visit(
        &mut self,
        cursor: u32,
        concerned: impl Fn(&Shard, &Order) -> bool,
        act: impl FnMut(&mut Shard, u32, &mut Outbox),
        out: &mut Outbox,
    ) -> u32 {
        let is_open = |order: &Order| !order.base.is_finished();
        self.visit_all(cursor, |shard, order| is_open(order) && concerned(shard, order), act, out)
    }

    /// Does the same for open and finished orders.
    fn visit_all(
        &mut self,
        cursor: u32,
        concerned: impl Fn(&Shard, &Order) -> bool,
        mut act: impl FnMut(&mut Shard, u32, &mut Outbox),
        out: &mut Outbox,
    ) -> u32 {
        let end = self.orders.len().min(cursor.saturating_add(SLOTS_PER_STEP));
        let mut acts = 0;
        for slot in cursor..end {
            let order = self.orders.get(slot);
            if self.orders.in_use(slot) && concerned(self, order) {
                act(self, slot, out);
                acts += 1;
                if acts == ACTS_PER_STEP {
                    return slot + 1;
                }
            }
        }
        end
    }
}
