use pitlane_engine::command::CommandKind;
use pitlane_engine::desk::{DeskSettings, IdBlock};
use pitlane_engine::event::{EventKind, ExecType};
use pitlane_engine::id::{Origin, PortId, ShardId, Source};
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::pages::LargePages;

use super::*;
use crate::test_reports::{entered, event, id};

#[test]
fn the_first_required_field_that_is_absent_is_named() {
    const ORDER: u8 = msg_type::NEW_ORDER_SINGLE;
    const CANCEL: u8 = msg_type::ORDER_CANCEL_REQUEST;
    const REPLACE: u8 = msg_type::ORDER_CANCEL_REPLACE_REQUEST;
    const MASS_CANCEL: u8 = msg_type::ORDER_MASS_CANCEL_REQUEST;
    let id = Some(id(1));
    let whole = OrderFields {
        cl_ord_id: id,
        orig_cl_ord_id: id,
        symbol: Some(b"ACME"),
        side: Some(b'1'),
        transact_time: Some(Timestamp(1)),
        ord_type: Some(b'1'),
        order_qty: Some(Ok(Qty::ZERO)),
        ..OrderFields::default()
    };
    for (tag, order, needed_by) in [
        (tag::ORIG_CL_ORD_ID, OrderFields { orig_cl_ord_id: None, ..whole }, &[CANCEL, REPLACE][..]),
        (tag::CL_ORD_ID, OrderFields { cl_ord_id: None, ..whole }, &[ORDER, CANCEL, REPLACE, MASS_CANCEL]),
        (tag::SYMBOL, OrderFields { symbol: None, ..whole }, &[ORDER, CANCEL, REPLACE]),
        (tag::SYMBOL, OrderFields { symbol: None, security_id: Some(b"1"), ..whole }, &[]),
        (tag::SIDE, OrderFields { side: None, ..whole }, &[ORDER, CANCEL, REPLACE]),
        (
            tag::TRANSACT_TIME,
            OrderFields { transact_time: None, ..whole },
            &[ORDER, CANCEL, REPLACE, MASS_CANCEL],
        ),
        (tag::ORD_TYPE, OrderFields { ord_type: None, ..whole }, &[ORDER, REPLACE]),
        (tag::ORDER_QTY, OrderFields { order_qty: None, ..whole }, &[REPLACE]),
    ] {
        for kind in [ORDER, CANCEL, REPLACE, MASS_CANCEL] {
            let expected = needed_by.contains(&kind).then_some(tag);
            assert_eq!(missing(kind, &order), expected, "{} {tag}", kind as char);
        }
    }
    for kind in [ORDER, CANCEL, REPLACE, MASS_CANCEL] {
        assert_eq!(missing(kind, &whole), None, "{}", kind as char);
    }
}

#[test]
fn only_a_gtd_order_has_one_end() {
    let (time, day) = (Timestamp(5), Day(20_000));
    let missing = Err(Reason::TifDateMissing.into());
    let superfluous = Err(Reason::TifDateSuperfluous.into());
    for (tif, expire_time, expire_date, expected) in [
        (Tif::Gtd, Some(time), None, Ok(Some(time))),
        (Tif::Gtd, None, Some(day), Ok(Some(Day(20_001).start()))),
        (Tif::Gtd, None, None, missing),
        (Tif::Gtd, Some(time), Some(day), superfluous),
        (Tif::Day, None, None, Ok(None)),
        (Tif::Day, Some(time), None, superfluous),
        (Tif::Gtc, None, Some(day), superfluous),
    ] {
        let order = OrderFields { expire_time, expire_date, ..OrderFields::default() };
        assert_eq!(tif_date(&order, tif), expected, "{tif:?} {expire_time:?} {expire_date:?}");
    }
}

#[test]
fn a_quantity_that_cannot_be_read_has_its_reason() {
    let two = Qty::whole(2).unwrap();
    for (given, expected) in [
        (Some(Ok(two)), Ok(two)),
        (Some(Err(TextError::TooManyDecimals)), Err(Reason::BadLot.into())),
        (Some(Err(TextError::Range)), Err(Reason::Overflow.into())),
        (None, Err(Reason::QuantityNotPositive.into())),
    ] {
        assert_eq!(qty(given), expected);
    }
    let with = |given| special(&OrderFields { special: given, ..OrderFields::default() });
    let floor = SpecialTerms { max_floor: Some(two), ..SpecialTerms::default() };
    assert_eq!(with(None), Ok(None));
    assert_eq!(with(Some(Ok(floor))), Ok(Some(floor)));
    assert_eq!(with(Some(Err(TextError::TooManyDecimals))), Err(Reason::BadLot.into()));
    assert_eq!(with(Some(Err(TextError::Range))), Err(Reason::Overflow.into()));
}

#[test]
fn a_request_reaches_the_shard_as_sent_by_the_client_or_by_the_platform() {
    type IsExpected = fn(&CommandKind) -> bool;
    const CLIENT: SenderId = SenderId(9);
    let source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };
    let settings = DeskSettings {
        port: PortId(0),
        shards: 1,
        orders_max: 8,
        ids_max: 32,
        finished_max: 8,
        prefix: b'f',
        seed: 1,
        pages: LargePages::NONE,
    };
    let mut desk = Desk::new(settings, IdBlock { next: 1, end: 9 });
    let (mut ports, mut shards) = mesh(&[PortClass::Client], 1, Depths { commands: 16, events: 16 });
    let mut image = entered(source);
    image.what = ExecType::Snapshot;
    assert!(desk.handle_event(ShardId(0), &event(1, EventKind::Order(image))).is_none());

    let ticket = |id| Ticket { source, token: 1, id, ..Ticket::default() };
    let (order, key, terms) = (image.id, OrderKey::of_root(image.id), image.terms);
    let special_terms = Terms { special: true, ..terms };
    let special = Some(SpecialTerms { min_qty: Some(terms.qty), ..SpecialTerms::default() });
    let changes = Changes::default().with_qty(terms.qty);
    let filter = CancelFilter { source: Some(source), ..CancelFilter::default() };
    let is_submit = |body: &CommandKind| matches!(body, CommandKind::Submit { .. });
    let is_modify = |body: &CommandKind| matches!(body, CommandKind::Modify { .. });
    let is_cancel = |body: &CommandKind| matches!(body, CommandKind::Cancel { .. });
    let is_cancel_orders = |body: &CommandKind| matches!(body, CommandKind::CancelOrders { .. });
    let cases: [(ClientRequest, SenderId, usize, IsExpected); 7] = [
        (ClientRequest::Submit { ticket: ticket(id(2)), terms, special: None }, CLIENT, 1, is_submit),
        (
            ClientRequest::Submit { ticket: ticket(id(3)), terms: special_terms, special },
            CLIENT,
            2,
            is_submit,
        ),
        (
            ClientRequest::Modify { ticket: ticket(id(4)), key, order, changes, special: None },
            CLIENT,
            1,
            is_modify,
        ),
        (
            ClientRequest::Modify {
                ticket: ticket(id(5)),
                key,
                order,
                changes: changes.with_special(true),
                special,
            },
            CLIENT,
            2,
            is_modify,
        ),
        (ClientRequest::Cancel { ticket: ticket(id(6)), key, order }, CLIENT, 1, is_cancel),
        (ClientRequest::Cancel { ticket: ticket(IntId::NONE), key, order }, SenderId::INTERNAL, 1, is_cancel),
        (ClientRequest::CancelOrders { ticket: ticket(id(7)), filter }, CLIENT, 1, is_cancel_orders),
    ];
    for (request, sender, count, is_expected) in cases {
        assert_eq!(request.ticket().source, source);
        request.send(&mut desk, &mut ports[0], CLIENT).unwrap();
        let commands: Vec<_> = std::iter::from_fn(|| shards[0].poll_command()).collect();
        assert_eq!(commands.len(), count, "{request:?}");
        let last = commands.last().unwrap();
        assert!(is_expected(&last.body) && last.sender == sender, "{request:?} {last:?}");
    }
}
