//! Requests by the ids that clients gave, so that a repeated request gets the same response and a
//! different request under the same id is detected.

use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::index::index_u32;
use pitlane_engine::keyed_index::IdIndex;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Terms};

/// A request as it was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RestRequest {
    Submit(Terms),
    Modify(OrderHandle, Changes),
}

/// A request, and its result as far as the client has received one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    pub request: RestRequest,
    /// The result in the response: [`Reason::None`] for an accepted request, `None` if no response
    /// was given yet.
    pub result: Option<Reason>,
}

/// A bounded number of receipts. Once it is full, each new one replaces the oldest, so memory stays
/// constant. An id is forgotten here no earlier than at the desk, which holds as many.
#[derive(Debug)]
pub(super) struct Receipts {
    /// The receipts; a ring once it is full.
    receipts: Vec<(u16, IntId, Receipt)>,
    /// Index of the next receipt to replace once the ring is full.
    oldest: usize,
    /// Position of each receipt in `receipts`.
    index: IdIndex,
}

impl Receipts {
    pub(super) fn new(max: u32, seed: u64) -> Receipts {
        Receipts { receipts: Vec::new(), oldest: 0, index: IdIndex::new(max.max(1), seed, LARGE_PAGES) }
    }

    /// Returns what was requested under an id of this session.
    pub(super) fn get(&self, session: u16, id: &IntId) -> Option<Receipt> {
        self.position_of(session, id).map(|at| self.receipts[at].2)
    }

    pub(super) fn record_request(&mut self, session: u16, id: IntId, request: RestRequest) {
        let receipt = Receipt { request, result: None };
        if let Some(at) = self.position_of(session, &id) {
            self.receipts[at].2 = receipt;
            return;
        }
        let at = if self.index.is_full() {
            let at = self.oldest;
            self.index.remove(self.receipts[at].0, &self.receipts[at].1, index_u32(at));
            self.receipts[at] = (session, id, receipt);
            self.oldest = (at + 1) % self.receipts.len();
            at
        } else {
            self.receipts.push((session, id, receipt));
            self.receipts.len() - 1
        };
        self.index.insert(session, &id, index_u32(at));
    }

    pub(super) fn record_result(&mut self, session: u16, id: &IntId, reason: Reason) {
        if let Some(at) = self.position_of(session, id) {
            self.receipts[at].2.result = Some(reason);
        }
    }

    fn position_of(&self, session: u16, id: &IntId) -> Option<usize> {
        let is_match =
            |at: u32| (self.receipts[at as usize].0, &self.receipts[at as usize].1) == (session, id);
        self.index.get(session, id, is_match).map(|at| at as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_kept_up_to_the_maximum() {
        let id = |n: u64| IntId::numbered(b'x', n);
        let mut receipts = Receipts::new(3, 1);
        for n in 0..8 {
            receipts.record_request(0, id(n), RestRequest::Submit(Terms::default()));
            receipts.record_result(0, &id(n), Reason::BadLot);
            let known = (0..=n).filter(|n| receipts.get(0, &id(*n)).is_some());
            assert!(known.eq((n + 1).saturating_sub(3)..=n), "the newest three");
            assert!(receipts.receipts.len() <= 3);
        }
        assert_eq!(receipts.get(0, &id(7)).and_then(|receipt| receipt.result), Some(Reason::BadLot));
    }

    #[test]
    fn another_request_under_the_same_id_replaces_the_first() {
        let id = IntId::numbered(b'x', 1);
        let mut receipts = Receipts::new(3, 1);
        receipts.record_request(0, id, RestRequest::Submit(Terms::default()));
        receipts.record_result(0, &id, Reason::None);
        let request = RestRequest::Modify(OrderHandle::NONE, Changes::default());
        receipts.record_request(0, id, request);
        assert_eq!(
            (receipts.get(0, &id), receipts.receipts.len()),
            (Some(Receipt { request, result: None }), 1)
        );
    }

    #[test]
    fn the_same_id_in_two_sessions_is_two_requests() {
        let id = IntId::numbered(b'x', 1);
        let mut receipts = Receipts::new(3, 1);
        receipts.record_request(1, id, RestRequest::Submit(Terms::default()));
        assert_eq!(receipts.get(2, &id), None);
        let other = RestRequest::Modify(OrderHandle::NONE, Changes::default());
        receipts.record_request(2, id, other);
        receipts.record_result(2, &id, Reason::BadLot);
        assert_eq!(receipts.get(1, &id).map(|receipt| receipt.result), Some(None));
        assert_eq!(receipts.get(2, &id), Some(Receipt { request: other, result: Some(Reason::BadLot) }));
    }
}
