//! Reports who sent which order, from the journal alone: `pitlane audit orders`. It changes
//! nothing, and the journal may be in use.
//!
//! A port registers a sender with each shard before the first command of that sender, so reading
//! the journal in order always finds the sender first. If the beginning of the journal has been
//! removed, the oldest snapshot contains the earlier senders.

use std::io::{self, Write};
use std::path::Path;

use pitlane_engine::codec;
use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::sender::{SenderId, SenderTable};
use pitlane_engine::time::Timestamp;
use pitlane_protocols::rest::SenderVO;
use serde::Serialize;

use super::Folders;
use super::cli::{JournalCliError, RecordRange, owners, survey};
use super::disk::Disk;
use super::fault::Fault;
use super::header::Owner;
use super::record::{JournalRecord, kind};
use super::replay::ShardReplay;
use super::scan::{self, RecordVisitor, SegmentFile};
use super::snapshot::{Snapshot, snapshots_in};

/// Filter of the orders to report; `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct SentFilter {
    pub login: Option<String>,
    pub int_id: Option<String>,
}

/// One order, modification, cancel or close, as a line of JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SentLine<'a> {
    shard: u16,
    record: u64,
    time: String,
    act: &'static str,
    /// Id that the sender gave to the order or the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    int_id: Option<&'a str>,
    /// Order that a modification or a cancel refers to, in the form of `handle` of
    /// `DELETE /rest/execution/order/…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy_id: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security_id: Option<u32>,
    /// Sender of the command; absent if the command was written by a version that did not record
    /// it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_by: Option<SenderVO>,
}

/// Prints one line for each order, modification, cancel and close, and returns the number of lines.
pub fn orders(
    disk: &Disk,
    data: &Path,
    part: &RecordRange,
    wanted: &SentFilter,
    out: &mut impl Write,
) -> Result<u64, JournalCliError> {
    let folders = Folders::new(data);
    let mut lines = 0;
    for owner in owners(disk, data, part)? {
        let scanned = survey(disk, &folders, &owner)?;
        let is_whole = scanned.first().is_none_or(|first| first == 1);
        let senders = if is_whole { SenderTable::default() } else { senders_before(disk, &folders, &owner)? };
        let left = part.limit - lines;
        let mut walk =
            SentWalk { shard: owner.shard, part, wanted, senders, out, lines: 0, left, broken: None };
        let walked = scan::walk(disk, &scanned, 0, disk.boot(), &mut walk);
        lines += walk.lines;
        if let Some(error) = walk.broken {
            return Err(JournalCliError::Output(error));
        }
        walked?;
    }
    Ok(lines)
}

/// Returns the senders known when the oldest snapshot was made.
fn senders_before(disk: &Disk, folders: &Folders, owner: &Owner) -> Result<SenderTable, Fault> {
    let folder = folders.shard(owner.shard);
    let Some(&oldest) = snapshots_in(disk, &folder)?.first() else { return Ok(SenderTable::default()) };
    let snapshot = Snapshot::read(disk, &folder, oldest, owner)?;
    let replay = ShardReplay::from_snapshot(disk, &folders.references(), &folder, &snapshot)?;
    Ok(replay.shard().map(|shard| shard.senders().clone()).unwrap_or_default())
}

struct SentWalk<'a, W: Write> {
    shard: u16,
    part: &'a RecordRange,
    wanted: &'a SentFilter,
    senders: SenderTable,
    out: &'a mut W,
    lines: u64,
    left: u64,
    broken: Option<io::Error>,
}

impl<W: Write> RecordVisitor for SentWalk<'_, W> {
    fn segment(&mut self, _piece: &SegmentFile) -> Result<(), Fault> {
        Ok(())
    }

    fn record(
        &mut self,
        _piece: &SegmentFile,
        _offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        if record.kind != kind::COMMAND || self.broken.is_some() {
            return Ok(());
        }
        let Ok(command) = codec::decode_command(record.payload) else { return Ok(()) };
        if let CommandKind::Sender { id, part } = command.body {
            self.senders.apply_part(id, part);
            return Ok(());
        }
        let is_asked_for = (self.part.from..=self.part.to).contains(&record.seq) && self.lines < self.left;
        if is_asked_for && let Some(line) = self.line(record, &command) {
            let text = serde_json::to_string(&line).map_err(io::Error::other);
            let written = text.and_then(|text| writeln!(self.out, "{text}"));
            self.broken = written.err();
            self.lines += 1;
        }
        Ok(())
    }
}

impl<W: Write> SentWalk<'_, W> {
    /// Returns the line of a matching command, or `None` if it does not match or is not about an
    /// order.
    fn line<'a>(&self, record: &JournalRecord<'_>, command: &'a Command) -> Option<SentLine<'a>> {
        let sender = self.senders.get(command.sender);
        let is_by = |login: &str| sender.is_some_and(|sender| sender.login.as_str() == login);
        if self.wanted.login.as_deref().is_some_and(|login| !is_by(login)) {
            return None;
        }
        let plain = |act, id: &'a IntId, order: Option<OrderHandle>| SentLine {
            shard: self.shard,
            record: record.seq,
            time: Timestamp(record.time).to_string(),
            act,
            int_id: (!id.is_none()).then(|| id.as_str()),
            order: order.map(OrderHandle::raw),
            strategy_id: None,
            account_id: None,
            security_id: None,
            sent_by: (command.sender != SenderId::NONE)
                .then(|| SenderVO::of(command.sender, sender))
                .flatten(),
        };
        let line = match &command.body {
            CommandKind::Submit { id, terms } => SentLine {
                strategy_id: Some(terms.strategy.0),
                account_id: Some(terms.account.0),
                security_id: Some(terms.security.0),
                ..plain("submit", id, None)
            },
            CommandKind::Modify { order, id, .. } => plain("modify", id, Some(*order)),
            CommandKind::Cancel { order, id } => plain("cancel", id, Some(*order)),
            CommandKind::Close { id, strategy, account, security, .. } => SentLine {
                strategy_id: Some(strategy.0),
                account_id: Some(account.0),
                security_id: Some(security.0),
                ..plain("close", id, None)
            },
            CommandKind::CancelOrders { id, filter } => SentLine {
                strategy_id: filter.strategy.map(|strategy| strategy.0),
                security_id: filter.security.map(|security| security.0),
                ..plain("cancel-orders", id, None)
            },
            CommandKind::Subscribe { .. }
            | CommandKind::Quote { .. }
            | CommandKind::Trade { .. }
            | CommandKind::Tick { .. }
            | CommandKind::Level { .. }
            | CommandKind::VenueLevels(_)
            | CommandKind::VenueBook { .. }
            | CommandKind::Report { .. }
            | CommandKind::Adapter { .. }
            | CommandKind::Transaction(_)
            | CommandKind::Expire { .. }
            | CommandKind::ResetPositions
            | CommandKind::ResetCash
            | CommandKind::Limits { .. }
            | CommandKind::Restrict { .. }
            | CommandKind::Kill { .. }
            | CommandKind::Phase { .. }
            | CommandKind::Halt { .. }
            | CommandKind::Budget(_)
            | CommandKind::Session { .. }
            | CommandKind::TradingDay { .. }
            | CommandKind::Timer
            | CommandKind::Watch { .. }
            | CommandKind::Snapshot { .. }
            | CommandKind::Reference { .. }
            | CommandKind::Validate { .. }
            | CommandKind::Direct { .. }
            | CommandKind::Schedule { .. }
            | CommandKind::Expiry { .. }
            | CommandKind::SpecialTerms(_)
            | CommandKind::Sender { .. }
            | CommandKind::AuditAnchor(_) => return None,
        };
        let is_wanted = self.wanted.int_id.as_deref().is_none_or(|id| line.int_id == Some(id));
        is_wanted.then_some(line)
    }
}
