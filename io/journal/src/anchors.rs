//! Reads the audit anchors from the journal, for `pitlane audit verify`. It changes nothing, and
//! the journal may be in use.

use std::path::Path;

use pitlane_engine::codec;
use pitlane_engine::command::{AuditAnchor, CommandKind};

use super::Folders;
use super::cli::{JournalCliError, RecordRange, owners, survey};
use super::disk::Disk;
use super::fault::Fault;
use super::record::{JournalRecord, kind};
use super::replay::ShardReplay;
use super::scan::{self, RecordVisitor, SegmentFile};
use super::snapshot::{Snapshot, snapshots_in};

/// Returns all anchors that the journal still contains, oldest first within a shard. If the
/// beginning of the journal has been removed, the oldest snapshot contains the newest earlier
/// anchor. Returns none if there is no journal.
pub fn anchors(disk: &Disk, data: &Path) -> Result<Vec<AuditAnchor>, JournalCliError> {
    let folders = Folders::new(data);
    let owners = match owners(disk, data, &RecordRange::default()) {
        Ok(owners) => owners,
        Err(JournalCliError::Nothing(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = AnchorCollector::default();
    for owner in owners {
        let folder = folders.shard(owner.shard);
        // A shard that another server owns has no folder here.
        if disk.list(&folder).is_err() {
            continue;
        }
        let scanned = survey(disk, &folders, &owner)?;
        let is_whole = scanned.first().is_none_or(|first| first == 1);
        if !is_whole && let Some(&oldest) = snapshots_in(disk, &folder)?.first() {
            let snapshot = Snapshot::read(disk, &folder, oldest, &owner)?;
            let replay = ShardReplay::from_snapshot(disk, &folders.references(), &folder, &snapshot)?;
            found.0.extend(replay.shard().and_then(|shard| shard.audit_anchor()));
        }
        scan::walk(disk, &scanned, 0, disk.boot(), &mut found)?;
    }
    Ok(found.0)
}

#[derive(Default)]
struct AnchorCollector(Vec<AuditAnchor>);

impl RecordVisitor for AnchorCollector {
    fn segment(&mut self, _piece: &SegmentFile) -> Result<(), Fault> {
        Ok(())
    }

    fn record(
        &mut self,
        _piece: &SegmentFile,
        _offset: usize,
        record: &JournalRecord<'_>,
    ) -> Result<(), Fault> {
        if record.kind == kind::COMMAND
            && let Ok(command) = codec::decode_command(record.payload)
            && let CommandKind::AuditAnchor(anchor) = command.body
        {
            self.0.push(anchor);
        }
        Ok(())
    }
}
