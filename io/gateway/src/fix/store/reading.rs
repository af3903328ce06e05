//! Reads a store: the sequence numbers of the newest intact slot, and the records of the ring.

use pitlane_engine::id::ShardId;
use pitlane_engine::index::index_usize;
use pitlane_engine::time::Timestamp;
use pitlane_journal::disk::PAGE_BYTES;
use pitlane_journal::{Fault, FaultKind, Level};
use pitlane_protocols::fix::store::{ReportedEvent, SequenceNumbers};

use super::{
    HEAD_BYTES, MAGIC, NAME_AT, NAME_BYTES_MAX, NUMBERS_SKIPPED, REPORTED_AT, RING_AT, SHARDS_MAX, SLOT_AT,
    SLOT_BYTES, StoreContent, StoreLocation, record_bytes,
};

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a file. An incomplete record at the end of the ring was never sent and is dropped; a file
/// without an intact slot, or of another session, is an error.
pub(super) fn read(location: &StoreLocation<'_>, bytes: &[u8]) -> Result<StoreContent, Fault> {
    let damaged = |at: usize, problem: &str| {
        Err(Fault::new(&location.path, at, FaultKind::StateDamaged(format!("the FIX store {problem}"))))
    };
    if bytes.len() <= RING_AT || bytes[..8] != MAGIC {
        return damaged(0, "is none");
    }
    let name = index_usize(u64_at(bytes, 24));
    if name > NAME_BYTES_MAX || bytes[NAME_AT..NAME_AT + name] != *location.name.as_bytes() {
        return damaged(NAME_AT, "belongs to another session");
    }
    let slot = |at: usize| {
        let slot = &bytes[at..at + SLOT_BYTES];
        // Older versions have left the rest empty.
        let is_whole = slot[52..] == [0; 12] || crc32c::crc32c(&slot[..60]) == u32_at(slot, 60);
        (is_whole && crc32c::crc32c(&slot[..48]) == u32_at(slot, 48))
            .then(|| [0, 8, 16, 24, 32, 40, 52].map(|at| u64_at(slot, at)))
    };
    let slots = [slot(SLOT_AT), slot(SLOT_AT + SLOT_BYTES)];
    let newest = slots.into_iter().flatten().max();
    let Some([_, next_target_msg_seq_num, next_sender_msg_seq_num, since, tail, head, answers_lost_before]) =
        newest
    else {
        return damaged(SLOT_AT, "has no numbers that can be read");
    };
    let mut content = StoreContent {
        numbers: SequenceNumbers {
            next_target_msg_seq_num,
            next_sender_msg_seq_num,
            since: Timestamp(since),
            answers_lost_before,
        },
        reported: Box::new([0; SHARDS_MAX]),
        messages: Vec::new(),
        lost_power: bytes[8..24] != location.disk.boot().to_le_bytes(),
        file_bytes: bytes.len().next_multiple_of(PAGE_BYTES),
    };
    let ring = &bytes[RING_AT..];
    // After a power loss the slots may be older than the records they refer to, if the ring may
    // have wrapped since.
    let begin =
        if content.lost_power && head > ring.len() as u64 / 2 { chain_begin(ring, tail) } else { tail };
    let end = read_ring(ring, begin, &mut content);
    for shard in 0..SHARDS_MAX {
        // After a power loss a newer value may have survived whose record, which is older, is lost.
        if !(content.lost_power && (end < head || content.reported[shard] > 0)) {
            content.reported[shard] = content.reported[shard].max(u64_at(bytes, REPORTED_AT + shard * 8));
        }
    }
    if let Some(last) = content.messages.last() {
        content.numbers.next_sender_msg_seq_num = content.numbers.next_sender_msg_seq_num.max(last.0 + 1);
    }
    if content.lost_power {
        content.numbers.next_sender_msg_seq_num += NUMBERS_SKIPPED;
        if !is_behind_journal(location.level, bytes[8..24] == [0; 16]) {
            content.numbers.answers_lost_before = content.numbers.next_sender_msg_seq_num;
        }
    }
    Ok(content)
}

/// Returns whether the journal has every answer whose number was saved, also after a loss of power
/// (or, in a copy, of the other machine). At a lower level the saved number may have survived and
/// the record of the answer not: the answer is lost then, because it is not requested again.
fn is_behind_journal(level: Level, is_copy: bool) -> bool {
    match level {
        Level::Replicated => true,
        Level::Disk => !is_copy,
        Level::Os | Level::None => false,
    }
}

/// Reads all records from this position on, and returns where they end.
fn read_ring(ring: &[u8], begin: u64, content: &mut StoreContent) -> u64 {
    let mut at = begin;
    while at < begin + ring.len() as u64 {
        match record_at(ring, at) {
            Some(RingItem::Padding(bytes)) => at += bytes,
            Some(RingItem::Record { number, cause, message }) => {
                if let Some(ReportedEvent { shard, seq }) = cause {
                    content.reported[shard.0 as usize] = content.reported[shard.0 as usize].max(seq);
                }
                content.messages.push((number, cause, message.to_vec()));
                at += record_bytes(message.len());
            }
            None => break,
        }
    }
    at
}

/// A valid item at a position of the stream.
enum RingItem<'a> {
    Padding(u64),
    Record { number: u64, cause: Option<ReportedEvent>, message: &'a [u8] },
}

fn record_at(ring: &[u8], at: u64) -> Option<RingItem<'_>> {
    let rest = &ring[index_usize(at % ring.len() as u64)..];
    if rest.len() < 16 || u64_at(rest, 8) != at {
        return None;
    }
    if u32_at(rest, 0) == u32::MAX {
        return Some(RingItem::Padding(rest.len() as u64));
    }
    let length = u32_at(rest, 0) as usize;
    if length > rest.len().checked_sub(HEAD_BYTES)? {
        return None;
    }
    let (head, message) = (&rest[8..HEAD_BYTES], &rest[HEAD_BYTES..HEAD_BYTES + length]);
    if crc32c::crc32c_append(crc32c::crc32c(head), message) != u32_at(rest, 4) {
        return None;
    }
    let (shard, seq) = (ShardId(rest[32] & ShardId::MAX), u64_at(rest, 24));
    let cause = (rest[33] == 1).then_some(ReportedEvent { shard, seq });
    Some(RingItem::Record { number: u64_at(rest, 16), cause, message })
}

/// Returns where the valid records start after a power loss. In the first lap through the ring
/// nothing was overwritten, and they start where the slots say. Later it is the longest run of
/// valid records: between two syncs less than half of the ring is written, so this is the run that
/// was synced, with the records written after it without a gap; records beyond a gap do not count.
fn chain_begin(ring: &[u8], tail: u64) -> u64 {
    let positions =
        (0..ring.len().saturating_sub(16)).step_by(16).map(|position| u64_at(&ring[position..], 8));
    let positions = (0..ring.len() as u64).step_by(16).zip(positions);
    let mut begins: Vec<u64> =
        positions.filter(|(position, at)| at % ring.len() as u64 == *position).map(|(_, at)| at).collect();
    begins.sort_unstable();
    let is_later_lap = |at: &u64| *at >= ring.len() as u64 && record_at(ring, *at).is_some();
    if !begins.iter().any(is_later_lap) {
        return tail;
    }
    let (mut longest, mut end) = (0..0, 0);
    for begin in begins {
        if begin < end {
            continue;
        }
        end = begin;
        while let Some(found) = record_at(ring, end) {
            end += match found {
                RingItem::Padding(bytes) => bytes,
                RingItem::Record { message, .. } => record_bytes(message.len()),
            };
        }
        if end - begin > longest.end - longest.start {
            longest = begin..end;
        }
    }
    longest.start
}

/// Returns the last reported event of each shard from the first page; `None` if the page does not
/// suffice.
pub(super) fn reported_in_head(location: &StoreLocation<'_>, page: &[u8]) -> Option<Vec<u64>> {
    let is_ours = page.len() == PAGE_BYTES
        && page[..8] == MAGIC
        && page[8..24] == location.disk.boot().to_le_bytes()
        && page[NAME_AT..].starts_with(location.name.as_bytes());
    is_ours.then(|| (0..SHARDS_MAX).map(|shard| u64_at(page, REPORTED_AT + shard * 8)).collect())
}
