//! A replication message: the contents of one message of the stream. Applied in order, they produce
//! the data folder of the leader.
//!
//! ```text
//! 0        1      2         10          12        ..
//! ┌────────┬──────┬─────────┬───────────┬─────────┬────────────┬───────────┬────────┐
//! │ format │ kind │  epoch  │ path's    │  path   │ offset (8) │ total (8) │ bytes  │
//! │        │      │         │ length    │         │            │           │        │
//! └────────┴──────┴─────────┴───────────┴─────────┴────────────┴───────────┴────────┘
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use pitlane_engine::index::index_u16;
use pitlane_gateway::fix::store;
use pitlane_journal::scan::segment_number;

use super::overlap::folder_of;
use super::replica::PART;
use super::scan::{IDENTITY, SMALL, STORES};

pub(super) const FORMAT: u8 = 1;
const HEAD_BYTES: usize = 12;
const RANGE_BYTES: usize = 16;
/// Longest path of a file within the data folder, in bytes.
const PATH_BYTES_MAX: usize = 240;
/// Most bytes of a file in one message: half of a broker's default message limit.
pub(super) const BYTES_MAX: usize = 512 << 10;
/// Bytes of the largest message that a server sends.
pub(super) const MESSAGE_BYTES_MAX: usize = HEAD_BYTES + PATH_BYTES_MAX + RANGE_BYTES + BYTES_MAX;
/// Bytes of the largest file that changes in place, as `fix.store_bytes` allows it. A reader keeps
/// eight bytes for each page, so a message must not announce a larger file.
const PAGED_BYTES_MAX: u64 = 1 << 32;
/// Bytes of a message that only reserves space. It is sent alone, so it is short.
pub(super) const RESERVE_BYTES: usize = 128 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicationMessage {
    /// Epoch of the leader that sent it.
    pub epoch: u64,
    pub kind: ReplicationKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicationKind {
    /// A server takes the lead: the epoch is its own from here on, and the previous leader is
    /// refused.
    Lead {
        node: u128,
    },
    /// The leader shut down in good order: no server needs to wait for its lease to expire.
    Release {
        node: u128,
    },
    /// Heartbeat: the leader is alive.
    Beat,
    /// Reserved space, released when the broker's storage is full so that cancels can still be
    /// stored. It decodes as a [`ReplicationKind::Beat`], in earlier versions too.
    Reserve {
        number: u8,
    },
    /// From here on, the messages up to any position produce a usable folder.
    Complete,
    /// Bytes to append to the file.
    Append(FilePiece),
    /// A piece of a file that is replaced as a whole: it gets its name with the last piece.
    Whole(FilePiece),
    /// Bytes to write in place.
    Page(FilePiece),
    Removed(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePiece {
    /// Path within the data folder, with slashes.
    pub path: String,
    pub offset: u64,
    /// Size of the file in bytes; for a file that grows, the end of this piece.
    pub total: u64,
    pub bytes: Bytes,
}

impl ReplicationKind {
    /// Returns the path of the file that the message is about.
    pub fn path(&self) -> Option<&str> {
        match self {
            ReplicationKind::Append(piece) | ReplicationKind::Whole(piece) | ReplicationKind::Page(piece) => {
                Some(&piece.path)
            }
            ReplicationKind::Removed(path) => Some(path),
            ReplicationKind::Lead { .. }
            | ReplicationKind::Release { .. }
            | ReplicationKind::Beat
            | ReplicationKind::Reserve { .. }
            | ReplicationKind::Complete => None,
        }
    }

    /// Returns the server that takes the lead or gives it up.
    pub fn leader_node(&self) -> Option<u128> {
        match self {
            ReplicationKind::Lead { node } | ReplicationKind::Release { node } => Some(*node),
            ReplicationKind::Beat
            | ReplicationKind::Reserve { .. }
            | ReplicationKind::Complete
            | ReplicationKind::Append(_)
            | ReplicationKind::Whole(_)
            | ReplicationKind::Page(_)
            | ReplicationKind::Removed(_) => None,
        }
    }
}

impl FilePiece {
    pub fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

impl ReplicationMessage {
    pub fn encode(&self) -> Bytes {
        let node;
        let mut range: Option<(u64, u64)> = Some((0, 0));
        let (path, bytes): (&str, &[u8]) = match &self.kind {
            ReplicationKind::Lead { node: of } | ReplicationKind::Release { node: of } => {
                node = of.to_le_bytes();
                ("", &node)
            }
            ReplicationKind::Beat | ReplicationKind::Complete => {
                range = None;
                ("", &[])
            }
            ReplicationKind::Reserve { .. } => {
                range = None;
                ("", &[0; RESERVE_BYTES])
            }
            ReplicationKind::Append(piece) | ReplicationKind::Whole(piece) | ReplicationKind::Page(piece) => {
                range = Some((piece.offset, piece.total));
                (&piece.path, &piece.bytes)
            }
            ReplicationKind::Removed(path) => {
                range = None;
                (path, &[])
            }
        };
        assert!(path.len() <= PATH_BYTES_MAX, "a path has its bound");
        let mut out = BytesMut::with_capacity(HEAD_BYTES + path.len() + RANGE_BYTES + bytes.len());
        out.put_slice(&[FORMAT, self.kind_code()]);
        out.put_u64_le(self.epoch);
        out.put_u16_le(index_u16(path.len()));
        out.put_slice(path.as_bytes());
        if let Some((offset, total)) = range {
            out.put_u64_le(offset);
            out.put_u64_le(total);
        }
        out.put_slice(bytes);
        out.freeze()
    }

    /// Decodes a message; returns `None` if the format is not ours, or of an unknown version.
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
            let range = rest.first_chunk::<RANGE_BYTES>()?;
            let offset = u64::from_le_bytes(range[..8].try_into().ok()?);
            let total = u64::from_le_bytes(range[8..].try_into().ok()?);
            let bytes = rest.slice(RANGE_BYTES..);
            let end = offset.checked_add(bytes.len() as u64)?;
            (is_plain(path) && is_expected(path) && end <= total).then(|| FilePiece {
                path: path.to_string(),
                offset,
                total,
                bytes,
            })
        };
        let node = || Some(u128::from_le_bytes(rest.get(RANGE_BYTES..)?.try_into().ok()?));
        let kind = match head[1] {
            1 => ReplicationKind::Lead { node: node()? },
            2 => ReplicationKind::Release { node: node()? },
            3 => ReplicationKind::Beat,
            4 => ReplicationKind::Complete,
            5 => ReplicationKind::Append(piece(is_segment)?),
            6 => ReplicationKind::Whole(piece(is_replaced)?),
            7 => ReplicationKind::Page(piece(is_paged).filter(|piece| piece.total <= PAGED_BYTES_MAX)?),
            8 if is_plain(path) && is_replicated(path) => ReplicationKind::Removed(path.to_string()),
            _ => return None,
        };
        Some(ReplicationMessage { epoch, kind })
    }

    fn kind_code(&self) -> u8 {
        match &self.kind {
            ReplicationKind::Lead { .. } => 1,
            ReplicationKind::Release { .. } => 2,
            ReplicationKind::Beat | ReplicationKind::Reserve { .. } => 3,
            ReplicationKind::Complete => 4,
            ReplicationKind::Append(_) => 5,
            ReplicationKind::Whole(_) => 6,
            ReplicationKind::Page(_) => 7,
            ReplicationKind::Removed(_) => 8,
        }
    }
}

/// Returns whether a path stays within the data folder: plain names of folders and files, at most
/// two folders deep.
fn is_plain(path: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with('.')
            && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
    };
    path.len() <= PATH_BYTES_MAX && (2..=3).contains(&path.split('/').count()) && path.split('/').all(is_name)
}

/// Returns whether a leader sends a file of this name. All other names are refused: the files
/// beside these (`audit/`, `standby/`, certificates, logs) belong to each server alone.
fn is_replicated(path: &str) -> bool {
    is_segment(path) || is_replaced(path) || is_paged(path)
}

/// Returns whether this is a segment of a shard's journal, which grows.
fn is_segment(path: &str) -> bool {
    in_shard(path)
        .is_some_and(|name| segment_number(name).is_some() && name.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns whether this file is sent as a whole: the identity, reference data, snapshots, notes,
/// and the mark beside stores.
fn is_replaced(path: &str) -> bool {
    let is_snapshot = || in_shard(path).is_some_and(|name| name.ends_with(".snap"));
    let is_small = || SMALL.iter().any(|folder| folder_of(path) == *folder) && !is_unfinished(path);
    let is_mark = || STORES.iter().any(|folder| path == format!("{folder}/{}", store::TAKEN_OVER));
    path == IDENTITY || is_small() || is_snapshot() || is_mark()
}

/// Returns whether this is a store, which changes in place.
fn is_paged(path: &str) -> bool {
    STORES.iter().any(|folder| folder_of(path) == *folder) && !is_unfinished(path)
}

/// Returns the name of a file in the folder of a shard's journal.
fn in_shard(path: &str) -> Option<&str> {
    let (shard, name) = path.strip_prefix("journal/shard-")?.split_once('/')?;
    let is_number = (2..=3).contains(&shard.len()) && shard.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.contains('/')).then_some(name)
}

/// Returns whether this is the temporary name that a reader uses until a file is complete.
fn is_unfinished(path: &str) -> bool {
    path.ends_with(&format!(".{PART}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ReplicationMessage> {
        let piece = |path: &str, bytes: &'static [u8]| FilePiece {
            path: path.to_string(),
            offset: 7,
            total: 7 + bytes.len() as u64,
            bytes: Bytes::from_static(bytes),
        };
        let kinds = [
            ReplicationKind::Lead { node: 5 << 100 },
            ReplicationKind::Release { node: 1 },
            ReplicationKind::Beat,
            ReplicationKind::Complete,
            ReplicationKind::Append(piece("journal/shard-00/000000000001.seg", b"abc")),
            ReplicationKind::Whole(piece("journal/shard-100/000000000001.snap", b"")),
            ReplicationKind::Page(piece("fix/A-B.store", b"x")),
            ReplicationKind::Removed("notes/a.note".to_string()),
        ];
        kinds.into_iter().map(|kind| ReplicationMessage { epoch: 9, kind }).collect()
    }

    #[test]
    fn a_written_message_is_read_back() {
        for message in all() {
            assert_eq!(ReplicationMessage::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn a_reserve_message_is_read_as_a_heartbeat() {
        let reserve = ReplicationMessage { epoch: 9, kind: ReplicationKind::Reserve { number: 3 } }.encode();
        assert!(reserve.len() > RESERVE_BYTES);
        assert_eq!(
            ReplicationMessage::decode(&reserve),
            Some(ReplicationMessage { epoch: 9, kind: ReplicationKind::Beat })
        );
    }

    #[test]
    fn decoding_survives_any_bytes() {
        for message in all() {
            let bytes = message.encode();
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
    fn no_path_leads_outside_the_folder() {
        for path in ["/etc/passwd", "../a/b", "a/../b", "a", "", "a//b", "a/.b", "notes/\n"] {
            let piece =
                FilePiece { path: path.to_string(), offset: 0, total: 1, bytes: Bytes::from_static(b"x") };
            for kind in [
                ReplicationKind::Append(piece.clone()),
                ReplicationKind::Whole(piece),
                ReplicationKind::Removed(path.to_string()),
            ] {
                assert_eq!(
                    ReplicationMessage::decode(&ReplicationMessage { epoch: 1, kind }.encode()),
                    None,
                    "{path:?}"
                );
            }
        }
    }

    /// A follower used to write to any path that a message named, even below `audit/`.
    #[test]
    fn a_message_names_only_files_that_a_leader_sends() {
        let piece = |path: &str| FilePiece {
            path: path.to_string(),
            offset: 0,
            total: 1,
            bytes: Bytes::from_static(b"x"),
        };
        let accepted = |path: &str| {
            let kinds = [
                ReplicationKind::Append(piece(path)),
                ReplicationKind::Whole(piece(path)),
                ReplicationKind::Page(piece(path)),
                ReplicationKind::Removed(path.to_string()),
            ];
            kinds.map(|kind| {
                ReplicationMessage::decode(&ReplicationMessage { epoch: 1, kind }.encode()).is_some()
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
            assert_eq!(accepted(path), expected, "{path}");
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
            assert_eq!(accepted(path), [false; 4], "{path}");
        }
    }

    #[test]
    fn a_paged_file_has_a_size_limit() {
        let page = |total: u64| {
            let piece = FilePiece {
                path: "fix/a.store".to_string(),
                offset: 0,
                total,
                bytes: Bytes::from_static(b"x"),
            };
            ReplicationMessage::decode(
                &ReplicationMessage { epoch: 1, kind: ReplicationKind::Page(piece) }.encode(),
            )
        };
        assert!(page(PAGED_BYTES_MAX).is_some());
        assert!(page(PAGED_BYTES_MAX + 1).is_none() && page(u64::MAX).is_none());
    }

    #[test]
    fn a_path_has_a_length_limit() {
        let removed = |bytes: usize| {
            let path = format!("notes/{}", "x".repeat(bytes - 6));
            ReplicationMessage { epoch: 1, kind: ReplicationKind::Removed(path) }
        };
        let longest = removed(PATH_BYTES_MAX);
        let mut bytes = longest.encode().to_vec();
        assert_eq!(ReplicationMessage::decode(&bytes.clone().into()), Some(longest));
        // One character more, which no server of the group would send.
        bytes.push(b'x');
        bytes[10..12].copy_from_slice(&index_u16(PATH_BYTES_MAX + 1).to_le_bytes());
        assert_eq!(ReplicationMessage::decode(&bytes.into()), None);
    }
}
