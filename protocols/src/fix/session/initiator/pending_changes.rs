//! Cancels and replacements that the venue has not answered, as far as the session knows.
//!
//! ```text
//! sent ──────► awaited ─── messages lost ──► lost ─── sent again ──► awaited
//! in store ──► uncertain ─ asked for again ─► awaited
//!              uncertain, lost ─ another is refused because one is pending ─► confirmed
//!              confirmed ─ end of the connection, answer to another ─► uncertain
//! ```
//!
//! Only an awaited or confirmed cancel holds back another that has no id of its own. The store does
//! not show which requests were answered before a restart; if one of those held back another, the
//! other would wait for ever.
//!
//! Rules: docs/fix-rules.md#venue-recovery.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::event::VenueRequest;
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::reason::Reason;

/// Requests without an answer at one venue. The bound is what all shards may hold together; further
/// ones are refused.
pub(super) const PENDING_CHANGES_MAX: usize = 1 << 16;

/// What is known of the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerState {
    /// It will come.
    Awaited,
    /// It will come, since the venue said on this connection that a request is pending.
    Confirmed,
    /// It may have come before the restart.
    Uncertain,
    /// It may be among messages that will never arrive.
    Lost,
}

impl AnswerState {
    fn is_coming(self) -> bool {
        match self {
            AnswerState::Awaited | AnswerState::Confirmed => true,
            AnswerState::Uncertain | AnswerState::Lost => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PendingChange {
    request: VenueRequest,
    answer: AnswerState,
}

/// A request that the venue has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedChange {
    pub request: VenueRequest,
    /// Whether the answer to another cancel of the order decides, so that the shard still waits.
    pub is_superseded: bool,
}

#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    /// By order and ClOrdID.
    changes: BTreeMap<(OrderHandle, IntId), PendingChange>,
}

impl PendingChanges {
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Adds a request that was sent.
    pub(super) fn insert(&mut self, order: OrderHandle, id: IntId, request: VenueRequest) {
        self.changes.insert((order, id), PendingChange { request, answer: AnswerState::Awaited });
    }

    /// Returns the request with this id if it may have no answer yet.
    pub(super) fn get(&self, order: OrderHandle, id: IntId) -> Option<VenueRequest> {
        self.changes.get(&(order, id)).map(|change| change.request)
    }

    /// Removes an answered request.
    pub(super) fn remove(&mut self, order: OrderHandle, id: IntId) {
        self.changes.remove(&(order, id));
    }

    /// Returns whether the venue has such a request and will answer it.
    pub(super) fn has_coming(&self, order: OrderHandle, request: VenueRequest) -> bool {
        self.of_order(order).any(|change| change.request == request && change.answer.is_coming())
    }

    /// Records that a shard asks for a request with this id. Returns whether the venue has it
    /// already and will answer it. An answer from before a restart would have reached the shard
    /// before it asks.
    pub(super) fn ask_again(&mut self, order: OrderHandle, id: IntId) -> bool {
        let Some(change) = self.changes.get_mut(&(order, id)) else { return false };
        if change.answer == AnswerState::Lost {
            return false;
        }
        change.answer = AnswerState::Awaited;
        true
    }

    /// Removes a request that the venue has refused; `None` if it was answered before or never
    /// made.
    ///
    /// A cancel without an id of its own may be sent twice, before and after a restart. It then has
    /// two answers, of which the shard takes one: that to the second, or to the first if the venue
    /// refuses the second because of the first.
    pub(super) fn refuse(&mut self, order: OrderHandle, id: IntId, reason: Reason) -> Option<RefusedChange> {
        let PendingChange { request, answer } = self.changes.remove(&(order, id))?;
        let is_cancel = request == VenueRequest::Cancel;
        if is_cancel && answer == AnswerState::Confirmed {
            // This was the pending one.
            self.for_each_cancel(order, |change| {
                if change.answer == AnswerState::Confirmed {
                    change.answer = AnswerState::Uncertain;
                }
            });
        }
        let is_superseded = is_cancel
            && match answer.is_coming() {
                true => reason == Reason::RequestPending && self.confirm_cancels(order),
                false => self.has_coming(order, VenueRequest::Cancel),
            };
        Some(RefusedChange { request, is_superseded })
    }

    /// Records that the venue calls a cancel of the order pending. Returns whether one is known.
    fn confirm_cancels(&mut self, order: OrderHandle) -> bool {
        self.for_each_cancel(order, |change| {
            if !change.answer.is_coming() {
                change.answer = AnswerState::Confirmed;
            }
        });
        self.has_coming(order, VenueRequest::Cancel)
    }

    /// Forgets the requests of a finished order.
    pub(super) fn forget(&mut self, order: OrderHandle) {
        while let Some((&key, _)) =
            self.changes.range((order, IntId::NONE)..).next().filter(|((of, _), _)| *of == order)
        {
            self.changes.remove(&key);
        }
    }

    /// Records that answers may be lost: cancels may be sent again. A modification may not, because
    /// the venue would refuse it if it has done it.
    pub(super) fn lose_answers(&mut self) {
        for change in self.changes.values_mut().filter(|change| change.request == VenueRequest::Cancel) {
            change.answer = AnswerState::Lost;
        }
    }

    /// Records the end of the connection. What the venue said to be pending is uncertain again, so
    /// that a cancel does not wait for ever because the venue was wrong.
    pub(super) fn handle_disconnect(&mut self) {
        for change in self.changes.values_mut().filter(|change| change.answer == AnswerState::Confirmed) {
            change.answer = AnswerState::Uncertain;
        }
    }

    pub(super) fn clear(&mut self) {
        self.changes.clear();
    }

    fn of_order(&self, order: OrderHandle) -> impl Iterator<Item = &PendingChange> {
        let from_order = self.changes.range((order, IntId::NONE)..);
        from_order.take_while(move |((of, _), _)| *of == order).map(|(_, change)| change)
    }

    fn for_each_cancel(&mut self, order: OrderHandle, mut act: impl FnMut(&mut PendingChange)) {
        let from_order = self.changes.range_mut((order, IntId::NONE)..);
        for (_, change) in from_order.take_while(|((of, _), _)| *of == order) {
            if change.request == VenueRequest::Cancel {
                act(change);
            }
        }
    }
}

/// Requests in the store, in the order in which they were sent. Some of them were answered, which
/// the store does not show; the oldest were answered for certain.
#[derive(Debug, Default)]
pub(super) struct StoredChanges {
    changes: VecDeque<((OrderHandle, IntId), PendingChange)>,
}

impl StoredChanges {
    /// Adds a request. `is_lost` says whether its answer may be among lost messages.
    pub(super) fn push(&mut self, order: OrderHandle, id: IntId, request: VenueRequest, is_lost: bool) {
        let answer = match is_lost && request == VenueRequest::Cancel {
            true => AnswerState::Lost,
            false => AnswerState::Uncertain,
        };
        self.changes.push_back(((order, id), PendingChange { request, answer }));
        if self.changes.len() > PENDING_CHANGES_MAX / 2 {
            self.changes.pop_front();
        }
    }

    pub(super) fn into_pending(self) -> PendingChanges {
        PendingChanges { changes: self.changes.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitlane_engine::id::ShardId;

    const CANCEL: VenueRequest = VenueRequest::Cancel;

    fn id(number: u64) -> IntId {
        IntId::numbered(b'c', number)
    }

    /// Returns two cancels from before a restart that the venue calls pending, as its refusal of a
    /// third one says.
    fn confirmed(order: OrderHandle) -> PendingChanges {
        let mut stored = StoredChanges::default();
        [1, 2].into_iter().for_each(|number| stored.push(order, id(number), CANCEL, false));
        let mut changes = stored.into_pending();
        assert!(!changes.has_coming(order, CANCEL));
        changes.insert(order, id(3), CANCEL);
        let refused = changes.refuse(order, id(3), Reason::RequestPending);
        assert_eq!(refused, Some(RefusedChange { request: CANCEL, is_superseded: true }));
        assert!(changes.has_coming(order, CANCEL));
        changes
    }

    #[test]
    fn the_answer_to_the_pending_cancel_leaves_no_other_pending() {
        let order = OrderHandle::new(ShardId(0), 1, 2);
        let mut changes = confirmed(order);
        let refused = changes.refuse(order, id(1), Reason::VenueRejected);
        assert_eq!(refused, Some(RefusedChange { request: CANCEL, is_superseded: false }));
        assert!(!changes.has_coming(order, CANCEL), "the other one may be answered already");
    }

    #[test]
    fn the_answer_to_another_cancel_leaves_the_pending_one_pending() {
        let order = OrderHandle::new(ShardId(0), 1, 2);
        let mut changes = confirmed(order);
        changes.insert(order, id(4), CANCEL);
        changes.refuse(order, id(4), Reason::VenueRejected);
        assert!(changes.has_coming(order, CANCEL));
        changes.clear();
        assert!(!changes.has_coming(order, CANCEL) && changes.len() == 0);
    }
}
