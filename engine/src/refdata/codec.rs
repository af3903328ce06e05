//! Bytes of reference data, including inactive rows. The same data give the same bytes, so a hash
//! of them identifies the data.

use super::{RefData, RefDataRows};
use crate::codec::{Codec, DecodeError, DecodeProblem, Digest, decode_whole};

impl RefData {
    /// Appends the encoding of this reference data to `out`.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.rows.encode(out);
    }

    /// Decodes reference data from exactly these bytes and checks them as if they were new.
    pub fn load(bytes: &[u8]) -> Result<RefData, DecodeError> {
        let rows: RefDataRows = decode_whole(bytes)?;
        let unsound = DecodeError { at: bytes.len(), problem: DecodeProblem::Contradiction };
        let reference = RefData::check(rows.clone()).map_err(|_| unsound)?;
        // In another order, or without SERVER, they would be another encoding of the same data.
        if reference.rows == rows { Ok(reference) } else { Err(unsound) }
    }

    /// Adds the rows to a digest.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        self.rows.encode(sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refdata::sample::sound;
    use crate::refdata::{NotionalLimit, OrderKinds};
    use crate::terms::OrderKind;

    fn bytes_of(reference: &RefData) -> Vec<u8> {
        let mut bytes = Vec::new();
        reference.save(&mut bytes);
        bytes
    }

    #[test]
    fn reference_data_decode_with_their_inactive_rows() {
        let old = RefData::check(sound()).unwrap();
        let mut fewer = sound();
        let gone = fewer.securities.pop().unwrap().id;
        fewer.strategies.clear();
        let new = RefData::check(fewer).unwrap().succeed(&old).unwrap();
        assert!(!new.security(gone).unwrap().tradeable);
        let mut reserved = sound();
        reserved.accounts[0].strategies = vec![crate::id::StrategyId::SERVER];
        let reserved_rows = reserved.clone();
        let reserved = RefData::check(reserved).unwrap();
        let limited = with_limits(sound());
        let both = with_limits(reserved_rows);
        for reference in [&old, &new, &reserved, &limited, &both] {
            let bytes = bytes_of(reference);
            let back = RefData::load(&bytes).unwrap();
            assert_eq!(back, *reference);
            assert_eq!(bytes_of(&back), bytes);
            // Without the last parts all strategies may use the accounts, and nothing is limited.
            let plain = if reference == &new { usize::MAX } else { bytes_of(&old).len() };
            let unlimited = if reference == &both { bytes_of(&reserved).len() } else { plain };
            for cut in 0..bytes.len() {
                let is_whole = cut == plain || cut == unlimited;
                assert_eq!(RefData::load(&bytes[..cut]).is_ok(), is_whole, "{cut}");
            }
        }
        assert_ne!(bytes_of(&old), bytes_of(&new));
    }

    fn with_limits(mut rows: RefDataRows) -> RefData {
        let amount = crate::number::Money::from_raw(5);
        rows.families[0].limits.min_notional = Some(NotionalLimit { amount, to_market: false });
        rows.families[2].limits.kinds = OrderKinds::of([OrderKind::Limit]).unwrap();
        RefData::check(rows).unwrap()
    }

    #[test]
    fn limits_of_unknown_families_and_limits_of_nothing_are_decode_errors() {
        let mut plain = bytes_of(&RefData::check(sound()).unwrap());
        // No account is reserved.
        plain.extend([0; 4]);
        assert_eq!(RefData::load(&plain).unwrap_err().problem, DecodeProblem::Value);
        let of = |family: u32, min: Option<i64>, kinds: u8| {
            let mut bytes = [&plain[..], &1u32.to_le_bytes(), &family.to_le_bytes()].concat();
            min.map(|raw| (raw, true)).encode(&mut bytes);
            bytes.extend([0, kinds]);
            RefData::load(&bytes).map_err(|error| error.problem)
        };
        assert!(of(1, Some(5), 15).is_ok());
        assert_eq!(of(1, None, 15), Err(DecodeProblem::Contradiction), "it limits nothing");
        assert_eq!(of(9, Some(5), 15), Err(DecodeProblem::Contradiction), "there is no such family");
        assert_eq!(of(1, Some(-5), 15), Err(DecodeProblem::Contradiction), "it is not above zero");
        for kinds in [0, 16] {
            assert_eq!(of(1, Some(5), kinds), Err(DecodeProblem::Value));
        }
        let none = [&plain[..], &[0; 4]].concat();
        assert_eq!(RefData::load(&none).unwrap_err().problem, DecodeProblem::Value);
    }

    #[test]
    fn inconsistent_or_unsorted_rows_are_decode_errors() {
        let rows = RefData::check(sound()).unwrap().rows;
        let mut bytes = Vec::new();
        let mut orphaned = rows.clone();
        orphaned.families.clear();
        let mut turned = rows.clone();
        turned.securities.reverse();
        let mut headless = rows;
        headless.strategies.retain(|row| row.id != crate::id::StrategyId::SERVER);
        for rows in [orphaned, turned, headless] {
            bytes.clear();
            rows.encode(&mut bytes);
            assert_eq!(RefData::load(&bytes).unwrap_err().problem, DecodeProblem::Contradiction);
        }
    }
}
