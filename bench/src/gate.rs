//! Compares two builds in alternating runs on one machine: a change counts as slower only if it is
//! slower than the machine's own variation of a single build.
//!
//! ```text
//! A B A B A B …      B/A of each pair      how much slower the new build is
//! A   A   A   …      A/A of neighbours     the machine's own noise
//! ```

use std::path::Path;
use std::process::Command;

use crate::measure::median;
use crate::work::MicroBench;

/// Smallest ratio that counts as slower, however quiet the machine is: moving code in memory alone
/// can change as much.
const LEAST_RATIO: f64 = 1.03;

/// One piece of work in both builds.
#[derive(Clone, Debug)]
pub struct BuildComparison {
    pub work: MicroBench,
    /// Nanoseconds of the old build, one for each round.
    base: Vec<f64>,
    /// Nanoseconds of the new build, in the same rounds.
    new: Vec<f64>,
}

impl BuildComparison {
    pub fn base_ns(&self) -> f64 {
        median(&self.base)
    }

    pub fn new_ns(&self) -> f64 {
        median(&self.new)
    }

    /// Returns the median ratio of new to old; above 1, the new build is slower.
    pub fn ratio(&self) -> f64 {
        median(&self.base.iter().zip(&self.new).map(|(base, new)| new / base).collect::<Vec<_>>())
    }

    /// Returns the largest ratio of the old build to itself, between two successive rounds, in
    /// either direction.
    pub fn noise(&self) -> f64 {
        let pairs = self.base.windows(2).map(|pair| (pair[0] / pair[1]).max(pair[1] / pair[0]));
        pairs.fold(1.0, f64::max)
    }

    pub fn is_slower(&self) -> bool {
        self.ratio() > self.noise().max(LEAST_RATIO)
    }
}

/// Returns the pieces of work that an earlier build has too.
pub fn known_to(base: &Path) -> Result<Vec<MicroBench>, String> {
    let mut known = Vec::new();
    for work in MicroBench::ALL {
        let mut command = Command::new(base);
        let output = command.args(["work", &work.to_string(), "--ops", "1000"]).output();
        if output.map_err(|error| format!("{}: {error}", base.display()))?.status.success() {
            known.push(work);
        }
    }
    if known.is_empty() { Err(format!("{} has none of this work", base.display())) } else { Ok(known) }
}

/// Runs these pieces of work in both builds, round by round.
pub fn gate(
    base: &Path,
    new: &Path,
    works: &[MicroBench],
    rounds: usize,
    mut on_progress: impl FnMut(usize, MicroBench),
) -> Result<Vec<BuildComparison>, String> {
    let mut all: Vec<BuildComparison> =
        works.iter().map(|&work| BuildComparison { work, base: Vec::new(), new: Vec::new() }).collect();
    for round in 0..rounds {
        for comparison in &mut all {
            on_progress(round, comparison.work);
            comparison.base.push(measure(base, comparison.work)?);
            comparison.new.push(measure(new, comparison.work)?);
        }
    }
    Ok(all)
}

/// Returns a build's own time for a piece of work, measured in a process of its own.
fn measure(build: &Path, work: MicroBench) -> Result<f64, String> {
    let failed = |why: &str| format!("{} work {work}: {why}", build.display());
    let output = Command::new(build)
        .args(["work", &work.to_string()])
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| failed("its output is not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(base: &[f64], new: &[f64]) -> BuildComparison {
        BuildComparison { work: MicroBench::BookS1, base: base.to_vec(), new: new.to_vec() }
    }

    #[test]
    fn slower_beyond_the_noise_is_slower() {
        let it = comparison(&[100.0, 101.0, 100.0], &[120.0, 121.0, 119.0]);
        assert!(it.is_slower() && it.ratio() > 1.18);
    }

    #[test]
    fn slower_within_the_noise_is_not_slower() {
        assert!(!comparison(&[100.0, 140.0, 100.0], &[120.0, 150.0, 119.0]).is_slower());
    }

    #[test]
    fn less_than_three_percent_is_not_slower() {
        assert!(!comparison(&[100.0, 100.0], &[102.0, 102.0]).is_slower());
    }

    #[test]
    fn faster_is_never_slower() {
        assert!(!comparison(&[100.0, 100.0], &[50.0, 50.0]).is_slower());
    }
}
