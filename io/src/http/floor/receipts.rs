//! What was asked under the ids that clients gave, so that the same request again gets the same answer, and another one under the
//! same id is told from it.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::id::{IntId, OrderHandle};
use pitlane_engine::reason::Reason;
use pitlane_engine::terms::{Changes, Terms};

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

/// At most so many, the oldest go first; an id is forgotten here no earlier than at the desk, which holds as many.
#[derive(Debug)]
pub struct Receipts {
    by_id: BTreeMap<IntId, Receipt>,
    /// Oldest first. The same ids as above.
    ids: VecDeque<IntId>,
    max: usize,
}

impl Receipts {
    pub fn new(max: usize) -> Receipts {
        Receipts { by_id: BTreeMap::new(), ids: VecDeque::new(), max }
    }

    pub fn get(&self, id: &IntId) -> Option<Receipt> {
        self.by_id.get(id).copied()
    }

    pub fn asked(&mut self, id: IntId, asked: Asked) {
        if self.by_id.insert(id, Receipt { asked, told: None }).is_none() {
            self.ids.push_back(id);
        }
        if self.ids.len() > self.max
            && let Some(oldest) = self.ids.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }

    pub fn told(&mut self, id: &IntId, reason: Reason) {
        if let Some(receipt) = self.by_id.get_mut(id) {
            receipt.told = Some(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_are_kept_up_to_their_number() {
        let id = |n: u64| IntId::numbered(b'x', n);
        let mut receipts = Receipts::new(3);
        for n in 0..5 {
            receipts.asked(id(n), Asked::Submit(Terms::default()));
            receipts.told(&id(n), Reason::BadLot);
        }
        assert_eq!((receipts.get(&id(1)), receipts.ids.len(), receipts.by_id.len()), (None, 3, 3));
        assert_eq!(receipts.get(&id(4)).and_then(|receipt| receipt.told), Some(Reason::BadLot));
        receipts.asked(id(4), Asked::Modify(OrderHandle::NONE, Changes::default()));
        assert_eq!((receipts.get(&id(4)).unwrap().told, receipts.ids.len()), (None, 3));
    }
}
