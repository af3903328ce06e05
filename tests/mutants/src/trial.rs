//! Runs the tests: once each to see which mutants it reaches, then for each mutant those that
//! reach it, until one fails.

use crate::build::Binary;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A test of a binary and the time that it takes.
struct Test {
    binary: usize,
    name: String,
    time: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Caught,
    Missed,
    Unreached,
    Timeout,
}

enum Ended {
    Passed,
    Failed,
    TooLate,
}

/// A mutant may loop for ever, or allocate without end: KiB of address space.
const MEMORY: &str = "8000000";
/// Short tests run together in one process.
const TOGETHER: usize = 50;
/// A test that takes longer runs only if the short ones find nothing.
const SHORT: Duration = Duration::from_millis(1500);

pub struct Trial<'a> {
    binaries: &'a [Binary],
    tests: Vec<Test>,
    reaching: BTreeMap<u32, Vec<usize>>,
    folder: &'a Path,
}

impl<'a> Trial<'a> {
    /// Runs every test once, with the number of threads that there are cores.
    /// Tests that take longer than `longest`, in seconds, are not used.
    pub fn new(binaries: &'a [Binary], folder: &'a Path, longest: f64) -> Result<Self, String> {
        let mut names = Vec::new();
        for (index, binary) in binaries.iter().enumerate() {
            let listed = Command::new(&binary.path)
                .args(["--list", "--format=terse"])
                .current_dir(&binary.folder)
                .output()
                .map_err(|error| format!("{}: {error}", binary.path.display()))?;
            for line in String::from_utf8_lossy(&listed.stdout).lines() {
                names.extend(line.strip_suffix(": test").map(|name| (index, name.to_owned())));
            }
        }
        let mut trial = Self { binaries, tests: Vec::new(), reaching: BTreeMap::new(), folder };
        let found = Mutex::new(Vec::new());
        side_by_side(names.len(), |at| {
            let (binary, name) = &names[at];
            let record = folder.join(format!("record-{at}"));
            let _ = fs::remove_file(&record);
            let began = Instant::now();
            let variable = ("PITLANE_RECORD", record.display().to_string());
            let ended = trial.run(*binary, &[name.as_str()], variable, Duration::from_secs(600));
            let reached = fs::read_to_string(&record).unwrap_or_default();
            let _ = fs::remove_file(&record);
            if let (Ended::Passed, Ok(mut found)) = (ended, found.lock()) {
                found.push((*binary, name.clone(), began.elapsed(), reached));
            } else {
                eprintln!("not used, because it fails without a mutant: {name}");
            }
        });
        let mut found = found.into_inner().map_err(|error| error.to_string())?;
        found.retain(|(_, _, time, _)| time.as_secs_f64() <= longest);
        found.sort_by_key(|(_, _, time, _)| *time);
        for (binary, name, time, reached) in found {
            for mutant in reached.lines().filter_map(|line| line.parse().ok()) {
                trial.reaching.entry(mutant).or_default().push(trial.tests.len());
            }
            trial.tests.push(Test { binary, name, time });
        }
        Ok(trial)
    }

    pub fn tests(&self) -> usize {
        self.tests.len()
    }

    /// Runs the tests that reach a mutant.
    pub fn outcome(&self, mutant: u32) -> Outcome {
        let Some(reaching) = self.reaching.get(&mutant) else { return Outcome::Unreached };
        let (short, long): (Vec<usize>, Vec<usize>) =
            reaching.iter().partition(|test| self.tests[**test].time < SHORT);
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for binary in 0..self.binaries.len() {
            let of_binary = short.iter().copied().filter(|test| self.tests[*test].binary == binary);
            let of_binary: Vec<usize> = of_binary.collect();
            groups.extend(of_binary.chunks(TOGETHER).map(<[usize]>::to_vec));
        }
        groups.extend(long.into_iter().map(|test| vec![test]));
        groups.sort_by_key(|group| group.iter().map(|test| self.tests[*test].time).sum::<Duration>());
        for group in groups {
            let tests: Vec<&Test> = group.iter().map(|test| &self.tests[*test]).collect();
            let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
            let time: Duration = tests.iter().map(|test| test.time).sum();
            let variable = ("PITLANE_MUTANT", mutant.to_string());
            match self.run(tests[0].binary, &names, variable, Duration::from_secs(4) + time * 8) {
                Ended::Passed => (),
                Ended::Failed => return Outcome::Caught,
                Ended::TooLate => return Outcome::Timeout,
            }
        }
        Outcome::Missed
    }

    fn run(&self, binary: usize, names: &[&str], variable: (&str, String), limit: Duration) -> Ended {
        let binary = &self.binaries[binary];
        let mut child = Command::new("sh");
        child.args(["-c", "ulimit -v \"$0\"; exec \"$@\"", MEMORY]).arg(&binary.path);
        child.args(["--test-threads=1", "--exact"]).args(names);
        child.current_dir(&binary.folder).env(variable.0, variable.1);
        if std::env::var_os("PITLANE_SEEDS").is_none() {
            child.env("PITLANE_SEEDS", "6");
        }
        child.env("RUST_BACKTRACE", "0").env("TMPDIR", self.folder);
        child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut child) = child.spawn() else { return Ended::Failed };
        let output = child.stdout.take();
        // The output is read beside, so that a test that prints much does not wait for ever.
        let has_failed = Arc::new(AtomicBool::new(false));
        let reader = thread::spawn({
            let has_failed = has_failed.clone();
            move || output.map(|output| watch(output, &has_failed))
        });
        let began = Instant::now();
        let ended = loop {
            match child.try_wait() {
                Ok(Some(status)) => break Some(status.success()),
                // The other tests of the process need not run.
                Ok(None) if has_failed.load(Ordering::Relaxed) => break Some(false),
                Ok(None) if began.elapsed() > limit => break None,
                Ok(None) => thread::sleep(Duration::from_millis(2)),
                Err(_) => break Some(false),
            }
        };
        let _ = child.kill();
        let _ = child.wait();
        let _ = reader.join();
        match ended {
            Some(true) => Ended::Passed,
            Some(false) => Ended::Failed,
            None => Ended::TooLate,
        }
    }
}

/// Reads what a test binary prints and tells when a test has failed.
fn watch(mut output: impl Read, has_failed: &AtomicBool) {
    const FAILED: &[u8] = b"... FAILED";
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = output.read(&mut part) {
        text.extend_from_slice(&part[..read]);
        if text.windows(FAILED.len()).any(|window| window == FAILED) {
            has_failed.store(true, Ordering::Relaxed);
        }
        text.drain(..text.len().saturating_sub(FAILED.len()));
    }
}

/// Calls `work` for every index below `count`, on all cores.
pub fn side_by_side(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    work(at);
                }
            });
        }
    });
}
