//! Settings of `pitlane simulate`: `[simulation]`.

use std::path::PathBuf;

use pitlane_engine::id::SecurityId;
use pitlane_engine::number::Money;
use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_protocols::rest::Moment;

use super::data_files::DataFilesConfig;
use super::risk::Restricted;
use super::section::Section;
use super::tree::ConfigValue;

/// Longest bar and longest interval of samples: a week.
const INTERVAL_S_MAX: u64 = 7 * 86_400;
/// Longest warm-up: ten years.
const PREFEED_S_MAX: u64 = 3_650 * 86_400;
/// Most rows of each kind that are kept: an order takes about 250 bytes.
const RECORDS_MAX: usize = 10_000_000;
/// Most tiers of fees: exchanges have about ten.
const FEE_TIERS_MAX: usize = 100;
/// Longest latency: a minute, as for the delays of a venue.
const LATENCY_NS_MAX: u64 = 60 * NS_PER_S;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationConfig {
    pub data: Vec<PathBuf>,
    pub files: DataFilesConfig,
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
    pub prefeed_ns: u64,
    /// Cash of each strategy at the beginning, in the base currency.
    pub cash: Money,
    pub sample_ns: u64,
    pub bar_ns: u64,
    /// Hundredths of a percent.
    pub bar_volume_bp: u32,
    /// None: the securities of each strategy.
    pub benchmark: Option<Restricted>,
    /// Trading days of a year.
    pub year_days: u32,
    /// Orders, fills and round trips that are kept, each.
    pub records_max: usize,
    /// None: the delays of the venue.
    pub entry_latency: Option<LatencyModel>,
    pub response_latency: Option<LatencyModel>,
    /// In order of the amount from which they apply; empty: the commission of the reference data.
    pub fee_tiers: Vec<FeeTier>,
    pub fee_basis: FeeBasis,
    /// None: nothing is written.
    pub report_dir: Option<PathBuf>,
}

impl SimulationConfig {
    pub(super) fn read(section: &mut Section<'_>) -> SimulationConfig {
        let instant = |section: &mut Section<'_>, key| {
            let show = |at: &Option<Timestamp>| at.map_or(String::new(), |at| at.to_string());
            section.text_as(key, parse_instant, show).flatten()
        };
        let basis = [("value", FeeBasis::Value), ("quantity", FeeBasis::Quantity)];
        let simulation = SimulationConfig {
            data: section.texts("data").into_iter().map(PathBuf::from).collect(),
            files: DataFilesConfig::read(section),
            from: instant(section, "from"),
            to: instant(section, "to"),
            prefeed_ns: section.number("prefeed_s", 0..=PREFEED_S_MAX) * NS_PER_S,
            cash: section.money("cash"),
            sample_ns: section.number("sample_s", 1..=INTERVAL_S_MAX) * NS_PER_S,
            bar_ns: section.number("bar_s", 1..=INTERVAL_S_MAX) * NS_PER_S,
            bar_volume_bp: section.percent("bar_volume_pct", 10_000),
            benchmark: section.optional("benchmark").map(|text| security(&text)),
            year_days: section.number("year_days", 1..=366),
            records_max: section.number("records_max", 0..=RECORDS_MAX),
            entry_latency: read_latency(section, "entry_latency"),
            response_latency: read_latency(section, "response_latency"),
            fee_basis: section.word("fee_basis", &basis),
            fee_tiers: section.items("fee_tiers", FeeTier::read, FeeTier::to_string),
            report_dir: section.path("report_dir"),
        };
        if simulation.from.zip(simulation.to).is_some_and(|(from, to)| from >= to) {
            section.fault("to", "it must be later than from");
        }
        let tiers = &simulation.fee_tiers;
        if tiers.len() > FEE_TIERS_MAX {
            section.fault("fee_tiers", &format!("it may have {FEE_TIERS_MAX} tiers, not {}", tiers.len()));
        } else if tiers.first().is_some_and(|first| !first.from.is_zero()) {
            section.fault("fee_tiers", "the first tier must begin at 0");
        } else if !tiers.is_sorted_by(|a, b| a.from < b.from) {
            section.fault("fee_tiers", "each tier must begin above the tier before it");
        }
        simulation
    }
}

/// Returns the security of an id or a symbol.
fn security(text: &str) -> Restricted {
    let id = text.parse().ok().filter(|id| *id <= SecurityId::MAX);
    id.map_or_else(|| Restricted::Symbol(text.to_string()), |id| Restricted::Id(SecurityId(id)))
}

/// Parses RFC 3339; a day is its beginning in UTC.
fn parse_instant(text: &str) -> Result<Option<Timestamp>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    Moment::parse_begin(text)
        .map(|moment| Some(moment.0))
        .map_err(|_| format!("it must be such as 2026-11-14T09:30:00Z or 2026-11-14, not {text:?}"))
}

/// What the rates of fees refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeeBasis {
    /// Hundredths of a percent of the traded value.
    Value,
    /// An amount per unit of quantity.
    Quantity,
}

/// Rates from a traded amount on. A rate below zero is a rebate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeTier {
    /// Value in the base currency, or quantity, that was traded in the month before.
    pub from: Money,
    pub maker: Money,
    pub taker: Money,
}

impl FeeTier {
    fn read(value: &ConfigValue) -> Result<FeeTier, String> {
        if let ConfigValue::Text(text) = value {
            return FeeTier::parse(text);
        }
        Err(format!("a tier must be a text, not {}", value.kind()))
    }

    fn parse(text: &str) -> Result<FeeTier, String> {
        let problem =
            || format!("a tier must be such as \"1000000 0.5 2\": amount, maker, taker; not {text:?}");
        let numbers: Result<Vec<Money>, _> =
            text.split_whitespace().map(|word| Money::parse(word.as_bytes())).collect();
        match numbers.as_deref() {
            Ok(&[from, maker, taker]) if !from.is_negative() => Ok(FeeTier { from, maker, taker }),
            Ok(_) | Err(_) => Err(problem()),
        }
    }
}

impl std::fmt::Display for FeeTier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.from, self.maker, self.taker)
    }
}

/// Distribution of a latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LatencyModel {
    Constant {
        ns: u64,
    },
    Uniform {
        from_ns: u64,
        to_ns: u64,
    },
    Exponential {
        mean_ns: u64,
    },
    Normal {
        mean_ns: u64,
        deviation_ns: u64,
    },
    LogNormal {
        median_ns: u64,
        p99_ns: u64,
    },
    /// Quantiles of a measurement.
    File(PathBuf),
}

fn read_latency(section: &mut Section<'_>, key: &'static str) -> Option<LatencyModel> {
    let show = |model: &Option<LatencyModel>| model.as_ref().map_or(String::new(), LatencyModel::to_string);
    section.text_as(key, LatencyModel::parse, show).flatten()
}

impl LatencyModel {
    fn parse(text: &str) -> Result<Option<LatencyModel>, String> {
        if text.is_empty() {
            return Ok(None);
        }
        let forms = "constant 250us, uniform 100us 400us, exponential 250us, normal 250us 50us (mean, deviation), \
                     lognormal 200us 2ms (median, 99 %) or file PATH";
        let problem = || format!("it must be such as {forms}; not {text:?}");
        let (name, rest) = text.trim().split_once(char::is_whitespace).ok_or_else(problem)?;
        if name == "file" {
            return Ok(Some(LatencyModel::File(PathBuf::from(rest.trim()))));
        }
        let times: Option<Vec<u64>> = rest.split_whitespace().map(parse_time_ns).collect();
        let model = match (name, times.as_deref()) {
            ("constant", Some(&[ns])) => LatencyModel::Constant { ns },
            ("uniform", Some(&[from_ns, to_ns])) if from_ns <= to_ns => {
                LatencyModel::Uniform { from_ns, to_ns }
            }
            ("exponential", Some(&[mean_ns])) => LatencyModel::Exponential { mean_ns },
            ("normal", Some(&[mean_ns, deviation_ns])) => LatencyModel::Normal { mean_ns, deviation_ns },
            ("lognormal", Some(&[median_ns, p99_ns])) if 0 < median_ns && median_ns <= p99_ns => {
                LatencyModel::LogNormal { median_ns, p99_ns }
            }
            _ => return Err(problem()),
        };
        Ok(Some(model))
    }
}

impl std::fmt::Display for LatencyModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let us = |ns: &u64| format!("{}us", *ns as f64 / 1e3);
        match self {
            LatencyModel::Constant { ns } => write!(f, "constant {}", us(ns)),
            LatencyModel::Uniform { from_ns, to_ns } => write!(f, "uniform {} {}", us(from_ns), us(to_ns)),
            LatencyModel::Exponential { mean_ns } => write!(f, "exponential {}", us(mean_ns)),
            LatencyModel::Normal { mean_ns, deviation_ns } => {
                write!(f, "normal {} {}", us(mean_ns), us(deviation_ns))
            }
            LatencyModel::LogNormal { median_ns, p99_ns } => {
                write!(f, "lognormal {} {}", us(median_ns), us(p99_ns))
            }
            LatencyModel::File(path) => write!(f, "file {}", path.display()),
        }
    }
}

/// Parses a time with its unit, such as `250us` or `1.5ms`.
fn parse_time_ns(text: &str) -> Option<u64> {
    let (number, unit_ns) = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", NS_PER_S)]
        .into_iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))?;
    // A number has eight decimals.
    let raw = i128::from(Money::parse(number.as_bytes()).ok()?.raw());
    let ns = u64::try_from(raw * i128::from(unit_ns) / 100_000_000).ok()?;
    (ns <= LATENCY_NS_MAX).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_read_with_their_units_and_shown_as_they_are_read() {
        let us = 1_000;
        let cases = [
            ("constant 250us", LatencyModel::Constant { ns: 250 * us }),
            ("uniform 0.5ms 1ms", LatencyModel::Uniform { from_ns: 500 * us, to_ns: 1_000 * us }),
            ("exponential 1500ns", LatencyModel::Exponential { mean_ns: 1_500 }),
            ("normal 1s 1ms", LatencyModel::Normal { mean_ns: NS_PER_S, deviation_ns: 1_000 * us }),
            ("lognormal 200us 2ms", LatencyModel::LogNormal { median_ns: 200 * us, p99_ns: 2_000 * us }),
            ("file fix 1.hgrm", LatencyModel::File("fix 1.hgrm".into())),
        ];
        for (text, model) in cases {
            assert_eq!(LatencyModel::parse(text), Ok(Some(model.clone())), "{text}");
            assert_eq!(LatencyModel::parse(&model.to_string()), Ok(Some(model)), "{text}");
        }
        assert_eq!(LatencyModel::parse(""), Ok(None));
    }

    #[test]
    fn latencies_that_are_none_are_refused() {
        for text in [
            "fast",
            "constant",
            "constant 5",
            "constant -5us",
            "constant 61s",
            "uniform 2us 1us",
            "lognormal 0us 1us",
            "lognormal 2us 1us",
            "normal 1us",
            "gamma 1us",
        ] {
            assert!(LatencyModel::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tiers_have_three_numbers() {
        let tier = FeeTier::parse("1000000 -0.5 2").unwrap();
        assert_eq!((tier.to_string(), tier.maker.is_negative()), ("1000000 -0.5 2".to_string(), true));
        for text in ["", "1", "1 2", "1 2 3 4", "-1 2 3", "a b c"] {
            assert!(FeeTier::parse(text).is_err(), "{text}");
        }
    }
}
