use super::*;

#[test]
fn the_first_required_field_that_is_absent_is_named() {
    const ORDER: u8 = msg_type::NEW_ORDER_SINGLE;
    const CANCEL: u8 = msg_type::ORDER_CANCEL_REQUEST;
    const REPLACE: u8 = msg_type::ORDER_CANCEL_REPLACE_REQUEST;
    const MASS_CANCEL: u8 = msg_type::ORDER_MASS_CANCEL_REQUEST;
    let id = Some(IntId::numbered(b'o', 1));
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
