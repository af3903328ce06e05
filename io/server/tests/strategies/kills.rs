//! Strategies, server and what connects them (a broker, or TCP connections without one) are killed
//! at random moments under a fast market, and restarted: no order and no order event is lost or
//! doubled.
//!
//! The process of each strategy records an event before the strategy receives it. At the end the
//! server's journal is replayed, and must give exactly these events to each of them, event by
//! event.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use pitlane_cluster::strategy_process::record::write_event;
use pitlane_config::refdata;
use pitlane_config::{Machine, Sources};
use pitlane_engine::event::{EventKind, ExecType};
use pitlane_engine::id::ShardId;
use pitlane_engine::index::{index_u8, index_usize};
use pitlane_engine::rng::Rng;
use pitlane_engine::time::Timestamp;
use pitlane_gateway::{HTTP, PlatformSettings};
use pitlane_journal::disk::Disk;
use pitlane_journal::{EventReceivers, JournalSettings, JournalSetup, Level};
use pitlane_protocols::remote;
use pitlane_testkit::nats_server::{StrategyProcess, serve_over};
use pitlane_testkit::patience::until;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};
use pitlane_testkit::strategy_link::TestLink;

use super::embedded::{get, open_orders, put, strategy};

/// Kills, and events per second, in the short form, and in the full form (`make faults`).
const KILLS: (u64, u64) = (6, 5_000);
const KILLS_FULL: (u64, u64) = (50, 20_000);
/// The same for strategies in Python, whose processes take longer to start.
const PYTHON_KILLS: (u64, u64) = (3, 2_000);
const PYTHON_KILLS_FULL: (u64, u64) = (50, 5_000);
const NAMES: [(&str, &str); 4] =
    [("MOMENTUM", "AAPL"), ("PAIRS", "MSFT"), ("MARKET_MAKER", "NVDA"), ("SCALPER", "AMZN")];
/// Targets of the first kills: strategies by their place, 4 the server, 5 the broker or, without
/// one, all connections.
const FIRST: [u64; 6] = [0, 4, 5, 2, 4, 5];
const SHARDS: u8 = 2;
/// Orders of one process that may have been in flight when it was killed.
const UNDER_WAY_MAX: usize = 64;

fn sections() -> String {
    let section = |(name, security): &(&str, &str)| {
        format!(
            "[[strategy]]\nname = \"{name}\"\nkind = \"market-maker\"\nsecurities = [\"{security}\"]\nstart = true\n\
             cancel_on_failure = true\n\
             parameters = {{ qty = 10, half_spread_ticks = 1, position_max = 1000, loss_max = 0 }}\n"
        )
    };
    NAMES.iter().map(section).collect()
}

/// The programs of the strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StrategyLanguage {
    /// `pitlane strategy` with a kind of the engine.
    Rust,
    /// `pitlane.run` with a class.
    Python,
}

impl StrategyLanguage {
    fn kills(self) -> (u64, u64) {
        let full = std::env::var("PITLANE_FAULTS").is_ok_and(|part| part == "full");
        match (self, full) {
            (StrategyLanguage::Rust, false) => KILLS,
            (StrategyLanguage::Rust, true) => KILLS_FULL,
            (StrategyLanguage::Python, false) => PYTHON_KILLS,
            (StrategyLanguage::Python, true) => PYTHON_KILLS_FULL,
        }
    }
}

/// Returns the shipped market with one more strategy.
fn reference(place: &TestFolder) -> String {
    let (from, to) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/refdata"), place.join("refdata"));
    fs::create_dir_all(&to).unwrap();
    for file in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
    let path = to.join("strategies.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{}\n4,SCALPER,true\n", text.trim_end())).unwrap();
    format!("refdata.dir={}", to.display())
}

struct KillRun {
    language: StrategyLanguage,
    place: TestFolder,
    link: TestLink,
    settings: Vec<String>,
    service: Option<ServiceProcess>,
    processes: Vec<Option<StrategyProcess>>,
}

impl KillRun {
    fn start(&mut self) {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        self.service = Some(serve_over(&self.place, &self.link, &sections(), &settings));
    }

    fn service(&self) -> &ServiceProcess {
        self.service.as_ref().unwrap()
    }

    fn send_out(&mut self, at: usize) {
        let (name, security) = NAMES[at];
        self.processes[at] = Some(match self.language {
            StrategyLanguage::Rust => StrategyProcess::over(&self.place, &self.link, name),
            StrategyLanguage::Python => {
                let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/strategies/market_maker.py");
                StrategyProcess::python(&self.place, &self.link.url(), &program, &[name, security])
            }
        });
    }

    /// Waits until all processes run and every strategy has received something new.
    fn go_on(&self) {
        let before: Vec<u64> = NAMES.iter().map(|(name, _)| self.told_bytes(name)).collect();
        for ((name, _), before) in NAMES.iter().zip(before) {
            until(&format!("{name} goes on"), || {
                self.told_bytes(name) > before + 200 && strategy(self.service(), name)["phase"] == "RUNNING"
            });
        }
    }

    /// Returns the length of a strategy's record.
    fn told_bytes(&self, name: &str) -> u64 {
        fs::metadata(self.place.join(format!("told/{name}.told"))).map_or(0, |about| about.len())
    }

    fn kill(&mut self, victim: u64) {
        match victim {
            at @ 0..=3 => {
                let at = index_usize(at);
                self.processes[at].take().unwrap().kill();
                self.send_out(at);
            }
            4 => {
                let service = self.service.take().unwrap();
                service.signal("KILL");
                service.end();
                self.start();
            }
            _ => self.link.interrupt(),
        }
    }
}

#[test]
fn nothing_is_lost_or_doubled_over_nats() {
    let place = folder("distributed-kills-nats");
    let link = TestLink::nats(&place);
    kill_at_random("nats", StrategyLanguage::Rust, place, link);
}

#[test]
fn nothing_is_lost_or_doubled_without_a_broker() {
    let place = folder("distributed-kills-direct");
    let link = TestLink::tcp(&place);
    kill_at_random("direct", StrategyLanguage::Rust, place, link);
}

#[test]
fn nothing_is_lost_or_doubled_by_strategies_in_python() {
    if !has_python() {
        assert!(std::env::var_os("CI").is_none(), "python3 is needed in CI");
        return println!("SKIPPED: there is no python3 from 3.9 on");
    }
    let place = folder("distributed-kills-python");
    let link = TestLink::tcp(&place);
    kill_at_random("python", StrategyLanguage::Python, place, link);
}

fn has_python() -> bool {
    let program = "import sys; sys.exit(sys.version_info < (3, 9))";
    Command::new("python3").args(["-c", program]).status().is_ok_and(|status| status.success())
}

fn kill_at_random(name: &str, language: StrategyLanguage, place: TestFolder, link: TestLink) {
    let (kills, rate) = language.kills();
    let settings = [
        format!("feed.rate={rate}"),
        format!("topology.shards={SHARDS}"),
        "risk.strategies.max_orders_per_s=0".to_string(),
        // On a busy machine a process may be away for longer than its lease.
        "remote_strategies.on_return=start".to_string(),
        // The whole journal is read at the end, so all of it is kept.
        "journal.segment_bytes=16777216".to_string(),
        "journal.snapshot_every_bytes=1073741824".to_string(),
        "shard.finished_max=1024".to_string(),
        reference(&place),
    ];
    let processes = NAMES.map(|_| None).into();
    let mut run = KillRun { language, place, link, settings: settings.into(), service: None, processes };
    run.start();
    (0..NAMES.len()).for_each(|at| run.send_out(at));
    run.go_on();
    let mut chance = Rng::new(11);
    let mut victims: BTreeMap<u64, u32> = BTreeMap::new();
    let begun = Instant::now();
    for kill in 0..kills {
        // Each kind is killed, also in the short form.
        let victim = FIRST.get(index_usize(kill)).copied().unwrap_or_else(|| chance.below(6));
        *victims.entry(victim).or_default() += 1;
        run.kill(victim);
        // Sometimes the next kill comes before any process has recovered.
        if chance.below(4) > 0 {
            run.go_on();
        }
    }
    run.go_on();
    let took = begun.elapsed();
    settle(&run);
    let KillRun { place, service, processes, settings, .. } = run;
    drop(processes);
    let service = service.unwrap();
    service.signal("TERM");
    assert!(service.end().is_orderly());
    let (events, orders) = audit(&place, &settings);
    println!(
        "{name}: {kills} kills (by victim {victims:?}) in {took:?} at {rate} market events/s: {events} order events and {orders} orders \
         compared, none lost, none doubled"
    );
}

/// Waits until all have stopped, nothing is open, and each process has confirmed all events.
fn settle(run: &KillRun) {
    let service = run.service();
    // A process may request orders until it hears of the stop. What it confirms then comes after
    // these orders, and the second stop is answered after them.
    for _ in 0..2 {
        for (name, _) in NAMES {
            let path = format!("/rest/ext/strategy/{name}/phase");
            until("it stops", || put(service, &path, r#"{"phase":"STOP"}"#).0 == 200);
            until("its orders are taken back", || open_orders(service, name) == 0);
        }
        until("all is taken in", || {
            let (_, text) = service.ask("GET /metrics");
            let behind = text
                .lines()
                .filter(|line| line.starts_with("pitlane_remote_strategy_unacknowledged_events{"));
            behind.clone().count() == NAMES.len() && behind.clone().all(|line| line.ends_with(" 0"))
        });
    }
    assert_eq!(get(service, "/health/ready")["broker"]["connected"], true);
}

/// Compares each record with the journal; returns the number of events and orders.
fn audit(place: &TestFolder, settings: &[String]) -> (usize, usize) {
    let output = journal_of(place, settings);
    let (mut events, mut orders) = (0, 0);
    for (name, lines) in output {
        let text = fs::read_to_string(place.join(format!("told/{name}.told"))).unwrap();
        let begun: Vec<&str> = text.lines().filter(|line| line.starts_with("B ")).collect();
        assert_eq!(begun.len(), 1, "{name} began once: whatever it missed was kept");
        let from: Vec<u64> = begun[0].split(' ').skip(1).map(|part| part.parse().unwrap()).collect();
        for shard in 0..SHARDS {
            let prefix = format!("E {shard} ");
            let received: Vec<&str> = text.lines().filter(|line| line.starts_with(&prefix)).collect();
            let expected: Vec<&str> = lines
                .iter()
                .filter(|(of, seq, _)| *of == shard && *seq > from[shard as usize])
                .map(|(_, _, line)| line.trim_end())
                .collect();
            let differ = received.iter().zip(&expected).position(|(received, output)| received != output);
            assert_eq!(differ, None, "{name}: {:?}", differ.map(|at| (received[at], expected[at])));
            assert_eq!(received.len(), expected.len(), "{name}, shard {shard}");
            events += received.len();
        }
        orders += check_orders(name, &text, &lines);
    }
    (events, orders)
}

/// Checks that every requested order is in the journal once, except those in flight at a kill.
fn check_orders(name: &str, text: &str, lines: &[(u8, u64, String)]) -> usize {
    let mut entered = BTreeSet::new();
    for (_, _, line) in lines {
        let parts: Vec<&str> = line.split(' ').collect();
        if parts[3] == "order" && matches!(parts[5], "PENDING_NEW" | "REJECTED") {
            assert!(entered.insert(parts[4].to_string()), "{name}: {} was entered twice", parts[4]);
        }
    }
    let runs: Vec<&str> = text.split("\nL ").collect();
    for (at, run) in runs.iter().enumerate() {
        let asked: Vec<&str> = run.lines().filter_map(|line| line.strip_prefix("A ")).collect();
        let is_lost = |id: &&&str| !entered.contains(**id);
        let under_way = asked.len().saturating_sub(if at + 1 == runs.len() { 0 } else { UNDER_WAY_MAX });
        let lost: Vec<_> = asked[..under_way].iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "{name}: {lost:?} were asked for and never entered");
    }
    entered.len()
}

type LinesByName = Vec<(u8, u64, String)>;

/// Returns the events of the journal that each strategy must have received.
fn journal_of(place: &TestFolder, settings: &[String]) -> Vec<(&'static str, LinesByName)> {
    let options = settings.iter().map(|setting| {
        let (key, value) = setting.split_once('=').unwrap();
        pitlane_config::Setting { option: "--set", key: key.to_string(), value: value.to_string() }
    });
    let sources = Sources { options: options.collect(), ..Sources::default() };
    let config = pitlane_config::load(&sources, &Machine::of(Path::new("/"))).unwrap().config;
    let reference = Arc::new(refdata::read(config.refdata.dir.as_deref().unwrap(), &[]).unwrap());
    let sources: Vec<_> = NAMES
        .iter()
        .map(|(name, _)| {
            let row = reference.strategies().iter().find(|row| row.name == *name).unwrap();
            remote::strategy::source(HTTP, row.id)
        })
        .collect();
    let disk = Disk::Real;
    let setup = JournalSetup {
        disk: &disk,
        data: place,
        journal: JournalSettings {
            level: Level::Os,
            segment_bytes: config.journal.segment_bytes,
            spares: config.journal.reserve_segments,
            sync_interval_ns: 1_000_000_000,
            snapshot_bytes: config.journal.snapshot_every_bytes,
            ..JournalSettings::default()
        },
        shards: SHARDS,
        reference: (*reference).clone(),
        settings: PlatformSettings::of(&config, &reference).shard,
        receivers: EventReceivers {
            elsewhere: sources.clone(),
            elsewhere_max: usize::MAX,
            ..EventReceivers::default()
        },
    };
    let opened = pitlane_journal::open(setup, Timestamp(u64::MAX / 2), &mut |_| {}).unwrap();
    let lines_of = |source| {
        let mut lines = Vec::new();
        for (shard, opened) in opened.shards.iter().enumerate() {
            assert_eq!(opened.past.from, 0, "the whole journal is there");
            for event in opened.past.events.iter().filter(|event| remote::strategy::concerns(source, event)) {
                let mut line = String::new();
                let shard = index_u8(shard);
                write_event(&mut line, ShardId(shard), event);
                lines.push((shard, event.seq, line));
                // A rejected order has no second event.
                if let EventKind::Order(order) = &event.body {
                    assert_ne!(order.what, ExecType::Snapshot);
                }
            }
        }
        lines
    };
    NAMES.iter().zip(sources).map(|((name, _), source)| (*name, lines_of(source))).collect()
}
