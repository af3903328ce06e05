//! Faults of the settings, in a form that editors can jump to: `file:line:column: key: problem`.

use std::fmt;

use super::tree::Origin;
use crate::faults;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub origin: Origin,
    /// Dotted key; empty if the fault concerns the whole source.
    pub key: String,
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.problem)
    }
}

pub type Faults = faults::Faults<Fault>;

impl Faults {
    pub fn add(&mut self, origin: &Origin, key: &str, problem: impl Into<String>) {
        self.tell(Fault { origin: origin.clone(), key: key.to_string(), problem: problem.into() });
    }
}
