//! The position of a folder in the stream, in small files beside the journal.
//!
//! ```text
//! DATA/standby/position     of a copy: the last message that it contains
//!              acked        of a leader: the last acknowledged record of each shard
//! ```
//!
//! Both are written without a sync, so they outlive the process. `position` counts only while the
//! machine is not rebooted, or after an orderly shutdown. `acked` is synced once a second: after a
//! reboot it is only a lower bound of what was acknowledged.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pitlane_journal::disk::Disk;

use super::stream::Leader;

pub(super) const POSITION: &str = "position";
pub(super) const ACKED: &str = "acked";
/// Resolution of the time since the boot.
const BOOT_TIME_RESOLUTION: Duration = Duration::from_millis(10);

/// The position of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CopyPosition {
    pub leader: Leader,
    /// Last message up to which the copy contains everything.
    pub done: u64,
    /// Last message of which the copy may contain anything.
    pub reach: u64,
    /// Whether the copy is sufficient to lead.
    pub complete: bool,
    /// Boot id of the machine that wrote it; zero if everything is on disk.
    pub boot: u128,
}

impl CopyPosition {
    /// Reads the position; returns `None` if there is none, or it is damaged.
    pub(super) fn read(path: &Path) -> Option<CopyPosition> {
        let text = fs::read_to_string(path).ok()?;
        let (fields, sum) = text.trim_end().rsplit_once(' ')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(fields.as_bytes()) {
            return None;
        }
        let fields: Vec<&str> = fields.split(' ').collect();
        let [epoch, node, lead, done, reach, complete, boot] = fields[..] else { return None };
        Some(CopyPosition {
            leader: Leader {
                epoch: epoch.parse().ok()?,
                node: u128::from_str_radix(node, 16).ok()?,
                seq: lead.parse().ok()?,
            },
            done: done.parse().ok()?,
            reach: reach.parse().ok()?,
            complete: complete == "1",
            boot: u128::from_str_radix(boot, 16).ok()?,
        })
    }

    /// Returns whether everything that was written is still there.
    pub(super) fn is_sound(&self) -> bool {
        self.boot == 0 || self.boot == Disk::Real.boot()
    }

    /// Encodes the position with a fixed length, so that it can be overwritten in place.
    fn encode(&self) -> String {
        let Leader { epoch, node, seq } = self.leader;
        let CopyPosition { done, reach, complete, boot, .. } = *self;
        let complete = u8::from(complete);
        let fields =
            format!("{epoch:020} {node:032x} {seq:020} {done:020} {reach:020} {complete} {boot:032x}");
        let sum = crc32c::crc32c(fields.as_bytes());
        format!("{fields} {sum:08x}\n")
    }
}

/// The open file of a position.
#[derive(Debug)]
pub(super) struct PositionFile {
    file: File,
}

impl PositionFile {
    pub(super) fn open(path: &Path) -> io::Result<PositionFile> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        Ok(PositionFile { file })
    }

    pub(super) fn write(&self, position: &CopyPosition) -> io::Result<()> {
        self.file.write_all_at(position.encode().as_bytes(), 0)
    }
}

/// Records that the whole copy in a data folder is on disk; called when it is.
pub(super) fn mark_synced(data: &Path) -> io::Result<()> {
    let path = data.join("standby").join(POSITION);
    match CopyPosition::read(&path) {
        // A copy that was lost before stays lost.
        Some(position) if !position.is_sound() => Ok(()),
        Some(position) => Disk::Real.put(&path, CopyPosition { boot: 0, ..position }.encode().as_bytes()),
        None => Ok(()),
    }
}

/// Returns the time since the machine was booted, also while it was suspended; `None` if the system
/// does not tell.
pub(super) fn time_since_boot() -> Option<Duration> {
    let text = fs::read_to_string("/proc/uptime").ok()?;
    Duration::try_from_secs_f64(text.split(' ').next()?.parse().ok()?).ok()
}

/// What the broker has acknowledged to a leader.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Acked {
    pub epoch: u64,
    /// Sequence number of the lead message.
    pub lead: u64,
    /// Last acknowledged message; [`u64::MAX`] while the stream is restored from the folder, when
    /// numbers have no meaning.
    pub seq: u64,
    /// Boot id of the machine that wrote it; `None` if an earlier version wrote it.
    pub boot: Option<u128>,
    /// When the last acknowledged message was sent, as time since the boot; `None` if it is unknown
    /// or another server need not wait for the lease.
    pub sent_at: Option<Duration>,
    /// Last segment of each shard, and the offset up to which it was acknowledged.
    pub ends: Vec<(String, u64)>,
}

impl Acked {
    pub(super) fn path(data: &Path) -> PathBuf {
        data.join("standby").join(ACKED)
    }

    /// Reads the file; returns `None` if there is none, or it is damaged.
    pub(super) fn read(data: &Path) -> Option<Acked> {
        let text = fs::read_to_string(Acked::path(data)).ok()?;
        let (text, sum) = text.trim_end().rsplit_once('\n')?;
        if u32::from_str_radix(sum, 16).ok()? != crc32c::crc32c(text.as_bytes()) {
            return None;
        }
        let mut lines = text.lines();
        let mut head = lines.next()?.split(' ');
        let mut fields = head.by_ref().take(3).map(|word| word.parse().ok());
        let (epoch, lead, seq) = (fields.next()??, fields.next()??, fields.next()??);
        let boot = head.next().map(|word| u128::from_str_radix(word, 16)).transpose().ok()?;
        let sent_at = head.next().map(|word| word.parse().map(Duration::from_millis)).transpose().ok()?;
        let end = |line: &str| {
            let (path, end) = line.split_once(' ')?;
            Some((path.to_string(), end.parse().ok()?))
        };
        Some(Acked { epoch, lead, seq, boot, sent_at, ends: lines.map(end).collect::<Option<_>>()? })
    }

    /// Returns whether the lease that began with the last acknowledged message lasts: then no other
    /// server has taken the lead since, whatever the broker has lost.
    pub(super) fn is_lease_running(&self, now: Option<Duration>, lease: Duration) -> bool {
        let age = now.zip(self.sent_at).and_then(|(now, sent_at)| now.checked_sub(sent_at));
        let is_young = age.is_some_and(|age| age + BOOT_TIME_RESOLUTION < lease);
        is_young && self.boot == Some(Disk::Real.boot())
    }

    /// Returns whether the file is as it was written last: a loss of power takes up to a second of
    /// acknowledgements from it.
    pub(super) fn is_exact(&self) -> bool {
        self.boot.is_none_or(|boot| boot == Disk::Real.boot())
    }

    /// Writes the file. It outlives the process, but not a loss of power.
    pub(super) fn write(&self, data: &Path) -> io::Result<()> {
        let path = Acked::path(data);
        let beside = path.with_extension("tmp");
        fs::write(&beside, self.encode())?;
        fs::rename(beside, path)
    }

    pub(super) fn encode(&self) -> String {
        let mut text = format!("{} {} {}", self.epoch, self.lead, self.seq);
        if let Some(boot) = self.boot {
            text += &format!(" {boot:032x}");
            if let Some(sent_at) = self.sent_at {
                text += &format!(" {}", sent_at.as_millis());
            }
        }
        for (path, end) in &self.ends {
            text += &format!("\n{path} {end}");
        }
        let sum = crc32c::crc32c(text.as_bytes());
        format!("{text}\n{sum:08x}\n")
    }

    /// Records one more acknowledged piece.
    pub(super) fn note(&mut self, path: &str, end: u64) {
        let folder = super::overlap::folder_of(path);
        match self.ends.iter_mut().find(|(last, _)| super::overlap::folder_of(last) == folder) {
            Some(last) if last.0 == path => last.1 = end,
            Some(last) => *last = (path.to_string(), end),
            None => self.ends.push((path.to_string(), end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("pitlane-position-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("standby")).unwrap();
        folder
    }

    #[test]
    fn a_position_is_read_as_written_and_damage_is_noticed() {
        let folder = test_folder("read");
        let path = folder.join("standby").join(POSITION);
        assert_eq!(CopyPosition::read(&path), None);
        let leader = Leader { epoch: 3, node: 5 << 100, seq: 17 };
        let boot = Disk::Real.boot();
        let first = CopyPosition { leader, done: 18, reach: 20, complete: true, boot };
        let file = PositionFile::open(&path).unwrap();
        file.write(&first).unwrap();
        assert_eq!(CopyPosition::read(&path), Some(first));
        assert!(first.is_sound());
        let next = CopyPosition { done: u64::MAX, complete: false, boot: 1, ..first };
        file.write(&next).unwrap();
        assert_eq!(CopyPosition::read(&path), Some(next));
        assert!(!next.is_sound(), "another start of the machine");
        mark_synced(&folder).unwrap();
        assert!(!CopyPosition::read(&path).unwrap().is_sound(), "a copy that was lost stays lost");
        file.write(&first).unwrap();
        mark_synced(&folder).unwrap();
        assert_eq!(CopyPosition::read(&path), Some(CopyPosition { boot: 0, ..first }));
        fs::write(&path, fs::read_to_string(&path).unwrap().replace('5', "6")).unwrap();
        assert_eq!(CopyPosition::read(&path), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_acknowledged_position_is_the_last_one_of_each_shard() {
        let folder = test_folder("acked");
        let boot = Some(Disk::Real.boot());
        let sent_at = Some(Duration::from_millis(12_340));
        let mut acked = Acked { epoch: 2, lead: 9, seq: 12, boot, sent_at, ends: Vec::new() };
        acked.note("journal/shard-00/000000000001.seg", 200);
        acked.note("journal/shard-01/000000000001.seg", 300);
        acked.note("journal/shard-00/000000000002.seg", 400);
        assert_eq!(acked.ends.len(), 2);
        assert_eq!(acked.ends[0], ("journal/shard-00/000000000002.seg".to_string(), 400));
        assert_eq!(Acked::read(&folder), None);
        fs::write(Acked::path(&folder), acked.encode()).unwrap();
        assert_eq!(Acked::read(&folder), Some(acked.clone()));
        let earlier = Acked { boot: None, sent_at: None, ..acked.clone() };
        fs::write(Acked::path(&folder), earlier.encode()).unwrap();
        assert_eq!(Acked::read(&folder), Some(earlier), "an earlier version wrote no boot id");
        fs::write(Acked::path(&folder), acked.encode().replace("400", "500")).unwrap();
        assert_eq!(Acked::read(&folder), None);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_lease_runs_from_the_last_acknowledged_message_until_the_machine_is_booted_again() {
        let second = Duration::from_secs;
        let boot = Disk::Real.boot();
        let acked = Acked { boot: Some(boot), sent_at: Some(second(10)), ..Acked::default() };
        for (now, runs) in
            [(Some(10), true), (Some(12), true), (Some(13), false), (Some(9), false), (None, false)]
        {
            assert_eq!(acked.is_lease_running(now.map(second), second(3)), runs, "{now:?}");
        }
        for other in [
            Acked { boot: Some(boot ^ 1), ..acked.clone() },
            Acked { boot: None, ..acked.clone() },
            Acked { sent_at: None, ..acked },
        ] {
            assert!(!other.is_lease_running(Some(second(10)), second(3)));
        }
        let (before, after) = (time_since_boot().unwrap(), time_since_boot().unwrap());
        assert!(before <= after);
    }
}
