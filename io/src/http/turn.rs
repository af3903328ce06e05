//! The share of the thread that belongs to others: between requests it takes in what shards and clerk have said.
//!
//! A sleeping thread must be called, and a call costs the shard that makes it microseconds on the road of an order. So after
//! some events this thread does not sleep at once: it looks again a moment later, and only when nothing came in that moment
//! does it ask to be called. Under load it is never called, idle it never looks. While little happens and nobody listens it looks
//! only now and then; whoever comes has it look first.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use super::HttpEvent;
use super::app_state::AppState;
use super::remote::Remote;

/// A moment: the runtime's shortest. In it a shard at full speed fills half a lane of the usual depth.
const MOMENT: Duration = Duration::from_millis(1);
/// From so many events in a turn on, more are on their way already.
const MANY: usize = 64;
/// Up to so many in a turn, a feed that ticks along: the next may wait for others.
const FEW: usize = 16;
/// How long they wait while nobody would hear of them. A shard whose lane is full calls sooner.
const WHILE: Duration = Duration::from_millis(50);

/// Between two looks at what other threads have counted: as often as they hand it over.
const COLLECT: Duration = Duration::from_secs(1);

/// Takes over the counts of other threads, so that they are of now whenever somebody asks.
pub async fn collect_stages(house: Rc<AppState>) {
    loop {
        sleep(COLLECT).await;
        house.stages();
    }
}

pub async fn take_turns(house: Rc<AppState>, remote: Remote) {
    let mut complete = false;
    loop {
        let work = house.poll();
        if !complete && house.floor.is_complete() {
            complete = true;
            (house.tell)(HttpEvent::Complete);
        }
        match work {
            0 => {
                remote.bell().prepare_sleep();
                if house.poll() == 0 {
                    remote.rung().await;
                }
                remote.bell().finish_sleep();
            }
            1..=FEW if house.is_alone() => {
                house.rests.set(true);
                _ = timeout(WHILE, remote.rung()).await;
                house.rests.set(false);
            }
            // Whoever waits for an answer shall not wait for a moment; and a shard whose lane is full calls.
            1..MANY if house.floor.waiting_len() == 0 && !house.is_between_servers() => {
                _ = timeout(MOMENT, remote.rung()).await
            }
            _ => yield_now().await,
        }
    }
}
