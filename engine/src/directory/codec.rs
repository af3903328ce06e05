//! Bytes of the directory. It stores everything, since a security keeps its tick and its place
//! regardless of later reference data. Only the limits per order are those of the reference data,
//! with which the directory is loaded.

use std::sync::Arc;

use super::{AccountEntry, Directory, ExchangeEntry, LocalSecurity, StrategyEntry, index_id, limits_of};
use crate::codec::{ByteReader, ByteSink, Codec, DecodeError, DecodeProblem, Digest, codec};
use crate::command::Scope;
use crate::id::{SecurityId, ShardId};
use crate::index::index_u32;
use crate::ledger::Instrument;
use crate::number::{Grid, Price, Qty};
use crate::refdata::RefData;
use crate::shard::shard_of;

codec!(ExchangeEntry { id, auctions, adapter, session, has_hours, since, over });
codec!(AccountEntry { id, active, admits, strategies, guard });
codec!(StrategyEntry { id, phase, guard });

impl Codec for LocalSecurity {
    fn encode(&self, out: &mut impl ByteSink) {
        self.instrument.encode(out);
        self.tick.encode(out);
        self.lot.encode(out);
        self.commission.encode(out);
        self.exchange.encode(out);
        self.adapter.encode(out);
        [self.tradeable, self.killed, self.halted, self.suspect, self.expired].encode(out);
        self.watchers.encode(out);
        self.subscribers.encode(out);
    }

    fn decode(from: &mut ByteReader<'_>) -> Result<LocalSecurity, DecodeError> {
        let instrument: Instrument = Codec::decode(from)?;
        let (tick, lot): (Price, Qty) = Codec::decode(from)?;
        // A grid needs a positive step.
        from.check(tick.is_positive() && lot.is_positive(), DecodeProblem::Value)?;
        let commission = Codec::decode(from)?;
        let (exchange, adapter) = Codec::decode(from)?;
        let [tradeable, killed, halted, suspect, expired] = Codec::decode(from)?;
        Ok(LocalSecurity {
            instrument,
            tick,
            lot,
            ticks: Grid::new(tick.raw()),
            lots: Grid::new(lot.raw()),
            commission,
            limits: None,
            exchange,
            adapter,
            tradeable,
            expired,
            killed,
            halted,
            suspect,
            watchers: Codec::decode(from)?,
            subscribers: Codec::decode(from)?,
        })
    }
}

impl Directory {
    pub(crate) fn save(&self, out: &mut impl ByteSink) {
        self.exchanges.encode(out);
        self.locals.encode(out);
        self.accounts.encode(out);
        self.strategies.encode(out);
    }

    pub(crate) fn load(
        from: &mut ByteReader<'_>,
        shard: ShardId,
        shards: u8,
        reference: Arc<RefData>,
    ) -> Result<Directory, DecodeError> {
        let mut directory = Directory {
            reference,
            exchanges: Codec::decode(from)?,
            locals: Codec::decode(from)?,
            accounts: Codec::decode(from)?,
            strategies: Codec::decode(from)?,
            local_by_id: Vec::new(),
            account_by_id: Vec::new(),
            strategy_by_id: Vec::new(),
            staged: None,
        };
        let sound = directory.is_sound(shard, shards);
        from.check(sound, DecodeProblem::Contradiction)?;
        directory.index_all();
        directory.restore_limits();
        Ok(directory)
    }

    /// Adds switches, phases and limits in use to the digest.
    pub(crate) fn fold(&self, sum: &mut Digest) {
        for local in &self.locals {
            [local.tradeable, local.killed, local.halted].encode(sum);
        }
        self.exchanges.iter().for_each(|place| place.session.encode(sum));
        // Journals of earlier versions contain digests without these.
        let hours = self.exchanges.iter().filter(|place| place.has_hours);
        hours.for_each(|place| (place.id, place.since).encode(sum));
        let over = self.exchanges.iter().filter(|place| place.over.is_some());
        over.for_each(|place| (place.id, place.over).encode(sum));
        let expired = self.locals.iter().filter(|local| local.expired);
        expired.for_each(|local| local.instrument.security.encode(sum));
        let suspect = self.locals.iter().filter(|local| local.suspect);
        suspect.for_each(|local| (local.instrument.security, local.suspect).encode(sum));
        self.strategies.iter().for_each(|entry| entry.phase.encode(sum));
        let strategies = self.strategies.iter().map(|entry| &entry.guard);
        strategies.chain(self.accounts.iter().map(|entry| &entry.guard)).for_each(|guard| guard.fold(sum));
    }

    fn restore_limits(&mut self) {
        for local in &mut self.locals {
            let row = self.reference.security(local.instrument.security);
            local.limits = row.and_then(|row| limits_of(self.reference.family_of(row)));
        }
    }

    fn index_all(&mut self) {
        for (at, local) in self.locals.iter().enumerate() {
            index_id(&mut self.local_by_id, local.instrument.security.0, index_u32(at));
        }
        for (at, account) in self.accounts.iter().enumerate() {
            index_id(&mut self.account_by_id, account.id.0 as u32, index_u32(at));
        }
        for (at, strategy) in self.strategies.iter().enumerate() {
            index_id(&mut self.strategy_by_id, strategy.id.0 as u32, index_u32(at));
        }
    }

    fn is_sound(&self, shard: ShardId, shards: u8) -> bool {
        let places = self.exchanges.len();
        let local = |(at, local): (usize, &LocalSecurity)| {
            local.instrument.local as usize == at
                && local.instrument.security.0 <= SecurityId::MAX
                && shard_of(local.instrument.security, shards) == shard
                && (local.exchange as usize) < places
                && local.instrument.size.is_positive()
                && local.subscribers.is_sorted_by(|a, b| a < b)
        };
        let account = |account: &AccountEntry| {
            let admits = account.admits.len();
            account.guard.is_of(Scope::Account(account.id))
                && admits <= places
                && (admits == places || !account.active)
        };
        self.locals.iter().enumerate().all(local)
            && self.accounts.iter().all(account)
            && self.strategies.iter().all(|entry| entry.guard.is_of(Scope::Strategy(entry.id)))
            && all_differ(self.locals.iter().map(|local| local.instrument.security))
            && all_differ(self.exchanges.iter().map(|place| place.id))
            && all_differ(self.accounts.iter().map(|account| account.id))
            && all_differ(self.strategies.iter().map(|strategy| strategy.id))
    }
}

fn all_differ<T: Ord>(ids: impl Iterator<Item = T>) -> bool {
    let mut ids: Vec<T> = ids.collect();
    ids.sort_unstable();
    ids.is_sorted_by(|a, b| a < b)
}
