//! Securities of the symbols that other providers use.

use std::collections::BTreeMap;
use std::sync::Arc;

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Price;
use pitlane_engine::refdata::RefData;

use super::symbols::Symbols;

#[derive(Debug)]
pub(crate) struct ForeignSymbols {
    reference: Arc<RefData>,
    /// Securities that the settings give to symbols.
    given: BTreeMap<String, SecurityId>,
}

impl ForeignSymbols {
    /// Creates the table; an error names a security that does not exist.
    pub(crate) fn new(
        given: &BTreeMap<String, String>,
        reference: &Arc<RefData>,
    ) -> Result<ForeignSymbols, String> {
        let mut symbols = Symbols::new(reference);
        let find = |(name, security): (&String, &String)| match symbols.find(security.as_bytes()) {
            Ok(id) => Ok((name.clone(), id)),
            Err(problem) => Err(format!("symbols: {name}={security}: {problem}")),
        };
        let given = given.iter().map(find).collect::<Result<_, String>>()?;
        Ok(ForeignSymbols { reference: reference.clone(), given })
    }

    /// Returns the security of a symbol; `None` if the reference data have none.
    pub(crate) fn find(&self, symbol: &str) -> Result<Option<SecurityId>, String> {
        if let Some(id) = self.given.get(symbol) {
            return Ok(Some(*id));
        }
        match self.reference.by_symbol(symbol) {
            [] => Ok(None),
            [id] => Ok(Some(*id)),
            [..] => Err(format!(
                "{symbol} is traded on several exchanges: name one, such as symbols = [\"{symbol}=ID\"]"
            )),
        }
    }

    /// Returns the tick size of a security.
    pub(crate) fn tick_size(&self, security: SecurityId) -> Price {
        let row = self.reference.security(security);
        row.map_or(Price::ZERO, |row| self.reference.family_of(row).tick_size)
    }
}

/// Returns why no symbol of a file has a security.
pub(crate) fn no_symbol_is_known<'a>(symbols: impl Iterator<Item = &'a str>) -> String {
    let first: Vec<&str> = symbols.take(3).collect();
    match first.first() {
        Some(one) => format!(
            "its symbols ({}) are not in the reference data: name their securities, such as symbols = [\"{one}=ID\"]",
            first.join(", ")
        ),
        None => "it names no symbol of the reference data".to_string(),
    }
}
