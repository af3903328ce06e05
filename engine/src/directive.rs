//! Decisions of an operator for all shards: kill switches, limits and restrictions, each with a
//! version.
//!
//! ```text
//! operator ─► server a ── Direct { version, directive } ──► every shard that can be reached
//!                                                             │ applies it if its version is the newest for its key
//! server b, later ◄── Directed { version, directive } ◄───────┘
//!     └── Direct, the same version ──► its own shards, which were not reachable then
//! ```
//!
//! Every shard keeps the newest directive for each key and includes it in its snapshots. Any shard
//! can therefore pass on to any other what that shard missed, in any order and any number of times:
//! the newest version wins. A single server needs no versions and sends the plain commands.

use crate::codec::{
    ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, codec, decode_into, encode_list,
};
use crate::command::{RiskLimits, Scope};
use crate::id::SecurityId;
use crate::reason::Reason;
use crate::time::Timestamp;

/// Keys that a shard remembers: years of an operator's work, some 8 MB.
pub const DIRECTIVES_MAX: usize = 65_536;

/// Bits of a version that identify the server which created it.
const MEMBER_BITS: u32 = 3;
/// Largest step from the previous version where the clock is behind, less one.
const STEP_MASK: u64 = 0xffff;

/// An operator's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    Kill { scope: Scope, on: bool },
    Limits { scope: Scope, limits: RiskLimits },
    Restrict { scope: Scope, security: SecurityId, on: bool },
}

/// Subject of a directive: of two with the same key the newer one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectiveKey {
    Kill(Scope),
    Limits(Scope),
    Restrict(Scope, SecurityId),
}

impl Directive {
    pub fn key(&self) -> DirectiveKey {
        match *self {
            Directive::Kill { scope, .. } => DirectiveKey::Kill(scope),
            Directive::Limits { scope, .. } => DirectiveKey::Limits(scope),
            Directive::Restrict { scope, security, .. } => DirectiveKey::Restrict(scope, security),
        }
    }
}

/// The order of directives, the same on every server. Zero is older than all.
///
/// Time comes first, so that the later one wins where clocks agree; but a version is newer than
/// every version its server knew, regardless of the clock. No two servers create the same version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectiveVersion(pub u64);

impl DirectiveVersion {
    /// Some time in the year 2116. A version that claims to be newer is damaged: if it were
    /// accepted, nothing could overrule it.
    pub const MAX: DirectiveVersion = DirectiveVersion(1 << 62);

    /// Creates the version that `member` assigns at `now`, newer than `newest`.
    pub fn after(newest: DirectiveVersion, now: Timestamp, member: u8) -> DirectiveVersion {
        // Where this clock is behind: not the very next version, because an earlier start may have
        // assigned that one to a directive that never arrived here.
        let next = (newest.0 >> MEMBER_BITS) + 1 + (now.0 & STEP_MASK);
        let count = (now.0 >> MEMBER_BITS).max(next).min(DirectiveVersion::MAX.0 >> MEMBER_BITS);
        let member = u64::from(member) & ((1 << MEMBER_BITS) - 1);
        DirectiveVersion(((count << MEMBER_BITS) | member).min(DirectiveVersion::MAX.0))
    }
}

/// The newest directive for each key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// By key, each once.
    rows: Vec<(Directive, DirectiveVersion)>,
}

impl Directives {
    /// Returns whether this version is to be applied, which means that it is newer than the known
    /// version for the key.
    pub fn is_newer(&self, directive: &Directive, version: DirectiveVersion) -> Result<bool, Reason> {
        match self.find(&directive.key()) {
            Ok(at) => Ok(version > self.rows[at].1),
            Err(_) if self.rows.len() >= DIRECTIVES_MAX => Err(Reason::ShardFull),
            Err(_) => Ok(true),
        }
    }

    /// Records a directive that was applied.
    pub fn note(&mut self, directive: Directive, version: DirectiveVersion) {
        match self.find(&directive.key()) {
            Ok(at) => self.rows[at] = (directive, version),
            Err(at) => self.rows.insert(at, (directive, version)),
        }
    }

    /// Returns the row at this index, in key order.
    pub fn get(&self, at: usize) -> Option<(Directive, DirectiveVersion)> {
        self.rows.get(at).copied()
    }

    fn find(&self, key: &DirectiveKey) -> Result<usize, usize> {
        self.rows.binary_search_by_key(key, |(directive, _)| directive.key())
    }
}

impl Codec for DirectiveVersion {
    fn encode(&self, out: &mut impl ByteSink) {
        self.0.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<DirectiveVersion, DecodeError> {
        let version = DirectiveVersion(u64::decode(from)?);
        from.check(version <= DirectiveVersion::MAX, DecodeProblem::Value)?;
        Ok(version)
    }
}

impl Codec for Directives {
    fn encode(&self, out: &mut impl ByteSink) {
        encode_list(self.rows.iter(), out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Directives, DecodeError> {
        let mut rows: Vec<(Directive, DirectiveVersion)> = Vec::new();
        decode_into(&mut rows, from)?;
        let is_sorted = rows.is_sorted_by(|(one, _), (next, _)| one.key() < next.key());
        from.check(is_sorted && rows.len() <= DIRECTIVES_MAX, DecodeProblem::Contradiction)?;
        Ok(Directives { rows })
    }
}

codec!(enum Directive {
    0 = Kill { scope, on },
    1 = Limits { scope, limits },
    2 = Restrict { scope, security, on },
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_newer_than_all_its_server_knew_and_no_two_servers_give_the_same() {
        let (early, late) = (Timestamp(1_000), Timestamp(9_000));
        let first = DirectiveVersion::after(DirectiveVersion::default(), late, 1);
        assert!(DirectiveVersion::after(first, early, 0) > first, "regardless of the clock");
        assert!(
            DirectiveVersion::after(DirectiveVersion::default(), Timestamp(9_800), 0) > first,
            "the later one"
        );
        let same = [0, 1, 2].map(|member| DirectiveVersion::after(DirectiveVersion::default(), late, member));
        assert!(same[0] < same[1] && same[1] < same[2]);
        assert_eq!(DirectiveVersion::after(DirectiveVersion::MAX, late, 3), DirectiveVersion::MAX);
    }

    #[test]
    fn a_version_is_the_time_in_steps_of_eight_or_a_step_beyond_the_newest() {
        let after = |newest, now| DirectiveVersion::after(DirectiveVersion(newest), Timestamp(now), 5).0;
        assert_eq!(after(0, 800_000), 800_000 | 5, "the clock is ahead");
        let newest = 8_000_000;
        assert_eq!(after(newest, 3), newest + (1 + 3) * 8 + 5, "the clock is behind");
        assert_eq!(after(newest, 0x5_0007), newest + (1 + 7) * 8 + 5, "the step has a bound");
    }

    #[test]
    fn of_two_directives_for_a_key_the_newer_one_stands_in_whatever_order_they_come() {
        let kill = |on| Directive::Kill { scope: Scope::Global, on };
        let mut known = Directives::default();
        for (on, version, is_newer) in
            [(true, 5, true), (false, 4, false), (true, 5, false), (false, 6, true)]
        {
            assert_eq!(known.is_newer(&kill(on), DirectiveVersion(version)), Ok(is_newer));
            if is_newer {
                known.note(kill(on), DirectiveVersion(version));
            }
        }
        let other = Directive::Limits { scope: Scope::Global, limits: RiskLimits::default() };
        assert_eq!(known.is_newer(&other, DirectiveVersion(1)), Ok(true), "another key");
        known.note(other, DirectiveVersion(1));
        assert_eq!((known.get(0), known.get(2)), (Some((kill(false), DirectiveVersion(6))), None));
        let mut bytes = Vec::new();
        known.encode(&mut bytes);
        assert_eq!(crate::codec::decode_whole::<Directives>(&bytes), Ok(known));
    }

    #[test]
    fn a_table_of_directives_has_its_bound() {
        let restrict =
            |security| Directive::Restrict { scope: Scope::Global, security: SecurityId(security), on: true };
        let mut known = Directives::default();
        for security in 0..DIRECTIVES_MAX as u32 {
            known.note(restrict(security), DirectiveVersion(1));
        }
        let decoded = |known: &Directives| {
            let mut bytes = Vec::new();
            known.encode(&mut bytes);
            crate::codec::decode_whole::<Directives>(&bytes).map_err(|damage| damage.problem)
        };
        assert_eq!(decoded(&known).as_ref(), Ok(&known));
        let next = restrict(DIRECTIVES_MAX as u32);
        assert_eq!(known.is_newer(&next, DirectiveVersion(2)), Err(Reason::ShardFull));
        assert_eq!(
            known.is_newer(&restrict(7), DirectiveVersion(2)),
            Ok(true),
            "those that are known can change"
        );
        known.note(next, DirectiveVersion(2));
        assert_eq!(decoded(&known), Err(DecodeProblem::Contradiction), "one too many");
        let row = |security| (restrict(security), DirectiveVersion(1));
        for rows in [vec![row(1), row(1)], vec![row(2), row(1)]] {
            assert_eq!(decoded(&Directives { rows }), Err(DecodeProblem::Contradiction), "in key order");
        }
    }
}
