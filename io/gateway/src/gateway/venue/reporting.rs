//! The way from an adapter to the shards, the same for every venue: reports and prices in the order
//! in which the venue sent them, whether the venue is connected, and the confirmations that reports
//! are stored.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::{AdapterId, ShardId, Source};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::PortEnd;
use pitlane_engine::pending_commands::PendingCommands;
use pitlane_engine::reason::Reason;
use pitlane_engine::shard::{CommandRoute, route};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::venue::{InboundReport, VenueReports};

use super::stored::ReportConfirmations;

/// Maximum number of reports of one venue per cycle, so that others are served too.
const REPORTS_PER_ROUND_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct ShardReporting {
    adapter: AdapterId,
    /// Source of the commands to the shards.
    source: Source,
    /// Commands for the shards, in order: reports, and whether the venue is connected. Nothing more
    /// is read before they are sent.
    pending_commands: PendingCommands,
    /// By shard.
    stored: Vec<ReportConfirmations>,
    /// The value of [`VenueReports::synchronizations`] last sent to the shards; `None` if they take
    /// the venue to be disconnected.
    sent_synchronizations: Option<u64>,
    /// Whether the last cycle has left reports or prices for the next.
    has_backlog: bool,
}

/// Result of one cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReportingRound {
    pub work: usize,
    /// Whether there is more to do at once.
    pub has_work: bool,
    /// Whether the venue is connected, if that has changed.
    pub connected: Option<bool>,
}

impl ShardReporting {
    pub(super) fn new(adapter: AdapterId, source: Source) -> ShardReporting {
        ShardReporting {
            adapter,
            source,
            pending_commands: PendingCommands::new(source),
            stored: Vec::new(),
            sent_synchronizations: None,
            has_backlog: false,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        !self.pending_commands.is_empty()
    }

    /// Returns whether reports or prices of earlier messages are not sent yet: nothing more is read
    /// before, so that what waits is bounded by one read.
    pub(super) fn has_backlog(&self) -> bool {
        self.has_backlog
    }

    pub(super) fn deadline(&self) -> Timestamp {
        self.stored.iter().map(ReportConfirmations::deadline).fold(Timestamp::MAX, Timestamp::min)
    }

    /// Handles the answer of a shard to a question that followed some reports.
    pub(super) fn handle_done(
        &mut self,
        now: Timestamp,
        shard: ShardId,
        token: u32,
        reason: Reason,
        reports: &mut dyn VenueReports,
    ) {
        let Some(stored) = self.stored.get_mut(shard.0 as usize) else { return };
        for token in stored.handle_done(now, token, reason) {
            reports.handle_stored(token);
        }
    }

    /// Sends the shards what was received: first the reports, then whether the venue is connected.
    pub(super) fn poll(
        &mut self,
        now: Timestamp,
        port: &mut PortEnd,
        reports: &mut dyn VenueReports,
    ) -> ReportingRound {
        if self.stored.is_empty() {
            self.stored.resize_with(port.shards() as usize, ReportConfirmations::default);
        }
        let mut round = ReportingRound { work: self.pending_commands.poll(port), ..Default::default() };
        while round.work < REPORTS_PER_ROUND_MAX && self.pending_commands.is_empty() {
            // In the order in which the venue sent them.
            match reports.poll_report(now) {
                Some(report) => self.send_report(report, port, reports),
                None => match reports.poll_price() {
                    Some(price) => self.send_price(price, port),
                    None => break,
                },
            }
            round.work += 1;
        }
        self.has_backlog = !self.pending_commands.is_empty() || round.work >= REPORTS_PER_ROUND_MAX;
        round.has_work = self.has_backlog;
        let synchronizations = reports.synchronizations();
        if !round.has_work && synchronizations != self.sent_synchronizations {
            self.send_connection(synchronizations);
            round.connected = Some(synchronizations.is_some());
            round.work += self.pending_commands.poll(port);
            round.has_work = true;
        }
        // A question must not overtake the reports it is about.
        let asks = self.pending_commands.is_empty();
        for (shard, stored) in self.stored.iter_mut().enumerate().filter(|_| asks) {
            let shard = ShardId(index_u8(shard));
            round.work += usize::from(stored.poll(now, shard, self.source, self.adapter, port));
        }
        round
    }

    fn send_connection(&mut self, synchronizations: Option<u64>) {
        let was_connected = std::mem::replace(&mut self.sent_synchronizations, synchronizations).is_some();
        let (adapter, connected) = (self.adapter, synchronizations.is_some());
        if was_connected && connected {
            // The connection was interrupted: instructions sent meanwhile were refused, and the
            // shards must ask again.
            self.pending_commands.push_all(CommandKind::Adapter { adapter, connected: false });
        }
        self.pending_commands.push_all(CommandKind::Adapter { adapter, connected });
    }

    /// Sends a report to the shard of its order, at once if the lane accepts it.
    fn send_report(&mut self, report: InboundReport, port: &mut PortEnd, reports: &mut dyn VenueReports) {
        let InboundReport { order, report, token } = report;
        let shard = order.shard();
        // An id without a shard is not ours: the report is skipped.
        let Some(stored) = self.stored.get_mut(shard.0 as usize) else {
            return reports.handle_stored(token);
        };
        if token != 0 {
            stored.record(token);
        }
        self.send(shard, CommandKind::Report { order, report }, port);
    }

    /// Sends a price or a part of a book to the shard of its security. It must not be lost either:
    /// a stop order may wait for the price, and the next part follows this one.
    fn send_price(&mut self, price: CommandKind, port: &mut PortEnd) {
        if let CommandRoute::One(shard) = route(&price, port.shards()) {
            self.send(shard, price, port);
        }
    }

    fn send(&mut self, shard: ShardId, body: CommandKind, port: &mut PortEnd) {
        let command = Command::new(self.source, 0, body);
        if port.send(shard, command).is_err() {
            self.pending_commands.push_command(shard, command);
        }
    }
}
