//! Processes that end by SIGKILL, at every nth write of a journal, one after the other on the same
//! folder. After each: every order that was reported exists, in the reported status or a later one,
//! none exists twice, the books are consistent, and no id is given twice.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use pitlane_engine::command::{Command, CommandKind, WatchTarget};
use pitlane_engine::desk::NAMES_PER_ORDER_MAX;
use pitlane_engine::id::{IntId, PortId, ShardId, Source};
use pitlane_engine::index::index_u8;
use pitlane_engine::number::Qty;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::view::{OrderView, View, ViewSettings};
use pitlane_journal::disk::Disk;
use pitlane_journal::read_back;
use pitlane_protocols::codes::WireName;
use pitlane_testkit::service::{ServiceProcess, TestFolder, folder};

use crate::{LIVELY, STILL};

const SIGKILL: i32 = 9;
const SHARDS: u8 = 2;
/// Processes in the full form, and in the short one.
const ROUNDS_FULL: u64 = 320;
const ROUNDS_SHORT: u64 = 10;
/// Processes on one folder: each recovers everything before it, so many of them are slow.
const LINE: u64 = 40;
/// Step of the write number from one process to the next, so that starts, setup and trading are all
/// interrupted: some two hundred commands come before the first order.
const STEP: u64 = 7;
/// Highest write number of a process.
const FARTHEST: u64 = 700;

/// Returns whether the full form is requested, by `make faults`.
pub(crate) fn is_full() -> bool {
    env::var("PITLANE_FAULTS").is_ok_and(|size| size == "full")
}

/// The last printed status of an order.
#[derive(Debug)]
struct PrintedStatus {
    status: String,
    filled: Qty,
}

#[derive(Default)]
pub(crate) struct StatusLog {
    /// Orders by id.
    orders: BTreeMap<String, PrintedStatus>,
    /// Ids of entered orders, of all processes.
    entered: BTreeSet<String>,
}

impl StatusLog {
    /// Parses `TIME ID SYMBOL SIDE KIND QTY… STATUS filled QTY …`
    pub(crate) fn receive(&mut self, line: &str) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = fields.iter().position(|field| *field == "filled") else { return };
        let (id, status) = (fields[1].to_string(), fields[at - 1].to_string());
        // The last line may have been cut by the end.
        let Some(filled) = fields.get(at + 1).and_then(|qty| Qty::parse(qty.as_bytes()).ok()) else { return };
        if !line.ends_with('\n') {
            return;
        }
        if status == "PENDING_NEW" {
            assert!(self.entered.insert(id.clone()), "{id} was given before");
        }
        // Requests have separate ids; their outcome is reported under the order's.
        if self.entered.contains(&id) {
            self.orders.insert(id, PrintedStatus { status, filled });
        }
    }

    /// Returns the number of reported orders.
    pub(crate) fn len(&self) -> usize {
        self.orders.len()
    }

    /// Checks that everything reported is in the state.
    pub(crate) fn check(&self, view: &View, round: u64) {
        for (id, printed) in &self.orders {
            let found = find(view, id);
            assert_eq!(found.len(), 1, "round {round}: {id} was reported as {printed:?}");
            let order = &found[0];
            assert!(
                order.cum_qty >= printed.filled,
                "round {round}: {id} was reported as {printed:?}, is {order:?}"
            );
            if ["FILLED", "CANCELED", "REJECTED", "EXPIRED"].contains(&printed.status.as_str()) {
                assert_eq!(order.status.wire_name(), printed.status, "round {round}: {id}");
            }
        }
    }
}

/// An order that was modified often is known by its last two ids only.
fn find(view: &View, id: &str) -> Vec<OrderView> {
    let first = IntId::parse(id.as_bytes()).expect("it was printed");
    let versions = std::iter::successors(Some(first), IntId::next_version).take(NAMES_PER_ORDER_MAX as usize);
    versions.map(|id| view.orders_with_id(&id)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Returns the state on disk, as a reader receives it.
pub(crate) fn state(data: &Path) -> View {
    let mut view = View::new(SHARDS, ViewSettings::default());
    for (shard, recovered) in read_back(&Disk::Real, data).expect("it can be read").into_iter().enumerate() {
        let Some(restored) = recovered.restored else { continue };
        let mut shard_now = restored.shard;
        shard_now.assert_consistent();
        // An unused port: events in progress for other ports when the process ended are not for us.
        let port = PortId(PortId::MAX);
        let source = Source { port, ..Source::default() };
        let mut out = Outbox::new(restored.event);
        let bodies = [
            CommandKind::Watch { port, what: WatchTarget::Everything, on: true },
            CommandKind::Snapshot { port },
        ];
        for body in bodies {
            shard_now.apply(restored.time, &Command::new(source, 0, body), &mut out);
            loop {
                let ours = out.waiting().iter().filter(|(ports, _)| ports.contains(port));
                ours.for_each(|(_, event)| view.apply(ShardId(index_u8(shard)), event));
                out.clear();
                if !shard_now.has_work() && !shard_now.has_background() {
                    break;
                }
                shard_now.resume(&mut out);
            }
        }
    }
    view
}

#[test]
fn no_kill_loses_or_doubles_an_acknowledged_order() {
    match is_full() {
        true => (0..ROUNDS_FULL / LINE)
            .for_each(|line| live(&format!("server-kills-{line}"), line * LINE * STEP, LINE, STEP)),
        false => live("server-kills", 0, ROUNDS_SHORT, FARTHEST / ROUNDS_SHORT),
    }
}

/// Runs processes on one folder, each killed at another write: at `first`, and then every `step`.
fn live(name: &str, first: u64, rounds: u64, step: u64) {
    let data = folder(name);
    let mut status_log = StatusLog::default();
    for round in 0..rounds {
        let at = 1 + (first + round * step) % FARTHEST;
        // Half of the processes have a thread for each shard, so that shards end in the middle of
        // each other's work.
        let layout = if round % 2 == 0 { "topology.layout=shared" } else { "topology.layout=dedicated" };
        // Every order of every process is kept, so that each can be requested.
        let settings = [&LIVELY[..], &[layout, "shard.finished_max=100000"]].concat();
        let mut service = ServiceProcess::start(&data, &settings, Some(&format!("kill:{at}")));
        loop {
            let line = service.line();
            if line.is_empty() {
                break;
            }
            status_log.receive(&line);
        }
        let ended = service.end();
        assert_eq!(ended.status.signal(), Some(SIGKILL), "round {round}: {}", ended.log_text);
        status_log.check(&state(&data), round);
    }
    assert!(
        status_log.orders.len() > 20,
        "the rounds were long enough to trade: {}",
        status_log.orders.len()
    );
    show(&data);
}

/// A last process, without activity, shows what all of them left.
fn show(data: &TestFolder) {
    let before = state(data);
    let service = ServiceProcess::start(data, &STILL, None);
    assert!(service.is_ready(), "{}", service.ready);
    let open = service.metric("pitlane_read_model_orders{state=\"open\"}");
    assert_eq!(service.metric("pitlane_read_model_positions"), before.positions().count() as u64);
    service.signal("TERM");
    assert!(service.end().is_orderly());
    // Some orders have a date, which may have passed meanwhile.
    let left = state(data).open_orders_len() as u64;
    assert!((left..=before.open_orders_len() as u64).contains(&open), "{open} open, {left} left");
}
