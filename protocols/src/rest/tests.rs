//! Value objects of a read model and of reference data, as the JSON that a client gets.

mod control;
mod orders;
mod reference;

use pitlane_engine::event::EventKind;
use pitlane_engine::id::ShardId;
use pitlane_engine::refdata::{RefData, sample};
use pitlane_engine::view::{View, ViewSettings};
use serde::Serialize;

use crate::test_reports;

fn reference() -> RefData {
    RefData::check(sample::sound()).expect("a valid sample")
}

/// Returns the read model of two shards after their events; the first has the number 1.
fn view_of(events: impl IntoIterator<Item = (u8, EventKind)>) -> View {
    let mut view = View::new(2, ViewSettings::default());
    for (seq, (shard, body)) in (1..).zip(events) {
        view.apply(ShardId(shard), &test_reports::event(seq, body));
    }
    view
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("a value object is JSON")
}
