//! What a shard has said and a worker has not yet handed on.

use crate::event::{Body, EVENTS_PER_COMMAND_MAX, Event};
use crate::id::PortMask;
use crate::time::{Day, Timestamp};

/// Events in the order they were said, each with the ports that are to hear it. Numbered here, so that every event of
/// a shard has its number, and one that nobody listens to costs nothing but that.
#[derive(Debug)]
pub struct Outbox {
    events: Box<[(PortMask, Event); EVENTS_PER_COMMAND_MAX]>,
    /// How many of `events` have been said.
    said: usize,
    /// How many of those have been handed on.
    taken: usize,
    seq: u64,
}

impl Outbox {
    /// An outbox for a shard whose last event had this number.
    pub fn new(seq: u64) -> Outbox {
        const NOTHING: Event = Event { seq: 0, at: Timestamp::ZERO, body: Body::TradingDay { day: Day(0) } };
        let events = vec![(PortMask::NONE, NOTHING); EVENTS_PER_COMMAND_MAX];
        let events = events.into_boxed_slice().try_into().expect("as many as there is room for");
        Outbox { events, said: 0, taken: 0, seq }
    }

    #[inline(always)]
    pub fn say(&mut self, to: PortMask, at: Timestamp, body: Body) {
        self.seq += 1;
        if !to.is_empty() {
            let place = &mut self.events[self.said];
            *place = (to, Event { seq: self.seq, at, body });
            self.said += 1;
        }
    }

    /// Adds an event that tells nothing new, under the number of the last one: snapshots do not move the numbers, so
    /// a replay without them gives every event the same.
    pub fn show(&mut self, to: PortMask, at: Timestamp, body: Body) {
        if !to.is_empty() {
            self.events[self.said] = (to, Event { seq: self.seq, at, body });
            self.said += 1;
        }
    }

    /// Counts an event that nobody listens to, without making it.
    pub fn skip(&mut self) {
        self.seq += 1;
    }

    /// Number of the last event.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Events not yet handed on.
    #[inline]
    pub fn waiting(&self) -> &[(PortMask, Event)] {
        &self.events[self.taken..self.said]
    }

    pub fn is_empty(&self) -> bool {
        self.taken == self.said
    }

    /// The next event and the ports that have not had it; the caller strikes off those it served.
    pub fn front_mut(&mut self) -> Option<&mut (PortMask, Event)> {
        self.events[..self.said].get_mut(self.taken)
    }

    /// Strikes off the next event. The last one struck makes the outbox empty.
    pub fn pop_front(&mut self) {
        self.taken += 1;
        if self.taken == self.said {
            self.clear();
        }
    }

    #[inline]
    pub fn clear(&mut self) {
        (self.said, self.taken) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::PortId;

    #[test]
    fn events_are_numbered_even_if_nobody_listens() {
        const DAY: Body = Body::TradingDay { day: crate::time::Day(1) };
        let mut outbox = Outbox::new(7);
        outbox.say(PortMask::NONE, Timestamp(1), DAY);
        outbox.say(PortMask::one(PortId(2)), Timestamp(1), DAY);
        assert_eq!(outbox.waiting().len(), 1);
        assert_eq!(outbox.front_mut().unwrap().1.seq, 9);
        outbox.pop_front();
        assert!(outbox.is_empty() && outbox.front_mut().is_none());
        assert_eq!(outbox.seq(), 9);
    }
}
