//! Lives that end by SIGKILL, at every so many-th write of a journal, one after the other on the same folder. After each:
//! every order that anybody was told of is there, as far as was told or farther, none is there twice, the books add up,
//! and no id is given twice.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use pitlane::journal::disk::Disk;
use pitlane::journal::read_back;
use pitlane_engine::command::{Command, CommandKind, Watch};
use pitlane_engine::desk::NAMES_PER_ORDER_MAX;
use pitlane_engine::id::{IntId, PortId, ShardId, Source};
use pitlane_engine::number::Qty;
use pitlane_engine::outbox::Outbox;
use pitlane_engine::view::{Order, View, ViewSettings};
use pitlane_protocols::codes::WireName;

use crate::service::{Folder, Service, folder};
use crate::{LIVELY, STILL};

const SIGKILL: i32 = 9;
const SHARDS: u8 = 2;
/// Lives in the full form, and in the short one.
const LIVES_FULL: u64 = 320;
const LIVES_SHORT: u64 = 10;
/// Lives on one folder: each reads all before it back, so many of them are slow.
const LINE: u64 = 40;
/// From one life to the next the point moves by this, so that starts, setting up and trading are all cut: some two
/// hundred commands come before the first order.
const STEP: u64 = 7;
/// Farthest point of a life.
const FARTHEST: u64 = 700;

/// Whether all of it was asked for, by `make faults`.
pub fn is_full() -> bool {
    env::var("PITLANE_FAULTS").is_ok_and(|size| size == "full")
}

/// What was printed of an order last.
#[derive(Debug)]
struct Told {
    status: String,
    filled: Qty,
}

#[derive(Default)]
pub struct Witness {
    /// By id.
    orders: BTreeMap<String, Told>,
    /// Ids of orders that were entered, in all lives.
    entered: BTreeSet<String>,
}

impl Witness {
    /// `TIME ID SYMBOL SIDE KIND QTY… STATUS filled QTY …`
    pub fn hear(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "filled") else { return };
        let (id, status) = (words[1].to_string(), words[at - 1].to_string());
        // The last line may have been cut by the end.
        let Some(filled) = words.get(at + 1).and_then(|qty| Qty::parse(qty.as_bytes()).ok()) else { return };
        if !line.ends_with('\n') {
            return;
        }
        if status == "PENDING_NEW" {
            assert!(self.entered.insert(id.clone()), "{id} was given before");
        }
        // Requests have ids of their own; what became of them is told under the order's.
        if self.entered.contains(&id) {
            self.orders.insert(id, Told { status, filled });
        }
    }

    /// Orders that were told.
    pub fn len(&self) -> usize {
        self.orders.len()
    }

    /// Everything told is in the state.
    pub fn check(&self, view: &View, life: u64) {
        for (id, told) in &self.orders {
            let found = find(view, id);
            assert_eq!(found.len(), 1, "life {life}: {id} was told {told:?}");
            let order = &found[0];
            assert!(order.cum_qty >= told.filled, "life {life}: {id} was told {told:?}, is {order:?}");
            if ["FILLED", "CANCELED", "REJECTED", "EXPIRED"].contains(&told.status.as_str()) {
                assert_eq!(order.status.wire_name(), told.status, "life {life}: {id}");
            }
        }
    }
}

/// An order that was modified often is known by its last two ids only.
fn find(view: &View, id: &str) -> Vec<Order> {
    let first = IntId::parse(id.as_bytes()).expect("it was printed");
    let versions = std::iter::successors(Some(first), IntId::next_version).take(NAMES_PER_ORDER_MAX as usize);
    versions.map(|id| view.orders_with_id(&id)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The state on disk, told as a reader is told it.
pub fn state(data: &Path) -> View {
    let mut view = View::new(SHARDS, ViewSettings::default());
    for (shard, recovered) in read_back(&Disk::Real, data).expect("it can be read").into_iter().enumerate() {
        let Some(restored) = recovered.restored else { continue };
        let mut shard_now = restored.shard;
        shard_now.assert_consistent();
        // A port of nobody's: what was being told to others when the life ended is not for us.
        let port = PortId(PortId::MAX);
        let source = Source { port, ..Source::default() };
        let mut out = Outbox::new(restored.event);
        let bodies =
            [CommandKind::Watch { port, what: Watch::Everything, on: true }, CommandKind::Snapshot { port }];
        for body in bodies {
            shard_now.apply(restored.time, &Command::new(source, 0, body), &mut out);
            loop {
                let ours = out.waiting().iter().filter(|(ports, _)| ports.contains(port));
                ours.for_each(|(_, event)| view.apply(ShardId(shard as u8), event));
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
fn no_life_loses_or_doubles_what_was_told() {
    match is_full() {
        true => (0..LIVES_FULL / LINE)
            .for_each(|line| live(&format!("lives-{line}"), line * LINE * STEP, LINE, STEP)),
        false => live("lives", 0, LIVES_SHORT, FARTHEST / LIVES_SHORT),
    }
}

/// A line of lives on one folder, each killed at another write: at `first`, and then every `step`.
fn live(name: &str, first: u64, lives: u64, step: u64) {
    let data = folder(name);
    let mut witness = Witness::default();
    for life in 0..lives {
        let at = 1 + (first + life * step) % FARTHEST;
        // Half of the lives with a thread for each, so that shards die in the middle of each other's work.
        let layout = if life % 2 == 0 { "topology.layout=shared" } else { "topology.layout=dedicated" };
        // Every order of every life is kept, so that each can be asked for.
        let settings = [&LIVELY[..], &[layout, "shard.finished_max=100000"]].concat();
        let mut service = Service::start(&data, &settings, Some(&format!("kill:{at}")));
        loop {
            let line = service.line();
            if line.is_empty() {
                break;
            }
            witness.hear(&line);
        }
        let ended = service.end();
        assert_eq!(ended.status.signal(), Some(SIGKILL), "life {life}: {}", ended.complaints);
        witness.check(&state(&data), life);
    }
    assert!(witness.orders.len() > 20, "the lives were long enough to trade: {}", witness.orders.len());
    show(&data);
}

/// A last life, in which nothing moves, shows what all of them left.
fn show(data: &Folder) {
    let before = state(data);
    let service = Service::start(data, &STILL, None);
    assert!(service.is_ready(), "{}", service.ready);
    let open = service.metric("pitlane_read_model_orders{state=\"open\"}");
    assert_eq!(service.metric("pitlane_read_model_positions"), before.positions().count() as u64);
    service.signal("TERM");
    assert!(service.end().is_orderly());
    // Some are good until a time, which may have come meanwhile.
    let left = state(data).open_orders_len() as u64;
    assert!((left..=before.open_orders_len() as u64).contains(&open), "{open} open, {left} left");
}
