//! Ids. Each kind of id is its own type, so that a security can never be mistaken for an account.
//!
//! Rules: docs/domain.md#ids.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::text::{self, TextError};

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident($int:ty), max $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// Largest id that the reference data may use.
            pub const MAX: $int = $max;
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

number_id!(
    /// A security. At most 20 bits, so that ids built from it stay exact in a JavaScript number.
    SecurityId(u32), max (1 << 20) - 1
);
number_id!(
    /// A family of securities, which share tick, lot, contract size and commission.
    FamilyId(u32), max u32::MAX
);
number_id!(
    /// An exchange.
    ExchangeId(u16), max u16::MAX
);
number_id!(
    /// An account at a venue.
    AccountId(u16), max u16::MAX
);
number_id!(
    /// A strategy; [`StrategyId::SERVER`] is the platform itself.
    StrategyId(u16), max u16::MAX
);
number_id!(
    /// A route to a venue: index into the configured adapters. [`AdapterId::SIM`] is the venue
    /// inside the shard.
    AdapterId(u8), max u8::MAX
);
number_id!(
    /// A shard: the owner of a disjoint set of securities.
    ShardId(u8), max 127
);
number_id!(
    /// A thread that communicates with the shards over a pair of lanes.
    PortId(u8), max 31
);

/// Bits of the number that a port has at its own server.
const PORT_MASK: u8 = PortId::MAX;
const _: () = assert!((PortId::MAX + 1).is_power_of_two(), "a mask gives the number of a port at its server");

impl PortId {
    /// The port of the http thread.
    pub const HTTP: PortId = PortId(1);
    /// The port that leads to other servers: their ports have higher numbers, see
    /// `pitlane_protocols::remote::cluster`.
    pub const LINK: PortId = PortId(PortId::MAX);

    /// Returns whether this is a port of another server.
    pub fn is_remote(self) -> bool {
        self.0 > PortId::MAX
    }

    /// Returns the port that stands for the ids of this one. The ids of a port are its own, except
    /// those of REST orders: a client may repeat an order at another server of the cluster, so the
    /// http threads of all servers share them.
    pub fn id_scope(self) -> PortId {
        if self.0 & PORT_MASK == PortId::HTTP.0 { PortId::HTTP } else { self }
    }
}

impl StrategyId {
    pub const SERVER: StrategyId = StrategyId(0);
}

impl AdapterId {
    pub const SIM: AdapterId = AdapterId(0);
}

/// A set of ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortMask(pub u32);

impl PortMask {
    pub const NONE: PortMask = PortMask(0);

    /// Returns the set of one port. Ports of other servers are behind the link.
    #[inline]
    pub fn one(port: PortId) -> PortMask {
        PortMask(1 << port.0.min(PortId::MAX))
    }

    pub fn with(self, other: PortMask) -> PortMask {
        PortMask(self.0 | other.0)
    }

    pub fn without(self, other: PortMask) -> PortMask {
        PortMask(self.0 & !other.0)
    }

    pub fn and(self, other: PortMask) -> PortMask {
        PortMask(self.0 & other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, port: PortId) -> bool {
        self.0 & PortMask::one(port).0 != 0
    }

    /// Returns the ports of this set, lowest first.
    pub fn ports(self) -> impl Iterator<Item = PortId> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let port = rest.trailing_zeros();
            rest &= rest.wrapping_sub(1);
            (port < 32).then_some(PortId((port & 0x1f) as u8))
        })
    }
}

/// Kind of client from which an order came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// The platform itself: closing a position, an expiry.
    #[default]
    Server,
    Rest,
    Fix,
    Strategy,
}

/// Sender of a command and receiver of its answers. Order ids are unique within a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    pub origin: Origin,
    pub port: PortId,
    /// Session on that port; the port defines its meaning.
    pub session: u16,
}

/// Bytes in an [`IntId`].
pub const INT_ID_BYTES: usize = 48;

/// The id of an order as its source knows it: 1 to 48 printable ASCII characters without space. The
/// default is no id.
///
/// Invariant: only zero bytes follow the text. Aligned, so that it is copied in whole words.
#[repr(align(8))]
#[derive(Clone, Copy, Eq, PartialOrd, Ord)]
pub struct IntId([u8; INT_ID_BYTES]);

impl PartialEq for IntId {
    /// Compares by words: a call that compares bytes takes longer than this comparison.
    #[inline]
    fn eq(&self, other: &IntId) -> bool {
        let pairs = self.0.as_chunks::<16>().0.iter().zip(other.0.as_chunks::<16>().0);
        let differ = |(ours, theirs): (&[u8; 16], &[u8; 16])| {
            u128::from_ne_bytes(*ours) ^ u128::from_ne_bytes(*theirs)
        };
        pairs.map(differ).fold(0, |all, differ| all | differ) == 0
    }
}

impl Hash for IntId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl IntId {
    pub const NONE: IntId = IntId([0; INT_ID_BYTES]);

    pub fn parse(bytes: &[u8]) -> Result<IntId, TextError> {
        if bytes.is_empty() {
            return Err(TextError::Empty);
        }
        if bytes.len() > INT_ID_BYTES {
            return Err(TextError::TooLong);
        }
        // Most ids have two words. The last eight bytes cover the rest of the first eight.
        if let (9..=16, Some(first), Some(last)) = (bytes.len(), bytes.first_chunk(), bytes.last_chunk()) {
            let [first, last] = [first, last].map(|word| u64::from_le_bytes(*word));
            let second = last >> (8 * (16 - bytes.len()));
            let is_text = text::are_graphic(first) && text::are_graphic(last);
            return if is_text {
                Ok(IntId::of_words([first, second, 0, 0, 0, 0]))
            } else {
                Err(TextError::Character)
            };
        }
        // Built from whole words, because it is copied and compared in whole words.
        let mut words = [0; INT_ID_BYTES / 8];
        let (whole, rest) = bytes.as_chunks::<8>();
        let mut is_text = true;
        for (place, chunk) in words.iter_mut().zip(whole) {
            *place = u64::from_le_bytes(*chunk);
            is_text &= text::are_graphic(*place);
        }
        if let Some(place) = words.get_mut(whole.len()).filter(|_| !rest.is_empty()) {
            let beyond = u64::MAX << (8 * rest.len());
            *place = match bytes.last_chunk::<8>() {
                Some(last) => u64::from_le_bytes(*last) >> (64 - 8 * rest.len()),
                None => rest.iter().rev().fold(0, |word, &byte| word << 8 | byte as u64),
            };
            is_text &= text::are_graphic(*place | beyond & u64::from_le_bytes([b'x'; 8]));
        }
        if is_text { Ok(IntId::of_words(words)) } else { Err(TextError::Character) }
    }

    /// Creates an id from a number: `prefix` and the number in decimal.
    #[inline(always)]
    pub fn numbered(prefix: u8, number: u64) -> IntId {
        let [first, second, third] = match text::digits_of(number) {
            Some(digits) => [digits << 8 | prefix as u64, digits >> 56, 0],
            None => IntId::words_of(prefix, number),
        };
        IntId::of_words([first, second, third, 0, 0, 0])
    }

    #[inline(always)]
    fn of_words(words: [u64; INT_ID_BYTES / 8]) -> IntId {
        let mut id = [0; INT_ID_BYTES];
        for (place, word) in id.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        IntId(id)
    }

    /// Returns the first words of an id with a long number.
    #[cold]
    #[inline(never)]
    fn words_of(prefix: u8, number: u64) -> [u64; 3] {
        let mut id = [0; 24];
        id[0] = prefix;
        text::write_u64(number, &mut id[1..]);
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(id.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        words
    }

    /// Returns the id that an order gets with its next modification: `root` becomes `root.1`,
    /// `root.1` becomes `root.2`. `None` if there is no room left for the version.
    pub fn next_version(&self) -> Option<IntId> {
        let text = self.as_bytes();
        let dot = text.iter().rposition(|&b| b == b'.');
        let version = dot.and_then(|at| text::parse_u64(&text[at + 1..]).ok());
        let (root, version) = match (dot, version) {
            (Some(at), Some(version)) => (&text[..at], version.checked_add(1)?),
            _ => (text, 1),
        };
        let mut digits = [0; 20];
        let count = text::write_u64(version, &mut digits);
        let mut id = [0; INT_ID_BYTES];
        let end = root.len() + 1 + count;
        if end > INT_ID_BYTES {
            return None;
        }
        id[..root.len()].copy_from_slice(root);
        id[root.len()] = b'.';
        id[root.len() + 1..end].copy_from_slice(&digits[..count]);
        Some(IntId(id))
    }

    pub fn is_none(&self) -> bool {
        self.0[0] == 0
    }

    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0[..self.text_len()]
    }

    /// Returns the length of the text. It counts by words: the text ends in the first word whose
    /// last byte is zero.
    #[inline]
    pub fn text_len(&self) -> usize {
        let words = self.0.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let last = words.enumerate().find(|(_, word)| word >> 56 == 0);
        last.map_or(INT_ID_BYTES, |(at, word)| at * 8 + 8 - word.leading_zeros() as usize / 8)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.as_bytes()).expect("parse admits ASCII only")
    }

    /// Returns the whole array, zeros included: for hashing and copying.
    pub fn padded(&self) -> &[u8; INT_ID_BYTES] {
        &self.0
    }
}

impl Default for IntId {
    fn default() -> IntId {
        IntId::NONE
    }
}

impl fmt::Display for IntId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for IntId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntId({})", self.as_str())
    }
}

/// Location of an order: shard (8 bits), generation of the slot (24 bits), slot (32 bits).
///
/// A slot is reused for another order only under another generation, so an outdated handle finds no
/// order rather than a wrong one.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderHandle(u64);

/// Generations before one repeats.
pub const GENERATIONS: u32 = 1 << 24;

impl OrderHandle {
    /// The handle of no order: shard 255 does not exist.
    pub const NONE: OrderHandle = OrderHandle(u64::MAX);

    pub fn new(shard: ShardId, generation: u32, slot: u32) -> OrderHandle {
        assert!(generation < GENERATIONS, "a generation has 24 bits");
        OrderHandle((shard.0 as u64) << 56 | (generation as u64) << 32 | slot as u64)
    }

    pub fn shard(self) -> ShardId {
        ShardId((self.0 >> 56) as u8)
    }

    pub fn generation(self) -> u32 {
        (self.0 >> 32) as u32 & (GENERATIONS - 1)
    }

    pub fn slot(self) -> u32 {
        (self.0 & 0xffff_ffff) as u32
    }

    pub fn raw(self) -> u64 {
        self.0
    }

    pub fn from_raw(raw: u64) -> OrderHandle {
        OrderHandle(raw)
    }
}

impl fmt::Debug for OrderHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.shard().0, self.generation(), self.slot())
    }
}

/// A position of one strategy in one security. It is built from both, so that it is the same on any
/// number of shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PositionId(pub u64);

impl PositionId {
    pub fn new(strategy: StrategyId, security: SecurityId) -> PositionId {
        PositionId((security.0 as u64) << 16 | strategy.0 as u64)
    }

    pub fn strategy(self) -> StrategyId {
        StrategyId((self.0 & 0xffff) as u16)
    }

    pub fn security(self) -> SecurityId {
        SecurityId((self.0 >> 16 & 0xffff_ffff) as u32)
    }
}

/// A transaction: the ledger in which it was booked, and its number there. Globally unique, the
/// same on any number of shards, and below 2^53. The ledger of a trade is its security; that of a
/// cash movement is its strategy, numbered after all securities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(pub u64);

impl TransactionId {
    pub fn of_security(security: SecurityId, number: u32) -> TransactionId {
        TransactionId((security.0 as u64) << 32 | number as u64)
    }

    pub fn of_cash(strategy: StrategyId, number: u32) -> TransactionId {
        TransactionId((1 << 20 | strategy.0 as u64) << 32 | number as u64)
    }

    /// Returns a UUID (version 8) derived from the id, so that a replay gives the same.
    pub fn uuid(self, instance: u64) -> Uuid {
        Uuid::derived(instance, 1, self.0)
    }
}

/// 128 bits, written as in RFC 9562.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uuid(pub u128);

impl Uuid {
    /// Derives a version 8 UUID from a platform instance, a kind and a number. Equal inputs give
    /// equal UUIDs; different inputs give different UUIDs, since the mixing loses nothing of
    /// `number` and keeps 58 bits of instance and kind.
    pub fn derived(instance: u64, kind: u8, number: u64) -> Uuid {
        let high = mix(instance ^ (kind as u64) << 56);
        let low = mix(number ^ high);
        // The 122 free bits: 60 of `high` around the version, 62 of `low`; the two top bits of
        // `low` move into `high`.
        let top = (high >> 16) << 16 | 0x8000 | (high & 0xffc) | low >> 62;
        Uuid((top as u128) << 64 | (1u128 << 63) | (low & (u64::MAX >> 2)) as u128)
    }

    /// Returns the text in the usual form: `01234567-89ab-cdef-0123-456789abcdef`.
    #[inline]
    pub fn text(self) -> [u8; UUID_BYTES] {
        let mut text = [b'-'; UUID_BYTES];
        let hex = |shift: u32| text::hex_of((self.0 >> shift & 0xffff_ffff) as u32);
        let (a, b, c, d) = (hex(96), hex(64), hex(32), hex(0));
        text[..8].copy_from_slice(&a);
        text[9..13].copy_from_slice(&b[..4]);
        text[14..18].copy_from_slice(&b[4..]);
        text[19..23].copy_from_slice(&c[..4]);
        text[24..28].copy_from_slice(&c[4..]);
        text[28..].copy_from_slice(&d);
        text
    }
}

/// Bytes of the text of a [`Uuid`].
pub const UUID_BYTES: usize = 36;

/// Applies a bijection of 64 bits (the finalizer of SplitMix64): close inputs give unrelated
/// outputs.
fn mix(mut x: u64) -> u64 {
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.text()).unwrap_or_default())
    }
}

/// Longest code of a currency. Assets of crypto venues have longer codes than the three letters of
/// ISO 4217: FDUSD, 1000SATS.
pub const CURRENCY_BYTES: usize = 8;

/// Code of a currency or of another asset that money is counted in: one to [`CURRENCY_BYTES`]
/// capital letters or digits, zero-padded.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; CURRENCY_BYTES]);

impl Currency {
    pub fn parse(bytes: &[u8]) -> Result<Currency, TextError> {
        match bytes.len() {
            0 => return Err(TextError::Empty),
            1..=CURRENCY_BYTES => {}
            _ => return Err(TextError::TooLong),
        }
        if !bytes.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()) {
            return Err(TextError::Character);
        }
        let mut code = [0; CURRENCY_BYTES];
        code[..bytes.len()].copy_from_slice(bytes);
        Ok(Currency(code))
    }

    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|&b| b == 0).unwrap_or(CURRENCY_BYTES);
        std::str::from_utf8(&self.0[..len]).expect("parse admits ASCII only")
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
