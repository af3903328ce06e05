//! Senders of orders, modifications and cancels: login, address, protocol and session.
//!
//! ```text
//! gateway ─ Sender ─► PortEnd: SenderLog ── SenderId ──► every command, every order event
//!                          └─ CommandKind::Sender, once to each shard, before the first command with that id
//! shard: SenderTable ── EventKind::Sender ──► View: SenderTable ──► REST
//! ```
//!
//! A command carries a number of four bytes, so the path of an order copies no text. The text
//! travels once: a port describes a number to each shard before it uses the number, by a command
//! that is journaled like any other. The journal alone therefore shows who sent what, and a replay,
//! a standby and another server of a cluster know it too.
//!
//! A number is the port and a count. A port counts on from [`SenderLog::begin`], which gets a
//! number beyond those of all earlier starts.

use core::net::Ipv6Addr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec, encode_count};
use crate::id::PortId;
use crate::index::index_usize;

/// Bytes of a login or of a session name: the longest user name and the longest CompID.
pub const SENDER_TEXT_BYTES_MAX: usize = 64;

/// Senders that one port can register between two starts of the server. Beyond it a sender is
/// registered without its address, so that the login is always recorded.
pub const SENDERS_PER_PORT_MAX: u32 = 8_192;

/// Part of these reserved for senders without an address: more than there are users and FIX
/// sessions.
pub const SENDERS_WITHOUT_ADDRESS_MAX: u32 = 2_048;

/// Senders that a shard and a read model know, 10 MB: all that eight ports can register between two
/// starts. Beyond it the oldest are forgotten, and only the journal shows who sent their orders.
pub const SENDERS_MAX: usize = 65_536;

const PORT_SHIFT: u32 = 24;
const COUNT_MASK: u32 = (1 << PORT_SHIFT) - 1;
/// Counts below this one have a special meaning.
const COUNT_FIRST: u32 = 16;

/// A sender, as the number under which its port has registered it with the shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SenderId(pub u32);

impl SenderId {
    /// Unknown: the command is from a version that did not record it, or is not an order of a
    /// client.
    pub const NONE: SenderId = SenderId(0);
    /// The platform itself: an expiry, the close of a position, a cancel when a client is gone.
    pub const INTERNAL: SenderId = SenderId(1);
    /// More senders than a port can register.
    pub const UNLISTED: SenderId = SenderId(2);

    /// Returns whether a port has registered it.
    pub fn is_named(self) -> bool {
        self.0 & COUNT_MASK >= COUNT_FIRST
    }

    pub fn port(self) -> PortId {
        PortId((self.0 >> PORT_SHIFT) as u8)
    }

    /// Returns the same sender under another port number.
    pub fn with_port(self, port: PortId) -> SenderId {
        if self.is_named() { SenderId((port.0 as u32) << PORT_SHIFT | self.0 & COUNT_MASK) } else { self }
    }
}

/// How a sender is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// The platform itself.
    #[default]
    Internal,
    Rest,
    Fix,
    Stomp,
    Strategy,
}

/// Text of a sender: printable ASCII. Other characters appear as `?`, and longer text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SenderText {
    /// Followed by zeros.
    bytes: [u8; SENDER_TEXT_BYTES_MAX],
    len: u8,
}

impl SenderText {
    pub const EMPTY: SenderText = SenderText { bytes: [0; SENDER_TEXT_BYTES_MAX], len: 0 };

    pub fn new(text: &str) -> SenderText {
        let mut made = SenderText::EMPTY;
        for (place, character) in made.bytes.iter_mut().zip(text.chars()) {
            *place = if character.is_ascii_graphic() { character as u8 } else { b'?' };
            made.len += 1;
        }
        made
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len as usize]).unwrap_or_default()
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Default for SenderText {
    fn default() -> SenderText {
        SenderText::EMPTY
    }
}

/// An address as 16 bytes: IPv6, or IPv4 mapped into it. All zeros: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SenderAddress(pub [u8; 16]);

impl SenderAddress {
    pub const NONE: SenderAddress = SenderAddress([0; 16]);
}

impl fmt::Display for SenderAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Ipv6Addr::from(self.0).to_canonical())
    }
}

/// A sender, as far as the server knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sender {
    pub protocol: Protocol,
    pub address: SenderAddress,
    /// The user, token or strategy; empty if none was needed.
    pub login: SenderText,
    /// FIX: the client's CompID. A strategy in a process of its own: its host. Otherwise empty.
    pub session: SenderText,
}

/// One half of a sender's description: a command has no room for both texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderPart {
    /// Comes first.
    Login { protocol: Protocol, address: SenderAddress, login: SenderText },
    /// Follows if there is a session.
    Session(SenderText),
}

impl Sender {
    /// Returns the parts of its description, in this order.
    pub fn parts(&self) -> impl Iterator<Item = SenderPart> {
        let Sender { protocol, address, login, session } = *self;
        let first = SenderPart::Login { protocol, address, login };
        let second = (!session.is_empty()).then_some(SenderPart::Session(session));
        std::iter::once(first).chain(second)
    }
}

/// The senders that are known, oldest first.
#[derive(Clone, Debug, Default)]
pub struct SenderTable {
    known: BTreeMap<SenderId, Sender>,
    /// In order of registration.
    order: VecDeque<SenderId>,
}

impl SenderTable {
    pub fn get(&self, id: SenderId) -> Option<&Sender> {
        self.known.get(&id)
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the sender at an index in order of registration.
    pub fn at(&self, at: usize) -> Option<(SenderId, &Sender)> {
        let id = *self.order.get(at)?;
        self.known.get(&id).map(|sender| (id, sender))
    }

    /// Adds or updates a sender. Beyond [`SENDERS_MAX`] the oldest is forgotten.
    pub fn insert(&mut self, id: SenderId, sender: Sender) {
        if !id.is_named() || self.known.insert(id, sender).is_some() {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > SENDERS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Applies one half of a sender's description and returns the sender.
    pub fn apply_part(&mut self, id: SenderId, part: SenderPart) -> Sender {
        let sender = match part {
            SenderPart::Login { protocol, address, login } => {
                Sender { protocol, address, login, session: SenderText::EMPTY }
            }
            SenderPart::Session(session) => Sender { session, ..self.get(id).copied().unwrap_or_default() },
        };
        self.insert(id, sender);
        sender
    }

    /// Forgets all senders except these.
    pub fn retain(&mut self, mut is_kept: impl FnMut(SenderId) -> bool) {
        self.order.retain(|id| is_kept(*id));
        let SenderTable { known, order } = self;
        let kept: BTreeSet<SenderId> = order.iter().copied().collect();
        known.retain(|id, _| kept.contains(id));
    }
}

/// Canonical: in order of registration.
impl Codec for SenderTable {
    fn encode(&self, out: &mut impl ByteSink) {
        encode_count(self.order.len(), out);
        for id in &self.order {
            (*id, self.known.get(id).copied().unwrap_or_default()).encode(out);
        }
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<SenderTable, DecodeError> {
        let count = u32::decode(from)? as usize;
        from.check(count <= SENDERS_MAX && count <= from.left(), DecodeProblem::Value)?;
        let mut table = SenderTable::default();
        for _ in 0..count {
            let (id, sender): (SenderId, Sender) = Codec::decode(from)?;
            from.check(id.is_named() && table.get(id).is_none(), DecodeProblem::Value)?;
            table.insert(id, sender);
        }
        Ok(table)
    }
}

/// A port's senders, and how much of their descriptions each shard has received.
#[derive(Debug)]
pub struct SenderLog {
    port: PortId,
    /// The first count, beyond those of earlier starts.
    first: u32,
    /// Number of registered senders.
    named: u32,
    ids: BTreeMap<Sender, SenderId>,
    /// Parts that some shard has not received yet; the first of them has the number `begin`.
    parts: VecDeque<(SenderId, SenderPart)>,
    begin: u64,
    /// By shard: the number of parts it has received since the start.
    sent_counts: Vec<u64>,
}

impl SenderLog {
    pub(crate) fn new(port: PortId) -> SenderLog {
        SenderLog {
            port,
            first: COUNT_FIRST,
            named: 0,
            ids: BTreeMap::new(),
            parts: VecDeque::new(),
            begin: 0,
            sent_counts: Vec::new(),
        }
    }

    pub(crate) fn add_shard(&mut self) {
        self.sent_counts.push(self.begin);
    }

    /// Sets the first count. `start` is the number of this server start; numbers repeat after 2,047
    /// starts.
    pub(crate) fn begin(&mut self, start: u64) {
        const STARTS: u64 = (COUNT_MASK / SENDERS_PER_PORT_MAX) as u64;
        self.first = COUNT_FIRST + (start % STARTS) as u32 * SENDERS_PER_PORT_MAX;
    }

    /// Returns the number of a sender, and registers it on first use. See [`SENDERS_PER_PORT_MAX`].
    pub(crate) fn register(&mut self, sender: Sender) -> SenderId {
        if let Some(id) = self.ids.get(&sender) {
            return *id;
        }
        let left = SENDERS_PER_PORT_MAX - self.named;
        if left == 0 {
            return SenderId::UNLISTED;
        }
        if left <= SENDERS_WITHOUT_ADDRESS_MAX && sender.address != SenderAddress::NONE {
            return self.register(Sender { address: SenderAddress::NONE, ..sender });
        }
        let id = SenderId(((self.port.0 as u32) << PORT_SHIFT) | (self.first + self.named));
        self.named += 1;
        self.ids.insert(sender, id);
        self.parts.extend(sender.parts().map(|part| (id, part)));
        id
    }

    /// Returns whether a shard has not received every description.
    #[inline]
    pub(crate) fn has_unsent(&self, shard: usize) -> bool {
        self.sent_counts[shard] != self.begin + self.parts.len() as u64
    }

    /// Returns the next part for a shard.
    pub(crate) fn next(&self, shard: usize) -> Option<(SenderId, SenderPart)> {
        self.parts.get(index_usize(self.sent_counts[shard] - self.begin)).copied()
    }

    /// Marks a part as sent to the shard. Parts that all shards have received are dropped.
    pub(crate) fn advance(&mut self, shard: usize) {
        self.sent_counts[shard] += 1;
        let least = self.sent_counts.iter().copied().min().unwrap_or_default();
        while self.begin < least && self.parts.pop_front().is_some() {
            self.begin += 1;
        }
    }
}

/// Senders of one order's requests. A sender's number may outlive the sender's description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentBy {
    pub submitted: SenderId,
    /// The last modification.
    pub modified: SenderId,
    pub canceled: SenderId,
}

impl SentBy {
    pub fn is_empty(&self) -> bool {
        *self == SentBy::default()
    }
}

codec!(SenderId(id));
codec!(SenderAddress(bytes));
codec!(enum Protocol { 0 = Internal, 1 = Rest, 2 = Fix, 3 = Stomp, 4 = Strategy });
codec!(Sender { protocol, address, login, session });
codec!(SentBy { submitted, modified, canceled });
codec!(enum SenderPart { 0 = Login { protocol, address, login }, 1 = Session(session) });

/// A byte for the length, then the characters.
impl Codec for SenderText {
    fn encode(&self, out: &mut impl ByteSink) {
        out.put(&[self.len]);
        out.put(&self.bytes[..self.len as usize]);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<SenderText, DecodeError> {
        let [len] = from.array()?;
        from.check(len as usize <= SENDER_TEXT_BYTES_MAX, DecodeProblem::Value)?;
        let text = from.take(len as usize)?;
        from.check(text.iter().all(u8::is_ascii_graphic), DecodeProblem::Value)?;
        let mut made = SenderText { len, ..SenderText::EMPTY };
        made.bytes[..text.len()].copy_from_slice(text);
        Ok(made)
    }
}

#[cfg(test)]
mod tests;
