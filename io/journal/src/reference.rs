//! Reference data in the journal: one file for each set, named by the hash of its bytes, kept while
//! a snapshot or a segment needs it.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_engine::refdata::RefData;
use xxhash_rust::xxh3::xxh3_64;

use super::disk::Disk;
use super::fault::{Fault, FaultKind};

/// Returns the name of a set, which is the hash of its bytes.
pub fn name_of(reference: &RefData) -> u64 {
    let mut bytes = Vec::new();
    reference.save(&mut bytes);
    xxh3_64(&bytes)
}

/// Stores the set, unless it exists already, and returns its name.
pub(crate) fn keep(disk: &Disk, folder: &Path, reference: &RefData) -> Result<u64, Fault> {
    let mut bytes = Vec::new();
    reference.save(&mut bytes);
    let name = xxh3_64(&bytes);
    let path = path_of(folder, name);
    if disk.read(&path).is_ok_and(|found| found == bytes) {
        // The process that stored the set may have ended before its name was on disk.
        disk.sync_folder(folder).map_err(Fault::io(folder))?;
        return Ok(name);
    }
    disk.make_folder(folder).and_then(|()| disk.put(&path, &bytes)).map_err(Fault::io(&path))?;
    Ok(name)
}

pub(crate) fn read(disk: &Disk, folder: &Path, name: u64) -> Result<Arc<RefData>, Fault> {
    let path = path_of(folder, name);
    let bytes = disk.read(&path).map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        let what = if is_missing { FaultKind::ReferenceMissing { name } } else { FaultKind::Io(error) };
        Fault::new(&path, 0, what)
    })?;
    if xxh3_64(&bytes) != name {
        return Err(Fault::new(&path, 0, FaultKind::ReferenceDamaged));
    }
    let reference = RefData::load(&bytes);
    reference.map(Arc::new).map_err(|damage| Fault::new(&path, damage.at, FaultKind::ReferenceDamaged))
}

/// Returns the names of all stored sets; none if the folder cannot be read.
pub(crate) fn names(disk: &Disk, folder: &Path) -> BTreeSet<u64> {
    let names = disk.list(folder).unwrap_or_default();
    names.iter().filter_map(|name| u64::from_str_radix(name, 16).ok()).collect()
}

/// Removes these sets; sets that are already gone are ignored.
pub(crate) fn remove(disk: &Disk, folder: &Path, names: &[u64]) -> io::Result<()> {
    for name in names {
        match disk.remove(&path_of(folder, *name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn path_of(folder: &Path, name: u64) -> PathBuf {
    folder.join(format!("{name:016x}"))
}
