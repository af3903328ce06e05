//! Every effective setting as a dotted name and a text, with where it came from. Secrets are `***`.

use std::collections::BTreeMap;

use super::tree::Origin;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    pub text: String,
    pub origin: Origin,
}

/// By name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    by_name: BTreeMap<String, Param>,
    /// Where tables under names of the reader's own stand.
    tables: BTreeMap<String, Origin>,
}

impl Params {
    pub fn add(&mut self, name: String, text: String, origin: Origin) {
        self.by_name.insert(name, Param { text, origin });
    }

    pub fn place(&mut self, table: &str, origin: Origin) {
        self.tables.insert(table.to_string(), origin);
    }

    pub fn get(&self, name: &str) -> Option<&Param> {
        self.by_name.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Param)> {
        self.by_name.iter().map(|(name, param)| (name.as_str(), param))
    }

    /// Where a setting or a table was written; for complaints about several of them together.
    pub fn origin(&self, name: &str) -> Origin {
        let setting = self.get(name).map(|param| &param.origin);
        let known = setting.or_else(|| self.tables.get(name)).cloned();
        known.unwrap_or_else(|| Origin::file(super::layers::DEFAULT.0))
    }
}
