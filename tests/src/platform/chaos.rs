//! Chaos: one action of one part of the platform, chosen at random.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::desk::CloseRequest;
use pitlane_engine::directive::Directive;
use pitlane_engine::event::{Event, EventKind, ExecType};
use pitlane_engine::id::{IntId, Origin, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::shard::{CommandRoute, route};
use pitlane_engine::worker::{ALL_STORED, JournalOutcome, Worker};

use super::client::PlatformClient;
use super::{
    CONTROL, CONTROL_SLOTS_MAX, ControlErrand, FEED, MONITOR, PlatformResult, SimPlatform, VIEW, source,
};
use crate::external_venue;
use crate::replay::{self, ShardInput};
use crate::shard_and_twin::fold;
use crate::workload::Action;

impl SimPlatform {
    /// Performs one action of one part of the platform.
    pub fn step(&mut self) -> PlatformResult {
        match self.dice.below(20) {
            0..=5 => self.move_worker(),
            6..=11 => self.move_client(),
            12 | 13 => {
                self.outside.poll(&mut self.ports[external_venue::PORT.0 as usize]);
                Ok(())
            }
            14 | 15 => {
                self.move_control();
                Ok(())
            }
            16 => {
                self.move_feed();
                Ok(())
            }
            17 | 18 => {
                self.move_view();
                Ok(())
            }
            _ => {
                let ns = self.dice.pick(&[1, 1_000, 1_000_000, 50_000_000, 400_000_000]);
                self.now = self.now.plus(ns);
                Ok(())
            }
        }
    }

    fn move_worker(&mut self) -> PlatformResult {
        let at = self.dice.index(self.workers.len());
        self.move_journal(at)?;
        for _ in 0..=self.dice.below(3) {
            self.poll_worker(at)?;
        }
        Ok(())
    }

    /// Stores some commands; at times fills the disk, or continues with a shard loaded from its
    /// snapshot.
    fn move_journal(&mut self, at: usize) -> PlatformResult {
        let journal = &mut self.journals[at];
        if self.dice.percent(50) {
            let waiting = journal.entries.len() as u64 - journal.stored;
            journal.stored += self.dice.below(waiting + 1);
        }
        if self.dice.below(1_000) < self.storage.shuts_permille {
            journal.shut = !journal.shut;
        }
        if self.dice.below(1_000) < self.storage.reloads_permille && !self.workers[at].has_work() {
            self.reload(at)?;
        }
        Ok(())
    }

    fn reload(&mut self, at: usize) -> PlatformResult {
        let worker = self.workers.remove(at);
        let seq = worker.seq();
        let (shard, end) = worker.into_parts();
        let loaded = replay::reloaded(&shard, self.shards)?;
        self.workers.insert(at, Worker::restored(loaded, end, seq, self.now));
        Ok(())
    }

    pub(super) fn poll_worker(&mut self, at: usize) -> Result<(), String> {
        let journal = &mut self.journals[at];
        let stored = if self.storage.slow { journal.stored } else { ALL_STORED };
        self.workers[at].poll_with(self.now, stored, |number, now, command, _| {
            // Cancels and kill switches have a reserve, as in the journal's writer.
            let spares = matches!(
                command.body,
                CommandKind::Cancel { .. }
                    | CommandKind::Kill { .. }
                    | CommandKind::Direct { .. }
                    | CommandKind::Sender { .. }
            );
            if journal.shut && !spares {
                return JournalOutcome::Refused;
            }
            journal.entries.push(ShardInput::Command(now, *command));
            assert_eq!(number, journal.entries.len() as u64, "every command has its number");
            JournalOutcome::Accepted
        });
        self.monitor()?;
        if !self.workers[at].has_work() {
            self.workers[at].shard().assert_consistent();
        }
        Ok(())
    }

    /// Passes everything that the monitor receives to the checkers at once.
    fn monitor(&mut self) -> PlatformResult {
        while let Some((shard, event)) = self.ports[MONITOR.0 as usize].poll_event() {
            self.hash = fold(self.hash.rotate_left(1) ^ shard.0 as u64, &event);
            if let Some(trace) = &mut self.trace {
                trace.push(format!("{} shard {} {:?}", event.at, shard.0, event.body));
            }
            self.check_budget(&event)?;
            self.checkers[shard.0 as usize].read(&event)?;
        }
        Ok(())
    }

    /// Checks that a limit across shards is never exceeded, however its parts are distributed.
    fn check_budget(&self, event: &Event) -> PlatformResult {
        let (Some(limits), EventKind::Order(order)) = (&self.limits, &event.body) else { return Ok(()) };
        let strategy = order.terms.strategy;
        if strategy != StrategyId(1) || order.what != ExecType::Entered || limits.max_open_orders == 0 {
            return Ok(());
        }
        let open: usize = self.checkers.iter().map(|checker| checker.open_orders(strategy)).sum();
        if open as u64 >= limits.max_open_orders as u64 {
            return Err(format!("{} open orders and one more, at most {}", open, limits.max_open_orders));
        }
        Ok(())
    }

    fn move_client(&mut self) -> PlatformResult {
        let at = self.dice.index(self.clients.len());
        let client = &mut self.clients[at];
        if client.asleep > 0 {
            client.asleep -= 1;
            return Ok(());
        }
        if self.dice.percent(2) {
            client.asleep = self.dice.below(200);
        }
        client.listen(&mut self.ports, self.dice.pick(&[1, 4, usize::MAX]))?;
        let action = self.workload.next(self.now);
        self.perform(at, &action)
    }

    fn perform(&mut self, at: usize, action: &Action) -> PlatformResult {
        let nth = |nth: usize, clients: &[PlatformClient]| {
            clients[at].sent.range(..=nth).next_back().map(|(_, &id)| id)
        };
        let declined = match *action {
            Action::Plain(CommandKind::Submit { id, terms }) => {
                let number = self.submitted;
                self.submitted += 1;
                // At times an id that was used before.
                let id = if self.dice.percent(3) { nth(number, &self.clients).unwrap_or(id) } else { id };
                let client = &mut self.clients[at];
                let port = &mut self.ports[client.port.0 as usize];
                let ticket = client.ticket(port, id);
                client.desk.submit(port, ticket, terms).map(|id| {
                    client.sent.insert(number, id);
                })
            }
            Action::Plain(CommandKind::Close { id, strategy, account, security, qty }) => {
                let number = self.submitted;
                self.submitted += 1;
                let client = &mut self.clients[at];
                let port = &mut self.ports[client.port.0 as usize];
                let ticket = client.ticket(port, id);
                let closing = CloseRequest { strategy, account, security, qty };
                client.desk.close(port, ticket, closing).map(|id| {
                    client.sent.insert(number, id);
                })
            }
            Action::Modify { nth: n, id, changes } => {
                let Some(order) = nth(n, &self.clients) else { return Ok(()) };
                let own = self.dice.percent(50);
                let client = &mut self.clients[at];
                let port = &mut self.ports[client.port.0 as usize];
                let ticket = client.ticket(port, if own { id } else { IntId::NONE });
                client.desk.modify(port, ticket, &order, changes).map(|_| ())
            }
            Action::Cancel { nth: n, id } => {
                let Some(order) = nth(n, &self.clients) else { return Ok(()) };
                let client = &mut self.clients[at];
                let port = &mut self.ports[client.port.0 as usize];
                let ticket = client.ticket(port, id);
                client.desk.cancel(port, ticket, &order).map(|_| ())
            }
            Action::Plain(body) => {
                if self.control.len() < CONTROL_SLOTS_MAX {
                    self.route(body);
                }
                Ok(())
            }
            Action::Wait(_) | Action::Report { .. } => Ok(()),
        };
        match declined.map_err(|declined| declined.reason) {
            Ok(())
            | Err(
                Reason::LaneFull
                | Reason::DuplicateId
                | Reason::OrderFinished
                | Reason::NotAcknowledged
                | Reason::RequestPending
                | Reason::UnknownOrder
                | Reason::ShardFull,
            ) => Ok(()),
            Err(reason) => Err(format!("a desk should not decline for {reason:?}")),
        }
    }

    /// Routes a command of an operator or a feed to the shard of its security, or to all.
    fn route(&mut self, body: CommandKind) {
        // Only the budget sends budgets, and the external venue reports its own connection.
        if matches!(body, CommandKind::Budget(_) | CommandKind::Adapter { .. }) {
            return;
        }
        let sets_limits = matches!(
            body,
            CommandKind::Limits { .. } | CommandKind::Direct { directive: Directive::Limits { .. }, .. }
        );
        if sets_limits && (self.limits.is_some() || self.credit.is_some()) {
            return;
        }
        let CommandRoute::One(shard) = route(&body, self.shards) else { return self.errand_all(body) };
        let command = Command::new(source(CONTROL, Origin::Server), 1, body);
        self.control.push_back(ControlErrand::One(shard, command));
    }

    fn move_control(&mut self) {
        if self.control_asleep > 0 {
            self.control_asleep -= 1;
            return;
        }
        if self.dice.percent(2) {
            self.control_asleep = self.dice.below(50);
        }
        self.poll_control();
    }

    /// Receives events for the budget, and sends what is due, in order.
    pub(super) fn poll_control(&mut self) -> usize {
        let port = &mut self.ports[CONTROL.0 as usize];
        let mut work = 0;
        let control = &mut self.control;
        while let Some((shard, event)) = port.poll_event() {
            work += 1;
            self.budget.handle_event(shard, &event, |shard, command| {
                control.push_back(ControlErrand::One(shard, command));
            });
        }
        while let Some(errand) = self.control.front_mut() {
            let sent = match errand {
                ControlErrand::One(shard, command) => port.send(*shard, *command).is_ok(),
                ControlErrand::All(broadcast) => port.send_all(broadcast),
            };
            if !sent {
                break;
            }
            self.control.pop_front();
            work += 1;
        }
        work
    }

    fn move_feed(&mut self) {
        let port = &mut self.ports[FEED.0 as usize];
        while port.poll_event().is_some() {}
        for _ in 0..4 {
            let next = self.feed_slot.take().or_else(|| {
                let command = self.feed.poll(self.now)?;
                match route(&command.body, self.shards) {
                    CommandRoute::One(shard) => Some((shard, command)),
                    CommandRoute::All => None,
                }
            });
            let Some((shard, command)) = next else { return };
            if port.send(shard, command).is_err() {
                self.feed_slot = Some((shard, command));
                return;
            }
        }
    }

    fn move_view(&mut self) {
        if self.view_asleep > 0 {
            self.view_asleep -= 1;
            return;
        }
        if self.dice.percent(3) {
            self.view_asleep = self.dice.below(100);
        }
        let most = self.dice.pick(&[1, 8, usize::MAX]);
        self.poll_view(most);
    }

    pub(super) fn poll_view(&mut self, most: usize) -> usize {
        let port = &mut self.ports[VIEW.0 as usize];
        let mut count = 0;
        while count < most {
            let Some((shard, event)) = port.poll_event() else { break };
            self.view.apply(shard, &event);
            count += 1;
        }
        count
    }
}
