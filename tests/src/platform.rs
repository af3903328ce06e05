//! A whole platform on one thread: shards, lanes, desks, a feed, an external venue, a budget, a
//! view. A seed chooses the next actor and its action, the passing of time, and the slow parts.

mod chaos;
mod client;
mod settling;

use std::collections::VecDeque;
use std::sync::Arc;

use pitlane_engine::budget::BudgetPool;
use pitlane_engine::command::{Command, CommandKind, RiskLimits, Scope, WatchTarget};
use pitlane_engine::feed::{Feed, FeedSettings};
use pitlane_engine::id::{Origin, PortId, ShardId, Source, StrategyId};
use pitlane_engine::index::index_u8;
use pitlane_engine::mesh::{Broadcast, Depths, PortClass, PortEnd, mesh};
use pitlane_engine::refdata::RefData;
use pitlane_engine::settings::ShardSettings;
use pitlane_engine::shard::Shard;
use pitlane_engine::time::Timestamp;
use pitlane_engine::view::{View, ViewSettings};
use pitlane_engine::worker::Worker;

use self::client::PlatformClient;
use crate::checks::Checker;
use crate::dice::Dice;
use crate::external_venue::{self, ExternalVenue};
use crate::replay::ShardInput;
use crate::test_market;
use crate::workload::{Action, ActionGenerator, Profile};

/// Ports by number. Operator, clock and budget share the first.
const CLASSES: [PortClass; 9] = [
    PortClass::Control,
    PortClass::Venue,
    PortClass::Client,
    PortClass::Client,
    PortClass::Client,
    PortClass::Feed,
    PortClass::Client,
    PortClass::Client,
    PortClass::Client,
];
const CONTROL: PortId = PortId(0);
const DESKS: [(PortId, Origin); 3] =
    [(PortId(2), Origin::Fix), (PortId(3), Origin::Rest), (PortId(4), Origin::Strategy)];
const FEED: PortId = PortId(5);
const VIEW: PortId = PortId(6);
/// Receives everything and is never slow: the input of the checkers.
const MONITOR: PortId = PortId(7);
/// Requests a snapshot at the end.
const LATECOMER: PortId = PortId(8);

/// Most cycles until everything must have settled.
const SETTLING_ROUNDS_MAX: usize = 20_000;
/// Most commands of the control port that are not sent yet.
const CONTROL_SLOTS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct PlatformSetup {
    pub shards: u8,
    pub depths: Depths,
    pub settings: ShardSettings,
    pub profile: Profile,
    /// Limits of strategy 1, set before any trading.
    pub limits: Option<RiskLimits>,
    /// Credit of the first account, which the budget distributes to the shards.
    pub credit: Option<RiskLimits>,
    pub storage: Storage,
    pub steps: usize,
}

/// How journaled commands get stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Storage {
    /// Whether storing takes time, so that events wait for it.
    pub slow: bool,
    /// Actions per thousand that close the journal of a shard or open it again.
    pub shuts_permille: u64,
    /// Actions per thousand that save a shard and load it again.
    pub reloads_permille: u64,
}

/// The commands of a shard, and how many of them are stored.
#[derive(Clone, Debug, Default)]
pub struct PlatformJournal {
    pub entries: Vec<ShardInput>,
    stored: u64,
    shut: bool,
}

#[derive(Debug)]
pub struct SimPlatform {
    pub now: Timestamp,
    dice: Dice,
    workload: ActionGenerator,
    ports: Vec<PortEnd>,
    workers: Vec<Worker>,
    pub journals: Vec<PlatformJournal>,
    storage: Storage,
    pub checkers: Vec<Checker>,
    clients: Vec<PlatformClient>,
    outside: ExternalVenue,
    feed: Feed,
    /// A price that did not fit the lane.
    feed_slot: Option<(ShardId, Command)>,
    budget: BudgetPool,
    limits: Option<RiskLimits>,
    credit: Option<RiskLimits>,
    control: VecDeque<ControlErrand>,
    view: View,
    view_asleep: u64,
    control_asleep: u64,
    reference: Arc<RefData>,
    shards: u8,
    submitted: usize,
    pub hash: u64,
    pub trace: Option<Vec<String>>,
}

/// A command that the control port has to send.
#[derive(Debug)]
enum ControlErrand {
    One(ShardId, Command),
    All(Broadcast),
}

type PlatformResult = Result<(), String>;

impl SimPlatform {
    pub fn new(seed: u64, setup: &PlatformSetup) -> SimPlatform {
        let mut dice = Dice::new(seed);
        let reference = test_market::reference();
        let (ports, ends) = mesh(&CLASSES, setup.shards, setup.depths);
        let shard = |id: u8| Shard::new(ShardId(id), setup.shards, reference.clone(), setup.settings.clone());
        let workers: Vec<Worker> =
            ends.into_iter().enumerate().map(|(id, end)| Worker::new(shard(index_u8(id)), end)).collect();
        let profile = Profile { reports: false, ..setup.profile.clone() };
        let mut platform = SimPlatform {
            now: test_market::start(),
            workload: ActionGenerator::new(dice.fork(), profile),
            ports,
            journals: vec![PlatformJournal::default(); workers.len()],
            // Nothing fails before the opening.
            storage: Storage::default(),
            workers,
            checkers: (0..setup.shards).map(|id| Checker::new(ShardId(id), reference.clone())).collect(),
            clients: DESKS
                .iter()
                .map(|&(port, origin)| PlatformClient::new(port, origin, setup.shards))
                .collect(),
            outside: ExternalVenue::new(dice.fork()),
            feed: feed(&reference, dice.roll()),
            feed_slot: None,
            // The budget has a session of its own, so that its answers differ from the operator's.
            budget: BudgetPool::new(setup.shards, Source { session: 2, ..source(CONTROL, Origin::Server) }),
            limits: setup.limits,
            credit: setup.credit,
            control: VecDeque::new(),
            view: View::new(setup.shards, ViewSettings::default()),
            view_asleep: 0,
            control_asleep: 0,
            reference,
            shards: setup.shards,
            submitted: 0,
            hash: 0,
            trace: None,
            dice,
        };
        platform.open();
        platform.storage = setup.storage;
        platform
    }

    /// Subscribes all ports, starts the strategies, and sets the limits.
    fn open(&mut self) {
        let watches = [
            (MONITOR, WatchTarget::Everything),
            (MONITOR, WatchTarget::Venue(test_market::OUTSIDE_ADAPTER)),
            (VIEW, WatchTarget::Everything),
            (external_venue::PORT, WatchTarget::Venue(test_market::OUTSIDE_ADAPTER)),
            (CONTROL, WatchTarget::Budgets),
        ];
        for (port, what) in watches {
            self.errand_all(CommandKind::Watch { port, what, on: true });
        }
        self.errand_all(CommandKind::Snapshot { port: VIEW });
        for action in ActionGenerator::opening() {
            // The external venue itself reports when it is connected.
            if let Action::Plain(body @ CommandKind::Phase { .. }) = action {
                self.errand_all(body);
            }
        }
        let limits = self.limits.map(|limits| (Scope::Strategy(StrategyId(1)), limits));
        let credit = self.credit.map(|credit| (Scope::Account(test_market::HOME_ACCOUNTS[0]), credit));
        for (scope, limits) in limits.into_iter().chain(credit) {
            self.errand_all(CommandKind::Limits { scope, limits });
            let control = &mut self.control;
            self.budget.set_limits(scope, &limits, |shard, command| {
                control.push_back(ControlErrand::One(shard, command));
            });
        }
        for security in test_market::SECURITIES {
            self.feed.set_on(security, true, self.now);
        }
        // No client trades before the limits are in force.
        let shards = self.shards;
        while !self.control.is_empty() || !(0..shards).all(|shard| self.view.is_complete(ShardId(shard))) {
            self.round().expect("nothing goes wrong before the opening");
        }
        self.round().expect("nothing goes wrong before the opening");
        self.outside.chaos = true;
    }

    fn errand_all(&mut self, body: CommandKind) {
        let command = Command::new(source(CONTROL, Origin::Server), 1, body);
        self.control.push_back(ControlErrand::All(Broadcast::new(command)));
    }
}

fn source(port: PortId, origin: Origin) -> Source {
    Source { origin, port, session: 1 }
}

fn feed(reference: &RefData, seed: u64) -> Feed {
    let settings = FeedSettings { seed, source: source(FEED, Origin::Server), ..FeedSettings::default() };
    Feed::new(reference, settings)
}
