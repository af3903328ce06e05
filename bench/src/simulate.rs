//! The speed of a simulation: reading the file, the shard with its venue, the strategy and the
//! report.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pitlane_backtest::progress::SimulationProgress;
use pitlane_backtest::report::SimulationReport;
use pitlane_backtest::{SimulateError, simulate};
use pitlane_config::refdata;
use pitlane_config::{Config, Machine, Setting, Sources};
use pitlane_engine::refdata::RefData;
use pitlane_engine::rng::Rng;
use pitlane_strategy::Registry;

use crate::journal::TempFolder;

/// 2026-11-02T14:30:00Z, and the mean nanoseconds between two ticks.
const START_NS: u64 = 1_793_629_800_000_000_000;
const STEP_NS: u64 = 1_000_000;

/// Number of prices in the fast and in the slow average, and the quantity held; every tick
/// contributes a price.
pub const CROSS: (u32, u32, u32) = (50, 1_000, 10);

#[derive(Clone, Copy, Debug)]
pub struct SimulationSpeed {
    /// Ticks per second.
    pub best: f64,
    pub median: f64,
    pub orders: u64,
    pub hash: u64,
    /// Whether every round gave the same result.
    pub repeats: bool,
}

pub fn run(ticks: u64, rounds: usize) -> Result<SimulationSpeed, Box<dyn Error>> {
    let data = TickFile::create(ticks)?;
    let (mut rates, mut hashes, mut orders) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds.max(1) {
        let report = data.simulate()?;
        rates.push(report.speed.rows_per_s);
        hashes.push(report.hash());
        orders = report.results.iter().map(|result| result.line.orders).sum();
    }
    rates.sort_by(f64::total_cmp);
    let repeats = hashes.windows(2).all(|pair| pair[0] == pair[1]);
    Ok(SimulationSpeed {
        best: rates[rates.len() - 1],
        median: rates[rates.len() / 2],
        orders,
        hash: hashes[0],
        repeats,
    })
}

/// A tick file that is removed on drop.
pub struct TickFile {
    file: PathBuf,
    config: Config,
    reference: Arc<RefData>,
    _folder: TempFolder,
}

impl TickFile {
    pub fn create(ticks: u64) -> Result<TickFile, Box<dyn Error>> {
        let folder = TempFolder::new(None);
        fs::create_dir_all(folder.path())?;
        let file = folder.path().join("ticks.csv");
        write(&file, ticks)?;
        let config = settings(&file)?;
        Ok(TickFile { file, config, reference: Arc::new(refdata::shipped()?), _folder: folder })
    }

    pub fn path(&self) -> &Path {
        &self.file
    }

    pub fn simulate(&self) -> Result<SimulationReport, SimulateError> {
        simulate(
            &self.config,
            &self.reference,
            &Registry::with_examples(),
            &mut SimulationProgress::new(true),
        )
    }
}

fn settings(file: &Path) -> Result<Config, Box<dyn Error>> {
    let (fast, slow, qty) = CROSS;
    let strategy = format!(
        r#"[{{ name = "MOMENTUM", kind = "moving-average-cross", securities = ["AAPL"], start = true, cancel_on_failure = true,
           parameters = {{ fast = {fast}, slow = {slow}, bar_s = 0, qty = {qty}, short = true }} }}]"#
    )
    .replace('\n', " ");
    let set = |key: &str, value: String| Setting { option: "--set", key: key.to_string(), value };
    let sources = Sources {
        files: vec!["simulation".to_string()],
        environment: Vec::new(),
        options: vec![set("strategy", strategy), set("simulation.data", file.display().to_string())],
    };
    Ok(pitlane_config::load(&sources, &Machine::of(Path::new("/")))?.config)
}

/// Writes a random walk of one security: quotes, some with a trade.
fn write(path: &Path, ticks: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "time,security,bid,bidSize,ask,askSize,last,lastSize")?;
    let mut rng = Rng::new(1);
    let (mut at, mut cents) = (START_NS, 20_000_u64);
    for _ in 0..ticks {
        at += 1 + rng.below(2 * STEP_NS);
        cents = (cents + rng.below(5)).saturating_sub(2).clamp(10_000, 40_000);
        let ask = cents + 1 + rng.below(3);
        let (bid_size, ask_size) = (100 * (1 + rng.below(20)), 100 * (1 + rng.below(20)));
        let price = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
        write!(out, "{at},1,{},{bid_size},{},{ask_size},", price(cents), price(ask))?;
        match rng.below(3) {
            0 => writeln!(
                out,
                "{},{}",
                price(if rng.below(2) == 0 { cents } else { ask }),
                100 * (1 + rng.below(5))
            )?,
            _ => writeln!(out, ",")?,
        }
    }
    out.flush()
}
