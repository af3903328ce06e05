//! Reference data in the journal: one file for each set, named by the hash of its bytes, kept while
//! a snapshot or a segment needs it.

use std::collections::{BTreeMap, BTreeSet};
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

/// Returns the configured reference data, merged with everything that the shards knew before, and
/// how they differ from that.
pub(crate) fn succeed<'a>(
    new: &RefData,
    known: impl Iterator<Item = &'a RefData>,
    folder: &Path,
) -> Result<(RefData, Option<String>), Fault> {
    let (mut reference, mut changes) = (new.clone(), None);
    for old in known.filter(|old| *old != new) {
        reference = reference.succeed(old).map_err(|errors| {
            let text = errors.iter().map(|error| error.to_string()).collect::<Vec<_>>().join("; ");
            Fault::new(folder, 0, FaultKind::ReferenceConflict(text))
        })?;
        if reference != *old {
            changes = changes.or_else(|| Some(difference(old, new)));
        }
    }
    Ok((reference, changes))
}

/// Describes how one set differs from an earlier one: rows of each table that are new, gone or
/// changed.
fn difference(old: &RefData, new: &RefData) -> String {
    fn by_id<T, I: Ord>(rows: &[T], id: impl Fn(&T) -> I) -> BTreeMap<I, &T> {
        rows.iter().map(|row| (id(row), row)).collect()
    }
    fn count<T: PartialEq, I: Ord>(
        table: &str,
        old: &[T],
        new: &[T],
        id: impl Fn(&T) -> I,
    ) -> Option<String> {
        let (old, new) = (by_id(old, &id), by_id(new, &id));
        let added = new.keys().filter(|id| !old.contains_key(*id)).count();
        let gone = old.keys().filter(|id| !new.contains_key(*id)).count();
        let changed = new.iter().filter(|(id, row)| old.get(*id).is_some_and(|was| was != *row)).count();
        let is_same = added + gone + changed == 0;
        (!is_same).then(|| format!("{table}: {added} new, {gone} gone, {changed} changed"))
    }
    let tables = [
        count("exchanges", old.exchanges(), new.exchanges(), |row| row.id),
        count("families", old.families(), new.families(), |row| row.id),
        count("securities", old.securities(), new.securities(), |row| row.id),
        count("accounts", old.accounts(), new.accounts(), |row| row.id),
        count("strategies", old.strategies(), new.strategies(), |row| row.id),
    ];
    tables.into_iter().flatten().collect::<Vec<_>>().join("; ")
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
