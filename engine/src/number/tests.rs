use super::*;

#[test]
fn a_quotient_is_that_of_128_bits() {
    let edges = [1, 3, 10_000, SCALE as i128, 256 * 7, 1 << 63, u64::MAX as i128, 1 << 100, i128::MAX];
    let near = |n: i128| [n - 1, n, n.saturating_add(1), n.wrapping_mul(SCALE as i128)];
    let values: Vec<i128> = edges.into_iter().flat_map(near).flat_map(|n| [n, n.wrapping_neg()]).collect();
    for &value in &values {
        for &by in values.iter().filter(|by| **by != 0) {
            assert_eq!(quotient(value, by), value / by, "{value} / {by}");
            if let Some(short) = narrow(by) {
                assert_eq!(divide_by(value, short), divide_rounded(value, by), "{value} / {by}");
            }
        }
    }
}

#[test]
fn a_value_is_the_magnitude_of_the_money() {
    let edges = [0, 1, 49_999_999, 50_000_001, SCALE, 12_345_678_901, 1 << 40, i64::MAX, i64::MIN];
    let numbers: Vec<i64> = edges.into_iter().flat_map(|n| [n, n.wrapping_neg()]).collect();
    for &price in &numbers {
        for &qty in &numbers {
            for size in [ContractSize::ONE, ContractSize(50 * SCALE)] {
                let (price, qty) = (Price(price), Qty(qty));
                let expected = Notional::of(price, qty).money(size).map(Money::abs);
                assert_eq!(Notional::value(price, qty, size), expected, "{price} × {qty}");
            }
        }
    }
}

#[test]
fn a_grid_divides_as_division_does() {
    let steps = [1, 2, 3, 5, 7, 64, 100, 1_000_000, 100_000_000, 12_345_678, 1 << 40, i64::MAX, i64::MAX - 1];
    for step in steps {
        let grid = Grid::new(step);
        let near = |n: i64| [n.wrapping_sub(1), n, n.wrapping_add(1)];
        let multiples = [0, 1, 2, 3, 10, 99, i64::MAX / step].into_iter().filter_map(|n| step.checked_mul(n));
        let others = [i64::MIN, i64::MAX, 1 << 33, -5];
        for raw in multiples.chain(others).flat_map(near) {
            for raw in [raw, raw.wrapping_neg()] {
                let expected = (raw % step == 0).then(|| raw / step);
                assert_eq!(grid.steps(raw), expected, "{raw} by {step}");
            }
        }
    }
}

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).unwrap()
}

fn qty(text: &str) -> Qty {
    Qty::parse(text.as_bytes()).unwrap()
}

fn money(text: &str) -> Money {
    Money::parse(text.as_bytes()).unwrap()
}

#[test]
fn rounding_is_half_away_from_zero() {
    for (value, by, expected) in [
        (5, 10, 1),
        (-5, 10, -1),
        (4, 10, 0),
        (-4, 10, 0),
        (15, -10, -2),
        (14, -10, -1),
        (7, 7, 1),
        (-15, -10, 2),
    ] {
        assert_eq!(divide_rounded(value, by), expected, "{value}/{by}");
    }
}

#[test]
fn fast_unscaling_agrees_with_division() {
    let mut value = 1i128;
    for step in 0..100_000u32 {
        value = value.wrapping_mul(0x2d99_787b_5b1a_1e6c_a50e_3d9b_9ad7_1a35).wrapping_add(0x1234_5677);
        let value = value >> (step % 127);
        assert_eq!(unscale(value), divide_rounded(value, SCALE as i128), "{value}");
    }
    for value in [0, 49_999_999, 50_000_000, -49_999_999, -50_000_000, i64::MAX as i128, i128::MAX, i128::MIN]
    {
        assert_eq!(unscale(value), divide_rounded(value, SCALE as i128), "{value}");
    }
}

#[test]
fn a_saturated_amount_is_the_nearest_of_64_bits() {
    let (most, least) = (i64::MAX as i128, i64::MIN as i128);
    let kept = [0, 1, -1, most, least];
    assert_eq!(kept.map(|amount| saturated(amount) as i128), kept);
    assert_eq!([most + 1, i128::MAX, 1 << 64].map(saturated), [i64::MAX; 3]);
    assert_eq!([least - 1, i128::MIN, -1 << 64].map(saturated), [i64::MIN; 3]);
}

#[test]
fn notional_becomes_money_exactly() {
    let notional = Notional::of(price("101.25"), qty("-3"));
    assert_eq!(notional.money(ContractSize::whole(50).unwrap()), Some(money("-15187.5")));
    assert_eq!(notional.average(qty("-3")), price("101.25"));
    assert_eq!(Notional::ZERO.average(Qty::ZERO), Price::ZERO);
    let huge = Notional::of(Price::MAX, Qty::MAX);
    assert_eq!(huge.money(ContractSize::ONE), None);
    assert_eq!(huge.money(ContractSize::MAX), None);
    assert_eq!(huge.checked_add(huge).and_then(|n| n.checked_add(huge)), None);
    assert_eq!(huge.checked_sub(huge), Some(Notional::ZERO));
}

#[test]
fn shares_and_averages_are_rounded_once() {
    assert_eq!(money("100").share(qty("1"), qty("3")), Some(money("33.33333333")));
    assert_eq!(money("200").share(qty("1"), qty("3")), Some(money("66.66666667")));
    assert_eq!(money("100").per(qty("3"), ContractSize::ONE), Some(price("33.33333333")));
    assert_eq!(money("100").per(Qty::ZERO, ContractSize::ONE), None);
    assert_eq!(Money::per_unit(money("0.005"), qty("-300")), Some(money("1.5")));
    assert_eq!(price("200").basis_points(-50), Some(price("-1")));
    for (near, bp) in [("201", 50), ("199", 50), ("200", 0)] {
        assert!(price(near).is_within(bp, price("200")));
    }
    assert!(!price("201.00000001").is_within(50, price("200")));
    assert!(!Price::MAX.is_within(u32::MAX, Price::ZERO));
}

#[test]
fn the_tick_grid_is_exact() {
    assert_eq!(price("1.10005").ticks(price("0.00005")), Some(22_001));
    assert_eq!(price("1.10007").ticks(price("0.00005")), None);
    assert_eq!(Price::from_ticks(22_001, price("0.00005")), Some(price("1.10005")));
    assert_eq!(Price::from_ticks(i64::MAX, price("2")), None);
    let lots = Grid::new(qty("100").raw());
    assert!(lots.steps(qty("300").raw()).is_some());
    assert!(lots.steps(qty("350").raw()).is_none());
}

#[test]
fn overflow_is_none_and_signs_are_known() {
    assert_eq!(Money::MAX.checked_add(Money::from_raw(1)), None);
    assert_eq!(Money::MIN.checked_sub(Money::from_raw(1)), None);
    assert_eq!(Qty::MIN.checked_neg(), None);
    assert_eq!(Qty::MIN.abs(), Qty::MAX);
    assert_eq!(Price::whole(i64::MAX), None);
    assert!(money("-1").is_negative() && money("1").is_positive() && Money::ZERO.is_zero());
    assert_eq!(format!("{:>6}|{:?}", money("1.5"), money("1.5")), "   1.5|1.5");
}
