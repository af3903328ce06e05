//! How much was heard of the shards: for the last line, and for whoever measures.

use pitlane_engine::event::{Body, Event, What};

/// What was heard since the start, snapshots left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pub events: u64,
    pub ticks: u64,
    pub orders: u64,
    pub rejected: u64,
    pub fills: u64,
    pub refusals: u64,
    pub transactions: u64,
}

impl Heard {
    pub fn count(&mut self, event: &Event) {
        self.events += 1;
        match &event.body {
            Body::Tick(_) => self.ticks += 1,
            Body::Booked(_) => self.transactions += 1,
            Body::Refused(_) => self.refusals += 1,
            Body::Order(_)
            | Body::Status(_)
            | Body::Forgotten { .. }
            | Body::Adjusted { .. }
            | Body::Depth(_)
            | Body::Subscription { .. }
            | Body::Session { .. }
            | Body::Halt { .. }
            | Body::TradingDay { .. }
            | Body::Phase { .. }
            | Body::Adapter { .. }
            | Body::Limits { .. }
            | Body::Restrict { .. }
            | Body::Kill { .. }
            | Body::Directed { .. }
            | Body::Sender { .. }
            | Body::Sent { .. }
            | Body::Alert { .. }
            | Body::ToVenue(_)
            | Body::Budget(_)
            | Body::Done { .. }
            | Body::SnapshotBegin { .. }
            | Body::SnapshotEnd { .. }
            | Body::UsedIds(_) => {}
        }
        match event.report().map(|report| report.what) {
            Some(What::Entered) => self.orders += 1,
            Some(What::Rejected) => self.rejected += 1,
            Some(What::Filled) => self.fills += 1,
            Some(
                What::Accepted
                | What::CancelPending
                | What::Canceled
                | What::Expired
                | What::ReplacePending
                | What::Replaced
                | What::Triggered
                | What::Corrected
                | What::Image,
            )
            | None => {}
        }
    }
}
