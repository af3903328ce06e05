//! Families of securities and strategies, and the schemas of the smallest values.

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::StrategyId;
use pitlane_engine::number::Money;
use pitlane_engine::refdata::{NotionalLimit, OrderKinds, OrderLimits, SecurityFamily, StrategyInfo};
use pitlane_engine::terms::{OrderKind, Side};
use utoipa::PartialSchema;

use super::*;
use crate::codes::WireName;
use crate::rest::schema::{OrderKindSchema, SideSchema};
use crate::rest::{Decimal, Moment, SecurityFamilyVO, StrategyVO};

#[test]
fn a_family_names_the_limits_that_it_has() {
    let family = sample::sound().families.swap_remove(0);
    let shown = |limits| json(&SecurityFamilyVO::of(&SecurityFamily { limits, ..family.clone() }));
    let free = shown(OrderLimits::NONE);
    for name in ["orderTypes", "minNotional", "applyMinToMarket", "maxNotional", "applyMaxToMarket"] {
        assert!(!free.contains(name), "{free}");
    }
    let limit = |amount, to_market| Some(NotionalLimit { amount: Money::from_raw(amount), to_market });
    let limits = OrderLimits {
        min_notional: limit(500_000_000, true),
        max_notional: limit(900_000_000, false),
        kinds: OrderKinds::of([OrderKind::Market, OrderKind::Limit]).expect("two kinds"),
    };
    let limited = concat!(
        r#""minNotional":5,"applyMinToMarket":true,"maxNotional":9,"applyMaxToMarket":false,"#,
        r#""orderTypes":["MARKET","LIMIT"]}"#,
    );
    assert!(shown(limits).ends_with(limited), "{}", shown(limits));
}

#[test]
fn a_stopped_strategy_shows_why_it_failed() {
    let row = StrategyInfo { id: StrategyId(1), name: "momentum".into(), auto_activate: true };
    let reason = |phase| StrategyVO::of(&row, phase, false, Some("no price")).reason;
    assert_eq!(reason(StrategyPhase::Stop).as_deref(), Some("no price"));
    assert_eq!(reason(StrategyPhase::Start), None, "it runs again");
    let mode = |is_simulation| StrategyVO::of(&row, StrategyPhase::Start, is_simulation, None).mode;
    assert_eq!([true, false].map(mode), ["SIMULATION", "REAL_TIME"]);
}

#[test]
fn schemas_list_the_names_and_the_formats() {
    let names = |values: &[&str]| format!("\"enum\":{}", json(&values));
    let sides: Vec<&str> = Side::VALUES.iter().map(|value| value.wire_name()).collect();
    let kinds: Vec<&str> = OrderKind::VALUES.iter().map(|value| value.wire_name()).collect();
    for (schema, part) in [
        (SideSchema::schema(), names(&sides)),
        (OrderKindSchema::schema(), names(&kinds)),
        (Decimal::schema(), "\"type\":\"number\"".to_string()),
        (Moment::schema(), "\"format\":\"date-time\"".to_string()),
    ] {
        let schema = json(&schema);
        assert!(schema.contains(&part) && schema.contains("\"description\""), "{schema}");
    }
}
