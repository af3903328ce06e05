//! One book: two ladders, the market state beside them, and the plain case of matching, in which
//! clients trade only with clients.

use crate::command::Quote;
use crate::id::AccountId;
use crate::ladder::{Direction, Ladder};
use crate::number::{Price, Qty};
use crate::order_nodes::{NodePlace, Nodes};
use crate::settings::{FillModel, SelfTrade};
use crate::terms::Side;
use crate::time::Timestamp;

use super::{BookSpec, FILLS_PER_STEP, OrderEntry, VenueOutcome};

/// The data that every order needs, adjacent in memory.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct OrderBook {
    /// Bids, asks.
    pub sides: [Ladder; 2],
    /// Tick size, in raw units of the price.
    tick: i64,
    pub mode: BookMode,
    self_trade: SelfTrade,
}

const _: () = assert!(size_of::<OrderBook>() == 64, "a book is a cache line");

/// State of a market. The last price is valid once `traded` is set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct MarketState {
    pub last: Price,
    pub last_size: Qty,
    /// Volume of the day; it saturates.
    pub volume: Qty,
    pub traded: bool,
    pub quote: Quote,
    /// Time of the last quote or trade of the feed.
    pub at: Timestamp,
}

impl MarketState {
    #[inline]
    pub(super) fn print(&mut self, price: Price, qty: Qty) {
        self.last = price;
        self.last_size = qty;
        self.volume = Qty::from_raw(self.volume.raw().saturating_add(qty.raw()));
        self.traded = true;
    }
}

/// Conditions that make a book more than plain. A set of flags, so that one comparison checks all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BookMode(u8);

impl BookMode {
    /// Orders collect; nothing matches.
    pub(super) const COLLECTING: BookMode = BookMode(1);
    /// The feed shows a quote or levels.
    pub(super) const QUOTED: BookMode = BookMode(2);
    /// Market orders wait.
    pub(super) const WAITING: BookMode = BookMode(4);
    pub(super) const BANDED: BookMode = BookMode(8);
    pub(super) const RANDOM_REJECTS: BookMode = BookMode(16);
    /// A step left work.
    pub(super) const WORKING: BookMode = BookMode(32);

    #[inline]
    pub(super) fn is_plain(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(super) fn has(self, flag: BookMode) -> bool {
        self.0 & flag.0 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, flag: BookMode, on: bool) {
        self.0 = if on { self.0 | flag.0 } else { self.0 & !flag.0 };
    }
}

/// An incoming order that takes from the other side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    pub slot: u32,
    pub side: Side,
    pub account: AccountId,
    /// None for a market order.
    pub limit: Option<i64>,
    pub left: Qty,
}

impl Taker {
    #[inline]
    pub(super) fn of(entry: &OrderEntry) -> Taker {
        let OrderEntry { slot, side, limit, qty, account, .. } = *entry;
        Taker { slot, side, account, limit, left: qty }
    }
}

/// Why a taker stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SweepEnd {
    Filled,
    /// There is nothing more within its limit.
    NoLiquidity,
    /// The next order belongs to the same account.
    OwnOrder,
    /// The step has done enough.
    StepDone,
}

impl OrderBook {
    pub(super) fn new(spec: &BookSpec, nodes: &mut Nodes) -> OrderBook {
        let mut mode = BookMode::default();
        mode.set(BookMode::BANDED, spec.settings.band_bp > 0);
        mode.set(BookMode::RANDOM_REJECTS, spec.settings.reject_permille > 0);
        OrderBook {
            sides: [Direction::HighestFirst, Direction::LowestFirst]
                .map(|direction| Ladder::with_directory(direction, nodes)),
            tick: spec.tick_size.raw(),
            mode,
            self_trade: spec.settings.self_trade,
        }
    }

    pub(super) fn set_self_trade(&mut self, self_trade: SelfTrade) {
        self.self_trade = self_trade;
    }

    /// Returns the price of this many ticks. Orders and portions whose price does not fit are never
    /// accepted.
    #[inline]
    pub(super) fn price(&self, ticks: i64) -> Price {
        Price::from_raw(ticks.wrapping_mul(self.tick))
    }

    pub(super) fn tick(&self) -> Price {
        Price::from_raw(self.tick)
    }

    /// Returns whether this many ticks are a valid price.
    #[inline]
    pub(super) fn is_price(&self, ticks: i64) -> bool {
        ticks.checked_mul(self.tick).is_some()
    }

    /// Returns whether a limit order, or a market order, trades with a client at once.
    #[inline]
    pub(super) fn crosses(&self, side: Side, limit: Option<i64>) -> bool {
        let other = &self.sides[side.opposite() as usize];
        match limit {
            Some(limit) => other.best_rank() <= other.rank(limit) && !other.is_empty(),
            None => !other.is_empty(),
        }
    }

    /// Returns the worst rank on the other side that a taker accepts.
    #[inline]
    pub(super) fn bound(&self, taker: &Taker) -> i64 {
        let worst = match (taker.limit, taker.side) {
            (Some(limit), _) => limit,
            (None, Side::Buy) => i64::MAX / self.tick,
            (None, Side::Sell) => i64::MIN / self.tick,
        };
        // An empty ladder has the rank `i64::MAX`, which no taker may accept.
        self.sides[taker.side.opposite() as usize].rank(worst).min(i64::MAX - 1)
    }

    #[inline]
    pub(super) fn is_own(&self, account: AccountId, other: AccountId) -> bool {
        account == other && self.self_trade == SelfTrade::CancelNewest
    }

    /// Matches a taker with the clients of the other side, as far as one step goes.
    #[inline(never)]
    pub(super) fn sweep(
        &mut self,
        market: &mut MarketState,
        nodes: &mut Nodes,
        outcomes: &mut Vec<(u32, VenueOutcome)>,
        taker: &mut Taker,
    ) -> SweepEnd {
        let bound = self.bound(taker);
        let other = taker.side.opposite() as usize;
        for _ in 0..FILLS_PER_STEP {
            let ladder = &self.sides[other];
            if ladder.best_rank() > bound {
                return SweepEnd::NoLiquidity;
            }
            let Some(maker) = ladder.best_front(nodes) else {
                return SweepEnd::NoLiquidity;
            };
            if self.is_own(taker.account, nodes[maker].account) {
                return SweepEnd::OwnOrder;
            }
            // The next order in the queue is matched next, if anything is left.
            nodes.fetch(nodes[maker].next);
            let (qty, price) = self.trade_with(nodes, outcomes, taker, maker);
            market.print(price, qty);
            if taker.left.is_zero() {
                return SweepEnd::Filled;
            }
        }
        SweepEnd::StepDone
    }

    /// Trades a taker with the first resting order of the other side, at its price.
    #[inline]
    pub(super) fn trade_with(
        &mut self,
        nodes: &mut Nodes,
        outcomes: &mut Vec<(u32, VenueOutcome)>,
        taker: &mut Taker,
        maker: u32,
    ) -> (Qty, Price) {
        let qty = taker.left.min(nodes[maker].qty);
        let price = self.price(nodes[maker].ticks);
        taker.left = Qty::from_raw(taker.left.raw() - qty.raw());
        outcomes.push((taker.slot, VenueOutcome::Filled { qty, price }));
        self.fill(nodes, outcomes, maker, qty, price);
        (qty, price)
    }

    /// Fills a resting order with this quantity at this price.
    #[inline]
    pub(super) fn fill(
        &mut self,
        nodes: &mut Nodes,
        outcomes: &mut Vec<(u32, VenueOutcome)>,
        maker: u32,
        qty: Qty,
        price: Price,
    ) {
        let node = &mut nodes[maker];
        let ladder = &mut self.sides[node.side() as usize];
        outcomes.push((maker, VenueOutcome::Filled { qty, price }));
        if qty < node.qty {
            ladder.reduce(nodes, maker, qty);
        } else {
            node.set_place(NodePlace::Nowhere);
            ladder.remove(nodes, maker);
        }
    }
}

/// The feed's own orders ahead of the clients' at one price: 0 ≤ `ahead` ≤ `shown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FeedQueue {
    pub ticks: i64,
    pub ahead: Qty,
    pub shown: Qty,
}

impl FeedQueue {
    pub(super) fn new(ticks: i64, shown: Qty) -> FeedQueue {
        FeedQueue { ticks, ahead: shown, shown }
    }

    pub(super) fn is_sound(&self) -> bool {
        !self.ahead.is_negative() && self.ahead <= self.shown
    }

    /// Applies another size at the same price.
    pub(super) fn resize(&mut self, shown: Qty, spec: &BookSpec) {
        self.ahead = match spec.settings.fill_model {
            FillModel::QueueBack => shown,
            FillModel::QueueTraded => self.ahead.min(shown),
            FillModel::Queue | FillModel::Through | FillModel::Touch if shown < self.shown => {
                self.in_proportion(shown, spec.lot)
            }
            FillModel::Queue | FillModel::Through | FillModel::Touch => self.ahead,
        };
        self.shown = shown;
    }

    /// Returns the part ahead of a smaller size, rounded up to whole lots.
    fn in_proportion(&self, shown: Qty, lot: Qty) -> Qty {
        let lots = self.shown.raw() as i128 * lot.raw() as i128;
        let exact = self.ahead.raw() as i128 * shown.raw() as i128;
        let rounded_up = (exact + lots - 1) / lots * lot.raw() as i128;
        // Stored by a version that did not round to lots, the size itself may not be whole.
        #[expect(clippy::cast_possible_truncation, reason = "at most the new size")]
        let ahead = rounded_up.min(shown.raw() as i128) as i64;
        Qty::from_raw(ahead)
    }

    /// Consumes a trade from the queue first, and returns the rest of the trade.
    pub(super) fn consume(&mut self, traded: Qty) -> Qty {
        let taken = traded.min(self.ahead);
        self.ahead = Qty::from_raw(self.ahead.raw() - taken.raw());
        self.shown = Qty::from_raw(self.shown.raw() - taken.raw());
        Qty::from_raw(traded.raw() - taken.raw())
    }
}
