use super::*;
use crate::command::ExecRef;
use crate::id::IntId;
use crate::number::{Price, Qty};

/// A change of one part of the orders.
type Change = fn(&mut Orders);

fn order(number: u64) -> Order {
    Order { id: IntId::numbered(b't', number), ..empty_order() }
}

fn end(orders: &mut Orders, slot: u32) {
    orders.get_mut(slot).base = Base::Canceled;
    orders.finish(slot);
}

/// Slots 0 to 2 have finished orders of simulated venues, 3 and 4 of outside venues; 5 has an order
/// with a request, former ids and three executions, the last of them a correction; 6 a plain order;
/// 7 and 8 are free, and so is an entry of each list.
fn orders() -> Orders {
    let mut orders = Orders::new(ShardId(0), 20, 20, LargePages::NONE);
    for number in 0..9 {
        orders.insert(order(number));
    }
    for slot in [3, 4, 7, 8] {
        orders.get_mut(slot).set_outside(true);
    }
    for slot in [5, 8] {
        orders.rename(slot, &IntId::numbered(b'u', slot.into()));
        orders.requests_mut(slot).replace = None;
        for exec in [1, 2] {
            orders.remember(slot, ExecRef(exec), Qty::from_raw(1), Price::from_raw(1));
        }
        orders.remember_correction(slot, ExecRef(1), ExecRef(3));
    }
    orders.release_answered(8);
    orders.get_mut(5).cum = Qty::from_raw(2);
    orders.set_last_fill(5, Qty::from_raw(1), Price::from_raw(3));
    orders.set_modified_by(5, SenderId(20));
    for slot in [7, 8] {
        end(&mut orders, slot);
        orders.forget_oldest(true);
    }
    (0..5).for_each(|slot| end(&mut orders, slot));
    orders
}

fn bytes(orders: &Orders) -> Vec<u8> {
    let mut bytes = Vec::new();
    orders.save(&mut bytes);
    bytes
}

fn decode(bytes: &[u8]) -> Result<Orders, DecodeError> {
    Orders::load(&mut ByteReader::new(bytes), ShardId(0), 20, 20, LargePages::NONE)
}

fn problem_of(change: Change) -> Option<DecodeProblem> {
    let mut orders = orders();
    change(&mut orders);
    decode(&bytes(&orders)).err().map(|damage| damage.problem)
}

fn digest(orders: &Orders) -> u64 {
    let mut sum = Digest::new();
    orders.fold(&mut sum);
    sum.sum()
}

#[test]
fn loaded_orders_are_the_saved_ones() {
    let orders = orders();
    let again = decode(&bytes(&orders)).unwrap();
    assert_eq!((bytes(&again), digest(&again)), (bytes(&orders), digest(&orders)));
    assert_eq!([5, 6].map(|slot| again.sent(slot)), [5, 6].map(|slot| orders.sent(slot)));
    assert_eq!(again.sent(5).modified, SenderId(20));
    assert_eq!([5, 6].map(|slot| again.get(slot).modify_requested()), [true, false]);
    assert_eq!((again.held(), again.executions_held), (7, 3));
    assert_eq!((again.finished(false), again.finished(true)), (3, 2));
}

#[test]
fn orders_that_contradict_each_other_are_not_loaded() {
    let changes: [(&str, Change); 24] = [
        ("a free list that begins at an order", |o| o.free = 6),
        ("a free list that is too short", |o| o.slots[o.free as usize].next = NIL),
        ("a free list without an end", |o| o.slots[7].next = 8),
        ("a finished order that is in no list", |o| o.get_mut(6).base = Base::Filled),
        ("an unfinished order in the list", |o| o.get_mut(1).base = Base::Working),
        ("an order in the list of outside venues", |o| o.get_mut(1).set_outside(true)),
        ("a finished order with a request", |o| _ = o.requests_mut(1)),
        ("a wrong order before", |o| o.get_mut(2).before = 0),
        ("a wrong last order", |o| o.finished[0].last = 1),
        ("a wrong length", |o| o.finished[0].len = 2),
        ("a wrong length and last order", |o| (o.finished[0].len, o.finished[0].last) = (2, 1)),
        ("a wrong list of outside venues", |o| o.finished[1] = FinishedList::EMPTY),
        ("former ids of no order", |o| o.orig_ids.push(FormerIds::default())),
        ("former ids that are free and in use", |o| o.orig_ids_free.push(o.slots[5].orig_id)),
        ("former ids that do not exist", |o| o.slots[6].orig_id = 9),
        ("requests of no order", |o| o.requests.push(Requests::default())),
        ("requests of two orders", |o| o.slots[6].requests = o.slots[5].requests),
        ("requests that are free and in use", |o| o.requests_free = o.slots[5].requests),
        ("an execution of no order", |o| o.executions.push(o.executions[0])),
        ("executions of two orders", |o| o.slots[6].execution = o.slots[5].execution),
        ("executions in a circle", |o| o.executions[0].next = o.slots[5].execution),
        ("a correction of a correction", |o| o.executions[0].root = o.slots[5].execution),
        ("a correction of nothing", |o| o.executions[0].root = 99),
        ("executions that are free and in use", |o| o.executions_free = o.slots[5].execution),
    ];
    for (name, change) in changes {
        assert_eq!(problem_of(change), Some(DecodeProblem::Contradiction), "{name}");
    }
    assert_eq!(problem_of(|o| o.slots[5].generation = GENERATIONS), Some(DecodeProblem::Value));
    assert_eq!(problem_of(|o| o.slots[5].generation = GENERATIONS - 1), None);
}

#[test]
fn a_count_of_orders_is_trusted_only_as_far_as_there_are_bytes() {
    let damage = DecodeError { at: 4, problem: DecodeProblem::Short };
    assert_eq!(decode(&[200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).err(), Some(damage));
}

#[test]
fn a_digest_contains_the_number_of_orders_in_each_list() {
    let changes: [(&str, Change); 6] = [
        ("nothing", |_| {}),
        ("one more", |o| _ = o.insert(order(20))),
        ("one that has ended", |o| end(o, 6)),
        ("one that is forgotten", |o| o.forget_oldest(false)),
        ("another name", |o| o.rename(6, &IntId::numbered(b'v', 1))),
        ("another execution", |o| _ = o.remember(6, ExecRef(9), Qty::from_raw(1), Price::ZERO)),
    ];
    let mut known = std::collections::BTreeMap::new();
    for (name, change) in changes {
        let mut orders = orders();
        change(&mut orders);
        assert_eq!(known.insert(digest(&orders), name), None, "{name}");
    }
}
