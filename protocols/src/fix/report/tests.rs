use pitlane_engine::id::{Origin, PortId, Source};
use pitlane_engine::refdata::sample;
use pitlane_engine::terms::{ExecInst, OrderKind, Side};

use super::*;
use crate::fix::encode::Encoder;
use crate::test_reports::{entered, id};

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);
const SOURCE: Source = Source { origin: Origin::Fix, port: PortId(0), session: 1 };

/// Returns the fields that are written, without TransactTime.
fn written(write: impl FnOnce(&mut Draft)) -> String {
    let (mut encoder, mut out) = (Encoder::new(FixVersion::Fix44, "PITLANE", "CLIENT1"), Vec::new());
    let mut draft = encoder.begin(&mut out, b'8', 1, NOW);
    write(&mut draft);
    draft.finish();
    let text = String::from_utf8(out).unwrap();
    let body = text.split('\x01').skip_while(|field| !field.starts_with("52=")).skip(1);
    let kept = body.take_while(|field| !field.starts_with("10=")).filter(|field| !field.starts_with("60="));
    kept.collect::<Vec<_>>().join("|")
}

#[test]
fn a_report_has_the_prices_that_its_order_type_has_and_the_client_gave() {
    let (limit, stop) = (sample::price("10"), sample::price("9"));
    for (kind, limit_given, stop_given, fields) in [
        (OrderKind::Market, false, false, ""),
        (OrderKind::Market, true, true, ""),
        (OrderKind::Limit, true, false, "|44=10"),
        (OrderKind::Limit, false, true, ""),
        (OrderKind::Stop, false, true, "|99=9"),
        (OrderKind::Stop, true, false, ""),
        (OrderKind::StopLimit, true, true, "|44=10|99=9"),
        (OrderKind::StopLimit, true, false, "|44=10"),
        (OrderKind::StopLimit, false, true, "|99=9"),
    ] {
        let terms =
            Terms { kind, limit, stop, limit_given, stop_given, tif: Tif::Gtc, ..entered(SOURCE).terms };
        let expected = format!("54=1|38=10|40={}{fields}|59=1", kind.code() as char);
        assert_eq!(written(|draft| order_terms(draft, &terms)), expected);
        let dated = Terms { tif: Tif::Gtd, tif_date: NOW, ..terms };
        let expected =
            format!("54=1|38=10|40={}{fields}|59=6|126=20270115-08:00:00.000", kind.code() as char);
        assert_eq!(written(|draft| order_terms(draft, &dated)), expected);
    }
}

#[test]
fn a_report_names_the_request_of_the_client_that_it_answers() {
    let none = IntId::NONE;
    let pending = (id(2), id(3));
    // The event and its id; the pending cancel and replacement; ClOrdID and OrigClOrdID of the
    // report, and the id under which the client knows the order after it.
    for (what, reported, (cancel, replace), expected, after) in [
        (ExecType::CancelPending, id(2), pending, (id(2), id(1)), id(1)),
        (ExecType::CancelPending, id(9), pending, (id(1), none), id(1)),
        (ExecType::Canceled, id(2), pending, (id(2), id(1)), id(1)),
        (ExecType::Canceled, id(9), pending, (id(1), none), id(1)),
        (ExecType::Canceled, none, (none, none), (id(1), none), id(1)),
        (ExecType::ReplacePending, id(3), pending, (id(3), id(1)), id(1)),
        (ExecType::ReplacePending, id(9), pending, (id(1), none), id(1)),
        (ExecType::Replaced, id(3), pending, (id(3), id(1)), id(3)),
        (ExecType::Replaced, id(9), pending, (id(1), none), id(1)),
        (ExecType::Replaced, none, (none, none), (id(1), none), id(1)),
        (ExecType::Filled, id(2), pending, (id(1), none), id(1)),
        (ExecType::Accepted, id(3), pending, (id(1), none), id(1)),
    ] {
        let order = ClientOrder { cancel, replace, ..ClientOrder::new(id(1), entered(SOURCE).terms, NOW) };
        let mut known = order;
        let (last_qty, last_price) = (Qty::whole(2).unwrap(), sample::price("10"));
        let event =
            OrderReport { id: reported, last_qty, last_price, ..crate::test_reports::report(SOURCE, what) };
        let report = ExecutionReport::of_event(&event, NOW, Uuid::derived(1, 0, 1), &mut known);
        assert_eq!((report.cl_ord_id, report.orig_cl_ord_id), expected, "{what:?} {reported:?}");
        assert_eq!(known.cl_ord_id, after, "{what:?} {reported:?}");
        let fill = (what == ExecType::Filled).then_some((last_qty, last_price));
        assert_eq!(report.last, fill, "{what:?}");
    }
}

#[test]
fn a_refusal_names_the_order_unless_another_one_has_its_id() {
    let order = OrderFields { cl_ord_id: Some(id(1)), ..OrderFields::default() };
    let refused =
        |profile, why| written(|draft| refusal(draft, profile, Uuid::derived(1, 0, 1), NOW, &order, why));
    let unknown = Reason::UnknownSecurity.into();
    assert!(refused(FixProfile::Spec, unknown).starts_with("37=o1|11=o1|17="));
    let duplicate = refused(FixProfile::Spec, Reason::DuplicateId.into());
    assert!(duplicate.starts_with("37=NONE|11=o1|17="));
    assert!(
        duplicate.ends_with(&format!("|58=duplicate-order-id: {}", Reason::DuplicateId.text())),
        "{duplicate}"
    );
    for (profile, has) in [(FixProfile::Spec, false), (FixProfile::Fix42, true)] {
        assert_eq!(refused(profile, unknown).contains("|20=0|"), has);
    }
}

#[test]
fn an_order_that_is_not_known_is_reported_as_rejected() {
    let of = |cl_ord_id: Option<&IntId>, order: OrderFields| {
        written(|draft| {
            unknown_order(draft, FixProfile::Spec, Uuid::derived(1, 0, 1), NOW, cl_ord_id, &order);
        })
    };
    let words = format!("58=unknown-order: {}", Reason::UnknownOrder.text());
    let plain = of(None, OrderFields::default());
    assert!(plain.starts_with("37=NONE|17="), "{plain}");
    let end = |symbol: &str, side| format!("|150=I|39=8|103=5|55={symbol}|54={side}|151=0|14=0|6=0|{words}");
    assert!(plain.ends_with(&end("[N/A]", '7')), "{plain}");
    let named =
        of(Some(&id(4)), OrderFields { symbol: Some(b"ACME"), side: Some(b'2'), ..Default::default() });
    assert!(named.starts_with("37=NONE|11=o4|17=") && named.ends_with(&end("ACME", '2')), "{named}");
}

#[test]
fn a_mass_cancel_is_refused_only_if_it_affects_no_order() {
    let reference = RefData::check(sample::sound()).unwrap();
    let reason = OrderRejectReason::from(Reason::LaneFull);
    let busy = format!("|58={}: {}", reason.code(), reason.text());
    for (request_type, affected, refusal, start, end) in [
        (b'7', 0, None, "530=7|531=7|533=0", ""),
        (b'1', 3, None, "530=1|531=1|533=3", ""),
        (b'1', 3, Some(reason), "530=1|531=1|533=3", &*busy),
        (b'1', 0, Some(reason), "530=1|531=0|532=99|533=0", &*busy),
        (0, 0, Some(reason), "530=7|531=0|532=99|533=0", &*busy),
    ] {
        let report = MassCancelReport {
            cl_ord_id: id(1),
            request_type,
            side: Some(Side::Sell.code()),
            security: Some(SecurityId(1)),
            affected,
            refusal,
        };
        let text = written(|draft| mass_cancel(draft, FixVersion::Fix44, &reference, NOW, &report));
        assert_eq!(text, format!("11=o1|37=o1|{start}|55=ACME|48=1|22=8|54=2{end}"));
    }
}

#[test]
fn special_terms_are_written_if_the_order_has_them() {
    let qty = |whole| Some(Qty::whole(whole).unwrap());
    let exec_inst = ExecInst::parse(b"6").unwrap();
    for (special, expected) in [
        (SpecialTerms::default(), ""),
        (SpecialTerms { exec_inst, ..SpecialTerms::default() }, "18=6"),
        (SpecialTerms { min_qty: qty(2), ..SpecialTerms::default() }, "110=2"),
        (SpecialTerms { exec_inst, min_qty: qty(2), max_floor: qty(3) }, "18=6|110=2|111=3"),
    ] {
        assert_eq!(written(|draft| special_terms(draft, &special)), expected);
    }
}
