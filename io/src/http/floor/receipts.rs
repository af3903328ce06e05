//! What was asked under the ids that clients gave, so that the same request again gets the same answer, and another one under the
//! same id is told from it.

use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::index::IdIndex;
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Terms};

use crate::pages::LARGE_PAGES;

/// All who ask over REST choose their ids from one room.
const SESSION: u16 = 0;

/// A request as it was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    Submit(Terms),
    Modify(OrderHandle, Changes),
}

/// A request, and what came of it as far as its asker was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub asked: Asked,
    /// [`Reason::None`]: it was taken. None: nobody was told yet.
    pub told: Option<Reason>,
}

/// At most so many; then each takes the place of the oldest, so memory stays as it is. An id is forgotten here no earlier than at the desk, which holds as many.
#[derive(Debug)]
pub struct Receipts {
    /// A ring once it is full.
    kept: Vec<(IntId, Receipt)>,
    /// Where the next one goes when it is full.
    oldest: usize,
    /// Where each is.
    index: IdIndex,
}

impl Receipts {
    pub fn new(max: u32, seed: u64) -> Receipts {
        Receipts { kept: Vec::new(), oldest: 0, index: IdIndex::new(max.max(1), seed, LARGE_PAGES) }
    }

    pub fn get(&self, id: &IntId) -> Option<Receipt> {
        self.place(id).map(|at| self.kept[at].1)
    }

    pub fn asked(&mut self, id: IntId, asked: Asked) {
        let receipt = Receipt { asked, told: None };
        if let Some(at) = self.place(&id) {
            self.kept[at].1 = receipt;
            return;
        }
        let at = if self.index.is_full() {
            let at = self.oldest;
            self.index.remove(SESSION, &self.kept[at].0, at as u32);
            self.kept[at] = (id, receipt);
            self.oldest = (at + 1) % self.kept.len();
            at
        } else {
            self.kept.push((id, receipt));
            self.kept.len() - 1
        };
        self.index.insert(SESSION, &id, at as u32);
    }

    pub fn told(&mut self, id: &IntId, reason: Reason) {
        if let Some(at) = self.place(id) {
            self.kept[at].1.told = Some(reason);
        }
    }

    fn place(&self, id: &IntId) -> Option<usize> {
        self.index.get(SESSION, id, |at| self.kept[at as usize].0 == *id).map(|at| at as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_kept_up_to_their_number() {
        let id = |n: u64| IntId::numbered(b'x', n);
        let mut receipts = Receipts::new(3, 1);
        for n in 0..8 {
            receipts.asked(id(n), Asked::Submit(Terms::default()));
            receipts.told(&id(n), Reason::BadLot);
            let known = (0..=n).filter(|n| receipts.get(&id(*n)).is_some());
            assert!(known.eq((n + 1).saturating_sub(3)..=n), "the newest three");
            assert!(receipts.kept.len() <= 3);
        }
        assert_eq!(receipts.get(&id(7)).and_then(|receipt| receipt.told), Some(Reason::BadLot));
    }

    #[test]
    fn another_request_under_the_same_id_takes_its_place() {
        let id = IntId::numbered(b'x', 1);
        let mut receipts = Receipts::new(3, 1);
        receipts.asked(id, Asked::Submit(Terms::default()));
        receipts.told(&id, Reason::None);
        let asked = Asked::Modify(OrderHandle::NONE, Changes::default());
        receipts.asked(id, asked);
        assert_eq!((receipts.get(&id), receipts.kept.len()), (Some(Receipt { asked, told: None }), 1));
    }
}
