//! Adds the instruments of a venue to a folder of reference data.
//!
//! Rows that are there stay as they are, with their ids: orders and transactions name securities by
//! id. New rows come behind them. The result is checked as a start checks it before any file is
//! written.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use pitlane_engine::id::{Currency, ExchangeId, FamilyId};
use pitlane_engine::number::{ContractSize, Price, Qty};
use pitlane_engine::refdata::{
    NotionalLimit, OrderKinds, OrderLimits, RefData, RefDataTable, SecurityFamily, SecurityKind,
};
use pitlane_protocols::codes::WireName;

use super::fault::RefDataFaults;
use super::{TableSource, csv, parse, read_file, rows};

/// An instrument of a venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueInstrument {
    pub symbol: String,
    pub description: String,
    /// One currency priced in another.
    pub kind: SecurityKind,
    pub base: Currency,
    pub currency: Currency,
    pub tick_size: Price,
    pub lot_size: Qty,
    /// What the venue limits per order.
    pub limits: OrderLimits,
}

/// The venue to which instruments belong. It is open all day.
#[derive(Clone, Copy, Debug)]
pub struct ImportedVenue<'a> {
    /// Name of its exchange.
    pub exchange: &'a str,
    pub mic: &'a str,
    /// Name of its `[[adapter]]`.
    pub adapter: &'a str,
}

/// Result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    pub families: usize,
    pub securities: usize,
    /// Securities that were there before.
    pub kept: usize,
    /// Symbols of those whose tick, lot or currency the venue has changed.
    pub changed_terms: Vec<String>,
    /// Symbols of the others whose limits per order the venue has changed.
    pub changed_limits: Vec<String>,
}

/// What the securities of one family of a venue share.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FamilyTerms {
    currency: Currency,
    tick_size: Price,
    lot_size: Qty,
    limits: OrderLimits,
}

impl FamilyTerms {
    fn of(instrument: &VenueInstrument) -> FamilyTerms {
        let VenueInstrument { currency, tick_size, lot_size, limits, .. } = *instrument;
        FamilyTerms { currency, tick_size, lot_size, limits }
    }

    fn of_family(row: &SecurityFamily) -> FamilyTerms {
        let SecurityFamily { currency, tick_size, lot_size, limits, .. } = *row;
        FamilyTerms { currency, tick_size, lot_size, limits }
    }

    /// Returns a name for the family, which no other terms have.
    fn name(&self, exchange: &str) -> String {
        let FamilyTerms { currency, tick_size, lot_size, limits } = self;
        let mut name = format!("{exchange} {currency} tick {tick_size} lot {lot_size}");
        for (word, limit) in [("min", limits.min_notional), ("max", limits.max_notional)] {
            if let Some(NotionalLimit { amount, to_market }) = limit {
                let scope = if to_market { "" } else { " of limit orders" };
                name += &format!(" {word} {amount}{scope}");
            }
        }
        if limits.kinds != OrderKinds::ALL {
            name += &format!(" {}", order_types_cell(limits.kinds));
        }
        name
    }
}

/// Returns the cells of a bound of the value: the amount, and whether it holds for market orders.
fn notional_cells(limit: Option<NotionalLimit>) -> [String; 2] {
    limit.map(|limit| [limit.amount.to_string(), limit.to_market.to_string()]).unwrap_or_default()
}

/// Returns the names of the order types; empty for all.
fn order_types_cell(kinds: OrderKinds) -> String {
    if kinds == OrderKinds::ALL {
        return String::new();
    }
    kinds.iter().map(WireName::wire_name).collect::<Vec<_>>().join(" ")
}

/// Adapters that the rows of one folder name; the settings have fewer.
const ADAPTERS_MAX: usize = 64;

/// Adds what the folder does not have yet. The folder and its files are created if needed.
pub fn import(
    folder: &Path,
    venue: &ImportedVenue<'_>,
    instruments: &[VenueInstrument],
) -> Result<ImportSummary, RefDataFaults> {
    let mut draft = ImportDraft::open(folder)?;
    let reference = draft.check()?;
    let exchange = draft.add_exchange(&reference, venue)?;
    let summary = draft.add_securities(&reference, venue, exchange, instruments);
    draft.add_account(&reference, venue, exchange);
    draft.check()?;
    draft.write(folder)?;
    Ok(summary)
}

/// The five tables with the new rows.
struct ImportDraft {
    tables: [TableDraft; 5],
}

/// One table as text.
struct TableDraft {
    /// Path of the file.
    name: String,
    bytes: Vec<u8>,
    columns: Vec<String>,
    is_changed: bool,
}

impl TableDraft {
    /// Reads a file, or begins one with these columns.
    fn open(folder: &Path, table: RefDataTable, faults: &mut RefDataFaults) -> TableDraft {
        let path = folder.join(format!("{}.csv", table.name()));
        let name = path.display().to_string();
        let is_new = !path.exists();
        let bytes = match is_new {
            true => beginning(table).into_bytes(),
            false => read_file(&path).unwrap_or_else(|problem| {
                faults.add(&name, 0, "", problem);
                Vec::new()
            }),
        };
        let columns = records(&bytes).next().map(|record| record.cells).unwrap_or_default();
        TableDraft { name, bytes, columns, is_changed: is_new }
    }

    /// Adds columns that the file does not have, with empty cells.
    fn add_columns(&mut self, columns: &[&str]) {
        let missing: Vec<String> = columns
            .iter()
            .filter(|name| self.columns.iter().all(|column| column != *name))
            .map(|name| name.to_string())
            .collect();
        if missing.is_empty() {
            return;
        }
        self.columns.extend(missing.iter().cloned());
        let mut bytes = Vec::new();
        for (at, mut record) in records(&self.bytes).enumerate() {
            let empty = missing.iter().map(|name| if at == 0 { name.clone() } else { String::new() });
            record.cells.extend(empty);
            push_record(&mut bytes, record.cells.iter().map(String::as_str));
        }
        (self.bytes, self.is_changed) = (bytes, true);
    }

    /// Appends a row: the values by column, in the order that the file has.
    fn append(&mut self, values: &[(&str, &str)]) {
        if self.bytes.last().is_some_and(|byte| *byte != b'\n') {
            self.bytes.push(b'\n');
        }
        let value_of =
            |column: &String| values.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        push_record(&mut self.bytes, self.columns.iter().map(value_of));
        self.is_changed = true;
    }
}

/// Returns the header of a new file, with what every set has.
fn beginning(table: RefDataTable) -> String {
    let columns = match table {
        RefDataTable::Exchanges => rows::EXCHANGE,
        RefDataTable::Families => rows::FAMILY,
        RefDataTable::Securities => rows::SECURITY,
        RefDataTable::Accounts => rows::ACCOUNT,
        RefDataTable::Strategies => rows::STRATEGY,
    };
    // Without the column every strategy may use every account.
    let columns: Vec<&str> = columns.iter().copied().filter(|name| *name != rows::STRATEGY_IDS).collect();
    let row = if table == RefDataTable::Strategies { "0,SERVER,true\n" } else { "" };
    format!("{}\n{row}", columns.join(","))
}

/// Returns the records of a file; the check of the whole set reports its faults.
fn records(bytes: &[u8]) -> impl Iterator<Item = csv::CsvRecord> {
    csv::records(std::str::from_utf8(bytes).unwrap_or_default()).flatten()
}

fn push_record<'a>(out: &mut Vec<u8>, cells: impl Iterator<Item = &'a str>) {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_cell(out, cell);
    }
    out.push(b'\n');
}

fn push_cell(out: &mut Vec<u8>, value: &str) {
    if !value.contains([',', '"', '\r', '\n']) {
        return out.extend_from_slice(value.as_bytes());
    }
    out.push(b'"');
    out.extend_from_slice(value.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}

impl ImportDraft {
    fn open(folder: &Path) -> Result<ImportDraft, RefDataFaults> {
        let mut faults = RefDataFaults::default();
        let tables = RefDataTable::ALL.map(|table| TableDraft::open(folder, table, &mut faults));
        if faults.is_empty() { Ok(ImportDraft { tables }) } else { Err(faults) }
    }

    fn table(&mut self, table: RefDataTable) -> &mut TableDraft {
        &mut self.tables[table as usize]
    }

    /// Checks all rows against each other, as a start does.
    fn check(&self) -> Result<RefData, RefDataFaults> {
        let sources = self
            .tables
            .each_ref()
            .map(|table| TableSource { name: table.name.clone(), bytes: table.bytes.clone() });
        let adapters = self.adapters();
        parse(&sources, &adapters.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Returns the adapters that the rows name. Which of them the settings have is not known here.
    fn adapters(&self) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for table in [RefDataTable::Exchanges, RefDataTable::Accounts] {
            let table = &self.tables[table as usize];
            let Some(place) = table.columns.iter().position(|column| column == "adapterType") else {
                continue;
            };
            for name in records(&table.bytes)
                .skip(1)
                .filter_map(|mut record| record.cells.get_mut(place).map(std::mem::take))
            {
                if name != rows::SIMULATED && !found.contains(&name) && found.len() < ADAPTERS_MAX {
                    found.push(name);
                }
            }
        }
        found
    }

    /// Returns the exchange of the venue, which is added if there is none.
    fn add_exchange(
        &mut self,
        reference: &RefData,
        venue: &ImportedVenue<'_>,
    ) -> Result<ExchangeId, RefDataFaults> {
        let rows = reference.exchanges();
        let table = self.table(RefDataTable::Exchanges);
        if let Some(row) = rows.iter().find(|row| row.name == venue.exchange) {
            if row.adapter_type == venue.adapter {
                return Ok(row.id);
            }
            let mut faults = RefDataFaults::default();
            let problem =
                format!("{:?} is reached by {}, not by {}", row.name, row.adapter_type, venue.adapter);
            faults.add(&table.name, 0, "adapterType", problem);
            return Err(faults);
        }
        let id = ExchangeId(rows.iter().map(|row| row.id.0).max().unwrap_or(0).saturating_add(1));
        table.append(&[
            ("id", &id.to_string()),
            ("name", venue.exchange),
            ("mic", venue.mic),
            ("timeZone", "UTC"),
            ("open", "00:00"),
            ("close", "24:00"),
            ("auctions", "false"),
            ("adapterType", venue.adapter),
        ]);
        Ok(id)
    }

    /// Adds the securities that the exchange does not have, and families for their terms.
    fn add_securities(
        &mut self,
        reference: &RefData,
        venue: &ImportedVenue<'_>,
        exchange: ExchangeId,
        instruments: &[VenueInstrument],
    ) -> ImportSummary {
        let mut summary = ImportSummary::default();
        let families = reference.families().iter();
        let mut next_family = families.clone().map(|row| row.id.0).max().unwrap_or(0);
        let plain = families.filter(|row| {
            row.exchange == exchange && row.contract_size == ContractSize::ONE && !row.expirable
        });
        let mut family_of: Vec<(FamilyTerms, FamilyId)> =
            plain.map(|row| (FamilyTerms::of_family(row), row.id)).collect();
        let mut next_security = reference.securities().iter().map(|row| row.id.0).max().unwrap_or(0);
        let of_exchange = reference.securities().iter().map(|row| (row, reference.family_of(row)));
        let mut known: BTreeMap<&str, FamilyTerms> = of_exchange
            .filter(|(_, family)| family.exchange == exchange)
            .map(|(row, family)| (row.symbol.as_str(), FamilyTerms::of_family(family)))
            .collect();
        for instrument in instruments {
            let terms = FamilyTerms::of(instrument);
            if let Some(had) = known.get(instrument.symbol.as_str()) {
                summary.kept += 1;
                let is_same = FamilyTerms { limits: terms.limits, ..*had } == terms;
                if !is_same {
                    summary.changed_terms.push(instrument.symbol.clone());
                } else if *had != terms {
                    summary.changed_limits.push(instrument.symbol.clone());
                }
                continue;
            }
            known.insert(&instrument.symbol, terms);
            let family = family_of.iter().find(|(other, _)| *other == terms).map(|(_, id)| *id);
            let family = family.unwrap_or_else(|| {
                next_family = next_family.saturating_add(1);
                summary.families += 1;
                family_of.push((terms, FamilyId(next_family)));
                self.add_family(FamilyId(next_family), venue, exchange, &terms)
            });
            next_security = next_security.saturating_add(1);
            summary.securities += 1;
            self.table(RefDataTable::Securities).append(&[
                ("id", &next_security.to_string()),
                ("symbol", &instrument.symbol),
                ("description", &instrument.description),
                ("type", instrument.kind.name()),
                ("securityFamilyId", &family.to_string()),
                ("baseCurrency", instrument.base.as_str()),
                ("tradeable", "true"),
            ]);
        }
        summary
    }

    /// Adds a family with these terms. It has no commission: the venue reports its fees with each
    /// fill.
    fn add_family(
        &mut self,
        id: FamilyId,
        venue: &ImportedVenue<'_>,
        exchange: ExchangeId,
        terms: &FamilyTerms,
    ) -> FamilyId {
        let FamilyTerms { currency, tick_size, lot_size, limits } = terms;
        let table = self.table(RefDataTable::Families);
        if *limits != OrderLimits::NONE {
            table.add_columns(rows::LIMITS);
        }
        let [min, min_to_market] = notional_cells(limits.min_notional);
        let [max, max_to_market] = notional_cells(limits.max_notional);
        table.append(&[
            ("id", &id.to_string()),
            ("name", &terms.name(venue.exchange)),
            ("exchangeId", &exchange.to_string()),
            ("currency", currency.as_str()),
            ("contractSize", "1"),
            ("tickSize", &tick_size.to_string()),
            ("lotSize", &lot_size.to_string()),
            ("commission", "0"),
            ("tradeable", "true"),
            ("expirable", "false"),
            (rows::MIN_NOTIONAL, &min),
            (rows::MIN_TO_MARKET, &min_to_market),
            (rows::MAX_NOTIONAL, &max),
            (rows::MAX_TO_MARKET, &max_to_market),
            (rows::ORDER_TYPES, &order_types_cell(limits.kinds)),
        ]);
        id
    }

    /// Adds an account, if none uses the adapter.
    fn add_account(&mut self, reference: &RefData, venue: &ImportedVenue<'_>, exchange: ExchangeId) {
        let rows = reference.accounts();
        if rows.iter().any(|row| row.adapter_type == venue.adapter) {
            return;
        }
        let id = rows.iter().map(|row| row.id.0).max().unwrap_or(0).saturating_add(1);
        self.table(RefDataTable::Accounts).append(&[
            ("id", &id.to_string()),
            ("name", venue.adapter),
            ("active", "true"),
            ("adapterType", venue.adapter),
            ("exchangeIds", &exchange.to_string()),
        ]);
    }

    /// Writes the files that have changed, each as a whole. A row names only rows of files before
    /// its own, so that an interrupted import leaves a folder that can be used.
    fn write(&self, folder: &Path) -> Result<(), RefDataFaults> {
        let mut faults = RefDataFaults::default();
        if let Err(error) = fs::create_dir_all(folder) {
            faults.add(&folder.display().to_string(), 0, "", format!("cannot be created: {error}"));
            return Err(faults);
        }
        for table in self.tables.iter().filter(|table| table.is_changed) {
            if let Err(error) = replace_file(Path::new(&table.name), &table.bytes) {
                faults.add(&table.name, 0, "", format!("cannot be written: {error}"));
                return Err(faults);
            }
        }
        Ok(())
    }
}

/// Writes a file beside its place, and then moves it there.
fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("csv.new");
    let mut file = File::create(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}
