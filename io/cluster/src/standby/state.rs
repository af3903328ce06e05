//! State of a server within its group, for health and metrics: written by the thread `standby`,
//! read by other threads.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pitlane_runtime::metrics::Counter;
use pitlane_runtime::metrics::exposition::{Exposition, MetricKind};
use serde::Serialize;
use utoipa::ToSchema;

use super::origin::{ForeignReason, StreamMessage};

/// Interval between two reports of skipped messages; the metrics have their number.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandbyPhase {
    /// The server looks for the broker, or for the contents of the stream.
    Joining,
    Following,
    Leading,
}

impl StandbyPhase {
    const ALL: [StandbyPhase; 3] = [StandbyPhase::Joining, StandbyPhase::Following, StandbyPhase::Leading];

    pub fn name(self) -> &'static str {
        match self {
            StandbyPhase::Joining => "JOINING",
            StandbyPhase::Following => "FOLLOWING",
            StandbyPhase::Leading => "LEADING",
        }
    }
}

#[derive(Debug, Default)]
pub struct StandbyState {
    phase: AtomicU8,
    epoch: AtomicU64,
    /// Whether the stream contains enough to take over.
    complete: AtomicBool,
    /// For a leader: records that the broker has not acknowledged. For a follower: messages that it
    /// has not read.
    pub behind: Counter,
    /// Messages sent and acknowledged, or read.
    pub messages: Counter,
    pub bytes: Counter,
    /// Messages of the stream that no server of the group sent, and that were skipped.
    pub foreign: Counter,
    foreign_logged_at: Mutex<Option<Instant>>,
}

impl StandbyState {
    pub fn phase(&self) -> StandbyPhase {
        StandbyPhase::ALL[self.phase.load(Ordering::Relaxed) as usize]
    }

    pub fn set_phase(&self, phase: StandbyPhase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub fn set_epoch(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Relaxed);
    }

    pub fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed)
    }

    pub fn set_complete(&self, complete: bool) {
        self.complete.store(complete, Ordering::Relaxed);
    }

    /// Counts one message.
    pub fn count(&self, bytes: usize) {
        self.messages.add(1);
        self.bytes.add(bytes as u64);
    }

    /// Counts a skipped message and logs it: at once, and then at most once per interval, because a
    /// client may send many.
    pub fn note_foreign(&self, found: &StreamMessage, why: ForeignReason) {
        self.foreign.add(1);
        let now = Instant::now();
        let mut logged_at = self.foreign_logged_at.lock().unwrap_or_else(PoisonError::into_inner);
        if logged_at.is_some_and(|logged_at| now.duration_since(logged_at) < LOG_INTERVAL) {
            return;
        }
        *logged_at = Some(now);
        tracing::error!(
            sequence = found.seq,
            subject = %found.subject.escape_debug(),
            bytes = found.bytes,
            reason = why.text(),
            skipped = self.foreign.get(),
            "a message in the stream of the standby is not from a server of the group: it is skipped. Check who may publish on this subject"
        );
    }

    /// Writes the metrics of the standby.
    pub fn expose(&self, out: &mut Exposition) {
        let leads = (self.phase() == StandbyPhase::Leading) as u8;
        out.single(
            "pitlane_standby_is_leader",
            MetricKind::Gauge,
            "1 while this server leads its group.",
            leads,
        );
        out.single(
            "pitlane_standby_epoch",
            MetricKind::Gauge,
            "Leaders that the group has had.",
            self.epoch(),
        );
        let help = "Records that the broker has not acknowledged; of one that follows, messages not read.";
        out.single("pitlane_standby_lag_records", MetricKind::Gauge, help, self.behind.get());
        let help = "Messages of the group's stream acknowledged, or read.";
        out.single("pitlane_standby_messages_total", MetricKind::Counter, help, self.messages.get());
        let help = "Messages in the group's stream that none of its servers sent, and that were skipped.";
        out.single("pitlane_standby_foreign_messages_total", MetricKind::Counter, help, self.foreign.get());
        let help = "Bytes of the group's stream acknowledged, or read.";
        out.single("pitlane_standby_bytes_total", MetricKind::Counter, help, self.bytes.get());
    }
}

/// The state of this server in its standby group.
#[derive(Serialize, ToSchema)]
pub struct StandbyVO {
    /// `LEADING` while it serves; `JOINING` or `FOLLOWING` before.
    stand: &'static str,
    /// Number of leaders that the group has had.
    epoch: u64,
    /// Whether the other server could take over.
    complete: bool,
    /// Records that the broker has not acknowledged; on a follower, messages that it has not read.
    behind: u64,
    /// Messages in the group's stream that none of its servers sent, skipped since the start.
    foreign: u64,
}

impl StandbyVO {
    pub fn of(state: &StandbyState) -> StandbyVO {
        StandbyVO {
            stand: state.phase().name(),
            epoch: state.epoch(),
            complete: state.is_complete(),
            behind: state.behind.get(),
            foreign: state.foreign.get(),
        }
    }
}
