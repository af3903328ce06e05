//! How a strategy names a security: by id, or by symbol.

use pitlane_engine::id::SecurityId;
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::RefData;

/// An id or a symbol. A symbol is searched at each call, so a strategy that uses a security at each
/// tick keeps the id of [`Context::security`](crate::Context::security).
pub trait SecurityKey {
    /// Returns the id. A symbol that no exchange or more than one has is refused.
    fn id_in(self, reference: &RefData) -> Result<SecurityId, Reason>;
}

impl SecurityKey for SecurityId {
    #[inline]
    fn id_in(self, _: &RefData) -> Result<SecurityId, Reason> {
        Ok(self)
    }
}

impl SecurityKey for &str {
    fn id_in(self, reference: &RefData) -> Result<SecurityId, Reason> {
        match reference.by_symbol(self) {
            [only] => Ok(*only),
            [] | [_, ..] => Err(Reason::UnknownSecurity),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pitlane_engine::id::FamilyId;
    use pitlane_engine::refdata::sample;

    #[test]
    fn a_symbol_of_one_exchange_is_found() {
        let mut rows = sample::sound();
        let mut twin = rows.securities[0].clone();
        (twin.id, twin.family, twin.symbol) = (SecurityId(8), FamilyId(3), "TWIN".into());
        rows.securities.push(twin.clone());
        (twin.id, twin.family) = (SecurityId(9), FamilyId(1));
        rows.securities.push(twin);
        let reference = RefData::check(rows).unwrap();
        assert_eq!("ACME".id_in(&reference), Ok(SecurityId(1)));
        assert_eq!("acme".id_in(&reference), Err(Reason::UnknownSecurity));
        assert_eq!("TWIN".id_in(&reference), Err(Reason::UnknownSecurity), "two exchanges have it");
        assert_eq!(SecurityId(8).id_in(&reference), Ok(SecurityId(8)));
    }
}
