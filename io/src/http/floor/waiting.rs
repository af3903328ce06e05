//! Who waits for an answer of a shard. A request about an order is answered by the first that is said of its id; every other
//! command by `Done`, from each shard that was asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pitlane_engine::event::{Body, Event, OrderReport, Refusal};
use pitlane_engine::id::{IntId, PortId, Source};
use pitlane_engine::reason::Reason;

/// Answers awaited at once. A connection awaits one at a time, and the shards answer in microseconds.
pub const WAITING_MAX: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 10;

/// The token of a command whose answer nobody awaits: generation zero, which no slot ever has.
pub const NOBODY: u32 = 0;

/// What came of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All shards that were asked have done it, or did not for this reason: the first given other than none.
    Done(Reason),
    /// The first report of the order, or of the request about it.
    Order(OrderReport),
    /// The cancel or modification came to nothing.
    Refused(Refusal),
}

/// How an answer will be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    Done { left: u8 },
    Order { session: u16, id: IntId },
}

/// A token is generation and slot, so that an answer that comes after its asker has gone finds nobody.
#[derive(Debug, Default)]
pub struct Waiting {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Session and id of awaited orders. In a tree, since clients choose the ids.
    orders: BTreeMap<(u16, IntId), u16>,
}

#[derive(Debug)]
struct Slot {
    generation: u32,
    awaited: Option<Awaited>,
    /// The worst of what the shards have said so far.
    reason: Reason,
    answer: Option<Outcome>,
    waker: Option<Waker>,
}

impl Waiting {
    /// A place for one who waits, if there is one, and nobody waits for the same order already.
    pub fn admit(waiting: &Rc<RefCell<Waiting>>, awaited: Awaited) -> Option<Pending> {
        let mut this = waiting.borrow_mut();
        if let Awaited::Order { session, id } = awaited
            && this.orders.contains_key(&(session, id))
        {
            return None;
        }
        let number = this.free_slot()?;
        let slot = &mut this.slots[number as usize];
        slot.generation = (slot.generation + 1) % (1 << (u32::BITS - SLOT_BITS));
        // Zero is nobody's.
        slot.generation = slot.generation.max(1);
        (slot.awaited, slot.reason, slot.answer, slot.waker) = (Some(awaited), Reason::None, None, None);
        let token = slot.generation << SLOT_BITS | number as u32;
        if let Awaited::Order { session, id } = awaited {
            this.orders.insert((session, id), number);
        }
        Some(Pending { waiting: waiting.clone(), token })
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn free_slot(&mut self) -> Option<u16> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        if self.slots.len() == WAITING_MAX {
            return None;
        }
        self.slots.push(Slot {
            generation: 0,
            awaited: None,
            reason: Reason::None,
            answer: None,
            waker: None,
        });
        Some((self.slots.len() - 1) as u16)
    }

    /// Gives an answer to whoever waited for this event; `port` is ours.
    pub fn handle_event(&mut self, port: PortId, event: &Event) {
        match &event.body {
            Body::Done { source, token, reason } if source.port == port => self.done(*token, *reason),
            Body::Refused(refusal) if refusal.source.port == port => {
                self.order(refusal.source, &refusal.request_id, Outcome::Refused(*refusal))
            }
            Body::Order(_) | Body::Status(_) if !self.orders.is_empty() => {
                let Some(report) = event.report().filter(|report| report.source.port == port) else { return };
                self.order(report.source, &report.id, Outcome::Order(report))
            }
            Body::Done { .. }
            | Body::Refused(_)
            | Body::Order(_)
            | Body::Status(_)
            | Body::Forgotten { .. }
            | Body::Booked(_)
            | Body::Adjusted { .. }
            | Body::Tick(_)
            | Body::Subscription { .. }
            | Body::Session { .. }
            | Body::Halt { .. }
            | Body::TradingDay { .. }
            | Body::Phase { .. }
            | Body::Adapter { .. }
            | Body::Limits { .. }
            | Body::Restrict { .. }
            | Body::Kill { .. }
            | Body::Alert { .. }
            | Body::ToVenue(_)
            | Body::Budget(_)
            | Body::SnapshotBegin { .. }
            | Body::SnapshotEnd { .. } => {}
        }
    }

    fn done(&mut self, token: u32, reason: Reason) {
        let Some(slot) = self.slot_of(token) else { return };
        if slot.reason == Reason::None {
            slot.reason = reason;
        }
        let Some(Awaited::Done { left }) = &mut slot.awaited else { return };
        *left -= 1;
        if *left == 0 {
            let reason = slot.reason;
            slot.give(Outcome::Done(reason));
        }
    }

    fn order(&mut self, source: Source, id: &IntId, answer: Outcome) {
        if let Some(number) = self.orders.remove(&(source.session, *id)) {
            self.slots[number as usize].give(answer);
        }
    }

    /// The slot this token was given for, if its asker still waits.
    fn slot_of(&mut self, token: u32) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(token as usize % WAITING_MAX)?;
        (slot.generation == token >> SLOT_BITS && slot.awaited.is_some()).then_some(slot)
    }

    fn release(&mut self, token: u32) {
        let Some(slot) = self.slot_of(token) else { return };
        if let Some(Awaited::Order { session, id }) = slot.awaited.take() {
            self.orders.remove(&(session, id));
        }
        self.free.push((token as usize % WAITING_MAX) as u16);
    }
}

impl Slot {
    fn give(&mut self, answer: Outcome) {
        self.answer = Some(answer);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// An answer to come. Dropped before, the answer goes unheard; the command has effect all the same.
#[derive(Debug)]
pub struct Pending {
    waiting: Rc<RefCell<Waiting>>,
    token: u32,
}

impl Pending {
    pub fn token(&self) -> u32 {
        self.token
    }
}

impl Future for Pending {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        let mut waiting = self.waiting.borrow_mut();
        let slot = waiting.slot_of(self.token).expect("the slot is ours until we go");
        match slot.answer {
            Some(answer) => Poll::Ready(answer),
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.waiting.borrow_mut().release(self.token);
    }
}
