//! Once warm, a shard and a STOMP broker handle their input without allocating memory.

use pitlane_engine::codec::{COMMAND_BYTES_MAX, encode_command};
use pitlane_engine::command::{Command, CommandKind, ExecRef, Quote, Trade, VenueReport, WatchTarget};
use pitlane_engine::event::EventKind;
use pitlane_engine::id::{IntId, OrderHandle, PortId, SecurityId, ShardId, StrategyId};
use pitlane_engine::index::index_usize;
use pitlane_engine::mesh::{Depths, PortClass, mesh};
use pitlane_engine::number::Qty;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::settings::{QuoteSizes, ShardSettings, VenueSettings};
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Side, Terms, Tif};
use pitlane_engine::time::Timestamp;
use pitlane_engine::worker::{JournalOutcome, Worker};
use pitlane_tests::dice::Dice;
use pitlane_tests::shard_harness::{ShardHarness, limit};
use pitlane_tests::test_market;
use pitlane_tests::workload::{lot, tick};

/// Rounds before counting: every table has reached the size that this flow needs.
const WARM_ROUNDS: usize = 100_000;
/// Rounds in which nothing may be allocated.
const ROUNDS: usize = 20_000;
/// Most open orders per security: more are cancelled, so that the books keep their size.
const OPEN_MAX: usize = 40;

#[test]
fn a_warm_shard_allocates_nothing() {
    let mut market = BusyMarket::new();
    for _ in 0..WARM_ROUNDS {
        market.round();
    }
    let mut worst = (0, String::new());
    let mut total = 0;
    for _ in 0..ROUNDS {
        let info = allocation_counter::measure(|| market.round());
        total += info.count_total;
        if info.count_total > worst.0 {
            worst = (info.count_total, format!("{:?}", market.last));
        }
    }
    assert_eq!(total, 0, "at most {} in one round: {}", worst.0, worst.1);
    assert!(market.fills > 1_000, "only {} fills: the flow does not trade", market.fills);
    assert!(market.depths > 1_000, "only {} sides of books: depth is not published", market.depths);
}

/// Commands between two groups that are stored together.
const GROUP: u64 = 100;

#[test]
fn a_worker_that_waits_for_storage_allocates_nothing() {
    let depths = Depths { commands: 256, events: 4_096 };
    let (mut ports, mut ends) = mesh(&[PortClass::Client], 1, depths);
    let settings = ShardSettings { orders_max: 1_024, finished_max: 64, ..ShardSettings::default() };
    let shard = Shard::new(ShardId(0), 1, test_market::reference(), settings);
    let mut worker = Worker::new(shard, ends.remove(0));
    let (mut bytes, mut stored, mut events_seen) = ([0; COMMAND_BYTES_MAX], 0, 0);
    let mut round = |number: u64| {
        // A buyer, then a seller: everything trades.
        let turn = index_usize(number % 2);
        let mut terms = limit(SecurityId(5), Side::BOTH[turn], "1", "100");
        (terms.strategy, terms.account) = (StrategyId::SERVER, test_market::HOME_ACCOUNTS[turn]);
        terms.qty = Qty::from_raw(lot(SecurityId(5)));
        let body = CommandKind::Submit { id: IntId::numbered(b'o', number), terms };
        let _ = ports[0].send(ShardId(0), Command::new(test_market::source(0, 1), 1, body));
        if number.is_multiple_of(GROUP) {
            stored = number;
        }
        worker.poll_with(Timestamp(number), stored, |_, _, command, shard| {
            std::hint::black_box((encode_command(command, &mut bytes), shard.digest()));
            JournalOutcome::Accepted
        });
        while ports[0].poll_event().is_some() {
            events_seen += 1;
        }
    };
    (1..=10 * GROUP).for_each(&mut round);
    let info = allocation_counter::measure(|| (10 * GROUP + 1..=20 * GROUP).for_each(&mut round));
    assert_eq!(info.count_total, 0);
    assert!(events_seen >= 3 * 19 * GROUP, "only {events_seen} events: nothing was stored");
}

/// Ticks by which the market of a moving book goes up and down: many pages of levels.
const SWING: i64 = 6_000;
/// Orders of a moving book: most are cancelled soon, the others stay until the market comes back.
const MOVING_ORDERS: u32 = 20_000;

/// The flow of the public arena: a mid that moves through thousands of ticks, orders a few ticks
/// around it, cancels, modifies and IOCs. Pages of levels are attached and released all the time.
#[test]
fn a_book_whose_market_moves_allocates_nothing() {
    use pitlane_engine::id::AccountId;
    use pitlane_engine::number::Price;
    use pitlane_engine::pages::LargePages;
    use pitlane_engine::venue::{BookSpec, OrderEntry, Venue};

    let spec = BookSpec {
        security: SecurityId(1),
        tick_size: Price::from_raw(1),
        lot: Qty::from_raw(1),
        auctions: false,
        settings: VenueSettings::default(),
    };
    let mut venue = Venue::new(vec![spec], MOVING_ORDERS as usize, LargePages::NONE);
    let (mut dice, mut traded, mut moved) = (Dice::new(27), 0_u64, 0_u64);
    let slot_of = |number: i64| u32::try_from(number % i64::from(MOVING_ORDERS)).unwrap();
    let mut round = |number: i64| {
        // Up by one tick every fourth round, and down again.
        let way = number / 4 % (2 * SWING);
        let mid = 30_000 + way.min(2 * SWING - way);
        let slot = slot_of(number);
        let side = dice.pick(&Side::BOTH);
        let away = dice.between(-2, 60) * if dice.percent(5) { 20 } else { 1 };
        let limit = Some(if side == Side::Buy { mid - away } else { mid + away });
        let tif = if dice.percent(15) { Tif::Ioc } else { Tif::Gtc };
        let qty = Qty::from_raw(dice.between(1, 100));
        if venue.remaining(slot).is_some() {
            venue.cancel(slot);
        }
        let account = AccountId(1 + side as u16);
        venue.enter(&OrderEntry { slot, book: 0, side, limit, qty, tif, account });
        let recent = slot_of((number - dice.between(0, 50)).max(0));
        match dice.below(10) {
            0..=6 => venue.cancel(recent),
            7 | 8 => {
                venue.replace(recent, qty, limit, Tif::Gtc);
                moved += 1;
            }
            _ => {}
        }
        traded += venue.outcomes().len() as u64;
        while venue.work(0) {}
        venue.clear_outcomes();
    };
    (0..WARM_ROUNDS as i64).for_each(&mut round);
    let warm = WARM_ROUNDS as i64;
    let info = allocation_counter::measure(|| (warm..3 * warm).for_each(&mut round));
    assert_eq!(info.count_total, 0);
    assert!(traded > WARM_ROUNDS as u64 && moved > 10_000, "{traded} outcomes, {moved} modifies");
}

/// A busy market in fixed memory.
struct BusyMarket {
    shard: Shard,
    out: Outbox,
    now: Timestamp,
    dice: Dice,
    ids: u64,
    open: Vec<OrderHandle>,
    fills: u64,
    depths: u64,
    last: Option<Command>,
}

impl BusyMarket {
    fn new() -> BusyMarket {
        let settings = ShardSettings {
            orders_max: 4_096,
            finished_max: 256,
            finished_outside_max: 256,
            transactions_max: 1_024,
            executions_max: 1_024,
            venue: VenueSettings { quote_sizes: QuoteSizes::Varied, ..VenueSettings::default() },
            ..ShardSettings::default()
        };
        let mut market = BusyMarket {
            shard: Shard::new(ShardId(0), 1, test_market::reference(), settings),
            out: Outbox::new(0),
            now: test_market::start(),
            dice: Dice::new(1),
            ids: 0,
            open: Vec::with_capacity(1_024),
            fills: 0,
            depths: 0,
            last: None,
        };
        market.send_command(CommandKind::Watch { port: PortId(0), what: WatchTarget::Everything, on: true });
        market.send_command(CommandKind::Adapter { adapter: test_market::OUTSIDE_ADAPTER, connected: true });
        for security in test_market::SECURITIES {
            market.send_command(CommandKind::Subscribe { strategy: StrategyId::SERVER, security, on: true });
            for what in [
                WatchTarget::Depth(security),
                WatchTarget::Levels(security),
                WatchTarget::BookOrders(security),
                WatchTarget::Trades(security),
            ] {
                market.send_command(CommandKind::Watch { port: PortId(0), what, on: true });
            }
        }
        market
    }

    fn send_command(&mut self, body: CommandKind) {
        let command = Command::new(test_market::source(0, 1), 1, body);
        self.last = Some(command);
        self.shard.apply(self.now, &command, &mut self.out);
        self.drain_events();
        while self.shard.has_work() {
            self.shard.resume(&mut self.out);
            self.drain_events();
        }
        while self.shard.has_depths() {
            self.shard.emit_depths(&mut self.out);
            self.drain_events();
        }
    }

    fn drain_events(&mut self) {
        for (_, event) in self.out.waiting() {
            self.depths += u64::from(matches!(event.body, EventKind::Depth(_) | EventKind::Levels(_)));
            let Some(report) = event.report() else { continue };
            self.fills += report.last_qty.is_positive() as u64;
            let is_new = matches!(event.body, EventKind::Order(_)) && !report.status.is_finished();
            if is_new && !self.open.contains(&report.order) && self.open.len() < self.open.capacity() {
                self.open.push(report.order);
            }
            if report.status.is_finished() {
                self.open.retain(|&order| order != report.order);
            }
        }
        self.out.clear();
    }

    fn id(&mut self) -> IntId {
        self.ids += 1;
        IntId::numbered(b'o', self.ids)
    }

    fn round(&mut self) {
        self.now = self.now.plus(1_000_000);
        let id = self.id();
        match self.dice.below(12) {
            0..=4 => {
                let terms = self.terms();
                self.send_command(CommandKind::Submit { id, terms });
            }
            5 | 6 if !self.open.is_empty() => {
                let order = self.dice.pick(&self.open);
                let ticks = self.dice.between(-20, 20);
                let price = test_market::price("100").raw() + ticks * tick(SecurityId(5));
                let changes = Changes::default().with_limit(pitlane_engine::number::Price::from_raw(price));
                self.send_command(CommandKind::Modify { order, id, changes });
            }
            7 | 8 if !self.open.is_empty() => {
                let order = self.dice.pick(&self.open);
                self.send_command(CommandKind::Cancel { order, id });
            }
            9 if !self.open.is_empty() => {
                let order = self.dice.pick(&self.open);
                let report = self.report(order);
                self.send_command(CommandKind::Report { order, report });
            }
            _ => self.tick(),
        }
        while self.open.len() > OPEN_MAX * test_market::SECURITIES.len() {
            let (order, id) = (self.open[0], self.id());
            self.open.remove(0);
            self.send_command(CommandKind::Cancel { order, id });
        }
        if self.shard.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.send_command(CommandKind::Timer);
        }
    }

    fn terms(&mut self) -> Terms {
        let security = self.dice.pick(&test_market::SECURITIES);
        let side = self.dice.pick(&Side::BOTH);
        let mut terms = limit(security, side, "1", "100");
        terms.strategy = StrategyId::SERVER;
        if !test_market::ABROAD.contains(&security) {
            terms.account = self.dice.pick(&test_market::HOME_ACCOUNTS);
        }
        terms.qty = Qty::from_raw(self.dice.between(1, 9) * lot(security));
        let ticks = self.dice.between(-20, 20) * tick(security);
        terms.limit = pitlane_engine::number::Price::from_raw(test_market::price("100").raw() + ticks);
        terms.tif = self.dice.pick(&[Tif::Day, Tif::Gtc, Tif::Ioc, Tif::Fok, Tif::Gtd]);
        if terms.tif == Tif::Gtd {
            terms.tif_date = self.now.plus(50_000_000);
        }
        if self.dice.percent(15) {
            terms.kind = OrderKind::StopLimit;
            (terms.stop, terms.stop_given) = (terms.limit, true);
        }
        terms
    }

    fn report(&mut self, order: OrderHandle) -> VenueReport {
        let qty = Qty::from_raw(self.dice.between(1, 9) * 100_000_000);
        match self.dice.below(4) {
            0 => VenueReport::Accepted,
            1 => VenueReport::Canceled(pitlane_engine::reason::Reason::VenueCancelled),
            2 => VenueReport::Replaced,
            _ => {
                let exec = ExecRef((self.ids as u128) << 64 | order.raw() as u128);
                VenueReport::Filled { exec, qty, price: test_market::price("100") }
            }
        }
    }

    fn tick(&mut self) {
        let security = self.dice.pick(&test_market::SECURITIES);
        let bid = test_market::price("100").raw() + self.dice.between(-15, 15) * tick(security);
        let size = |dice: &mut Dice| Qty::from_raw(dice.between(0, 20) * lot(security));
        let quote = Quote {
            bid: pitlane_engine::number::Price::from_raw(bid),
            bid_size: size(&mut self.dice),
            ask: pitlane_engine::number::Price::from_raw(bid + tick(security)),
            ask_size: size(&mut self.dice),
            at: self.now,
        };
        let trade = Trade { price: quote.bid, size: size(&mut self.dice), at: self.now };
        self.send_command(CommandKind::Tick { security, quote, trade });
    }
}

/// STOMP: 100 consumers that stopped reading, each of 1,000 instruments, cost less than 64 MiB in
/// total.
#[test]
fn stalled_consumers_cost_little_memory() {
    use pitlane_dialogue::stomp_frames;
    use pitlane_engine::event::Tick;
    use pitlane_engine::number::Price;
    use pitlane_protocols::stomp::broker::StompBroker;
    use pitlane_protocols::stomp::session::Transport;
    use pitlane_protocols::stomp::settings::BrokerSettings;

    const CONSUMERS: usize = 100;
    const INSTRUMENTS: u64 = 1_000;
    const BYTES_MAX: u64 = 64 << 20;

    let now = test_market::start();
    let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
    let mut ids = Vec::new();
    let info = allocation_counter::measure(|| {
        for _ in 0..CONSUMERS {
            let id = broker.open(now, Transport::Tcp).expect("there is room");
            for frame in ["CONNECT|accept-version:1.2||", "SUBSCRIBE|id:1|destination:/topic/tick.*||"] {
                broker.handle_bytes(now, id, &stomp_frames::frame(frame));
            }
            ids.push(id);
        }
        for seq in 0..5 * INSTRUMENTS {
            let security = SecurityId((seq % INSTRUMENTS) as u32);
            let (bid, bid_size) = (Price::from_raw(seq as i64), Qty::from_raw(1));
            let tick = Tick { security, bid, bid_size, at: now, ..Tick::default() };
            broker.publish_tick(now, seq, now, &tick);
        }
    });
    for id in ids {
        let (_, counters, fill) = broker.session_status(id).expect("it is stalled, not gone");
        assert_eq!(fill.slots, index_usize(INSTRUMENTS), "every instrument waits once");
        assert!(counters.conflated > 1_000, "{counters:?}");
    }
    assert!(info.bytes_max < BYTES_MAX, "{} octets", info.bytes_max);
}

/// STOMP: ticks, a log event, and the entry and fill of an order to twenty consumers that keep up,
/// half of them with shared frames, allocate nothing once everything is warm.
#[test]
fn a_warm_broker_allocates_nothing_per_message_and_subscriber() {
    use pitlane_dialogue::stomp_frames;
    use pitlane_engine::event::Tick;
    use pitlane_engine::number::Price;
    use pitlane_protocols::stomp::broker::StompBroker;
    use pitlane_protocols::stomp::payload::system::{LogEventPayload, LogLevel};
    use pitlane_protocols::stomp::session::Transport;
    use pitlane_protocols::stomp::settings::BrokerSettings;

    let now = test_market::start();
    let mut broker = StompBroker::new(BrokerSettings::default(), test_market::reference());
    let mut consumers = Vec::new();
    let json = "SUBSCRIBE|id:1|destination:/topic/>||";
    let shared = "SUBSCRIBE|id:1|destination:/topic/>|accept:application/x-pitlane-sbe|batch:true||";
    for subscribe in [[json; 10], [shared; 10]].concat() {
        let id = broker.open(now, Transport::Tcp).expect("there is room");
        for frame in ["CONNECT|accept-version:1.2||", subscribe] {
            broker.handle_bytes(now, id, &stomp_frames::frame(frame));
        }
        consumers.push(id);
    }
    broker.set_fix_session_name(PortId(0), 1, "CLIENT1");
    let mut harness = ShardHarness::new(ShardSettings::default());
    let (order, mut events) = harness.submit(limit(test_market::ABROAD[0], Side::Buy, "10", "100"));
    events.extend(harness.report(order, VenueReport::Accepted));
    events.extend(harness.fill(order, 1, "4", "99.5"));
    assert!(events.iter().any(|event| matches!(event.body, EventKind::Booked(_))), "it was filled");
    let mut sent = 0;
    let mut turn = |seq: u64| {
        let now = now.plus(seq * 1_000);
        let bid = Price::from_raw(seq as i64);
        // So many that the length of a shared frame gets further digits.
        for number in 0..12 {
            let security = SecurityId(((seq + number) % 7) as u32 + 1);
            let tick = Tick { security, bid, bid_size: Qty::from_raw(1), at: now, ..Tick::default() };
            broker.publish_tick(now, seq, now, &tick);
        }
        let event = LogEventPayload { level: LogLevel::Warn, logger: "l", message: "m", fields: &[] };
        broker.publish_log_event(now, now, &event);
        events.iter().for_each(|event| broker.handle_event(now, ShardId(0), event));
        while let Some(id) = broker.poll_active() {
            let len = broker.transmit(id).map_or(0, |transmit| transmit.bytes.len());
            broker.handle_transmitted(now, id, len);
            sent += len;
        }
    };
    (1..1_000).for_each(&mut turn);
    let info = allocation_counter::measure(|| (1_000..3_000).for_each(&mut turn));
    assert_eq!(info.count_total, 0);
    assert!(sent > 3_000 * 10 * 2 * 200, "only {sent} octets were sent");
}
