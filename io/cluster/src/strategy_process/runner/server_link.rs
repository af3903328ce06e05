//! The link to the server: its heartbeats, and how it is restored after a loss.

use pitlane_engine::time::{NS_PER_MS, Timestamp};
use pitlane_protocols::remote::strategy::RemoteRequest;

use super::{ANSWER_NS, LinkState, RemoteRunner};

/// Pause between two attempts to reach the server again.
const RESUME_NS: u64 = 100 * NS_PER_MS;
/// Heartbeats that a process sends per lease.
const BEATS_PER_LEASE: u64 = 3;

impl RemoteRunner {
    /// Queues a request, and returns its number.
    pub(super) fn send(&mut self, request: RemoteRequest) -> u64 {
        self.number += 1;
        self.out.push_back((self.number, request));
        self.number
    }

    /// Requests the events that are missing.
    pub(super) fn fetch(&mut self, now: Timestamp) {
        if self.link == LinkState::Up && self.fetching.is_none_or(|(_, until)| until <= now) {
            let number = self.send(RemoteRequest::Fetch {
                incarnation: self.incarnation,
                received: self.received.clone(),
            });
            self.fetching = Some((number, now.plus(ANSWER_NS)));
        }
    }

    /// Sends a heartbeat; at once, if the server waits for what the strategy has received.
    pub(super) fn beat(&mut self, now: Timestamp) {
        let idle = self.has_left();
        let is_news =
            (self.last_beat.0, self.last_beat.2) != (self.prices, idle) || self.last_beat.1 != self.received;
        if now < self.beat_at && !(self.paced && is_news) {
            return;
        }
        self.last_beat = (self.prices, self.received.clone(), idle);
        let (prices, received) = (self.prices, self.received.clone());
        let request = RemoteRequest::Heartbeat { incarnation: self.incarnation, prices, received, idle };
        if now >= self.beat_at {
            self.beat_at = now.plus(self.lease_ns / BEATS_PER_LEASE);
            self.send(request);
        } else {
            self.out.push_back((0, request));
        }
    }

    /// Marks the link as lost; it is restored after a pause.
    pub(super) fn lose(&mut self, now: Timestamp, why: &str) {
        if let LinkState::Lost { .. } = self.link {
            return;
        }
        if self.link == LinkState::Up {
            tracing::warn!(why, "the connection to the server is lost: orders are refused until it is back");
        }
        self.link = LinkState::Lost { again: now.plus(RESUME_NS) };
        self.fetching = None;
    }

    /// Detects a silent server, and tries to reach it again if the link is lost.
    pub(super) fn check_link(&mut self, now: Timestamp) {
        match self.link {
            LinkState::Up if now.since(self.last_message_at) > self.lease_ns => {
                self.lose(now, "the server is silent")
            }
            LinkState::Up => {
                if self.fetching.is_some_and(|(_, until)| until <= now) {
                    self.fetch(now);
                }
            }
            LinkState::Lost { again } if again <= now && self.connected => {
                let number = self.send(RemoteRequest::Resume {
                    incarnation: self.incarnation,
                    received: self.received.clone(),
                });
                self.link = LinkState::Asking { number, until: now.plus(ANSWER_NS) };
            }
            LinkState::Lost { again } if again <= now => {
                self.link = LinkState::Lost { again: now.plus(RESUME_NS) }
            }
            LinkState::Asking { until, .. } | LinkState::Catching { until, .. } if until <= now => {
                self.link = LinkState::Lost { again: now };
            }
            LinkState::Lost { .. } | LinkState::Asking { .. } | LinkState::Catching { .. } => {}
        }
    }
}
