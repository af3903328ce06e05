//! Small values that persist between starts, one file (a note) each, on disk before they are used.
//! Meant for values that change rarely, because each write costs a sync.

use std::io;
use std::path::{Path, PathBuf};

use pitlane_engine::desk::IdBlock;

use super::disk::Disk;
use super::fault::{Fault, FaultKind};

/// Longest key in bytes; the key is part of a file name.
const KEY_BYTES_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct JournalMetadata {
    disk: Disk,
    folder: PathBuf,
}

impl JournalMetadata {
    pub fn open(disk: &Disk, data: &Path) -> Result<JournalMetadata, Fault> {
        let folder = data.join("notes");
        disk.make_folder(&folder).map_err(Fault::io(&folder))?;
        Ok(JournalMetadata { disk: disk.clone(), folder })
    }

    /// Returns the last value stored under this key, or `None` if there never was one. A damaged
    /// note is an error, not `None`.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        let path = self.path_of(key);
        let mut bytes = match self.disk.read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::new(&path, 0, FaultKind::Io(error))),
        };
        let Some((value, sum)) = bytes.split_last_chunk::<4>() else {
            return Err(Fault::new(&path, 0, FaultKind::StateDamaged("the note is cut short".into())));
        };
        if crc32c::crc32c(value).to_le_bytes() != *sum {
            return Err(Fault::new(&path, 0, FaultKind::StateDamaged("the note is damaged".into())));
        }
        bytes.truncate(bytes.len() - 4);
        Ok(Some(bytes))
    }

    /// Stores a value, on disk when this returns. After a crash the old or the new value exists.
    pub fn put(&self, key: &str, value: &[u8]) -> Result<(), Fault> {
        let path = self.path_of(key);
        let mut bytes = value.to_vec();
        bytes.extend_from_slice(&crc32c::crc32c(value).to_le_bytes());
        self.disk.put(&path, &bytes).map_err(Fault::io(&path))
    }

    /// Returns the last number stored under this key.
    pub fn number(&self, key: &str) -> Result<Option<u64>, Fault> {
        let Some(bytes) = self.get(key)? else { return Ok(None) };
        let number = bytes.as_slice().try_into().map_err(|_| {
            Fault::new(&self.path_of(key), 0, FaultKind::StateDamaged("the note is not a number".into()))
        })?;
        Ok(Some(u64::from_le_bytes(number)))
    }

    /// Reserves the next `count` numbers under this key. They are taken when this returns, used or
    /// not, and are never handed out again.
    pub fn reserve(&self, key: &str, count: u64) -> Result<IdBlock, Fault> {
        let next = self.number(key)?.unwrap_or(1);
        let end = next.checked_add(count).ok_or_else(|| {
            Fault::new(&self.path_of(key), 0, FaultKind::StateDamaged("there are no numbers left".into()))
        })?;
        self.put(key, &end.to_le_bytes())?;
        Ok(IdBlock { next, end })
    }

    fn path_of(&self, key: &str) -> PathBuf {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        assert!(!key.is_empty() && key.len() <= KEY_BYTES_MAX, "a key has some letters");
        assert!(key.chars().all(plain), "a key is a file name everywhere");
        self.folder.join(format!("{key}.note"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_disk::Simulated;
    use super::*;

    #[test]
    fn a_stored_value_survives_any_crash() {
        for fuse in 0..20 {
            let simulated = Simulated::new(fuse);
            let disk = Disk::Simulated(simulated.clone());
            let notes = JournalMetadata::open(&disk, Path::new("data")).unwrap();
            notes.put("a", b"one").unwrap();
            simulated.light_fuse(fuse);
            notes.put("a", b"two").unwrap();
            let after = simulated.wreck().unwrap_or(simulated).power_loss();
            let notes = JournalMetadata::open(&Disk::Simulated(after), Path::new("data")).unwrap();
            let found = notes.get("a").unwrap().unwrap();
            assert!(found == b"two" || fuse < 4 && found == b"one", "{fuse}: {found:?}");
        }
    }

    #[test]
    fn numbers_are_handed_out_once() {
        let simulated = Simulated::new(1);
        let notes = JournalMetadata::open(&Disk::Simulated(simulated.clone()), Path::new("data")).unwrap();
        assert_eq!(notes.reserve("orders", 100).unwrap(), IdBlock { next: 1, end: 101 });
        let again =
            JournalMetadata::open(&Disk::Simulated(simulated.power_loss()), Path::new("data")).unwrap();
        assert_eq!(again.reserve("orders", 50).unwrap(), IdBlock { next: 101, end: 151 });
        assert_eq!(again.reserve("execs", 50).unwrap(), IdBlock { next: 1, end: 51 });
    }

    #[test]
    fn a_damaged_note_is_reported() {
        let simulated = Simulated::new(1);
        let notes = JournalMetadata::open(&Disk::Simulated(simulated.clone()), Path::new("data")).unwrap();
        notes.put("a", b"one").unwrap();
        assert_eq!(notes.get("b").unwrap(), None);
        simulated.meddle(Path::new("data/notes/a.note"), |bytes| bytes[0] ^= 1);
        let fault = notes.get("a").unwrap_err().to_string();
        assert!(fault.contains("damaged"), "{fault}");
    }
}
