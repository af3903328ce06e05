//! Scans the segments of a shard: finds which segments follow each other, and reads their records.
//!
//! ```text
//! 1 ◄── 2 ◄── 3        4 was abandoned after a failed sync, or lost its beginning in a power loss:
//!              ◄── 5   5 continues 3, and records where 3 ends
//! ```
//!
//! The newest intact header leads back through all others. A segment is read up to the end that the
//! next one records; the last segment is read up to the first invalid record. The bytes behind that
//! position decide whether it is the end or damage. While the machine has not rebooted, nothing
//! that was written can be missing, so a valid record behind an invalid one is damage. After a
//! reboot any part of the unsynced data may be missing; a valid record behind an invalid one is
//! damage if it was written when the invalid one was known to be on disk.

use std::path::{Path, PathBuf};

use pitlane_engine::codec::COMMAND_BYTES_MAX;
use pitlane_engine::index::index_usize;

use super::disk::Disk;
use super::fault::{Fault, FaultKind};
use super::header::{HEADER_BYTES, Header, NoHeader, Owner, SegmentLink};
use super::record::{DecodedRecord, JournalRecord, PAYLOAD_BYTES_MAX, bytes_of};
use super::writer::{JournalPosition, chained};

/// Extension of a segment's file name.
const ENDING: &str = "seg";

pub fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:012}.{ENDING}"))
}

pub fn segment_number(name: &str) -> Option<u64> {
    let (number, ending) = name.split_once('.')?;
    (ending == ENDING).then(|| number.parse().ok()).flatten()
}

/// One segment that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFile {
    pub path: PathBuf,
    pub header: Header,
    pub header_sum: u32,
    /// End of this segment as recorded by the next one; `None` for the last segment.
    pub next: Option<SegmentLink>,
    pub bytes: u64,
}

/// All segments of a shard in order.
#[derive(Clone, Debug, Default)]
pub struct JournalScan {
    pub pieces: Vec<SegmentFile>,
    /// Segments that a later one made void.
    pub void: Vec<PathBuf>,
    /// Segments allocated in advance and never used, or torn before they contained a record that
    /// counts.
    pub blank: Vec<PathBuf>,
    /// Segments that continue one whose header was lost in a power loss. None of their records may
    /// be known to have been on disk.
    pub orphans: Vec<SegmentFile>,
    /// Number of the segment that the first piece continues, if it is missing although older ones
    /// exist: either it was removed as no longer needed (removal has no fixed order), or it is
    /// lost.
    pub gap: Option<u64>,
    /// Highest segment number found.
    pub number: u64,
}

/// A torn end of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    pub path: PathBuf,
    pub offset: u64,
    /// Bytes behind the offset, up to the last one that is not zero.
    pub bytes: u64,
    /// Whole records behind the offset, which were never acknowledged as stored.
    pub records: u64,
}

/// Reads the headers in a shard's folder. `rebooted` states whether the machine was rebooted since
/// the last process wrote.
pub fn survey(disk: &Disk, folder: &Path, owner: &Owner, rebooted: bool) -> Result<JournalScan, Fault> {
    let mut scanned = JournalScan::default();
    let mut sound: Vec<SegmentFile> = Vec::new();
    let names = disk.list(folder).map_err(Fault::io(folder))?;
    for number in names.iter().filter_map(|name| segment_number(name)) {
        let path = segment_path(folder, number);
        scanned.number = scanned.number.max(number);
        let head = disk.read_head(&path, HEADER_BYTES).map_err(Fault::io(&path))?;
        match Header::decode(&head) {
            Ok((header, header_sum)) => {
                check_owner(&path, &header, owner, number)?;
                let bytes = disk.len(&path).map_err(Fault::io(&path))?;
                sound.push(SegmentFile { path, header, header_sum, next: None, bytes });
            }
            Err(NoHeader::Format(format)) => return Err(Fault::new(&path, 8, FaultKind::Format(format))),
            Err(NoHeader::Blank | NoHeader::Damaged) => {
                let bytes = disk.read(&path).map_err(Fault::io(&path))?;
                if had_header(owner.salt(number), &bytes, rebooted) {
                    return Err(Fault::new(&path, 0, FaultKind::HeaderDamaged));
                }
                scanned.blank.push(path);
            }
        }
    }
    scanned.link(folder, sound, rebooted)?;
    Ok(scanned)
}

/// Returns whether a segment had a header. The header is written before the records, so any record
/// proves it; after a reboot, a record proves that the header was on disk if it shows that another
/// record of the segment was.
fn had_header(salt: u32, bytes: &[u8], rebooted: bool) -> bool {
    // While the machine has not rebooted, only a header that was being written can be torn.
    if !rebooted && bytes.iter().skip(HEADER_BYTES).any(|byte| *byte != 0) {
        return true;
    }
    let mut first = None;
    records_behind(salt, bytes, 0).any(|record| {
        let first = *first.get_or_insert(record.seq);
        !rebooted || record.durable() >= first
    })
}

fn check_owner(path: &Path, header: &Header, owner: &Owner, number: u64) -> Result<(), Fault> {
    let found = header.owner;
    if found.identity != owner.identity || found.shard != owner.shard || header.number != number {
        return Err(Fault::new(path, 16, FaultKind::Foreign));
    }
    if found.shards != owner.shards {
        let what = FaultKind::Shards { journal: found.shards, asked: owner.shards };
        return Err(Fault::new(path, 114, what));
    }
    Ok(())
}

impl JournalScan {
    /// Links the segments, from the last one back to the first.
    fn link(&mut self, folder: &Path, mut sound: Vec<SegmentFile>, rebooted: bool) -> Result<(), Fault> {
        sound.sort_by_key(|piece| piece.header.number);
        let Some(mut piece) = sound.pop() else { return Ok(()) };
        loop {
            let after = piece.header.after;
            // This segment made all segments in between void.
            while sound.last().is_some_and(|other| other.header.number > after.number) {
                self.void.extend(sound.pop().map(|other| other.path));
            }
            let before = sound.pop_if(|other| other.header.number == after.number);
            if before.is_none() && rebooted && self.blank.contains(&segment_path(folder, after.number)) {
                self.orphans.append(&mut self.pieces);
                self.orphans.push(piece);
                let Some(last) = sound.pop() else { return Ok(()) };
                piece = last;
                continue;
            }
            if before.is_none() && after.number != 0 && !sound.is_empty() {
                self.gap = Some(after.number);
                self.void.extend(sound.drain(..).map(|old| old.path));
            }
            if let Some(before) = &before
                && before.header_sum != after.header_sum
            {
                return Err(Fault::new(&piece.path, 104, FaultKind::Chain { number: after.number }));
            }
            self.pieces.push(piece);
            let Some(mut before) = before else { break };
            before.next = Some(after);
            piece = before;
        }
        self.pieces.reverse();
        Ok(())
    }

    /// Returns the first record of all segments.
    pub fn first(&self) -> Option<u64> {
        self.pieces.first().map(|piece| piece.header.first)
    }

    /// Returns the piece that contains the record after `seq`, or would contain it.
    pub fn index_of(&self, seq: u64) -> usize {
        self.pieces.iter().rposition(|piece| piece.header.first <= seq + 1).unwrap_or(0)
    }
}

/// Receives the records that [`walk`] reads.
pub trait RecordVisitor {
    /// Called at the start of a segment; the next record has number `header.first`.
    fn segment(&mut self, piece: &SegmentFile) -> Result<(), Fault>;
    fn record(&mut self, piece: &SegmentFile, offset: usize, record: &JournalRecord<'_>)
    -> Result<(), Fault>;
}

/// The result of reading the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walked {
    pub position: JournalPosition,
    pub torn: Option<Torn>,
    /// Segments behind the torn one that no longer count.
    pub void: Vec<PathBuf>,
}

/// Reads and checks all records from the given piece on, up to the end or the first fault. All
/// records delivered before a fault are valid.
pub fn walk(
    disk: &Disk,
    scanned: &JournalScan,
    from: usize,
    boot: u128,
    visitor: &mut impl RecordVisitor,
) -> Result<Walked, Fault> {
    let mut walked = Walked::default();
    let orphans: Vec<&SegmentFile> = scanned.orphans.iter().collect();
    if let (true, Some(orphan)) = (scanned.pieces.is_empty(), orphans.first())
        && count_later(disk, &orphans, 1)?.is_none()
    {
        // Not even the first record is there, although it was on disk.
        return Err(Fault::new(&orphan.path, 88, FaultKind::Missing { number: orphan.header.after.number }));
    }
    for (at, piece) in scanned.pieces.iter().enumerate().skip(from) {
        let bytes = disk.read(&piece.path).map_err(Fault::io(&piece.path))?;
        let goes_on = walked.position.link.number == 0 || walked.position.seq + 1 == piece.header.first;
        if !goes_on {
            return Err(Fault::new(&piece.path, 56, FaultKind::Chain { number: piece.header.after.number }));
        }
        visitor.segment(piece)?;
        let read = read_piece(piece, &bytes, visitor)?;
        walked.position = JournalPosition { seq: read.seq, link: read.link };
        let whole = match piece.next {
            // The bytes behind the recorded end may be anything.
            Some(next) => next.end == read.link.end,
            None => scanned.orphans.is_empty() && bytes[read.at..].iter().all(|&byte| byte == 0),
        };
        if whole {
            if piece.next.is_some_and(|next| next.chain != read.link.chain) {
                return Err(Fault::new(&piece.path, read.at, FaultKind::RecordDamaged { after: read.seq }));
            }
            continue;
        }
        let rest: Vec<&SegmentFile> = scanned.pieces[at + 1..].iter().chain(&scanned.orphans).collect();
        walked.torn = Some(judge(disk, piece, &bytes, &read, &rest, boot)?);
        walked.void = rest.iter().map(|piece| piece.path.clone()).collect();
        break;
    }
    Ok(walked)
}

struct Read {
    seq: u64,
    at: usize,
    link: SegmentLink,
}

/// Reads one segment up to its end.
fn read_piece(piece: &SegmentFile, bytes: &[u8], visitor: &mut impl RecordVisitor) -> Result<Read, Fault> {
    let salt = piece.header.owner.salt(piece.header.number);
    let end = piece.next.map_or(bytes.len(), |next| index_usize(next.end).min(bytes.len()));
    let mut read = Read {
        seq: piece.header.first - 1,
        at: HEADER_BYTES.min(end),
        link: SegmentLink { number: piece.header.number, end: 0, header_sum: piece.header_sum, chain: 0 },
    };
    while let DecodedRecord::Record { record, bytes: taken, sum } =
        JournalRecord::decode(salt, &bytes[read.at..end])
    {
        if record.seq != read.seq + 1 {
            break;
        }
        visitor.record(piece, read.at, &record)?;
        read.seq = record.seq;
        read.at += taken;
        read.link.chain = chained(read.link.chain, sum);
    }
    read.link.end = read.at as u64;
    Ok(read)
}

/// Judges an invalid record after `read`: returns what is lost, or a fault if the record was on
/// disk.
fn judge(
    disk: &Disk,
    piece: &SegmentFile,
    bytes: &[u8],
    read: &Read,
    rest: &[&SegmentFile],
    boot: u128,
) -> Result<Torn, Fault> {
    let fault = || Fault::new(&piece.path, read.at, FaultKind::RecordDamaged { after: read.seq });
    let lost = read.seq + 1;
    let same_boot = |header: &Header| header.boot == boot;
    let salt = piece.header.owner.salt(piece.header.number);
    let mut torn = Torn { path: piece.path.clone(), offset: read.at as u64, bytes: 0, records: 0 };
    for record in records_behind(salt, bytes, read.at) {
        if record.seq > lost && (same_boot(&piece.header) || record.durable() >= lost) {
            return Err(fault());
        }
        torn.records += 1;
    }
    torn.bytes = bytes[read.at..].iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
    if same_boot(&piece.header) && (!rest.is_empty() || torn.bytes > torn_bytes_max(read)) {
        return Err(fault());
    }
    let (records, bytes) = count_later(disk, rest, lost)?.ok_or_else(fault)?;
    Ok(Torn { records: torn.records + records, bytes: torn.bytes + bytes, ..torn })
}

/// Returns the most bytes that a killed process can have torn: those of the one record it was
/// writing. The first record of a segment may be a start, which is longer than a command.
fn torn_bytes_max(read: &Read) -> u64 {
    let payload = if read.at == HEADER_BYTES { PAYLOAD_BYTES_MAX } else { COMMAND_BYTES_MAX };
    bytes_of(payload) as u64
}

/// Counts records and bytes of segments behind a lost record; returns `None` if one of them shows
/// that it was on disk.
fn count_later(disk: &Disk, rest: &[&SegmentFile], lost: u64) -> Result<Option<(u64, u64)>, Fault> {
    let mut counted = (0, 0);
    for later in rest {
        let bytes = disk.read(&later.path).map_err(Fault::io(&later.path))?;
        let salt = later.header.owner.salt(later.header.number);
        let mut records = 0;
        for record in records_behind(salt, &bytes, HEADER_BYTES) {
            if record.durable() >= lost {
                return Ok(None);
            }
            records += 1;
        }
        if later.header.durable >= lost {
            return Ok(None);
        }
        counted = (counted.0 + records, counted.1 + bytes.len() as u64);
    }
    Ok(Some(counted))
}

/// Iterates over every whole record from `at` on, at any position.
fn records_behind(salt: u32, bytes: &[u8], at: usize) -> impl Iterator<Item = JournalRecord<'_>> {
    let mut at = at.next_multiple_of(8);
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if let DecodedRecord::Record { record, bytes: taken, .. } =
                JournalRecord::decode(salt, &bytes[at..])
            {
                at += taken;
                return Some(record);
            }
            at += 8;
        }
        None
    })
}
