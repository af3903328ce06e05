//! Failures, counted by kind. No check panics before the end, so that a campaign reports all
//! failures.

use std::fmt;

/// Findings printed in full; the rest are counted.
const SHOWN: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingKind {
    /// A client was informed of it, and it does not exist.
    Lost,
    /// It exists twice, or was reported twice.
    Doubled,
    /// Sums that should be equal are not.
    Unbalanced,
    /// A protocol rule was broken towards a client, or the service did not do what it must.
    Broken,
    Panic,
}

#[derive(Debug, Default)]
pub(crate) struct ChaosFindings {
    found: Vec<(FindingKind, String)>,
}

impl ChaosFindings {
    pub(crate) fn add(&mut self, kind: FindingKind, what: String) {
        self.found.push((kind, what));
    }

    pub(crate) fn take(&mut self, other: ChaosFindings) {
        self.found.extend(other.found);
    }

    pub(crate) fn count(&self, kind: FindingKind) -> usize {
        self.found.iter().filter(|(found, _)| *found == kind).count()
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }
}

impl fmt::Display for ChaosFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, what) in self.found.iter().take(SHOWN) {
            writeln!(f, "{kind:?}: {what}")?;
        }
        match self.found.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}
