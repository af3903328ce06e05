//! Identity of this server within its group, and the role of its folder: a small file beside the
//! journal.
//!
//! ```text
//! DATA/standby/member     node, epoch, whether it leads or follows
//!              lock       held while a process uses the folder
//!              before/    previous contents of the folder; acknowledged parts are in the stream
//!              next/      staging folder: the stream is read here while the folder is kept
//!              adopt      exists while `next/` replaces the folder
//!              decision   the operator's decision: `pitlane standby`
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use pitlane_journal::disk::Disk;

use super::overlap::{self, Extents};
use super::position::{Acked, CopyPosition, POSITION, PositionFile};
use super::replica;
use super::verdict::{Choice, FolderState};

const ADOPT: &str = "adopt";
const DECISION: &str = "decision";
/// Where `next/` moves the folder that it replaces, if that contains nothing that the other lacks.
const OLD: &str = "old";
const BEFORE: &str = "before";

/// Folders that are replicated through the stream.
pub(super) const REPLICATED: [&str; 4] = ["journal", "notes", "fix", "venue"];

#[derive(Debug)]
pub(super) struct GroupMember {
    data: PathBuf,
    pub node: u128,
    pub role: FolderRole,
    _lock: fs::File,
}

/// How the lead was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Takeover {
    /// Whether the folder is a copy.
    pub is_copy: bool,
    /// Whether the previous leader shut down in good order.
    pub released: bool,
}

/// The role of the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FolderRole {
    /// The folder never belonged to a group.
    New,
    /// The folder has been the authoritative journal since this epoch.
    Leads { epoch: u64 },
    /// The folder is a copy of the stream, possibly incomplete.
    Follows,
}

impl GroupMember {
    pub(super) fn open(data: &Path) -> io::Result<GroupMember> {
        let folder = data.join("standby");
        Disk::Real.make_folder(&folder)?;
        let lock = fs::File::create(folder.join("lock"))?;
        lock.try_lock().map_err(|_| io::Error::other("another process uses this data folder"))?;
        let path = folder.join("member");
        let (node, role) = match fs::read_to_string(&path) {
            Ok(text) => parse(&text).ok_or_else(|| {
                io::Error::other(format!(
                    "{}: it is damaged; remove it to give this server a new identity",
                    path.display()
                ))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Disk::Real.random(), FolderRole::New),
            Err(error) => return Err(error),
        };
        let mut member = GroupMember { data: data.to_path_buf(), node, role, _lock: lock };
        if member.file(ADOPT).exists() {
            member.continue_replacement()?;
        }
        Ok(member)
    }

    /// Returns the state of the folder.
    pub(super) fn folder(&self) -> FolderState {
        match (self.role, self.position()) {
            (FolderRole::New, _) if self.has_journal() => FolderState::Foreign,
            (FolderRole::New, _) => FolderState::Empty,
            (FolderRole::Leads { .. }, _) => FolderState::Led,
            (FolderRole::Follows, Some(position)) => {
                FolderState::Copy { complete: position.complete, sound: position.is_sound() }
            }
            // An earlier version wrote no position.
            (FolderRole::Follows, None) => FolderState::Copy { complete: self.has_journal(), sound: false },
        }
    }

    pub(super) fn position(&self) -> Option<CopyPosition> {
        CopyPosition::read(&self.file(POSITION))
    }

    /// Returns the records that may have been acknowledged to a client. `is_replicated` is whether
    /// a leader waits for the broker before it acknowledges.
    pub(super) fn acknowledged_extents(&self, is_replicated: bool) -> io::Result<Extents> {
        match (self.role, Acked::read(&self.data)) {
            // The machine has lost its power since: any record may be one of the last that the
            // broker acknowledged.
            (FolderRole::Leads { .. }, Some(acked)) if is_replicated && !acked.is_exact() => {
                overlap::extents(&self.data)
            }
            (FolderRole::Leads { .. }, Some(acked)) => overlap::acknowledged(&self.data, &acked),
            // A leader of an earlier version did not store them.
            (FolderRole::Leads { .. }, None) if !Acked::path(&self.data).exists() => Ok(Extents::new()),
            (FolderRole::New | FolderRole::Leads { .. } | FolderRole::Follows, _) => {
                overlap::extents(&self.data)
            }
        }
    }

    /// Returns the last epoch that this server led.
    pub(super) fn led_epoch(&self) -> u64 {
        if let FolderRole::Leads { epoch } = self.role { epoch } else { 0 }
    }

    /// Returns the highest epoch that this server knows of.
    pub(super) fn epoch(&self) -> u64 {
        let led = self.led_epoch();
        self.position().map_or(led, |position| led.max(position.leader.epoch))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.data.join("standby").join(name)
    }

    pub(super) fn position_path(&self) -> PathBuf {
        self.file(POSITION)
    }

    /// Returns the staging folder, into which the stream is read from its beginning.
    pub(super) fn stage(&self) -> PathBuf {
        self.file("next")
    }

    /// Returns the folder into which the folder is moved that the staging folder replaces.
    pub(super) fn before(&self) -> PathBuf {
        self.file(BEFORE)
    }

    /// Creates an empty staging folder beside the data folder.
    pub(super) fn clear_stage(&self) -> io::Result<()> {
        remove_folder(&self.stage())?;
        REPLICATED.iter().try_for_each(|name| Disk::Real.make_folder(&self.stage().join(name)))
    }

    /// Returns the operator's decision.
    pub(super) fn choice(&self) -> Option<Choice> {
        match fs::read_to_string(self.file(DECISION)).ok()?.trim() {
            "lead" => Some(Choice::Lead),
            "follow" => Some(Choice::Follow),
            _ => None,
        }
    }

    pub(super) fn set_choice(&self, choice: Choice) -> io::Result<()> {
        let text = match choice {
            Choice::Lead => "lead\n",
            Choice::Follow => "follow\n",
        };
        Disk::Real.put(&self.file(DECISION), text.as_bytes())
    }

    /// Removes the decision, which applies once.
    pub(super) fn forget_choice(&self) -> io::Result<()> {
        remove_file(&self.file(DECISION))
    }

    /// Makes this the folder of the leader of an epoch, which began with message `seq`. The change
    /// is on disk when this returns; if it is interrupted, the folder is a copy as before.
    pub(super) fn lead(&mut self, epoch: u64, seq: u64, takeover: Takeover) -> io::Result<()> {
        if takeover.is_copy {
            if let Some(position) = self.position() {
                // From here on the folder contains more than was read from the stream, so it must
                // be compared before it is used as a copy again.
                PositionFile::open(&self.file(POSITION))?
                    .write(&CopyPosition { reach: u64::MAX, ..position })?;
            }
            replica::finish(&self.data, takeover.released)?;
            // The previous leader may have acknowledged all of these records. Until this server
            // has sent its whole folder, no numbers of the stream show that it contains them.
            let (boot, ends) = (Some(Disk::Real.boot()), overlap::ends(&self.data)?);
            let acked = Acked { epoch, lead: seq, seq: u64::MAX, boot, sent_at: None, ends };
            Disk::Real.put(&Acked::path(&self.data), acked.encode().as_bytes())?;
        }
        self.set_role(FolderRole::Leads { epoch })?;
        self.forget_choice()?;
        self.forget_position()?;
        remove_folder(&self.stage())
    }

    /// Removes the position: a copy that a leader writes to has no position in the stream.
    pub(super) fn forget_position(&self) -> io::Result<()> {
        remove_file(&self.file(POSITION))?;
        Disk::Real.sync_folder(&self.data.join("standby"))
    }

    /// Replaces the folder with the staging folder, which is on disk. If `keep` is set, the folder
    /// contains something that the staging folder lacks, and is kept in `before`.
    pub(super) fn replace_folder(&mut self, keep: bool) -> io::Result<()> {
        Disk::Real.put(&self.file(ADOPT), if keep { BEFORE.as_bytes() } else { OLD.as_bytes() })?;
        self.continue_replacement()
    }

    /// Continues a replacement. Each step may have been done before a crash.
    fn continue_replacement(&mut self) -> io::Result<()> {
        let backup = match fs::read_to_string(self.file(ADOPT))?.as_str() {
            BEFORE => self.file(BEFORE),
            _ => self.file(OLD),
        };
        Disk::Real.make_folder(&backup)?;
        for name in REPLICATED {
            let (here, next, backup) = (self.data.join(name), self.stage().join(name), backup.join(name));
            if !next.exists() {
                continue;
            }
            if here.exists() {
                remove_folder(&backup)?;
                fs::rename(&here, &backup)?;
            }
            fs::rename(&next, &here)?;
        }
        Disk::Real.sync_folder(&backup)?;
        Disk::Real.sync_folder(&self.data)?;
        if self.stage().join(POSITION).exists() {
            fs::rename(self.stage().join(POSITION), self.file(POSITION))?;
        }
        self.set_role(FolderRole::Follows)?;
        remove_file(&self.file(ADOPT))?;
        remove_file(&self.file(DECISION))?;
        remove_folder(&self.stage())?;
        remove_folder(&self.file(OLD))
    }

    /// Sets the role, on disk when this returns.
    pub(super) fn set_role(&mut self, role: FolderRole) -> io::Result<()> {
        let text = match role {
            FolderRole::New => "new 0".to_string(),
            FolderRole::Leads { epoch } => format!("leads {epoch}"),
            FolderRole::Follows => "follows 0".to_string(),
        };
        let lines = format!("node {:032x}\n{text}\n", self.node);
        Disk::Real.put(&self.path(), lines.as_bytes())?;
        self.role = role;
        Ok(())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.data.join("standby").join("member")
    }

    /// Returns whether there is a journal.
    pub(super) fn has_journal(&self) -> bool {
        self.data.join("journal").join("identity").exists()
    }

    /// Empties the folder for a server that has nothing worth keeping: it is new, or its copy was
    /// never complete.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        let backup = self.file(BEFORE);
        if self.role != FolderRole::Follows {
            // An interrupted call is continued.
            if self.data.join(REPLICATED[0]).exists() {
                remove_folder(&backup)?;
            }
            Disk::Real.make_folder(&backup)?;
            for name in REPLICATED {
                match fs::rename(self.data.join(name), backup.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            self.set_role(FolderRole::Follows)?;
        }
        self.forget_position()?;
        REPLICATED.iter().try_for_each(|name| remove_folder(&self.data.join(name)))
    }
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_file(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn parse(text: &str) -> Option<(u128, FolderRole)> {
    let (first, second) = text.split_once('\n')?;
    let node = u128::from_str_radix(first.strip_prefix("node ")?, 16).ok()?;
    let (text, epoch) = second.trim_end().split_once(' ')?;
    let epoch = epoch.parse().ok()?;
    let role = match text {
        "new" => FolderRole::New,
        "leads" => FolderRole::Leads { epoch },
        "follows" => FolderRole::Follows,
        _ => return None,
    };
    Some((node, role))
}

#[cfg(test)]
mod tests {
    use pitlane_journal::header::{Header, Owner, RULES, SegmentLink};
    use pitlane_journal::record::{JournalRecord, bytes_of, kind};

    use super::*;

    #[test]
    fn a_member_keeps_its_identity_and_its_old_folder_is_put_aside_once() {
        let data = std::env::temp_dir().join(format!("pitlane-member-{}", std::process::id()));
        let put = |text: &str| {
            fs::create_dir_all(data.join("journal")).unwrap();
            fs::write(data.join("journal/identity"), text).unwrap();
        };
        put("led");
        let mut member = GroupMember::open(&data).unwrap();
        assert_eq!(member.role, FolderRole::New);
        assert!(GroupMember::open(&data).is_err(), "the folder is taken");
        member.set_role(FolderRole::Leads { epoch: 7 }).unwrap();
        let node = member.node;
        drop(member);
        let mut member = GroupMember::open(&data).unwrap();
        assert_eq!((member.node, member.role), (node, FolderRole::Leads { epoch: 7 }));
        for copy in ["one", "two"] {
            member.clear().unwrap();
            assert!(!member.has_journal());
            assert_eq!(member.role, FolderRole::Follows);
            put(copy);
        }
        assert_eq!(fs::read_to_string(data.join("standby/before/journal/identity")).unwrap(), "led");
        fs::remove_dir_all(&data).unwrap();
    }

    #[test]
    fn the_staging_folder_replaces_the_folder_wherever_it_is_interrupted() {
        // The number of renames before the interruption, and whether the folder is kept.
        for (interrupted, keep) in (0..=8).flat_map(|after| [(after, true), (after, false)]) {
            let name = format!("pitlane-adopt-{}-{interrupted}-{keep}", std::process::id());
            let data = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&data);
            let mut member = GroupMember::open(&data).unwrap();
            member.set_role(FolderRole::Leads { epoch: 1 }).unwrap();
            member.clear_stage().unwrap();
            for name in REPLICATED {
                fs::create_dir_all(data.join(name)).unwrap();
                fs::write(data.join(name).join("a"), "old").unwrap();
                fs::write(member.stage().join(name).join("a"), "new").unwrap();
            }
            let backup = if keep { BEFORE } else { OLD };
            Disk::Real.put(&member.file(ADOPT), backup.as_bytes()).unwrap();
            fs::create_dir_all(member.file(backup)).unwrap();
            for step in 0..interrupted {
                let name = REPLICATED[step / 2];
                let (here, backup) = (data.join(name), member.file(backup).join(name));
                match step % 2 {
                    0 => fs::rename(&here, &backup).unwrap(),
                    _ => fs::rename(member.stage().join(name), &here).unwrap(),
                }
            }
            drop(member);
            let member = GroupMember::open(&data).unwrap();
            assert_eq!(member.role, FolderRole::Follows);
            for name in REPLICATED {
                assert_eq!(fs::read_to_string(data.join(name).join("a")).unwrap(), "new");
                let before = fs::read_to_string(member.file(BEFORE).join(name).join("a")).ok();
                assert_eq!(before.as_deref(), keep.then_some("old"), "{interrupted}");
            }
            assert!(!member.stage().exists() && !member.file(OLD).exists());
            fs::remove_dir_all(&data).unwrap();
        }
    }

    /// Creates a folder with one record in each of these segments of its only shard.
    fn journal(name: &str, segments: u64) -> PathBuf {
        let data = std::env::temp_dir().join(format!("pitlane-member-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(data.join("journal/shard-00")).unwrap();
        for number in 1..=segments {
            let owner = Owner { identity: 7, shard: 0, shards: 1 };
            let after = SegmentLink { number: number - 1, end: 0, header_sum: 0, chain: 0 };
            let (first, time, digest, durable, reference) = (number, 0, 0, 0, 0);
            let header = Header {
                owner,
                rules: RULES,
                boot: 1,
                number,
                first,
                time,
                digest,
                durable,
                after,
                reference,
            };
            let mut bytes = header.encode().0.to_vec();
            let record = JournalRecord { seq: number, time: 0, lag: 0, kind: kind::COMMAND, payload: b"x" };
            let mut out = vec![0; bytes_of(1)];
            record.encode(owner.salt(number), &mut out);
            bytes.extend(out);
            fs::write(data.join(segment(number)), bytes).unwrap();
        }
        data
    }

    fn segment(number: u64) -> String {
        format!("journal/shard-00/{number:012}.seg")
    }

    #[test]
    fn all_records_of_a_copy_count_as_acknowledged_from_the_moment_when_it_leads() {
        let data = journal("copy", 2);
        let mut member = GroupMember::open(&data).unwrap();
        member.set_role(FolderRole::Follows).unwrap();
        member.lead(3, 17, Takeover { is_copy: true, released: false }).unwrap();
        drop(member);
        let member = GroupMember::open(&data).unwrap();
        assert_eq!(member.role, FolderRole::Leads { epoch: 3 });
        for is_replicated in [true, false] {
            assert_eq!(member.acknowledged_extents(is_replicated).unwrap(), overlap::extents(&data).unwrap());
        }
        fs::remove_dir_all(&data).unwrap();
    }

    #[test]
    fn after_a_loss_of_power_every_record_may_be_acknowledged() {
        let data = journal("power", 2);
        let mut member = GroupMember::open(&data).unwrap();
        member.set_role(FolderRole::Leads { epoch: 3 }).unwrap();
        let all = overlap::extents(&data).unwrap();
        let end = all[&segment(1)];
        let first = Extents::from([(segment(1), end)]);
        let boot = Disk::Real.boot();
        // The machine that wrote the file, and whether leaders wait for the broker.
        for (boot, is_replicated, expected) in
            [(boot, true, &first), (boot ^ 1, true, &all), (boot ^ 1, false, &first)]
        {
            let ends = vec![(segment(1), end)];
            Acked { epoch: 3, lead: 1, seq: 9, boot: Some(boot), sent_at: None, ends }.write(&data).unwrap();
            assert_eq!(&member.acknowledged_extents(is_replicated).unwrap(), expected);
        }
        fs::remove_dir_all(&data).unwrap();
    }
}
