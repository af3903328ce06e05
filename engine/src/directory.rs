//! Data that a shard looks up on every order: its securities, and all accounts, strategies and
//! exchanges, in dense tables built from the reference data. Switches, sessions and watchers are
//! state of the shard.

mod codec;

use std::sync::Arc;

use crate::command::{Scope, StrategyPhase, TradingSession};
use crate::id::{AccountId, AdapterId, ExchangeId, PortMask, SecurityId, ShardId, StrategyId};
use crate::index::{index_u16, index_u32};
use crate::ledger::Instrument;
use crate::number::{Grid, Money, Price, Qty};
use crate::prefetch::fetch;
use crate::reason::Reason;
use crate::refdata::{OrderLimits, RefData, Security, SecurityFamily};
use crate::risk::RiskGuard;
use crate::shard::shard_of;
use crate::time::{Day, Timestamp};

/// A security of this shard.
#[derive(Clone, Debug)]
pub struct LocalSecurity {
    pub instrument: Instrument,
    pub tick: Price,
    pub lot: Qty,
    pub ticks: Grid,
    pub lots: Grid,
    /// Per unit of quantity.
    pub commission: Money,
    /// What its venue limits per order; `None`: nothing, as for most securities.
    pub limits: Option<Box<OrderLimits>>,
    /// Index of its exchange.
    pub exchange: u16,
    pub adapter: AdapterId,
    pub tradeable: bool,
    /// Whether it has expired. This is final: later reference data do not revive it.
    pub expired: bool,
    pub killed: bool,
    pub halted: bool,
    /// Whether its adapter has refused to send a stop since it last reported its connection: then
    /// the adapter is disconnected and will report so.
    pub suspect: bool,
    /// Ports that watch its ticks.
    pub watchers: PortMask,
    /// Strategies subscribed to it, sorted.
    pub subscribers: Vec<StrategyId>,
}

#[derive(Clone, Debug)]
pub struct ExchangeEntry {
    pub id: ExchangeId,
    pub auctions: bool,
    pub adapter: AdapterId,
    pub session: TradingSession,
    /// Whether it closes, so that its DAY orders end at the close and not with the trading day.
    pub has_hours: bool,
    /// Start of the session by its calendar; zero: unknown.
    pub since: Timestamp,
    /// The last date that is over there: securities that expire on it or before have expired.
    pub over: Option<Day>,
}

#[derive(Clone, Debug)]
pub struct AccountEntry {
    pub id: AccountId,
    pub active: bool,
    /// By index of the exchange.
    pub admits: Vec<bool>,
    /// Strategies that may use it. An empty list means all.
    pub strategies: Vec<StrategyId>,
    pub guard: RiskGuard,
}

#[derive(Clone, Debug)]
pub struct StrategyEntry {
    pub id: StrategyId,
    pub phase: StrategyPhase,
    pub guard: RiskGuard,
}

/// No entry under this id.
const ABSENT: u32 = u32::MAX;

#[derive(Debug)]
pub struct Directory {
    pub reference: Arc<RefData>,
    pub locals: Vec<LocalSecurity>,
    pub exchanges: Vec<ExchangeEntry>,
    pub accounts: Vec<AccountEntry>,
    pub strategies: Vec<StrategyEntry>,
    /// Index by id, [`ABSENT`] where there is none.
    local_by_id: Vec<u32>,
    account_by_id: Vec<u32>,
    strategy_by_id: Vec<u32>,
    /// Reference data that are to follow, with their name; not part of the state.
    staged: Option<(u64, Arc<RefData>)>,
}

impl Directory {
    pub fn new(shard: ShardId, shards: u8, reference: Arc<RefData>) -> Directory {
        let mut directory = Directory {
            reference: reference.clone(),
            locals: Vec::new(),
            exchanges: Vec::new(),
            accounts: Vec::new(),
            strategies: Vec::new(),
            local_by_id: Vec::new(),
            account_by_id: Vec::new(),
            strategy_by_id: Vec::new(),
            staged: None,
        };
        directory.set_reference(shard, shards, reference);
        directory
    }

    /// Stages reference data under a name.
    pub fn stage(&mut self, name: u64, reference: Arc<RefData>) {
        self.staged = Some((name, reference));
    }

    pub fn has_staged(&self, name: u64) -> bool {
        self.staged.as_ref().is_some_and(|(staged, _)| *staged == name)
    }

    /// Returns the staged reference data if they have this name, once.
    pub fn take_staged(&mut self, name: u64) -> Option<Arc<RefData>> {
        self.staged.take_if(|(staged, _)| *staged == name).map(|(_, reference)| reference)
    }

    /// Applies new reference data. New rows follow the existing ones, existing rows keep their
    /// place and state, and a security that is gone can no longer be traded. Returns the number of
    /// new securities.
    pub fn set_reference(&mut self, shard: ShardId, shards: u8, reference: Arc<RefData>) -> usize {
        self.reference = reference.clone();
        for exchange in reference.exchanges() {
            let place = match self.exchanges.iter_mut().find(|place| place.id == exchange.id) {
                Some(place) => place,
                None => {
                    self.exchanges.push(ExchangeEntry {
                        id: exchange.id,
                        auctions: exchange.auctions,
                        adapter: exchange.adapter,
                        session: TradingSession::default(),
                        has_hours: false,
                        since: Timestamp::ZERO,
                        over: None,
                    });
                    continue;
                }
            };
            (place.auctions, place.adapter) = (exchange.auctions, exchange.adapter);
        }
        for local in &mut self.locals {
            local.tradeable = false;
        }
        let before = self.locals.len();
        for security in reference.securities().iter().filter(|row| shard_of(row.id, shards) == shard) {
            self.update_security(&reference, security);
        }
        self.update_accounts_and_strategies(&reference);
        self.locals.len() - before
    }

    fn update_security(&mut self, reference: &RefData, security: &Security) {
        let family = reference.family_of(security);
        let exchange = self.exchange_index(family.exchange).expect("references were checked");
        let index = lookup(&self.local_by_id, security.id.0).unwrap_or(self.local_count());
        let fresh = LocalSecurity {
            instrument: Instrument {
                security: security.id,
                local: index,
                currency: family.currency,
                size: family.contract_size,
            },
            tick: family.tick_size,
            lot: family.lot_size,
            ticks: Grid::new(family.tick_size.raw()),
            lots: Grid::new(family.lot_size.raw()),
            commission: family.commission,
            limits: limits_of(family),
            exchange,
            adapter: self.exchanges[exchange as usize].adapter,
            tradeable: security.tradeable && family.tradeable,
            // A security that is added too late has never been traded.
            expired: security
                .expiration
                .is_some_and(|date| self.exchanges[exchange as usize].over.is_some_and(|over| date <= over)),
            killed: false,
            halted: false,
            suspect: false,
            watchers: PortMask::NONE,
            subscribers: Vec::new(),
        };
        match self.locals.get_mut(index as usize) {
            // Choice: tick, lot and contract size never change for a security; only the commission,
            // the limits per order and whether it may be traded can change under its orders and
            // positions.
            Some(local) => {
                (local.commission, local.tradeable) = (fresh.commission, fresh.tradeable);
                local.limits = fresh.limits;
                local.expired |= fresh.expired;
            }
            None => {
                self.locals.push(fresh);
                index_id(&mut self.local_by_id, security.id.0, index);
            }
        }
    }

    fn update_accounts_and_strategies(&mut self, reference: &RefData) {
        for account in &mut self.accounts {
            account.active = false;
        }
        for row in reference.accounts() {
            let admits: Vec<bool> = self
                .exchanges
                .iter()
                .map(|place| {
                    reference.exchange(place.id).is_some_and(|exchange| reference.admits(row, exchange))
                })
                .collect();
            match lookup(&self.account_by_id, row.id.0 as u32) {
                Some(at) => {
                    let entry = &mut self.accounts[at as usize];
                    (entry.active, entry.admits) = (row.active, admits);
                    entry.strategies.clone_from(&row.strategies);
                }
                None => {
                    index_id(&mut self.account_by_id, row.id.0 as u32, index_u32(self.accounts.len()));
                    let guard = RiskGuard::new(Scope::Account(row.id));
                    let strategies = row.strategies.clone();
                    self.accounts.push(AccountEntry {
                        id: row.id,
                        active: row.active,
                        admits,
                        strategies,
                        guard,
                    });
                }
            }
        }
        for row in reference.strategies() {
            if lookup(&self.strategy_by_id, row.id.0 as u32).is_none() {
                index_id(&mut self.strategy_by_id, row.id.0 as u32, index_u32(self.strategies.len()));
                let phase =
                    if row.id == StrategyId::SERVER { StrategyPhase::Running } else { StrategyPhase::Init };
                self.strategies.push(StrategyEntry {
                    id: row.id,
                    phase,
                    guard: RiskGuard::new(Scope::Strategy(row.id)),
                });
            }
        }
    }

    #[inline]
    pub fn local(&self, security: SecurityId) -> Option<u32> {
        lookup(&self.local_by_id, security.0)
    }

    /// Prefetches a security.
    #[inline]
    pub fn fetch(&self, local: u32) {
        let local = &self.locals[local as usize];
        fetch(&local.instrument);
        fetch(&local.commission);
        fetch(&local.tradeable);
    }

    /// Returns a security of this shard. Its index is in its instrument.
    #[inline]
    pub fn security(&self, id: SecurityId) -> Option<&LocalSecurity> {
        self.locals.get(*self.local_by_id.get(id.0 as usize)? as usize)
    }

    #[inline]
    pub fn account(&self, id: AccountId) -> Option<u32> {
        lookup(&self.account_by_id, id.0 as u32)
    }

    #[inline]
    pub fn strategy(&self, id: StrategyId) -> Option<u32> {
        lookup(&self.strategy_by_id, id.0 as u32)
    }

    /// Returns the number of local securities, which is the index after the last.
    #[inline]
    pub fn local_count(&self) -> u32 {
        index_u32(self.locals.len())
    }

    /// Returns whether the orders of a security go to the venue inside this shard.
    #[inline]
    pub fn is_simulated(&self, local: u32) -> bool {
        self.locals[local as usize].adapter == AdapterId::SIM
    }

    pub fn is_expired(&self, local: u32) -> bool {
        self.locals[local as usize].expired
    }

    /// Returns the index of the exchange of a security, if the security is one of this shard.
    pub fn exchange_of(&self, local: u32) -> Option<u16> {
        self.locals.get(local as usize).map(|local| local.exchange)
    }

    /// Clears the suspicion against an adapter that has reported its connection: the report holds
    /// for all its securities. Returns whether one of them was suspect.
    pub fn clear_suspect(&mut self, adapter: AdapterId) -> bool {
        let locals = self.locals.iter_mut().filter(|local| local.adapter == adapter);
        locals.fold(false, |was_suspect, local| std::mem::take(&mut local.suspect) | was_suspect)
    }

    /// Subscribes a strategy to a security of this shard, or ends that. Returns the index of the
    /// security and the number of its subscribers, or `None` if nothing has changed.
    pub fn subscribe(
        &mut self,
        strategy: StrategyId,
        security: SecurityId,
        on: bool,
    ) -> Result<Option<(u32, u32)>, Reason> {
        let local = self.local(security).ok_or(Reason::UnknownSecurity)?;
        self.strategy(strategy).ok_or(Reason::UnknownStrategy)?;
        let subscribers = &mut self.locals[local as usize].subscribers;
        match (subscribers.binary_search(&strategy), on) {
            (Err(at), true) => subscribers.insert(at, strategy),
            (Ok(at), false) => _ = subscribers.remove(at),
            _ => return Ok(None),
        }
        Ok(Some((local, index_u32(subscribers.len()))))
    }

    /// Adds to the number of open orders of a strategy and an account. Returns the guard of the
    /// account.
    #[inline]
    pub fn count_open(
        &mut self,
        strategy: StrategyId,
        account: AccountId,
        by: i64,
    ) -> Option<&mut RiskGuard> {
        if let Some(entry) = entry_mut(&self.strategy_by_id, &mut self.strategies, strategy.0) {
            entry.guard.count_open(by);
        }
        let guard = self.account_guard_mut(account)?;
        guard.count_open(by);
        Some(guard)
    }

    #[inline]
    pub fn account_entry(&self, id: AccountId) -> Option<(u32, &AccountEntry)> {
        entry(&self.account_by_id, &self.accounts, id.0)
    }

    #[inline]
    pub fn strategy_entry(&self, id: StrategyId) -> Option<(u32, &StrategyEntry)> {
        entry(&self.strategy_by_id, &self.strategies, id.0)
    }

    /// Returns the guard of an account.
    #[inline]
    pub fn account_guard_mut(&mut self, account: AccountId) -> Option<&mut RiskGuard> {
        entry_mut(&self.account_by_id, &mut self.accounts, account.0).map(|entry| &mut entry.guard)
    }

    pub fn exchange_index(&self, id: ExchangeId) -> Option<u16> {
        self.exchanges.iter().position(|place| place.id == id).map(index_u16)
    }

    /// Returns the guard of a strategy or an account.
    pub fn guard_mut(&mut self, scope: Scope) -> Option<&mut RiskGuard> {
        match scope {
            Scope::Strategy(id) => self.strategy(id).map(|at| &mut self.strategies[at as usize].guard),
            Scope::Account(id) => self.account(id).map(|at| &mut self.accounts[at as usize].guard),
            Scope::Global | Scope::Security(_) | Scope::Adapter(_) => None,
        }
    }
}

fn limits_of(family: &SecurityFamily) -> Option<Box<OrderLimits>> {
    (family.limits != OrderLimits::NONE).then(|| Box::new(family.limits))
}

/// Returns the index and the entry of an id. [`ABSENT`] is beyond the end of every table.
#[inline]
fn entry<'a, T>(table: &[u32], entries: &'a [T], id: u16) -> Option<(u32, &'a T)> {
    let at = *table.get(id as usize)?;
    Some((at, entries.get(at as usize)?))
}

/// Returns the entry of an id.
#[inline]
fn entry_mut<'a, T>(table: &[u32], entries: &'a mut [T], id: u16) -> Option<&'a mut T> {
    entries.get_mut(*table.get(id as usize)? as usize)
}

#[inline]
fn lookup(table: &[u32], id: u32) -> Option<u32> {
    table.get(id as usize).copied().filter(|&at| at != ABSENT)
}

fn index_id(table: &mut Vec<u32>, id: u32, at: u32) {
    if table.len() <= id as usize {
        table.resize(id as usize + 1, ABSENT);
    }
    table[id as usize] = at;
}

#[cfg(test)]
mod tests;
