//! No wake-up is ever lost: the wake-up of `io/runtime/src/wakeup.rs`, compiled against a model
//! checker, which explores every order in which the steps of its threads can happen, and every old
//! value that a read may still see.
//!
//! The lanes of the platform publish with a release and read with an acquire, as the counters here
//! do. A sleeping thread that is never woken although there is work would block for ever, which the
//! checker reports as a deadlock.

/// What `io/runtime/src/wakeup.rs` imports from its crate.
mod sync {
    pub(crate) use loom::sync::Arc;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering, fence};
}

#[path = "../io/runtime/src/wakeup.rs"]
#[allow(dead_code, unreachable_pub, reason = "another crate uses the rest of the file")]
mod wake;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use wake::{Wakeup, wake_all};

/// A lane as far as it matters here: how much was put into it, and how much the reader has taken.
struct ModelLane {
    put: Arc<AtomicUsize>,
    taken: usize,
}

impl ModelLane {
    fn take(&mut self) -> usize {
        let put = self.put.load(Ordering::Acquire);
        let new = put - self.taken;
        self.taken = put;
        new
    }
}

/// A thread's place to sleep: as with `park`, a wake-up that comes before is remembered.
#[derive(Clone)]
struct ModelThread(Arc<(Mutex<bool>, Condvar)>);

impl ModelThread {
    fn new() -> ModelThread {
        ModelThread(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn wakeup(&self) -> Wakeup {
        let thread = self.clone();
        Wakeup::new(move || {
            *thread.0.0.lock().expect("no thread panics while it holds the lock") = true;
            thread.0.1.notify_one();
        })
    }

    fn block(&self) {
        let mut called = self.0.0.lock().expect("no thread panics while it holds the lock");
        while !*called {
            called = self.0.1.wait(called).expect("no thread panics while it holds the lock");
        }
        *called = false;
    }
}

/// Runs the loop of a thread that sleeps whenever there is no work, until it has received `wanted`
/// items.
fn sleeper(thread: &ModelThread, wakeup: &Wakeup, mut lanes: Vec<ModelLane>, wanted: usize) {
    let mut look = || lanes.iter_mut().map(ModelLane::take).sum::<usize>();
    let mut had = 0;
    while had < wanted {
        had += look();
        if had == wanted {
            break;
        }
        wakeup.prepare_sleep();
        let found = look();
        if found == 0 {
            thread.block();
        }
        wakeup.finish_sleep();
        had += found;
    }
}

#[test]
fn only_a_sleeping_thread_is_woken_and_only_once() {
    loom::model(|| {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = calls.clone();
        let wakeup = Wakeup::new(move || _ = counter.fetch_add(1, Ordering::Relaxed));
        let others = wakeup.clone();
        let called = |times| assert_eq!(calls.load(Ordering::Relaxed), times);
        others.wake();
        called(0);
        wakeup.prepare_sleep();
        others.wake();
        others.wake();
        called(1);
        wakeup.prepare_sleep();
        wakeup.finish_sleep();
        others.wake();
        called(1);
    });
}

/// Threads bring work to one that sleeps, each `times` times, with a wake-up for each.
fn bring(senders: usize, times: usize) {
    let puts: Vec<_> = (0..senders).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let thread = ModelThread::new();
    let wakeup = thread.wakeup();
    let threads: Vec<_> = puts
        .iter()
        .map(|put| {
            let (put, wakeup) = (put.clone(), wakeup.clone());
            thread::spawn(move || {
                for n in 1..=times {
                    put.store(n, Ordering::Release);
                    wakeup.wake();
                }
            })
        })
        .collect();
    let lanes = puts.into_iter().map(|put| ModelLane { put, taken: 0 }).collect();
    sleeper(&thread, &wakeup, lanes, senders * times);
    for thread in threads {
        thread.join().expect("it ends well");
    }
}

#[test]
fn one_sender_with_two_items_wakes_the_sleeper() {
    check(3, || bring(1, 2));
}

#[test]
fn two_concurrent_senders_wake_the_sleeper() {
    check(2, || bring(2, 1));
}

/// Checks every run in which threads are preempted at most this often. All runs would take minutes,
/// and mistakes of this kind need two preemptions.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// Two threads send each other something and sleep for the answer: each of them both wakes and
/// sleeps.
#[test]
fn two_sleepers_wake_each_other() {
    check(3, || {
        let (there, back) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (my_thread, other_thread) = (ModelThread::new(), ModelThread::new());
        let (my_wakeup, other_wakeup) = (my_thread.wakeup(), other_thread.wakeup());
        let (ring_me, ring_other) = (my_wakeup.clone(), other_wakeup.clone());
        let (asked, answered) = (there.clone(), back.clone());
        let other = thread::spawn(move || {
            sleeper(&other_thread, &other_wakeup, vec![ModelLane { put: asked, taken: 0 }], 1);
            answered.store(1, Ordering::Release);
            wake_all([&ring_me]);
        });
        there.store(1, Ordering::Release);
        wake_all([&ring_other]);
        sleeper(&my_thread, &my_wakeup, vec![ModelLane { put: back, taken: 0 }], 1);
        other.join().expect("it ends well");
    });
}

/// Shows that the checker finds the mistake: without the last check between `prepare_sleep` and
/// blocking, a wake-up is lost.
#[test]
fn a_sleeper_that_does_not_check_again_is_detected() {
    for looks_again in [true, false] {
        let lost = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let seen = lost.clone();
        loom::model(move || {
            let put = Arc::new(AtomicUsize::new(0));
            let called = Arc::new(AtomicUsize::new(0));
            let counter = called.clone();
            let wakeup = Wakeup::new(move || _ = counter.fetch_add(1, Ordering::Relaxed));
            let (sender_put, sender_wakeup) = (put.clone(), wakeup.clone());
            let sender = thread::spawn(move || {
                sender_put.store(1, Ordering::Release);
                sender_wakeup.wake();
            });
            let mut lane = ModelLane { put, taken: 0 };
            let mut found = lane.take();
            wakeup.prepare_sleep();
            if looks_again {
                found += lane.take();
            }
            sender.join().expect("it ends well");
            if found == 0 && called.load(Ordering::Relaxed) == 0 {
                seen.store(true, Ordering::Relaxed);
            }
        });
        assert_eq!(lost.load(Ordering::Relaxed), !looks_again);
    }
}
