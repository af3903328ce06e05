use super::*;
use crate::event::Tick;
use crate::id::{AdapterId, Currency, ExchangeId, FamilyId};
use crate::number::{ContractSize, Grid, Money};
use crate::refdata::{Exchange, OptionKind, OrderLimits, RefDataRows, SecurityFamily};
use crate::time::{Day, NS_PER_S, TimeOfDay};

const START: Timestamp = Timestamp(1_000 * NS_PER_S);

fn price(text: &str) -> Price {
    Price::parse(text.as_bytes()).unwrap()
}

fn reference(plan: &[(u32, &str, Option<&str>)]) -> RefData {
    RefData::check(reference_rows(plan)).unwrap()
}

/// One family per security, so that each has its own tick.
fn reference_rows(plan: &[(u32, &str, Option<&str>)]) -> RefDataRows {
    let mut rows = RefDataRows::default();
    rows.exchanges.push(Exchange {
        id: ExchangeId(1),
        name: "one".into(),
        mic: "XONE".into(),
        time_zone: "UTC".into(),
        open: TimeOfDay(0),
        close: TimeOfDay(86_400),
        auctions: false,
        adapter: AdapterId::SIM,
        adapter_type: "SIM".into(),
    });
    for &(number, tick, start) in plan {
        let kind = SecurityKind::ALL[number as usize % SecurityKind::ALL.len()];
        let is_option = kind == SecurityKind::Option;
        rows.families.push(SecurityFamily {
            id: FamilyId(number),
            name: format!("F{number}"),
            symbol_root: String::new(),
            exchange: ExchangeId(1),
            currency: Currency::parse(b"USD").unwrap(),
            contract_size: ContractSize::ONE,
            tick_size: price(tick),
            lot_size: Qty::whole(100).unwrap(),
            commission: Money::ZERO,
            limits: OrderLimits::NONE,
            tradeable: true,
            expirable: kind.expires(),
        });
        rows.securities.push(Security {
            id: SecurityId(number),
            symbol: format!("S{number}"),
            description: String::new(),
            kind,
            family: FamilyId(number),
            isin: None,
            underlying: is_option.then_some(SecurityId(plan[0].0)),
            expiration: kind.expires().then_some(Day(20_000)),
            strike: is_option.then(|| price("5")),
            option: is_option.then_some(OptionKind::Call),
            base_currency: kind.is_pair().then(|| Currency::parse(b"EUR").unwrap()),
            start_price: start.map(price),
            tradeable: true,
        });
    }
    rows
}

fn security_of(body: &CommandKind) -> SecurityId {
    match body {
        CommandKind::Quote { security, .. }
        | CommandKind::Trade { security, .. }
        | CommandKind::Tick { security, .. } => *security,
        other => panic!("a feed does not emit {other:?}"),
    }
}

fn quote_of(body: &CommandKind) -> Option<Quote> {
    match body {
        CommandKind::Quote { quote, .. } | CommandKind::Tick { quote, .. } => Some(*quote),
        _ => None,
    }
}

fn trade_of(body: &CommandKind) -> Option<Trade> {
    match body {
        CommandKind::Trade { trade, .. } | CommandKind::Tick { trade, .. } => Some(*trade),
        _ => None,
    }
}

fn time_of(body: &CommandKind) -> Timestamp {
    quote_of(body).map(|quote| quote.at).or(trade_of(body).map(|trade| trade.at)).unwrap()
}

/// Collects all events of a period, polled in steps.
fn run(feed: &mut Feed, from: Timestamp, seconds: u64, steps: u64) -> Vec<CommandKind> {
    let mut all = Vec::new();
    for step in 1..=steps {
        let now = from.plus(seconds * NS_PER_S / steps * step);
        while let Some(command) = feed.poll(now) {
            all.push(command.body);
        }
        assert!(feed.next_at() > now);
    }
    all
}

fn on(feed: &mut Feed, securities: &[u32]) {
    securities.iter().for_each(|&number| assert!(feed.set_on(SecurityId(number), true, START)));
}

#[test]
fn a_security_is_independent_of_others_and_of_polling() {
    let few = reference(&[(7, "0.01", None)]);
    let many = reference(&[(1, "1", None), (3, "0.5", None), (7, "0.01", None), (9, "0.01", None)]);
    let mut alone = Feed::new(&few, FeedSettings::default());
    let mut among = Feed::new(&many, FeedSettings::default());
    on(&mut alone, &[7]);
    on(&mut among, &[9, 7, 1, 3]);
    let alone = run(&mut alone, START, 100, 1);
    let mut among = run(&mut among, START, 100, 777);
    assert!(among.is_sorted_by_key(time_of));
    among.retain(|body| security_of(body) == SecurityId(7));
    assert_eq!(alone, among);
    assert!((400..600).contains(&alone.len()), "about five a second: {}", alone.len());
}

#[test]
fn different_seeds_and_names_give_unrelated_streams() {
    let reference = reference(&[(1, "0.01", Some("100")), (10, "0.01", Some("100"))]);
    let walk = |seed, number| {
        let mut feed = Feed::new(&reference, FeedSettings { seed, ..FeedSettings::default() });
        on(&mut feed, &[number]);
        run(&mut feed, START, 10, 1).iter().filter_map(quote_of).collect::<Vec<_>>()
    };
    assert_eq!(walk(1, 1), walk(1, 1));
    assert_ne!(walk(1, 1), walk(2, 1));
    assert_ne!(walk(1, 1), walk(1, 10));
}

#[test]
fn prices_are_positive_and_on_the_grid_and_sizes_are_lots() {
    let plan = [
        (0, "0.00005", Some("1.1")),
        (1, "0.25", Some("0.25")),
        (2, "0.01", None),
        (3, "7", Some("98")),
        (4, "40000000000", Some("80000000000")),
    ];
    let settings =
        FeedSettings { interval_ns: 2 * NS_PER_MS, volatility_ticks: 9, ..FeedSettings::default() };
    let mut feed = Feed::new(&reference(&plan), settings);
    on(&mut feed, &[0, 1, 2, 3]);
    assert!(!feed.set_on(SecurityId(4), true, START), "there is no room for a spread");
    let all = run(&mut feed, START, 20, 1);
    assert!(all.len() > 30_000);
    let lot = Qty::whole(100).unwrap();
    for body in &all {
        let tick = price(plan[security_of(body).0 as usize].1);
        if let Some(quote) = quote_of(body) {
            assert!(quote.bid.is_positive() && quote.bid < quote.ask);
            assert!(quote.bid.ticks(tick).is_some() && quote.ask.ticks(tick).is_some());
            assert!(quote.bid_size >= lot && Grid::new(lot.raw()).steps(quote.bid_size.raw()).is_some());
            assert!(quote.ask_size >= lot && Grid::new(lot.raw()).steps(quote.ask_size.raw()).is_some());
        }
        if let Some(trade) = trade_of(body) {
            assert!(trade.price.is_positive() && trade.price.ticks(tick).is_some());
            assert!(trade.size.is_positive() && Grid::new(lot.raw()).steps(trade.size.raw()).is_some());
        }
    }
}

#[test]
fn a_feed_without_trades_has_quotes_alone_after_its_first_event() {
    let settings = FeedSettings { trade_permille: 0, tick_permille: 0, ..FeedSettings::default() };
    let mut feed = Feed::new(&reference(&[(1, "0.01", Some("42"))]), settings);
    on(&mut feed, &[1]);
    let events = run(&mut feed, START, 20_000, 1);
    assert!(events[1..].iter().all(|body| matches!(body, CommandKind::Quote { .. })));
}

#[test]
fn the_first_event_has_quote_and_trade_from_the_start_price() {
    let mut feed = Feed::new(&reference(&[(1, "0.01", Some("42"))]), FeedSettings::default());
    on(&mut feed, &[1]);
    let first = run(&mut feed, START, 1, 1)[0];
    let (quote, trade) = (quote_of(&first).unwrap(), trade_of(&first).unwrap());
    assert!(quote.bid >= price("41.98") && quote.bid <= price("42.02"));
    assert!(trade.price == quote.bid || trade.price == quote.ask);
}

#[test]
fn a_market_continues_from_its_last_tick_within_its_bounds() {
    let plan = [(1, "0.01", Some("42")), (2, "0.01", Some("42"))];
    let first_of = |tick: &Tick| {
        let mut feed = Feed::new(&reference(&plan), FeedSettings::default());
        feed.resume(tick);
        on(&mut feed, &[1]);
        quote_of(&run(&mut feed, START, 1, 1)[0]).unwrap()
    };
    let size = Qty::whole(100).unwrap();
    let last = Tick {
        security: SecurityId(1),
        bid: price("55.5"),
        bid_size: size,
        at: Timestamp(7),
        ..Tick::default()
    };
    let near =
        |quote: Quote, text: &str| quote.bid.raw().abs_diff(price(text).raw()) <= price("0.02").raw() as u64;
    assert!(near(first_of(&last), "55.5"));
    let traded = Tick { bid_size: Qty::ZERO, traded: true, last: price("33.3"), ..last };
    assert!(near(first_of(&traded), "33.3"), "without a quote the last price counts");
    assert!(near(first_of(&Tick { bid: price("1000"), ..last }), "84"), "twice the start price at most");
    assert!(near(first_of(&Tick { bid: price("1"), ..last }), "21"), "half the start price at least");
    assert!(near(first_of(&Tick { security: SecurityId(1), ..Tick::default() }), "42"), "nothing is known");
    assert!(near(first_of(&Tick { security: SecurityId(2), ..last }), "42"), "another security");
    assert!(near(first_of(&Tick { security: SecurityId(3), ..last }), "42"), "an unknown security");
}

#[test]
fn a_continued_market_does_not_repeat_the_steps_of_the_process_before() {
    let walk = |at: u64| {
        let mut feed = Feed::new(&reference(&[(1, "0.01", Some("42"))]), FeedSettings::default());
        let (bid, bid_size) = (price("42"), Qty::whole(100).unwrap());
        feed.resume(&Tick { security: SecurityId(1), bid, bid_size, at: Timestamp(at), ..Tick::default() });
        on(&mut feed, &[1]);
        run(&mut feed, START, 10, 1).iter().filter_map(quote_of).map(|quote| quote.bid).collect::<Vec<_>>()
    };
    assert_eq!(walk(1), walk(1));
    assert_ne!(walk(1), walk(2));
}

#[test]
fn a_security_without_a_start_price_begins_where_its_kind_usually_is() {
    let plan: Vec<_> = (0..9).map(|number| (number, "0.01", None)).collect();
    let settings = FeedSettings { volatility_ticks: 0, ..FeedSettings::default() };
    let mut feed = Feed::new(&reference(&plan), settings);
    on(&mut feed, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let all = run(&mut feed, START, 1, 1);
    for (number, kind) in SecurityKind::ALL.into_iter().enumerate() {
        let mut own = all.iter().filter(|body| security_of(body).0 as usize == number);
        assert_eq!(own.find_map(quote_of).unwrap().bid, usual_price(kind));
    }
}

#[test]
fn only_securities_that_are_on_move() {
    let plan = reference(&[(1, "0.01", None), (2, "0.01", None)]);
    let mut feed = Feed::new(&plan, FeedSettings::default());
    assert_eq!((feed.next_at(), feed.poll(Timestamp::MAX)), (Timestamp::MAX, None));
    assert!(!feed.set_on(SecurityId(3), true, START) && !feed.is_on(SecurityId(3)));
    on(&mut feed, &[1, 2]);
    assert!(run(&mut feed, START, 2, 1).len() > 10);
    assert!(feed.set_on(SecurityId(1), false, START));
    let rest = run(&mut feed, START.plus(2 * NS_PER_S), 2, 1);
    assert!(rest.iter().all(|body| security_of(body) == SecurityId(2)));
    assert!(feed.is_on(SecurityId(2)) && !feed.is_on(SecurityId(1)));
    // Switched on again it continues from now; a second switch changes nothing.
    let later = START.plus(1_000 * NS_PER_S);
    feed.set_on(SecurityId(2), false, later);
    feed.set_on(SecurityId(1), true, later);
    let due = feed.next_at();
    feed.set_on(SecurityId(1), true, later.plus(1));
    assert!(due >= later && feed.next_at() == due);
}

#[test]
fn missed_events_can_be_skipped() {
    let lag_ns_max = NS_PER_S;
    let plan = reference(&[(1, "0.01", None)]);
    let mut feed = Feed::new(&plan, FeedSettings { lag_ns_max, ..FeedSettings::default() });
    on(&mut feed, &[1]);
    let after = run(&mut feed, START, 3_600, 1);
    assert_eq!(after.len(), 1);
    assert_eq!(time_of(&after[0]), START.plus(3_600 * NS_PER_S));
}

#[test]
fn a_security_may_have_its_own_pace_or_none() {
    let plan = reference(&[(1, "0.01", None), (2, "0.01", None), (3, "0.01", None)]);
    let intervals = BTreeMap::from([(SecurityId(1), 20 * NS_PER_S), (SecurityId(2), 0)]);
    let mut feed = Feed::new(&plan, FeedSettings { intervals, ..FeedSettings::default() });
    on(&mut feed, &[1, 3]);
    assert!(!feed.set_on(SecurityId(2), true, START));
    let all = run(&mut feed, START, 200, 10);
    let slow = all.iter().filter(|body| security_of(body) == SecurityId(1)).count();
    assert!((7..=14).contains(&slow), "{slow}");
}

#[test]
fn a_walk_goes_both_ways_and_stays_within_its_bounds() {
    let settings = FeedSettings { interval_ns: 1_000, volatility_ticks: 5, ..FeedSettings::default() };
    let mut feed = Feed::new(&reference(&[(1, "1", Some("40"))]), settings);
    on(&mut feed, &[1]);
    let bids: Vec<Price> =
        run(&mut feed, START, 1, 1).iter().filter_map(quote_of).map(|quote| quote.bid).collect();
    assert_eq!((bids.iter().min(), bids.iter().max()), (Some(&price("20")), Some(&price("80"))));
}

/// Returns the last bids of an underlying at 100 and of an option at the money on it.
fn last_bids(seed: u64, strike: &str, kind: OptionKind, start: &str) -> [i64; 2] {
    let plan = [(0, "0.01", Some("100")), (2, "0.01", Some(start))];
    let mut rows = reference_rows(&plan);
    let option = rows.securities.iter_mut().find(|row| row.kind == SecurityKind::Option).unwrap();
    (option.strike, option.option) = (Some(price(strike)), Some(kind));
    let option = option.id;
    let settings = FeedSettings { seed, volatility_ticks: 20, ..FeedSettings::default() };
    let mut feed = Feed::new(&RefData::check(rows).unwrap(), settings);
    on(&mut feed, &[0, option.0]);
    let all = run(&mut feed, START, 120, 7);
    [SecurityId(0), option].map(|security| {
        let own = all.iter().filter(|body| security_of(body) == security);
        own.filter_map(quote_of).next_back().unwrap().bid.raw()
    })
}

#[test]
fn an_option_follows_its_underlying() {
    let (cent, at_100) = (price("0.01").raw(), price("100").raw());
    for seed in 0..40 {
        let [underlying, call] = last_bids(seed, "100", OptionKind::Call, "8");
        let [again, put] = last_bids(seed, "100", OptionKind::Put, "8");
        assert_eq!(underlying, again, "the underlying does not depend on its options");
        let (moved, by_call, by_put) = (underlying - at_100, call - price("8").raw(), put - price("8").raw());
        // The last quotes of the two may be some steps of the underlying apart, of 20 cents each.
        let slack = 100 * cent;
        assert!((by_call - moved / 2).abs() <= moved.abs() / 2 + slack, "seed {seed}: {moved} {by_call}");
        assert!((by_put + moved / 2).abs() <= moved.abs() / 2 + slack, "seed {seed}: {moved} {by_put}");
        assert!(call > (underlying - at_100).max(0) - slack && put > (at_100 - underlying).max(0) - slack);
    }
}

#[test]
fn an_option_below_its_intrinsic_value_walks_by_itself() {
    let [underlying, option] = last_bids(1, "20", OptionKind::Call, "2");
    assert!(underlying > price("50").raw() && option <= price("4").raw(), "{underlying} {option}");
}

#[test]
fn new_securities_get_a_stream_and_the_others_continue() {
    let few = [(7, "0.01", None)];
    let many = [(1, "1", None), (7, "0.01", None), (9, "0.01", None)];
    let later = START.plus(NS_PER_S);
    let mut alone = Feed::new(&reference(&few), FeedSettings::default());
    let mut grown = Feed::new(&reference(&few), FeedSettings::default());
    for feed in [&mut alone, &mut grown] {
        on(feed, &[7]);
        run(feed, START, 1, 1);
    }
    assert!(!grown.set_on(SecurityId(1), true, later));
    grown.set_reference(&reference(&many));
    let same = run(&mut alone, later, 2, 1);
    assert_eq!(run(&mut grown, later, 2, 1), same, "the new ones are still off");
    on(&mut grown, &[1, 9]);
    let all = run(&mut grown, START.plus(3 * NS_PER_S), 2, 1);
    for number in [1, 7, 9] {
        assert!(all.iter().any(|body| security_of(body) == SecurityId(number)), "{number}");
    }
}

#[test]
fn the_share_of_trades_and_ticks_is_as_set() {
    for (trade_permille, tick_permille) in [(0, 0), (1_000, 0), (0, 1_000), (0, u32::MAX), (300, 200)] {
        let settings =
            FeedSettings { interval_ns: NS_PER_MS, trade_permille, tick_permille, ..FeedSettings::default() };
        let mut feed = Feed::new(&reference(&[(1, "0.01", None)]), settings);
        on(&mut feed, &[1]);
        let all = run(&mut feed, START, 2, 1);
        assert!(matches!(all[0], CommandKind::Tick { .. }), "the first one carries both");
        let rest = &all[1..];
        let share =
            |is: fn(&CommandKind) -> bool| rest.iter().filter(|body| is(body)).count() * 1_000 / rest.len();
        let trades = share(|body| matches!(body, CommandKind::Trade { .. }));
        let ticks = share(|body| matches!(body, CommandKind::Tick { .. }));
        assert!(trades.abs_diff(trade_permille as usize) < 60, "{trades} of {trade_permille}");
        assert!(ticks.abs_diff(tick_permille.min(1_000) as usize) < 60, "{ticks} of {tick_permille}");
    }
}

#[test]
fn trades_are_at_bid_and_ask_alike() {
    let settings = FeedSettings { interval_ns: NS_PER_MS, ..FeedSettings::default() };
    let mut feed = Feed::new(&reference(&[(1, "0.01", None)]), settings);
    on(&mut feed, &[1]);
    let (mut sides, mut last) = ([0; 2], None);
    for body in run(&mut feed, START, 2, 1) {
        last = quote_of(&body).or(last);
        let Some((trade, quote)) = trade_of(&body).zip(last) else { continue };
        assert!(trade.price == quote.bid || trade.price == quote.ask);
        sides[usize::from(trade.price == quote.ask)] += 1;
    }
    let [bids, asks] = sides;
    assert!(bids + asks > 500 && asks * 2 > bids && bids * 2 > asks, "{bids} and {asks}");
}

/// Returns the bids of a stream that follows a price, in ticks, after ten steps at each price.
fn followed(volatility_ticks: u32, prices: &[&str]) -> Vec<Vec<i64>> {
    let settings = FeedSettings { volatility_ticks, ..FeedSettings::default() };
    let reference = reference(&[(0, "0.05", Some("100"))]);
    let mut stream = PriceStream::new(&reference, &reference.securities()[0], &settings).unwrap();
    let step = |price: &&str| {
        let bids = (0..200).map(|_| {
            stream.follow(self::price(price).raw(), &settings);
            stream.bid
        });
        let bids: std::collections::BTreeSet<i64> = bids.collect();
        bids.into_iter().collect()
    };
    prices.iter().map(step).collect()
}

#[test]
fn a_stream_that_follows_a_price_is_at_most_a_tick_away() {
    assert_eq!(followed(0, &["3", "3.04", "0"]), [[60], [60], [1]]);
    let around = [vec![59, 60, 61], vec![1999, 2000, 2001], vec![1]];
    assert_eq!(followed(1, &["3", "100", "-5"]), around);
    assert_eq!(followed(20, &["3", "100", "-5"]), around);
}

#[test]
fn a_walk_takes_every_step_of_its_reach() {
    let settings = FeedSettings { volatility_ticks: 2, ..FeedSettings::default() };
    let reference = reference(&[(0, "0.01", Some("100"))]);
    let mut stream = PriceStream::new(&reference, &reference.securities()[0], &settings).unwrap();
    let steps = (0..500).map(|_| {
        let before = stream.bid;
        stream.walk(&settings);
        stream.bid - before
    });
    let steps: std::collections::BTreeSet<i64> = steps.collect();
    assert_eq!(steps, [-2, -1, 0, 1, 2].into());
}

#[test]
fn a_stream_follows_the_bid_of_its_underlying_if_that_has_a_stream() {
    let plan = [(0, "0.01", Some("100")), (2, "0.01", Some("8"))];
    let mut rows = reference_rows(&plan);
    rows.securities[1].strike = Some(price("100"));
    let reference = RefData::check(rows).unwrap();
    let feed = Feed::new(&reference, FeedSettings::default());
    assert_eq!([0, 1].map(|stream| feed.underlying_price(stream)), [None, Some(price("100").raw())]);
    let intervals = BTreeMap::from([(SecurityId(0), 0)]);
    let feed = Feed::new(&reference, FeedSettings { intervals, ..FeedSettings::default() });
    assert_eq!(feed.underlying_price(0), None);
}
