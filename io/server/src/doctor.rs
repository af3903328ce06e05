//! `pitlane doctor`: checks whether this machine suits low latency with the given settings. Each
//! check reports what it found, why it matters and the command that corrects it.
//!
//! What the kernel shows in files is read below a root folder, and what must be tried (a ring, a
//! sync, a port) is tried beforehand, so that tests can check a made-up machine as well as this
//! one.

mod cores;
mod host;
mod kernel;
mod limits;
mod probes;
mod storage;

use std::fmt;
use std::path::Path;

pub use host::{HostFiles, chosen};
use pitlane_config::Config;
pub use probes::{PortProbe, Probes};
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFinding {
    /// Name of the check, one word.
    pub check: &'static str,
    pub verdict: HostVerdict,
    /// What was found.
    pub found: String,
    pub why: &'static str,
    /// A command, or a sentence where there is no command; empty if nothing is wrong.
    pub remedy: String,
    /// What corrects it without a person; empty if nothing is wrong or a person must do it.
    pub changes: Vec<HostChange>,
}

/// A change of the machine that corrects a finding; see `tune`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostChange {
    /// A text for a file of the kernel, whose path is relative to the root folder.
    Write { path: String, text: String },
    /// Parameters of the kernel at its next start.
    BootParameters(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostVerdict {
    Fit,
    Unfit,
    /// The machine does not reveal it.
    Unknown,
}

impl HostVerdict {
    pub fn word(self) -> &'static str {
        match self {
            HostVerdict::Fit => "ok",
            HostVerdict::Unfit => "unfit",
            HostVerdict::Unknown => "unknown",
        }
    }
}

/// Runs every check, in the order in which findings are best corrected.
pub fn examine(config: &Config, root: &Path, probes: &Probes) -> Vec<HostFinding> {
    let host = HostFiles::at(root);
    let checks = [
        cores::check(config, &host),
        kernel::check(config, &host, probes),
        limits::check(config, &host, probes),
        storage::check(config, &host, probes),
    ];
    checks.into_iter().flatten().collect()
}

/// Returns the number of findings that need correction.
pub fn unfit(findings: &[HostFinding]) -> usize {
    findings.iter().filter(|finding| finding.verdict == HostVerdict::Unfit).count()
}

pub fn to_json(findings: &[HostFinding]) -> Value {
    let one = |finding: &HostFinding| {
        json!({
            "check": finding.check,
            "verdict": finding.verdict.word(),
            "found": finding.found,
            "why": finding.why,
            "remedy": finding.remedy,
        })
    };
    json!({ "fit": unfit(findings) == 0, "findings": findings.iter().map(one).collect::<Vec<_>>() })
}

impl fmt::Display for HostFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8}{:<14}{}", self.verdict.word(), self.check, self.found)?;
        if self.verdict != HostVerdict::Fit {
            write!(f, "\n{:22}why:    {}", "", self.why)?;
        }
        if !self.remedy.is_empty() {
            write!(f, "\n{:22}remedy: {}", "", self.remedy)?;
        }
        Ok(())
    }
}

/// Name and reason of a check, from which its finding is made.
#[derive(Clone, Copy, Debug)]
struct HostCheck {
    name: &'static str,
    why: &'static str,
}

impl HostCheck {
    fn fit(self, found: impl Into<String>) -> HostFinding {
        self.finding(HostVerdict::Fit, found, "")
    }

    fn unfit(self, found: impl Into<String>, remedy: impl Into<String>) -> HostFinding {
        self.finding(HostVerdict::Unfit, found, remedy)
    }

    fn unknown(self, found: impl Into<String>) -> HostFinding {
        self.finding(HostVerdict::Unknown, found, "")
    }

    fn finding(
        self,
        verdict: HostVerdict,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> HostFinding {
        HostFinding {
            check: self.name,
            verdict,
            found: found.into(),
            why: self.why,
            remedy: remedy.into(),
            changes: Vec::new(),
        }
    }
}

impl HostFinding {
    fn corrected_by(self, changes: Vec<HostChange>) -> HostFinding {
        HostFinding { changes, ..self }
    }
}

impl HostChange {
    fn write(path: impl Into<String>, text: impl Into<String>) -> HostChange {
        HostChange::Write { path: path.into(), text: text.into() }
    }
}

/// Formats cores as ranges: `2-5,8`.
fn show(cores: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &core in cores {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let one =
        |(first, last): (u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.into_iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_shown_as_ranges() {
        assert_eq!(show(&[2, 3, 4, 8, 10, 11]), "2-4,8,10-11");
        assert_eq!(show(&[]), "");
    }
}
