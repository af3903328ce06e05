//! Reads the audit anchors from the journal, for `pitlane audit verify`. It changes nothing, and
//! the journal may be in use.

use std::path::Path;

use pitlane_engine::codec;
use pitlane_engine::command::{AuditAnchor, CommandKind};

use super::Folders;
use super::cli::{Part, VerbError, owners, survey};
use super::disk::Disk;
use super::fault::Fault;
use super::record::{Record, kind};
use super::replay::Replay;
use super::scan::{self, Hear, Piece};
use super::snapshot::{Snapshot, snapshots_in};

/// Returns all anchors that the journal still contains, oldest first within a shard. If the
/// beginning of the journal has been removed, the oldest snapshot contains the newest earlier
/// anchor. Returns none if there is no journal.
pub fn anchors(disk: &Disk, data: &Path) -> Result<Vec<AuditAnchor>, VerbError> {
    let folders = Folders::new(data);
    let owners = match owners(disk, data, &Part::default()) {
        Ok(owners) => owners,
        Err(VerbError::Nothing(_)) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Found::default();
    for owner in owners {
        let folder = folders.shard(owner.shard);
        // A shard that another server owns has no folder here.
        if disk.list(&folder).is_err() {
            continue;
        }
        let trail = survey(disk, &folders, &owner)?;
        let is_whole = trail.first().is_none_or(|first| first == 1);
        if !is_whole && let Some(&oldest) = snapshots_in(disk, &folder)?.first() {
            let snapshot = Snapshot::read(disk, &folder, oldest, &owner)?;
            let replay = Replay::from_snapshot(disk, &folders.references(), &folder, &snapshot)?;
            found.0.extend(replay.shard().and_then(|shard| shard.audit_anchor()));
        }
        scan::walk(disk, &trail, 0, disk.boot(), &mut found)?;
    }
    Ok(found.0)
}

#[derive(Default)]
struct Found(Vec<AuditAnchor>);

impl Hear for Found {
    fn segment(&mut self, _piece: &Piece) -> Result<(), Fault> {
        Ok(())
    }

    fn record(&mut self, _piece: &Piece, _offset: usize, record: &Record<'_>) -> Result<(), Fault> {
        if record.kind == kind::COMMAND
            && let Ok(command) = codec::decode_command(record.payload)
            && let CommandKind::AuditAnchor(anchor) = command.body
        {
            self.0.push(anchor);
        }
        Ok(())
    }
}
