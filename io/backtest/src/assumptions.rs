//! Every assumption of a simulation by name.

use pitlane_config::{Config, FeeBasis};
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::{FillModel, QuoteSizes, SelfTrade, VenueSettings};
use pitlane_engine::time::NS_PER_S;
use pitlane_performance::format::{count, money, span};

pub(crate) fn assumptions(config: &Config, reference: &RefData, sample_ns: u64) -> Vec<(String, String)> {
    let simulation = &config.simulation;
    let settings = config.shard_settings(reference);
    let files: Vec<String> = simulation.data.iter().map(|path| path.display().to_string()).collect();
    let latency = |model: &Option<_>| model.as_ref().map(ToString::to_string);
    let mut rows = vec![
        ("data".to_string(), files.join(", ")),
        ("seed".to_string(), config.service.seed.to_string()),
        ("shards".to_string(), config.topology.shards.to_string()),
        (
            "start cash".to_string(),
            format!("{} {} for each strategy", money(simulation.cash), config.service.base_currency),
        ),
        ("prefeed".to_string(), span(simulation.prefeed_ns)),
        ("equity sampled every".to_string(), span(sample_ns)),
        ("valuation".to_string(), "long at bid, short at ask, last without a quote".to_string()),
        (
            "annual figures".to_string(),
            format!(
                "daily returns in UTC, {} days a year, no risk-free rate; annual return by calendar time",
                simulation.year_days
            ),
        ),
        (
            "round trip".to_string(),
            "a position of one security from flat to flat, after fees; open ones are not counted".to_string(),
        ),
        (
            "other currencies".to_string(),
            "fees, turnover and round trips at the rate of the last sample".to_string(),
        ),
        ("exchange hours".to_string(), format!("{:?}", config.calendar.hours.by).to_lowercase()),
        ("commission".to_string(), commission(config)),
        (
            "market impact".to_string(),
            "what was taken from a quote is gone until the quote changes".to_string(),
        ),
        (
            "bars".to_string(),
            format!(
                "{} s; open, nearer extreme, other extreme, close; a quote of one tick to each side; {} % of the volume",
                simulation.bar_ns / NS_PER_S,
                simulation.bar_volume_bp as f64 / 100.0
            ),
        ),
    ];
    let drawn = [
        ("order entry latency", latency(&simulation.entry_latency)),
        ("order response latency", latency(&simulation.response_latency)),
    ];
    rows.extend(drawn.into_iter().filter_map(|(name, model)| Some((name.to_string(), model?))));
    let is_drawn = [simulation.entry_latency.is_some(), simulation.response_latency.is_some()];
    rows.extend(venue_rows("venue", &settings.venue, is_drawn));
    for (exchange, venue) in &settings.venues {
        let mic = reference.exchange(*exchange).map(|row| row.mic.clone()).unwrap_or_default();
        rows.extend(venue_rows(&format!("venue {mic}"), venue, is_drawn));
    }
    rows
}

fn commission(config: &Config) -> String {
    let simulation = &config.simulation;
    let unit = match simulation.fee_basis {
        _ if simulation.fee_tiers.is_empty() => {
            return "rate of the security's family per unit of quantity".to_string();
        }
        FeeBasis::Value => "hundredths of a percent",
        FeeBasis::Quantity => "per unit",
    };
    let tier = |tier: &pitlane_config::FeeTier| {
        let whole = u64::try_from(tier.from.raw() / 100_000_000).unwrap_or(0);
        format!("from {} maker {}, taker {}", count(whole), tier.maker, tier.taker)
    };
    let tiers: Vec<String> = simulation.fee_tiers.iter().map(tier).collect();
    format!("by what was traded in the month, {unit}: {}", tiers.join("; "))
}

fn venue_rows(
    name: &str,
    venue: &VenueSettings,
    [entry_drawn, response_drawn]: [bool; 2],
) -> Vec<(String, String)> {
    let delays = venue.delays;
    let fill_model = match venue.fill_model {
        FillModel::Queue => "queue: at its price after what stood before it, which shrinks in proportion",
        FillModel::QueueBack => "queue_back: at its price after everything that is shown there",
        FillModel::QueueTraded => "queue_traded: at its price after what stood before it was traded",
        FillModel::Through => "through: only when the market goes through its price",
        FillModel::Touch => "touch: at its price at once, optimistic",
    };
    let quote_sizes = match venue.quote_sizes {
        QuoteSizes::Equal => "equal: that of the quote",
        QuoteSizes::Varied => "varied: made from the sizes of past quotes and the seed",
    };
    let self_trade = match venue.self_trade {
        SelfTrade::CancelNewest => "cancels the newest",
        SelfTrade::Allow => "allowed",
    };
    let us = |is_drawn: bool, constant: u64, jitter: u64| match is_drawn {
        true => "drawn, see above".to_string(),
        false => format!("{} us + up to {} us", constant / 1_000, jitter / 1_000),
    };
    let rows = [
        ("fill model", fill_model.to_string()),
        ("slippage", format!("{} ticks for each further portion of a quote", venue.slippage_ticks)),
        ("quote portions", venue.quote_levels.to_string()),
        ("sizes of further portions", quote_sizes.to_string()),
        ("self-trade", self_trade.to_string()),
        ("price band", format!("{} %", venue.band_bp as f64 / 100.0)),
        ("random rejects", format!("{} in 1000", venue.reject_permille)),
        ("partial fills", venue.partial_fill.to_string()),
        ("order entry delay", us(entry_drawn, delays.entry_ns, delays.entry_jitter_ns)),
        ("order response delay", us(response_drawn, delays.response_ns, delays.response_jitter_ns)),
        ("feed delay", us(false, delays.feed_ns, 0)),
    ];
    rows.map(|(what, value)| (format!("{name}: {what}"), value)).into()
}
