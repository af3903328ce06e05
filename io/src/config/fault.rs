//! What is wrong with the settings, told so that an editor can jump there: `file:line:column: key: problem`.

use std::fmt;

use super::tree::Origin;

/// Faults told in one go. Whoever has more than a hundred has one mistake a hundred times.
pub const FAULTS_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub origin: Origin,
    /// Dotted; empty if it is about the whole source.
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

/// All faults that were found, up to [`FAULTS_MAX`]; of the others only the number is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    told: Vec<Fault>,
    untold: usize,
}

impl Faults {
    pub fn add(&mut self, origin: &Origin, key: &str, problem: impl Into<String>) {
        if self.told.len() == FAULTS_MAX {
            self.untold += 1;
            return;
        }
        let fault = Fault { origin: origin.clone(), key: key.to_string(), problem: problem.into() };
        self.told.push(fault);
    }

    pub fn told(&self) -> &[Fault] {
        &self.told
    }

    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.told.iter().enumerate() {
            let line_end = if at == 0 { "" } else { "\n" };
            write!(f, "{line_end}{fault}")?;
        }
        if self.untold > 0 {
            write!(f, "\nand {} more", self.untold)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}
