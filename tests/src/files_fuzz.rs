//! Any bytes in the files of an operator: settings, reference data, ticks, users and tokens, the
//! audit log. No panic, and every mistake is reported with its file.

use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Once, OnceLock};

use pitlane_auth::audit::verify;
use pitlane_auth::credentials::{CredentialStore, Kind};
use pitlane_config::refdata::{self, TableSource};
use pitlane_config::{DataFilesConfig, DataFormat, Machine, Setting, Sources};
use pitlane_engine::refdata::{KnownStrategies, RefData};
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_market_data::csv::CsvFile;
use pitlane_market_data::file::DataFile;
use pitlane_market_data::{BarPath, DataError, ReadOptions};
use pitlane_runtime::log::spare_fenced;
use pitlane_strategy::Registry;

/// Most rows read from one file: longer ones find nothing new.
const ROWS_MAX: usize = 10_000;
/// Bars of a minute, a tenth of whose volume can be traded against.
const BARS: BarPath = BarPath { interval_ns: 60 * NS_PER_S, volume_bp: 1_000 };

/// Reads layers of settings. The first byte of each selects its source: a file, the environment,
/// the command line.
pub fn settings(bytes: &[u8]) {
    let mut sources = Sources::default();
    let mut files = Vec::new();
    for layer in bytes.split(|byte| *byte == 0) {
        let Some((&place, text)) = layer.split_first() else { continue };
        let text = String::from_utf8_lossy(text).into_owned();
        match place % 4 {
            0 | 1 => files.push(text),
            2 => {
                let (name, value) = text.split_once('=').unwrap_or((&text, ""));
                sources.environment.push((format!("PITLANE_{name}"), value.to_string()));
            }
            _ => sources.options.extend(Setting::parse(&text)),
        }
    }
    for (number, text) in files.iter().enumerate().take(2) {
        let path = scratch(&format!("settings-{number}.toml"));
        fs::write(&path, text).expect("a place for files");
        sources.files.push(path.display().to_string());
    }
    let machine = Machine { cores: vec![0, 1], cores_usable: 2 };
    match pitlane_config::load(&sources, &machine) {
        Ok(loaded) => {
            // Accepted settings can be printed, and used with the shipped reference data.
            assert!(loaded.params.iter().count() > 0);
            let complete =
                loaded.config.add_strategies(shipped(), &KnownStrategies::default(), &loaded.params);
            let reference = complete.as_ref().unwrap_or(shipped());
            let _ = loaded.config.check_names(reference, &Registry::with_examples(), &loaded.params);
        }
        Err(faults) => assert!(!faults.to_string().is_empty(), "a fault has a text"),
    }
}

/// Reads the five tables, separated by zero bytes; the shipped table replaces a missing one.
pub fn reference(bytes: &[u8]) {
    let mut tables = bytes.split(|byte| *byte == 0);
    let sources = refdata::built_in().map(|shipped| match tables.next() {
        Some(table) if !table.is_empty() => TableSource { bytes: table.to_vec(), ..shipped },
        _ => shipped,
    });
    match refdata::parse(&sources, &["VENUE"]) {
        Ok(reference) => {
            let mut image = Vec::new();
            reference.save(&mut image);
            let again = RefData::load(&image).expect("what was checked can be kept");
            assert_eq!(again, reference);
        }
        Err(faults) => assert!(!faults.to_string().is_empty(), "a fault has a text"),
    }
}

/// Reads ticks or bars as CSV.
pub fn ticks(bytes: &[u8]) {
    let reference = shipped();
    let Ok(file) = CsvFile::new("ticks.csv".to_string(), Cursor::new(bytes.to_vec()), reference) else {
        return;
    };
    rows(DataFile::of_csv(file, reference, BARS));
}

/// Reads a file that is Parquet or CSV, depending on its first bytes.
pub fn parquet(bytes: &[u8]) {
    // The decoder is a dependency: its panics count as errors of the file.
    static SPARED: Once = Once::new();
    SPARED.call_once(spare_fenced);
    let path = scratch("ticks.parquet");
    fs::write(&path, bytes).expect("a place for files");
    let range = (Timestamp::ZERO, Timestamp::MAX);
    if let Ok(file) = DataFile::open(&path, shipped(), &options(), range) {
        rows(file);
    }
}

/// Reads a file of another provider. The first byte selects the format: one that is named, or
/// recognised.
pub fn formats(bytes: &[u8]) {
    let Some((&kind, bytes)) = bytes.split_first() else { return };
    let format = match kind % 8 {
        0 => DataFormat::Dbn,
        1 => DataFormat::Itch(None),
        2 => DataFormat::BinanceTrades,
        3 => DataFormat::BinanceAggTrades,
        4 => DataFormat::BinanceKlines,
        _ => DataFormat::Auto,
    };
    let folder = scratch("formats");
    fs::create_dir_all(&folder).expect("a place for files");
    // The name has the symbol of Binance and the day of NASDAQ.
    let path = folder.join("BTCUSDT-20240301");
    fs::write(&path, bytes).expect("a place for files");
    let mut options = options();
    options.files.format = format;
    options.files.trade_quotes = kind >= 128;
    options.files.symbols.insert("BTCUSDT".to_string(), "BTCUSD".to_string());
    if let Ok(file) = DataFile::open(&path, shipped(), &options, (Timestamp::ZERO, Timestamp::MAX)) {
        rows(file);
    }
}

fn options() -> ReadOptions {
    ReadOptions { bars: BARS, files: DataFilesConfig { levels: 10, ..DataFilesConfig::default() } }
}

fn rows(mut file: DataFile) {
    let mut last = Timestamp::ZERO;
    for _ in 0..ROWS_MAX {
        match file.next_row() {
            Ok(Some(row)) => {
                assert!(row.at >= last, "rows are in their order");
                last = row.at;
            }
            Ok(None) => return,
            Err(DataError { problem, .. }) => return assert!(!problem.is_empty(), "a fault has a text"),
        }
    }
}

/// Reads files of users and of tokens.
pub fn books(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for kind in [Kind::Users, Kind::Tokens] {
        if let Ok(book) = CredentialStore::parse(kind, "book", text) {
            assert!(book.changes_to("user", &book).is_empty(), "it is as it is");
        }
    }
}

/// Verifies an audit log of up to two files: the verifier accepts it or reports where it is
/// damaged.
pub fn audit(bytes: &[u8]) {
    let data = scratch("audit-of-fuzz");
    let folder = data.join("audit");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a place for files");
    for (number, file) in bytes.splitn(2, |byte| *byte == 0).enumerate() {
        fs::write(folder.join(format!("{:06}.jsonl", number + 1)), file).expect("a place for files");
    }
    let mut output = Vec::new();
    let is_sound = verify::verify(&data, &verify::Against::default(), &mut output).expect("it can be read");
    let output = String::from_utf8(output).expect("it prints text");
    assert_eq!(is_sound, output.lines().any(|line| line.starts_with("ok: ")), "{output}");
}

fn shipped() -> &'static Arc<RefData> {
    static SHIPPED: OnceLock<Arc<RefData>> = OnceLock::new();
    SHIPPED.get_or_init(|| Arc::new(refdata::shipped().expect("the shipped market is sound")))
}

/// Returns a path of this thread, which is reused.
fn scratch(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let memory = PathBuf::from("/dev/shm");
        let root = if memory.is_dir() { memory } else { std::env::temp_dir() };
        let folder = root.join(format!("pitlane-fuzz-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a place for files");
        folder
    });
    let thread = format!("{:?}", std::thread::current().id());
    folder.join(format!("{}-{name}", thread.replace(['(', ')'], "")))
}
