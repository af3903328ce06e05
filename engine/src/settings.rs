//! How a shard and its simulated venues are set up. Checked and complete: below this nobody sees a config file.

use std::collections::BTreeMap;

use crate::id::ExchangeId;
use crate::pages::LargePages;

/// Settings of one shard. Every table it grows has its maximum here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// Names this platform in derived UUIDs, so that two installations never make the same.
    pub instance: u64,
    /// Orders kept at once, finished ones included; the next is refused. 1 million take about 350 MB.
    pub orders_max: u32,
    /// Finished orders of simulated venues kept, for requests that were under way when they ended; the oldest are
    /// forgotten. Few, so that they stay in the cache: whoever wants to read finished orders asks a read model.
    pub finished_max: u32,
    /// Finished orders of outside venues kept, for what these may still say of them.
    pub finished_outside_max: u32,
    /// Transactions kept for a recount; older ones are folded into the opening balance. Few, so that they stay in the
    /// cache: whoever wants to read transactions asks a read model.
    pub transactions_max: u32,
    /// Executions of outside venues remembered, to tell a repeated one.
    pub executions_max: u32,
    pub trigger: TriggerBy,
    /// Of the simulated venue.
    pub venue: VenueSettings,
    /// Where an exchange differs.
    pub venues: BTreeMap<ExchangeId, VenueSettings>,
    /// Where the tables lie. Not part of an image: who loads settings sets it.
    pub pages: LargePages,
}

impl ShardSettings {
    /// Those of an exchange's simulated venue.
    pub fn venue_of(&self, exchange: ExchangeId) -> &VenueSettings {
        self.venues.get(&exchange).unwrap_or(&self.venue)
    }
}

impl Default for ShardSettings {
    fn default() -> ShardSettings {
        ShardSettings {
            instance: 0,
            orders_max: 4_000_000,
            finished_max: 1_024,
            finished_outside_max: 65_536,
            transactions_max: 4_096,
            executions_max: 1_000_000,
            trigger: TriggerBy::Last,
            venue: VenueSettings::default(),
            venues: BTreeMap::new(),
            pages: LargePages::NONE,
        }
    }
}

/// Which price a stop waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TriggerBy {
    #[default]
    Last,
    /// The opposite quote: the ask for buys, the bid for sells.
    Quote,
}

/// Settings of a simulated venue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueSettings {
    pub fill_model: FillModel,
    /// How much worse each further portion of a quote is, in ticks; 0: there is none.
    pub slippage_ticks: u32,
    /// Portions of a quote in all.
    pub quote_levels: u32,
    pub self_trade: SelfTrade,
    /// Farthest a price may be from the last one, in hundredths of a percent; 0: as far as it likes.
    pub band_bp: u32,
    /// New orders refused by chance, in thousandths.
    pub reject_permille: u32,
    /// Whether a quote gives a random part of its size rather than all.
    pub partial_fill: bool,
    pub seed: u64,
    pub delays: Delays,
}

impl Default for VenueSettings {
    fn default() -> VenueSettings {
        VenueSettings {
            fill_model: FillModel::Queue,
            slippage_ticks: 1,
            quote_levels: 10,
            self_trade: SelfTrade::CancelNewest,
            band_bp: 0,
            reject_permille: 0,
            partial_fill: false,
            seed: 1,
            delays: Delays::default(),
        }
    }
}

/// When a resting order fills at its very price. See the engine's README.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FillModel {
    /// After the queue ahead of it.
    #[default]
    Queue,
    /// Only when the market goes through it.
    Through,
    /// At once: optimistic.
    Touch,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelfTrade {
    #[default]
    CancelNewest,
    Allow,
}

/// How long things take on their way, in nanoseconds: a constant, and a random part on top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// From us to the venue.
    pub entry_ns: u64,
    pub entry_jitter_ns: u64,
    /// From the venue to us.
    pub response_ns: u64,
    pub response_jitter_ns: u64,
    /// From the venue's market to what we are shown.
    pub feed_ns: u64,
}
