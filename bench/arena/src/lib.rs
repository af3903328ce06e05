//! Pitlane's order book behind the C interface of the public arena for matching engines
//! (`flash1-dev/matching-engine-benchmark`). `bench/arena/run` builds it and runs the arena.
//!
//! The arena calls every function from one thread, in order, so the engine is a plain static.

mod abi;
mod book;
mod ids;
mod shard;

use std::cell::UnsafeCell;
use std::ffi::c_void;

use pitlane_engine::pages::LargePages;

pub use abi::{Cancel, Modify, NewOrder, Report, ReportKind, Transport};
pub use book::BookEngine;
pub use shard::ShardEngine;

/// The tables are on large pages, as those of the service are.
const PAGES: LargePages = LargePages::new(pitlane_sys::pages::advise_huge);

/// Receiver of reports.
pub trait Sink {
    fn push(&self, report: &Report);
}

/// Reports nothing.
impl Sink for () {
    fn push(&self, _: &Report) {}
}

/// An engine of the arena.
pub trait Engine: Default {
    fn enter(&mut self, order: &NewOrder, sink: &impl Sink);
    fn cancel(&mut self, cancel: &Cancel, sink: &impl Sink);
    fn modify(&mut self, modify: &Modify, sink: &impl Sink);
    /// Returns the best price of a side (0 buys, 1 sells), in ticks.
    fn best(&self, side: u8) -> Option<i64>;
    /// Returns the quantity that rests at a price.
    fn depth_at(&self, side: u8, ticks: i64) -> u64;
}

/// The engine behind the C interface.
#[cfg(not(feature = "shard"))]
pub type ChosenEngine = BookEngine;
#[cfg(feature = "shard")]
pub type ChosenEngine = ShardEngine;

/// The engine and the queue of its reports, between `engine_init` and `engine_shutdown`.
struct Arena {
    engine: ChosenEngine,
    queue: Queue,
}

#[derive(Clone, Copy)]
struct Queue {
    push: extern "C" fn(*mut c_void, *const Report) -> i32,
    handle: *mut c_void,
}

impl Sink for Queue {
    #[inline(always)]
    fn push(&self, report: &Report) {
        while (self.push)(self.handle, report) == 0 {
            std::hint::spin_loop();
        }
    }
}

struct Single(UnsafeCell<Option<Arena>>);

// SAFETY: the arena calls all functions below from one thread.
unsafe impl Sync for Single {}

static ARENA: Single = Single(UnsafeCell::new(None));

#[inline(always)]
fn arena<'a>() -> &'a mut Arena {
    // SAFETY: one thread calls, and no function below calls another, so no second reference exists.
    let arena = unsafe { &mut *ARENA.0.get() };
    arena.as_mut().expect("engine_init comes first")
}

/// # Safety
/// `transport` is valid for reads, `sink` belongs to it, and one thread makes all calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_init(_nonce: u64, transport: *const Transport, sink: *mut c_void) {
    // SAFETY: the caller promises a valid transport.
    let push = unsafe { (*transport).push };
    let arena = Arena { engine: ChosenEngine::default(), queue: Queue { push, handle: sink } };
    // SAFETY: see `arena`.
    unsafe { *ARENA.0.get() = Some(arena) };
}

#[unsafe(no_mangle)]
pub extern "C" fn engine_shutdown() {
    // SAFETY: see `arena`.
    unsafe { *ARENA.0.get() = None };
}

/// # Safety
/// `order` is valid for reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_new_order(order: *const NewOrder) {
    let Arena { engine, queue } = arena();
    // SAFETY: the caller promises a valid order.
    engine.enter(unsafe { &*order }, queue);
}

/// # Safety
/// `cancel` is valid for reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_cancel(cancel: *const Cancel) {
    let Arena { engine, queue } = arena();
    // SAFETY: the caller promises a valid cancel.
    engine.cancel(unsafe { &*cancel }, queue);
}

/// # Safety
/// `modify` is valid for reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn engine_on_modify(modify: *const Modify) {
    let Arena { engine, queue } = arena();
    // SAFETY: the caller promises a valid modify.
    engine.modify(unsafe { &*modify }, queue);
}

/// Does nothing: the engine works in the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn engine_flush() {}

#[unsafe(no_mangle)]
pub extern "C" fn engine_query_best_bid() -> i64 {
    arena().engine.best(0).unwrap_or(i64::MIN)
}

#[unsafe(no_mangle)]
pub extern "C" fn engine_query_best_ask() -> i64 {
    arena().engine.best(1).unwrap_or(i64::MAX)
}

#[unsafe(no_mangle)]
pub extern "C" fn engine_query_depth_at(ticks: i64, side: u8) -> u64 {
    arena().engine.depth_at(side, ticks)
}
