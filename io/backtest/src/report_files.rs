//! The report as files.

use std::fs;
use std::io;
use std::path::Path;

use super::html;
use super::report::SimulationReport;

/// Writes report.txt, report.json and report.html.
pub fn write(report: &SimulationReport, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("report.txt"), report.to_text())?;
    fs::write(folder.join("report.json"), format!("{:#}\n", report.to_json()))?;
    fs::write(folder.join("report.html"), html::page(report))
}
