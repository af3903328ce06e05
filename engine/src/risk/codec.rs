//! Bytes of the guards.

use super::{BudgetShare, RiskGuard};
use crate::codec::{ByteReader, ByteSink, COUNTER_MAX, Codec, DecodeError, DecodeProblem};

/// Half of the granted amount follows from the other fields.
impl Codec for BudgetShare {
    fn encode(&self, out: &mut impl ByteSink) {
        self.limited.encode(out);
        self.granted.encode(out);
        self.used.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<BudgetShare, DecodeError> {
        let mut share = BudgetShare::default();
        let (limited, granted) = Codec::decode(from)?;
        share.grant(limited, granted);
        share.used = Codec::decode(from)?;
        Ok(share)
    }
}

impl Codec for RiskGuard {
    fn encode(&self, out: &mut impl ByteSink) {
        self.scope.encode(out);
        self.limits.encode(out);
        self.killed.encode(out);
        self.restricted.encode(out);
        [self.open_orders, self.rate, self.credit].encode(out);
        self.credit_sum.encode(out);
        self.second_ns.encode(out);
        self.recent.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<RiskGuard, DecodeError> {
        let mut guard = RiskGuard::new(Codec::decode(from)?);
        let limits = Codec::decode(from)?;
        guard.killed = Codec::decode(from)?;
        guard.restricted = Codec::decode(from)?;
        [guard.open_orders, guard.rate, guard.credit] = Codec::decode(from)?;
        from.check((0..=COUNTER_MAX).contains(&guard.rate.used), DecodeProblem::Value)?;
        guard.credit_sum = Codec::decode(from)?;
        guard.second_ns = Codec::decode(from)?;
        guard.recent = Codec::decode(from)?;
        from.check(guard.restricted.is_sorted_by(|a, b| a < b), DecodeProblem::Contradiction)?;
        guard.keep_limits(limits);
        Ok(guard)
    }
}
