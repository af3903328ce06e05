//! Settings of a shard and its simulated venues. They are checked and complete: no code below this
//! level reads a config file.

use std::collections::BTreeMap;

use crate::id::ExchangeId;
use crate::pages::LargePages;
use crate::rng::Rng;

/// Settings of one shard. Every table that it grows has its maximum here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSettings {
    /// Identifies this platform in derived UUIDs, so that two installations never create the same.
    pub instance: u64,
    /// Orders kept at once, including finished ones; the next is refused. 1 million take about 350
    /// MB.
    pub orders_max: u32,
    /// Finished orders of simulated venues kept, for requests that were in flight when they ended;
    /// the oldest are forgotten. Few, so that they stay in the cache: a read model serves finished
    /// orders to readers.
    pub finished_max: u32,
    /// Finished orders of outside venues kept, for late reports about them.
    pub finished_outside_max: u32,
    /// Transactions kept for a recount; older ones are folded into the opening balance. Few, so
    /// that they stay in the cache: a read model serves transactions to readers.
    pub transactions_max: u32,
    /// Executions of outside venues remembered, to detect a repeated one.
    pub executions_max: u32,
    pub trigger: TriggerBy,
    /// Settings of the simulated venue.
    pub venue: VenueSettings,
    /// Settings of exchanges that differ from it.
    pub venues: BTreeMap<ExchangeId, VenueSettings>,
    /// Page hook for the tables. It is not stored: the code that loads settings sets it.
    pub pages: LargePages,
}

impl ShardSettings {
    /// Returns the settings of an exchange's simulated venue.
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

/// Price that triggers a stop.
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
    /// Ticks by which each further portion of a quote is worse; 0: there is none.
    pub slippage_ticks: u32,
    /// Portions of a quote in all.
    pub quote_levels: u32,
    pub quote_sizes: QuoteSizes,
    pub self_trade: SelfTrade,
    /// Largest distance of a price from the last one, in hundredths of a percent; 0: no limit.
    pub band_bp: u32,
    /// New orders rejected at random, in thousandths.
    pub reject_permille: u32,
    /// Whether a quote gives a random part of its size rather than all of it.
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
            quote_sizes: QuoteSizes::Equal,
            self_trade: SelfTrade::CancelNewest,
            band_bp: 0,
            reject_permille: 0,
            partial_fill: false,
            seed: 1,
            delays: Delays::default(),
        }
    }
}

/// Highest number of quote levels: an order that takes a quote walks its portions one by one.
pub const QUOTE_LEVELS_MAX: u32 = 1_000;

/// Sizes of the portions of a quote behind the first, whose size the feed shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QuoteSizes {
    /// Each has the shown size. Journals without this setting were written by this rule.
    #[default]
    Equal,
    /// They differ by price and change with the quotes.
    Varied,
}

/// When a resting order fills at exactly its price. See the engine's README.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FillModel {
    /// After the queue ahead of it. A smaller shown size shrinks the queue in proportion.
    #[default]
    Queue,
    /// Only when the market trades through it.
    Through,
    /// At once: optimistic.
    Touch,
    /// After the whole shown size: whatever the feed adds at the price is ahead of it too.
    QueueBack,
    /// After a queue that only trades shorten, as long as so much is shown.
    QueueTraded,
}

impl FillModel {
    pub const ALL: [FillModel; 5] = [
        FillModel::Queue,
        FillModel::Through,
        FillModel::Touch,
        FillModel::QueueBack,
        FillModel::QueueTraded,
    ];

    /// Returns whether there is a queue ahead of a resting order.
    pub fn has_queue(self) -> bool {
        match self {
            FillModel::Queue | FillModel::QueueBack | FillModel::QueueTraded => true,
            FillModel::Through | FillModel::Touch => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SelfTrade {
    #[default]
    CancelNewest,
    Allow,
}

/// Transit times of a measured or computed distribution, in nanoseconds; each is as likely as any
/// other. Simulations draw from it; it is not stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelayTable {
    entries: Vec<u64>,
}

impl DelayTable {
    /// Creates a table of at least one entry.
    pub fn new(entries: Vec<u64>) -> DelayTable {
        assert!(!entries.is_empty(), "there is something to draw");
        DelayTable { entries }
    }

    pub fn entries(&self) -> &[u64] {
        &self.entries
    }

    /// Returns the shortest and the longest entry.
    pub fn range(&self) -> (u64, u64) {
        let shortest = self.entries.iter().min().copied().unwrap_or_default();
        (shortest, self.entries.iter().max().copied().unwrap_or_default())
    }

    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.entries[rng.index(self.entries.len())]
    }
}

/// Transit times in nanoseconds: a constant, and a random part on top.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// From the shard to the venue.
    pub entry_ns: u64,
    pub entry_jitter_ns: u64,
    /// From the venue to the shard.
    pub response_ns: u64,
    pub response_jitter_ns: u64,
    /// From the venue's market to the published tick.
    pub feed_ns: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_delays_draws_each_of_its_entries_equally_often() {
        let table = DelayTable::new(vec![70, 20, 50, 20]);
        assert_eq!((table.entries(), table.range()), (&[70, 20, 50, 20][..], (20, 70)));
        let mut rng = Rng::new(3);
        let mut drawn: Vec<u64> = (0..4_000).map(|_| table.draw(&mut rng)).collect();
        drawn.sort_unstable();
        let count = |delay| drawn.iter().filter(|drawn| **drawn == delay).count();
        assert_eq!(count(20) + count(50) + count(70), drawn.len());
        for (delay, expected) in [(20, 2_000), (50, 1_000), (70, 1_000)] {
            assert!(count(delay).abs_diff(expected) < 150, "{delay}: {}", count(delay));
        }
    }

    #[test]
    fn the_models_with_a_queue_count_what_rests_before_an_order() {
        let with_queue = [FillModel::Queue, FillModel::QueueBack, FillModel::QueueTraded];
        assert!(with_queue.into_iter().all(FillModel::has_queue));
        assert!(![FillModel::Through, FillModel::Touch].into_iter().any(FillModel::has_queue));
    }
}
