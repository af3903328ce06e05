//! Decodes any bytes as a sequence of commands. Used by the fuzz target and by the replay of its
//! corpus.
//!
//! A command is a byte for its kind and then its fields. Small fields choose from the small market,
//! with a few values outside it; numbers are mostly near the market and sometimes eight raw bytes,
//! so that every bound is reached.

mod parts;

use pitlane_engine::command::{Command, CommandKind, Scope, StrategyPhase, TradingSession};
use pitlane_engine::directive::DirectiveVersion;
use pitlane_engine::id::{
    AccountId, AdapterId, ExchangeId, IntId, OrderHandle, Origin, PortId, SecurityId, Source, StrategyId,
};
use pitlane_engine::number::{Money, Price, Qty};
use pitlane_engine::sender::SenderId;
use pitlane_engine::settings::{FillModel, QuoteSizes, SelfTrade, ShardSettings, TriggerBy};
use pitlane_engine::time::{Day, Timestamp};

use crate::shard_harness::ShardHarness;
use crate::test_market;

/// Most commands of one input: longer ones find nothing new.
const COMMANDS_MAX: usize = 2_000;

/// Plays bytes on a real shard. Panics if the shard does, or if its events break an invariant of
/// [`crate::checks`].
pub fn run(bytes: &[u8]) {
    let mut bytes = Bytes { rest: bytes, orders: Vec::new(), ids: 0 };
    let mut harness = ShardHarness::bare(bytes.settings());
    for _ in 0..COMMANDS_MAX {
        if bytes.rest.is_empty() {
            break;
        }
        harness.now = harness.now.plus(bytes.time());
        let body = bytes.body(harness.now);
        for event in harness.send_command(body) {
            if let Some(report) = event.report() {
                bytes.learn(report.order);
            }
        }
        harness.publish_books();
    }
    if let Err(problem) = harness.checker.double_entry() {
        panic!("{problem}");
    }
}

/// Returns at most `count` commands from bytes, as no client would send them: from any source,
/// about any order.
pub fn commands(bytes: &[u8], count: usize) -> Vec<Command> {
    let mut bytes = Bytes { rest: bytes, orders: Vec::new(), ids: 0 };
    let mut commands = Vec::new();
    while commands.len() < count && !bytes.rest.is_empty() {
        let source = bytes.source();
        let token = bytes.raw_u32();
        let order = OrderHandle::from_raw(bytes.raw() as u64);
        bytes.learn(order);
        let now = Timestamp(bytes.raw() as u64);
        let sender = if bytes.flag() { SenderId(bytes.raw_u32()) } else { SenderId::NONE };
        commands.push(Command { source, token, sender, body: bytes.body(now) });
    }
    commands
}

struct Bytes<'a> {
    rest: &'a [u8],
    /// Handles that the shard assigned, for commands that name one.
    orders: Vec<OrderHandle>,
    /// Counter of ids, which are unique, as the desks ensure.
    ids: u64,
}

impl Bytes<'_> {
    fn learn(&mut self, order: OrderHandle) {
        if !self.orders.contains(&order) {
            self.orders.push(order);
        }
    }

    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    fn raw(&mut self) -> i64 {
        i64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Returns the lower half of a raw number.
    fn raw_u32(&mut self) -> u32 {
        (self.raw() & 0xffff_ffff) as u32
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.byte() as usize % list.len()]
    }

    fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns mostly a multiple of `unit` near `base`, at times any number.
    fn number(&mut self, base: i64, unit: i64) -> i64 {
        match self.byte() {
            250..=254 => self.raw(),
            255 => self.pick(&[0, 1, -1, i64::MAX, i64::MIN, i64::MAX / 2, i64::MIN + 1]),
            small => base + (small as i64 - 100) * unit,
        }
    }

    fn settings(&mut self) -> ShardSettings {
        let mut settings = ShardSettings {
            orders_max: self.pick(&[4, 64, 1_000]),
            finished_max: self.pick(&[1, 16, 1_000]),
            finished_outside_max: self.pick(&[1, 16, 1_000]),
            transactions_max: self.pick(&[2, 64, 1_000]),
            executions_max: self.pick(&[1, 16, 1_000]),
            trigger: self.pick(&[TriggerBy::Last, TriggerBy::Quote]),
            ..ShardSettings::default()
        };
        let venue = &mut settings.venue;
        venue.fill_model = self.pick(&FillModel::ALL);
        venue.slippage_ticks = self.pick(&[0, 1, 3, u32::MAX]);
        venue.quote_levels = self.pick(&[0, 1, 10, 1_000]);
        venue.self_trade = self.pick(&[SelfTrade::CancelNewest, SelfTrade::Allow]);
        venue.band_bp = self.pick(&[0, 0, 100, u32::MAX]);
        venue.reject_permille = self.pick(&[0, 0, 300]);
        venue.partial_fill = self.flag();
        venue.delays.entry_ns = self.pick(&[0, 0, 1_000_000, u64::MAX]);
        venue.delays.response_ns = self.pick(&[0, 0, 1_000_000, u64::MAX]);
        venue.delays.entry_jitter_ns = self.pick(&[0, 500_000]);
        venue.delays.feed_ns = self.pick(&[0, 0, 1_000]);
        venue.quote_sizes = self.pick(&[QuoteSizes::Equal, QuoteSizes::Varied]);
        settings
    }

    fn source(&mut self) -> Source {
        let origin = self.pick(&[Origin::Server, Origin::Rest, Origin::Fix, Origin::Strategy]);
        Source { origin, port: PortId(self.byte()), session: (self.raw() & 0xffff) as u16 }
    }

    fn time(&mut self) -> u64 {
        self.pick(&[0, 0, 1_000, 1_000_000, 1_000_000_000, 86_400_000_000_000])
    }

    fn id(&mut self) -> IntId {
        self.ids += 1;
        match self.byte() {
            0 => IntId::NONE,
            _ => IntId::numbered(b'o', self.ids),
        }
    }

    fn order(&mut self) -> OrderHandle {
        match self.byte() {
            254 => OrderHandle::from_raw(self.raw() as u64),
            255 => OrderHandle::NONE,
            _ if self.orders.is_empty() => OrderHandle::NONE,
            index => self.orders[self.orders.len() - 1 - index as usize % self.orders.len()],
        }
    }

    fn security(&mut self) -> SecurityId {
        match self.byte() {
            254 => test_market::NO_SECURITY,
            255 => SecurityId(u32::MAX),
            index => SecurityId(1 + index as u32 % 11),
        }
    }

    fn strategy(&mut self) -> StrategyId {
        self.pick(&[
            StrategyId(0),
            StrategyId(0),
            StrategyId(1),
            StrategyId(2),
            StrategyId(3),
            StrategyId(4),
            test_market::NO_STRATEGY,
        ])
    }

    fn account(&mut self) -> AccountId {
        AccountId(self.byte() as u16 % 9)
    }

    fn price(&mut self) -> Price {
        Price::from_raw(self.number(test_market::price("100").raw(), 25_000_000))
    }

    fn qty(&mut self) -> Qty {
        let qty = self.number(test_market::qty("1000").raw(), test_market::qty("10").raw());
        Qty::from_raw(qty)
    }

    fn money(&mut self) -> Money {
        Money::from_raw(self.number(0, 1_000_000_000))
    }

    fn date(&mut self, now: Timestamp) -> Timestamp {
        match self.byte() {
            0 => Timestamp::ZERO,
            255 => Timestamp::MAX,
            ahead => now.plus(ahead as u64 * 100_000),
        }
    }

    fn scope(&mut self) -> Scope {
        match self.byte() % 5 {
            0 => Scope::Global,
            1 => Scope::Strategy(self.strategy()),
            2 => Scope::Account(self.account()),
            3 => Scope::Security(self.security()),
            _ => Scope::Adapter(AdapterId(self.byte() % 3)),
        }
    }

    fn body(&mut self, now: Timestamp) -> CommandKind {
        match self.byte() {
            0..=79 => CommandKind::Submit { id: self.id(), terms: self.terms(now) },
            80..=99 => CommandKind::Modify { order: self.order(), id: self.id(), changes: self.changes(now) },
            100..=119 => CommandKind::Cancel { order: self.order(), id: self.id() },
            120..=127 => CommandKind::Close {
                id: self.id(),
                strategy: self.strategy(),
                account: self.account(),
                security: self.security(),
                qty: if self.flag() { Qty::ZERO } else { self.qty() },
            },
            128..=131 => CommandKind::Subscribe {
                strategy: self.strategy(),
                security: self.security(),
                on: self.flag(),
            },
            132..=145 => CommandKind::Quote { security: self.security(), quote: self.quote(now) },
            146..=159 => CommandKind::Trade { security: self.security(), trade: self.trade(now) },
            160..=161 => CommandKind::Level { security: self.security(), level: self.level(now) },
            162..=165 => CommandKind::Tick {
                security: self.security(),
                quote: self.quote(now),
                trade: self.trade(now),
            },
            166..=189 => CommandKind::Report { order: self.order(), report: self.report() },
            190..=193 => CommandKind::Adapter { adapter: AdapterId(self.byte() % 3), connected: self.flag() },
            194..=203 => CommandKind::Transaction(self.movement()),
            204 => CommandKind::Expire { security: self.security(), price: self.price() },
            205 => CommandKind::ResetPositions,
            206 => CommandKind::ResetCash,
            207..=211 => CommandKind::Limits { scope: self.scope(), limits: self.limits() },
            212..=214 => {
                CommandKind::Restrict { scope: self.scope(), security: self.security(), on: self.flag() }
            }
            215 => CommandKind::Kill { scope: self.scope(), on: self.flag() },
            216 => CommandKind::CancelOrders { id: self.id(), filter: self.cancel_filter() },
            217 => CommandKind::Direct {
                version: DirectiveVersion(self.byte() as u64),
                directive: self.directive(),
            },
            218..=221 => CommandKind::Phase {
                strategy: self.strategy(),
                phase: self.pick(&[
                    StrategyPhase::Running,
                    StrategyPhase::Running,
                    StrategyPhase::Init,
                    StrategyPhase::Stop,
                    StrategyPhase::Exit,
                ]),
            },
            222..=225 => CommandKind::Halt { security: self.security(), on: self.flag() },
            226..=230 => CommandKind::Budget(self.budget()),
            231..=236 => CommandKind::Session {
                exchange: ExchangeId(self.byte() as u16 % 4),
                session: self.pick(&TradingSession::ALL),
            },
            237 => CommandKind::Schedule {
                exchange: ExchangeId(self.byte() as u16 % 4),
                session: self.pick(&TradingSession::ALL),
                since: now,
                has_hours: self.flag(),
            },
            238 => CommandKind::Expiry {
                exchange: ExchangeId(self.byte() as u16 % 4),
                day: Day(crate::test_market::START_DAY - 1 + self.byte() as i32 % 4),
            },
            239 => CommandKind::TradingDay { day: Day(self.byte() as i32 - 5) },
            240..=243 => CommandKind::Timer,
            244 => CommandKind::VenueLevels(self.venue_levels()),
            245 => CommandKind::VenueBook { security: self.security(), is_known: self.flag() },
            246 => CommandKind::SpecialTerms(self.special_terms()),
            247 => CommandKind::Sender { id: SenderId(self.raw_u32()), part: self.sender_part() },
            248..=251 => {
                // The stage uses port 0 and keeps it.
                let port = PortId(1 + self.byte() % 31);
                CommandKind::Watch { port, what: self.watch(), on: self.flag() }
            }
            252..=255 => CommandKind::Snapshot { port: PortId(1 + self.byte() % 31) },
        }
    }
}
