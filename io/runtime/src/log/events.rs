//! Warnings and errors as events of the platform: beside the written line they go into a bounded
//! queue, from which the publisher takes them.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use pitlane_engine::time::Timestamp;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::clock;
use crate::wakeup::Wakeup;

/// Maximum number of events that wait for the reader.
pub const EVENTS_MAX: usize = 1_024;
/// Maximum length of a text and number of fields; the rest is omitted, because an event is a notice
/// and the line is complete.
const TEXT_BYTES_MAX: usize = 2_048;
const FIELDS_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEvent {
    pub time: Timestamp,
    pub level: Severity,
    /// The module that logged, as a path.
    pub target: String,
    pub message: String,
    pub fields: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Warn,
    Error,
}

impl Severity {
    /// Returns the level as in the topic `log-event.<level>`.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Warn => "warn",
            Severity::Error => "error",
        }
    }
}

/// The reader's end.
#[derive(Debug)]
pub struct Events {
    queue: Receiver<LogEvent>,
    dropped: Arc<AtomicU64>,
    wakeup: Arc<OnceLock<Wakeup>>,
}

impl Events {
    /// Returns the oldest waiting event.
    pub fn poll(&mut self) -> Option<LogEvent> {
        self.queue.try_recv().ok()
    }

    /// Sets the wake-up of the reading thread, which is triggered for each event.
    pub fn set_wakeup(&self, wakeup: Wakeup) {
        let _ = self.wakeup.set(wakeup);
    }

    /// Returns the number of events dropped since the start.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The sender's end, a layer of the subscriber.
#[derive(Debug)]
pub struct EventLayer {
    queue: SyncSender<LogEvent>,
    dropped: Arc<AtomicU64>,
    wakeup: Arc<OnceLock<Wakeup>>,
}

pub(super) fn events(events_max: usize) -> (EventLayer, Events) {
    let (sender, receiver) = sync_channel(events_max);
    let dropped = Arc::new(AtomicU64::new(0));
    let wakeup = Arc::new(OnceLock::new());
    let layer = EventLayer { queue: sender, dropped: dropped.clone(), wakeup: wakeup.clone() };
    (layer, Events { queue: receiver, dropped, wakeup })
}

impl<S: Subscriber> Layer<S> for EventLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = match *event.metadata().level() {
            Level::ERROR => Severity::Error,
            Level::WARN => Severity::Warn,
            _ => return,
        };
        let mut visitor = FieldVisitor::default();
        event.record(&mut visitor);
        let FieldVisitor { message, fields } = visitor;
        let target = event.metadata().target().to_string();
        let event = LogEvent { time: clock::wall(), level, target, message, fields };
        if self.queue.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(wakeup) = self.wakeup.get() {
            wakeup.wake();
        }
    }
}

#[derive(Default)]
struct FieldVisitor {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Visit for FieldVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, cut(value.to_string()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record(field, cut(format!("{value:?}")));
    }
}

impl FieldVisitor {
    fn record(&mut self, field: &Field, text: String) {
        if field.name() == "message" {
            self.message = text;
        } else if self.fields.len() < FIELDS_MAX {
            self.fields.push((field.name(), text));
        }
    }
}

fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
    text
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn only_warnings_and_errors_become_events() {
        let (layer, mut events) = events(2);
        let long = "ä".repeat(TEXT_BYTES_MAX);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!("nothing");
            tracing::warn!(target: "pitlane::net", peer = "10.0.0.1", bytes = 5, "slow reader");
            tracing::error!("{long}");
            tracing::error!("one too many");
        });
        let first = events.poll().expect("a warning was logged");
        assert_eq!(
            (first.level.word(), first.target.as_str(), first.message.as_str()),
            ("warn", "pitlane::net", "slow reader")
        );
        assert_eq!(first.fields, [("peer", "10.0.0.1".to_string()), ("bytes", "5".to_string())]);
        let second = events.poll().expect("an error was logged");
        assert_eq!((second.level, second.message.len()), (Severity::Error, TEXT_BYTES_MAX));
        assert!(second.time >= first.time);
        assert_eq!((events.poll(), events.dropped()), (None, 1));
    }
}
