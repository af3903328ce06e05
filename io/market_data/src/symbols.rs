//! Securities as files name them: by id, or by a symbol that only one exchange has.

use std::collections::BTreeMap;

use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::RefData;

/// Securities by their names in files. The last one is cached, because files repeat them.
#[derive(Debug)]
pub struct Symbols {
    known: BTreeMap<Box<[u8]>, Option<SecurityId>>,
    last: (Vec<u8>, SecurityId),
    /// Last security that was given as a number.
    last_number: Option<(i64, SecurityId)>,
}

impl Symbols {
    pub fn new(reference: &RefData) -> Symbols {
        let mut known: BTreeMap<Box<[u8]>, Option<SecurityId>> = BTreeMap::new();
        for row in reference.securities() {
            known.insert(row.id.to_string().into_bytes().into(), Some(row.id));
        }
        for row in reference.securities() {
            let ids = reference.by_symbol(&row.symbol);
            // A symbol on two exchanges is ambiguous; then the id must be given.
            let only = if let [id] = ids { Some(*id) } else { None };
            known.entry(row.symbol.as_bytes().into()).or_insert(only);
        }
        Symbols { known, last: (Vec::new(), SecurityId(0)), last_number: None }
    }

    #[inline]
    pub fn find(&mut self, name: &[u8]) -> Result<SecurityId, String> {
        if self.last.0 == name && !name.is_empty() {
            return Ok(self.last.1);
        }
        match self.known.get(name) {
            Some(Some(id)) => {
                self.last.0.clear();
                self.last.0.extend_from_slice(name);
                self.last.1 = *id;
                Ok(*id)
            }
            Some(None) => {
                Err(format!("{} is traded on several exchanges: give its id", String::from_utf8_lossy(name)))
            }
            None => Err(format!("there is no security {}", String::from_utf8_lossy(name))),
        }
    }

    /// Finds a security by its id.
    #[inline]
    pub fn number(&mut self, number: i64) -> Result<SecurityId, String> {
        if let Some((last, id)) = self.last_number
            && last == number
        {
            return Ok(id);
        }
        let id = self.find(number.to_string().as_bytes())?;
        self.last_number = Some((number, id));
        Ok(id)
    }
}
