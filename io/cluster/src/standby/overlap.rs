//! Compares the journals of two folders, record by record: which of them contains the other.
//!
//! Only whole, valid records count. A leader's segments are preallocated with zeroes, and those of
//! a machine that lost its power may end in garbage.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use pitlane_engine::index::index_usize;
use pitlane_journal::disk::Disk;
use pitlane_journal::header::{HEADER_BYTES, Header};
use pitlane_journal::record::{DecodedRecord, JournalRecord};
use pitlane_journal::scan::{segment_number, segment_path};

use super::position::Acked;

/// Segments with their valid bytes, by path within the data folder.
pub(super) type Extents = BTreeMap<String, u64>;

/// Returns whether every record of folder `a`, as far as `known` says, is in folder `b` too.
///
/// A segment before the first one of `b` was removed after a snapshot. Then a later segment that
/// both have must show that they share the same history.
pub(super) fn is_held(a: &Path, b: &Path, known: &Extents) -> io::Result<bool> {
    for shard in shards(known) {
        let ours = || known.iter().filter(|(path, end)| folder_of(path) == shard && **end > 0);
        let theirs = segments(b, shard)?;
        let first = theirs.first().copied().unwrap_or(u64::MAX);
        let mut has_common = false;
        for (path, &end) in ours() {
            if number_of(path) < first && !theirs.is_empty() {
                continue;
            }
            let end = index_usize(end);
            let (one, other) = (fs::read(a.join(path))?, read(&b.join(path))?);
            if valid_end(&other, number_of(path)) < end || one.get(..end) != other.get(..end) {
                return Ok(false);
            }
            has_common = true;
        }
        if !has_common && ours().next().is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns all valid records of a folder.
pub(super) fn extents(folder: &Path) -> io::Result<Extents> {
    let mut extents = Extents::new();
    let journal = folder.join("journal");
    for name in Disk::Real.list(&journal)?.iter().filter(|name| name.starts_with("shard-")) {
        for file in Disk::Real.list(&journal.join(name))? {
            if let Some(number) = segment_number(&file) {
                let end = valid_end(&read(&journal.join(name).join(&file))?, number);
                extents.insert(format!("journal/{name}/{file}"), end as u64);
            }
        }
    }
    Ok(extents)
}

/// Returns the last segment of each shard that has a record, and the end of its last record.
pub(super) fn ends(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let journal = folder.join("journal");
    let mut ends = Vec::new();
    for name in Disk::Real.list(&journal)?.iter().filter(|name| name.starts_with("shard-")) {
        let shard = format!("journal/{name}");
        for number in segments(folder, &shard)?.into_iter().rev() {
            let path = segment_path(Path::new(&shard), number);
            let end = valid_end(&read(&folder.join(&path))?, number);
            if end > 0 {
                ends.push((path.display().to_string(), end as u64));
                break;
            }
        }
    }
    Ok(ends)
}

/// Returns how many records of folder `a` are not in folder `b`. What `b` has removed after a
/// snapshot is not counted.
pub(super) fn count_lacking(a: &Path, b: &Path) -> io::Result<usize> {
    let mut lacking = 0;
    for path in extents(a)?.keys() {
        let first = segments(b, folder_of(path))?.first().copied().unwrap_or_default();
        if number_of(path) < first {
            continue;
        }
        let (one, other) = (read(&a.join(path))?, read(&b.join(path))?);
        let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        lacking += record_ends(&one, number_of(path)).into_iter().filter(|end| *end > same).count();
    }
    Ok(lacking)
}

/// Returns what a leader may have acknowledged to clients: those of its records that the broker had
/// acknowledged.
pub(super) fn acknowledged(folder: &Path, acked: &Acked) -> io::Result<Extents> {
    let mut extents = extents(folder)?;
    extents.retain(|path, end| {
        let last = acked.ends.iter().find(|(last, _)| folder_of(last) == folder_of(path));
        match last {
            Some((last, acked)) if last == path => *end = (*end).min(*acked),
            Some((last, _)) if number_of(path) < number_of(last) => {}
            Some(_) | None => return false,
        }
        true
    });
    Ok(extents)
}

/// Returns the bytes up to the end of the last valid record; zero if there is no record.
fn valid_end(bytes: &[u8], number: u64) -> usize {
    record_ends(bytes, number).last().copied().unwrap_or_default()
}

/// Returns the end of each valid record.
fn record_ends(bytes: &[u8], number: u64) -> Vec<usize> {
    let mut ends = Vec::new();
    let Ok((header, _)) = Header::decode(bytes.get(..HEADER_BYTES).unwrap_or_default()) else { return ends };
    let salt = header.owner.salt(number);
    let mut end = HEADER_BYTES;
    while let Some(DecodedRecord::Record { bytes: taken, .. }) =
        bytes.get(end..).map(|rest| JournalRecord::decode(salt, rest))
    {
        end += taken;
        ends.push(end);
    }
    ends
}

fn shards(extents: &Extents) -> Vec<&str> {
    let mut shards: Vec<&str> = extents.keys().map(|path| folder_of(path)).collect();
    shards.dedup();
    shards
}

fn segments(folder: &Path, shard: &str) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> =
        Disk::Real.list(&folder.join(shard))?.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

pub(super) fn number_of(path: &str) -> u64 {
    path.rsplit_once('/').and_then(|(_, name)| segment_number(name)).unwrap_or(0)
}

/// Reads a file; a missing file is empty.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use pitlane_journal::header::{Owner, RULES, SegmentLink};
    use pitlane_journal::record::{bytes_of, kind};

    use super::*;

    const SHARD: &str = "journal/shard-00";

    fn path(number: u64) -> String {
        format!("{SHARD}/{number:012}.seg")
    }

    /// Returns a segment with these payloads, and zeroes behind them.
    fn segment(number: u64, payloads: &[&[u8]]) -> Vec<u8> {
        let owner = Owner { identity: 7, shard: 0, shards: 1 };
        let after = SegmentLink { number: number - 1, end: 0, header_sum: 0, chain: 0 };
        let (first, time, digest, durable, reference) = (1, 0, 0, 0, 0);
        let header =
            Header { owner, rules: RULES, boot: 1, number, first, time, digest, durable, after, reference };
        let mut bytes = header.encode().0.to_vec();
        for (at, payload) in payloads.iter().enumerate() {
            let record = JournalRecord { seq: at as u64 + 1, time: 0, lag: 0, kind: kind::COMMAND, payload };
            let mut out = vec![0; bytes_of(payload.len())];
            record.encode(owner.salt(number), &mut out);
            bytes.extend(out);
        }
        bytes.resize(bytes.len() + 256, 0);
        bytes
    }

    fn folder(name: &str, segments: &[(u64, &[&[u8]])]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("pitlane-overlap-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join(SHARD)).unwrap();
        for (number, payloads) in segments {
            fs::write(folder.join(path(*number)), segment(*number, payloads)).unwrap();
        }
        folder
    }

    fn holds(b: &[(u64, &[&[u8]])], a: &[(u64, &[&[u8]])]) -> bool {
        let (one, other) = (folder("a", a), folder("b", b));
        is_held(&one, &other, &extents(&one).unwrap()).unwrap()
    }

    #[test]
    fn a_journal_contains_another_if_it_has_each_of_its_records() {
        let [short, long, other]: [&[&[u8]]; 3] = [&[b"x"], &[b"x", b"y"], &[b"x", b"z"]];
        assert!(holds(&[(1, long)], &[(1, short)]));
        assert!(holds(&[(1, long)], &[(1, long)]));
        assert!(!holds(&[(1, short)], &[(1, long)]), "it is shorter");
        assert!(!holds(&[(1, other)], &[(1, long)]), "it has diverged");
        assert!(!holds(&[(1, long)], &[(1, long), (2, short)]), "a segment is missing at the end");
        assert!(holds(&[(1, long)], &[(1, long), (2, &[])]), "a segment allocated in advance has no records");
        assert!(!holds(&[], &[(1, short)]));
        assert!(holds(&[(1, short)], &[]));
        // The first was removed after a snapshot; the second shows that it is the same journal.
        assert!(holds(&[(2, long)], &[(1, long), (2, short)]));
        assert!(!holds(&[(2, other)], &[(1, long), (2, long)]));
        assert!(!holds(&[(3, long)], &[(1, long), (2, long)]), "nothing shows that it is the same");
    }

    #[test]
    fn only_acknowledged_records_of_a_leaders_journal_count() {
        let data = folder("led", &[(1, &[b"x", b"y"]), (2, &[b"x", b"y", b"z"]), (3, &[b"x"])]);
        let record = bytes_of(1) as u64;
        let end = HEADER_BYTES as u64 + 2 * record;
        let acked = Acked { epoch: 1, lead: 1, seq: 9, ends: vec![(path(2), end)], ..Acked::default() };
        let known = acknowledged(&data, &acked).unwrap();
        assert_eq!(known, Extents::from([(path(1), end), (path(2), end)]));
        assert!(acknowledged(&data, &Acked::default()).unwrap().is_empty());
        let stream = folder("stream", &[(1, &[b"x", b"y"]), (2, &[b"x", b"y", b"other"])]);
        assert!(is_held(&data, &stream, &known).unwrap());
        assert!(!is_held(&data, &stream, &extents(&data).unwrap()).unwrap());
        // The second segment has diverged in its last record, and the third is not there.
        assert_eq!(count_lacking(&data, &stream).unwrap(), 2);
        assert_eq!(count_lacking(&data, &data).unwrap(), 0);
    }

    #[test]
    fn the_ends_of_a_folder_are_those_of_the_last_segments_with_records() {
        let data = folder("ends", &[(1, &[b"x", b"y"]), (2, &[b"x"]), (3, &[])]);
        let end = (HEADER_BYTES + bytes_of(1)) as u64;
        assert_eq!(ends(&data).unwrap(), vec![(path(2), end)]);
        let acked = Acked { ends: ends(&data).unwrap(), ..Acked::default() };
        let with_records = extents(&data).unwrap().into_iter().filter(|(_, end)| *end > 0);
        assert_eq!(acknowledged(&data, &acked).unwrap(), with_records.collect());
    }
}
