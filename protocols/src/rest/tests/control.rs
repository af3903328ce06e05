//! Limits, switches and decisions of an operator.

use pitlane_engine::command::{RiskLimits, Scope};
use pitlane_engine::directive::{Directive, DirectiveVersion};
use pitlane_engine::id::{AccountId, Currency, SecurityId, StrategyId};
use pitlane_engine::number::{Money, Qty};

use super::*;
use crate::rest::{ConfirmationVO, CreditInUse, LimitUseVO, LimitsVO, RiskVO, SwitchStateVO};

const STRATEGY: Scope = Scope::Strategy(StrategyId(1));
const ACCOUNT: Scope = Scope::Account(AccountId(1));

fn directed(version: u64, directive: Directive) -> EventKind {
    EventKind::Directed { version: DirectiveVersion(version), directive }
}

/// Returns the limits that a request makes of the default ones.
fn applied(request: &str) -> Result<RiskLimits, &'static str> {
    serde_json::from_str::<LimitsVO>(request).expect("a request").applied_to(&RiskLimits::default())
}

#[test]
fn a_decision_that_a_shard_has_not_applied_is_listed() {
    let kill = Directive::Kill { scope: Scope::Global, on: true };
    let kill_one = Directive::Kill { scope: Scope::Security(SecurityId(3)), on: true };
    let limits = Directive::Limits { scope: STRATEGY, limits: RiskLimits::default() };
    let restrict = Directive::Restrict { scope: ACCOUNT, security: SecurityId(2), on: true };
    let view = view_of([
        (0, directed(8, kill)),
        (1, directed(8, kill)),
        (0, directed(16, kill_one)),
        (1, directed(16, limits)),
        (0, directed(24, restrict)),
        (1, directed(16, restrict)),
    ]);
    let unconfirmed = RiskVO::of(&view, &reference()).unconfirmed;
    let expected = concat!(
        r#"[{"directive":"KILL_SWITCH","securityId":3,"shards":[1]},"#,
        r#"{"directive":"LIMITS","strategyName":"momentum","shards":[0]},"#,
        r#"{"directive":"RESTRICTION","accountName":"main","securityId":2,"shards":[1]}]"#,
    );
    assert_eq!(json(&unconfirmed), expected);
    let confirmation = |directive: Directive| ConfirmationVO::of(&view, directive.key());
    assert!(confirmation(kill).is_whole());
    assert_eq!(confirmation(kill).confirmed, SwitchStateVO::All);
    assert!(!confirmation(limits).is_whole());
    assert_eq!(json(&confirmation(limits)), r#"{"confirmed":"SOME","unconfirmedShards":[0]}"#);
}

#[test]
fn limits_in_a_request_change_what_they_name() {
    let old = RiskLimits { max_open_orders: 7, max_order_qty: Qty::from_raw(5), ..RiskLimits::default() };
    let request = r#"{"maxPosition":2.5,"tradingEnabled":false,"credit":100,"creditCurrency":"USD"}"#;
    let new = serde_json::from_str::<LimitsVO>(request).expect("a request").applied_to(&old);
    let usd = Currency::parse(b"USD").expect("a currency");
    let expected = RiskLimits {
        max_position: Qty::from_raw(250_000_000),
        trading_enabled: false,
        credit: Money::from_raw(10_000_000_000),
        credit_currency: usd,
        ..old
    };
    assert_eq!(new, Ok(expected));
    assert_eq!(applied("{}"), Ok(RiskLimits::default()));
    for name in ["maxOrderQty", "maxOrderValue", "maxPosition", "credit"] {
        let refused = applied(&format!("{{\"{name}\":-0.00000001}}"));
        assert_eq!(refused, Err("a limit is not below zero"), "{name}");
    }
    assert_eq!(applied(r#"{"credit":1}"#), Err("credit needs creditCurrency"));
    assert_eq!(applied(r#"{"creditCurrency":"$"}"#), Err("creditCurrency is no currency"));
    assert!(applied(r#"{"duplicateWindowMs":60000}"#).is_ok());
    assert_eq!(applied(r#"{"duplicateWindowMs":60001}"#), Err("duplicateWindowMs is at most a minute"));
}

#[test]
fn a_collar_has_two_places_and_a_largest_value() {
    let collar = |text: &str| {
        applied(&format!("{{\"priceCollarPct\":{text}}}")).map(|limits| limits.price_collar_bp).ok()
    };
    for (text, bp) in [
        ("0", Some(0)),
        ("2.5", Some(250)),
        ("0.01", Some(1)),
        ("0.001", None),
        ("2.505", None),
        ("-0.01", None),
        ("10000", Some(1_000_000)),
        ("10000.01", None),
    ] {
        assert_eq!(collar(text), bp, "{text}");
    }
}

#[test]
fn the_use_of_limits_is_shown_to_those_who_may_see_it() {
    let limits = RiskLimits::default();
    let view = view_of([
        (0, EventKind::Limits { scope: STRATEGY, limits }),
        (0, EventKind::Limits { scope: ACCOUNT, limits }),
    ]);
    let used = Money::from_raw(150_000_000);
    let credit_of = |_| CreditInUse { used: Some(used), unanswered: vec![ShardId(1)] };
    let rows = |is_visible: &dyn Fn(Scope) -> bool| {
        json(&LimitUseVO::all(&view, &reference(), is_visible, credit_of))
    };
    let strategy = r#"{"strategyName":"momentum","openOrders":0,"refusals":[]}"#;
    let account =
        r#"{"accountName":"main","openOrders":0,"credit":1.5,"unansweredShards":[1],"refusals":[]}"#;
    assert_eq!(rows(&|_| true), format!("[{strategy},{account}]"));
    assert_eq!(rows(&|scope| scope == ACCOUNT), format!("[{account}]"));
    assert_eq!(rows(&|_| false), "[]");
}
