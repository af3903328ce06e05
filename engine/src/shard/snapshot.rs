//! A copy of everything, told to one port as events. Other commands may come between: what is told is always whole
//! and newest, so a reader that applies all in order ends with the right picture.

use super::Shard;
use crate::command::Scope;
use crate::event::{Adjustment, Booking, EventKind, ExecType, OrderTerms};
use crate::id::{AdapterId, PortId, PortMask};
use crate::ledger::Cash;
use crate::outbox::Outbox;
use crate::reason::Reason;
use crate::risk::Guard;
use crate::time::Timestamp;

/// Events of a snapshot in one step: few, so that commands do not wait for it.
pub(super) const IMAGES_PER_STEP: usize = 32;
/// Rows looked at in one step, told or not: a walk over free slots has its bound too.
const ROWS_PER_STEP: usize = 256;
/// Most events that one row of the state takes.
const EVENTS_PER_ROW_MAX: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Snapshots {
    wanted: PortMask,
    running: Option<(PortId, Stage)>,
}

/// How far a snapshot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begin,
    Senders(usize),
    Directives(usize),
    Places(usize),
    Adapters(usize),
    Guards(usize),
    Restrictions(usize, usize),
    Securities(usize, usize),
    Orders(u32),
    /// By the number of the transaction, oldest first.
    Transactions(u64),
    Positions(u32, u16),
    Cash(usize),
    /// By the place in the log.
    UsedIds(usize),
    End,
}

/// Speaks to the one port that asked.
struct Teller<'a> {
    to: PortMask,
    now: Timestamp,
    out: &'a mut Outbox,
}

impl Teller<'_> {
    fn say(&mut self, body: EventKind) {
        self.say_at(self.now, body);
    }

    fn say_at(&mut self, at: Timestamp, body: EventKind) {
        self.out.show_image(self.to, at, body);
    }
}

impl Snapshots {
    pub fn request(&mut self, port: PortId) -> Result<(), Reason> {
        self.wanted = self.wanted.with(PortMask::one(port));
        if self.running.is_none() {
            self.start_next();
        }
        Ok(())
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn start_next(&mut self) {
        self.running = self.wanted.ports().next().map(|port| (port, Stage::Begin));
        if let Some((port, _)) = self.running {
            self.wanted = self.wanted.without(PortMask::one(port));
        }
    }
}

impl Shard {
    /// Tells at most `room` events more of the snapshot that is running.
    pub(super) fn snapshot_step(&mut self, room: usize, out: &mut Outbox) {
        let end = out.waiting().len() + room;
        for _ in 0..ROWS_PER_STEP {
            let Some((port, stage)) = self.snapshots.running else {
                return;
            };
            if out.waiting().len() + EVENTS_PER_ROW_MAX > end {
                return;
            }
            let mut teller = Teller { to: PortMask::one(port), now: self.now, out };
            match self.tell(stage, port, &mut teller) {
                Some(next) => self.snapshots.running = Some((port, next)),
                None => self.snapshots.start_next(),
            }
        }
    }

    /// Tells one row and says where to go on.
    fn tell(&self, stage: Stage, port: PortId, teller: &mut Teller<'_>) -> Option<Stage> {
        match stage {
            Stage::Begin => {
                teller.say(EventKind::SnapshotBegin { port });
                if let Some(day) = self.day {
                    teller.say(EventKind::TradingDay { day });
                }
                if self.killed {
                    teller.say(EventKind::Kill { scope: Scope::Global, on: true });
                }
                Some(Stage::Senders(0))
            }
            Stage::Senders(at) => Some(self.tell_sender(at, teller)),
            Stage::Directives(at) => Some(self.tell_directive(at, teller)),
            Stage::Places(at) => Some(self.tell_place(at, teller)),
            Stage::Adapters(at) => Some(self.tell_adapter(at, teller)),
            Stage::Guards(at) => Some(self.tell_guard(at, teller)),
            Stage::Restrictions(at, row) => Some(self.tell_restriction(at, row, teller)),
            Stage::Securities(at, row) => Some(self.tell_security(at, row, teller)),
            Stage::Orders(slot) => Some(self.tell_order(slot, teller)),
            Stage::Transactions(number) => Some(self.tell_transaction(number, teller)),
            Stage::Positions(local, at) => Some(self.tell_position(local, at, teller)),
            Stage::Cash(at) => Some(self.tell_cash(at, teller)),
            Stage::UsedIds(at) => Some(self.tell_used_ids(at, port, teller)),
            Stage::End => {
                teller.say(EventKind::SnapshotEnd { port });
                None
            }
        }
    }

    /// Before the orders that they have sent.
    fn tell_sender(&self, at: usize, teller: &mut Teller<'_>) -> Stage {
        let Some((id, sender)) = self.senders.at(at) else {
            return Stage::Directives(0);
        };
        teller.say(EventKind::Sender { id, sender: *sender });
        Stage::Senders(at + 1)
    }

    fn tell_directive(&self, at: usize, teller: &mut Teller<'_>) -> Stage {
        let Some((directive, version)) = self.directives.get(at) else {
            return Stage::Places(0);
        };
        teller.say(EventKind::Directed { version, directive });
        Stage::Directives(at + 1)
    }

    fn tell_place(&self, at: usize, teller: &mut Teller<'_>) -> Stage {
        let Some(place) = self.directory.places.get(at) else {
            return Stage::Adapters(1);
        };
        teller.say(EventKind::Session { exchange: place.id, session: place.session });
        Stage::Places(at + 1)
    }

    fn tell_adapter(&self, at: usize, teller: &mut Teller<'_>) -> Stage {
        let Some(state) = self.adapters.get(at) else {
            return Stage::Guards(0);
        };
        let adapter = AdapterId(at as u8);
        if state.connected {
            teller.say(EventKind::Adapter { adapter, connected: true });
        }
        if state.killed {
            teller.say(EventKind::Kill { scope: Scope::Adapter(adapter), on: true });
        }
        Stage::Adapters(at + 1)
    }

    fn guard_at(&self, at: usize) -> Option<(Scope, &Guard)> {
        let strategies = &self.directory.strategies;
        match strategies.get(at) {
            Some(entry) => Some((Scope::Strategy(entry.id), &entry.guard)),
            None => {
                let entry = self.directory.accounts.get(at - strategies.len())?;
                Some((Scope::Account(entry.id), &entry.guard))
            }
        }
    }

    fn tell_guard(&self, at: usize, teller: &mut Teller<'_>) -> Stage {
        let Some((scope, guard)) = self.guard_at(at) else {
            return Stage::Securities(0, 0);
        };
        if let Some(entry) = self.directory.strategies.get(at) {
            teller.say(EventKind::Phase { strategy: entry.id, phase: entry.phase });
        }
        teller.say(EventKind::Limits { scope, limits: guard.limits });
        if guard.killed {
            teller.say(EventKind::Kill { scope, on: true });
        }
        Stage::Restrictions(at, 0)
    }

    fn tell_restriction(&self, at: usize, row: usize, teller: &mut Teller<'_>) -> Stage {
        let restriction =
            self.guard_at(at).and_then(|(scope, guard)| Some((scope, *guard.restricted().get(row)?)));
        let Some((scope, security)) = restriction else {
            return Stage::Guards(at + 1);
        };
        teller.say(EventKind::Restrict { scope, security, on: true });
        Stage::Restrictions(at, row + 1)
    }

    fn tell_security(&self, at: usize, row: usize, teller: &mut Teller<'_>) -> Stage {
        let Some(local) = self.directory.locals.get(at) else {
            return Stage::Orders(0);
        };
        let security = local.instrument.security;
        if row == 0 {
            teller.say(EventKind::Tick(self.picture(at as u32)));
            if local.halted {
                teller.say(EventKind::Halt { security, on: true });
            }
            if local.killed {
                teller.say(EventKind::Kill { scope: Scope::Security(security), on: true });
            }
        }
        let Some(&strategy) = local.subscribers.get(row) else {
            return Stage::Securities(at + 1, 0);
        };
        let subscribers = local.subscribers.len() as u32;
        teller.say(EventKind::Subscription { strategy, security, on: true, subscribers });
        Stage::Securities(at, row + 1)
    }

    /// Tells a port of the ids that its sources have used, whatever became of their orders.
    fn tell_used_ids(&self, at: usize, port: PortId, teller: &mut Teller<'_>) -> Stage {
        if at >= self.used_ids.len() {
            return Stage::End;
        }
        let (batch, next) = self.used_ids.batch(at, port);
        if batch.count > 0 {
            teller.say(EventKind::UsedIds(batch));
        }
        Stage::UsedIds(next)
    }

    /// The terms at the time the order was submitted, then how it has stood since something was last said of it. An order
    /// that was modified more than once is first told under its earlier ids, so that each of them finds it.
    fn tell_order(&self, slot: u32, teller: &mut Teller<'_>) -> Stage {
        if slot >= self.orders.len() {
            return Stage::Transactions(0);
        }
        // What has ended in a day that is over is with us for its venue, not for readers.
        let order = self.orders.get(slot);
        let is_past = order.base.is_finished() && order.era != self.era;
        if self.orders.in_use(slot) && !is_past {
            let terms = self.terms_image(slot, ExecType::Snapshot, Reason::None);
            let (order, fill) = (self.orders.get(slot), self.orders.last_fill(slot));
            let first = self.orders.first_id(slot);
            if !terms.orig_id.is_none() && terms.orig_id != *first {
                let earlier = OrderTerms { id: terms.orig_id, orig_id: *first, ..terms };
                teller.say_at(order.submitted, EventKind::Order(earlier));
            }
            teller.say_at(order.submitted, EventKind::Order(terms));
            let report = self.image(
                slot,
                (ExecType::Snapshot, self.orders.status(slot), order.reason),
                &order.id,
                self.orders.orig_id(slot),
                (fill.qty, fill.price),
            );
            teller.say_at(order.updated, EventKind::Status(report));
            let sent = *self.orders.sent(slot);
            if !sent.is_empty() {
                teller.say_at(order.submitted, EventKind::Sent { order: self.orders.handle(slot), sent });
            }
        }
        Stage::Orders(slot + 1)
    }

    fn tell_transaction(&self, number: u64, teller: &mut Teller<'_>) -> Stage {
        // The oldest may have been folded away since the last step.
        let number = number.max(self.ledger.folded());
        let Some((at, booking)) = self.ledger.transaction((number - self.ledger.folded()) as usize) else {
            return Stage::Positions(0, 0);
        };
        teller.say_at(at, EventKind::Booked(self.as_of_now(booking)));
        Stage::Transactions(number + 1)
    }

    /// A kept transaction, with position and cash as they are now: an image never shows the past.
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

    fn tell_position(&self, local: u32, at: u16, teller: &mut Teller<'_>) -> Stage {
        if local as usize >= self.directory.locals.len() {
            return Stage::Cash(0);
        }
        let Some(held) = self.ledger.positions(local).get(at as usize) else {
            return Stage::Positions(local + 1, 0);
        };
        if held.traded {
            let security = self.directory.locals[local as usize].instrument.security;
            let what = Adjustment::Position { security, before: held.state, after: held.state };
            teller.say(EventKind::Adjusted { strategy: held.strategy, what });
        }
        Stage::Positions(local, at + 1)
    }

    fn tell_cash(&self, at: usize, teller: &mut Teller<'_>) -> Stage {
        let Some(cash) = self.ledger.cash().get(at) else {
            return Stage::UsedIds(0);
        };
        if cash.moved {
            let what = Adjustment::Cash { currency: cash.currency, before: cash.amount, after: cash.amount };
            teller.say(EventKind::Adjusted { strategy: cash.strategy, what });
        }
        Stage::Cash(at + 1)
    }
}
