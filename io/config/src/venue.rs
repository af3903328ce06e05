//! Simulated venues and the tables of shards and read model: `[venue]`, `[shard]` and `[view]`.

use std::collections::BTreeMap;

use pitlane_engine::settings::{
    Delays, FillModel, QUOTE_LEVELS_MAX, QuoteSizes, SelfTrade, ShardSettings, TriggerBy, VenueSettings,
};
use pitlane_engine::view::ViewSettings;

use super::section::Section;
use super::service::ServiceConfig;
use crate::pages::LARGE_PAGES;

const SLIPPAGE_TICKS_MAX: u32 = 10_000;
const BAND_BP_MAX: u32 = 10_000;
/// Longest delay, in microseconds: a minute.
const DELAY_US_MAX: u64 = 60_000_000;
const NS_PER_US: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueConfig {
    pub settings: VenueSettings,
    /// Settings of single exchanges, by MIC.
    pub exchange: BTreeMap<String, VenueSettings>,
}

impl VenueConfig {
    pub(super) fn read(section: &mut Section<'_>, service: &ServiceConfig) -> VenueConfig {
        let like = section.like();
        let seed = service.seed;
        VenueConfig {
            exchange: section.named("exchange", &like, |section| read_settings(section, seed)),
            settings: read_settings(section, seed),
        }
    }
}

fn read_settings(section: &mut Section<'_>, seed: u64) -> VenueSettings {
    VenueSettings {
        fill_model: section.word(
            "fill_model",
            &[
                ("queue", FillModel::Queue),
                ("queue_back", FillModel::QueueBack),
                ("queue_traded", FillModel::QueueTraded),
                ("through", FillModel::Through),
                ("touch", FillModel::Touch),
            ],
        ),
        slippage_ticks: section.number("slippage_ticks", 0..=SLIPPAGE_TICKS_MAX),
        quote_levels: section.number("quote_levels", 1..=QUOTE_LEVELS_MAX),
        quote_sizes: section
            .word("quote_sizes", &[("varied", QuoteSizes::Varied), ("equal", QuoteSizes::Equal)]),
        self_trade: section
            .word("self_trade", &[("cancel_newest", SelfTrade::CancelNewest), ("allow", SelfTrade::Allow)]),
        band_bp: section.percent("band_pct", BAND_BP_MAX),
        reject_permille: section.number("reject_permille", 0..=1_000),
        partial_fill: section.flag("partial_fill"),
        seed,
        delays: Delays {
            entry_ns: read_delay(section, "entry_delay_us"),
            entry_jitter_ns: read_delay(section, "entry_jitter_us"),
            response_ns: read_delay(section, "response_delay_us"),
            response_jitter_ns: read_delay(section, "response_jitter_us"),
            feed_ns: read_delay(section, "feed_delay_us"),
        },
    }
}

fn read_delay(section: &mut Section<'_>, key: &'static str) -> u64 {
    section.number(key, 0..=DELAY_US_MAX) * NS_PER_US
}

/// Reads the section without the venues, whose exchanges are in the reference data.
pub(super) fn read_shard(
    section: &mut Section<'_>,
    service: &ServiceConfig,
    venue: &VenueConfig,
) -> ShardSettings {
    ShardSettings {
        instance: service.instance,
        orders_max: section.number("orders_max", 1..=100_000_000),
        finished_max: section.number("finished_max", 1..=100_000_000),
        finished_outside_max: section.number("finished_outside_max", 1..=100_000_000),
        transactions_max: section.number("transactions_max", 1..=100_000_000),
        executions_max: section.number("executions_max", 1..=100_000_000),
        trigger: section.word("trigger", &[("last", TriggerBy::Last), ("quote", TriggerBy::Quote)]),
        venue: venue.settings.clone(),
        venues: BTreeMap::new(),
        pages: LARGE_PAGES,
    }
}

pub(super) fn read_view(
    section: &mut Section<'_>,
    service: &ServiceConfig,
    shard: &ShardSettings,
) -> ViewSettings {
    ViewSettings {
        finished_max: section.number("finished_max", 1..=100_000_000),
        transactions_max: section.number("transactions_max", 1..=100_000_000),
        versions_max: section.number("versions_max", 2..=65_536),
        alerts_max: section.number("alerts_max", 1..=1_000_000),
        changes_max: section.number("changes_max", 0..=100_000_000),
        shard_transactions_max: shard.transactions_max,
        seed: service.seed,
        pages: LARGE_PAGES,
    }
}
