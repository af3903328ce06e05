//! Runs a check over many seeds on both cores, and prints how to repeat those that failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that run seeds; the machine has two cores.
const THREADS: usize = 2;
/// Failures after which a thread stops: more would not be read.
const FAILURES_MAX: usize = 5;

/// Runs `check` for the seed in `PITLANE_SEED` alone and verbosely, or for the recorded seeds and
/// then for as many as `PITLANE_SEEDS` names, `count` without it.
///
/// `check` gets the seed and whether to trace; it returns what went wrong.
pub fn run(count: u64, check: impl Fn(u64, bool) -> Result<(), String> + Sync) {
    if let Some(seed) = number("PITLANE_SEED") {
        if let Err(problem) = guarded(|| check(seed, true)) {
            panic!("seed {seed}: {problem}\nrepeat with: make sim SEED={seed}");
        }
        return;
    }
    let seeds: Vec<u64> = kept().into_iter().chain(0..number("PITLANE_SEEDS").unwrap_or(count)).collect();
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Err(problem) = guarded(|| check(seed, false)) else { continue };
                    let mut list = failures.lock().expect("no thread panics while it holds the lock");
                    list.push((seed, problem));
                    if list.len() >= FAILURES_MAX {
                        return;
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("all threads have ended");
    for (seed, problem) in &failures {
        println!("seed {seed}: {problem}\nmake sim SEED={seed}\n");
    }
    let list: Vec<String> = failures.iter().map(|(seed, _)| seed.to_string()).collect();
    assert!(failures.is_empty(), "of {} seeds these failed: {}", seeds.len(), list.join(" "));
}

/// Runs a check; a panic is a finding like any other.
pub fn guarded(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        Err(format!("panic: {}", text.unwrap_or_default()))
    })
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} should be a number, not {text:?}")))
}

/// Returns the seeds in `data/seeds.txt` that once failed: a number per line, `#` for a comment.
fn kept() -> Vec<u64> {
    let lines = include_str!("../data/seeds.txt").lines().map(str::trim);
    let numbers = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    numbers.map(|line| line.parse().expect("a seed is a number")).collect()
}
