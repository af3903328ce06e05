//! The log of the platform: lines by `tracing`, as text on a terminal and as JSON otherwise;
//! warnings and errors also become events inside the platform.
//!
//! ```text
//! any thread ── tracing ──┬── Lines ──► writer thread ──► standard error or a file
//!                         └── EventLayer ──► Events ──► publisher of log-event.<level>
//! ```
//!
//! Both queues are bounded, and no thread waits for them. There is no log line per message:
//! counters serve that purpose.

mod events;
mod fence;
mod file;
mod limit;
mod lines;
mod panic;

use std::env;
use std::fmt;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::Duration;

pub use events::{EVENTS_MAX, EventLayer, Events, LogEvent, Severity};
pub use fence::{fenced, spare_fenced};
use file::LogFile;
pub use limit::LineLimit;
pub use lines::{LINE_BYTES_MAX, LINES_MAX, Lines};
pub use panic::abort_on_panic;
use pitlane_config::{LogConfig, LogFormat};
use pitlane_engine::time::Timestamp;
use serde_json::json;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer as FormatWriter;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, fmt as text, registry};

use crate::clock;
use crate::thread_class::ThreadClass;

/// Target of lines that name the login and address of a failed login: for the operator's log, not
/// for all subscribers of log events.
pub const LOGINS: &str = "pitlane::logins";

/// Maximum time that the end of the process waits for the last lines.
const END_MAX: Duration = Duration::from_secs(1);

/// The log of this process. Dropping it flushes the queued lines.
#[derive(Debug)]
pub struct LogHandle {
    lines: Lines,
}

impl LogHandle {
    /// Returns the queue of lines, for the panic hook, which has to flush it.
    pub fn lines(&self) -> Lines {
        self.lines.clone()
    }
}

impl Drop for LogHandle {
    fn drop(&mut self) {
        self.lines.flush(END_MAX);
    }
}

/// Starts the writer thread and installs the global subscriber. Called once per process.
pub fn start(settings: &LogConfig) -> io::Result<(LogHandle, Events)> {
    let (out, terminal): (Box<dyn Write + Send>, bool) = match &settings.file {
        Some(path) => {
            let file = LogFile::open(path, settings.file_bytes_max, settings.files_kept);
            let named = |error| io::Error::other(format!("log.file {}: {error}", path.display()));
            (Box::new(file.map_err(named)?), false)
        }
        None => (Box::new(io::stderr()), io::stderr().is_terminal()),
    };
    let mut style = Style::of(settings.format, terminal);
    // A convention of command-line programs: https://no-color.org
    style.colour &= env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    style.has_priorities = settings.file.is_none() && is_journal();
    let (lines, writer) = lines::queue(LINES_MAX, out, style);
    thread::Builder::new().name("log".to_string()).spawn(move || {
        ThreadClass::Housekeeping.apply();
        writer.run();
    })?;
    let (layer, events) = events::events(EVENTS_MAX);
    let subscriber = subscriber(settings, style, lines.clone(), layer);
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)?;
    Ok((LogHandle { lines }, events))
}

/// Returns whether standard error is the journal of systemd, which names it by device and inode.
fn is_journal() -> bool {
    let stream = env::var("JOURNAL_STREAM").unwrap_or_default();
    let about = fs::metadata("/proc/self/fd/2");
    about.is_ok_and(|about| stream == format!("{}:{}", about.dev(), about.ino()))
}

/// Builds the subscriber: lines by the levels of the settings, events for warnings and errors.
pub fn subscriber(
    settings: &LogConfig,
    style: Style,
    lines: Lines,
    events: EventLayer,
) -> impl Subscriber + Send + Sync + 'static {
    let levels = Targets::new().with_default(settings.level);
    let levels = levels.with_targets(settings.targets.iter().map(|(name, level)| (name.clone(), *level)));
    let layer = text::layer().with_timer(WallClock).with_writer(lines);
    let layer = match style.json {
        true => layer.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        false => layer.with_ansi(style.colour).boxed(),
    };
    let event_levels = Targets::new().with_default(LevelFilter::WARN).with_target(LOGINS, LevelFilter::OFF);
    registry().with(layer.with_filter(levels)).with(events.with_filter(event_levels))
}

/// The format of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub json: bool,
    pub colour: bool,
    /// Whether each line begins with its syslog priority, as the journal of systemd reads it.
    pub has_priorities: bool,
}

impl Style {
    pub fn of(format: LogFormat, terminal: bool) -> Style {
        let json = match format {
            LogFormat::Auto => !terminal,
            LogFormat::Text => false,
            LogFormat::Json => true,
        };
        Style { json, colour: terminal && !json, has_priorities: false }
    }

    /// Returns the line that reports the number of dropped lines.
    fn dropped(self, now: Timestamp, count: u64) -> String {
        let (target, message) = ("pitlane::log", "lines dropped");
        let prefix = if self.has_priorities { lines::priority(Level::WARN) } else { "" };
        if self.json {
            let time = now.to_string();
            let line = json!({ "timestamp": time, "level": "WARN", "message": message, "count": count, "target": target });
            return format!("{prefix}{line}\n");
        }
        format!("{prefix}{now}  WARN {target}: {message} count={count}\n")
    }
}

/// Formats the wall clock as everywhere else, to the microsecond.
struct WallClock;

impl FormatTime for WallClock {
    fn format_time(&self, out: &mut FormatWriter<'_>) -> fmt::Result {
        let Timestamp(ns) = clock::wall();
        write!(out, "{}", Timestamp(ns / 1_000 * 1_000))
    }
}
