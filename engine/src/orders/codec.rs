//! Bytes of all orders: the slab slot by slot, with the lists that run through it.

use super::{FinishedList, FormerIds, Orders, RecordedExecution, empty_order};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, Digest, codec, decode_into};
use crate::id::{GENERATIONS, ShardId};
use crate::index::index_u32;
use crate::order::{Base, CancelRequest, LastFill, NIL, Order, Replace, Requests};
use crate::pages::LargePages;
use crate::sender::{SenderId, SentBy};

codec!(enum Base {
    0 = PendingNew,
    1 = Working,
    2 = Filled,
    3 = Canceled,
    4 = Rejected,
    5 = Expired,
});

/// Bytes of an order. The fifth flag says whether the order counts as open, which its state says
/// too; the senders follow in [`Orders::save`].
impl Codec for Order {
    fn encode(&self, out: &mut impl ByteSink) {
        // All fields by name, so that a new field does not compile until it is handled here.
        let Order {
            id,
            terms,
            notional,
            cum,
            submitted,
            reserved,
            source,
            local,
            generation,
            requests,
            orig_id,
            execution,
            next,
            position,
            exposure,
            updated,
            reason,
            base,
            flags: _,
            era,
            before,
            submitted_by: _,
            canceled_by: _,
        } = self;
        id.encode(out);
        terms.encode(out);
        notional.encode(out);
        cum.encode(out);
        submitted.encode(out);
        reserved.encode(out);
        source.encode(out);
        local.encode(out);
        generation.encode(out);
        requests.encode(out);
        orig_id.encode(out);
        execution.encode(out);
        next.encode(out);
        position.encode(out);
        exposure.encode(out);
        updated.encode(out);
        reason.encode(out);
        base.encode(out);
        [self.outside(), self.at_venue(), self.triggered(), self.in_doubt()].encode(out);
        [!base.is_finished(), self.acknowledged()].encode(out);
        before.encode(out);
        [self.unsure(), self.status_queried()].encode(out);
        era.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<Order, DecodeError> {
        let mut order = Order {
            id: Codec::decode(from)?,
            terms: Codec::decode(from)?,
            notional: Codec::decode(from)?,
            cum: Codec::decode(from)?,
            submitted: Codec::decode(from)?,
            reserved: Codec::decode(from)?,
            source: Codec::decode(from)?,
            local: Codec::decode(from)?,
            generation: Codec::decode(from)?,
            requests: Codec::decode(from)?,
            orig_id: Codec::decode(from)?,
            execution: Codec::decode(from)?,
            next: Codec::decode(from)?,
            position: Codec::decode(from)?,
            exposure: Codec::decode(from)?,
            updated: Codec::decode(from)?,
            reason: Codec::decode(from)?,
            base: Codec::decode(from)?,
            ..empty_order()
        };
        let [outside, at_venue, triggered, in_doubt, open, acknowledged] = Codec::decode(from)?;
        from.check(open != order.base.is_finished(), DecodeProblem::Contradiction)?;
        order.before = Codec::decode(from)?;
        let [unsure, status_queried] = Codec::decode(from)?;
        order.era = Codec::decode(from)?;
        order.set_outside(outside);
        order.set_at_venue(at_venue);
        order.set_triggered(triggered);
        order.set_in_doubt(in_doubt);
        order.set_acknowledged(acknowledged);
        order.set_unsure(unsure);
        order.set_status_queried(status_queried);
        Ok(order)
    }
}

codec!(LastFill { qty, price });
codec!(Requests { replace, cancel, next });
codec!(Replace { id, source, terms, reserved, credit_price, grown });
codec!(CancelRequest { id, source, reason, sent });
codec!(RecordedExecution { exec, qty, price, next, root, presumed });
codec!(FinishedList { first, last, len });
codec!(FormerIds { first, last });

impl Orders {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        self.len().encode(out);
        for (slot, order) in self.slots.iter().enumerate() {
            let at = index_u32(slot);
            let held = !order.id.is_none();
            held.encode(out);
            match held {
                true => {
                    Order { before: self.finished_before(at), ..*order }.encode(out);
                    self.sent(at).encode(out);
                    if !order.cum.is_zero() {
                        self.fills[slot].encode(out);
                    }
                }
                // The previous order of the slot is not needed.
                false => (order.generation, order.next).encode(out),
            }
        }
        self.free.encode(out);
        for line in &self.finished {
            line.encode(out);
        }
        self.orig_ids.encode(out);
        self.orig_ids_free.encode(out);
        self.requests.encode(out);
        self.requests_free.encode(out);
        self.executions.encode(out);
        self.executions_free.encode(out);
    }

    pub(crate) fn load(
        from: &mut ByteReader<'_>,
        shard: ShardId,
        max: u32,
        executions_max: u32,
        pages: LargePages,
    ) -> Result<Orders, DecodeError> {
        let mut orders = Orders::new(shard, max, executions_max, pages);
        let count = u32::decode(from)?;
        from.check(count as usize <= from.left() && count < NIL, DecodeProblem::Short)?;
        for _ in 0..count {
            let (held, mut order) = decode_slot(from)?;
            let sent = if held { SentBy::decode(from)? } else { SentBy::default() };
            (order.submitted_by, order.canceled_by) = (sent.submitted, sent.canceled);
            order.set_modify_requested(sent.modified != SenderId::NONE);
            let fill =
                if held && !order.cum.is_zero() { LastFill::decode(from)? } else { LastFill::default() };
            orders.held += held as u32;
            orders.slots.push(order);
            orders.fills.push(fill);
            orders.modified_by.push(sent.modified);
        }
        orders.free = Codec::decode(from)?;
        orders.finished = [Codec::decode(from)?, Codec::decode(from)?];
        decode_into(&mut orders.orig_ids, from)?;
        decode_into(&mut orders.orig_ids_free, from)?;
        orders.orig_ids_free.reserve(orders.orig_ids.len());
        decode_into(&mut orders.requests, from)?;
        orders.requests_free = Codec::decode(from)?;
        decode_into(&mut orders.executions, from)?;
        orders.executions_free = Codec::decode(from)?;
        let sound = orders.lists_are_sound();
        from.check(sound.is_some(), DecodeProblem::Contradiction)?;
        Ok(orders)
    }

    /// Adds the counters that change with every order to the digest.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        [self.len(), self.held, self.free, self.requests_free, self.executions_free, self.executions_held]
            .encode(sum);
        for line in &self.finished {
            line.encode(sum);
        }
        let lengths = [self.orig_ids.len(), self.orig_ids_free.len(), self.requests.len()];
        lengths.encode(sum);
    }

    /// Checks that every list ends, and that every place is in exactly one list.
    fn lists_are_sound(&mut self) -> Option<()> {
        self.check_free()?;
        self.check_finished()?;
        let mut orig_ids = Marks::new(self.orig_ids.len());
        let mut requests = Marks::new(self.requests.len());
        let mut executions = Marks::new(self.executions.len());
        let mut owners = vec![NIL; self.executions.len()];
        for slot in (0..self.len()).filter(|&slot| self.in_use(slot)) {
            let order = self.get(slot);
            orig_ids.claim_one(order.orig_id)?;
            requests.claim_one(order.requests)?;
            let next = |at: u32| self.executions[at as usize].next;
            executions.claim_list(order.execution, next)?;
            self.entries(slot).for_each(|at| owners[at as usize] = slot);
        }
        self.executions_held = index_u32(executions.claimed);
        for &at in &self.orig_ids_free {
            orig_ids.claim(at)?;
        }
        requests.claim_list(self.requests_free, |at| self.requests[at as usize].next)?;
        executions.claim_list(self.executions_free, |at| self.executions[at as usize].next)?;
        // An id of a correction leads to an execution of its order, and no further.
        let is_root = |at: u32| self.executions.get(at as usize).is_some_and(|entry| entry.root == NIL);
        let is_sound = |(entry, owner): (&RecordedExecution, &u32)| {
            let has_root = entry.root != NIL;
            !entry.qty.is_negative()
                && (!has_root || is_root(entry.root) && owners[entry.root as usize] == *owner)
        };
        if !self.executions.iter().zip(&owners).all(is_sound) {
            return None;
        }
        (orig_ids.all() && requests.all() && executions.all()).then_some(())
    }

    fn check_free(&self) -> Option<()> {
        let free = self.len() - self.held;
        let mut at = self.free;
        for _ in 0..free {
            let order = self.slots.get(at as usize)?;
            if !order.id.is_none() {
                return None;
            }
            at = order.next;
        }
        (at == NIL).then_some(())
    }

    fn check_finished(&self) -> Option<()> {
        let ended = |order: &&Order| !order.id.is_none() && order.base.is_finished();
        let count = self.slots.iter().filter(ended).count() as u64;
        for (outside, line) in [false, true].into_iter().zip(&self.finished) {
            let (mut at, mut last) = (line.first, NIL);
            for _ in 0..line.len {
                let order = self.slots.get(at as usize).filter(ended)?;
                if order.outside() != outside || order.requests != NIL || order.before != last {
                    return None;
                }
                (last, at) = (at, order.next);
            }
            if at != NIL || last != line.last {
                return None;
            }
        }
        (self.finished.iter().map(|line| line.len as u64).sum::<u64>() == count).then_some(())
    }
}

fn decode_slot(from: &mut ByteReader<'_>) -> Result<(bool, Order), DecodeError> {
    let held = bool::decode(from)?;
    let order = match held {
        true => Order::decode(from)?,
        false => {
            let (generation, next) = Codec::decode(from)?;
            Order { generation, next, ..empty_order() }
        }
    };
    from.check(order.generation < GENERATIONS, DecodeProblem::Value)?;
    from.check(held != order.id.is_none(), DecodeProblem::Value)?;
    Ok((held, order))
}

/// Records which places of a table are in use.
struct Marks {
    taken: Vec<bool>,
    claimed: usize,
}

impl Marks {
    fn new(len: usize) -> Marks {
        Marks { taken: vec![false; len], claimed: 0 }
    }

    /// Claims a place. Returns `None` if it does not exist or is already claimed.
    fn claim(&mut self, at: u32) -> Option<()> {
        let taken = self.taken.get_mut(at as usize)?;
        if std::mem::replace(taken, true) {
            return None;
        }
        self.claimed += 1;
        Some(())
    }

    fn claim_one(&mut self, at: u32) -> Option<()> {
        if at == NIL { Some(()) } else { self.claim(at) }
    }

    /// Claims a list. A cyclic list claims a place twice.
    fn claim_list(&mut self, first: u32, next: impl Fn(u32) -> u32) -> Option<()> {
        let mut at = first;
        while at != NIL {
            self.claim(at)?;
            at = next(at);
        }
        Some(())
    }

    fn all(&self) -> bool {
        self.claimed == self.taken.len()
    }
}

#[cfg(test)]
mod tests;
