//! Every effective setting as a dotted name and a text, with its origin. Secrets are `***`.

use std::collections::BTreeMap;

use super::origin::SettingOrigin;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveSetting {
    pub text: String,
    pub origin: SettingOrigin,
}

/// Settings by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    by_name: BTreeMap<String, EffectiveSetting>,
    /// Origins of tables whose names are chosen by the user.
    tables: BTreeMap<String, SettingOrigin>,
}

impl Params {
    pub fn add(&mut self, name: String, text: String, origin: SettingOrigin) {
        self.by_name.insert(name, EffectiveSetting { text, origin });
    }

    pub fn place(&mut self, table: &str, origin: SettingOrigin) {
        self.tables.insert(table.to_string(), origin);
    }

    pub fn get(&self, name: &str) -> Option<&EffectiveSetting> {
        self.by_name.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &EffectiveSetting)> {
        self.by_name.iter().map(|(name, param)| (name.as_str(), param))
    }

    /// Returns the origin of a setting or a table, for faults that concern several of them. A
    /// missing setting has the origin of the nearest table around it.
    pub fn origin(&self, name: &str) -> SettingOrigin {
        let known = |name: &str| self.get(name).map(|param| &param.origin).or_else(|| self.tables.get(name));
        let mut names = std::iter::successors(Some(name), |name| Some(name.rsplit_once('.')?.0));
        names.find_map(known).cloned().unwrap_or_else(|| SettingOrigin::file(super::layers::DEFAULT.0))
    }
}
