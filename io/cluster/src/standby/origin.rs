//! Distinguishes the messages of this group's servers from everything else that is stored in the
//! stream.
//!
//! A broker stores everything that is published on the subjects of a stream, including the answers
//! that it sends itself: a client that names such a subject as its reply subject makes the broker
//! write there. Therefore each message of the group carries an id,
//!
//! ```text
//! NODE . EPOCH . SEQUENCE [ . MAC ]
//! ```
//!
//! and counts only if the id, the subject, the sequence number given by the broker and the content
//! match. A replayed message has another sequence number. With `standby.secret` the MAC covers all
//! of these, so a client that knows the format cannot forge a message either.
//!
//! A foreign message carries no information. Readers skip it, and the leader continues behind it.
//! [`from_leader`] is the rule that both apply, so they always agree on which messages count.

use bytes::Bytes;
use pitlane_config::Secret;
use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::xxh3_64;

use super::message::{FORMAT, MESSAGE_BYTES_MAX, ReplicationKind, ReplicationMessage};
use super::stream::{FetchedMessage, subject_of};

/// Prefix of the description of a stream whose servers share a secret.
pub(super) const LABEL: &str = "pitlane standby, secret ";
/// Block size of SHA-256, in bytes.
const BLOCK_BYTES: usize = 64;
/// Bytes of a MAC that are kept: 128 bits, which cannot be guessed.
const MAC_BYTES: usize = 16;

/// The reason why a message does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignReason {
    /// It is larger than any message of the group.
    Oversized,
    /// It has no id in the format of the group's servers.
    NoId,
    /// Its id belongs to another position in the stream.
    Replayed,
    NotOurFormat,
    /// It is on a subject on which no server sends such a message.
    WrongSubject,
    /// Its MAC is missing or wrong.
    NotAuthentic,
    /// It is valid, but its sender did not lead when it was stored.
    WrongSender,
    /// It is the lead message of a server whose format this version does not know.
    OtherVersion {
        epoch: u64,
    },
}

impl ForeignReason {
    pub fn text(self) -> &'static str {
        match self {
            ForeignReason::Oversized => "it is larger than any message of ours",
            ForeignReason::NoId => "it has no id of ours",
            ForeignReason::Replayed => "its id belongs to another position in the stream",
            ForeignReason::NotOurFormat => "its content is not in our format",
            ForeignReason::WrongSubject => "its content does not belong on its subject",
            ForeignReason::NotAuthentic => "it was not made with standby.secret",
            ForeignReason::WrongSender => "its sender did not lead",
            ForeignReason::OtherVersion { .. } => "it was sent by a server of another version",
        }
    }
}

/// A message that a server of the group sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedMessage {
    pub node: u128,
    pub message: ReplicationMessage,
}

/// The message at one position of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamMessage {
    pub seq: u64,
    /// Hash of the id and the content; equal messages have equal hashes.
    pub hash: u64,
    pub bytes: usize,
    pub subject: String,
    pub content: Result<VerifiedMessage, ForeignReason>,
}

impl StreamMessage {
    /// Returns whether this is a lead message.
    pub fn is_lead(&self) -> bool {
        matches!(
            &self.content,
            Ok(VerifiedMessage {
                message: ReplicationMessage { kind: ReplicationKind::Lead { .. }, .. },
                ..
            })
        )
    }

    /// Returns whether this server sent it in this epoch.
    pub fn is_from(&self, sender: u128, epoch: u64) -> bool {
        matches!(&self.content, Ok(VerifiedMessage { node, message }) if *node == sender && message.epoch == epoch)
    }
}

/// Returns the hash of an id and a content.
pub(super) fn content_hash(id: &str, payload: &[u8]) -> u64 {
    xxh3_64(payload) ^ xxh3_64(id.as_bytes()).rotate_left(1)
}

/// Returns whether a valid message counts, for a reader that knows the leader. `first` is the epoch
/// of the first leader that the stream remembers: messages of forgotten leaders may remain before
/// that leader's first message.
pub(super) fn from_leader(
    verified: &VerifiedMessage,
    leader: Option<(u64, u128)>,
    first: u64,
) -> Result<(), ForeignReason> {
    let VerifiedMessage { node, message: ReplicationMessage { epoch, kind } } = verified;
    let counts = match (kind, leader) {
        (ReplicationKind::Lead { .. }, Some((led, _))) => *epoch > led,
        (ReplicationKind::Lead { .. }, None) => true,
        (_, Some(leader)) => (*epoch, *node) == leader,
        (_, None) => *epoch < first,
    };
    if counts { Ok(()) } else { Err(ForeignReason::WrongSender) }
}

/// Creates the ids of messages, and checks stored messages.
#[derive(Clone)]
pub(super) struct Verifier {
    /// Prefix of the subjects of the stream.
    prefix: String,
    key: Option<[u8; 32]>,
}

impl std::fmt::Debug for Verifier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Verifier({}, {})", self.prefix, if self.key.is_some() { "secret" } else { "no secret" })
    }
}

impl Verifier {
    pub(super) fn new(prefix: &str, secret: Option<&Secret>) -> Verifier {
        let key = |secret: &Secret| digest(&[b"pitlane standby\0", secret.reveal().as_bytes()]);
        Verifier { prefix: prefix.to_string(), key: secret.map(key) }
    }

    /// Returns the description of the stream for servers that share the secret; `None` without a
    /// secret. It does not reveal the secret.
    pub(super) fn label(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        let mac = hmac(key, &[b"label\0", self.prefix.as_bytes()]);
        Some(format!("{LABEL}{}", hex(&mac[..MAC_BYTES])))
    }

    /// Returns the id of a message at its position in the stream.
    pub(super) fn id(&self, message: &ReplicationMessage, bytes: &[u8], node: u128, seq: u64) -> String {
        let bare = format!("{node:x}.{}.{seq}", message.epoch);
        let subject = subject_of(&self.prefix, &message.kind).0;
        match self.mac(&subject, &bare, bytes) {
            Some(mac) => format!("{bare}.{mac}"),
            None => bare,
        }
    }

    fn mac(&self, subject: &str, bare: &str, bytes: &[u8]) -> Option<String> {
        let key = self.key.as_ref()?;
        let mac = hmac(key, &[subject.as_bytes(), b"\n", bare.as_bytes(), b"\n", bytes]);
        Some(hex(&mac[..MAC_BYTES]))
    }

    pub(super) fn check(&self, stored: FetchedMessage) -> StreamMessage {
        let FetchedMessage { subject, seq, id, payload } = stored;
        let hash = content_hash(&id, &payload);
        let content = self.verify(&subject, seq, &id, &payload);
        StreamMessage { seq, hash, bytes: payload.len(), subject, content }
    }

    fn verify(
        &self,
        subject: &str,
        seq: u64,
        id: &str,
        payload: &Bytes,
    ) -> Result<VerifiedMessage, ForeignReason> {
        if payload.len() > MESSAGE_BYTES_MAX {
            return Err(ForeignReason::Oversized);
        }
        let Id { node, epoch, seq: meant, bare, mac } = Id::parse(id).ok_or(ForeignReason::NoId)?;
        if meant != seq {
            return Err(ForeignReason::Replayed);
        }
        if self.mac(subject, bare, payload).as_deref() != mac {
            return Err(ForeignReason::NotAuthentic);
        }
        let Some(message) = ReplicationMessage::decode(payload) else {
            let is_lead = subject.strip_prefix(&self.prefix) == Some("lead");
            let is_newer = payload.first().is_some_and(|format| *format > FORMAT);
            return Err(if is_lead && is_newer {
                ForeignReason::OtherVersion { epoch }
            } else {
                ForeignReason::NotOurFormat
            });
        };
        if message.epoch != epoch || message.kind.leader_node().is_some_and(|named| named != node) {
            return Err(ForeignReason::NotOurFormat);
        }
        if !self.is_expected_on(subject, &message.kind) {
            return Err(ForeignReason::WrongSubject);
        }
        Ok(VerifiedMessage { node, message })
    }

    /// Returns whether a server of the group sends this message on that subject. A reserve message
    /// decodes as a heartbeat.
    fn is_expected_on(&self, subject: &str, kind: &ReplicationKind) -> bool {
        let is_reserve = || {
            let number = subject.strip_prefix(&self.prefix).and_then(|rest| rest.strip_prefix("reserve."));
            *kind == ReplicationKind::Beat && number.is_some_and(|number| number.parse::<u8>().is_ok())
        };
        subject == subject_of(&self.prefix, kind).0 || is_reserve()
    }
}

/// An id in the format of the group's servers.
struct Id<'a> {
    node: u128,
    epoch: u64,
    seq: u64,
    /// Id without the MAC.
    bare: &'a str,
    mac: Option<&'a str>,
}

impl Id<'_> {
    fn parse(id: &str) -> Option<Id<'_>> {
        let mut dots = id.match_indices('.').map(|(at, _)| at);
        let (first, second, third) = (dots.next()?, dots.next()?, dots.next());
        let bare = &id[..third.unwrap_or(id.len())];
        let node = u128::from_str_radix(&id[..first], 16).ok()?;
        let epoch = id[first + 1..second].parse().ok()?;
        let seq = bare[second + 1..].parse().ok()?;
        Some(Id { node, epoch, seq, bare, mac: third.map(|at| &id[at + 1..]) })
    }
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// Computes HMAC with SHA-256, RFC 2104.
fn hmac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    let pad = |with: u8| {
        let mut block = [with; BLOCK_BYTES];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let mut inner = Sha256::new();
    inner.update(pad(0x36));
    parts.iter().for_each(|part| inner.update(part));
    let inner: [u8; 32] = inner.finalize().into();
    digest(&[&pad(0x5c), &inner])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::message::FilePiece;
    use super::*;

    const PREFIX: &str = "pitlane.pitlane.standby.pair.";
    const NODE: u128 = 7 << 90;

    fn verifier(secret: Option<&str>) -> Verifier {
        Verifier::new(PREFIX, secret.map(Secret::new).as_ref())
    }

    fn kinds() -> Vec<ReplicationKind> {
        let piece = |path: &str| FilePiece {
            path: path.to_string(),
            offset: 0,
            total: 3,
            bytes: Bytes::from_static(b"abc"),
        };
        vec![
            ReplicationKind::Lead { node: NODE },
            ReplicationKind::Release { node: NODE },
            ReplicationKind::Beat,
            ReplicationKind::Complete,
            ReplicationKind::Append(piece("journal/shard-00/000000000001.seg")),
            ReplicationKind::Whole(piece("notes/a.note")),
            ReplicationKind::Page(piece("fix/a.store")),
            ReplicationKind::Removed("notes/a.note".to_string()),
        ]
    }

    fn verify(
        verifier: &Verifier,
        message: &ReplicationMessage,
        seq: u64,
        change: impl Fn(&mut String, &mut String, &mut Vec<u8>),
    ) -> Result<VerifiedMessage, ForeignReason> {
        let mut bytes = message.encode().to_vec();
        let mut subject = subject_of(PREFIX, &message.kind).0;
        let mut id = verifier.id(message, &bytes, NODE, 9);
        change(&mut subject, &mut id, &mut bytes);
        verifier.verify(&subject, seq, &id, &bytes.into())
    }

    #[test]
    fn a_valid_message_counts_only_at_its_own_position() {
        for verifier in [verifier(None), verifier(Some("a secret of the two"))] {
            for kind in kinds() {
                let message = ReplicationMessage { epoch: 4, kind };
                let verified = verify(&verifier, &message, 9, |_, _, _| {});
                assert_eq!(verified, Ok(VerifiedMessage { node: NODE, message: message.clone() }));
                assert_eq!(verify(&verifier, &message, 10, |_, _, _| {}), Err(ForeignReason::Replayed));
            }
        }
    }

    #[test]
    fn any_changed_or_missing_part_makes_a_message_foreign() {
        for verifier in [verifier(None), verifier(Some("a secret of the two"))] {
            for kind in kinds() {
                let message = ReplicationMessage { epoch: 4, kind };
                let judged = |change: &dyn Fn(&mut String, &mut String, &mut Vec<u8>)| {
                    verify(&verifier, &message, 9, change).is_err()
                };
                assert!(judged(&|subject, _, _| *subject = "pitlane.pitlane.generic".to_string()));
                assert!(judged(&|subject, _, _| subject.push('x')));
                assert!(judged(&|_, id, _| id.clear()));
                assert!(judged(&|_, id, _| *id = id.replace(".4.", ".5.")));
                assert!(judged(&|_, _, bytes| bytes.clear()));
                assert!(judged(&|_, _, bytes| bytes[0] = 2));
                assert!(judged(&|_, _, bytes| bytes.extend(vec![0; MESSAGE_BYTES_MAX])));
                assert!(judged(&|_, _, bytes| *bytes = br#"{"stream":"PITLANE","seq":1}"#.to_vec()));
            }
        }
    }

    #[test]
    fn with_a_secret_only_its_holders_can_create_messages() {
        let (ours, none, other) = (verifier(Some("of the two")), verifier(None), verifier(Some("of others")));
        let message = ReplicationMessage { epoch: 4, kind: ReplicationKind::Lead { node: NODE } };
        let bytes = message.encode();
        let subject = subject_of(PREFIX, &message.kind).0;
        for maker in [&none, &other] {
            let id = maker.id(&message, &bytes, NODE, 9);
            assert_eq!(ours.verify(&subject, 9, &id, &bytes), Err(ForeignReason::NotAuthentic));
        }
        let id = ours.id(&message, &bytes, NODE, 9);
        assert_eq!(
            none.verify(&subject, 9, &id, &bytes),
            Err(ForeignReason::NotAuthentic),
            "it must not lead beside them"
        );
        assert_ne!(ours.label(), other.label());
        assert_eq!(none.label(), None);
        assert!(!ours.label().is_some_and(|label| label.contains("of the two")));
    }

    #[test]
    fn only_the_leader_counts_and_a_new_leader_has_a_higher_epoch() {
        let verified =
            |epoch, node, kind| VerifiedMessage { node, message: ReplicationMessage { epoch, kind } };
        let lead = |epoch| verified(epoch, 2, ReplicationKind::Lead { node: 2 });
        let known = Some((5, 1));
        assert_eq!(from_leader(&lead(6), known, 1), Ok(()));
        assert!(from_leader(&lead(5), known, 1).is_err() && from_leader(&lead(1), known, 1).is_err());
        assert_eq!(from_leader(&verified(5, 1, ReplicationKind::Beat), known, 1), Ok(()));
        for other in [
            verified(5, 2, ReplicationKind::Beat),
            verified(6, 2, ReplicationKind::Beat),
            verified(4, 1, ReplicationKind::Complete),
        ] {
            assert_eq!(from_leader(&other, known, 1), Err(ForeignReason::WrongSender));
        }
        assert_eq!(from_leader(&lead(1), None, 0), Ok(()));
        assert_eq!(
            from_leader(&verified(2, 9, ReplicationKind::Beat), None, 3),
            Ok(()),
            "of a leader that is forgotten"
        );
        assert!(from_leader(&verified(3, 9, ReplicationKind::Beat), None, 3).is_err());
        assert!(from_leader(&verified(0, 9, ReplicationKind::Beat), None, 0).is_err(), "no server ever led");
    }

    #[test]
    fn the_mac_matches_the_standard() {
        // RFC 4231, test case 1, with its key padded to 32 bytes as HMAC pads it anyway.
        let mut key = [0; 32];
        key[..20].fill(0x0b);
        let mac = hmac(&key, &[b"Hi ", b"There"]);
        assert_eq!(hex(&mac), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    }
}
