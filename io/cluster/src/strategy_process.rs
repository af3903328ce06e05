//! `pitlane strategy`: one strategy in a process of its own, on this host or another, connected to
//! its server directly or through a broker.
//!
//! ```text
//! Hello ─► Welcome ─► reference data, state, missed events ─► RemoteRunner ─► … ─► Bye
//!   ▲                                                            │
//!   └──────────── missed events are no longer available ◄────────┘
//! ```
//!
//! The strategy is the same code as in the service, and so is its runner; [`runner`] describes what
//! replaces the shards. Reference data comes from the server, and so does the `[[strategy]]`
//! section unless this process has one, so that both use the same.

pub mod record;
pub mod requests;
pub mod runner;
mod link;
mod process;

use std::fmt;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;

use pitlane_config::{Config, StrategyConfig};
use pitlane_strategy::registry::Registry;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use tokio::runtime::Builder;

use crate::nats::link::LinkError;

#[derive(Clone, Debug)]
pub struct StrategyProcessSettings {
    pub name: String,
    pub config: Config,
    /// The kinds of strategies that this program knows.
    pub registry: Registry,
}

/// The reason why the process ended.
#[derive(Debug)]
pub enum StrategyProcessError {
    Link(LinkError),
    /// The server refuses the strategy; the text is its reason.
    Refused(String),
    /// The strategy cannot be created with its settings.
    Settings(String),
    System(String, io::Error),
}

impl fmt::Display for StrategyProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrategyProcessError::Link(error) => error.fmt(f),
            StrategyProcessError::Refused(text) => write!(f, "the server refuses: {text}"),
            StrategyProcessError::Settings(text) => f.write_str(text),
            StrategyProcessError::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl From<LinkError> for StrategyProcessError {
    fn from(error: LinkError) -> StrategyProcessError {
        StrategyProcessError::Link(error)
    }
}

fn system(what: &str) -> impl FnOnce(io::Error) -> StrategyProcessError {
    let what = what.to_string();
    |error| StrategyProcessError::System(what, error)
}

/// Runs until a signal, or until the server refuses the strategy.
pub fn run(settings: &StrategyProcessSettings) -> Result<(), StrategyProcessError> {
    let (signals, sender) = UnixStream::pair().map_err(system("cannot receive signals"))?;
    for signal in [SIGINT, SIGTERM] {
        let end = sender.try_clone().map_err(system("cannot receive signals"))?;
        pipe::register(signal, end).map_err(system("cannot receive signals"))?;
    }
    let runtime = Builder::new_current_thread().enable_io().enable_time().build();
    runtime.map_err(system("cannot start"))?.block_on(process::run(settings, signals))
}

impl StrategyProcessSettings {
    /// Returns the section in the settings of this process, if there is one.
    fn own(&self) -> Option<&StrategyConfig> {
        self.config.strategies.iter().find(|strategy| strategy.name == self.name)
    }
}

/// Returns the host and process id, for the server's operator.
fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{}:{}", name.trim(), std::process::id())
}

fn print_line(line: &str) {
    let mut out = io::stdout().lock();
    // The parent process may not read standard output.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
