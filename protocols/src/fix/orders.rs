//! Orders of one session as its client knows them: terms, ids and status. The desk knows which
//! shard has an order; this table has what a report must contain and what a request is compared
//! with.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::desk::KnownOrder;
use pitlane_engine::event::{OrderReport, OrderTerms};
use pitlane_engine::id::IntId;
use pitlane_engine::index::index_u32;
use pitlane_engine::keyed_index::IdIndex;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::pages::LargePages;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{SpecialTerms, Status, Terms};
use pitlane_engine::time::Timestamp;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOrder {
    /// OrderID (37): the first ClOrdID, which never changes.
    pub root: IntId,
    /// ClOrdID (11) of the client's last accepted request. A change made elsewhere does not alter
    /// it.
    pub cl_ord_id: IntId,
    /// ClOrdID of a pending cancel, or none.
    pub cancel: IntId,
    /// ClOrdID of a pending replacement, or none.
    pub replace: IntId,
    /// Whether a cancel of ours is pending because the client was disconnected.
    pub platform_cancel: bool,
    /// Whether the order was restored from a snapshot after a restart.
    pub is_restored: bool,
    pub terms: Terms,
    pub cum_qty: Qty,
    pub avg_price: Price,
    pub status: Status,
    pub reason: Reason,
    /// Time of the last change.
    pub updated: Timestamp,
}

impl ClientOrder {
    pub fn new(root: IntId, terms: Terms, now: Timestamp) -> ClientOrder {
        ClientOrder {
            root,
            cl_ord_id: root,
            cancel: IntId::NONE,
            replace: IntId::NONE,
            platform_cancel: false,
            is_restored: false,
            terms,
            cum_qty: Qty::ZERO,
            avg_price: Price::ZERO,
            status: Status::PendingNew,
            reason: Reason::None,
            updated: now,
        }
    }

    /// Applies a report.
    pub fn update(&mut self, report: &OrderReport, at: Timestamp) {
        self.terms.qty = report.qty;
        self.cum_qty = report.cum_qty;
        self.avg_price = report.avg_price;
        self.status = report.status;
        self.reason = report.reason;
        self.updated = at;
    }

    /// Clears a request that failed. Returns whether it was one of the client's.
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

/// Finds an order by its root at its place. The desk keeps both. The place of an order from before
/// a restart is unknown and is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderKey {
    pub root: IntId,
    pub place: u32,
}

impl OrderKey {
    /// Returns the key of an order whose place is unknown.
    pub fn of_root(root: IntId) -> OrderKey {
        OrderKey { root, place: u32::MAX }
    }
}

impl From<KnownOrder> for OrderKey {
    fn from(known: KnownOrder) -> OrderKey {
        OrderKey { root: known.root, place: known.token }
    }
}

/// A place in the slab: an order, or free.
type OrderSlot = Option<ClientOrder>;

/// Places by which the slab grows. Existing orders do not move, so that no request pays for all the
/// others.
const PAGE: usize = 256;

/// Orders of a session. Memory grows with the number of orders up to a maximum, and is reused.
#[derive(Debug)]
pub struct ClientOrders {
    /// Pages, all full but the last one.
    slab: Vec<Vec<OrderSlot>>,
    free: Vec<u32>,
    len: usize,
    /// Orders from before a restart, by root. Later orders are found by their places.
    restored: IdIndex,
    /// Finished orders, oldest first; some may have been removed since.
    finished: VecDeque<OrderKey>,
    finished_max: usize,
    orders_max: usize,
    /// ExecInst, MinQty and MaxFloor of the orders that have them, by root.
    special: BTreeMap<IntId, SpecialTerms>,
}

impl ClientOrders {
    pub fn new(orders_max: u32, finished_max: u32, seed: u64) -> ClientOrders {
        ClientOrders {
            slab: Vec::new(),
            free: Vec::new(),
            len: 0,
            // There is one index for each session, usually with few ids, so large pages do not pay.
            restored: IdIndex::new(orders_max, seed, LargePages::NONE),
            finished: VecDeque::new(),
            finished_max: finished_max as usize,
            orders_max: orders_max as usize,
            special: BTreeMap::new(),
        }
    }

    pub fn get(&self, key: &OrderKey) -> Option<&ClientOrder> {
        self.find(key).and_then(|place| self.at(place as usize))
    }

    pub fn get_mut(&mut self, key: &OrderKey) -> Option<&mut ClientOrder> {
        let place = self.find(key)?;
        self.place(place).as_mut()
    }

    /// Adds an order and returns its place if there was room. The caller finds the order again by
    /// that place.
    pub fn add(&mut self, order: ClientOrder) -> Option<u32> {
        while self.len >= self.orders_max {
            let oldest = self.finished.pop_front()?;
            self.forget(&oldest);
        }
        let place = match self.free.pop() {
            Some(place) => {
                *self.place(place) = Some(order);
                place
            }
            None => self.push(order),
        };
        self.len += 1;
        Some(place)
    }

    /// Adds an order from before a restart, whose place is unknown to the desk. It replaces an
    /// order with the same root, which the desk has forgotten.
    pub fn restore(&mut self, order: ClientOrder) {
        let key = OrderKey::of_root(order.root);
        self.remove(&key);
        if let Some(place) = self.add(order) {
            self.restored.insert(0, &key.root, place);
        }
    }

    pub fn remove(&mut self, key: &OrderKey) {
        let Some(place) = self.find(key) else { return };
        self.restored.remove(0, &key.root, place);
        if self.place(place).take().is_some_and(|order| order.terms.special) {
            self.special.remove(&key.root);
        }
        self.free.push(place);
        self.len -= 1;
    }

    /// Returns the special terms of an order.
    #[inline]
    pub fn special(&self, root: &IntId, terms: &Terms) -> Option<SpecialTerms> {
        if terms.special { self.special.get(root).copied() } else { None }
    }

    /// Sets the terms of an order, and its special terms if it has some.
    pub fn set_terms(&mut self, key: &OrderKey, terms: &Terms, special: Option<SpecialTerms>) {
        let Some(order) = self.get_mut(key) else { return };
        let had_special = std::mem::replace(&mut order.terms, *terms).special;
        match special.filter(|_| terms.special) {
            Some(special) => _ = self.special.insert(key.root, special),
            None if had_special => _ = self.special.remove(&key.root),
            None => {}
        }
    }

    /// Records that an order is finished, and removes the oldest finished orders above the maximum.
    pub fn finish(&mut self, key: &OrderKey) {
        if self.find(key).is_none() {
            return;
        }
        self.finished.push_back(*key);
        while self.finished.len() > self.finished_max {
            let Some(oldest) = self.finished.pop_front() else { break };
            self.forget(&oldest);
        }
    }

    /// Removes a finished order. Another order with the same root may have its place now and be
    /// open.
    fn forget(&mut self, finished: &OrderKey) {
        if self.get(finished).is_some_and(|order| order.status.is_finished()) {
            self.remove(finished);
        }
    }

    /// Returns the order at a place, so that a caller can visit all places in steps.
    pub fn at(&self, place: usize) -> Option<&ClientOrder> {
        self.slab.get(place / PAGE)?.get(place % PAGE)?.as_ref()
    }

    /// Returns the order at a place, to be changed.
    pub fn at_mut(&mut self, place: u32) -> Option<&mut ClientOrder> {
        self.slab.get_mut(place as usize / PAGE)?.get_mut(place as usize % PAGE)?.as_mut()
    }

    /// Returns the number of places, free ones included.
    pub fn places(&self) -> usize {
        self.slab.last().map_or(0, |last| (self.slab.len() - 1) * PAGE + last.len())
    }

    /// Returns the number of orders.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn has_room(&self) -> bool {
        self.len < self.orders_max || !self.finished.is_empty()
    }

    /// Returns the place of an order.
    #[inline]
    pub fn find(&self, key: &OrderKey) -> Option<u32> {
        let is_it = |place: u32| self.at(place as usize).is_some_and(|order| order.root == key.root);
        if is_it(key.place) { Some(key.place) } else { self.restored.get(0, &key.root, is_it) }
    }

    fn place(&mut self, place: u32) -> &mut OrderSlot {
        &mut self.slab[place as usize / PAGE][place as usize % PAGE]
    }

    fn push(&mut self, order: ClientOrder) -> u32 {
        if self.slab.last().is_none_or(|page| page.len() == PAGE) {
            self.slab.push(Vec::with_capacity(PAGE));
        }
        let page = self.slab.last_mut().expect("a page with room was just seen to");
        page.push(Some(order));
        index_u32(self.places() - 1)
    }
}

/// Returns an order from the terms that a shard reports.
pub fn order_of(terms: &OrderTerms, root: IntId, at: Timestamp) -> ClientOrder {
    ClientOrder {
        cl_ord_id: terms.id,
        status: terms.status,
        reason: terms.reason,
        ..ClientOrder::new(root, terms.terms, at)
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::event::{Event, EventKind, ExecType};
    use pitlane_engine::id::{OrderHandle, Source};
    use pitlane_engine::sender::SenderId;

    use super::*;

    fn order(root: &str) -> ClientOrder {
        ClientOrder::new(IntId::parse(root.as_bytes()).unwrap(), Terms::default(), Timestamp(1))
    }

    fn add(orders: &mut ClientOrders, order: ClientOrder) -> Option<OrderKey> {
        orders.add(order).map(|place| OrderKey { root: order.root, place })
    }

    #[test]
    fn finished_orders_are_removed_first_and_open_ones_stay() {
        let mut orders = ClientOrders::new(4, 2, 1);
        let keys = ["a", "b", "c", "d"].map(|root| add(&mut orders, order(root)).unwrap());
        assert!(!orders.has_room() && add(&mut orders, order("e")).is_none());
        assert!(!orders.is_empty());
        for key in &keys[..3] {
            orders.get_mut(key).unwrap().status = Status::Filled;
            orders.finish(key);
        }
        assert!(orders.get(&keys[0]).is_none());
        assert_eq!(orders.len(), 3);
        assert!(orders.has_room());
        assert!(add(&mut orders, order("e")).is_some() && add(&mut orders, order("f")).is_some());
        assert!(orders.get(&keys[1]).is_none());
        assert!(orders.get(&keys[3]).is_some());
        assert_eq!((0..orders.places()).filter_map(|at| orders.at(at)).count(), 4);
    }

    #[test]
    fn an_order_is_found_at_its_place_only_and_one_from_before_a_restart_by_its_root() {
        let mut orders = ClientOrders::new(1_000, 1_000, 1);
        let roots: Vec<IntId> = (0..600).map(|number| IntId::numbered(b'o', number)).collect();
        let (new, old) = roots.split_at(300);
        let keys: Vec<OrderKey> = new
            .iter()
            .map(|root| add(&mut orders, ClientOrder::new(*root, Terms::default(), Timestamp(1))).unwrap())
            .collect();
        old.iter().for_each(|root| orders.restore(ClientOrder::new(*root, Terms::default(), Timestamp(1))));
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(orders.get(key).unwrap().root, key.root);
            assert_eq!(orders.get(&OrderKey { place: keys[(at + 7) % 300].place, ..*key }), None);
            assert_eq!(orders.get(&OrderKey::of_root(key.root)), None);
            assert_eq!(orders.at_mut(key.place).unwrap().root, key.root);
        }
        assert_eq!((orders.places(), orders.at_mut(600)), (600, None));
        for (at, root) in old.iter().enumerate() {
            for place in [u32::MAX, 0, at as u32] {
                assert_eq!(orders.get_mut(&OrderKey { root: *root, place }).unwrap().root, *root);
            }
        }
        orders.restore(ClientOrder {
            status: Status::New,
            ..ClientOrder::new(old[0], Terms::default(), Timestamp(2))
        });
        assert_eq!(orders.get(&OrderKey::of_root(old[0])).unwrap().status, Status::New);
        old.iter().for_each(|root| orders.remove(&OrderKey::of_root(*root)));
        assert_eq!((orders.len(), orders.restored.len()), (300, 0));
        keys.iter().for_each(|key| orders.remove(key));
        assert!(orders.is_empty() && orders.has_room());
        assert_eq!((orders.places(), orders.at_mut(0)), (600, None));
    }

    #[test]
    fn special_terms_come_and_go_with_those_of_their_order() {
        let mut orders = ClientOrders::new(2, 1, 1);
        let key = add(&mut orders, order("a")).unwrap();
        let plain = Terms { qty: Qty::from_raw(5), ..Terms::default() };
        let with_special = Terms { special: true, ..plain };
        let least = SpecialTerms { min_qty: Some(Qty::from_raw(2)), ..SpecialTerms::default() };
        let most = SpecialTerms { max_floor: Some(Qty::from_raw(3)), ..SpecialTerms::default() };
        for (terms, special) in [
            (with_special, Some(least)),
            (with_special, Some(most)),
            (plain, None),
            (with_special, Some(least)),
            (plain, Some(most)),
        ] {
            orders.set_terms(&key, &terms, special);
            let kept = special.filter(|_| terms.special);
            assert_eq!(orders.get(&key).unwrap().terms, terms);
            assert_eq!(orders.special(&key.root, &terms), kept);
            assert_eq!(orders.special.get(&key.root), kept.as_ref(), "nothing else is kept");
        }
        // Terms of which nothing is known.
        orders.set_terms(&key, &with_special, Some(least));
        orders.set_terms(&key, &with_special, None);
        assert_eq!(orders.special(&key.root, &with_special), None);
        orders.set_terms(&key, &with_special, Some(least));
        orders.remove(&key);
        assert!(orders.special.is_empty());
        orders.set_terms(&key, &with_special, Some(least));
        assert!(orders.special.is_empty(), "there is no such order");
    }

    #[test]
    fn a_report_changes_what_is_known_of_an_order() {
        let id = |text: &str| IntId::parse(text.as_bytes()).unwrap();
        let told = OrderTerms {
            order: OrderHandle::NONE,
            id: id("b"),
            orig_id: id("a"),
            source: Source::default(),
            what: ExecType::Entered,
            status: Status::PartiallyFilled,
            reason: Reason::Overflow,
            sender: SenderId::NONE,
            terms: Terms { qty: Qty::from_raw(8), ..Terms::default() },
        };
        let known = order_of(&told, id("a"), Timestamp(7));
        let expected =
            ClientOrder { cl_ord_id: id("b"), ..ClientOrder::new(id("a"), told.terms, Timestamp(7)) };
        assert_eq!(known, ClientOrder { status: told.status, reason: told.reason, ..expected });
        assert_eq!(known.leaves_qty(), Qty::from_raw(8));

        let event = Event { seq: 1, at: Timestamp(9), body: EventKind::Order(told) };
        let (qty, cum_qty) = (Qty::from_raw(9), Qty::from_raw(3));
        let report = OrderReport { qty, cum_qty, ..event.report().unwrap() };
        let mut updated = known;
        updated.update(&report, event.at);
        assert_eq!((updated.terms.qty, updated.cum_qty), (report.qty, report.cum_qty));
        assert_eq!((updated.leaves_qty(), updated.updated), (Qty::from_raw(6), Timestamp(9)));
        updated.status = Status::Canceled;
        assert_eq!(updated.leaves_qty(), Qty::ZERO);
    }

    #[test]
    fn a_failed_request_is_forgotten_if_it_is_the_clients() {
        let id = |text: &str| IntId::parse(text.as_bytes()).unwrap();
        let mut pending = ClientOrder { cancel: id("c"), replace: id("r"), ..order("a") };
        assert!(!pending.forget(&id("a")) && !pending.forget(&IntId::NONE));
        assert_eq!((pending.cancel, pending.replace), (id("c"), id("r")));
        assert!(pending.forget(&id("r")) && !pending.forget(&id("r")));
        assert_eq!((pending.cancel, pending.replace), (id("c"), IntId::NONE));
        assert!(!pending.forget(&IntId::NONE), "no request has no id");
        assert!(pending.forget(&id("c")));
        assert_eq!(pending.cancel, IntId::NONE);
    }

    #[test]
    fn a_reused_id_finds_the_new_order() {
        let mut orders = ClientOrders::new(4, 1, 1);
        let first = add(&mut orders, order("a")).unwrap();
        orders.get_mut(&first).unwrap().status = Status::Filled;
        orders.finish(&first);
        let second = add(&mut orders, ClientOrder { status: Status::New, ..order("a") }).unwrap();
        let other = add(&mut orders, ClientOrder { status: Status::Filled, ..order("b") }).unwrap();
        orders.finish(&other);
        assert_eq!(orders.get(&second).unwrap().status, Status::New);
        assert_eq!((orders.len(), orders.get(&first)), (2, None));
    }

    #[test]
    fn a_reused_place_does_not_find_its_former_order() {
        let mut orders = ClientOrders::new(2, 1, 1);
        let first = add(&mut orders, ClientOrder { status: Status::Filled, ..order("a") }).unwrap();
        orders.finish(&first);
        orders.remove(&first);
        let second = add(&mut orders, ClientOrder { status: Status::New, ..order("a") }).unwrap();
        assert_eq!(first, second, "the same root at the same place");
        let other = add(&mut orders, ClientOrder { status: Status::Filled, ..order("b") }).unwrap();
        orders.finish(&other);
        assert_eq!(orders.get(&second).unwrap().status, Status::New, "the first one's end is not its own");
    }
}
