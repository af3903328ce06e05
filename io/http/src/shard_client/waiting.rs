//! Pending responses of the shards. A new order is answered by the first report of its id; a
//! request about an order by the first report of the request, or by what the venue did; every other
//! command by `Done`, from each shard that was asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, PortId};
use pitlane_engine::reason::Reason;

/// Maximum number of pending responses. A connection awaits one at a time, and the shards respond
/// in microseconds.
pub(super) const WAITING_MAX: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 10;

/// The token of a command without a pending response: generation zero, which no slot ever has.
pub(super) const NO_TOKEN: u32 = 0;

/// Result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// All shards that were asked have executed it, or refused it for this reason: the first one
    /// given other than `None`.
    Done(Reason),
    /// The first report of the order, or of the request about it.
    Order(OrderReport),
    /// The cancel or modification was refused.
    Refused(RequestRefusal),
}

/// How a response is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Awaited {
    /// Nothing was requested yet.
    Nothing,
    Done {
        left: u8,
    },
    /// A new order of ours.
    Order {
        session: u16,
        id: IntId,
    },
    /// A cancel or modification, under its own id; the order may be another source's.
    Request {
        order: OrderHandle,
        id: IntId,
        /// Whether the response is what the venue did, rather than that the venue was asked.
        until_executed: bool,
    },
}

/// Key by which the response about an order is found. The map is ordered, not hashed: clients
/// choose the ids and could construct hash collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ResponseKey {
    Order(u16, IntId),
    Request(OrderHandle, IntId),
}

impl Awaited {
    fn key(&self) -> Option<ResponseKey> {
        match *self {
            Awaited::Order { session, id } => Some(ResponseKey::Order(session, id)),
            Awaited::Request { order, id, .. } => Some(ResponseKey::Request(order, id)),
            Awaited::Nothing | Awaited::Done { .. } => None,
        }
    }
}

/// Table of pending responses. A token consists of generation and slot, so a response that arrives
/// after its request was dropped matches no slot.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    slots: Vec<PendingSlot>,
    free: Vec<u16>,
    orders: BTreeMap<ResponseKey, u16>,
}

#[derive(Debug)]
struct PendingSlot {
    generation: u32,
    awaited: Option<Awaited>,
    /// The first reason other than `None` that a shard has given so far.
    reason: Reason,
    answer: Option<CommandOutcome>,
    waker: Option<Waker>,
}

impl Waiting {
    /// Allocates a slot for a response, if one is free.
    pub(super) fn admit(waiting: &Rc<RefCell<Waiting>>) -> Option<PendingResponse> {
        let mut this = waiting.borrow_mut();
        let number = this.free_slot()?;
        let slot = &mut this.slots[number as usize];
        slot.generation = (slot.generation + 1) % (1 << (u32::BITS - SLOT_BITS));
        // Zero is reserved for `NO_TOKEN`.
        slot.generation = slot.generation.max(1);
        (slot.awaited, slot.reason, slot.answer, slot.waker) =
            (Some(Awaited::Nothing), Reason::None, None, None);
        let token = slot.generation << SLOT_BITS | number as u32;
        Some(PendingResponse { waiting: waiting.clone(), token })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn free_slot(&mut self) -> Option<u16> {
        if let Some(number) = self.free.pop() {
            return Some(number);
        }
        if self.slots.len() == WAITING_MAX {
            return None;
        }
        self.slots.push(PendingSlot {
            generation: 0,
            awaited: None,
            reason: Reason::None,
            answer: None,
            waker: None,
        });
        Some((self.slots.len() - 1) as u16)
    }

    /// Completes the response that waits for this event; `port` is ours.
    pub(super) fn handle_event(&mut self, port: PortId, event: &Event) {
        match &event.body {
            EventKind::Done { source, token, reason } if source.port == port => self.done(*token, *reason),
            EventKind::Refused(refusal) if refusal.source.port == port => self.handle_refusal(refusal),
            EventKind::Order(_) | EventKind::Status(_) if !self.orders.is_empty() => {
                let Some(report) = event.report() else { return };
                match report.what {
                    ExecType::Entered | ExecType::Rejected if report.source.port == port => self.complete(
                        ResponseKey::Order(report.source.session, report.id),
                        CommandOutcome::Order(report),
                    ),
                    ExecType::CancelPending | ExecType::ReplacePending => self.complete_if_sent(
                        ResponseKey::Request(report.order, report.id),
                        CommandOutcome::Order(report),
                    ),
                    ExecType::Canceled | ExecType::Replaced => self.complete(
                        ResponseKey::Request(report.order, report.id),
                        CommandOutcome::Order(report),
                    ),
                    ExecType::Entered
                    | ExecType::Rejected
                    | ExecType::Accepted
                    | ExecType::Filled
                    | ExecType::Expired
                    | ExecType::Triggered
                    | ExecType::Corrected
                    | ExecType::Snapshot => {}
                }
            }
            EventKind::Done { .. }
            | EventKind::Refused(_)
            | EventKind::Order(_)
            | EventKind::Status(_)
            | EventKind::Forgotten { .. }
            | EventKind::Booked(_)
            | EventKind::Adjusted { .. }
            | EventKind::Tick(_)
            | EventKind::Depth(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    /// Completes the response to a request that was refused.
    pub(super) fn handle_refusal(&mut self, refusal: &RequestRefusal) {
        self.complete(
            ResponseKey::Request(refusal.order, refusal.request_id),
            CommandOutcome::Refused(*refusal),
        );
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
            slot.complete(CommandOutcome::Done(reason));
        }
    }

    /// Handles the report that a request has been sent to the venue.
    fn complete_if_sent(&mut self, key: ResponseKey, answer: CommandOutcome) {
        let slot = self.orders.get(&key).map(|number| &self.slots[*number as usize]);
        let waits_for_execution =
            |slot: &PendingSlot| matches!(slot.awaited, Some(Awaited::Request { until_executed: true, .. }));
        if !slot.is_some_and(waits_for_execution) {
            self.complete(key, answer);
        }
    }

    fn complete(&mut self, key: ResponseKey, answer: CommandOutcome) {
        if let Some(number) = self.orders.remove(&key) {
            self.slots[number as usize].complete(answer);
        }
    }

    /// Returns the slot of this token, if its request is still waiting.
    fn slot_of(&mut self, token: u32) -> Option<&mut PendingSlot> {
        let slot = self.slots.get_mut(token as usize % WAITING_MAX)?;
        (slot.generation == token >> SLOT_BITS && slot.awaited.is_some()).then_some(slot)
    }

    fn release(&mut self, token: u32) {
        let Some(slot) = self.slot_of(token) else { return };
        if let Some(key) = slot.awaited.take().and_then(|awaited| awaited.key()) {
            self.orders.remove(&key);
        }
        self.free.push((token as usize % WAITING_MAX) as u16);
    }
}

impl PendingSlot {
    fn complete(&mut self, answer: CommandOutcome) {
        self.answer = Some(answer);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A response to come. If it is dropped first, the response is discarded; the command takes effect
/// all the same.
#[derive(Debug)]
pub(crate) struct PendingResponse {
    waiting: Rc<RefCell<Waiting>>,
    token: u32,
}

impl PendingResponse {
    pub(crate) fn token(&self) -> u32 {
        self.token
    }

    /// Sets what was requested, and so which event is the response. Must be called before any event
    /// that could be the response is handled.
    pub(crate) fn expect(&self, awaited: Awaited) {
        let mut waiting = self.waiting.borrow_mut();
        let slot = waiting.slot_of(self.token).expect("the slot is ours until we go");
        slot.awaited = Some(awaited);
        if let Some(key) = awaited.key() {
            waiting.orders.insert(key, (self.token as usize % WAITING_MAX) as u16);
        }
    }
}

impl Future for PendingResponse {
    type Output = CommandOutcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CommandOutcome> {
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

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.waiting.borrow_mut().release(self.token);
    }
}
