use super::*;
use crate::event::ExecType;

#[test]
fn flags_are_independent_of_each_other() {
    let mut order = order(1);
    order.set_triggered(true);
    order.set_in_doubt(true);
    order.set_triggered(true);
    let flags = |order: &Order| {
        let venue = [order.outside(), order.at_venue(), order.triggered(), order.in_doubt()];
        (venue, [order.acknowledged(), order.unsure(), order.status_queried(), order.modify_requested()])
    };
    assert_eq!(flags(&order), ([false, false, true, true], [false; 4]));
    order.set_triggered(false);
    order.set_modify_requested(true);
    assert_eq!(flags(&order), ([false, false, false, true], [false, false, false, true]));
}

fn id(n: u64) -> IntId {
    IntId::numbered(b't', n)
}

fn order(n: u64) -> Order {
    Order { id: id(n), ..empty_order() }
}

#[test]
fn a_forgotten_order_is_not_found_under_its_old_handle() {
    let mut orders = Orders::new(ShardId(3), 2, 0, LargePages::NONE);
    let slot = orders.insert(order(1));
    let handle = orders.handle(slot);
    assert_eq!(orders.find(handle), Some(slot));
    orders.finish(slot);
    assert_eq!((orders.oldest_finished(false), orders.finished(false)), (Some(slot), 1));
    orders.forget_oldest(false);
    assert_eq!(orders.find(handle), None);
    assert!(orders.is_empty());
    let again = orders.insert(order(2));
    assert_eq!(again, slot);
    assert_ne!(orders.handle(again), handle);
    assert_eq!(orders.find(handle), None);
    assert_eq!(orders.find(OrderHandle::new(ShardId(2), 1, slot)), None);
    assert_eq!(orders.find(OrderHandle::NONE), None);
}

#[test]
fn there_is_room_up_to_the_maximum() {
    let mut orders = Orders::new(ShardId(0), 1, 0, LargePages::NONE);
    assert!(orders.has_room());
    orders.insert(order(1));
    assert!(!orders.has_room());
    assert_eq!((orders.len(), orders.held()), (1, 1));
}

#[test]
fn finished_orders_stand_in_line() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let slots: Vec<u32> = (0..3).map(|n| orders.insert(order(n))).collect();
    for &slot in slots.iter().rev() {
        orders.finish(slot);
    }
    for &slot in slots.iter().rev() {
        assert_eq!(orders.oldest_finished(false), Some(slot));
        orders.forget_oldest(false);
    }
    assert_eq!(orders.oldest_finished(false), None);
}

/// The first order keeps an old `before` after the one before it was forgotten.
#[test]
fn an_order_that_has_become_the_first_can_be_reopened() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let slots: Vec<u32> = (0..3).map(|n| orders.insert(order(n))).collect();
    slots.iter().for_each(|&slot| orders.finish(slot));
    orders.forget_oldest(false);
    let reused = orders.insert(order(3));
    assert_eq!(reused, slots[0]);
    orders.unfinish(slots[1]);
    assert_eq!((orders.oldest_finished(false), orders.finished(false)), (Some(slots[2]), 1));
    orders.unfinish(slots[2]);
    assert_eq!((orders.oldest_finished(false), orders.finished(false)), (None, 0));
    orders.finish(reused);
    assert_eq!(orders.oldest_finished(false), Some(reused));
}

#[test]
fn orders_of_outside_venues_stand_in_a_line_of_their_own() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let outside = orders.insert(order(1));
    orders.get_mut(outside).set_outside(true);
    let simulated = orders.insert(order(2));
    orders.finish(outside);
    orders.finish(simulated);
    assert_eq!((orders.finished(false), orders.finished(true)), (1, 1));
    assert_eq!(
        (orders.oldest_finished(false), orders.oldest_finished(true)),
        (Some(simulated), Some(outside))
    );
}

#[test]
fn the_place_of_answered_requests_is_reused() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let slot = orders.insert(order(1));
    for _ in 0..5 {
        orders.requests_mut(slot);
        assert!(orders.requests(slot).is_some());
        orders.release_answered(slot);
        orders.release_answered(slot);
        assert!(orders.requests(slot).is_none());
    }
    assert_eq!(orders.requests.len(), 1);
}

#[test]
fn a_modification_moves_the_name_behind() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let slot = orders.insert(order(1));
    orders.rename(slot, &id(2));
    assert_eq!((orders.get(slot).id, orders.orig_id(slot)), (id(2), Some(&id(1))));
    orders.rename(slot, &id(3));
    assert_eq!((orders.get(slot).id, orders.orig_id(slot)), (id(3), Some(&id(2))));
    assert_eq!(*orders.first_id(slot), id(1));
    orders.finish(slot);
    orders.forget_oldest(false);
    let slot = orders.insert(order(4));
    assert!(orders.orig_id(slot).is_none());
    orders.rename(slot, &id(5));
    assert_eq!((orders.orig_id(slot), orders.orig_ids.len()), (Some(&id(4)), 1));
}

#[test]
fn a_modification_records_its_sender_beside_that_of_the_order() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let slot = orders.insert(Order { submitted_by: SenderId(20), ..order(1) });
    assert_eq!(orders.sent(slot), SentBy { submitted: SenderId(20), ..SentBy::default() });
    orders.set_modified_by(slot, SenderId(21));
    let (submitted, modified) = (SenderId(20), SenderId(21));
    assert_eq!(orders.sent(slot), SentBy { submitted, modified, ..SentBy::default() });
}

#[test]
fn a_report_has_the_ids_given_and_the_exact_average() {
    let mut orders = Orders::new(ShardId(0), 10, 0, LargePages::NONE);
    let slot = orders.insert(order(1));
    let (two, price) = (Qty::from_raw(2), Price::from_raw(7));
    let notional = Notional::of(Price::from_raw(5), two);
    let order = orders.get_mut(slot);
    (order.cum, order.notional) = (two, notional);
    let report = |orders: &Orders, what, last_qty| {
        let state = (what, Status::New, Reason::None);
        orders.status_event(slot, state, (&id(8), Some(&id(9))), (last_qty, price), SenderId::NONE)
    };
    let filled = report(&orders, ExecType::Filled, two);
    assert_eq!((filled.id, filled.orig_id), (id(8), id(9)));
    assert_eq!(filled.avg_price, price, "the first fill is its own average");
    let second = report(&orders, ExecType::Filled, Qty::from_raw(1));
    assert_eq!(second.avg_price, Price::from_raw(5));
    assert_eq!(report(&orders, ExecType::Snapshot, two).avg_price, Price::from_raw(5));
}
