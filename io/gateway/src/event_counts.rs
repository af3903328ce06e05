//! Counts the events of the shards, for the last line of output and for measurements.

use pitlane_engine::event::{Event, EventKind, ExecType};

/// Number of events since the start, by kind. An order that a snapshot repeats counts in `events`
/// only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCounts {
    pub events: u64,
    pub ticks: u64,
    pub orders: u64,
    pub rejected: u64,
    pub fills: u64,
    pub refusals: u64,
    pub transactions: u64,
}

impl EventCounts {
    pub fn count(&mut self, event: &Event) {
        self.events += 1;
        match &event.body {
            EventKind::Tick(_) => self.ticks += 1,
            EventKind::Booked(_) => self.transactions += 1,
            EventKind::Refused(_) => self.refusals += 1,
            EventKind::Order(_)
            | EventKind::Status(_)
            | EventKind::Forgotten { .. }
            | EventKind::Adjusted { .. }
            | EventKind::Depth(_)
            | EventKind::Levels(_)
            | EventKind::BookOrders(_)
            | EventKind::MarketTrade(_)
            | EventKind::Subscription { .. }
            | EventKind::Session { .. }
            | EventKind::Halt { .. }
            | EventKind::TradingDay { .. }
            | EventKind::Phase { .. }
            | EventKind::Adapter { .. }
            | EventKind::Limits { .. }
            | EventKind::Restrict { .. }
            | EventKind::Kill { .. }
            | EventKind::Directed { .. }
            | EventKind::Sender { .. }
            | EventKind::SpecialTerms(_)
            | EventKind::Sent { .. }
            | EventKind::Alert { .. }
            | EventKind::ToVenue(_)
            | EventKind::Budget(_)
            | EventKind::Exposure { .. }
            | EventKind::Done { .. }
            | EventKind::SnapshotBegin { .. }
            | EventKind::SnapshotEnd { .. }
            | EventKind::UsedIds(_) => {}
        }
        match event.report().map(|report| report.what) {
            Some(ExecType::Entered) => self.orders += 1,
            Some(ExecType::Rejected) => self.rejected += 1,
            Some(ExecType::Filled) => self.fills += 1,
            Some(
                ExecType::Accepted
                | ExecType::CancelPending
                | ExecType::Canceled
                | ExecType::Expired
                | ExecType::ReplacePending
                | ExecType::Replaced
                | ExecType::Triggered
                | ExecType::Corrected
                | ExecType::Snapshot,
            )
            | None => {}
        }
    }
}
