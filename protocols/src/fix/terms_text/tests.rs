use pitlane_engine::event::ExecType;
use pitlane_engine::id::Uuid;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::sample;
use pitlane_engine::rng::Rng;
use pitlane_engine::terms::{OrderKind, Side, Status, Tif};
use pitlane_engine::time::{NS_PER_MS, Timestamp};

use super::*;
use crate::fix::encode::Encoder;
use crate::fix::tag::prefix;
use crate::fix::version::FixVersion;

const NOW: Timestamp = Timestamp(1_800_000_000_000_000_000);

/// Returns terms of which few values are possible, so that equal ones follow each other.
fn random_terms(rng: &mut Rng) -> Terms {
    let mut pick = |count: u64| rng.next_u64() % count;
    Terms {
        qty: Qty::from_raw(1 + pick(2) as i64 * 123_456_789),
        limit: Price::from_raw(pick(2) as i64 * 1_000_000),
        stop: Price::from_raw(pick(2) as i64 * 2_000_000),
        tif_date: Timestamp(NOW.0 + pick(2) * NS_PER_MS),
        // Some of them do not exist.
        security: SecurityId(pick(4) as u32),
        account: AccountId(pick(2) as u16),
        side: Side::BOTH[pick(2) as usize],
        kind: OrderKind::ALL[pick(4) as usize],
        tif: if pick(2) == 0 { Tif::Day } else { Tif::Gtd },
        limit_given: pick(2) == 0,
        stop_given: pick(2) == 0,
        ..Terms::default()
    }
}

fn written(text_bytes: usize, write: impl FnOnce(&mut Draft)) -> Vec<u8> {
    let (mut encoder, mut out) = (Encoder::new(FixVersion::Fix44, "PITLANE", "CLIENT1"), Vec::new());
    let mut draft = encoder.begin(&mut out, b'8', 1, NOW);
    // A long text ends anywhere in the page of the encoder.
    draft.text(prefix::TEXT, &vec![b'x'; text_bytes]);
    write(&mut draft);
    draft.finish();
    out
}

/// Returns the reference data, and the same with other symbols.
fn references() -> (RefData, RefData) {
    let mut renamed = sample::sound();
    renamed.securities.iter_mut().for_each(|security| security.symbol += ".NEW");
    (RefData::check(sample::sound()).unwrap(), RefData::check(renamed).unwrap())
}

/// The symbols change without notice, so that written fields differ from kept ones.
#[test]
fn fields_are_kept_from_report_to_report_until_they_are_forgotten() {
    let (reference, renamed) = references();
    let mut kept = TermsText::default();
    let write = |kept: &mut TermsText, reference, terms| {
        let text = written(0, |draft| kept.write(draft, reference, terms));
        String::from_utf8(text).unwrap().contains(".NEW")
    };
    let terms = Terms { security: SecurityId(1), account: AccountId(1), ..Terms::default() };
    let resized = Terms { qty: Qty::from_raw(5), ..terms };
    let elsewhere = Terms { account: AccountId(2), ..terms };
    assert!(!write(&mut kept, &reference, &terms));
    assert!(!write(&mut kept, &renamed, &terms), "all fields are kept");
    assert!(!write(&mut kept, &renamed, &resized), "those of account and security are kept");
    assert!(write(&mut kept, &renamed, &elsewhere), "other ones are written");
    assert!(write(&mut kept, &reference, &elsewhere));
    kept.clear();
    assert!(!write(&mut kept, &reference, &elsewhere));
}

#[test]
fn kept_fields_are_those_that_are_written_again() {
    let (reference, renamed) = references();
    let (mut rng, mut kept) = (Rng::new(1), TermsText::default());
    let id = IntId::numbered(b'o', 1);
    for round in 0..3_000u64 {
        let reference = if round < 2_000 { &reference } else { &renamed };
        if round == 2_000 {
            kept.clear();
        }
        let terms = random_terms(&mut rng);
        let report = ExecutionReport {
            exec_id: Uuid::derived(1, 0, round),
            at: NOW,
            what: ExecType::Accepted,
            status: Status::New,
            reason: Reason::None,
            cl_ord_id: id,
            orig_cl_ord_id: IntId::NONE,
            cum_qty: Qty::ZERO,
            avg_price: Price::ZERO,
            last: None,
        };
        // The second report of an order follows its first one.
        for _ in 0..1 + round % 3 {
            let text_bytes = (rng.next_u64() % 800) as usize;
            let (profile, whose) = (FixProfile::Spec, (&id, &terms));
            let short =
                written(text_bytes, |draft| kept.execution(draft, profile, reference, whose, &report));
            let long = written(text_bytes, |draft| {
                report::execution(draft, profile, reference, &id, &terms, &report);
            });
            assert_eq!(String::from_utf8_lossy(&short), String::from_utf8_lossy(&long), "round {round}");
        }
    }
}

#[test]
fn fields_that_are_too_long_are_not_kept() {
    let mut fields = FieldText::default();
    fields.keep(Some(&[b'x'; KEPT_BYTES]));
    assert_eq!(fields.bytes().len(), KEPT_BYTES);
    fields.keep(Some(&[b'x'; KEPT_BYTES + 1]));
    assert!(fields.is_empty());
}
