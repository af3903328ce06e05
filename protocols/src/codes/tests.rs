use super::*;

/// OrdStatus (39) as the specification lists it, under "States and transitions".
const SPEC_ORD_STATUS: &[u8] = b"012468AE";
/// ExecType (150) as the specification lists it, under "FIX Execution Report".
const SPEC_EXEC_TYPE: &[u8] = b"068EIFA";
/// TimeInForce (59) as the specification lists it.
const SPEC_TIME_IN_FORCE: &[u8] = b"0123467";

fn check_wire_names<T: WireName + PartialEq + std::fmt::Debug>() {
    for &value in T::VALUES {
        let name = value.wire_name();
        assert_eq!(T::from_wire_name(name), Some(value));
        assert!(name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_'), "{name}");
        assert_eq!(T::from_wire_name(&name.to_lowercase()), None);
    }
    assert_eq!(T::from_wire_name(""), None);
}

fn check_codes<T: Code + PartialEq + std::fmt::Debug>(codes: &[u8]) {
    assert_eq!(T::VALUES.iter().map(|value| value.code()).collect::<Vec<_>>(), codes);
    for code in 0..=u8::MAX {
        assert_eq!(T::from_code(code).is_some(), codes.contains(&code));
        assert!(T::from_code(code).is_none_or(|value| value.code() == code));
    }
}

#[test]
fn every_name_is_read_back_as_written() {
    check_wire_names::<Side>();
    check_wire_names::<OrderKind>();
    check_wire_names::<Tif>();
    check_wire_names::<Status>();
    check_wire_names::<ExecType>();
    check_wire_names::<RequestKind>();
    check_wire_names::<Origin>();
    check_wire_names::<MovementKind>();
    check_wire_names::<StrategyPhase>();
    check_wire_names::<TradingSession>();
    check_wire_names::<OptionKind>();
    assert_eq!(OrderKind::from_wire_name("STOP_LIMIT"), Some(OrderKind::StopLimit));
}

#[test]
fn every_value_has_a_name() {
    assert_eq!(Side::VALUES, Side::BOTH);
    assert_eq!(OrderKind::VALUES, OrderKind::ALL);
    assert_eq!(Tif::VALUES, Tif::ALL);
    assert_eq!(Status::VALUES, Status::ALL);
    assert_eq!(MovementKind::VALUES, MovementKind::ALL);
    assert_eq!(TradingSession::VALUES, TradingSession::ALL);
}

#[test]
fn fix_codes_are_those_of_the_specification() {
    check_codes::<Side>(b"12");
    check_codes::<OrderKind>(b"1234");
    check_codes::<Tif>(SPEC_TIME_IN_FORCE);
    check_codes::<RequestKind>(b"12");
}

#[test]
fn the_profile_spec_never_leaves_the_lists_of_the_specification() {
    for &what in ExecType::VALUES {
        for &status in Status::VALUES {
            let (exec_type, ord_status) =
                (exec_type(FixProfile::Spec, what, status), ord_status(FixProfile::Spec, status));
            assert!(SPEC_EXEC_TYPE.contains(&exec_type), "{what:?} {status:?}");
            assert!(SPEC_ORD_STATUS.contains(&ord_status), "{what:?} {status:?}");
        }
    }
}

/// Columns: the change, the status after it, and (150, 39) in the profiles `spec` and `strict44`
/// and in FIX 4.2.
#[test]
fn each_change_has_the_codes_of_the_table() {
    let table = [
        (ExecType::Entered, Status::PendingNew, b"AA", b"AA", b"AA"),
        (ExecType::Accepted, Status::New, b"00", b"00", b"00"),
        (ExecType::Accepted, Status::PendingCancel, b"06", b"06", b"06"),
        (ExecType::Rejected, Status::Rejected, b"88", b"88", b"88"),
        (ExecType::Rejected, Status::Canceled, b"I4", b"44", b"44"),
        (ExecType::Filled, Status::PartiallyFilled, b"F1", b"F1", b"11"),
        (ExecType::Filled, Status::Filled, b"F2", b"F2", b"22"),
        (ExecType::Filled, Status::PendingCancel, b"F6", b"F6", b"16"),
        (ExecType::Filled, Status::PendingReplace, b"FE", b"FE", b"1E"),
        (ExecType::Filled, Status::Canceled, b"F4", b"F4", b"14"),
        (ExecType::CancelPending, Status::PendingCancel, b"66", b"66", b"66"),
        (ExecType::Canceled, Status::Canceled, b"I4", b"44", b"44"),
        (ExecType::Expired, Status::Expired, b"I4", b"CC", b"CC"),
        (ExecType::ReplacePending, Status::PendingReplace, b"EE", b"EE", b"EE"),
        (ExecType::Replaced, Status::New, b"I0", b"50", b"55"),
        (ExecType::Replaced, Status::PartiallyFilled, b"I1", b"51", b"51"),
        (ExecType::Replaced, Status::Filled, b"I2", b"52", b"52"),
        (ExecType::Triggered, Status::New, b"I0", b"I0", b"00"),
        (ExecType::Corrected, Status::PartiallyFilled, b"I1", b"I1", b"11"),
        (ExecType::Snapshot, Status::Filled, b"I2", b"I2", b"22"),
    ];
    for (what, status, spec, strict, old) in table {
        let profiles = [(FixProfile::Spec, spec), (FixProfile::Strict44, strict), (FixProfile::Fix42, old)];
        for (profile, expected) in profiles {
            let pair = [exec_type(profile, what, status), reported_ord_status(profile, what, status)];
            assert_eq!(&pair, expected, "{what:?} {status:?} {profile:?}");
        }
    }
}

#[test]
fn fix_42_knows_fewer_reasons() {
    let orders = [0, 6, 8, 11, 13, 99].map(|reason| FixProfile::Fix42.ord_rej_reason(reason));
    let requests = [0, 3, 6, 99].map(|reason| FixProfile::Fix42.cxl_rej_reason(reason));
    assert_eq!((orders, requests), ([0, 6, 8, 0, 0, 0], [0, 3, 2, 2]));
    assert_eq!((FixProfile::Spec.ord_rej_reason(99), FixProfile::Strict44.cxl_rej_reason(6)), (99, 6));
    assert_eq!((exec_trans_type(ExecType::Filled), exec_trans_type(ExecType::Snapshot)), (b'0', b'3'));
}

#[test]
fn refusals_have_the_numbers_of_fix_44() {
    for &reason in Reason::ALL {
        assert!(matches!(ord_rej_reason(reason), 0..=15 | 99), "{reason:?}");
        assert!(matches!(cxl_rej_reason(reason), 0..=3 | 5 | 6 | 99), "{reason:?}");
    }
    let orders = [
        (Reason::UnknownSecurity, 1),
        (Reason::UnknownAccount, 15),
        (Reason::BadLot, 13),
        (Reason::BadTick, 99),
        (Reason::DuplicateId, 6),
        (Reason::NoAuctionAhead, 4),
        (Reason::MaxPosition, 3),
        (Reason::VenueUnavailable, 0),
        (Reason::Halted, 2),
        (Reason::StopSuperfluous, 11),
        (Reason::UnknownOrder, 5),
        (Reason::UnknownStrategy, 99),
    ];
    orders.into_iter().for_each(|(reason, number)| assert_eq!(ord_rej_reason(reason), number, "{reason:?}"));
    let requests = [
        (Reason::OrderFinished, 0),
        (Reason::UnknownOrder, 1),
        (Reason::NotAcknowledged, 2),
        (Reason::RequestPending, 3),
        (Reason::DuplicateId, 6),
        (Reason::BadTick, 99),
    ];
    requests
        .into_iter()
        .for_each(|(reason, number)| assert_eq!(cxl_rej_reason(reason), number, "{reason:?}"));
}

#[test]
fn text_is_the_code_and_its_description() {
    let text = ReasonText(Reason::BadLot).to_string();
    assert_eq!(text, "bad-lot: the quantity is not a multiple of the lot size");
    assert_eq!(ReasonText(Reason::None).to_string(), "");
}

#[test]
fn a_session_of_fix_4_2_has_its_own_values_and_other_versions_the_configured_ones() {
    for profile in [FixProfile::Spec, FixProfile::Strict44] {
        assert_eq!(profile.in_version(FixVersion::Fix42), FixProfile::Fix42);
        assert_eq!(profile.in_version(FixVersion::Fix44), profile);
        assert_eq!(profile.in_version(FixVersion::Fix50Sp2), profile);
    }
}
