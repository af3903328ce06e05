//! Pending responses of the shards. A new order is answered by the first report of its id; a
//! request about an order by the first report of the request, or by what the venue did; a cancel of
//! many orders by the results of all of them; every other command by `Done`, from each shard that
//! was asked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pitlane_engine::event::{Event, EventKind, ExecType, OrderReport, RequestRefusal};
use pitlane_engine::id::{IntId, OrderHandle, PortId};
use pitlane_engine::index::index_u32;
use pitlane_engine::reason::Reason;
use pitlane_engine::slot_map::{SlotKey, SlotMap};

/// Maximum number of pending responses. A connection awaits one at a time, and the shards respond
/// in microseconds.
pub(super) const WAITING_MAX: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 10;
/// A token has the generation of a slot in the bits above the slot.
const LAST_GENERATION: u32 = u32::MAX >> SLOT_BITS;

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
    /// A cancel of many orders: `Done` of each shard, and the result of each order.
    Cancels {
        id: IntId,
        left: u8,
    },
}

/// Results of a cancel of many orders, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CancelCounts {
    pub canceled: u32,
    /// Orders whose cancel was refused.
    pub refused: u32,
    /// Orders that ended otherwise before their cancel was executed.
    pub finished: u32,
    /// Orders whose cancel is not answered yet.
    pub pending: u32,
}

/// What was reported of one order of a cancel of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CancelStep {
    Requested,
    Canceled,
    Refused(Reason),
}

impl CancelCounts {
    fn count(&mut self, step: CancelStep) {
        let (pending, result) = match step {
            CancelStep::Requested => return self.pending += 1,
            CancelStep::Canceled => (&mut self.pending, &mut self.canceled),
            CancelStep::Refused(Reason::OrderFinished) => (&mut self.pending, &mut self.finished),
            CancelStep::Refused(_) => (&mut self.pending, &mut self.refused),
        };
        *pending = pending.saturating_sub(1);
        *result += 1;
    }
}

/// Key by which the response about an order is found. The map is ordered, not hashed: clients
/// choose the ids and could construct hash collisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ResponseKey {
    Order(u16, IntId),
    Request(OrderHandle, IntId),
    Cancels(IntId),
}

impl Awaited {
    fn key(&self) -> Option<ResponseKey> {
        match *self {
            Awaited::Order { session, id } => Some(ResponseKey::Order(session, id)),
            Awaited::Request { order, id, .. } => Some(ResponseKey::Request(order, id)),
            Awaited::Cancels { id, .. } => Some(ResponseKey::Cancels(id)),
            Awaited::Nothing | Awaited::Done { .. } => None,
        }
    }
}

/// Table of pending responses. A token consists of generation and slot, so a response that arrives
/// after its request was dropped matches no slot.
#[derive(Debug)]
pub(super) struct Waiting {
    slots: SlotMap<PendingSlot>,
    orders: BTreeMap<ResponseKey, SlotKey>,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { slots: SlotMap::new(index_u32(WAITING_MAX), LAST_GENERATION), orders: BTreeMap::new() }
    }
}

#[derive(Debug)]
struct PendingSlot {
    awaited: Awaited,
    /// The first reason other than `None` that a shard has given so far.
    reason: Reason,
    counts: CancelCounts,
    answer: Option<CommandOutcome>,
    waker: Option<Waker>,
}

impl Waiting {
    /// Allocates a slot for a response, if one is free.
    pub(super) fn admit(waiting: &Rc<RefCell<Waiting>>) -> Option<PendingResponse> {
        let slot = PendingSlot {
            awaited: Awaited::Nothing,
            reason: Reason::None,
            counts: CancelCounts::default(),
            answer: None,
            waker: None,
        };
        let key = waiting.borrow_mut().slots.insert(slot)?;
        Some(PendingResponse { waiting: waiting.clone(), key })
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Completes the response that waits for this event; `port` is ours.
    pub(super) fn handle_event(&mut self, port: PortId, event: &Event) {
        match &event.body {
            EventKind::Done { source, token, reason } if source.port == port => self.done(*token, *reason),
            EventKind::Refused(refusal) if refusal.source.port == port => self.handle_refusal(refusal),
            EventKind::Order(_) | EventKind::Status(_) if !self.orders.is_empty() => {
                let Some(report) = event.report() else { return };
                match report.what {
                    ExecType::CancelPending if self.counts_cancels_of(&report.id) => {
                        self.count(&report.id, CancelStep::Requested);
                    }
                    ExecType::Canceled if self.counts_cancels_of(&report.id) => {
                        self.count(&report.id, CancelStep::Canceled);
                    }
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
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
    }

    /// Completes the response to a request that was refused.
    pub(super) fn handle_refusal(&mut self, refusal: &RequestRefusal) {
        if self.counts_cancels_of(&refusal.request_id) {
            return self.count(&refusal.request_id, CancelStep::Refused(refusal.reason));
        }
        self.complete(
            ResponseKey::Request(refusal.order, refusal.request_id),
            CommandOutcome::Refused(*refusal),
        );
    }

    fn done(&mut self, token: u32, reason: Reason) {
        let Some(slot) = self.slots.get_mut(key_of(token)) else { return };
        if slot.reason == Reason::None {
            slot.reason = reason;
        }
        let (Awaited::Done { left } | Awaited::Cancels { left, .. }) = &mut slot.awaited else { return };
        *left -= 1;
        slot.complete_if_done();
    }

    fn counts_cancels_of(&self, id: &IntId) -> bool {
        self.orders.contains_key(&ResponseKey::Cancels(*id))
    }

    /// Counts the result of one order of a cancel of many.
    fn count(&mut self, id: &IntId, step: CancelStep) {
        let slot = self.orders.get(&ResponseKey::Cancels(*id)).and_then(|slot| self.slots.get_mut(*slot));
        let Some(slot) = slot else { return };
        slot.counts.count(step);
        slot.complete_if_done();
    }

    /// Handles the report that a request has been sent to the venue.
    fn complete_if_sent(&mut self, key: ResponseKey, answer: CommandOutcome) {
        let slot = self.orders.get(&key).and_then(|slot| self.slots.get(*slot));
        let waits_for_execution =
            |slot: &PendingSlot| matches!(slot.awaited, Awaited::Request { until_executed: true, .. });
        if !slot.is_some_and(waits_for_execution) {
            self.complete(key, answer);
        }
    }

    fn complete(&mut self, key: ResponseKey, answer: CommandOutcome) {
        let slot = self.orders.remove(&key).and_then(|slot| self.slots.get_mut(slot));
        slot.into_iter().for_each(|slot| slot.complete(answer));
    }

    fn release(&mut self, slot: SlotKey) {
        let released = self.slots.remove(slot);
        if let Some(key) = released.and_then(|slot| slot.awaited.key()) {
            self.orders.remove(&key);
        }
    }
}

/// Returns the slot of a token.
fn key_of(token: u32) -> SlotKey {
    SlotKey::new(token & !(u32::MAX << SLOT_BITS), token >> SLOT_BITS)
}

impl PendingSlot {
    /// Completes the response when every shard has answered, and every order of a cancel of many.
    fn complete_if_done(&mut self) {
        if let Awaited::Done { left: 0 } | Awaited::Cancels { left: 0, .. } = self.awaited
            && self.counts.pending == 0
        {
            self.complete(CommandOutcome::Done(self.reason));
        }
    }

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
    key: SlotKey,
}

impl PendingResponse {
    pub(crate) fn token(&self) -> u32 {
        self.key.generation() << SLOT_BITS | index_u32(self.key.slot())
    }

    /// Returns the results of a cancel of many orders so far.
    pub(crate) fn cancel_counts(&self) -> CancelCounts {
        self.waiting.borrow().slots.get(self.key).map(|slot| slot.counts).unwrap_or_default()
    }

    /// Sets what was requested, and so which event is the response. Must be called before any event
    /// that could be the response is handled.
    pub(crate) fn expect(&self, awaited: Awaited) {
        let mut waiting = self.waiting.borrow_mut();
        let slot = waiting.slots.get_mut(self.key).expect("the slot is ours until we go");
        slot.awaited = awaited;
        if let Some(key) = awaited.key() {
            waiting.orders.insert(key, self.key);
        }
    }
}

impl Future for PendingResponse {
    type Output = CommandOutcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CommandOutcome> {
        let mut waiting = self.waiting.borrow_mut();
        let slot = waiting.slots.get_mut(self.key).expect("the slot is ours until we go");
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
        self.waiting.borrow_mut().release(self.key);
    }
}
