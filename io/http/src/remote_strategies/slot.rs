//! The slot of one remote strategy: whether its process is connected, its events and its requests.
//!
//! ```text
//!         Hello, Resume                      silent for a lease
//! empty ───────────────► taken (by one process) ───────────────► taken, absent: strategy stopped
//!   ▲                        │    ▲                                   │
//!   └────────── Bye ─────────┘    └── any message of this process ────┘
//! ```
//!
//! A new process takes the slot when the previous one is absent. Of two running processes the
//! second waits.

use std::collections::BTreeSet;
use std::sync::Arc;

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::{SecurityId, Source, StrategyId};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::remote::strategy::StrategySetup;

use super::history::EventHistory;
use super::requests::RequestLog;

#[derive(Debug)]
pub(crate) struct StrategySlot {
    pub name: Arc<str>,
    /// Source of its orders.
    pub source: Source,
    pub section: StrategySetup,
    pub history: EventHistory,
    pub requests: RequestLog,
    /// Number of its process's start, present or not.
    incarnation: Option<u64>,
    pub host: String,
    present: bool,
    /// When its last message arrived; before the first one, when the wait for it began.
    received_at: Timestamp,
    /// Connection that receives its events and prices, where there is no broker.
    pub connection: Option<u64>,
    /// Securities it follows.
    pub follows: BTreeSet<SecurityId>,
    /// Number of the last prices that it has confirmed.
    pub prices: u64,
    /// Sequence number of the last event that it has confirmed, by shard.
    pub received: Vec<u64>,
    /// Whether it awaits no answer.
    pub idle: bool,
    /// Position in `history` up to which events were sent.
    pub sent_position: u64,
    /// Whether it is to be sent how far we are.
    pub heartbeat_due: bool,
    /// The encoded state that its process started from.
    pub state: Vec<u8>,
    silence: SilenceEffect,
}

/// What the silence of a process has done to its strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SilenceEffect {
    /// What it did before this server started. The journal has the phase of a strategy but not who
    /// changed it.
    Unknown,
    Nothing,
    /// The stop was sent to the shards.
    Stopping,
    /// It is stopped, and its phase has not changed since.
    Stopped,
    /// It was stopped before this server started, for silence or by an operator, and its phase has
    /// not changed since.
    StoppedBefore,
}

/// Why the strategy of a process that is back is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// The process was silent for a lease.
    Silence,
    /// It was stopped before this server started.
    BeforeStart,
}

impl StrategySlot {
    pub(crate) fn new(
        name: Arc<str>,
        source: Source,
        section: StrategySetup,
        history: EventHistory,
        now: Timestamp,
    ) -> StrategySlot {
        StrategySlot {
            name,
            source,
            section,
            sent_position: history.end(),
            history,
            requests: RequestLog::default(),
            incarnation: None,
            host: String::new(),
            present: false,
            received_at: now,
            connection: None,
            follows: BTreeSet::new(),
            prices: 0,
            received: Vec::new(),
            idle: false,
            heartbeat_due: false,
            state: Vec::new(),
            silence: SilenceEffect::Unknown,
        }
    }

    pub(crate) fn strategy(&self) -> StrategyId {
        StrategyId(self.source.session)
    }

    pub(crate) fn is_present(&self) -> bool {
        self.present
    }

    /// Returns the incarnation number of the process that is present.
    pub(crate) fn incarnation(&self) -> Option<u64> {
        self.incarnation.filter(|_| self.present)
    }

    /// Returns whether a process may take the slot.
    pub(crate) fn is_free_for(&self, incarnation: u64) -> bool {
        !self.present || self.incarnation == Some(incarnation)
    }

    pub(crate) fn attach(&mut self, incarnation: u64, now: Timestamp) {
        (self.incarnation, self.present, self.received_at) = (Some(incarnation), true, now);
        self.sent_position = self.history.end();
        (self.heartbeat_due, self.idle) = (true, false);
    }

    /// Records a message of a process. Returns false if another incarnation has this slot.
    pub(crate) fn record_message(&mut self, incarnation: u64, now: Timestamp) -> bool {
        let is_current = self.incarnation == Some(incarnation);
        if is_current {
            (self.present, self.received_at) = (true, now);
        }
        is_current
    }

    pub(crate) fn detach(&mut self) {
        (self.incarnation, self.present) = (None, false);
    }

    /// Restarts the lease, because no message could be received.
    pub(crate) fn restart_lease(&mut self, now: Timestamp) {
        self.received_at = now;
    }

    /// Returns whether the process has been silent for too long; then it is no longer present.
    pub(crate) fn is_overdue(&mut self, now: Timestamp, lease_ns: u64) -> bool {
        let is_overdue = now.since(self.received_at) > lease_ns;
        self.present &= !is_overdue;
        is_overdue
    }

    /// Records that the stop of the strategy was sent to the shards, since its process is silent.
    pub(crate) fn begin_stop(&mut self) {
        self.silence = SilenceEffect::Stopping;
    }

    /// Handles the phase of the strategy that a shard reports.
    pub(crate) fn handle_phase(&mut self, phase: StrategyPhase) {
        self.silence = match (self.silence, phase) {
            (SilenceEffect::Stopping, StrategyPhase::Stop) => SilenceEffect::Stopped,
            // A phase from before the stop took effect.
            (SilenceEffect::Stopping, _) => SilenceEffect::Stopping,
            (
                SilenceEffect::Unknown
                | SilenceEffect::Nothing
                | SilenceEffect::Stopped
                | SilenceEffect::StoppedBefore,
                _,
            ) => SilenceEffect::Nothing,
        };
    }

    /// Handles the phase that the strategy has when a process continues which was connected before.
    pub(crate) fn handle_resume(&mut self, phase: StrategyPhase) {
        if self.silence == SilenceEffect::Unknown {
            let is_stopped = phase == StrategyPhase::Stop;
            self.silence = if is_stopped { SilenceEffect::StoppedBefore } else { SilenceEffect::Nothing };
        }
    }

    /// Clears the silence for a new process, which controls the strategy's phase itself.
    pub(crate) fn clear_silence(&mut self) {
        self.silence = SilenceEffect::Nothing;
    }

    /// Returns, once, why the strategy of a process that is back is stopped; `None` if no process
    /// is back or its strategy runs.
    pub(crate) fn take_return(&mut self) -> Option<StopCause> {
        let cause = match self.silence {
            SilenceEffect::Stopped => StopCause::Silence,
            SilenceEffect::StoppedBefore => StopCause::BeforeStart,
            SilenceEffect::Unknown | SilenceEffect::Nothing | SilenceEffect::Stopping => return None,
        };
        if !self.present {
            return None;
        }
        self.silence = SilenceEffect::Nothing;
        Some(cause)
    }

    /// Returns whether its process is present and there is something to send to it.
    pub(crate) fn has_output(&self) -> bool {
        self.present && (self.heartbeat_due || self.sent_position < self.history.end())
    }

    /// Returns whether it has processed everything and awaits nothing.
    pub(crate) fn is_quiet(&self, prices: u64) -> bool {
        self.idle && self.prices >= prices && self.has_received_all() && self.requests.is_idle()
    }

    /// Returns whether it has processed all its events.
    pub(crate) fn has_received_all(&self) -> bool {
        self.sent_position == self.history.end() && self.history.is_received_by(&self.received)
    }

    /// Describes why another process of the strategy has to wait.
    pub(crate) fn taken_text(&self) -> String {
        format!("another process of it still runs on {}", host_text(&self.host))
    }
}

/// Returns the host of a process for messages. A process that has resumed after a restart of this
/// server has not sent its host again.
pub(crate) fn host_text(host: &str) -> &str {
    if host.is_empty() { "an unknown host" } else { host }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> StrategySlot {
        let history = EventHistory::new(1, 8);
        StrategySlot::new("A".into(), Source::default(), StrategySetup::default(), history, Timestamp(0))
    }

    #[test]
    fn a_second_process_waits_until_the_first_is_overdue() {
        let mut slot = slot();
        slot.attach(1, Timestamp(10));
        assert!(!slot.is_free_for(2) && slot.is_free_for(1));
        assert!(!slot.record_message(2, Timestamp(11)));
        assert!(!slot.is_overdue(Timestamp(19), 10));
        assert!(slot.is_overdue(Timestamp(21), 10) && !slot.is_present() && slot.incarnation().is_none());
        assert!(slot.is_free_for(2));
        // The process was only slow, and no other one has taken its slot.
        assert!(slot.record_message(1, Timestamp(30)) && slot.incarnation() == Some(1));
        slot.detach();
        slot.attach(2, Timestamp(31));
        assert!(!slot.record_message(1, Timestamp(32)));
    }

    #[test]
    fn a_return_is_reported_once_and_only_while_the_strategy_stays_stopped() {
        let mut slot = slot();
        slot.attach(1, Timestamp(10));
        assert_eq!(slot.take_return(), None);
        slot.handle_phase(StrategyPhase::Stop);
        assert_eq!(slot.take_return(), None, "an operator has stopped it");
        slot.begin_stop();
        slot.handle_phase(StrategyPhase::Running);
        assert_eq!(slot.take_return(), None, "it is not stopped yet");
        slot.handle_phase(StrategyPhase::Stop);
        assert_eq!((slot.take_return(), slot.take_return()), (Some(StopCause::Silence), None));
        slot.begin_stop();
        slot.handle_phase(StrategyPhase::Stop);
        slot.handle_phase(StrategyPhase::Init);
        assert_eq!(slot.take_return(), None, "an operator has started it");
    }

    /// The silence was forgotten at a restart, and the return of the process was not reported.
    #[test]
    fn a_return_to_a_strategy_that_was_stopped_before_the_server_started_is_reported_once() {
        let mut slot = slot();
        assert!(slot.is_overdue(Timestamp(11), 10), "the process is silent longer than a lease");
        assert_eq!(slot.take_return(), None, "it is not back");
        slot.attach(1, Timestamp(20));
        slot.handle_resume(StrategyPhase::Stop);
        assert_eq!((slot.take_return(), slot.take_return()), (Some(StopCause::BeforeStart), None));
        slot.attach(1, Timestamp(30));
        slot.handle_resume(StrategyPhase::Stop);
        assert_eq!(slot.take_return(), None, "it only lost its connection");
    }

    #[test]
    fn a_return_after_a_start_is_not_reported_if_the_strategy_runs_or_the_process_is_new() {
        let mut running = slot();
        running.attach(1, Timestamp(20));
        running.handle_resume(StrategyPhase::Running);
        running.handle_phase(StrategyPhase::Stop);
        assert_eq!(running.take_return(), None, "an operator has stopped it since");
        let mut new = slot();
        new.attach(2, Timestamp(20));
        new.clear_silence();
        assert_eq!(new.take_return(), None, "a new process controls the phase itself");
        let mut started = slot();
        started.handle_phase(StrategyPhase::Running);
        started.attach(1, Timestamp(20));
        started.handle_resume(StrategyPhase::Stop);
        assert_eq!(started.take_return(), None, "its phase has changed since the start");
    }

    #[test]
    fn the_reply_to_a_second_process_names_the_host_of_the_first() {
        let mut slot = slot();
        slot.attach(1, Timestamp(10));
        assert_eq!(slot.taken_text(), "another process of it still runs on an unknown host");
        slot.host = "alpha:12".to_string();
        assert_eq!(slot.taken_text(), "another process of it still runs on alpha:12");
    }
}
