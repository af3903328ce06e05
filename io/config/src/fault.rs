//! Faults of the settings, in a form that editors can jump to: `file:line:column: key: problem`.

use std::fmt;

use super::origin::SettingOrigin;
use crate::diagnostics;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFault {
    pub origin: SettingOrigin,
    /// Dotted key; empty if the fault concerns the whole source.
    pub key: String,
    pub problem: String,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

pub type ConfigFaults = diagnostics::Faults<ConfigFault>;

impl ConfigFaults {
    pub fn add(&mut self, origin: &SettingOrigin, key: &str, problem: impl Into<String>) {
        self.push(ConfigFault { origin: origin.clone(), key: key.to_string(), problem: problem.into() });
    }
}
