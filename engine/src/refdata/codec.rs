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
        let reserved = RefData::check(reserved).unwrap();
        for reference in [&old, &new, &reserved] {
            let bytes = bytes_of(reference);
            let back = RefData::load(&bytes).unwrap();
            assert_eq!(back, *reference);
            assert_eq!(bytes_of(&back), bytes);
            for cut in 0..bytes.len() {
                // Without the last part all strategies may use the accounts.
                let is_plain = cut == bytes_of(&old).len() && reference == &reserved;
                assert_eq!(RefData::load(&bytes[..cut]).is_ok(), is_plain, "{cut}");
            }
        }
        assert_ne!(bytes_of(&old), bytes_of(&new));
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
