//! Who sent which order, by the journal alone: `pitlane audit orders`. Nothing is changed, and the journal may be in use.
//!
//! A port tells each shard about a sender before the first command of that sender, so whoever reads the journal in its
//! order knows every sender in time. Where the beginning of the journal has been removed, the oldest snapshot has the
//! senders from before.

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
use super::cli::{Part, VerbError, owners, survey};
use super::disk::Disk;
use super::fault::Fault;
use super::header::Owner;
use super::record::{Record, kind};
use super::replay::Replay;
use super::scan::{self, Hear, Piece};
use super::snapshot::{Snapshot, snapshots_in};

/// Which orders are asked for; none: all.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub login: Option<String>,
    pub int_id: Option<String>,
}

/// One order, modification, cancel or close, as a line of JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    shard: u16,
    record: u64,
    time: String,
    act: &'static str,
    /// The id that the sender gave to the order or the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    int_id: Option<&'a str>,
    /// The order that a modification or a cancel is about, as `handle` of `DELETE /rest/execution/order/…` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy_id: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    account_id: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    security_id: Option<u32>,
    /// Absent: the command is of a version that did not record it.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_by: Option<SenderVO>,
}

/// Prints one line for each order, modification, cancel and close, and answers with their number.
pub fn orders(
    disk: &Disk,
    data: &Path,
    part: &Part,
    wanted: &Wanted,
    out: &mut impl Write,
) -> Result<u64, VerbError> {
    let folders = Folders::new(data);
    let mut lines = 0;
    for owner in owners(disk, data, part)? {
        let trail = survey(disk, &folders, &owner)?;
        let is_whole = trail.first().is_none_or(|first| first == 1);
        let senders = if is_whole { SenderTable::default() } else { senders_before(disk, &folders, &owner)? };
        let left = part.limit - lines;
        let mut walk = Walk { shard: owner.shard, part, wanted, senders, out, lines: 0, left, broken: None };
        let walked = scan::walk(disk, &trail, 0, disk.boot(), &mut walk);
        lines += walk.lines;
        if let Some(error) = walk.broken {
            return Err(VerbError::Output(error));
        }
        walked?;
    }
    Ok(lines)
}

/// The senders that were known when the oldest snapshot was made.
fn senders_before(disk: &Disk, folders: &Folders, owner: &Owner) -> Result<SenderTable, Fault> {
    let folder = folders.shard(owner.shard);
    let Some(&oldest) = snapshots_in(disk, &folder)?.first() else { return Ok(SenderTable::default()) };
    let snapshot = Snapshot::read(disk, &folder, oldest, owner)?;
    let replay = Replay::from_snapshot(disk, &folders.references(), &folder, &snapshot)?;
    Ok(replay.shard().map(|shard| shard.senders().clone()).unwrap_or_default())
}

struct Walk<'a, W: Write> {
    shard: u16,
    part: &'a Part,
    wanted: &'a Wanted,
    senders: SenderTable,
    out: &'a mut W,
    lines: u64,
    left: u64,
    broken: Option<io::Error>,
}

impl<W: Write> Hear for Walk<'_, W> {
    fn segment(&mut self, _piece: &Piece) -> Result<(), Fault> {
        Ok(())
    }

    fn record(&mut self, _piece: &Piece, _offset: usize, record: &Record<'_>) -> Result<(), Fault> {
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

impl<W: Write> Walk<'_, W> {
    /// The line of a command that is wanted; none: it is another, or no order.
    fn line<'a>(&self, record: &Record<'_>, command: &'a Command) -> Option<Line<'a>> {
        let sender = self.senders.get(command.sender);
        let is_by = |login: &str| sender.is_some_and(|sender| sender.login.as_str() == login);
        if self.wanted.login.as_deref().is_some_and(|login| !is_by(login)) {
            return None;
        }
        let plain = |act, id: &'a IntId, order: Option<OrderHandle>| Line {
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
            CommandKind::Submit { id, terms } => Line {
                strategy_id: Some(terms.strategy.0),
                account_id: Some(terms.account.0),
                security_id: Some(terms.security.0),
                ..plain("submit", id, None)
            },
            CommandKind::Modify { order, id, .. } => plain("modify", id, Some(*order)),
            CommandKind::Cancel { order, id } => plain("cancel", id, Some(*order)),
            CommandKind::Close { id, strategy, account, security, .. } => Line {
                strategy_id: Some(strategy.0),
                account_id: Some(account.0),
                security_id: Some(security.0),
                ..plain("close", id, None)
            },
            _ => return None,
        };
        let is_wanted = self.wanted.int_id.as_deref().is_none_or(|id| line.int_id == Some(id));
        is_wanted.then_some(line)
    }
}
