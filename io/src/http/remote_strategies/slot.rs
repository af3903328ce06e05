//! The slot of one remote strategy: whether its process is connected, its events and its requests.
//!
//! ```text
//!         Hello, Resume                      silent for a lease
//! empty ───────────────► taken (a life) ───────────────────────► taken, absent: strategy stopped
//!   ▲                        │    ▲                                   │
//!   └────────── Bye ─────────┘    └─────── any message of this life ──┘
//! ```
//!
//! A new process takes the slot when the previous one is absent. Of two running processes the
//! second waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::{SecurityId, Source, StrategyId};
use pitlane_engine::strategy::remote_protocol::StrategySetup;
use pitlane_engine::time::Timestamp;

use super::history::EventHistory;
use super::requests::RequestLog;

#[derive(Debug)]
pub struct StrategySlot {
    pub name: Arc<str>,
    /// Source of its orders.
    pub source: Source,
    pub section: StrategySetup,
    pub told: EventHistory,
    pub asked: RequestLog,
    /// Number of its process's start, present or not.
    life: Option<u64>,
    pub host: String,
    present: bool,
    /// When its last message arrived; before the first one, when the wait for it began.
    heard_at: Timestamp,
    /// Securities it follows.
    pub follows: BTreeSet<SecurityId>,
    /// Number of the last prices that it has confirmed.
    pub prices: u64,
    /// Sequence number of the last event that it has confirmed, by shard.
    pub heard: Vec<u64>,
    /// Whether it awaits no answer.
    pub idle: bool,
    /// Position in `told` up to which events were sent.
    pub place: u64,
    /// Whether it is to be sent how far we are.
    pub beat: bool,
    /// The encoded state that its process started from.
    pub state: Vec<u8>,
    silence: Silence,
}

/// What the silence of a process has done to its strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Silence {
    #[default]
    Nothing,
    /// The stop was sent to the shards.
    Stopping,
    /// It is stopped, and its phase has not changed since.
    Stopped,
}

impl StrategySlot {
    pub fn new(
        name: Arc<str>,
        source: Source,
        section: StrategySetup,
        told: EventHistory,
        now: Timestamp,
    ) -> StrategySlot {
        StrategySlot {
            name,
            source,
            section,
            place: told.end(),
            told,
            asked: RequestLog::default(),
            life: None,
            host: String::new(),
            present: false,
            heard_at: now,
            follows: BTreeSet::new(),
            prices: 0,
            heard: Vec::new(),
            idle: false,
            beat: false,
            state: Vec::new(),
            silence: Silence::Nothing,
        }
    }

    pub fn strategy(&self) -> StrategyId {
        StrategyId(self.source.session)
    }

    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Returns the life whose process is present.
    pub fn life(&self) -> Option<u64> {
        self.life.filter(|_| self.present)
    }

    /// Returns whether a process may take the slot.
    pub fn is_free_for(&self, life: u64) -> bool {
        !self.present || self.life == Some(life)
    }

    pub fn sit_down(&mut self, life: u64, now: Timestamp) {
        (self.life, self.present, self.heard_at) = (Some(life), true, now);
        self.place = self.told.end();
        (self.beat, self.idle) = (true, false);
    }

    /// Records a message of a life. Returns false if it is not the life that has this slot.
    pub fn touch(&mut self, life: u64, now: Timestamp) -> bool {
        let is_it = self.life == Some(life);
        if is_it {
            (self.present, self.heard_at) = (true, now);
        }
        is_it
    }

    pub fn leave(&mut self) {
        (self.life, self.present) = (None, false);
    }

    /// Restarts the lease, because no message could be received.
    pub fn excuse(&mut self, now: Timestamp) {
        self.heard_at = now;
    }

    /// Returns whether the process has been silent for too long; then it is no longer present.
    pub fn is_overdue(&mut self, now: Timestamp, lease_ns: u64) -> bool {
        let is_overdue = now.since(self.heard_at) > lease_ns;
        self.present &= !is_overdue;
        is_overdue
    }

    /// Records that the stop of the strategy was sent to the shards, since its process is silent.
    pub fn begin_stop(&mut self) {
        self.silence = Silence::Stopping;
    }

    /// Handles the phase of the strategy that a shard reports.
    pub fn note_phase(&mut self, phase: StrategyPhase) {
        self.silence = match (self.silence, phase) {
            (Silence::Stopping, StrategyPhase::Stop) => Silence::Stopped,
            // A phase from before the stop took effect.
            (Silence::Stopping, _) => Silence::Stopping,
            (Silence::Nothing | Silence::Stopped, _) => Silence::Nothing,
        };
    }

    /// Clears the silence for a new process, which controls the strategy's phase itself.
    pub fn begin_anew(&mut self) {
        self.silence = Silence::Nothing;
    }

    /// Returns, once, whether the process whose silence has stopped the strategy is back.
    pub fn take_return(&mut self) -> bool {
        let is_back = self.present && self.silence == Silence::Stopped;
        if is_back {
            self.silence = Silence::Nothing;
        }
        is_back
    }

    /// Returns whether it has processed everything and awaits nothing.
    pub fn is_quiet(&self, prices: u64) -> bool {
        self.idle && self.prices >= prices && self.has_heard_all() && self.asked.is_idle()
    }

    /// Returns whether it has processed all its events.
    pub fn has_heard_all(&self) -> bool {
        self.place == self.told.end() && self.told.is_heard(&self.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat() -> StrategySlot {
        let told = EventHistory::new(1, 8);
        StrategySlot::new("A".into(), Source::default(), StrategySetup::default(), told, Timestamp(0))
    }

    #[test]
    fn a_second_process_waits_until_the_first_is_overdue() {
        let mut seat = seat();
        seat.sit_down(1, Timestamp(10));
        assert!(!seat.is_free_for(2) && seat.is_free_for(1));
        assert!(!seat.touch(2, Timestamp(11)));
        assert!(!seat.is_overdue(Timestamp(19), 10));
        assert!(seat.is_overdue(Timestamp(21), 10) && !seat.is_present() && seat.life().is_none());
        assert!(seat.is_free_for(2));
        // The process was only slow, and no other one has taken its slot.
        assert!(seat.touch(1, Timestamp(30)) && seat.life() == Some(1));
        seat.leave();
        seat.sit_down(2, Timestamp(31));
        assert!(!seat.touch(1, Timestamp(32)));
    }

    #[test]
    fn a_return_is_reported_once_and_only_while_the_strategy_stays_stopped() {
        let mut seat = seat();
        seat.sit_down(1, Timestamp(10));
        assert!(!seat.take_return());
        seat.note_phase(StrategyPhase::Stop);
        assert!(!seat.take_return(), "an operator has stopped it");
        seat.begin_stop();
        seat.note_phase(StrategyPhase::Running);
        assert!(!seat.take_return(), "it is not stopped yet");
        seat.note_phase(StrategyPhase::Stop);
        assert!(seat.take_return() && !seat.take_return());
        seat.begin_stop();
        seat.note_phase(StrategyPhase::Stop);
        seat.note_phase(StrategyPhase::Init);
        assert!(!seat.take_return(), "an operator has started it");
    }

    #[test]
    fn the_reply_to_a_second_process_names_the_host_of_the_first() {
        let mut seat = seat();
        seat.sit_down(1, Timestamp(10));
        assert_eq!(seat.taken_words(), "another process of it still runs on an unknown host");
        seat.host = "alpha:12".to_string();
        assert_eq!(seat.taken_words(), "another process of it still runs on alpha:12");
    }
}
