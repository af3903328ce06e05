//! The http thread's work between requests: it handles events of the shards and answers of the
//! `auth` thread.
//!
//! A parked thread must be woken, and the wake-up costs the shard microseconds on the path of an
//! order. So after some events this thread does not park at once: it polls again a moment later,
//! and only if nothing came in that moment does it ask to be woken. Under load it is never woken,
//! and when idle it never polls. While there is no subscriber, it polls only as often as the rate
//! of events requires; a request makes it poll first.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::{spawn_blocking, yield_now};
use tokio::time::{sleep, timeout};

use super::app_state::AppState;
use super::http_event::HttpEvent;
use super::portfolio_file::PortfolioFile;
use super::portfolio_history::FileChange;
use super::profit_file::ProfitFile;
use super::remote::Remote;
use super::shard_client::EVENTS_PER_CYCLE_MAX;

/// Pause between polls, the runtime's shortest. In it a shard at full speed fills half a lane of
/// the usual depth.
const POLL_PAUSE: Duration = Duration::from_millis(1);
/// Number of events per cycle from which on more are assumed to be on the lanes already.
const MANY_EVENTS: usize = 64;
/// Number of events per cycle for which pauses are planned while there is no subscriber: some 20 µs
/// of work. A thread that shares the core cannot handle an order meanwhile.
const PLANNED_EVENTS: u32 = 64;
/// The longest of these pauses. A shard whose lane is full wakes us sooner.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Interval at which the counts of other threads are collected, as often as they hand them over,
/// and at which the end of a trading day is noticed.
const COLLECT_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two samples of the portfolios, and between two looks whether the read model is
/// complete.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
const START_PAUSE: Duration = Duration::from_millis(20);

/// Collects the counts of other threads, so that they are current whenever they are read, ends
/// watches that are not used any more, and gives a sign of life.
pub(crate) async fn collect_stages(app: Rc<AppState>, remote: Remote) {
    loop {
        sleep(COLLECT_INTERVAL).await;
        app.monitoring.stages();
        app.notifications.ws_broker.end_unused_depths();
        remote.give_sign_of_life();
    }
}

/// Keeps the profit of the days that end, for as long as the thread runs.
pub(crate) async fn keep_profit(app: Rc<AppState>) {
    let file = app.settings.data_dir.as_deref().map(ProfitFile::new);
    if let Some(file) = &file {
        app.profit_history.restore(file.read());
    }
    loop {
        app.profit_history.collect(&app.trading.shard_client);
        if let Some((file, rows)) = file.clone().zip(app.profit_history.changed()) {
            // As for the portfolios; the next day that ends writes all rows again.
            _ = spawn_blocking(move || file.replace(&rows)).await;
        }
        sleep(COLLECT_INTERVAL).await;
    }
}

/// Takes samples of the portfolios for as long as the thread runs.
pub(crate) async fn sample_portfolios(app: Rc<AppState>) {
    let base = app.settings.base_currency;
    let file = app.settings.data_dir.as_deref().map(|folder| PortfolioFile::new(folder, base));
    if let Some(file) = &file {
        app.portfolio_history.restore(file.read());
    }
    while !app.trading.shard_client.is_complete() {
        sleep(START_PAUSE).await;
    }
    loop {
        let change = sample(&app);
        if let Some(file) = file.clone() {
            // The disk may be slow, and the thread has other work. If the write ends by a panic, a
            // gap in the file is all that is lost.
            _ = spawn_blocking(move || match change {
                FileChange::Append(samples) => file.append(&samples),
                FileChange::Replace(samples) => file.replace(&samples),
            })
            .await;
        }
        sleep(SAMPLE_INTERVAL).await;
    }
}

fn sample(app: &AppState) -> FileChange {
    let shard_client = &app.trading.shard_client;
    let (reference, view) = (shard_client.reference(), shard_client.view());
    app.portfolio_history.sample(app.now(), &view, &reference, app.settings.base_currency)
}

pub(crate) async fn run(app: Rc<AppState>, remote: Remote) {
    let mut complete = false;
    let mut polled_at = Instant::now();
    loop {
        let work = poll(&app);
        let interval = std::mem::replace(&mut polled_at, Instant::now()).elapsed();
        if !complete && app.trading.shard_client.is_complete() {
            complete = true;
            app.lifecycle.send_event(HttpEvent::Complete);
        }
        match work {
            0 => {
                remote.wakeup().prepare_sleep();
                if poll(&app) == 0 {
                    remote.woken().await;
                }
                remote.wakeup().finish_sleep();
            }
            1..EVENTS_PER_CYCLE_MAX if has_no_receivers(&app) => {
                app.is_low_power.set(true);
                _ = timeout(pause_after(work, interval), remote.woken()).await;
                app.is_low_power.set(false);
            }
            // A pending response must not wait for a pause; and a shard whose lane is full wakes
            // us.
            1..MANY_EVENTS if app.trading.shard_client.waiting_len() == 0 && !is_forwarding(&app) => {
                _ = timeout(POLL_PAUSE, remote.woken()).await
            }
            _ => yield_now().await,
        }
    }
}

/// Returns the pause after which there are [`PLANNED_EVENTS`], at the rate of the last interval.
fn pause_after(events: usize, interval: Duration) -> Duration {
    let events = u32::try_from(events).unwrap_or(u32::MAX).max(1);
    (interval.saturating_mul(PLANNED_EVENTS) / events).clamp(POLL_PAUSE, PAUSE_MAX)
}

/// Handles what other threads have sent, up to a bound, and returns the amount of work done.
fn poll(app: &AppState) -> usize {
    let (shard_client, acts) = (&app.trading.shard_client, &app.access.acts);
    let received = app.notifications.poll();
    let cluster = app.trading.cluster.as_ref();
    let forwarded = cluster.map_or(0, |cluster| cluster.poll(app.now(), shard_client));
    if acts.has_anchor() && app.trading.check_open().is_ok() {
        acts.anchor(shard_client, app.settings.anchor_shard);
    }
    let drained = shard_client.poll();
    // A FIX client must find its own fills, so its query waits until all events are applied.
    let answered = match drained < EVENTS_PER_CYCLE_MAX && drained + received > 0 {
        true => app.fix_queries.poll(shard_client, &app.notifications.hub),
        false => 0,
    };
    forwarded
        + drained
        + answered
        + app.access.authorizer.login_queue.poll()
        + acts.poll()
        + app.reloads.poll()
        + received
}

/// Returns whether a client at another server, or here, waits for what this thread forwards.
fn is_forwarding(app: &AppState) -> bool {
    app.trading.cluster.as_ref().is_some_and(|cluster| cluster.is_expecting(app.now()))
}

/// Returns whether there is no subscriber and no pending response here.
fn has_no_receivers(app: &AppState) -> bool {
    app.notifications.remote_strategies.is_none()
        && app.trading.cluster.is_none()
        && !app.notifications.ws_broker.has_clients()
        && !app.notifications.ws_broker.depth_watches.has_waiting()
        && app.trading.shard_client.waiting_len() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_lasts_until_a_turn_has_the_planned_events() {
        let ms = Duration::from_millis;
        assert_eq!(pause_after(64, ms(10)), ms(10), "the rate of the plan");
        assert_eq!(pause_after(1_750, ms(50)), Duration::from_nanos(1_828_571), "35,000 events/s");
        assert_eq!(pause_after(100, ms(1)), POLL_PAUSE, "a fast shard");
        assert_eq!(pause_after(6, ms(50)), PAUSE_MAX, "a slow feed");
        assert_eq!(pause_after(1, Duration::MAX), PAUSE_MAX, "the first event after a long time");
        assert_eq!([pause_after(0, ms(0)), pause_after(usize::MAX, ms(0))], [POLL_PAUSE; 2]);
    }
}
