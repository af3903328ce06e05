//! The profit of past trading days in a file of the data folder. Each line is one position on one
//! day. A line that cannot be read is left out.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::{FromStr, Split};

use pitlane_engine::id::{Currency, SecurityId, StrategyId};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::time::Day;
use pitlane_engine::view::DayResult;
use pitlane_journal::disk::Disk;
use pitlane_protocols::rest::ConvertedResult;

use super::profit_history::ProfitRecord;

const NAME: &str = "profit.csv";
const HEADER: &str = "day,strategyId,securityId,currency,quantity,price,trades,grossPL,fees,netPL,\
                      baseCurrency,baseGrossPL,baseFees";

#[derive(Clone, Debug)]
pub(crate) struct ProfitFile {
    path: PathBuf,
}

impl ProfitFile {
    pub(crate) fn new(folder: &Path) -> ProfitFile {
        ProfitFile { path: folder.join(NAME) }
    }

    /// Returns the rows in the file.
    pub(crate) fn read(&self) -> Vec<ProfitRecord> {
        match fs::read(&self.path) {
            Ok(bytes) => bytes.split(|byte| *byte == b'\n').filter_map(parse).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                tracing::warn!("{}: {error}; the profit of past days is not shown", self.path.display());
                Vec::new()
            }
        }
    }

    /// Replaces the file by these rows. Blocks until they are written.
    pub(crate) fn replace(&self, records: &[ProfitRecord]) {
        let mut text = format!("{HEADER}\n");
        records.iter().for_each(|record| text += &line(record));
        if let Err(error) = Disk::Real.put(&self.path, text.as_bytes()) {
            let path = self.path.display();
            tracing::warn!("{path}: {error}; the profit of the ended day is lost with the next restart");
        }
    }
}

fn line((day, base, row): &ProfitRecord) -> String {
    let result = &row.result;
    let text = |amount: Option<Money>| amount.map(|amount| amount.to_string()).unwrap_or_default();
    let price = result.price.map(|price| price.to_string()).unwrap_or_default();
    let columns = [
        day.to_string(),
        result.strategy.0.to_string(),
        result.security.0.to_string(),
        result.currency.to_string(),
        result.qty.to_string(),
        price,
        result.trades.to_string(),
        text(result.gross),
        text(result.fees),
        text(result.net),
        base.to_string(),
        text(row.base.map(|(gross, _)| gross)),
        text(row.base.map(|(_, fees)| fees)),
    ];
    columns.join(",") + "\n"
}

fn parse(line: &[u8]) -> Option<ProfitRecord> {
    let mut columns = str::from_utf8(line).ok()?.split(',');
    let day = Day::parse(columns.next()?.as_bytes()).ok()?;
    let (strategy, security) = (StrategyId(number(&mut columns)?), SecurityId(number(&mut columns)?));
    let currency = Currency::parse(columns.next()?.as_bytes()).ok()?;
    let qty = Qty::parse(columns.next()?.as_bytes()).ok()?;
    let price = match columns.next()? {
        "" => None,
        text => Some(Price::parse(text.as_bytes()).ok()?),
    };
    let trades = number(&mut columns)?;
    let (gross, fees, net) = (amount(&mut columns)?, amount(&mut columns)?, amount(&mut columns)?);
    let base = Currency::parse(columns.next()?.as_bytes()).ok()?;
    let in_base = amount(&mut columns)?.zip(amount(&mut columns)?);
    let result = DayResult { strategy, security, currency, qty, price, trades, gross, fees, net };
    columns.next().is_none().then_some((day, base, ConvertedResult { result, base: in_base }))
}

fn number<T: FromStr>(columns: &mut Split<'_, char>) -> Option<T> {
    columns.next()?.parse().ok()
}

/// Returns an amount that may be unknown; `None` if the column cannot be read.
fn amount(columns: &mut Split<'_, char>) -> Option<Option<Money>> {
    match columns.next()? {
        "" => Some(None),
        text => Money::parse(text.as_bytes()).ok().map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use pitlane_testkit::temp_folder::TestFolder;

    use super::super::profit_history::tests::{currency, row};
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let folder = TestFolder::new("profit", "written");
        let file = ProfitFile::new(&folder);
        assert_eq!(file.read(), []);
        let usd = currency("USD");
        let flat = ConvertedResult {
            result: DayResult { qty: Qty::ZERO, price: None, ..row(3, 4, None).result },
            base: None,
        };
        let records =
            [(Day(20_000), usd, row(1, 2, Some(-123_456_789))), (Day(20_001), currency("CHF"), flat)];
        file.replace(&records);
        assert_eq!(file.read(), records);
        let path = folder.join(NAME);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&path).unwrap().starts_with(HEADER));
    }

    #[test]
    fn lines_that_cannot_be_read_are_left_out() {
        let folder = TestFolder::new("profit", "cut");
        let file = ProfitFile::new(&folder);
        let record = (Day(20_000), currency("USD"), row(1, 2, Some(1)));
        file.replace(&[record]);
        let path = folder.join(NAME);
        let whole = fs::read(&path).unwrap();
        let mut one_more = whole.clone();
        one_more.truncate(whole.len() - 1);
        let bad =
            [&whole[..], b"nonsense\n\xff\xfe\n2026-13-01,1,2,EUR,0,,0,,,,USD,,\n", &one_more[..], b",1\n"];
        fs::write(&path, bad.concat()).unwrap();
        assert_eq!(file.read(), [record]);
    }

    #[test]
    fn a_folder_that_is_missing_loses_the_rows_only() {
        let folder = TestFolder::new("profit", "missing");
        let file = ProfitFile::new(&folder.join("missing"));
        file.replace(&[(Day(1), currency("USD"), row(1, 1, None))]);
        assert_eq!(file.read(), []);
    }
}
