//! A parcel: what one message of the stream holds. All of them in their order are the data folder of the server that leads.
//!
//! ```text
//! 0        1      2         10          12        ..
//! ┌────────┬──────┬─────────┬───────────┬─────────┬────────────┬───────────┬────────┐
//! │ format │ kind │  epoch  │ path's    │  path   │ offset (8) │ total (8) │ bytes  │
//! │        │      │         │ length    │         │            │           │        │
//! └────────┴──────┴─────────┴───────────┴─────────┴────────────┴───────────┴────────┘
//! ```

use bytes::{BufMut, Bytes, BytesMut};

use super::overlap::folder_of;
use super::replica::PART;
use super::scan::{IDENTITY, SMALL, STORES};
use crate::fix::store;
use crate::journal::scan::segment_number;

pub const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 12;
const PLACE_BYTES: usize = 16;
/// Longest name of a file within the data folder.
const PATH_BYTES_MAX: usize = 240;
/// Bytes of a file in one parcel: half of what a broker takes in a message unless told otherwise.
pub const BYTES_MAX: usize = 512 << 10;
/// Bytes of the largest message that a server sends.
pub const MESSAGE_BYTES_MAX: usize = HEAD_BYTES + PATH_BYTES_MAX + PLACE_BYTES + BYTES_MAX;
/// Bytes of the largest file that changes in place, as `fix.store_bytes` allows it. A reader keeps eight bytes for each of its pages, so a
/// parcel must not promise more.
const PAGED_BYTES_MAX: u64 = 1 << 32;
/// Bytes of a parcel that only keeps room: it is on its way alone, so it is short.
pub const RESERVE_BYTES: usize = 128 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationMessage {
    /// Of the leader who sent it.
    pub epoch: u64,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A server takes the lead: the epoch is its own from here on, and whoever led before is refused.
    Lead {
        node: u128,
    },
    /// It ended in good order: nobody need wait for its lease to run out.
    Release {
        node: u128,
    },
    /// Nothing but that it lives.
    Beat,
    /// Room that is given back when the broker's storage is full, so that cancels can still be stored. It is read as a [`What::Beat`], by
    /// earlier versions too.
    Reserve {
        number: u8,
    },
    /// From here on the parcels up to any place are a folder that can be gone on with.
    Complete,
    /// Bytes behind those that the file has.
    Append(Piece),
    /// Of a file that is made anew: it takes its name with the last piece.
    Whole(Piece),
    /// Bytes in their place.
    Page(Piece),
    Removed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Within the data folder, with slashes.
    pub path: String,
    pub offset: u64,
    /// Bytes of the file; of one that grows: up to the end of this piece.
    pub total: u64,
    pub bytes: Bytes,
}

impl What {
    /// The file that it is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            What::Append(piece) | What::Whole(piece) | What::Page(piece) => Some(&piece.path),
            What::Removed(path) => Some(path),
            What::Lead { .. } | What::Release { .. } | What::Beat | What::Reserve { .. } | What::Complete => {
                None
            }
        }
    }
}

impl Piece {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ReplicationMessage {
    pub fn encode(&self) -> Bytes {
        let node;
        let mut place: Option<(u64, u64)> = Some((0, 0));
        let (path, bytes): (&str, &[u8]) = match &self.what {
            What::Lead { node: of } | What::Release { node: of } => {
                node = of.to_le_bytes();
                ("", &node)
            }
            What::Beat | What::Complete => {
                place = None;
                ("", &[])
            }
            What::Reserve { .. } => {
                place = None;
                ("", &[0; RESERVE_BYTES])
            }
            What::Append(piece) | What::Whole(piece) | What::Page(piece) => {
                place = Some((piece.offset, piece.total));
                (&piece.path, &piece.bytes)
            }
            What::Removed(path) => {
                place = None;
                (path, &[])
            }
        };
        assert!(path.len() <= PATH_BYTES_MAX, "a path has its bound");
        let mut out = BytesMut::with_capacity(HEAD_BYTES + path.len() + PLACE_BYTES + bytes.len());
        out.put_slice(&[FORMAT, self.kind()]);
        out.put_u64_le(self.epoch);
        out.put_u16_le(path.len() as u16);
        out.put_slice(path.as_bytes());
        if let Some((offset, total)) = place {
            out.put_u64_le(offset);
            out.put_u64_le(total);
        }
        out.put_slice(bytes);
        out.freeze()
    }

    /// None if it is none of ours, or of a version that we do not know.
    pub fn decode(message: &Bytes) -> Option<ReplicationMessage> {
        let head = message.first_chunk::<HEAD_BYTES>()?;
        if head[0] != FORMAT {
            return None;
        }
        let epoch = u64::from_le_bytes(head[2..10].try_into().ok()?);
        let length = u16::from_le_bytes([head[10], head[11]]) as usize;
        let path = std::str::from_utf8(message.get(HEAD_BYTES..HEAD_BYTES + length)?).ok()?;
        let rest = message.slice(HEAD_BYTES + length..);
        let piece = |is_expected: fn(&str) -> bool| {
            let place = rest.first_chunk::<PLACE_BYTES>()?;
            let offset = u64::from_le_bytes(place[..8].try_into().ok()?);
            let total = u64::from_le_bytes(place[8..].try_into().ok()?);
            let bytes = rest.slice(PLACE_BYTES..);
            let end = offset.checked_add(bytes.len() as u64)?;
            (is_plain(path) && is_expected(path) && end <= total).then(|| Piece {
                path: path.to_string(),
                offset,
                total,
                bytes,
            })
        };
        let node = || Some(u128::from_le_bytes(rest.get(PLACE_BYTES..)?.try_into().ok()?));
        let what = match head[1] {
            1 => What::Lead { node: node()? },
            2 => What::Release { node: node()? },
            3 => What::Beat,
            4 => What::Complete,
            5 => What::Append(piece(is_segment)?),
            6 => What::Whole(piece(is_replaced)?),
            7 => What::Page(piece(is_paged).filter(|piece| piece.total <= PAGED_BYTES_MAX)?),
            8 if is_plain(path) && is_replicated(path) => What::Removed(path.to_string()),
            _ => return None,
        };
        Some(ReplicationMessage { epoch, what })
    }

    fn kind(&self) -> u8 {
        match &self.what {
            What::Lead { .. } => 1,
            What::Release { .. } => 2,
            What::Beat | What::Reserve { .. } => 3,
            What::Complete => 4,
            What::Append(_) => 5,
            What::Whole(_) => 6,
            What::Page(_) => 7,
            What::Removed(_) => 8,
        }
    }
}

/// Whether a path stays within the folder, whoever wrote it: folders and files with plain names, at most two folders deep.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    path.len() <= PATH_BYTES_MAX && (2..=3).contains(&path.split('/').count()) && path.split('/').all(is_name)
}

/// Whether a leader sends a file of this name. All other names are refused: what lies beside these (`audit/`, `standby/`, certificates,
/// logs) belongs to each server alone.
fn is_replicated(path: &str) -> bool {
    is_segment(path) || is_replaced(path) || is_paged(path)
}

/// A segment of a shard's journal, which grows.
fn is_segment(path: &str) -> bool {
    in_shard(path)
        .is_some_and(|name| segment_number(name).is_some() && name.starts_with(|c: char| c.is_ascii_digit()))
}

/// A file that is sent as a whole: the identity, reference data, snapshots, notes, and the mark beside stores.
fn is_replaced(path: &str) -> bool {
    let is_snapshot = || in_shard(path).is_some_and(|name| name.ends_with(".snap"));
    let is_small = || SMALL.iter().any(|folder| folder_of(path) == *folder) && !is_unfinished(path);
    let is_mark = || STORES.iter().any(|folder| path == format!("{folder}/{}", store::TAKEN_OVER));
    path == IDENTITY || is_small() || is_snapshot() || is_mark()
}

/// A store, which changes in place.
fn is_paged(path: &str) -> bool {
    STORES.iter().any(|folder| folder_of(path) == *folder) && !is_unfinished(path)
}

/// The name of a file in the folder of a shard's journal.
fn in_shard(path: &str) -> Option<&str> {
    let (shard, name) = path.strip_prefix("journal/shard-")?.split_once('/')?;
    let is_number = (2..=3).contains(&shard.len()) && shard.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.contains('/')).then_some(name)
}

/// A reader writes a file under such a name until it is whole.
fn is_unfinished(path: &str) -> bool {
    path.ends_with(&format!(".{PART}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ReplicationMessage> {
        let piece = |path: &str, bytes: &'static [u8]| Piece {
            path: path.to_string(),
            offset: 7,
            total: 7 + bytes.len() as u64,
            bytes: Bytes::from_static(bytes),
        };
        let whats = [
            What::Lead { node: 5 << 100 },
            What::Release { node: 1 },
            What::Beat,
            What::Complete,
            What::Append(piece("journal/shard-00/000000000001.seg", b"abc")),
            What::Whole(piece("journal/shard-100/000000000001.snap", b"")),
            What::Page(piece("fix/A-B.store", b"x")),
            What::Removed("notes/a.note".to_string()),
        ];
        whats.into_iter().map(|what| ReplicationMessage { epoch: 9, what }).collect()
    }

    #[test]
    fn what_is_written_is_read() {
        for parcel in all() {
            assert_eq!(ReplicationMessage::decode(&parcel.encode()), Some(parcel));
        }
    }

    #[test]
    fn what_only_keeps_room_is_read_as_a_beat() {
        let reserve = ReplicationMessage { epoch: 9, what: What::Reserve { number: 3 } }.encode();
        assert!(reserve.len() > RESERVE_BYTES);
        assert_eq!(
            ReplicationMessage::decode(&reserve),
            Some(ReplicationMessage { epoch: 9, what: What::Beat })
        );
    }

    #[test]
    fn no_bytes_are_too_strange() {
        for parcel in all() {
            let bytes = parcel.encode();
            for length in 0..bytes.len() {
                let _ = ReplicationMessage::decode(&bytes.slice(..length));
            }
            for at in 0..bytes.len() {
                for other in [0, 1, 127, 255] {
                    let mut strange = bytes.to_vec();
                    strange[at] = other;
                    let _ = ReplicationMessage::decode(&Bytes::from(strange));
                }
            }
        }
    }

    #[test]
    fn nobody_writes_outside_of_the_folder() {
        for path in ["/etc/passwd", "../a/b", "a/../b", "a", "", "a//b", "a/.b", "notes/\n"] {
            let piece =
                Piece { path: path.to_string(), offset: 0, total: 1, bytes: Bytes::from_static(b"x") };
            for what in [What::Append(piece.clone()), What::Whole(piece), What::Removed(path.to_string())] {
                assert_eq!(
                    ReplicationMessage::decode(&ReplicationMessage { epoch: 1, what }.encode()),
                    None,
                    "{path:?}"
                );
            }
        }
    }

    /// A follower used to write wherever a parcel said, below `audit/` too.
    #[test]
    fn a_parcel_names_files_that_a_leader_sends_and_no_others() {
        let piece = |path: &str| Piece {
            path: path.to_string(),
            offset: 0,
            total: 1,
            bytes: Bytes::from_static(b"x"),
        };
        let kinds = |path: &str| {
            let whats = [
                What::Append(piece(path)),
                What::Whole(piece(path)),
                What::Page(piece(path)),
                What::Removed(path.to_string()),
            ];
            whats.map(|what| {
                ReplicationMessage::decode(&ReplicationMessage { epoch: 1, what }.encode()).is_some()
            })
        };
        for (path, expected) in [
            ("journal/shard-00/000000000001.seg", [true, false, false, true]),
            ("journal/shard-00/000000000001.snap", [false, true, false, true]),
            ("journal/refdata/0123abcd", [false, true, false, true]),
            ("journal/identity", [false, true, false, true]),
            ("notes/ids.note", [false, true, false, true]),
            ("fix/taken-over", [false, true, true, true]),
            ("fix/A-B.store", [false, false, true, true]),
            ("venue/A.store", [false, false, true, true]),
        ] {
            assert_eq!(kinds(path), expected, "{path}");
        }
        for path in [
            "audit/2026-01-01.log",
            "audit/a/b",
            "standby/member",
            "standby/next/journal",
            "tls/key.pem",
            "log/pitlane.log",
            "journal/other",
            "journal/shard-00/a/b.seg",
            "journal/shard-xx/000000000001.seg",
            "journal/shard-00/x.seg",
            "journal/shard-00/lock",
            "notes/a/b",
            "notes/a.part",
            "fix/a/b.store",
            "fix/a.store.part",
            "fixes/a.store",
        ] {
            assert_eq!(kinds(path), [false; 4], "{path}");
        }
    }

    #[test]
    fn a_paged_file_has_its_bound() {
        let page = |total: u64| {
            let piece =
                Piece { path: "fix/a.store".to_string(), offset: 0, total, bytes: Bytes::from_static(b"x") };
            ReplicationMessage::decode(&ReplicationMessage { epoch: 1, what: What::Page(piece) }.encode())
        };
        assert!(page(PAGED_BYTES_MAX).is_some());
        assert!(page(PAGED_BYTES_MAX + 1).is_none() && page(u64::MAX).is_none());
    }

    #[test]
    fn a_path_has_its_bound() {
        let removed = |bytes: usize| {
            let path = format!("notes/{}", "x".repeat(bytes - 6));
            ReplicationMessage { epoch: 1, what: What::Removed(path) }
        };
        let longest = removed(PATH_BYTES_MAX);
        let mut bytes = longest.encode().to_vec();
        assert_eq!(ReplicationMessage::decode(&bytes.clone().into()), Some(longest));
        // One letter more, which no server of ours would send.
        bytes.push(b'x');
        bytes[10..12].copy_from_slice(&(PATH_BYTES_MAX as u16 + 1).to_le_bytes());
        assert_eq!(ReplicationMessage::decode(&bytes.into()), None);
    }
}
