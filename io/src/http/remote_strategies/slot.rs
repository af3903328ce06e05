//! The place of one strategy that runs elsewhere: whether its process is here, what it was told and has asked for.
//!
//! ```text
//!         Hello, Resume                      silent for a lease
//! empty ───────────────► taken (a life) ───────────────────────► taken, absent: the strategy is stopped
//!   ▲                        │    ▲                                   │
//!   └────────── Bye ─────────┘    └───────── any word of this life ───┘
//! ```
//!
//! A new process takes the seat when the one before is absent. Of two that live the second waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::command::Phase;
use pitlane_engine::id::{SecurityId, Source, StrategyId};
use pitlane_engine::strategy::remote_protocol::StrategySetup;
use pitlane_engine::time::Timestamp;

use super::history::EventHistory;
use super::requests::RequestLog;

#[derive(Debug)]
pub struct StrategySlot {
    pub name: Arc<str>,
    /// Of its orders.
    pub source: Source,
    pub section: StrategySetup,
    pub told: EventHistory,
    pub asked: RequestLog,
    /// Of its process, present or not.
    life: Option<u64>,
    pub host: String,
    present: bool,
    /// When it was last heard of; before that, when it began to be awaited.
    heard_at: Timestamp,
    /// Securities it follows.
    pub follows: BTreeSet<SecurityId>,
    /// What it has said that it has taken in: prices, and events by shard.
    pub prices: u64,
    pub heard: Vec<u64>,
    /// It waits for no answer.
    pub idle: bool,
    /// How much of what it was told is out.
    pub place: u64,
    /// It is to be told how far we are.
    pub beat: bool,
    /// What its process began with.
    pub state: Vec<u8>,
    silence: Silence,
}

/// What the silence of a process has done to its strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Silence {
    #[default]
    Nothing,
    /// The shards were told to stop it.
    Stopping,
    /// It is stopped, and nobody has led it on since.
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

    /// The life whose process is here.
    pub fn life(&self) -> Option<u64> {
        self.life.filter(|_| self.present)
    }

    /// Whether a process may sit down.
    pub fn is_free_for(&self, life: u64) -> bool {
        !self.present || self.life == Some(life)
    }

    pub fn sit_down(&mut self, life: u64, now: Timestamp) {
        (self.life, self.present, self.heard_at) = (Some(life), true, now);
        self.place = self.told.end();
        (self.beat, self.idle) = (true, false);
    }

    /// A word of a life; false if it is not the one that sits here.
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

    /// Nothing could be heard: it has its whole lease from now on.
    pub fn excuse(&mut self, now: Timestamp) {
        self.heard_at = now;
    }

    /// Whether it has been silent for too long; then it is no longer present.
    pub fn is_overdue(&mut self, now: Timestamp, lease_ns: u64) -> bool {
        let is_overdue = now.since(self.heard_at) > lease_ns;
        self.present &= !is_overdue;
        is_overdue
    }

    /// The shards were told to stop the strategy, since its process is silent.
    pub fn begin_stop(&mut self) {
        self.silence = Silence::Stopping;
    }

    /// A shard says which phase the strategy is in.
    pub fn note_phase(&mut self, phase: Phase) {
        self.silence = match (self.silence, phase) {
            (Silence::Stopping, Phase::Stop) => Silence::Stopped,
            // What was said before the stop has taken effect.
            (Silence::Stopping, _) => Silence::Stopping,
            (Silence::Nothing | Silence::Stopped, _) => Silence::Nothing,
        };
    }

    /// A new process has come, which leads the strategy itself.
    pub fn begin_anew(&mut self) {
        self.silence = Silence::Nothing;
    }

    /// Whether the process is back whose silence has stopped the strategy; said once.
    pub fn take_return(&mut self) -> bool {
        let is_back = self.present && self.silence == Silence::Stopped;
        if is_back {
            self.silence = Silence::Nothing;
        }
        is_back
    }

    /// Whether it has taken in all that there is, and waits for nothing.
    pub fn is_quiet(&self, prices: u64) -> bool {
        self.idle && self.prices >= prices && self.has_heard_all() && self.asked.is_idle()
    }

    /// Whether it has taken in all its events.
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
    fn of_two_that_live_the_second_waits_until_the_first_is_overdue() {
        let mut seat = seat();
        seat.sit_down(1, Timestamp(10));
        assert!(!seat.is_free_for(2) && seat.is_free_for(1));
        assert!(!seat.touch(2, Timestamp(11)));
        assert!(!seat.is_overdue(Timestamp(19), 10));
        assert!(seat.is_overdue(Timestamp(21), 10) && !seat.is_present() && seat.life().is_none());
        assert!(seat.is_free_for(2));
        // It was only slow, and nobody has taken its place.
        assert!(seat.touch(1, Timestamp(30)) && seat.life() == Some(1));
        seat.leave();
        seat.sit_down(2, Timestamp(31));
        assert!(!seat.touch(1, Timestamp(32)));
    }

    #[test]
    fn a_return_is_said_once_and_only_while_nobody_has_led_the_strategy_on() {
        let mut seat = seat();
        seat.sit_down(1, Timestamp(10));
        assert!(!seat.take_return());
        seat.note_phase(Phase::Stop);
        assert!(!seat.take_return(), "an operator has stopped it");
        seat.begin_stop();
        seat.note_phase(Phase::Running);
        assert!(!seat.take_return(), "it is not stopped yet");
        seat.note_phase(Phase::Stop);
        assert!(seat.take_return() && !seat.take_return());
        seat.begin_stop();
        seat.note_phase(Phase::Stop);
        seat.note_phase(Phase::Init);
        assert!(!seat.take_return(), "an operator has started it");
    }

    #[test]
    fn a_second_process_is_told_where_the_first_runs() {
        let mut seat = seat();
        seat.sit_down(1, Timestamp(10));
        assert_eq!(seat.taken_words(), "another process of it still runs on an unknown host");
        seat.host = "alpha:12".to_string();
        assert_eq!(seat.taken_words(), "another process of it still runs on alpha:12");
    }
}
