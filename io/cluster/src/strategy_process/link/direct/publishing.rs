//! Events for other strategies that wait to be stored at the server: one at a time, in their order,
//! each until it is answered.

use std::collections::VecDeque;

use pitlane_protocols::remote::link::StrategyFrame;
use tokio::time::Instant;

use super::{ANSWER_MAX, GENERICS_MAX};
use crate::nats::generic::Generic;

pub(super) struct Publishing {
    /// Identifies this process among those of the strategy.
    publisher: u64,
    waiting: VecDeque<Generic>,
    /// Number of the first that waits.
    number: u64,
    /// Time at which it is sent again; `None`: it is not sent yet.
    again: Option<Instant>,
}

impl Publishing {
    pub(super) fn new(publisher: u64) -> Publishing {
        Publishing { publisher: publisher.max(1), waiting: VecDeque::new(), number: 1, again: None }
    }

    /// Queues an event; returns false if there is no room, and the event is dropped.
    pub(super) fn push(&mut self, generic: Generic) -> bool {
        let has_room = self.waiting.len() < GENERICS_MAX;
        if has_room {
            self.waiting.push_back(generic);
        }
        has_room
    }

    /// Makes the first event due on a new connection.
    pub(super) fn restart(&mut self) {
        self.again = None;
    }

    /// Returns the time at which the first event is due again.
    pub(super) fn due(&self) -> Option<Instant> {
        self.again.filter(|_| !self.waiting.is_empty())
    }

    /// Returns the first event if it is due.
    pub(super) fn poll(&mut self, now: Instant) -> Option<StrategyFrame> {
        let generic = self.waiting.front()?;
        if self.again.is_some_and(|again| now < again) {
            return None;
        }
        self.again = Some(now + ANSWER_MAX);
        Some(StrategyFrame::Publish {
            publisher: self.publisher,
            number: self.number,
            name: generic.name.clone(),
            body: generic.body.to_vec(),
        })
    }

    /// Handles the answer that an event is stored.
    pub(super) fn handle_stored(&mut self, number: u64) {
        if number == self.number && self.waiting.pop_front().is_some() {
            self.number += 1;
            self.again = None;
        }
    }
}
