//! A table of our figures beside those of peers: both figures, how many times as fast we are, and
//! what the peer does not do.

use std::fmt;

use serde::Serialize;

use crate::report::bars::Ratio;

/// One figure of ours beside one of a peer, from the same run.
#[derive(Clone, Debug, Serialize)]
pub struct ComparisonRow {
    /// For example `STOMP to 10 consumers`.
    pub what: String,
    pub unit: &'static str,
    pub ours: f64,
    pub peer: String,
    pub theirs: f64,
    /// Ratio in our favour: above 1, we are faster.
    pub times: f64,
    /// Work that our figure includes and the peer does not do.
    pub lacks: &'static str,
}

impl ComparisonRow {
    /// Builds a row for a figure where larger is better.
    pub fn of_rate(what: &str, unit: &'static str, ours: f64, peer: &str, theirs: f64) -> ComparisonRow {
        ComparisonRow::new(what, unit, [ours, theirs], peer, ours / theirs)
    }

    /// Builds a row for a figure where smaller is better.
    pub fn of_time(what: &str, unit: &'static str, ours: f64, peer: &str, theirs: f64) -> ComparisonRow {
        ComparisonRow::new(what, unit, [ours, theirs], peer, theirs / ours)
    }

    fn new(
        what: &str,
        unit: &'static str,
        [ours, theirs]: [f64; 2],
        peer: &str,
        times: f64,
    ) -> ComparisonRow {
        ComparisonRow { what: what.to_string(), unit, ours, peer: peer.to_string(), theirs, times, lacks: "" }
    }

    pub fn lacking(self, lacks: &'static str) -> ComparisonRow {
        ComparisonRow { lacks, ..self }
    }
}

/// All rows, and the peers that were left out, with the reason.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ComparisonTable {
    pub rows: Vec<ComparisonRow>,
    pub absent: Vec<String>,
}

impl ComparisonTable {
    pub fn ratios(&self) -> Vec<Ratio> {
        let ratio =
            |row: &ComparisonRow| Ratio { what: format!("{}, {}", row.what, row.peer), times: row.times };
        self.rows.iter().map(ratio).collect()
    }
}

impl fmt::Display for ComparisonTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<36} {:>12}  {:<30} {:>12} {:>9}  it does not",
            "what", "ours", "beside", "theirs", "times"
        )?;
        for ComparisonRow { what, unit, ours, peer, theirs, times, lacks } in &self.rows {
            let what = format!("{what}, {unit}");
            let digits = usize::from(*ours < 100.0) * 2;
            writeln!(
                f,
                "{what:<36} {ours:>12.digits$}  {peer:<30} {theirs:>12.digits$} {times:>7.2} ×  {lacks}"
            )?;
        }
        self.absent.iter().try_for_each(|reason| writeln!(f, "left out: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_above_one_means_that_we_are_faster() {
        let rate = ComparisonRow::of_rate("orders", "1/s", 300.0, "them", 100.0).lacking("journal");
        let time = ComparisonRow::of_time("read", "ns", 10.0, "them", 5.0);
        assert_eq!((rate.times, time.times), (3.0, 0.5));
        let table =
            ComparisonTable { rows: vec![rate, time], absent: vec!["others are not installed".into()] };
        let text = table.to_string();
        assert!(text.contains("3.00 ×") && text.contains("0.50 ×") && text.contains("journal"), "{text}");
        assert!(text.ends_with("left out: others are not installed\n"));
        assert_eq!(table.ratios()[1].what, "read, them");
    }
}
