//! Times as FIX writes them.

use std::time::Duration;

const DAY_S: u64 = 86_400;

/// Returns the time since 1970 as text: `20261117-09:30:00.123`.
pub fn timestamp(since_1970: Duration) -> String {
    let (mut day, second) = (since_1970.as_secs() / DAY_S, since_1970.as_secs() % DAY_S);
    let mut year = 1970;
    while day >= days_of(year, 1..13) {
        day -= days_of(year, 1..13);
        year += 1;
    }
    let mut month = 1;
    while day >= days_of(year, month..month + 1) {
        day -= days_of(year, month..month + 1);
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let ms = since_1970.subsec_millis();
    format!("{year}{month:02}{:02}-{hour:02}:{minute:02}:{second:02}.{ms:03}", day + 1)
}

/// Returns the number of days in these months.
fn days_of(year: u64, months: std::ops::Range<u64>) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = |month| match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    months.map(days).sum()
}

#[test]
fn leap_days_and_ends_of_years_are_dates() {
    let at = |seconds: u64| timestamp(Duration::from_millis(seconds * 1_000 + 7));
    assert_eq!(at(0), "19700101-00:00:00.007");
    assert_eq!(at(951_782_400 + 86_399), "20000229-23:59:59.007");
    assert_eq!(at(1_798_761_599), "20261231-23:59:59.007");
    assert_eq!(at(1_798_761_600), "20270101-00:00:00.007");
}
