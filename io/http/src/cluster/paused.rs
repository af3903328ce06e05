//! A simulation of operators and members. Each member may be paused, cut off or restarted at any
//! point, and commands arrive late, in any order and more than once. In the end every shard has the
//! newest directive for every switch.

use std::collections::{BTreeMap, VecDeque};

use pitlane_engine::command::{CommandKind, RiskLimits, Scope};
use pitlane_engine::directive::{Directive, DirectiveKey, DirectiveVersion, Directives};
use pitlane_engine::event::{Event, EventKind};
use pitlane_engine::id::{PortId, SecurityId, ShardId, StrategyId};
use pitlane_engine::rng::Rng;
use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
use pitlane_engine::view::{View, ViewSettings};

use super::directives::CatchUp;

/// Number of members, with one shard each: a member has the number of its shard.
const MEMBERS: usize = 4;
const PORT: PortId = PortId(0);
/// Maximum difference between the clocks of two members.
const SKEW_NS: u64 = 10 * NS_PER_S;

/// What a shard keeps across a restart.
#[derive(Default)]
struct SimShard {
    seq: u64,
    directives: Directives,
    /// The state that results from the directives.
    switches: BTreeMap<DirectiveKey, Directive>,
}

impl SimShard {
    /// As `engine/src/shard/control.rs` does.
    fn apply(&mut self, version: DirectiveVersion, directive: Directive) -> Option<Event> {
        if self.directives.is_newer(&directive, version) != Ok(true) {
            return None;
        }
        self.directives.note(directive, version);
        self.switches.insert(directive.key(), directive);
        self.seq += 1;
        Some(event(self.seq, EventKind::Directed { version, directive }))
    }

    fn snapshot(&self) -> Vec<Event> {
        let rows = (0..).map_while(|at| self.directives.get(at));
        let rows = rows.map(|(directive, version)| EventKind::Directed { version, directive });
        let begin = [EventKind::SnapshotBegin { port: PORT }].into_iter();
        let all = begin.chain(rows).chain([EventKind::SnapshotEnd { port: PORT }]);
        all.map(|body| event(self.seq, body)).collect()
    }
}

fn event(seq: u64, body: EventKind) -> Event {
    Event { seq, at: Timestamp(1), body }
}

struct SimMember {
    shard: SimShard,
    view: View,
    catch_up: CatchUp,
    is_paused: bool,
    /// Offset of its clock from the true time.
    skew_ns: u64,
    /// By shard: events that the view has not applied yet.
    received: Vec<VecDeque<Event>>,
    /// By shard: whether a snapshot has begun and not ended.
    is_open: [bool; MEMBERS],
    /// Commands in flight to its shard, of any age.
    commands: Vec<(DirectiveVersion, Directive)>,
}

struct DirectiveSimulation {
    rng: Rng,
    now: u64,
    members: Vec<SimMember>,
    /// By key: the newest directive of an operator, and its version.
    last: BTreeMap<DirectiveKey, (Directive, DirectiveVersion)>,
    issued: Vec<DirectiveVersion>,
}

fn new_view() -> View {
    View::new(MEMBERS as u8, ViewSettings::default())
}

fn catch_up(member: usize) -> CatchUp {
    CatchUp::new([ShardId(member as u8)].into_iter().collect())
}

impl DirectiveSimulation {
    fn new(seed: u64, is_skewed: bool) -> DirectiveSimulation {
        let mut rng = Rng::new(seed);
        let member = |at| SimMember {
            shard: SimShard::default(),
            view: new_view(),
            catch_up: catch_up(at),
            is_paused: false,
            skew_ns: if is_skewed { rng.below(SKEW_NS) } else { 0 },
            received: vec![VecDeque::new(); MEMBERS],
            is_open: [false; MEMBERS],
            commands: Vec::new(),
        };
        let members = (0..MEMBERS).map(member).collect();
        let mut world = DirectiveSimulation {
            rng,
            now: 1_000 * NS_PER_S,
            members,
            last: BTreeMap::new(),
            issued: Vec::new(),
        };
        (0..MEMBERS).for_each(|at| world.join(at));
        world
    }

    /// Sends a member the snapshots of all shards that can be reached, always including its own.
    fn join(&mut self, at: usize) {
        for other in 0..MEMBERS {
            if other == at || !self.members[other].is_paused {
                let snapshot = self.members[other].shard.snapshot();
                let member = &mut self.members[at];
                member.received[other].clear();
                // A snapshot that was interrupted ends before the next begins.
                if member.is_open[other] {
                    member.received[other].push_back(event(0, EventKind::SnapshotEnd { port: PORT }));
                }
                member.received[other].extend(snapshot);
            }
        }
    }

    /// Restarts a member: the shard has kept what it applied, the read model nothing.
    fn restart(&mut self, at: usize) {
        let member = &mut self.members[at];
        (member.view, member.catch_up, member.is_paused) = (new_view(), catch_up(at), false);
        member.received.iter_mut().for_each(VecDeque::clear);
        member.is_open = [false; MEMBERS];
        self.join(at);
        // The others join it again.
        for other in (0..MEMBERS).filter(|other| *other != at) {
            let snapshot = self.members[at].shard.snapshot();
            if !self.members[other].is_paused {
                self.members[other].received[at].extend(snapshot);
            }
        }
    }

    fn resume(&mut self, at: usize) {
        self.members[at].is_paused = false;
        // The events it missed are no longer kept: it receives the snapshots of the others.
        self.join(at);
    }

    fn directive(&mut self) -> Directive {
        let scope = if self.rng.below(2) == 0 { Scope::Global } else { Scope::Strategy(StrategyId(1)) };
        let on = self.rng.below(2) == 0;
        match self.rng.below(3) {
            0 => {
                let max_open_orders = self.rng.below(9) as u32;
                Directive::Limits { scope, limits: RiskLimits { max_open_orders, ..RiskLimits::default() } }
            }
            1 => Directive::Restrict { scope, security: SecurityId(1), on },
            _ => Directive::Kill { scope, on },
        }
    }

    /// Takes a directive of an operator at a member: applies it to the member's own shard, and
    /// sends it, sooner or later, to the shards that the member can reach.
    fn issue_directive(&mut self, at: usize) {
        let directive = self.directive();
        self.now += NS_PER_MS;
        let member = &mut self.members[at];
        let now = Timestamp(self.now + member.skew_ns);
        let version = member.catch_up.next_version(now, at as u8, &member.view);
        assert!(!self.issued.contains(&version), "no two are the same");
        self.issued.push(version);
        let key = directive.key();
        if self.last.get(&key).is_none_or(|(_, newest)| version > *newest) {
            self.last.insert(key, (directive, version));
        }
        self.apply(at, version, directive);
        for other in (0..MEMBERS).filter(|other| *other != at) {
            if !self.members[other].is_paused && self.rng.below(3) > 0 {
                self.members[other].commands.push((version, directive));
            }
        }
    }

    fn apply(&mut self, at: usize, version: DirectiveVersion, directive: Directive) {
        let Some(event) = self.members[at].shard.apply(version, directive) else { return };
        for (other, member) in self.members.iter_mut().enumerate() {
            if other == at || !member.is_paused {
                member.received[at].push_back(event);
            }
        }
    }

    fn step(&mut self) {
        self.now += self.rng.below(50) * NS_PER_MS;
        for at in 0..MEMBERS {
            if self.members[at].is_paused {
                continue;
            }
            for shard in 0..MEMBERS {
                for _ in 0..self.rng.below(3) {
                    let member = &mut self.members[at];
                    let Some(event) = member.received[shard].pop_front() else { break };
                    let id = ShardId(shard as u8);
                    // Numbers never go back, as in `far_shard.rs`.
                    let seq = event.seq.max(member.view.seq(id));
                    match event.body {
                        EventKind::SnapshotBegin { .. } => member.is_open[shard] = true,
                        EventKind::SnapshotEnd { .. } => member.is_open[shard] = false,
                        _ => {}
                    }
                    member.view.apply(id, &Event { seq, ..event });
                }
            }
            let commands = self.members[at].commands.len() as u64;
            if commands > 0 && self.rng.below(2) == 0 {
                let any = self.rng.below(commands) as usize;
                // Now and then a command arrives twice.
                let (version, directive) = match self.rng.below(4) {
                    0 => self.members[at].commands[any],
                    _ => self.members[at].commands.swap_remove(any),
                };
                self.apply(at, version, directive);
            }
            let member = &mut self.members[at];
            let now = Timestamp(self.now + member.skew_ns);
            for (shard, body) in member.catch_up.missed(now, &member.view) {
                assert_eq!(shard.0 as usize, at, "each server sends to its own shards");
                let CommandKind::Direct { version, directive } = body else { panic!("{body:?}") };
                if self.rng.below(4) > 0 {
                    self.apply(at, version, directive);
                }
            }
        }
    }

    fn disturb(&mut self) {
        let at = self.rng.index(MEMBERS);
        match self.rng.below(6) {
            0 => self.members[at].is_paused = true,
            1 if self.members[at].is_paused => self.resume(at),
            2 => self.restart(at),
            // No directive is accepted before the read model is complete.
            3 | 4 if !self.members[at].is_paused && self.is_complete(at) => self.issue_directive(at),
            _ => {}
        }
    }

    fn is_complete(&self, at: usize) -> bool {
        self.members[at].view.is_complete(ShardId(at as u8))
    }

    /// Resumes all members, and runs until everything has arrived.
    fn settle(&mut self) {
        for at in 0..MEMBERS {
            if self.members[at].is_paused {
                self.resume(at);
            }
        }
        // Members that were away when another came back receive its snapshot now.
        (0..MEMBERS).for_each(|at| self.join(at));
        for _ in 0..400 {
            self.step();
        }
    }

    fn check(&self, seed: u64) {
        for (key, (directive, version)) in &self.last {
            for (at, member) in self.members.iter().enumerate() {
                assert_eq!(member.shard.switches.get(key), Some(directive), "seed {seed}, shard {at}");
                assert_eq!(member.view.directive(*key), Some((*directive, *version)), "seed {seed}");
                assert_eq!(member.view.unconfirmed(*key).next(), None, "seed {seed}, as {at} sees it");
            }
        }
    }
}

#[test]
fn the_newest_directive_holds_on_every_shard_whichever_members_are_paused() {
    for seed in 0..300 {
        let mut world = DirectiveSimulation::new(seed, seed % 2 == 0);
        for _ in 0..200 {
            world.disturb();
            world.step();
        }
        world.settle();
        world.check(seed);
        // A directive issued while all members are up overrides all earlier ones, whatever the
        // clocks show.
        let before: BTreeMap<_, _> = world.last.clone();
        let at = (seed % MEMBERS as u64) as usize;
        world.issue_directive(at);
        let changed = world.last.iter().filter(|(key, row)| before.get(key) != Some(row)).count();
        assert_eq!(changed, 1, "seed {seed}");
        world.settle();
        world.check(seed);
    }
}

#[test]
fn with_equal_clocks_the_directive_that_was_issued_last_holds() {
    for seed in 0..100 {
        let mut world = DirectiveSimulation::new(seed, false);
        for _ in 0..200 {
            world.disturb();
            world.step();
        }
        assert!(world.issued.is_sorted(), "seed {seed}: each is newer than all before");
        world.settle();
        world.check(seed);
    }
}
