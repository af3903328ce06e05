//! Results in files: a folder, and a page of everything in it.

use std::path::Path;

use pitlane::doctor::{self, Probes};
use pitlane_bench::goals::GoalVerdict;
use pitlane_bench::report::curves::by_percentile;
use pitlane_bench::report::folder::ResultFolder;
use pitlane_bench::report::page;
use pitlane_bench::report::recording::Recording;
use pitlane_config::{Machine, Sources};

use super::RunEnvironment;
use crate::{TaskError, TaskVerdicts};

/// Most curves in one drawing: more cannot be told apart.
const CURVES_MAX: usize = 8;

/// Writes every recording as `.hgrm`, JSON and SVG, several also in one drawing, and the page.
pub(crate) fn write_results(
    out: &Path,
    environment: &RunEnvironment,
    title: &str,
    recordings: &[&Recording],
    goals: &[GoalVerdict],
) -> Result<(), TaskError> {
    let mut folder = ResultFolder::make(out, &environment.conditions)?;
    for recording in recordings {
        folder.add(&format!("{title}, {}", recording.name), recording)?;
    }
    if recordings.len() > 1 {
        let last = recordings.len().saturating_sub(CURVES_MAX);
        folder.draw("all", &by_percentile(title, folder.notes(), &recordings[last..]))?;
    }
    folder.close(&environment.conditions, &environment.noise, goals)?;
    report(out)?;
    Ok(())
}

/// Writes the page of a folder, with the current findings of `pitlane doctor`.
pub(crate) fn report(folder: &Path) -> Result<TaskVerdicts, TaskError> {
    let machine = Machine::of(Path::new("/"));
    let loaded = pitlane_config::load(&Sources::default(), &machine).map_err(|faults| faults.to_string())?;
    let findings = doctor::examine(&loaded.config, Path::new("/"), &Probes::take(&loaded.config));
    let unfit = findings.into_iter().filter(|finding| finding.verdict != doctor::HostVerdict::Fit);
    let rows: Vec<page::DoctorFinding> = unfit
        .map(|finding| {
            [finding.check.to_string(), finding.verdict.word().to_string(), finding.found, finding.remedy]
        })
        .collect();
    let path = folder.join("report.html");
    std::fs::write(
        &path,
        page::page(folder, &rows).map_err(|error| format!("{}: {error}", folder.display()))?,
    )?;
    println!("written to {}", path.display());
    Ok(TaskVerdicts::default())
}
