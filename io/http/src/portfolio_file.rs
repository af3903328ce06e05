//! The samples of the portfolios in a file of the data folder, so that the curve of the profit goes
//! on after a restart.
//!
//! Each line is one strategy at one time. A line that was cut by the end of the process, or that
//! cannot be read, is left out. The file is written again with the first sample of a process and
//! when most of its lines are old, so that it stays small.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pitlane_engine::id::{Currency, StrategyId};
use pitlane_engine::number::Money;
use pitlane_engine::time::Timestamp;
use pitlane_journal::disk::Disk;

use super::portfolio_sample::{PortfolioAmounts, Sample};

const NAME: &str = "portfolio.csv";
const HEADER: &str =
    "time,strategyId,currency,netLiquidationValue,marketValue,grossExposure,realizedPL,unrealizedPL";
/// Mode of the file, as of all trading data.
const OWNER_ONLY: u32 = 0o600;
/// Lines beyond those of kept samples after which the file is written again.
const OLD_LINES_MAX: usize = 20_000;

#[derive(Clone, Debug)]
pub(crate) struct PortfolioFile {
    path: PathBuf,
    currency: Currency,
    /// Whether the last write failed. A failure is logged once.
    has_failed: Arc<AtomicBool>,
}

impl PortfolioFile {
    pub(crate) fn new(folder: &Path, currency: Currency) -> PortfolioFile {
        PortfolioFile { path: folder.join(NAME), currency, has_failed: Arc::default() }
    }

    /// Returns the samples in the file, oldest first. Samples in another currency are left out.
    pub(crate) fn read(&self) -> Vec<Sample> {
        match fs::read(&self.path) {
            Ok(bytes) => bytes.split(|byte| *byte == b'\n').filter_map(|line| self.parse(line)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                self.report(Err(error));
                Vec::new()
            }
        }
    }

    fn parse(&self, line: &[u8]) -> Option<Sample> {
        let mut columns = str::from_utf8(line).ok()?.split(',');
        let (at, strategy) = (columns.next()?.parse().ok()?, columns.next()?.parse().ok()?);
        if columns.next()? != self.currency.as_str() {
            return None;
        }
        let mut amount = || match columns.next()? {
            "" => Some(None),
            text => Money::parse(text.as_bytes()).ok().map(Some),
        };
        let amounts = PortfolioAmounts {
            net_liquidation: amount()?,
            market_value: amount()?,
            gross_exposure: amount()?,
            realized: amount()?,
            unrealized: amount()?,
        };
        columns.next().is_none().then_some((Timestamp(at), StrategyId(strategy), amounts))
    }

    /// Appends samples. Blocks until they are written.
    pub(crate) fn append(&self, samples: &[Sample]) {
        let write = || {
            let mut file = OpenOptions::new().append(true).create(true).mode(OWNER_ONLY).open(&self.path)?;
            file.write_all(self.text(samples).as_bytes())
        };
        self.report(write());
    }

    /// Replaces the file by these samples. Blocks until they are written.
    pub(crate) fn replace(&self, samples: &[Sample]) {
        let text = format!("{HEADER}\n{}", self.text(samples));
        self.report(Disk::Real.put(&self.path, text.as_bytes()));
    }

    fn text(&self, samples: &[Sample]) -> String {
        let mut text = String::new();
        for (at, strategy, amounts) in samples {
            text += &format!("{},{},{}", at.0, strategy.0, self.currency.as_str());
            for amount in amounts.all() {
                text.push(',');
                text += &amount.map(|amount| amount.to_string()).unwrap_or_default();
            }
            text.push('\n');
        }
        text
    }

    fn report(&self, result: io::Result<()>) {
        let had_failed = self.has_failed.swap(result.is_err(), Ordering::Relaxed);
        if let Err(error) = result
            && !had_failed
        {
            let path = self.path.display();
            tracing::warn!("{path}: {error}; the curve of the profit will have a gap after a restart");
        }
    }
}

/// Returns whether a file with this many lines is written again if it has `kept` samples.
pub(crate) fn is_mostly_old(lines: usize, kept: usize) -> bool {
    lines > kept + OLD_LINES_MAX
}

#[cfg(test)]
mod tests {
    use pitlane_testkit::temp_folder::TestFolder;

    use super::*;

    fn amounts(raw: i64) -> PortfolioAmounts {
        let money = Some(Money::from_raw(raw));
        PortfolioAmounts {
            net_liquidation: money,
            market_value: None,
            gross_exposure: money,
            realized: Some(Money::from_raw(-raw)),
            unrealized: Some(Money::ZERO),
        }
    }

    fn usd(folder: &Path) -> PortfolioFile {
        PortfolioFile::new(folder, Currency::parse(b"USD").unwrap())
    }

    #[test]
    fn samples_are_read_as_they_were_written() {
        let folder = TestFolder::new("portfolio", "written");
        let file = usd(&folder);
        assert_eq!(file.read(), []);
        let samples = [1, 2, 3].map(|nth| (Timestamp(nth), StrategyId(7), amounts(nth as i64 * 123_456_789)));
        file.append(&samples[..1]);
        file.append(&samples[1..]);
        assert_eq!(file.read(), samples);
        file.replace(&samples[1..]);
        assert_eq!(file.read(), samples[1..]);
        assert!(fs::read_to_string(folder.join(NAME)).unwrap().starts_with(HEADER));
        let euro = PortfolioFile::new(&folder, Currency::parse(b"EUR").unwrap());
        assert_eq!(euro.read(), [], "amounts in another currency cannot be compared");
    }

    #[test]
    fn lines_that_cannot_be_read_are_left_out() {
        let folder = TestFolder::new("portfolio", "cut");
        let file = usd(&folder);
        let sample = (Timestamp(5), StrategyId(1), amounts(100_000_000));
        file.append(&[sample]);
        let path = folder.join(NAME);
        let line = fs::read(&path).unwrap();
        let cut = [&line[..], b"nonsense\n\xff\xfe\n5,1,USD,1,1,1,1\n5,1,USD,1,1,1,1,1,1\n", &line[..9]];
        fs::write(&path, cut.concat()).unwrap();
        assert_eq!(file.read(), [sample]);
    }

    #[test]
    fn a_folder_that_is_missing_loses_the_samples_only() {
        let folder = TestFolder::new("portfolio", "missing");
        let file = usd(&folder.join("missing"));
        let sample = (Timestamp(5), StrategyId(1), amounts(1));
        file.append(&[sample]);
        file.replace(&[sample]);
        assert_eq!(file.read(), []);
    }
}
