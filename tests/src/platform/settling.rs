//! Settling: all parts run until no work is left; then all must agree.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::{IntId, OrderHandle, Origin, PortId, ShardId};
use pitlane_engine::mesh::Broadcast;
use pitlane_engine::sender::{SenderId, SentBy};
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Day;
use pitlane_engine::view::{OrderView, View, ViewSettings};
use pitlane_engine::worker::Worker;

use super::client::PlatformClient;
use super::client::login_of;
use super::{FEED, LATECOMER, PlatformResult, SETTLING_ROUNDS_MAX, SimPlatform, Storage, source};
use crate::external_venue;
use crate::replay::{self, ShardInput};

impl SimPlatform {
    /// Settles the platform: every part runs in every cycle, none misbehaves, and there are no new
    /// requests. Everything must become idle, and then agree.
    pub fn settle(&mut self) -> PlatformResult {
        self.outside.chaos = false;
        self.storage = Storage::default();
        self.journals.iter_mut().for_each(|journal| journal.shut = false);
        let mut idle = 0;
        for _ in 0..SETTLING_ROUNDS_MAX {
            idle = if self.round()? == 0 { idle + 1 } else { 0 };
            let deadline = self.workers.iter().filter_map(Worker::deadline).min();
            match deadline {
                // Commands in flight and dated orders get their time.
                Some(deadline) if idle >= 3 => self.now = self.now.max(deadline),
                None if idle >= 3 => return self.agree(),
                Some(_) | None => self.now = self.now.plus(1_000),
            }
        }
        let workers: Vec<_> = self.workers.iter().map(|w| (w.has_work(), w.deadline(), w.counts())).collect();
        Err(format!(
            "it does not come to rest at {}: {workers:?}, outside {}, control {:?}",
            self.now,
            self.outside.is_idle(),
            self.control,
        ))
    }

    /// Runs every part once, and returns the amount of work.
    pub(super) fn round(&mut self) -> Result<usize, String> {
        let mut work = 0;
        for at in 0..self.workers.len() {
            let (before, entries_before) = (self.workers[at].counts(), self.journals[at].entries.len());
            self.poll_worker(at)?;
            work += (self.workers[at].counts() != before && self.workers[at].has_work()) as usize;
            work += self.journals[at].entries.len() - entries_before;
        }
        for client in &mut self.clients {
            work += client.listen(&mut self.ports, usize::MAX)?;
        }
        work += self.outside.poll(&mut self.ports[external_venue::PORT.0 as usize]);
        work += self.poll_control();
        while self.ports[FEED.0 as usize].poll_event().is_some() {}
        work += self.poll_view(usize::MAX);
        Ok(work + !self.outside.is_idle() as usize)
    }

    fn agree(&mut self) -> PlatformResult {
        for checker in &self.checkers {
            checker.settled()?;
        }
        self.venue_agrees()?;
        for client in &self.clients {
            client.agrees(&self.checkers)?;
        }
        self.view_agrees()?;
        self.journals_agree()?;
        self.restarted_desks_agree()
    }

    /// Checks that a desk that starts now from a snapshot rejects every id that its client has used
    /// today, whatever happened to the order.
    fn restarted_desks_agree(&mut self) -> PlatformResult {
        let shards = self.shards;
        let commands: Vec<_> = self.clients.iter_mut().map(|client| client.restart(shards)).collect();
        let mut broadcasts: Vec<_> = commands.into_iter().map(Broadcast::new).collect();
        for _ in 0..SETTLING_ROUNDS_MAX {
            for (client, broadcast) in self.clients.iter().zip(&mut broadcasts) {
                self.ports[client.port.0 as usize].send_all(broadcast);
            }
            self.round()?;
            if self.clients.iter().all(|client| client.snapshots == shards) {
                let check = |client: &PlatformClient| {
                    client.remembers(&self.used_ids(client.port), &self.open_orders(client.port))
                };
                return self.clients.iter().try_for_each(check);
            }
        }
        Err("the snapshots of the desks do not end".to_string())
    }

    /// Returns the ids that the shards received in this trading day. A shard that has not received
    /// the new day is in another.
    fn used_ids(&self, port: PortId) -> Vec<IntId> {
        let by_shard = self.journals.iter().map(|journal| used_ids_of(&journal.entries, port));
        let by_shard: Vec<_> = by_shard.collect();
        let today = by_shard.iter().map(|(day, _)| *day).max().flatten();
        by_shard.into_iter().filter(|(day, _)| *day == today).flat_map(|(_, ids)| ids).collect()
    }

    /// Returns the first ids of open orders, from the view that has followed them from their
    /// beginning.
    fn open_orders(&self, port: PortId) -> Vec<(IntId, OrderHandle)> {
        let own = self.view.open_orders().filter(|order| order.source.port == port);
        own.map(|order| (order.first_id, order.handle)).collect()
    }

    /// Checks that an open order has the filled quantity that its venue reports, whatever messages
    /// were lost.
    fn venue_agrees(&self) -> PlatformResult {
        for (order, filled) in self.outside.filled() {
            let seen = self.checkers[order.shard().0 as usize].orders.get(&order);
            if let Some(seen) = seen.filter(|seen| !seen.status.is_finished() && seen.cum_qty != filled) {
                return Err(format!("{order:?} has filled {filled} at its venue: {seen:?}"));
            }
        }
        Ok(())
    }

    /// Checks that every journal, replayed to a new shard, gives the existing shard.
    fn journals_agree(&self) -> PlatformResult {
        for (worker, journal) in self.workers.iter().zip(&self.journals) {
            let shard = worker.shard();
            let fresh = Shard::new(shard.id(), self.shards, self.reference.clone(), shard.settings().clone());
            replay::check_replay(&journal.entries, fresh, shard, Some(worker.seq()))?;
        }
        Ok(())
    }

    /// Checks that a view that starts now from a snapshot equals the one maintained by events.
    fn view_agrees(&mut self) -> PlatformResult {
        let mut fresh = View::new(self.shards, ViewSettings::default());
        let command =
            Command::new(source(LATECOMER, Origin::Server), 9, CommandKind::Snapshot { port: LATECOMER });
        let mut broadcast = Broadcast::new(command);
        for _ in 0..SETTLING_ROUNDS_MAX {
            self.ports[LATECOMER.0 as usize].send_all(&mut broadcast);
            self.round()?;
            while let Some((shard, event)) = self.ports[LATECOMER.0 as usize].poll_event() {
                fresh.apply(shard, &event);
            }
            if (0..self.shards).all(|shard| fresh.is_complete(ShardId(shard))) {
                return self.same(&fresh);
            }
        }
        Err("the snapshot does not end".to_string())
    }

    /// Checks that each order was sent by its client, and that both views know the sender. A cancel
    /// may come from the shard itself, or from another client that closes the position.
    fn senders_agree(&self, order: &OrderView, fresh: &View) -> PlatformResult {
        let SentBy { submitted, modified, canceled } = order.sent;
        for id in [submitted, modified, canceled].into_iter().filter(|id| *id != SenderId::NONE) {
            differ("a sender", &self.view.sender(id), &fresh.sender(id))?;
            let login = fresh.sender(id).map(|sender| sender.login);
            let is_of = |client: &PlatformClient| login == Some(login_of(client.port));
            let is_right = match id == submitted || id == modified {
                true => login == Some(login_of(order.source.port)),
                false => id == SenderId::INTERNAL || self.clients.iter().any(is_of),
            };
            if !is_right {
                let login = login.map(|login| login.as_str().to_string());
                return Err(format!("{} was sent by {login:?}, number {id:?}", order.id));
            }
        }
        if submitted == SenderId::NONE {
            return Err(format!("the sender of {} is not known", order.id));
        }
        Ok(())
    }

    fn same(&self, fresh: &View) -> PlatformResult {
        for shard in 0..self.shards {
            if !self.view.is_complete(ShardId(shard)) {
                return Err(format!("the view has no snapshot of shard {shard}"));
            }
        }
        let open = |view: &View| {
            let mut list: Vec<OrderView> = view.open_orders().collect();
            list.sort_by_key(|order| order.handle);
            list
        };
        differ("open orders", &open(&self.view), &open(fresh))?;
        for order in fresh.finished_orders() {
            let kept = self.view.order(order.handle);
            differ("a finished order", &kept, &Some(order))?;
        }
        for order in fresh.open_orders().chain(fresh.finished_orders()) {
            self.senders_agree(&order, fresh)?;
        }
        let held: usize =
            self.checkers.iter().map(|c| c.orders.values().filter(|o| !o.status.is_finished()).count()).sum();
        differ("number of open orders", &self.view.open_orders_len(), &held)?;
        let positions = |view: &View| view.positions().map(|p| (p.id, p.state)).collect::<Vec<_>>();
        differ("positions", &positions(&self.view), &positions(fresh))?;
        let cash = |view: &View| {
            view.cash_balances().map(|c| (c.strategy, c.currency, c.amount)).collect::<Vec<_>>()
        };
        differ("cash", &cash(&self.view), &cash(fresh))?;
        let ticks = |view: &View| view.ticks().copied().collect::<Vec<_>>();
        differ("ticks", &ticks(&self.view), &ticks(fresh))?;
        for strategy in self.reference.strategies() {
            differ("phase", &self.view.phase(strategy.id), &fresh.phase(strategy.id))?;
        }
        for exchange in self.reference.exchanges() {
            differ("session", &self.view.session(exchange.id), &fresh.session(exchange.id))?;
        }
        let kills = |view: &View| view.kills().collect::<Vec<_>>();
        differ("switches", &kills(&self.view), &kills(fresh))?;
        let restrictions = |view: &View| view.restrictions().collect::<Vec<_>>();
        differ("restrictions", &restrictions(&self.view), &restrictions(fresh))?;
        let halts = |view: &View| view.halts().collect::<Vec<_>>();
        differ("halts", &halts(&self.view), &halts(fresh))
    }

    /// Returns the commands of each shard, for the trace.
    pub fn journal(&self) -> String {
        let mut text = String::new();
        for (shard, journal) in self.journals.iter().enumerate() {
            for entry in &journal.entries {
                if let ShardInput::Command(at, command) = entry {
                    text += &format!("{at} to shard {shard} {:?}\n", command.body);
                }
            }
        }
        text
    }

    /// Returns the number of events received by the desks: a run without events proves nothing.
    pub fn received_events(&self) -> u64 {
        self.clients.iter().map(|client| client.received_events).sum()
    }
}

/// Returns the trading day of a shard, and the ids that it received in it from the clients of a
/// port.
fn used_ids_of(entries: &[ShardInput], port: PortId) -> (Option<Day>, Vec<IntId>) {
    let (mut day, mut used) = (None, Vec::new());
    for entry in entries {
        let ShardInput::Command(_, command) = entry else { continue };
        if let CommandKind::TradingDay { day: next } = command.body {
            if day.is_some_and(|day| day < next) {
                used.clear();
            }
            day = Some(next);
        } else if let CommandKind::Submit { id, .. }
        | CommandKind::Close { id, .. }
        | CommandKind::Modify { id, .. }
        | CommandKind::Cancel { id, .. } = command.body
            && command.source.port == port
            && !id.is_none()
        {
            used.push(id);
        }
    }
    (day, used)
}

fn differ<T: PartialEq + std::fmt::Debug>(what: &str, kept: &T, fresh: &T) -> PlatformResult {
    if kept == fresh {
        return Ok(());
    }
    Err(format!("{what}:\n  kept by events {kept:?}\n  from a snapshot {fresh:?}"))
}
