//! A copy of everything, told to one port as events. Other commands may come between: what is told is always whole
//! and newest, so a reader that applies all in order ends with the right picture.

use super::Shard;
use crate::command::Scope;
use crate::event::{Adjustment, Body as Said, Booking, What};
use crate::id::{AdapterId, PortId, PortMask};
use crate::number::{Price, Qty};
use crate::outbox::Outbox;
use crate::reason::Reason;

/// Events of a snapshot in one step: small, so that commands do not wait for it.
pub(super) const IMAGES_PER_STEP: usize = 32;
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
    End,
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
        let end = out.seq() + room as u64;
        while out.seq() + EVENTS_PER_ROW_MAX as u64 <= end
            && let Some((port, stage)) = self.snapshots.running
        {
            match self.tell(port, stage, out) {
                Some(next) => self.snapshots.running = Some((port, next)),
                None => self.snapshots.start_next(),
            }
        }
    }

    /// Tells one row and says where to go on.
    fn tell(&self, port: PortId, stage: Stage, out: &mut Outbox) -> Option<Stage> {
        let mut say = |body| out.say(PortMask::one(port), self.now, body);
        match stage {
            Stage::Begin => {
                say(Said::SnapshotBegin { port });
                if self.killed {
                    say(Said::Kill { scope: Scope::Global, on: true });
                }
                Some(Stage::Places(0))
            }
            Stage::Places(at) => match self.directory.places.get(at) {
                Some(place) => {
                    say(Said::Session { exchange: place.id, session: place.session });
                    Some(Stage::Places(at + 1))
                }
                None => Some(Stage::Adapters(1)),
            },
            Stage::Adapters(at) => match self.adapters.get(at) {
                Some(state) => {
                    let adapter = AdapterId(at as u8);
                    if state.connected {
                        say(Said::Adapter { adapter, connected: true });
                    }
                    if state.killed {
                        say(Said::Kill { scope: Scope::Adapter(adapter), on: true });
                    }
                    Some(Stage::Adapters(at + 1))
                }
                None => Some(Stage::Guards(0)),
            },
            Stage::Guards(at) => Some(self.tell_guard(at, &mut say)),
            Stage::Restrictions(at, row) => {
                let (scope, guard) = self.guard_at(at).expect("the stage before found it");
                match guard.restricted().get(row) {
                    Some(&security) => {
                        say(Said::Restrict { scope, security, on: true });
                        Some(Stage::Restrictions(at, row + 1))
                    }
                    None => Some(Stage::Guards(at + 1)),
                }
            }
            Stage::Securities(at, row) => Some(self.tell_security(at, row, &mut say)),
            Stage::Orders(slot) => {
                if slot >= self.orders.len() {
                    return Some(Stage::Transactions(0));
                }
                if self.orders.in_use(slot) {
                    self.tell_order(slot, &mut say);
                }
                Some(Stage::Orders(slot + 1))
            }
            Stage::Transactions(number) => {
                let number = number.max(self.ledger.folded());
                match self.ledger.transaction((number - self.ledger.folded()) as usize) {
                    Some((_, booking)) => {
                        say(Said::Booked(self.as_of_now(booking)));
                        Some(Stage::Transactions(number + 1))
                    }
                    None => Some(Stage::Positions(0, 0)),
                }
            }
            Stage::Positions(local, at) => Some(self.tell_position(local, at, &mut say)),
            Stage::Cash(at) => match self.ledger.cash().get(at) {
                Some(cash) => {
                    let what =
                        Adjustment::Cash { currency: cash.currency, before: cash.amount, after: cash.amount };
                    say(Said::Adjusted { strategy: cash.strategy, what });
                    Some(Stage::Cash(at + 1))
                }
                None => Some(Stage::End),
            },
            Stage::End => {
                say(Said::SnapshotEnd { port });
                None
            }
        }
    }

    fn guard_at(&self, at: usize) -> Option<(Scope, &crate::risk::Guard)> {
        let strategies = &self.directory.strategies;
        match strategies.get(at) {
            Some(entry) => Some((Scope::Strategy(entry.id), &entry.guard)),
            None => {
                let entry = self.directory.accounts.get(at - strategies.len())?;
                Some((Scope::Account(entry.id), &entry.guard))
            }
        }
    }

    fn tell_guard(&self, at: usize, say: &mut impl FnMut(Said)) -> Stage {
        let Some((scope, guard)) = self.guard_at(at) else {
            return Stage::Securities(0, 0);
        };
        if let Some(entry) = self.directory.strategies.get(at) {
            say(Said::Phase { strategy: entry.id, phase: entry.phase });
        }
        say(Said::Limits { scope, limits: guard.limits });
        if guard.killed {
            say(Said::Kill { scope, on: true });
        }
        Stage::Restrictions(at, 0)
    }

    fn tell_security(&self, at: usize, row: usize, say: &mut impl FnMut(Said)) -> Stage {
        let Some(local) = self.directory.locals.get(at) else {
            return Stage::Orders(0);
        };
        let security = local.instrument.security;
        if row == 0 {
            say(Said::Tick(self.picture(at as u32)));
            if local.halted {
                say(Said::Halt { security, on: true });
            }
            if local.killed {
                say(Said::Kill { scope: Scope::Security(security), on: true });
            }
        }
        match local.subscribers.get(row) {
            Some(&strategy) => {
                let subscribers = local.subscribers.len() as u32;
                say(Said::Subscription { strategy, security, on: true, subscribers });
                Stage::Securities(at, row + 1)
            }
            None => Stage::Securities(at + 1, 0),
        }
    }

    fn tell_order(&self, slot: u32, say: &mut impl FnMut(Said)) {
        say(Said::Order(self.terms_image(slot, What::Image, Reason::None)));
        say(Said::Status(self.image(slot, What::Image, Reason::None, None, (Qty::ZERO, Price::ZERO))));
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
        let mine = |cash: &&crate::ledger::Cash| {
            cash.strategy == booking.strategy && cash.currency == booking.currency
        };
        if let Some(cash) = self.ledger.cash().iter().find(mine) {
            booking.cash = cash.amount;
        }
        booking
    }

    fn tell_position(&self, local: u32, at: u16, say: &mut impl FnMut(Said)) -> Stage {
        if local as usize >= self.directory.locals.len() {
            return Stage::Cash(0);
        }
        let Some(held) = self.ledger.positions(local).get(at as usize) else {
            return Stage::Positions(local + 1, 0);
        };
        let security = self.directory.locals[local as usize].instrument.security;
        let what = Adjustment::Position { security, before: held.state, after: held.state };
        say(Said::Adjusted { strategy: held.strategy, what });
        Stage::Positions(local, at + 1)
    }
}
