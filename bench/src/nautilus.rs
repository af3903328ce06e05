//! NautilusTrader over the same ticks and with the same strategy as our simulation, in alternating
//! runs. It is installed from PyPI, as wheels only, into an environment of its own in the build
//! folder; where that fails, it is left out with the reason.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::measure::median;
use crate::simulate::{self, TickFile};

/// The newest version with wheels for the Python versions that it names.
const PACKAGE: &str = "nautilus_trader==1.221.0";
/// Python versions of its wheels, by its metadata.
const PYTHONS: [&str; 3] = ["3.11", "3.12", "3.13"];

/// Both rates, in ticks per second.
#[derive(Clone, Debug)]
pub struct NautilusComparison {
    pub ours: f64,
    pub theirs: f64,
    pub version: String,
    pub our_orders: u64,
    pub their_orders: u64,
    /// Ticks per second of the run together with creating objects from the file.
    pub theirs_with_reading: f64,
}

/// Runs both simulations over this many ticks in alternating rounds. On failure, returns the reason
/// why there is no comparison.
pub fn compare(ticks: u64, rounds: usize) -> Result<NautilusComparison, String> {
    let python = python()?;
    let data = TickFile::create(ticks).map_err(|error| error.to_string())?;
    let (mut ours, mut theirs, mut with_reading) = (Vec::new(), Vec::new(), Vec::new());
    let (mut our_orders, mut their_orders, mut version) = (0, 0, String::new());
    for _ in 0..rounds.max(1) {
        let report = data.simulate().map_err(|error| error.to_string())?;
        ours.push(report.speed.rows_per_s);
        our_orders = report.results.iter().map(|result| result.line.orders).sum();
        let result = run(&python, data.path())?;
        let seconds = |key: &str| {
            result[key].as_f64().filter(|seconds| *seconds > 0.0).ok_or("its output contains no time")
        };
        let count = result["ticks"].as_f64().ok_or("its output contains no number of ticks")?;
        theirs.push(count / seconds("runS")?);
        with_reading.push(count / (seconds("runS")? + seconds("madeS")?));
        their_orders = result["orders"].as_u64().unwrap_or(0);
        version = result["version"].as_str().unwrap_or_default().to_string();
    }
    let theirs_with_reading = median(&with_reading);
    Ok(NautilusComparison {
        ours: median(&ours),
        theirs: median(&theirs),
        version,
        our_orders,
        their_orders,
        theirs_with_reading,
    })
}

fn run(python: &Path, ticks: &Path) -> Result<Value, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("nautilus/cross.py");
    let (fast, slow, qty) = simulate::CROSS;
    let mut command = Command::new(python);
    command.arg(script).arg(ticks).args([fast, slow, qty].map(|number| number.to_string()));
    let output = command.output().map_err(|error| error.to_string())?;
    let last = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().last().unwrap_or_default().to_string();
    if !output.status.success() {
        return Err(format!("it failed: {}", last(&output.stderr)));
    }
    serde_json::from_str(&last(&output.stdout)).map_err(|error| format!("its output is not JSON: {error}"))
}

/// Returns the interpreter of an environment with the package, which is created if there is none.
fn python() -> Result<PathBuf, String> {
    let built = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = built.ancestors().nth(2).ok_or("the build folder is not known")?.join("nautilus");
    let (python, stamp) = (folder.join("bin/python"), folder.join(PACKAGE));
    if stamp.exists() {
        return Ok(python);
    }
    let version = run_program(
        Command::new("python3").args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]),
    )
    .map_err(|_| "there is no python3")?;
    if !PYTHONS.contains(&version.as_str()) {
        return Err(format!("it has no wheel for Python {version}, only for {}", PYTHONS.join(", ")));
    }
    eprintln!("installing {PACKAGE} into {}", folder.display());
    run_program(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:", PACKAGE];
    run_program(Command::new(&python).args(install))?;
    fs::write(&stamp, "").map_err(|error| error.to_string())?;
    Ok(python)
}

/// Runs a program, and returns its output or the reason of its failure.
fn run_program(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    Err(text(&output.stderr).lines().last().unwrap_or("it failed").to_string())
}
