use pitlane_engine::index::index_usize;
use pitlane_engine::rng::Rng;

use super::*;

fn entry(id: &[u8]) -> MarketDataEntry<'_> {
    let (price, size) = (Price::parse(b"10").ok(), Qty::parse(b"2").ok());
    MarketDataEntry { id: Some(id), price, size, ..MarketDataEntry::default() }
}

#[test]
fn entries_with_an_id_are_bounded() {
    let (security, now) = (SecurityId(8), Timestamp(1));
    let mut books = VenueBookSet::new(0);
    books.record_request(security, now);
    books.begin_snapshot(security);
    for number in 0..BOOK_ENTRIES_MAX {
        assert!(books.apply(security, Some(Side::Buy), &entry(number.to_string().as_bytes())).is_ok());
    }
    let mut out = VecDeque::new();
    books.publish(security, None, now, &mut out);
    assert_eq!(books.books[&security].book.qty(Side::Buy, Price::parse(b"10").unwrap()).to_string(), "40000");
    assert!(books.apply(security, Some(Side::Buy), &entry(b"0")).is_ok(), "a known one may change");
    assert!(books.apply(security, Some(Side::Buy), &entry(b"one more")).is_err());
}

/// One change of a level, as a venue may send it.
#[derive(Clone, Copy, Debug)]
struct LevelChange {
    action: &'static [u8],
    side: Side,
    level: usize,
    /// Where the price lies: between the neighbours of the level, or anywhere.
    fits: bool,
    price: i64,
    has_price: bool,
    qty: i64,
}

impl LevelChange {
    /// Returns a change, mostly of a level that the side has.
    fn random(rng: &mut Rng, naive: &[NaiveSide; 2]) -> LevelChange {
        let side = Side::BOTH[index_usize(rng.below(2))];
        let action = [NEW, NEW, NEW, CHANGE, CHANGE, DELETE, DELETE][index_usize(rng.below(7))];
        let len = naive[side as usize].0.len() as u64;
        let level = match rng.below(20) {
            0 => rng.below(7),
            _ if action == NEW => 1 + rng.below(len + 1),
            _ => 1 + rng.below(len.max(1)),
        };
        LevelChange {
            action,
            side,
            level: index_usize(level),
            fits: rng.below(10) > 0,
            price: 1 + rng.below(999).cast_signed(),
            has_price: rng.below(2) == 0,
            qty: rng.below(9).cast_signed(),
        }
    }
}

/// A side as a list in the venue's order, kept without any help of the book.
#[derive(Default)]
struct NaiveSide(Vec<(i64, i64)>);

impl NaiveSide {
    /// Returns a price for a level: between its neighbours, or at a neighbour if there is no room.
    fn fitting_price(&self, change: &LevelChange) -> i64 {
        let sign = if change.side == Side::Buy { -1 } else { 1 };
        let place = change.level.saturating_sub(1);
        let behind = if change.action == NEW { place } else { place + 1 };
        let before = place.checked_sub(1).and_then(|at| self.0.get(at)).map(|level| level.0 * sign);
        let after = self.0.get(behind).map(|level| level.0 * sign);
        sign * match (before, after) {
            (Some(before), Some(after)) => before + (after - before) / 2,
            (Some(before), None) => before + 1_000_000,
            (None, Some(after)) => after - 1_000_000,
            (None, None) => sign * 1_000_000_000,
        }
    }

    /// Applies a change and returns whether it is one that a venue may send.
    fn apply(&mut self, change: &LevelChange, price: Option<i64>, depth: usize) -> bool {
        let Some(place) = change.level.checked_sub(1).filter(|place| *place < depth) else { return false };
        let mut levels = self.0.clone();
        if change.action == DELETE || change.qty == 0 {
            if place >= levels.len() || price.is_some_and(|price| price != levels[place].0) {
                return false;
            }
            levels.remove(place);
        } else if change.action == NEW {
            let Some(price) = price.filter(|_| place <= levels.len()) else { return false };
            levels.insert(place, (price, change.qty));
        } else {
            let Some(level) = levels.get_mut(place) else { return false };
            *level = (price.unwrap_or(level.0), change.qty);
        }
        let is_sorted = levels.windows(2).all(|pair| match change.side {
            Side::Buy => pair[0].0 > pair[1].0,
            Side::Sell => pair[0].0 < pair[1].0,
        });
        levels.truncate(depth);
        if is_sorted {
            self.0 = levels;
        }
        is_sorted
    }
}

/// The book has the levels of a list that is kept as the standard describes it, and refuses what
/// does not fit that list.
#[test]
fn a_book_by_levels_is_the_list_of_the_venue() {
    let mut rng = Rng::new(1_023);
    let (security, now) = (SecurityId(8), Timestamp(1));
    let (mut applied_count, mut refused_count) = (0, 0);
    for round in 0..600 {
        let depth = 2 + round % 3;
        let mut books = VenueBookSet::new(depth);
        books.record_request(security, now);
        books.begin_snapshot(security);
        let mut naive = [NaiveSide::default(), NaiveSide::default()];
        for _ in 0..60 {
            let change = LevelChange::random(&mut rng, &naive);
            let side = &mut naive[change.side as usize];
            let price = if change.fits { side.fitting_price(&change) } else { change.price };
            let price = Some(price).filter(|_| change.has_price || change.action == NEW);
            // A deletion that fits names the price of its level.
            let named = side.0.get(change.level.wrapping_sub(1)).map(|level| level.0);
            let is_removed = change.action == DELETE || change.qty == 0;
            let price = if is_removed && change.fits && price.is_some() { named.or(price) } else { price };
            let level = change.level.to_string();
            let size = Qty::from_raw(change.qty);
            let entry = MarketDataEntry {
                action: Some(change.action),
                level: Some(level.as_bytes()),
                price: price.map(Price::from_raw),
                size: Some(size).filter(|size| size.is_positive()),
                is_size_zero: size.is_zero(),
                ..MarketDataEntry::default()
            };
            let is_valid = side.apply(&change, price, depth);
            let applied = books.apply(security, Some(change.side), &entry);
            assert_eq!(applied.is_ok(), is_valid, "{change:?} {applied:?}");
            *(if is_valid { &mut applied_count } else { &mut refused_count }) += 1;
            for side in Side::BOTH {
                let levels = books.books[&security].book.levels(side);
                let levels: Vec<(i64, i64)> =
                    levels.map(|level| (level.price.raw(), level.qty.raw())).collect();
                assert_eq!(levels, naive[side as usize].0, "{change:?}");
            }
        }
    }
    assert!(applied_count > 20_000 && refused_count > 2_000, "{applied_count} {refused_count}");
}
