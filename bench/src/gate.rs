//! Two builds in turn on one machine: a change is called slower only where it is so beyond what the machine does to one and the same build.
//!
//! ```text
//! A B A B A B …      B/A of each pair      how much slower the new build is
//! A   A   A   …      A/A of neighbours     the machine's own noise
//! ```

use std::path::Path;
use std::process::Command;

use crate::measure::median;
use crate::work::Work;

/// Below this nothing is called slower, however quiet the machine: code that moves in memory makes as much.
const LEAST_RATIO: f64 = 1.03;

/// One piece of work in both builds.
#[derive(Clone, Debug)]
pub struct Beside {
    pub work: Work,
    /// Nanoseconds of the old build, one for each round.
    base: Vec<f64>,
    /// Of the new one, in the same rounds.
    new: Vec<f64>,
}

impl Beside {
    pub fn base_ns(&self) -> f64 {
        median(&self.base)
    }

    pub fn new_ns(&self) -> f64 {
        median(&self.new)
    }

    /// Above 1: the new build is slower.
    pub fn ratio(&self) -> f64 {
        median(&self.base.iter().zip(&self.new).map(|(base, new)| new / base).collect::<Vec<_>>())
    }

    /// The largest ratio that the old build has had to itself, one round to the next, either way.
    pub fn noise(&self) -> f64 {
        let pairs = self.base.windows(2).map(|pair| (pair[0] / pair[1]).max(pair[1] / pair[0]));
        pairs.fold(1.0, f64::max)
    }

    pub fn is_slower(&self) -> bool {
        self.ratio() > self.noise().max(LEAST_RATIO)
    }
}

/// All work in both builds, round by round.
pub fn gate(
    base: &Path,
    new: &Path,
    rounds: usize,
    mut told: impl FnMut(usize, Work),
) -> Result<Vec<Beside>, String> {
    let mut all: Vec<Beside> =
        Work::ALL.iter().map(|&work| Beside { work, base: Vec::new(), new: Vec::new() }).collect();
    for round in 0..rounds {
        for beside in &mut all {
            told(round, beside.work);
            beside.base.push(ask(base, beside.work)?);
            beside.new.push(ask(new, beside.work)?);
        }
    }
    Ok(all)
}

/// A build's own time for a piece of work, in a process of its own.
fn ask(build: &Path, work: Work) -> Result<f64, String> {
    let failed = |why: &str| format!("{} work {work}: {why}", build.display());
    let output = Command::new(build)
        .args(["work", &work.to_string()])
        .output()
        .map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed(String::from_utf8_lossy(&output.stderr).trim()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| failed("it says no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(base: &[f64], new: &[f64]) -> Beside {
        Beside { work: Work::BookS1, base: base.to_vec(), new: new.to_vec() }
    }

    #[test]
    fn slower_beyond_the_noise_is_slower() {
        let it = beside(&[100.0, 101.0, 100.0], &[120.0, 121.0, 119.0]);
        assert!(it.is_slower() && it.ratio() > 1.18);
    }

    #[test]
    fn slower_within_the_noise_is_not() {
        assert!(!beside(&[100.0, 140.0, 100.0], &[120.0, 150.0, 119.0]).is_slower());
    }

    #[test]
    fn a_hair_is_no_difference() {
        assert!(!beside(&[100.0, 100.0], &[102.0, 102.0]).is_slower());
    }

    #[test]
    fn faster_is_never_slower() {
        assert!(!beside(&[100.0, 100.0], &[50.0, 50.0]).is_slower());
    }
}
