//! A shard set up for a workload: its reference data, its limits, and the commands that records
//! become.
//!
//! Every limit is set, and so wide that nothing is rejected: the checks run, and the flow stays
//! unchanged.

use std::sync::Arc;

use pitlane_config::pages::LARGE_PAGES;
use pitlane_engine::command::{Command, CommandKind, RiskLimits, Scope, StrategyPhase, Trade, WatchTarget};
use pitlane_engine::id::{
    AccountId, AdapterId, Currency, ExchangeId, FamilyId, IntId, OrderHandle, Origin, PortId, SecurityId,
    ShardId, Source, StrategyId,
};
use pitlane_engine::index::index_u32;
use pitlane_engine::number::{ContractSize, Money, Qty};
use pitlane_engine::outbox::Outbox;
use pitlane_engine::refdata::{
    Exchange, OrderLimits, RefData, RefDataRows, Security, SecurityFamily, SecurityKind, StrategyInfo,
    TradingAccount,
};
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::terms::{Changes, OrderKind, Terms, Tif};
use pitlane_engine::time::{TimeOfDay, Timestamp};

use crate::units::{self, LOT, TICK};
use crate::workload::{PRICE_MAX, RecordKind, Workload, WorkloadRecord, WorkloadSide};

/// Source of all orders.
pub const SOURCE: Source = Source { origin: Origin::Rest, port: PortId(0), session: 1 };
const STRATEGY: StrategyId = StrategyId(1);
const ACCOUNTS: [AccountId; 2] = [AccountId(1), AccountId(2)];
/// Id of the first security: a workload counts securities from 0, the engine from 1.
const FIRST_SECURITY: u32 = 1;
/// Virtual nanoseconds between two commands: longer than the window for duplicates, so that this
/// check runs and never hits.
pub const STEP_NS: u64 = 2_000_000;
const DUPLICATE_WINDOW_MS: u32 = 1;
/// Begin of the shard's time: a day in 2026.
pub const START: Timestamp = Timestamp(1_790_000_000_000_000_000);
/// Order slots beyond the open orders, for finished ones that are kept for a while.
const SLOTS_BESIDES: usize = 200_000;

/// Returns a shard that is ready for the first record, and an empty outbox.
pub fn shard_for(workload: &Workload) -> (Shard, Outbox) {
    let reference = Arc::new(reference(workload.securities));
    let settings = ShardSettings {
        orders_max: index_u32(workload.prefill.len() * 2 + SLOTS_BESIDES),
        pages: LARGE_PAGES,
        ..ShardSettings::default()
    };
    let mut shard = Shard::new(ShardId(0), 1, reference, settings);
    let mut outbox = Outbox::new(0);
    for body in setup(workload) {
        apply(&mut shard, START, body, &mut outbox);
        outbox.clear();
    }
    (shard, outbox)
}

fn apply(shard: &mut Shard, now: Timestamp, body: CommandKind, outbox: &mut Outbox) {
    shard.apply(now, &command(body), outbox);
    while shard.has_work() {
        outbox.clear();
        shard.resume(outbox);
    }
}

#[inline(always)]
pub fn command(body: CommandKind) -> Command {
    Command::new(SOURCE, 0, body)
}

/// Returns the commands for a new shard before the flow begins.
pub fn setup(workload: &Workload) -> Vec<CommandKind> {
    let mut bodies = vec![
        CommandKind::Watch { port: SOURCE.port, what: WatchTarget::Orders, on: true },
        CommandKind::Phase { strategy: STRATEGY, phase: StrategyPhase::Running },
        CommandKind::Limits { scope: Scope::Strategy(STRATEGY), limits: wide(Money::ZERO) },
    ];
    let credit = Money::from_raw(i64::MAX / 4);
    for account in ACCOUNTS {
        bodies.push(CommandKind::Limits { scope: Scope::Account(account), limits: wide(credit) });
    }
    // A last price gives market orders a value and limit orders a collar.
    let first = first_prices(workload);
    for (security, ticks) in first.into_iter().enumerate() {
        let trade = Trade { price: units::price(ticks), size: LOT, at: START };
        bodies.push(CommandKind::Trade { security: security_id(index_u32(security)), trade });
    }
    bodies
}

fn wide(credit: Money) -> RiskLimits {
    RiskLimits {
        max_order_qty: Qty::from_raw(i64::MAX / 4),
        max_order_value: Money::from_raw(i64::MAX / 4),
        price_collar_bp: u32::MAX,
        max_open_orders: u32::MAX,
        max_position: Qty::from_raw(i64::MAX / 4),
        max_orders_per_s: u32::MAX,
        duplicate_window_ms: DUPLICATE_WINDOW_MS,
        credit,
        credit_currency: currency(),
        trading_enabled: true,
    }
}

fn first_prices(workload: &Workload) -> Vec<i32> {
    let mut first = vec![0; workload.securities as usize];
    for record in workload.records().filter(|record| record.kind == RecordKind::New && record.price > 0) {
        let price = &mut first[record.security as usize];
        if *price == 0 {
            *price = record.price;
        }
    }
    first.into_iter().map(|price| if price == 0 { PRICE_MAX / 2 } else { price }).collect()
}

pub fn security_id(security: u32) -> SecurityId {
    SecurityId(security + FIRST_SECURITY)
}

/// Returns the command of a record, built in one step: parts that are assembled afterwards would be
/// copied, and the CPU would wait for them.
#[inline(always)]
pub fn command_of(record: &WorkloadRecord, order: OrderHandle, request: u64) -> Command {
    match record.kind {
        RecordKind::New => command(submit(record, OrderKind::Limit, Tif::Gtc)),
        RecordKind::Ioc => command(submit(record, OrderKind::Limit, Tif::Ioc)),
        RecordKind::Market => command(submit(record, OrderKind::Market, Tif::Ioc)),
        RecordKind::Cancel | RecordKind::Replace => command(body_of(record, order, request)),
    }
}

/// Returns what a record requests. `order` is the handle from the shard, `request` a number that no
/// other request has.
#[inline(always)]
pub fn body_of(record: &WorkloadRecord, order: OrderHandle, request: u64) -> CommandKind {
    match record.kind {
        RecordKind::New => submit(record, OrderKind::Limit, Tif::Gtc),
        RecordKind::Ioc => submit(record, OrderKind::Limit, Tif::Ioc),
        RecordKind::Market => submit(record, OrderKind::Market, Tif::Ioc),
        RecordKind::Cancel => CommandKind::Cancel { order, id: IntId::numbered(b'c', request) },
        RecordKind::Replace => {
            let changes = Changes::default().with_limit(units::price(record.price));
            CommandKind::Modify { order, id: IntId::numbered(b'm', request), changes }
        }
    }
}

#[inline(always)]
fn submit(record: &WorkloadRecord, kind: OrderKind, tif: Tif) -> CommandKind {
    let has_limit = kind.has_limit();
    let limit = if has_limit { record.price } else { 0 };
    let terms = Terms {
        qty: units::qty(record.qty),
        limit: units::price(limit),
        security: security_id(record.security),
        strategy: STRATEGY,
        account: units::account(record.side),
        side: units::side(record.side),
        kind,
        tif,
        limit_given: has_limit,
        ..Terms::default()
    };
    CommandKind::Submit { id: IntId::numbered(b'w', record.order), terms }
}

/// Returns a limit order that rests. Orders with near numbers differ, so that none is taken for a
/// duplicate.
pub fn resting(number: u64) -> WorkloadRecord {
    let qty = 1 + (number % 1_000) as u32;
    WorkloadRecord {
        kind: RecordKind::New,
        side: WorkloadSide::Buy,
        security: 0,
        order: number,
        price: 100,
        qty,
    }
}

fn currency() -> Currency {
    Currency::parse(b"USD").expect("three capitals")
}

/// Returns reference data with one exchange on the simulated venue, one family, and this many
/// securities.
pub fn reference(securities: u32) -> RefData {
    let exchange = Exchange {
        id: ExchangeId(1),
        name: "Bench".into(),
        mic: "XOFF".into(),
        time_zone: "UTC".into(),
        open: TimeOfDay::default(),
        close: TimeOfDay::default(),
        auctions: false,
        adapter: AdapterId::SIM,
        adapter_type: "SIM".into(),
    };
    let family = SecurityFamily {
        id: FamilyId(1),
        name: "Shares".into(),
        symbol_root: "S".into(),
        exchange: exchange.id,
        currency: currency(),
        contract_size: ContractSize::ONE,
        tick_size: TICK,
        lot_size: LOT,
        commission: Money::ZERO,
        limits: OrderLimits::NONE,
        tradeable: true,
        expirable: false,
    };
    let account = |id: AccountId| TradingAccount {
        id,
        name: format!("account {id}"),
        active: true,
        adapter_type: "SIM".into(),
        exchanges: Vec::new(),
        strategies: Vec::new(),
    };
    let strategy =
        |id: StrategyId, name: &str| StrategyInfo { id, name: name.to_owned(), auto_activate: false };
    let rows = RefDataRows {
        exchanges: vec![exchange],
        families: vec![family],
        securities: (0..securities).map(security).collect(),
        accounts: ACCOUNTS.map(account).to_vec(),
        strategies: vec![strategy(StrategyId::SERVER, "SERVER"), strategy(STRATEGY, "BENCH")],
    };
    RefData::check(rows).expect("rows that belong together")
}

fn security(number: u32) -> Security {
    Security {
        id: security_id(number),
        symbol: format!("S{number}"),
        description: String::new(),
        kind: SecurityKind::Stock,
        family: FamilyId(1),
        isin: None,
        underlying: None,
        expiration: None,
        strike: None,
        option: None,
        base_currency: None,
        start_price: None,
        tradeable: true,
    }
}
