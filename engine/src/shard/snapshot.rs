//! A copy of the whole state, emitted to one port as events. Other commands may come between: each
//! event carries the complete, newest state of its row, so a reader that applies all in order ends
//! with the right state.

use super::Shard;
use crate::command::Scope;
use crate::event::{Adjustment, Booking, Event, EventKind, ExecType, OrderTerms};
use crate::id::{PortId, PortMask};
use crate::index::{index_u32, index_usize};
use crate::ledger::Cash;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::risk::RiskGuard;
use crate::sender::SenderId;
use crate::terms::OrderSpecialTerms;
use crate::time::Timestamp;

/// Events of a snapshot in one step: few, so that commands do not wait for it.
pub(super) const SNAPSHOT_EVENTS_PER_STEP_MAX: usize = 32;
/// Rows visited in one step, emitted or not: a walk over free slots has its bound too.
const ROWS_PER_STEP: usize = 256;
/// Most events of one row of the state.
const EVENTS_PER_ROW_MAX: usize = 5;

#[derive(Debug, Default)]
pub(super) struct Snapshots {
    wanted: PortMask,
    running: Option<(PortId, SnapshotStage)>,
}

/// Progress of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SnapshotStage {
    Begin,
    Senders(usize),
    Directives(usize),
    Exchanges(usize),
    Adapters(usize),
    Guards(usize),
    Restrictions(usize, usize),
    Securities(usize, usize),
    Orders(u32),
    /// By the number of the transaction, oldest first.
    Transactions(u64),
    Positions(u32, u16),
    Cash(usize),
    Exposures(u32, u16),
    /// By the index in the log.
    UsedIds(usize),
    End,
}

/// Emits to the one port that requested the snapshot.
struct SnapshotEmitter<'a> {
    to: PortMask,
    now: Timestamp,
    out: &'a mut Outbox,
}

impl SnapshotEmitter<'_> {
    fn emit(&mut self, body: EventKind) {
        self.emit_at(self.now, body);
    }

    fn emit_at(&mut self, at: Timestamp, body: EventKind) {
        self.out.emit_snapshot_item(self.to, at, body);
    }
}

impl Snapshots {
    pub(super) fn request(&mut self, port: PortId) -> Result<(), Reason> {
        self.wanted = self.wanted.with(PortMask::one(port));
        if self.running.is_none() {
            self.start_next();
        }
        Ok(())
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn start_next(&mut self) {
        self.running = self.wanted.ports().next().map(|port| (port, SnapshotStage::Begin));
        if let Some((port, _)) = self.running {
            self.wanted = self.wanted.without(PortMask::one(port));
        }
    }
}

impl Shard {
    /// Emits at most `room` more events of the running snapshot.
    pub(super) fn snapshot_step(&mut self, room: usize, out: &mut Outbox) {
        let end = out.waiting_count() + room;
        for _ in 0..ROWS_PER_STEP {
            let Some((port, stage)) = self.snapshots.running else {
                return;
            };
            if out.waiting_count() + EVENTS_PER_ROW_MAX > end {
                return;
            }
            let mut emitter = SnapshotEmitter { to: PortMask::one(port), now: self.now, out };
            match self.emit_row(stage, port, &mut emitter) {
                Some(next) => self.snapshots.running = Some((port, next)),
                None => self.snapshots.start_next(),
            }
        }
    }

    /// Calls `visit` with the events of a snapshot about the trading day, the prices, the
    /// transactions and the positions.
    pub fn visit_ledger(&self, mut visit: impl FnMut(&Event)) {
        let port = PortId(0);
        let mut out = Outbox::new(0);
        let mut next = Some(SnapshotStage::Begin);
        while let Some(stage) = next {
            let mut emitter = SnapshotEmitter { to: PortMask::one(port), now: self.now, out: &mut out };
            next = self.emit_row(stage, port, &mut emitter);
            // The stages between are about other things.
            if matches!(next, Some(SnapshotStage::Senders(_))) {
                next = Some(SnapshotStage::Securities(0, 0));
            } else if matches!(next, Some(SnapshotStage::Orders(_))) {
                next = Some(SnapshotStage::Transactions(0));
            } else if matches!(next, Some(SnapshotStage::Cash(_))) {
                next = Some(SnapshotStage::End);
            }
            out.waiting().iter().for_each(|(_, event)| visit(event));
            out.clear();
        }
    }

    /// Emits one row and returns where to continue.
    fn emit_row(
        &self,
        stage: SnapshotStage,
        port: PortId,
        emitter: &mut SnapshotEmitter<'_>,
    ) -> Option<SnapshotStage> {
        match stage {
            SnapshotStage::Begin => {
                emitter.emit(EventKind::SnapshotBegin { port });
                if let Some(day) = self.days.current {
                    emitter.emit(EventKind::TradingDay { day });
                }
                if self.killed {
                    emitter.emit(EventKind::Kill { scope: Scope::Global, on: true });
                }
                Some(SnapshotStage::Senders(0))
            }
            SnapshotStage::Senders(at) => Some(self.emit_sender(at, emitter)),
            SnapshotStage::Directives(at) => Some(self.emit_directive(at, emitter)),
            SnapshotStage::Exchanges(at) => Some(self.emit_exchange(at, emitter)),
            SnapshotStage::Adapters(at) => Some(self.emit_adapter(at, emitter)),
            SnapshotStage::Guards(at) => Some(self.emit_guard(at, emitter)),
            SnapshotStage::Restrictions(at, row) => Some(self.emit_restriction(at, row, emitter)),
            SnapshotStage::Securities(at, row) => Some(self.emit_security(at, row, emitter)),
            SnapshotStage::Orders(slot) => Some(self.emit_order(slot, emitter)),
            SnapshotStage::Transactions(number) => Some(self.emit_transaction(number, emitter)),
            SnapshotStage::Positions(local, at) => Some(self.emit_position(local, at, emitter)),
            SnapshotStage::Cash(at) => Some(self.emit_cash(at, emitter)),
            SnapshotStage::Exposures(local, at) => Some(self.emit_exposure(local, at, emitter)),
            SnapshotStage::UsedIds(at) => Some(self.emit_used_ids(at, port, emitter)),
            SnapshotStage::End => {
                emitter.emit(EventKind::SnapshotEnd { port });
                None
            }
        }
    }

    /// Emits a sender, before the orders that it has sent.
    fn emit_sender(&self, at: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some((id, sender)) = self.requests.senders.at(at) else {
            return SnapshotStage::Directives(0);
        };
        emitter.emit(EventKind::Sender { id, sender: *sender });
        SnapshotStage::Senders(at + 1)
    }

    fn emit_directive(&self, at: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some((directive, version)) = self.directives.get(at) else {
            return SnapshotStage::Exchanges(0);
        };
        emitter.emit(EventKind::Directed { version, directive });
        SnapshotStage::Directives(at + 1)
    }

    fn emit_exchange(&self, at: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some(place) = self.directory.exchanges.get(at) else {
            return SnapshotStage::Adapters(1);
        };
        emitter.emit(EventKind::Session { exchange: place.id, session: place.session });
        SnapshotStage::Exchanges(at + 1)
    }

    fn emit_adapter(&self, at: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some((adapter, state)) = self.adapters.at(at) else {
            return SnapshotStage::Guards(0);
        };
        if state.is_connected {
            emitter.emit(EventKind::Adapter { adapter, connected: true });
        }
        if state.is_killed {
            emitter.emit(EventKind::Kill { scope: Scope::Adapter(adapter), on: true });
        }
        SnapshotStage::Adapters(at + 1)
    }

    fn guard_at(&self, at: usize) -> Option<(Scope, &RiskGuard)> {
        let strategies = &self.directory.strategies;
        match strategies.get(at) {
            Some(entry) => Some((Scope::Strategy(entry.id), &entry.guard)),
            None => {
                let entry = self.directory.accounts.get(at - strategies.len())?;
                Some((Scope::Account(entry.id), &entry.guard))
            }
        }
    }

    fn emit_guard(&self, at: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some((scope, guard)) = self.guard_at(at) else {
            return SnapshotStage::Securities(0, 0);
        };
        if let Some(entry) = self.directory.strategies.get(at) {
            emitter.emit(EventKind::Phase { strategy: entry.id, phase: entry.phase });
        }
        emitter.emit(EventKind::Limits { scope, limits: *guard.limits() });
        if guard.is_killed() {
            emitter.emit(EventKind::Kill { scope, on: true });
        }
        SnapshotStage::Restrictions(at, 0)
    }

    fn emit_restriction(&self, at: usize, row: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let restriction =
            self.guard_at(at).and_then(|(scope, guard)| Some((scope, *guard.restricted().get(row)?)));
        let Some((scope, security)) = restriction else {
            return SnapshotStage::Guards(at + 1);
        };
        emitter.emit(EventKind::Restrict { scope, security, on: true });
        SnapshotStage::Restrictions(at, row + 1)
    }

    fn emit_security(&self, at: usize, row: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some(local) = self.directory.locals.get(at) else {
            return SnapshotStage::Orders(0);
        };
        let security = local.instrument.security;
        if row == 0 {
            emitter.emit(EventKind::Tick(self.current_tick(index_u32(at))));
            if local.halted {
                emitter.emit(EventKind::Halt { security, on: true });
            }
            if local.killed {
                emitter.emit(EventKind::Kill { scope: Scope::Security(security), on: true });
            }
        }
        let Some(&strategy) = local.subscribers.get(row) else {
            return SnapshotStage::Securities(at + 1, 0);
        };
        let subscribers = index_u32(local.subscribers.len());
        emitter.emit(EventKind::Subscription { strategy, security, on: true, subscribers });
        SnapshotStage::Securities(at, row + 1)
    }

    /// Emits the ids that the sources of a port have used, whatever became of their orders.
    fn emit_used_ids(&self, at: usize, port: PortId, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        if at >= self.requests.used_ids.len() {
            return SnapshotStage::End;
        }
        let (batch, next) = self.requests.used_ids.batch(at, port);
        if batch.count > 0 {
            emitter.emit(EventKind::UsedIds(batch));
        }
        SnapshotStage::UsedIds(next)
    }

    /// Emits the terms at the time the order was submitted, then its state at the time of its last
    /// event. An order that was modified more than once is first emitted under its earlier ids, so
    /// that each of them finds it.
    fn emit_order(&self, slot: u32, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        if slot >= self.orders.len() {
            return SnapshotStage::Transactions(0);
        }
        // Orders that ended on an earlier day are kept for their venue, not for readers.
        let order = self.orders.get(slot);
        let is_past = order.base.is_finished() && order.era != self.days.era;
        if self.orders.in_use(slot) && !is_past {
            let terms = self.orders.terms_event(slot, ExecType::Snapshot, Reason::None);
            let (order, fill) = (self.orders.get(slot), self.orders.last_fill(slot));
            let first = self.orders.first_id(slot);
            if let Some(special) = self.orders.special.current(slot).filter(|_| order.terms.special) {
                let (order, source, at) = (self.orders.handle(slot), order.source, order.submitted);
                let special = OrderSpecialTerms { order, source, is_snapshot: true, special };
                emitter.emit_at(at, EventKind::SpecialTerms(special));
            }
            if !terms.orig_id.is_none() && terms.orig_id != *first {
                let earlier = OrderTerms { id: terms.orig_id, orig_id: *first, ..terms };
                emitter.emit_at(order.submitted, EventKind::Order(earlier));
            }
            emitter.emit_at(order.submitted, EventKind::Order(terms));
            let report = self.orders.status_event(
                slot,
                (ExecType::Snapshot, self.orders.status(slot), order.reason),
                (&order.id, self.orders.orig_id(slot)),
                (fill.qty, fill.price),
                SenderId::NONE,
            );
            emitter.emit_at(order.updated, EventKind::Status(report));
            let sent = self.orders.sent(slot);
            if !sent.is_empty() {
                emitter.emit_at(order.submitted, EventKind::Sent { order: self.orders.handle(slot), sent });
            }
        }
        SnapshotStage::Orders(slot + 1)
    }

    fn emit_transaction(&self, number: u64, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        // The oldest may have been folded since the last step.
        let number = number.max(self.ledger.folded());
        let Some((at, booking)) = self.ledger.transaction(index_usize(number - self.ledger.folded())) else {
            return SnapshotStage::Positions(0, 0);
        };
        emitter.emit_at(at, EventKind::Booked(self.as_of_now(booking)));
        SnapshotStage::Transactions(number + 1)
    }

    /// Returns a kept transaction with the current position and cash: a snapshot never shows the
    /// past.
    fn as_of_now(&self, booking: &Booking) -> Booking {
        let mut booking = *booking;
        if let Some(local) = booking.security.and_then(|security| self.directory.local(security))
            && let Some(held) =
                self.ledger.positions(local).iter().find(|held| held.strategy == booking.strategy)
        {
            booking.position = held.state;
        }
        let mine = |cash: &&Cash| cash.strategy == booking.strategy && cash.currency == booking.currency;
        if let Some(cash) = self.ledger.cash().iter().find(mine) {
            booking.cash = cash.amount;
        }
        booking
    }

    fn emit_position(&self, local: u32, at: u16, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        if local as usize >= self.directory.locals.len() {
            return SnapshotStage::Cash(0);
        }
        let Some(held) = self.ledger.positions(local).get(at as usize) else {
            return SnapshotStage::Positions(local + 1, 0);
        };
        if held.traded {
            let security = self.directory.locals[local as usize].instrument.security;
            let what = Adjustment::Position { security, before: held.state, after: held.state };
            emitter.emit(EventKind::Adjusted { strategy: held.strategy, what });
        }
        SnapshotStage::Positions(local, at + 1)
    }

    fn emit_cash(&self, at: usize, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        let Some(cash) = self.ledger.cash().get(at) else {
            return SnapshotStage::Exposures(0, 0);
        };
        if cash.moved {
            let what = Adjustment::Cash { currency: cash.currency, before: cash.amount, after: cash.amount };
            emitter.emit(EventKind::Adjusted { strategy: cash.strategy, what });
        }
        SnapshotStage::Cash(at + 1)
    }

    /// Emits the position of an account, after the transactions that led to it.
    fn emit_exposure(&self, local: u32, at: u16, emitter: &mut SnapshotEmitter<'_>) -> SnapshotStage {
        if local as usize >= self.directory.locals.len() {
            return SnapshotStage::UsedIds(0);
        }
        let Some(held) = self.ledger.exposures(local).get(at as usize) else {
            return SnapshotStage::Exposures(local + 1, 0);
        };
        if !held.net.is_zero() {
            let security = self.directory.locals[local as usize].instrument.security;
            emitter.emit(EventKind::Exposure { account: Some(held.account), security, qty: held.net });
        }
        SnapshotStage::Exposures(local, at + 1)
    }
}
