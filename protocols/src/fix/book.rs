//! The orders of one session as its client knows them: what was asked for, under which ids, and how it stands. The desk knows
//! where an order lives; here is what must be told in a report and compared with a request.

use std::collections::VecDeque;

use pitlane_engine::event::{OrderReport, OrderTerms};
use pitlane_engine::id::IntId;
use pitlane_engine::index::IdIndex;
use pitlane_engine::number::{Price, Qty};
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

/// A place in the slab: an order, or free.
type Place = Option<Order>;

/// Places that the slab grows by: what is there stays where it is, so that no order pays for all the others.
const PAGE: usize = 256;

/// Orders found by their root. Memory grows with their number up to a maximum, and is used again.
#[derive(Debug)]
pub struct Book {
    index: IdIndex,
    /// All full but the last one.
    slab: Vec<Vec<Place>>,
    free: Vec<u32>,
    /// Finished ones with their roots, first ended first; some may have been forgotten since.
    finished: VecDeque<(u32, IntId)>,
    finished_max: usize,
    orders_max: usize,
}

impl Book {
    pub fn new(orders_max: u32, finished_max: u32, seed: u64) -> Book {
        Book {
            index: IdIndex::new(orders_max, seed),
            slab: Vec::new(),
            free: Vec::new(),
            finished: VecDeque::new(),
            finished_max: finished_max as usize,
            orders_max: orders_max as usize,
        }
    }

    pub fn get(&self, root: &IntId) -> Option<&Order> {
        self.find(root).and_then(|number| self.at(number as usize))
    }

    pub fn get_mut(&mut self, root: &IntId) -> Option<&mut Order> {
        let number = self.find(root)?;
        self.place(number).as_mut()
    }

    /// The same, at the place where it is if somebody still knows that; the index is large and its memory far away.
    pub fn get_near(&mut self, root: &IntId, place: u32) -> Option<&mut Order> {
        match self.at(place as usize) {
            Some(order) if order.root == *root => self.place(place).as_mut(),
            Some(_) | None => self.get_mut(root),
        }
    }

    /// Has memory brought near for a new order of this id.
    pub fn foresee(&self, root: &IntId) {
        self.index.foresee(0, root);
    }

    /// Adds an order; one with the same root, which the desk has forgotten, gives way. Answers its place if there was room.
    pub fn add(&mut self, order: Order) -> Option<u32> {
        self.remove(&order.root);
        while self.index.is_full() {
            let (_, root) = self.finished.pop_front()?;
            self.remove(&root);
        }
        let number = self.free.pop().unwrap_or_else(|| self.new_place());
        self.index.insert(0, &order.root, number);
        *self.place(number) = Some(order);
        Some(number)
    }

    pub fn remove(&mut self, root: &IntId) {
        let Some(number) = self.find(root) else { return };
        self.index.remove(0, root, number);
        *self.place(number) = None;
        self.free.push(number);
    }

    /// Notes that an order has ended, and forgets the oldest such if there are too many.
    pub fn finish(&mut self, root: &IntId) {
        let Some(number) = self.find(root) else { return };
        self.finished.push_back((number, *root));
        while self.finished.len() > self.finished_max {
            let Some((_, oldest)) = self.finished.pop_front() else { break };
            // Its id may have come again for another order, which is open.
            if self.get(&oldest).is_some_and(|order| order.status.is_finished()) {
                self.remove(&oldest);
            }
        }
    }

    /// The order at a place, and whether there are places behind it: to go through all of them in steps.
    pub fn at(&self, number: usize) -> Option<&Order> {
        self.slab.get(number / PAGE)?.get(number % PAGE)?.as_ref()
    }

    /// Places, free ones included.
    pub fn places(&self) -> usize {
        self.slab.last().map_or(0, |last| (self.slab.len() - 1) * PAGE + last.len())
    }

    /// Orders known.
    pub fn len(&self) -> usize {
        self.index.len() as usize
    }

    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    pub fn has_room(&self) -> bool {
        self.len() < self.orders_max || !self.finished.is_empty()
    }

    fn find(&self, root: &IntId) -> Option<u32> {
        let is = |number: u32| self.at(number as usize).is_some_and(|order| order.root == *root);
        self.index.get(0, root, is)
    }

    fn place(&mut self, number: u32) -> &mut Place {
        &mut self.slab[number as usize / PAGE][number as usize % PAGE]
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

    #[test]
    fn finished_orders_go_first_and_open_ones_stay() {
        let mut book = Book::new(4, 2, 1);
        for root in ["a", "b", "c", "d"] {
            assert!(book.add(order(root)).is_some());
        }
        assert!(!book.has_room() && book.add(order("e")).is_none());
        for root in ["a", "b", "c"] {
            let id = order(root).root;
            book.get_mut(&id).unwrap().status = Status::Filled;
            book.finish(&id);
        }
        assert!(book.get(&order("a").root).is_none());
        assert_eq!(book.len(), 3);
        assert!(book.add(order("e")).is_some() && book.add(order("f")).is_some());
        assert!(book.get(&order("b").root).is_none());
        assert!(book.get(&order("d").root).is_some());
        assert_eq!((0..book.places()).filter_map(|at| book.at(at)).count(), 4);
    }

    #[test]
    fn an_order_is_found_at_its_place_and_elsewhere_if_that_is_another_s() {
        let mut book = Book::new(1_000, 1_000, 1);
        let roots: Vec<IntId> = (0..600).map(|number| IntId::numbered(b'o', number)).collect();
        let mut places = Vec::new();
        for root in &roots {
            places.push(book.add(Order::new(*root, Terms::default(), Timestamp(1))).unwrap());
        }
        for (at, root) in roots.iter().enumerate() {
            assert_eq!(book.get_near(root, places[at]).unwrap().root, *root);
            assert_eq!(book.get_near(root, places[(at + 7) % 600]).unwrap().root, *root);
            assert_eq!(book.get_near(root, u32::MAX).unwrap().root, *root);
        }
        assert!(book.get_near(&IntId::numbered(b'p', 1), 5).is_none());
    }

    #[test]
    fn an_id_that_comes_again_is_the_new_order() {
        let mut book = Book::new(4, 1, 1);
        book.add(order("a"));
        book.get_mut(&order("a").root).unwrap().status = Status::Filled;
        book.finish(&order("a").root);
        book.add(Order { status: Status::New, ..order("a") });
        book.add(Order { status: Status::Filled, ..order("b") });
        book.finish(&order("b").root);
        assert_eq!(book.get(&order("a").root).unwrap().status, Status::New);
        assert_eq!(book.len(), 2);
    }
}
