//! The orders of one session as its client knows them: what was asked for, under which ids, and how it stands. The desk knows
//! where an order lives; here is what must be told in a report and compared with a request.

use std::collections::VecDeque;

use pitlane_engine::desk::KnownOrder;
use pitlane_engine::event::{OrderReport, OrderTerms};
use pitlane_engine::id::IntId;
use pitlane_engine::keyed_index::IdIndex;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::pages::LargePages;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Status, Terms};
use pitlane_engine::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// OrderID (37): the first ClOrdID, which stays.
    pub root: IntId,
    /// ClOrdID (11) that the client gave it last and that was accepted. A change made elsewhere leaves it.
    pub cl_ord_id: IntId,
    /// ClOrdID of a cancel that is on its way; none otherwise.
    pub cancel: IntId,
    /// ClOrdID of a replacement that is on its way; none otherwise.
    pub replace: IntId,
    /// Whether a cancel of ours is on its way, because the client was away.
    pub house_cancel: bool,
    /// Whether it is known from a snapshot, after a restart.
    pub is_recalled: bool,
    pub terms: Terms,
    pub cum_qty: Qty,
    pub avg_price: Price,
    pub status: Status,
    pub reason: Reason,
    /// Of the last change.
    pub updated: Timestamp,
}

impl Order {
    pub fn new(root: IntId, terms: Terms, now: Timestamp) -> Order {
        Order {
            root,
            cl_ord_id: root,
            cancel: IntId::NONE,
            replace: IntId::NONE,
            house_cancel: false,
            is_recalled: false,
            terms,
            cum_qty: Qty::ZERO,
            avg_price: Price::ZERO,
            status: Status::PendingNew,
            reason: Reason::None,
            updated: now,
        }
    }

    /// What a report tells of it.
    pub fn update(&mut self, report: &OrderReport, at: Timestamp) {
        self.terms.qty = report.qty;
        self.cum_qty = report.cum_qty;
        self.avg_price = report.avg_price;
        self.status = report.status;
        self.reason = report.reason;
        self.updated = at;
    }

    /// Forgets a request that came to nothing. Answers whether it was one of the client's.
    pub fn forget(&mut self, request: &IntId) -> bool {
        let mine =
            [&mut self.cancel, &mut self.replace].into_iter().find(|id| !id.is_none() && **id == *request);
        mine.map(std::mem::take).is_some()
    }

    pub fn leaves_qty(&self) -> Qty {
        if self.status.is_finished() {
            return Qty::ZERO;
        }
        self.terms.qty.checked_sub(self.cum_qty).unwrap_or_default()
    }
}

/// How an order is found: by its root, at the place that it was given. The desk keeps both. Of an order from before a restart nobody
/// knows the place; it is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    pub root: IntId,
    pub place: u32,
}

impl Key {
    /// Of an order whose place nobody knows.
    pub fn of_root(root: IntId) -> Key {
        Key { root, place: u32::MAX }
    }
}

impl From<KnownOrder> for Key {
    fn from(known: KnownOrder) -> Key {
        Key { root: known.root, place: known.token }
    }
}

/// A place in the slab: an order, or free.
type Place = Option<Order>;

/// Places that the slab grows by: what is there stays where it is, so that no order pays for all the others.
const PAGE: usize = 256;

/// Memory grows with the number of orders up to a maximum, and is used again.
#[derive(Debug)]
pub struct ClientOrders {
    /// All full but the last one.
    slab: Vec<Vec<Place>>,
    free: Vec<u32>,
    len: usize,
    /// By root: orders from before a restart. Those that have come since are found by their places.
    recalled: IdIndex,
    /// Finished ones, first ended first; some may have been forgotten since.
    finished: VecDeque<Key>,
    finished_max: usize,
    orders_max: usize,
}

impl ClientOrders {
    pub fn new(orders_max: u32, finished_max: u32, seed: u64) -> ClientOrders {
        ClientOrders {
            slab: Vec::new(),
            free: Vec::new(),
            len: 0,
            // One for each session, as a rule with few ids: not worth large pages.
            recalled: IdIndex::new(orders_max, seed, LargePages::NONE),
            finished: VecDeque::new(),
            finished_max: finished_max as usize,
            orders_max: orders_max as usize,
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Order> {
        self.find(key).and_then(|place| self.at(place as usize))
    }

    pub fn get_mut(&mut self, key: &Key) -> Option<&mut Order> {
        let place = self.find(key)?;
        self.place(place).as_mut()
    }

    /// Adds an order. Answers its place if there was room; whoever keeps it finds the order again.
    pub fn add(&mut self, order: Order) -> Option<u32> {
        while self.len >= self.orders_max {
            let oldest = self.finished.pop_front()?;
            self.forget(&oldest);
        }
        let place = self.free.pop().unwrap_or_else(|| self.new_place());
        *self.place(place) = Some(order);
        self.len += 1;
        Some(place)
    }

    /// Adds an order from before a restart, whose place nobody will know. One with the same root, which the desk has forgotten,
    /// gives way.
    pub fn recall(&mut self, order: Order) {
        let key = Key::of_root(order.root);
        self.remove(&key);
        if let Some(place) = self.add(order) {
            self.recalled.insert(0, &key.root, place);
        }
    }

    pub fn remove(&mut self, key: &Key) {
        let Some(place) = self.find(key) else { return };
        self.recalled.remove(0, &key.root, place);
        *self.place(place) = None;
        self.free.push(place);
        self.len -= 1;
    }

    /// Notes that an order has ended, and forgets the oldest such if there are too many.
    pub fn finish(&mut self, key: &Key) {
        let Some(place) = self.find(key) else { return };
        self.finished.push_back(Key { place, ..*key });
        while self.finished.len() > self.finished_max {
            let Some(oldest) = self.finished.pop_front() else { break };
            self.forget(&oldest);
        }
    }

    /// Forgets an order that has ended. Another of the same root may have its place by now, and be open.
    fn forget(&mut self, finished: &Key) {
        if self.get(finished).is_some_and(|order| order.status.is_finished()) {
            self.remove(finished);
        }
    }

    /// The order at a place, and whether there are places behind it: to go through all of them in steps.
    pub fn at(&self, place: usize) -> Option<&Order> {
        self.slab.get(place / PAGE)?.get(place % PAGE)?.as_ref()
    }

    /// Places, free ones included.
    pub fn places(&self) -> usize {
        self.slab.last().map_or(0, |last| (self.slab.len() - 1) * PAGE + last.len())
    }

    /// Orders known.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn has_room(&self) -> bool {
        self.len < self.orders_max || !self.finished.is_empty()
    }

    fn find(&self, key: &Key) -> Option<u32> {
        let is_it = |place: u32| self.at(place as usize).is_some_and(|order| order.root == key.root);
        if is_it(key.place) { Some(key.place) } else { self.recalled.get(0, &key.root, is_it) }
    }

    fn place(&mut self, place: u32) -> &mut Place {
        &mut self.slab[place as usize / PAGE][place as usize % PAGE]
    }

    fn new_place(&mut self) -> u32 {
        if self.slab.last().is_none_or(|page| page.len() == PAGE) {
            self.slab.push(Vec::with_capacity(PAGE));
        }
        let page = self.slab.last_mut().expect("a page with room was just seen to");
        page.push(None);
        self.places() as u32 - 1
    }
}

/// An order as a shard tells its terms.
pub fn order_of(told: &OrderTerms, root: IntId, at: Timestamp) -> Order {
    Order { cl_ord_id: told.id, status: told.status, reason: told.reason, ..Order::new(root, told.terms, at) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(root: &str) -> Order {
        Order::new(IntId::parse(root.as_bytes()).unwrap(), Terms::default(), Timestamp(1))
    }

    fn add(book: &mut ClientOrders, order: Order) -> Option<Key> {
        book.add(order).map(|place| Key { root: order.root, place })
    }

    #[test]
    fn finished_orders_go_first_and_open_ones_stay() {
        let mut book = ClientOrders::new(4, 2, 1);
        let keys = ["a", "b", "c", "d"].map(|root| add(&mut book, order(root)).unwrap());
        assert!(!book.has_room() && add(&mut book, order("e")).is_none());
        for key in &keys[..3] {
            book.get_mut(key).unwrap().status = Status::Filled;
            book.finish(key);
        }
        assert!(book.get(&keys[0]).is_none());
        assert_eq!(book.len(), 3);
        assert!(add(&mut book, order("e")).is_some() && add(&mut book, order("f")).is_some());
        assert!(book.get(&keys[1]).is_none());
        assert!(book.get(&keys[3]).is_some());
        assert_eq!((0..book.places()).filter_map(|at| book.at(at)).count(), 4);
    }

    #[test]
    fn an_order_is_found_at_its_place_only_and_one_from_before_a_restart_by_its_root() {
        let mut book = ClientOrders::new(1_000, 1_000, 1);
        let roots: Vec<IntId> = (0..600).map(|number| IntId::numbered(b'o', number)).collect();
        let (new, old) = roots.split_at(300);
        let keys: Vec<Key> = new
            .iter()
            .map(|root| add(&mut book, Order::new(*root, Terms::default(), Timestamp(1))).unwrap())
            .collect();
        old.iter().for_each(|root| book.recall(Order::new(*root, Terms::default(), Timestamp(1))));
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(book.get(key).unwrap().root, key.root);
            assert_eq!(book.get(&Key { place: keys[(at + 7) % 300].place, ..*key }), None);
            assert_eq!(book.get(&Key::of_root(key.root)), None);
        }
        for (at, root) in old.iter().enumerate() {
            for place in [u32::MAX, 0, at as u32] {
                assert_eq!(book.get_mut(&Key { root: *root, place }).unwrap().root, *root);
            }
        }
        book.recall(Order { status: Status::New, ..Order::new(old[0], Terms::default(), Timestamp(2)) });
        assert_eq!(book.get(&Key::of_root(old[0])).unwrap().status, Status::New);
        old.iter().for_each(|root| book.remove(&Key::of_root(*root)));
        assert_eq!((book.len(), book.recalled.len()), (300, 0));
    }

    #[test]
    fn an_id_that_comes_again_is_the_new_order() {
        let mut book = ClientOrders::new(4, 1, 1);
        let first = add(&mut book, order("a")).unwrap();
        book.get_mut(&first).unwrap().status = Status::Filled;
        book.finish(&first);
        let second = add(&mut book, Order { status: Status::New, ..order("a") }).unwrap();
        let other = add(&mut book, Order { status: Status::Filled, ..order("b") }).unwrap();
        book.finish(&other);
        assert_eq!(book.get(&second).unwrap().status, Status::New);
        assert_eq!((book.len(), book.get(&first)), (2, None));
    }

    #[test]
    fn a_place_that_is_used_again_is_not_taken_for_who_had_it() {
        let mut book = ClientOrders::new(2, 1, 1);
        let first = add(&mut book, Order { status: Status::Filled, ..order("a") }).unwrap();
        book.finish(&first);
        book.remove(&first);
        let second = add(&mut book, Order { status: Status::New, ..order("a") }).unwrap();
        assert_eq!(first, second, "the same root at the same place");
        let other = add(&mut book, Order { status: Status::Filled, ..order("b") }).unwrap();
        book.finish(&other);
        assert_eq!(book.get(&second).unwrap().status, Status::New, "the first one's end is not its own");
    }
}
