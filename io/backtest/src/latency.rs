//! Latencies of a simulation, drawn from a distribution or from a measured one. A distribution
//! becomes a table of its quantiles, so that the engine draws without a float: a whole random
//! number chooses an entry.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use pitlane_config::{Config, LatencyModel, SimulationConfig};
use pitlane_engine::settings::DelayTable;

/// Entries of a table: they resolve 99.998 %.
const ENTRIES: u32 = 1 << 16;
/// Largest file of latencies: a text of quantiles has a few hundred lines.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Longest latency: an hour, so that a table cannot stop the time.
const LATENCY_NS_MAX: f64 = 3_600e9;

/// The latencies of a run.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    pub entry: Option<Arc<DelayTable>>,
    pub response: Option<Arc<DelayTable>>,
}

impl Latencies {
    /// Returns the latencies of the settings, or the problem of a file.
    pub fn of(settings: &SimulationConfig) -> Result<Latencies, String> {
        let entry = settings.entry_latency.as_ref().map(table).transpose();
        let response = settings.response_latency.as_ref().map(table).transpose();
        Ok(Latencies {
            entry: entry.map_err(|problem| format!("simulation.entry_latency: {problem}"))?,
            response: response.map_err(|problem| format!("simulation.response_latency: {problem}"))?,
        })
    }

    /// Returns the settings with delays of the venues that allow for these latencies: the shortest
    /// as the constant part, and the rest as jitter.
    pub(crate) fn allowed_by(&self, config: &Config) -> Config {
        let mut config = config.clone();
        let venues = config.venue.exchange.values_mut();
        for settings in venues.chain([&mut config.venue.settings, &mut config.shard.venue]) {
            if let Some((shortest, longest)) = self.entry.as_ref().map(|table| table.range()) {
                (settings.delays.entry_ns, settings.delays.entry_jitter_ns) = (shortest, longest - shortest);
            }
            if let Some((shortest, longest)) = self.response.as_ref().map(|table| table.range()) {
                (settings.delays.response_ns, settings.delays.response_jitter_ns) =
                    (shortest, longest - shortest);
            }
        }
        config
    }
}

/// Returns the table of a model, or the problem of its file.
fn table(model: &LatencyModel) -> Result<Arc<DelayTable>, String> {
    let quantile: Box<dyn Fn(f64) -> f64> = match model {
        LatencyModel::Constant { ns } => {
            let ns = *ns as f64;
            Box::new(move |_| ns)
        }
        LatencyModel::Uniform { from_ns, to_ns } => {
            let (from, to) = (*from_ns as f64, *to_ns as f64);
            Box::new(move |share| from + (to - from) * share)
        }
        LatencyModel::Exponential { mean_ns } => {
            let mean = *mean_ns as f64;
            Box::new(move |share| -mean * (1.0 - share).ln())
        }
        LatencyModel::Normal { mean_ns, deviation_ns } => {
            let (mean, deviation) = (*mean_ns as f64, *deviation_ns as f64);
            Box::new(move |share| mean + deviation * normal_quantile(share))
        }
        LatencyModel::LogNormal { median_ns, p99_ns } => {
            let median = (*median_ns as f64).ln();
            let spread = ((*p99_ns as f64).ln() - median) / normal_quantile(0.99);
            Box::new(move |share| (median + spread * normal_quantile(share)).exp())
        }
        LatencyModel::File(path) => {
            let steps = read(path).map_err(|problem| format!("{}: {problem}", path.display()))?;
            Box::new(move |share| interpolated(&steps, share))
        }
    };
    // Each entry stands for the middle of its share.
    let entry = |nth: u32| rounded_ns(quantile((f64::from(nth) + 0.5) / f64::from(ENTRIES)));
    Ok(Arc::new(DelayTable::new((0..ENTRIES).map(entry).collect())))
}

fn rounded_ns(ns: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, reason = "it is clamped to an hour")]
    let ns = ns.round().clamp(0.0, LATENCY_NS_MAX) as u64;
    ns
}

/// Reads the quantiles of a file that `pitlane-bench` or another program with HDR histograms wrote:
/// value in microseconds and quantile.
fn read(path: &Path) -> Result<Vec<(f64, f64)>, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    parse(&fs::read_to_string(path).map_err(|error| error.to_string())?)
}

/// Returns pairs of quantile and nanoseconds, in order.
fn parse(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let mut cells = line.split_whitespace();
        let Some(first) = cells.next().filter(|first| !first.starts_with('#') && *first != "Value") else {
            continue;
        };
        let number = |cell: Option<&str>| {
            let parsed = cell.and_then(|cell| cell.parse::<f64>().ok());
            parsed.filter(|number| number.is_finite() && *number >= 0.0)
        };
        let pair = number(Some(first)).zip(number(cells.next()));
        let Some((us, quantile)) = pair.filter(|(_, quantile)| *quantile <= 1.0) else {
            return Err(format!("line {} has no value and quantile", nth + 1));
        };
        let step = (quantile, us * 1e3);
        if steps.last().is_some_and(|last| last.0 > step.0 || last.1 > step.1) {
            return Err(format!("line {} is below the line before it", nth + 1));
        }
        steps.push(step);
    }
    if steps.is_empty() { Err("there is no line with a value and a quantile".to_string()) } else { Ok(steps) }
}

/// Returns the value at a quantile, on a straight line between the steps of the file.
fn interpolated(steps: &[(f64, f64)], share: f64) -> f64 {
    let after = steps.partition_point(|step| step.0 < share);
    match (after.checked_sub(1).map(|before| steps[before]), steps.get(after)) {
        (None, Some(first)) => first.1,
        (Some(last), None) => last.1,
        (Some(low), Some(high)) => low.1 + (high.1 - low.1) * (share - low.0) / (high.0 - low.0),
        (None, None) => 0.0,
    }
}

/// Returns the quantile of the standard normal distribution by P. J. Acklam's approximation, whose
/// relative error is below 1.2e-9.
fn normal_quantile(share: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// Beyond this share the tails have a formula of their own.
    const TAIL: f64 = 0.024_25;
    let polynomial = |factors: &[f64], x: f64| factors.iter().fold(0.0, |sum, factor| sum * x + factor);
    let tail = |share: f64| {
        let q = (-2.0 * share.ln()).sqrt();
        polynomial(&C, q) / polynomial(&D, q)
    };
    if share < TAIL {
        tail(share)
    } else if share > 1.0 - TAIL {
        -tail(1.0 - share)
    } else {
        let q = share - 0.5;
        polynomial(&A, q * q) * q / polynomial(&B, q * q)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::index::index_usize;

    use super::*;

    const US: u64 = 1_000;

    /// Returns the quantile of a table in microseconds.
    fn at(model: &LatencyModel, share: f64) -> f64 {
        let table = table(model).unwrap();
        let nth = (share * f64::from(ENTRIES)).floor();
        table.entries()[index_usize(rounded_ns(nth))] as f64 / US as f64
    }

    #[test]
    fn the_normal_quantile_has_its_known_values() {
        for (share, expected) in
            [(0.5, 0.0), (0.975, 1.959_963_985), (0.99, 2.326_347_874), (0.001, -3.090_232_306)]
        {
            assert!((normal_quantile(share) - expected).abs() < 1e-7, "{share}");
        }
    }

    #[test]
    fn tables_have_the_quantiles_of_their_distributions() {
        let cases = [
            (LatencyModel::Constant { ns: 250 * US }, 0.9, 250.0),
            (LatencyModel::Uniform { from_ns: 100 * US, to_ns: 200 * US }, 0.25, 125.0),
            (LatencyModel::Exponential { mean_ns: 100 * US }, 0.5, 69.31),
            (LatencyModel::Normal { mean_ns: 500 * US, deviation_ns: 100 * US }, 0.975, 695.996),
            (LatencyModel::LogNormal { median_ns: 200 * US, p99_ns: 2_000 * US }, 0.5, 200.0),
            (LatencyModel::LogNormal { median_ns: 200 * US, p99_ns: 2_000 * US }, 0.99, 2_000.0),
        ];
        for (model, share, expected) in cases {
            let found = at(&model, share);
            assert!((found - expected).abs() < expected * 1e-3, "{model:?}: {found} is not {expected}");
        }
        // A latency is never negative.
        let wide = LatencyModel::Normal { mean_ns: US, deviation_ns: 100 * US };
        assert_eq!(at(&wide, 0.0), 0.0);
    }

    const FILE: &str = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n\
        \x20     10.000 0.000000000000          1           1.00\n\
        \x20     30.000 0.500000000000        500           2.00\n\
        \x20     50.000 0.990000000000        990         100.00\n\
        \x20   1000.000 1.000000000000       1000\n\
        #[Mean    =       31.000, StdDeviation   =        5.000]\n";

    #[test]
    fn a_file_of_quantiles_is_followed_from_its_first_to_its_last() {
        let steps = parse(FILE).unwrap();
        let shares = [0.0, 0.25, 0.5, 0.745, 0.995, 1.0];
        let values = shares.map(|share| interpolated(&steps, share) / 1e3);
        let expected = [10.0, 20.0, 30.0, 40.0, 525.0, 1_000.0];
        for (found, expected) in values.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{values:?}");
        }
    }

    #[test]
    fn a_file_has_a_size_limit() {
        let path = std::env::temp_dir().join(format!("pitlane-latency-{}", std::process::id()));
        let file = fs::File::create(&path).unwrap();
        file.set_len(FILE_BYTES_MAX + 1).unwrap();
        assert_eq!(read(&path).unwrap_err(), format!("it has more than {FILE_BYTES_MAX} bytes"));
        file.set_len(FILE_BYTES_MAX).unwrap();
        assert!(!read(&path).unwrap_err().contains("more than"), "it is read");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn faults_of_a_file_are_named_with_their_line() {
        let cases = [
            ("", "there is no line"),
            ("1.0 x 1", "line 1 has no value"),
            ("1.0 0.5 1\n0.5 0.6 2", "line 2 is below"),
            ("1.0 0.5 1\n2.0 0.4 2", "line 2 is below"),
            ("1.0 1.5 1", "line 1 has no value"),
            ("-1.0 0.5 1", "line 1 has no value"),
        ];
        for (text, problem) in cases {
            let found = parse(text).unwrap_err();
            assert!(found.contains(problem), "{text:?}: {found}");
        }
        let missing = LatencyModel::File("/nowhere/latency.hgrm".into());
        assert!(table(&missing).unwrap_err().contains("/nowhere/latency.hgrm: No such file"));
    }
}
