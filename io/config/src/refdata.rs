//! Reference data from files: five tables of comma-separated values in one folder, read strictly.
//! First every cell must have the type of its column; only then are the rows checked against each
//! other. All faults are reported at once, with file, line and column.

mod csv;
mod fault;
mod import;
mod rows;
mod table;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use pitlane_engine::id::StrategyId;
use pitlane_engine::refdata::{KnownStrategies, RefData, RefDataRows, RefDataTable};

pub use fault::{RefDataFault, RefDataFaults};
pub use import::{ImportSummary, ImportedVenue, VenueInstrument, import};
pub use table::{FILE_BYTES_MAX, RECORDS_MAX, TEXT_BYTES_MAX, TableSource};

/// The built-in set, so that the binary runs without files.
const SHIPPED: [(&str, &str); 5] = [
    ("config/refdata/exchanges.csv", include_str!("../../../config/refdata/exchanges.csv")),
    ("config/refdata/families.csv", include_str!("../../../config/refdata/families.csv")),
    ("config/refdata/securities.csv", include_str!("../../../config/refdata/securities.csv")),
    ("config/refdata/accounts.csv", include_str!("../../../config/refdata/accounts.csv")),
    ("config/refdata/strategies.csv", include_str!("../../../config/refdata/strategies.csv")),
];

/// Index of the table of strategies.
const STRATEGIES: usize = RefDataTable::Strategies as usize;

/// Reads the five files of a folder. Exchanges and accounts may name these adapters besides the
/// simulated one.
pub fn read(folder: &Path, adapters: &[&str]) -> Result<RefData, RefDataFaults> {
    parse(&open(folder)?, adapters)
}

fn open(folder: &Path) -> Result<[TableSource; 5], RefDataFaults> {
    let mut faults = RefDataFaults::default();
    let sources = RefDataTable::ALL.map(|table| {
        let path = folder.join(format!("{}.csv", table.name()));
        let name = path.display().to_string();
        let bytes = read_file(&path).unwrap_or_else(|problem| {
            faults.add(&name, 0, "", problem);
            Vec::new()
        });
        TableSource { name, bytes }
    });
    if faults.is_empty() { Ok(sources) } else { Err(faults) }
}

/// Reads the files of a folder, or the built-in set, as successor of `old`, whose orders stay open.
/// Strategies of these names are added if the files do not have them. Rows that do not fit are
/// reported with file and line too.
pub fn read_after(
    folder: Option<&Path>,
    old: &RefData,
    adapters: &[&str],
    strategies: &[&str],
) -> Result<RefData, RefDataFaults> {
    let sources = match folder {
        Some(folder) => open(folder)?,
        None => built_in(),
    };
    let (files, mut lines) = parse_lines(&sources, adapters)?;
    let line_of: BTreeMap<StrategyId, usize> =
        files.strategies().iter().map(|row| row.id).zip(lines[STRATEGIES].iter().copied()).collect();
    let mut known = KnownStrategies::default();
    known.learn(old);
    let new = files.with_strategies(strategies.iter().copied(), &known).map_err(|errors| {
        let mut faults = RefDataFaults::default();
        for error in errors {
            faults.add(&sources[STRATEGIES].name, 0, "name", error.to_string());
        }
        faults
    })?;
    // An added strategy has no line.
    lines[STRATEGIES] =
        new.strategies().iter().map(|row| line_of.get(&row.id).copied().unwrap_or(0)).collect();
    new.succeed(old).map_err(|errors| {
        let mut faults = RefDataFaults::default();
        for error in errors {
            let table = error.table as usize;
            let line = lines[table].get(error.row).copied().unwrap_or(0);
            faults.add(&sources[table].name, line, error.column, error.problem);
        }
        faults
    })
}

/// Returns the built-in set.
pub fn shipped() -> Result<RefData, RefDataFaults> {
    parse(&built_in(), &[])
}

/// Returns the sources of the built-in set.
pub fn built_in() -> [TableSource; 5] {
    SHIPPED.map(|(name, text)| TableSource { name: name.to_string(), bytes: text.as_bytes().to_vec() })
}

/// Reads the five tables, in the order of [`RefDataTable::ALL`], from the content of their files.
pub fn parse(sources: &[TableSource; 5], adapters: &[&str]) -> Result<RefData, RefDataFaults> {
    parse_lines(sources, adapters).map(|(reference, _)| reference)
}

/// Does the same, and returns for each table the lines of its rows, sorted by id like the rows.
fn parse_lines(
    sources: &[TableSource; 5],
    adapters: &[&str],
) -> Result<(RefData, [Vec<usize>; 5]), RefDataFaults> {
    let names = [&[rows::SIMULATED], adapters].concat();
    let mut faults = RefDataFaults::default();
    let [exchanges, families, securities, accounts, strategies] = sources;
    let exchanges =
        table::read(exchanges, rows::EXCHANGE, &[], |cells| rows::exchange(cells, &names), &mut faults);
    let families = table::read(families, rows::FAMILY, rows::LIMITS, rows::family, &mut faults);
    let securities = table::read(securities, rows::SECURITY, &[], rows::security, &mut faults);
    let accounts = table::read(
        accounts,
        rows::ACCOUNT,
        &[rows::STRATEGY_IDS],
        |cells| rows::account(cells, &names),
        &mut faults,
    );
    let strategies = table::read(strategies, rows::STRATEGY, &[], rows::strategy, &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }

    let lines = [exchanges.lines, families.lines, securities.lines, accounts.lines, strategies.lines];
    let rows = RefDataRows {
        exchanges: exchanges.rows,
        families: families.rows,
        securities: securities.rows,
        accounts: accounts.rows,
        strategies: strategies.rows,
    };
    let sorted = [
        by_id(&rows.exchanges, &lines[0], |row| row.id.0 as u32),
        by_id(&rows.families, &lines[1], |row| row.id.0),
        by_id(&rows.securities, &lines[2], |row| row.id.0),
        by_id(&rows.accounts, &lines[3], |row| row.id.0 as u32),
        with_server(&rows, by_id(&rows.strategies, &lines[4], |row| row.id.0 as u32)),
    ];
    let checked = RefData::check(rows).map_err(|errors| {
        for error in errors {
            let table = error.table as usize;
            faults.add(&sources[table].name, lines[table][error.row], error.column, error.problem);
        }
        faults
    });
    Ok((checked?, sorted))
}

fn by_id<T>(rows: &[T], lines: &[usize], id: impl Fn(&T) -> u32) -> Vec<usize> {
    let mut sorted: Vec<_> = rows.iter().map(id).zip(lines.iter().copied()).collect();
    sorted.sort_unstable();
    sorted.into_iter().map(|(_, line)| line).collect()
}

/// SERVER is part of every set, before all others; if no line defines it, it has no line.
fn with_server(rows: &RefDataRows, mut lines: Vec<usize>) -> Vec<usize> {
    if !rows.strategies.iter().any(|row| row.id == StrategyId::SERVER) {
        lines.insert(0, 0);
    }
    lines
}

/// Returns the bytes of a file that is not too large, or a description of the fault.
fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| format!("cannot be opened: {error}"))?;
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {FILE_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}
