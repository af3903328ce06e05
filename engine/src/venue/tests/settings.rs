//! New settings of a book, and the random stream that they leave alone.

use super::*;

#[test]
fn new_settings_put_a_band_into_force_and_end_it() {
    let mut bench = bench();
    bench.trade(200, 1);
    bench.limit(1, Sell, 5, 203);
    bench.venue.set_up(0, VenueSettings { band_bp: 100, ..VenueSettings::default() });
    bench.order(2, Buy, 5, Some(210), Tif::Day);
    assert_eq!(bench.outcomes(), [(2, Canceled(Reason::PriceBand))]);
    bench.venue.set_up(0, VenueSettings::default());
    bench.order(3, Buy, 5, Some(210), Tif::Day);
    assert_eq!(bench.outcomes(), [filled(3, 5, 203), filled(1, 5, 203)]);
}

#[test]
fn new_settings_put_random_rejects_into_force_and_end_them() {
    let mut bench = bench();
    bench.venue.set_up(0, VenueSettings { reject_permille: 1_000, ..VenueSettings::default() });
    bench.order(1, Buy, 5, Some(100), Tif::Day);
    assert_eq!(bench.outcomes(), [(1, Rejected(Reason::VenueRandomReject))]);
    bench.venue.set_up(0, VenueSettings::default());
    bench.limit(2, Buy, 5, 100);
    assert_eq!(bench.depth(Buy), [(100, 5)]);
}

#[test]
fn a_permille_below_a_thousand_accepts_some() {
    let mut bench = desk_with(VenueSettings { reject_permille: 999, ..VenueSettings::default() });
    let accepted = (0..10_000).filter(|_| {
        bench.order_of(1, 1, Buy, 1, Some(100), Tif::Ioc);
        bench.all_outcomes()[0] == (1, Accepted)
    });
    let accepted = accepted.count();
    assert!((1..40).contains(&accepted), "{accepted}");
}

#[test]
fn the_same_settings_again_leave_the_random_stream_as_it_is() {
    let settings = VenueSettings { partial_fill: true, quote_levels: 1, ..VenueSettings::default() };
    let fills = |is_set_up: bool| {
        let mut bench = desk_with(settings.clone());
        if is_set_up {
            bench.venue.set_up(0, settings.clone());
        }
        let mut fills = Vec::new();
        for size in 100..130 {
            bench.quote(90, 1, 100, size);
            bench.order(1, Buy, 1_000, Some(100), Tif::Ioc);
            fills.extend(bench.outcomes());
        }
        fills
    };
    assert_eq!(fills(true), fills(false));
}
