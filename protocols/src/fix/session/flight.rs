//! Requests of the client that no shard has answered yet, and what was answered before a restart.
//!
//! The number that is kept as the next one stays at the first request without an answer. If the process ends here, the client is
//! asked for everything from there on; what was answered all the same is recognised by its id.

use std::collections::{BTreeSet, VecDeque};

use pitlane_engine::id::IntId;

/// Requests without an answer. As many as lanes hold, several times over; above it nothing more is read.
pub const IN_FLIGHT_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub struct InFlightRequests {
    /// By number: the request's id.
    requests: VecDeque<(u64, IntId)>,
    /// Ids of the answers that were kept, until the client has said again what it had to.
    answered: BTreeSet<IntId>,
}

impl InFlightRequests {
    pub fn is_full(&self) -> bool {
        self.requests.len() >= IN_FLIGHT_MAX
    }

    /// A message is looked at that may become a request.
    pub fn begin(&mut self, number: u64) {
        self.requests.push_back((number, IntId::NONE));
    }

    /// It has become one under this id; none: it was answered at once.
    pub fn decide(&mut self, id: Option<IntId>) {
        match (id, self.requests.back_mut()) {
            (Some(id), Some(last)) => last.1 = id,
            (Some(_), None) => {}
            (None, _) => _ = self.requests.pop_back(),
        }
    }

    /// A request has its answer. Shards answer in the order they were asked, so the search ends early.
    pub fn end(&mut self, id: &IntId) {
        if let Some(at) = self.requests.iter().position(|(_, known)| known == id) {
            self.requests.remove(at);
        }
    }

    /// The first number without an answer.
    pub fn first(&self) -> Option<u64> {
        self.requests.front().map(|&(number, _)| number)
    }

    /// The answer to this id was kept before the restart.
    pub fn recall(&mut self, id: IntId) {
        self.answered.insert(id);
    }

    pub fn was_answered(&self, id: &IntId) -> bool {
        self.answered.contains(id)
    }

    /// The client has nothing left to say again.
    pub fn settle(&mut self) {
        self.answered.clear();
    }

    /// Numbers begin anew; what is under way is answered, but its number means nothing any more.
    pub fn reset(&mut self) {
        self.requests.clear();
        self.answered.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_without_an_answer() {
        let mut flight = InFlightRequests::default();
        for number in 1..=IN_FLIGHT_MAX as u64 {
            assert!(!flight.is_full());
            flight.begin(number);
        }
        assert!(flight.is_full());
        flight.decide(None);
        assert!(!flight.is_full());
    }

    #[test]
    fn the_first_without_an_answer_holds_the_number() {
        let id = |number| IntId::numbered(b'o', number);
        let mut flight = InFlightRequests::default();
        for number in 5..9 {
            flight.begin(number);
            flight.decide(Some(id(number)));
        }
        flight.begin(9);
        assert_eq!(flight.first(), Some(5));
        flight.decide(None);
        flight.end(&id(6));
        assert_eq!(flight.first(), Some(5));
        flight.end(&id(5));
        flight.end(&id(5));
        assert_eq!(flight.first(), Some(7));
        flight.end(&id(8));
        flight.end(&id(7));
        assert_eq!(flight.first(), None);
    }
}
