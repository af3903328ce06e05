//! Market data for clients: reads Market Data Request (V); writes Snapshot (W), Incremental Refresh
//! (X) and Request Reject (Y).
//!
//! Rules: docs/fix-rules.md#market-data.

mod request;
mod write;

use pitlane_engine::event::{DEPTH_LEVELS_MAX, Depth, DepthLevel, Tick};
use pitlane_engine::number::Qty;
use pitlane_engine::terms::Side;

pub use self::request::{MarketDataRequest, RequestFault, SubscriptionKind};
pub use self::write::{refresh, reject, snapshot};

/// Longest MDReqID (262), in bytes. It is repeated in every message of its subscription.
pub const MD_REQ_ID_BYTES_MAX: usize = 64;

/// MDReqRejReason (281).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MdRejectReason {
    UnknownSymbol,
    DuplicateId,
    UnknownId,
    TooMuch,
    NotPermitted,
    SubscriptionType,
    Depth,
    UpdateType,
    AggregatedBook,
    EntryType,
}

impl MdRejectReason {
    pub fn code(self) -> u8 {
        match self {
            MdRejectReason::UnknownSymbol => b'0',
            MdRejectReason::DuplicateId | MdRejectReason::UnknownId => b'1',
            MdRejectReason::TooMuch => b'2',
            MdRejectReason::NotPermitted => b'3',
            MdRejectReason::SubscriptionType => b'4',
            MdRejectReason::Depth => b'5',
            MdRejectReason::UpdateType => b'6',
            MdRejectReason::AggregatedBook => b'7',
            MdRejectReason::EntryType => b'8',
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            MdRejectReason::UnknownSymbol => "Unknown security",
            MdRejectReason::DuplicateId => "MDReqID is in use",
            MdRejectReason::UnknownId => "MDReqID names no subscription",
            MdRejectReason::TooMuch => "The session has too many subscriptions",
            MdRejectReason::NotPermitted => "The session receives no market data",
            MdRejectReason::SubscriptionType => "SubscriptionRequestType must be 0, 1 or 2",
            MdRejectReason::Depth => "MarketDepth must be 0 to 10",
            MdRejectReason::UpdateType => "MDUpdateType must be 0 or 1",
            MdRejectReason::AggregatedBook => "AggregatedBook must be Y",
            MdRejectReason::EntryType => "MDEntryType must be 0, 1, 2 or B",
        }
    }
}

/// What a request asks for, of each of its securities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarketDataTerms {
    /// Price levels of each side, 1 to [`DEPTH_LEVELS_MAX`].
    pub depth: usize,
    /// Whether updates are increments (X); otherwise each is a snapshot (W).
    pub is_incremental: bool,
    pub bids: bool,
    pub offers: bool,
    pub trades: bool,
    /// The volume of the trading day.
    pub volume: bool,
}

impl MarketDataTerms {
    /// Returns whether the book is needed beside the tick, which has the best prices.
    pub fn needs_book(&self) -> bool {
        self.depth > 1 && (self.bids || self.offers)
    }
}

/// The newest market data of a security.
#[derive(Clone, Copy, Debug)]
pub struct MarketImage {
    /// Number of the update: it rises by one with every update of the security.
    pub seq: u64,
    pub tick: Tick,
    /// Bids and asks; `None` if no book is known.
    pub book: Option<[Depth; 2]>,
    /// Whether an unknown book stays unknown until it changes.
    pub is_book_settled: bool,
}

/// Levels of one side, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideLevels {
    levels: [DepthLevel; DEPTH_LEVELS_MAX],
    count: usize,
}

impl SideLevels {
    pub fn as_slice(&self) -> &[DepthLevel] {
        &self.levels[..self.count]
    }
}

/// The part of an image that a subscription shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShownMarket {
    pub seq: u64,
    /// Bids and offers.
    pub sides: [SideLevels; 2],
    /// Volume of the trading day, by which a trade is noticed.
    pub volume: Qty,
}

impl ShownMarket {
    pub fn of(image: &MarketImage, terms: &MarketDataTerms) -> ShownMarket {
        let wanted = [terms.bids, terms.offers];
        let sides = [Side::Buy, Side::Sell].map(|side| side_of(image, terms, side));
        let mut shown = ShownMarket { seq: image.seq, sides, volume: image.tick.volume };
        for (side, _) in shown.sides.iter_mut().zip(wanted).filter(|(_, is_wanted)| !is_wanted) {
            *side = SideLevels::default();
        }
        shown
    }

    /// Returns whether a client that knows `known` has to learn of a change.
    pub fn differs(&self, known: &ShownMarket, terms: &MarketDataTerms) -> bool {
        self.sides != known.sides || (terms.trades || terms.volume) && self.volume != known.volume
    }
}

fn side_of(image: &MarketImage, terms: &MarketDataTerms, side: Side) -> SideLevels {
    let mut shown = SideLevels::default();
    if terms.needs_book() {
        let Some([bids, asks]) = &image.book else { return shown };
        let levels = if side == Side::Buy { bids.levels() } else { asks.levels() };
        shown.count = levels.len().min(terms.depth);
        shown.levels[..shown.count].copy_from_slice(&levels[..shown.count]);
        return shown;
    }
    let tick = &image.tick;
    let (price, qty) = if side == Side::Buy { (tick.bid, tick.bid_size) } else { (tick.ask, tick.ask_size) };
    if qty.is_positive() {
        (shown.levels[0], shown.count) = (DepthLevel { price, qty }, 1);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_the_volume_matters_only_to_clients_that_see_trades_or_the_volume() {
        let known = ShownMarket { volume: Qty::from_raw(1), ..ShownMarket::default() };
        let traded = ShownMarket { seq: 2, volume: Qty::from_raw(2), ..known };
        let quotes = MarketDataTerms {
            depth: 1,
            is_incremental: true,
            bids: true,
            offers: true,
            trades: false,
            volume: false,
        };
        for terms in [MarketDataTerms { trades: true, ..quotes }, MarketDataTerms { volume: true, ..quotes }]
        {
            assert!(traded.differs(&known, &terms));
            assert!(!ShownMarket { seq: 2, ..known }.differs(&known, &terms), "only the number is new");
        }
        assert!(!traded.differs(&known, &quotes));
    }

    #[test]
    fn each_reason_of_a_reject_has_a_text_of_its_own() {
        use MdRejectReason::*;
        let reasons = [
            UnknownSymbol,
            DuplicateId,
            UnknownId,
            TooMuch,
            NotPermitted,
            SubscriptionType,
            Depth,
            UpdateType,
            AggregatedBook,
            EntryType,
        ];
        let texts: std::collections::BTreeSet<&str> = reasons.map(MdRejectReason::text).into();
        assert_eq!(texts.len(), reasons.len());
        assert!(texts.iter().all(|text| text.contains(' ')));
    }

    #[test]
    fn the_book_is_needed_for_more_than_one_level_of_a_side() {
        for (depth, bids, offers, is_needed) in [
            (2, true, true, true),
            (2, true, false, true),
            (2, false, true, true),
            (2, false, false, false),
            (1, true, true, false),
        ] {
            let (is_incremental, trades, volume) = (true, true, true);
            let terms = MarketDataTerms { depth, is_incremental, bids, offers, trades, volume };
            assert_eq!(terms.needs_book(), is_needed, "{terms:?}");
        }
    }
}
