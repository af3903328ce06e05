//! Identity of a journal: a small file in its top folder, created by the first start.

use std::fmt::Write as _;

use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::{Folders, JournalSetup, scan};

/// Reads the identity of the journal and checks it against the configuration, or creates it.
pub(super) fn identify(setup: &JournalSetup<'_>, folders: &Folders) -> Result<u128, Fault> {
    let path = folders.identity();
    let asked = (setup.settings.instance, u16::from(setup.shards));
    let Some(found) = read_identity(setup.disk, folders)? else {
        check_absence(setup.disk, folders)?;
        let identity = setup.disk.random();
        let text = write_identity(identity, asked.0, asked.1);
        setup.disk.put(&path, text.as_bytes()).map_err(Fault::io(&path))?;
        return Ok(identity);
    };
    if found.shards != asked.1 {
        return Err(Fault::new(&path, 0, FaultKind::Shards { journal: found.shards, asked: asked.1 }));
    }
    if found.instance != asked.0 {
        return Err(Fault::new(&path, 0, FaultKind::Instance { journal: found.instance, asked: asked.0 }));
    }
    Ok(found.identity)
}

/// Notes that a first start writes before the journal exists: the time of the first venue
/// connection, and the start counter of the cluster member.
const EARLY_NOTES: [&str; 2] = ["venue-birth.note", "cluster-life.note"];

/// Checks that no journal was lost. The journal is created before all other notes, so if such notes
/// exist, there was a journal.
fn check_absence(disk: &Disk, folders: &Folders) -> Result<(), Fault> {
    let notes = disk.list(&folders.notes()).map_err(Fault::io(&folders.notes()))?;
    match notes.iter().any(|name| name.ends_with(".note") && !EARLY_NOTES.contains(&name.as_str())) {
        true => Err(Fault::new(&folders.journal(), 0, FaultKind::JournalMissing)),
        false => Ok(()),
    }
}

/// The owner of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalIdentity {
    pub identity: u128,
    pub instance: u64,
    pub shards: u16,
}

fn write_identity(identity: u128, instance: u64, shards: u16) -> String {
    let mut text =
        format!("pitlane journal\nidentity {identity:032x}\ninstance {instance}\nshards {shards}\n");
    let sum = crc32c::crc32c(text.as_bytes());
    let _ = writeln!(text, "sum {sum:08x}");
    text
}

/// Reads the identity, or returns `None` if there is no journal.
pub fn read_identity(disk: &Disk, folders: &Folders) -> Result<Option<JournalIdentity>, Fault> {
    let path = folders.identity();
    let bytes = match disk.read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A journal without its identity file is not an empty journal.
            let segments = disk.list(&folders.shard(0)).map_err(Fault::io(&path))?;
            return match segments.iter().any(|name| scan::segment_number(name).is_some()) {
                true => Err(Fault::new(&path, 0, FaultKind::IdentityDamaged)),
                false => Ok(None),
            };
        }
        Err(error) => return Err(Fault::new(&path, 0, FaultKind::Io(error))),
    };
    let parsed = std::str::from_utf8(&bytes).ok().and_then(parse_identity);
    parsed.map(Some).ok_or_else(|| Fault::new(&path, 0, FaultKind::IdentityDamaged))
}

fn parse_identity(text: &str) -> Option<JournalIdentity> {
    let mut lines = text.lines().skip(1);
    let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
    let identity = u128::from_str_radix(value("identity")?, 16).ok()?;
    let instance = value("instance")?.parse().ok()?;
    // A shard id has 8 bits, so a larger number is damage.
    let shards = value("shards")?.parse::<u8>().ok()?.into();
    (text == write_identity(identity, instance, shards)).then_some(JournalIdentity {
        identity,
        instance,
        shards,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::metadata::JournalMetadata;
    use crate::simulated_disk::Simulated;

    #[test]
    fn later_notes_without_a_journal_reveal_a_lost_journal() {
        let disk = Disk::Simulated(Simulated::new(1));
        let data = Path::new("data");
        let folders = Folders::new(data);
        let notes = JournalMetadata::open(&disk, data).unwrap();
        assert!(check_absence(&disk, &folders).is_ok(), "a folder that is new");
        for early in EARLY_NOTES {
            notes.put(early.trim_end_matches(".note"), b"1").unwrap();
        }
        assert!(check_absence(&disk, &folders).is_ok(), "a first start that was cut short");
        notes.put("orders", b"1").unwrap();
        let fault = check_absence(&disk, &folders).unwrap_err();
        assert!(matches!(fault.what, FaultKind::JournalMissing), "{fault}");
    }
}
