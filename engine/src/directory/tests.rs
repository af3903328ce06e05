use super::*;
use crate::codec::{ByteReader, DecodeProblem, Digest};
use crate::number::ContractSize;
use crate::refdata::OrderKinds;
use crate::refdata::sample::sound;
use crate::terms::OrderKind;

/// A change of one part of a directory.
type Change = fn(&mut Directory);

fn directory() -> Directory {
    let mut rows = sound();
    let kinds = OrderKinds::of([OrderKind::Limit]).unwrap();
    rows.families[0].limits = OrderLimits { kinds, ..OrderLimits::NONE };
    let reference = Arc::new(RefData::check(rows).unwrap());
    let mut directory = Directory::new(ShardId(0), 1, reference);
    for strategy in [0, 1] {
        directory.subscribe(StrategyId(strategy), SecurityId(1), true).unwrap();
    }
    directory
}

fn bytes(directory: &Directory) -> Vec<u8> {
    let mut bytes = Vec::new();
    directory.save(&mut bytes);
    bytes
}

fn loaded(directory: &Directory, shard: ShardId, shards: u8) -> Result<Directory, DecodeProblem> {
    let saved = bytes(directory);
    let loaded = Directory::load(&mut ByteReader::new(&saved), shard, shards, directory.reference.clone());
    loaded.map_err(|damage| damage.problem)
}

fn digest(directory: &Directory) -> u64 {
    let mut sum = Digest::new();
    directory.fold(&mut sum);
    sum.sum()
}

#[test]
fn a_loaded_directory_is_the_saved_one() {
    let mut directory = directory();
    // An account of earlier reference data does not know the exchanges that were added since.
    directory.accounts[1].admits.pop();
    let again = loaded(&directory, ShardId(0), 1).unwrap();
    assert_eq!((bytes(&again), digest(&again)), (bytes(&directory), digest(&directory)));
    for id in 0..4 {
        assert_eq!(again.local(SecurityId(id)), directory.local(SecurityId(id)));
        assert_eq!(again.account(AccountId(id as u16)), directory.account(AccountId(id as u16)));
        assert_eq!(again.strategy(StrategyId(id as u16)), directory.strategy(StrategyId(id as u16)));
    }
    let limits =
        |directory: &Directory| directory.locals.iter().map(|local| local.limits.clone()).collect::<Vec<_>>();
    assert!(limits(&again)[0].is_some());
    assert_eq!(limits(&again), limits(&directory));
}

#[test]
fn a_directory_that_contradicts_itself_is_not_loaded() {
    let changes: [(&str, Change); 19] = [
        ("a place", |d| d.locals[1].instrument.local = 0),
        ("a large id", |d| d.locals[1].instrument.security = SecurityId(SecurityId::MAX + 1)),
        ("no such exchange", |d| d.locals[1].exchange = 2),
        ("no contract size", |d| d.locals[1].instrument.size = ContractSize::ZERO),
        ("subscribers out of order", |d| d.locals[0].subscribers.reverse()),
        ("a subscriber twice", |d| d.locals[0].subscribers = vec![StrategyId(1); 2]),
        ("the guard of another account", |d| {
            d.accounts[0].guard = RiskGuard::new(Scope::Account(AccountId(2)))
        }),
        ("the guard of a strategy", |d| d.accounts[0].guard = RiskGuard::new(Scope::Strategy(StrategyId(1)))),
        ("an active account without all exchanges", |d| _ = d.accounts[0].admits.pop()),
        ("an active account with too many exchanges", |d| d.accounts[0].admits.push(true)),
        ("an inactive account with too many exchanges", |d| d.accounts[1].admits.push(true)),
        ("the guard of another strategy", |d| {
            d.strategies[0].guard = RiskGuard::new(Scope::Strategy(StrategyId(1)));
        }),
        ("a security twice", |d| d.locals[1].instrument.security = SecurityId(1)),
        ("an exchange twice", |d| d.exchanges[1].id = ExchangeId(1)),
        ("an account twice", |d| {
            d.accounts[1].id = AccountId(1);
            d.accounts[1].guard = RiskGuard::new(Scope::Account(AccountId(1)));
        }),
        ("a strategy twice", |d| {
            d.strategies[1].id = StrategyId(0);
            d.strategies[1].guard = RiskGuard::new(Scope::Strategy(StrategyId(0)));
        }),
        ("the first of all wrong", |d| d.locals[0].instrument.local = 2),
        ("the last of all wrong", |d| d.locals[2].exchange = u16::MAX),
        ("an account without exchanges", |d| d.accounts[0].admits.clear()),
    ];
    for (name, change) in changes {
        let mut directory = directory();
        change(&mut directory);
        assert_eq!(loaded(&directory, ShardId(0), 1).err(), Some(DecodeProblem::Contradiction), "{name}");
    }
    let other = ShardId(1 - shard_of(SecurityId(1), 2).0);
    assert_eq!(loaded(&directory(), other, 2).err(), Some(DecodeProblem::Contradiction), "another shard");
}

#[test]
fn a_security_without_a_tick_or_a_lot_is_no_value() {
    let changes: [Change; 2] = [|d| d.locals[0].tick = Price::ZERO, |d| d.locals[0].lot = Qty::ZERO];
    for change in changes {
        let mut directory = directory();
        change(&mut directory);
        assert_eq!(loaded(&directory, ShardId(0), 1).err(), Some(DecodeProblem::Value));
    }
}

#[test]
fn a_digest_contains_switches_sessions_phases_and_limits_in_use() {
    let changes: [(&str, Change); 11] = [
        ("nothing", |_| {}),
        ("tradeable", |d| d.locals[0].tradeable = false),
        ("killed", |d| d.locals[0].killed = true),
        ("halted", |d| d.locals[0].halted = true),
        ("expired", |d| d.locals[0].expired = true),
        ("suspect", |d| d.locals[0].suspect = true),
        ("session", |d| d.exchanges[0].session = TradingSession::ClosingAuction),
        ("hours", |d| d.exchanges[0].has_hours = true),
        ("over", |d| d.exchanges[0].over = Some(Day(3))),
        ("phase", |d| d.strategies[1].phase = StrategyPhase::Exit),
        ("guard", |d| d.accounts[0].guard.set_killed(true)),
    ];
    let mut known = std::collections::BTreeMap::new();
    for (name, change) in changes {
        let mut directory = directory();
        change(&mut directory);
        assert_eq!(known.insert(digest(&directory), name), None, "{name}");
    }
}

#[test]
fn staged_reference_data_are_taken_once_under_their_name() {
    let mut directory = directory();
    assert!(!directory.has_staged(7) && directory.take_staged(7).is_none());
    directory.stage(7, directory.reference.clone());
    assert_eq!([7, 8].map(|name| directory.has_staged(name)), [true, false]);
    assert!(directory.take_staged(8).is_none() && directory.has_staged(7));
    assert!(directory.take_staged(7).is_some() && !directory.has_staged(7));
}

#[test]
fn an_expired_security_stays_expired_whatever_later_reference_data_say() {
    let mut directory = directory();
    let option = directory.local(SecurityId(2)).unwrap();
    let mut rows = sound();
    let expires = rows.securities[1].expiration.unwrap();
    directory.exchanges[0].over = Some(expires);
    let with = |rows: &crate::refdata::RefDataRows| Arc::new(RefData::check(rows.clone()).unwrap());
    directory.set_reference(ShardId(0), 1, with(&rows));
    assert!(directory.is_expired(option) && !directory.is_expired(0));
    rows.securities[1].expiration = Some(Day(expires.0 + 30));
    directory.set_reference(ShardId(0), 1, with(&rows));
    assert!(directory.is_expired(option));
}

#[test]
fn a_report_of_an_adapter_clears_the_suspicion_against_all_its_securities() {
    let mut directory = directory();
    assert!(!directory.clear_suspect(AdapterId::SIM));
    directory.locals.iter_mut().take(2).for_each(|local| local.suspect = true);
    assert!(!directory.clear_suspect(AdapterId(9)));
    assert!(directory.clear_suspect(AdapterId::SIM), "two of them were suspect");
    assert!(directory.locals.iter().all(|local| !local.suspect));
    let exchanges = [0, 1, 2, 3].map(|local| directory.exchange_of(local));
    assert_eq!(exchanges, [Some(0), Some(0), Some(1), None]);
}
