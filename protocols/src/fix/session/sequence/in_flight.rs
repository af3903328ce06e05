//! Requests of the client that no shard has answered yet, and requests that were answered before a
//! restart.
//!
//! The saved next sequence number stays at the first request without an answer. If the process
//! ends, the client is asked for everything from there on. A repeated request that was answered
//! before is recognised by its id.

use std::collections::{BTreeSet, VecDeque};

use pitlane_engine::id::IntId;

/// Requests without an answer. This is several times what lanes hold; at the bound the session
/// reads nothing more.
pub(in crate::fix::session) const IN_FLIGHT_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(in crate::fix::session) struct InFlightRequests {
    /// Sequence number and id of each request.
    requests: VecDeque<(u64, IntId)>,
    /// Ids of stored answers, until the client has resent its messages.
    answered: BTreeSet<IntId>,
}

impl InFlightRequests {
    pub(in crate::fix::session) fn is_full(&self) -> bool {
        self.requests.len() >= IN_FLIGHT_MAX
    }

    /// Adds a message that may become a request.
    pub(in crate::fix::session) fn begin(&mut self, number: u64) {
        self.requests.push_back((number, IntId::NONE));
    }

    /// Assigns the request's id to the last message, or removes the message if it was answered at
    /// once.
    pub(in crate::fix::session) fn assign(&mut self, id: Option<IntId>) {
        match (id, self.requests.back_mut()) {
            (Some(id), Some(last)) => last.1 = id,
            (Some(_), None) => {}
            (None, _) => _ = self.requests.pop_back(),
        }
    }

    /// Removes an answered request. Shards answer in the order of the requests, so the search ends
    /// early.
    pub(in crate::fix::session) fn complete(&mut self, id: &IntId) {
        if self.requests.front().is_some_and(|(_, first)| first == id) {
            self.requests.pop_front();
        } else if let Some(at) = self.requests.iter().position(|(_, known)| known == id) {
            self.requests.remove(at);
        }
    }

    /// Returns the first sequence number without an answer.
    pub(in crate::fix::session) fn first_msg_seq_num(&self) -> Option<u64> {
        self.requests.front().map(|&(number, _)| number)
    }

    /// Sets the ids of the answers that were stored before the restart.
    pub(in crate::fix::session) fn set_answered(&mut self, answered: BTreeSet<IntId>) {
        self.answered = answered;
    }

    /// Adds the id of an answer to a request from before the restart.
    pub(in crate::fix::session) fn add_answered(&mut self, id: IntId) {
        self.answered.insert(id);
    }

    pub(in crate::fix::session) fn was_answered(&self, id: &IntId) -> bool {
        self.answered.contains(id)
    }

    /// Forgets the stored answers, because the client has nothing left to resend.
    pub(in crate::fix::session) fn clear_answered(&mut self) {
        if !self.answered.is_empty() {
            self.answered.clear();
        }
    }

    /// Clears everything after a sequence reset. Pending requests are still answered, but their
    /// numbers no longer mean anything.
    pub(in crate::fix::session) fn reset(&mut self) {
        self.requests.clear();
        self.answered.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_in_flight_are_bounded() {
        let mut in_flight = InFlightRequests::default();
        for number in 1..=IN_FLIGHT_MAX as u64 {
            assert!(!in_flight.is_full());
            in_flight.begin(number);
        }
        assert!(in_flight.is_full());
        in_flight.assign(None);
        assert!(!in_flight.is_full());
    }

    #[test]
    fn the_first_unanswered_request_holds_the_number() {
        let id = |number| IntId::numbered(b'o', number);
        let mut in_flight = InFlightRequests::default();
        for number in 5..9 {
            in_flight.begin(number);
            in_flight.assign(Some(id(number)));
        }
        in_flight.begin(9);
        assert_eq!(in_flight.first_msg_seq_num(), Some(5));
        in_flight.assign(None);
        in_flight.complete(&id(6));
        assert_eq!(in_flight.first_msg_seq_num(), Some(5));
        in_flight.complete(&id(5));
        in_flight.complete(&id(5));
        assert_eq!(in_flight.first_msg_seq_num(), Some(7));
        in_flight.complete(&id(8));
        in_flight.complete(&id(7));
        assert_eq!(in_flight.first_msg_seq_num(), None);
    }

    #[test]
    fn answers_from_before_a_restart_are_known_until_the_client_has_resent_everything() {
        let (old, new) = (IntId::numbered(b'o', 1), IntId::numbered(b'o', 2));
        let mut in_flight = InFlightRequests::default();
        for forget in [InFlightRequests::clear_answered, InFlightRequests::reset] {
            in_flight.set_answered(BTreeSet::from([old]));
            in_flight.add_answered(new);
            in_flight.begin(7);
            assert!(in_flight.was_answered(&old) && in_flight.was_answered(&new));
            forget(&mut in_flight);
            assert!(!in_flight.was_answered(&old) && !in_flight.was_answered(&new));
        }
        assert_eq!(in_flight.first_msg_seq_num(), None, "a reset leaves no number behind");
    }
}
