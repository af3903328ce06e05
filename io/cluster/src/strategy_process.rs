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

use pitlane_config::{Config, Params, StrategyConfig};
use pitlane_strategy::parameters::BadParameter;
use pitlane_strategy::registry::Registry;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use tokio::runtime::Builder;

use crate::nats::link::LinkError;

#[derive(Clone, Debug)]
pub struct StrategyProcessSettings {
    pub name: String,
    pub config: Config,
    /// Every setting with its origin, for errors.
    pub params: Params,
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

    /// Describes why the strategy cannot be created from a section: the setting at fault with its
    /// file and line if the section is of this process. `None`: its kind is unknown.
    fn describe_fault(&self, kind: &str, bad: Option<&BadParameter>) -> String {
        let kinds: Vec<&str> = self.registry.names().collect();
        let unknown =
            || format!("this program has no kind of strategy {kind:?}; it has {}", kinds.join(", "));
        let at = self.config.strategies.iter().position(|strategy| strategy.name == self.name);
        match (at, bad) {
            (Some(at), Some(bad)) => {
                let key = self.config.strategies[at].fault_key(at, &bad.name);
                format!("{}: {key}: {}", self.params.origin(&key), bad.problem)
            }
            (Some(at), None) => {
                let key = format!("strategy.{at}.kind");
                format!("{}: {key}: {}", self.params.origin(&key), unknown())
            }
            (None, Some(bad)) => format!("parameters of {} in the server's settings: {bad}", self.name),
            (None, None) => format!("{} in the server's settings: {}", self.name, unknown()),
        }
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

#[cfg(test)]
mod tests {
    use pitlane_config::{Loaded, Machine, Setting, Sources};

    use super::*;

    fn settings(options: &[&str]) -> StrategyProcessSettings {
        let options = options.iter().map(|option| Setting::parse(option).unwrap()).collect();
        let sources = Sources { options, ..Sources::default() };
        let machine = Machine { cores: vec![0], cores_usable: 1 };
        let Loaded { config, params, .. } = pitlane_config::load(&sources, &machine).unwrap();
        StrategyProcessSettings {
            name: "DIP".to_string(),
            config,
            params,
            registry: Registry::with_examples(),
        }
    }

    #[test]
    fn a_fault_of_the_strategy_names_the_setting_or_the_server() {
        let bad = BadParameter::new("qty", "it must be a quantity above zero");
        let from_server = settings(&[]);
        assert_eq!(
            from_server.describe_fault("market-maker", Some(&bad)),
            "parameters of DIP in the server's settings: qty: it must be a quantity above zero"
        );
        let unknown =
            "this program has no kind of strategy \"mine\"; it has moving-average-cross, market-maker";
        assert_eq!(
            from_server.describe_fault("mine", None),
            format!("DIP in the server's settings: {unknown}")
        );
        let section = "strategy=[{name=\"DIP\",kind=\"market-maker\",securities=[1],parameters={qty=\"x\"}}]";
        let own = settings(&[section]);
        let fault = own.describe_fault("market-maker", Some(&bad));
        let origin = own.params.origin("strategy.0.parameters.qty");
        assert_eq!(fault, format!("{origin}: strategy.0.parameters.qty: it must be a quantity above zero"));
        let fault = own.describe_fault("mine", None);
        assert!(fault.ends_with(&format!("strategy.0.kind: {unknown}")), "{fault}");
        let two = BadParameter::securities("it trades one security");
        let fault = own.describe_fault("market-maker", Some(&two));
        assert!(fault.ends_with("strategy.0.securities: it trades one security"), "{fault}");
    }
}
