//! `pitlane tune`: makes the changes that correct findings of the doctor, and undoes them.
//!
//! Before the first change the old texts are saved in a record. Undoing restores a file only if it
//! still has the text that was written; what others have changed since is left alone.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use pitlane_journal::disk::Disk;
use serde_json::{Value, json};

use crate::doctor::{HostChange, HostFiles, HostFinding, HostVerdict, chosen};

/// The file with parameters for the next start of the kernel, and the folder that Debian's and
/// Ubuntu's `update-grub` reads.
const BOOT_FILE: &str = "etc/default/grub.d/pitlane.cfg";
const BOOT_FOLDER: &str = "etc/default/grub.d";
/// Shown instead of the text of a file that does not exist.
const NO_FILE: &str = "(no file)";
/// Size of the largest record that is read.
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// A file to be written, and its text before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TuneStep {
    /// Relative to the root folder.
    pub path: String,
    /// None if there is no such file.
    pub before: Option<String>,
    pub after: String,
}

/// What corrects the findings: what is done by `apply`, and what a person must do.
#[derive(Debug)]
pub struct TunePlan<'a> {
    pub steps: Vec<TuneStep>,
    pub by_hand: Vec<&'a HostFinding>,
}

/// What became of a step.
#[derive(Debug)]
pub enum TuneOutcome {
    Done,
    /// The file has another text than was written, so it is left alone.
    ChangedSince(Option<String>),
    Failed(io::Error),
}

#[derive(Debug)]
pub enum TuneError {
    /// Nothing was applied, as far as this record shows.
    NoRecord(String),
    Record(String, &'static str),
    Io(String, io::Error),
}

impl fmt::Display for TuneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TuneError::NoRecord(path) => write!(f, "{path} does not exist: there is nothing to undo"),
            TuneError::Record(path, what) => write!(f, "{path}: {what}"),
            TuneError::Io(path, error) => write!(f, "{path}: {error}"),
        }
    }
}

impl fmt::Display for TunePlan<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            let before = step.before.as_deref().unwrap_or(NO_FILE);
            writeln!(f, "change  /{}: {before} -> {}", step.path, step.after)?;
        }
        for finding in &self.by_hand {
            writeln!(f, "by hand {}: {}", finding.check, finding.remedy)?;
        }
        match self.steps.len() {
            0 => f.write_str("there is nothing to change"),
            changes => write!(f, "{changes} changes; `pitlane tune --apply` makes them"),
        }
    }
}

/// Returns what corrects the findings on this machine.
pub fn plan<'a>(host: &HostFiles, findings: &'a [HostFinding]) -> TunePlan<'a> {
    let has_boot_folder = host.is_folder(BOOT_FOLDER);
    let (mut plan, mut parameters) = (TunePlan { steps: Vec::new(), by_hand: Vec::new() }, Vec::new());
    for finding in findings.iter().filter(|finding| finding.verdict == HostVerdict::Unfit) {
        let mut is_corrected = !finding.changes.is_empty();
        for change in &finding.changes {
            match change {
                HostChange::Write { path, text } => plan.steps.push(step(host, path, text)),
                HostChange::BootParameters(text) if has_boot_folder => parameters.push(text.as_str()),
                HostChange::BootParameters(_) => is_corrected = false,
            }
        }
        if !is_corrected {
            plan.by_hand.push(finding);
        }
    }
    if !parameters.is_empty() {
        let text = format!("GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX {}\"", parameters.join(" "));
        plan.steps.push(step(host, BOOT_FILE, &text));
    }
    plan.steps.retain(|step| step.before.as_deref() != Some(&step.after));
    plan
}

/// Prints what became of the steps; returns whether none failed.
pub fn print(
    outcomes: &[(TuneStep, TuneOutcome)],
    is_undo: bool,
    out: &mut impl io::Write,
) -> io::Result<bool> {
    for (step, outcome) in outcomes {
        writeln!(out, "{}", line(step, outcome, is_undo))?;
    }
    let is_done = |outcome: &TuneOutcome| matches!(outcome, TuneOutcome::Done);
    if outcomes.iter().any(|(step, outcome)| step.path == BOOT_FILE && is_done(outcome)) {
        writeln!(out, "run update-grub and reboot: boot parameters have changed")?;
    }
    Ok(!outcomes.iter().any(|(_, outcome)| matches!(outcome, TuneOutcome::Failed(_))))
}

/// Returns a line that says what became of a step.
pub fn line(step: &TuneStep, outcome: &TuneOutcome, is_undo: bool) -> String {
    let (from, to) = match is_undo {
        true => (Some(step.after.as_str()), step.before.as_deref()),
        false => (step.before.as_deref(), Some(step.after.as_str())),
    };
    let (path, from, to) = (&step.path, from.unwrap_or(NO_FILE), to.unwrap_or(NO_FILE));
    match outcome {
        TuneOutcome::Done => format!("done    /{path}: {from} -> {to}"),
        TuneOutcome::ChangedSince(now) => {
            let now = now.as_deref().unwrap_or(NO_FILE);
            format!("left    /{path}: it was changed since, to {now}")
        }
        TuneOutcome::Failed(error) => format!("failed  /{path}: {from} -> {to}: {error}"),
    }
}

fn step(host: &HostFiles, path: &str, text: &str) -> TuneStep {
    TuneStep { path: path.to_string(), before: current(host, path), after: text.to_string() }
}

/// Returns the text of a file as it would be written: of a choice, the chosen word.
fn current(host: &HostFiles, path: &str) -> Option<String> {
    Some(chosen(&host.text(path)?).to_string())
}

/// Saves the old texts in the record and writes the new ones. A step that fails does not keep the
/// others from being done.
pub fn apply(
    root: &Path,
    record: &Path,
    steps: Vec<TuneStep>,
) -> Result<Vec<(TuneStep, TuneOutcome)>, TuneError> {
    let mut recorded = match read_record(record) {
        Ok(recorded) => recorded,
        Err(TuneError::NoRecord(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    for step in &steps {
        match recorded.iter_mut().find(|known| known.path == step.path) {
            // The text before the first change is the one to restore, unless others changed it.
            Some(known) if step.before.as_ref() == Some(&known.after) => known.after.clone_from(&step.after),
            Some(known) => known.clone_from(step),
            None => recorded.push(step.clone()),
        }
    }
    write_record(record, &recorded)?;
    let write = |step: TuneStep| {
        let outcome = write_text(root, &step.path, &step.after);
        (step, outcome)
    };
    Ok(steps.into_iter().map(write).collect())
}

/// Restores the texts of the record, the last change first. The record keeps what could not be
/// restored, and is removed if nothing is left.
pub fn undo(root: &Path, record: &Path) -> Result<Vec<(TuneStep, TuneOutcome)>, TuneError> {
    let host = HostFiles::at(root);
    let mut outcomes = Vec::new();
    for known in read_record(record)?.into_iter().rev() {
        let now = current(&host, &known.path);
        let outcome = match &known.before {
            _ if now.as_ref() != Some(&known.after) => TuneOutcome::ChangedSince(now),
            Some(before) => write_text(root, &known.path, before),
            None => outcome_of(fs::remove_file(root.join(&known.path))),
        };
        outcomes.push((known, outcome));
    }
    let is_failed = |outcome: &TuneOutcome| matches!(outcome, TuneOutcome::Failed(_));
    let mut left: Vec<TuneStep> =
        outcomes.iter().filter(|(_, outcome)| is_failed(outcome)).map(|(step, _)| step.clone()).collect();
    left.reverse();
    if left.is_empty() {
        fs::remove_file(record).map_err(|error| TuneError::Io(record.display().to_string(), error))?;
    } else {
        write_record(record, &left)?;
    }
    Ok(outcomes)
}

fn write_text(root: &Path, path: &str, text: &str) -> TuneOutcome {
    outcome_of(fs::write(root.join(path), format!("{text}\n")))
}

fn outcome_of(result: io::Result<()>) -> TuneOutcome {
    result.map_or_else(TuneOutcome::Failed, |()| TuneOutcome::Done)
}

fn write_record(record: &Path, steps: &[TuneStep]) -> Result<(), TuneError> {
    let one = |step: &TuneStep| json!({ "path": step.path, "before": step.before, "after": step.after });
    let text = format!("{:#}\n", Value::from(steps.iter().map(one).collect::<Vec<_>>()));
    Disk::Real
        .put(record, text.as_bytes())
        .map_err(|error| TuneError::Io(record.display().to_string(), error))
}

fn read_record(record: &Path) -> Result<Vec<TuneStep>, TuneError> {
    let name = || record.display().to_string();
    let failed = |error: io::Error| match error.kind() == io::ErrorKind::NotFound {
        true => TuneError::NoRecord(name()),
        false => TuneError::Io(name(), error),
    };
    if fs::metadata(record).map_err(failed)?.len() > RECORD_BYTES_MAX {
        return Err(TuneError::Record(name(), "too large for a record of `pitlane tune`"));
    }
    let bytes = fs::read(record).map_err(failed)?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|_| TuneError::Record(name(), "not a record of `pitlane tune`: no JSON"))?;
    value
        .as_array()
        .and_then(|steps| steps.iter().map(recorded_step).collect())
        .ok_or_else(|| TuneError::Record(name(), "not a record of `pitlane tune`"))
}

/// Returns a step of a record; None if it has another form, or names a file that no step changes.
fn recorded_step(value: &Value) -> Option<TuneStep> {
    let path = value["path"].as_str()?;
    let is_kernel_file =
        (path.starts_with("sys/") || path.starts_with("proc/")) && path.split('/').all(|part| part != "..");
    let before = &value["before"];
    let before = if before.is_null() { None } else { Some(before.as_str()?.to_string()) };
    (is_kernel_file || path == BOOT_FILE).then_some(TuneStep {
        path: path.to_string(),
        before,
        after: value["after"].as_str()?.to_string(),
    })
}
