//! The connection to the broker: opened once, reconnected forever, with its health.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Client, ConnectOptions, Event};
use pitlane_config::NatsConfig;
use pitlane_engine::index::index_u32;
use tokio::sync::Notify;

/// Capacity of the queue to the client's own task. Beyond it a publisher waits, and its next values
/// become newer in the meantime.
const MESSAGES_MAX: usize = 1_024;
/// Capacity of received messages by subscription. The client library drops messages beyond it;
/// sequence numbers reveal that.
const RECEIVED_MAX: usize = 16_384;
/// First and longest pause between two attempts to connect.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(20);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Ping interval for a silent broker; the second ping without an answer ends the connection.
const PING: Duration = Duration::from_secs(2);
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Maximum number of missing rights that are remembered: each subject is one, and there are few.
const VIOLATIONS_MAX: usize = 64;
/// Interval between two warnings of the same kind: a client can make a connection fail as often as
/// it likes.
const WARN_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of different errors that are logged while the broker cannot be reached.
const ERRORS_MAX: usize = 8;

const VIOLATION: &str = "Permissions Violation for ";
/// Part of the subjects on which only a server with all rights may publish.
const CANARY: &str = ".canary";
const MISSING: &str =
    "the broker refuses this login something that it needs: config/nats/pitlane.conf lists the rights";

/// Whether the broker is connected, for polling and for waiting.
#[derive(Debug, Default)]
pub struct BrokerHealth {
    up: AtomicBool,
    /// Number of times that the connection was established.
    connection_count: AtomicU64,
    changed: Notify,
    /// Errors since the last connection: a connect is attempted twice a second, and one log line is
    /// enough.
    errors: Mutex<Vec<String>>,
    /// Missing rights as the broker reports them, since the last connection.
    violations: Mutex<BTreeSet<String>>,
    /// Time of the last warning of a kind that may be frequent.
    warned_at: Mutex<Option<Instant>>,
}

impl BrokerHealth {
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    pub fn connection_count(&self) -> u64 {
        self.connection_count.load(Ordering::Acquire)
    }

    /// Waits until the state changes; only one task may wait.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns what the broker has refused for lack of rights, such as
    /// `Publish to "pitlane.pitlane.market"`.
    pub fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Returns whether a frequent warning may be logged now.
    fn may_warn(&self) -> bool {
        let now = Instant::now();
        let mut warned_at = self.warned_at.lock().unwrap_or_else(PoisonError::into_inner);
        let may = warned_at.is_none_or(|warned_at| now.duration_since(warned_at) >= WARN_INTERVAL);
        if may {
            *warned_at = Some(now);
        }
        may
    }

    /// Returns whether this error has not been logged since the last connection.
    fn is_new(&self, error: String) -> bool {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = errors.len() < ERRORS_MAX && !errors.contains(&error);
        if is_new {
            errors.push(error);
        }
        is_new
    }

    fn set(&self, up: bool) {
        if up {
            self.connection_count.fetch_add(1, Ordering::AcqRel);
        }
        self.up.store(up, Ordering::Release);
        self.changed.notify_one();
    }
}

/// The reason why there is no connection, and never will be with these settings.
#[derive(Debug)]
pub struct LinkError(String);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the broker of nats.url: {}", self.0)
    }
}

impl std::error::Error for LinkError {}

/// Opens a client that connects as soon as the broker is reachable. `name` identifies this client
/// to the broker's operator, `inbox` is the prefix of its reply subjects.
pub async fn open(
    settings: &NatsConfig,
    name: &str,
    inbox: String,
) -> Result<(Client, Arc<BrokerHealth>), LinkError> {
    let health = Arc::new(BrokerHealth::default());
    let noted = health.clone();
    let mut options = ConnectOptions::new()
        .name(name)
        .custom_inbox_prefix(inbox)
        .retry_on_initial_connect()
        .max_reconnects(None)
        .client_capacity(MESSAGES_MAX)
        .subscription_capacity(RECEIVED_MAX)
        .connection_timeout(CONNECT_MAX)
        .ping_interval(PING)
        .require_tls(settings.tls)
        .reconnect_delay_callback(|tries| {
            (RETRY_PAUSE_MIN * 2u32.pow(index_u32(tries.min(8)))).min(RETRY_PAUSE_MAX)
        })
        .event_callback(move |event| {
            note(&noted, &event);
            async {}
        });
    if let (Some(user), Some(password)) = (&settings.user, &settings.password) {
        options = options.user_and_password(user.clone(), password.reveal().to_string());
    }
    if let Some(token) = &settings.token {
        options = options.token(token.reveal().to_string());
    }
    if let Some(path) = &settings.credentials_file {
        let read = options.credentials_file(path).await;
        options = read.map_err(|error| LinkError(format!("{}: {error}", path.display())))?;
    }
    if let Some(path) = &settings.ca {
        options = options.add_root_certificates(path.clone());
    }
    if let (Some(cert), Some(key)) = (&settings.cert, &settings.key) {
        options = options.add_client_certificate(cert.clone(), key.clone());
    }
    let urls: Vec<&str> = settings.url.split(',').map(str::trim).collect();
    let client = options.connect(urls).await.map_err(|error| LinkError(error.to_string()))?;
    Ok((client, health))
}

fn note(health: &BrokerHealth, event: &Event) {
    match event {
        Event::Connected => {
            tracing::info!("connected to the broker");
            health.errors.lock().unwrap_or_else(PoisonError::into_inner).clear();
            health.violations.lock().unwrap_or_else(PoisonError::into_inner).clear();
            health.set(true);
        }
        Event::Disconnected | Event::Closed => {
            if health.is_up() && health.may_warn() {
                tracing::warn!(
                    "the connection to the broker is lost: no orders of strategies until it is back"
                );
            }
            health.set(false);
        }
        Event::SlowConsumer(_) if health.may_warn() => {
            tracing::warn!("messages of the broker were dropped: they came too fast");
        }
        Event::SlowConsumer(_) => tracing::debug!("messages of the broker were dropped"),
        Event::LameDuckMode | Event::Draining => tracing::info!(%event, "the broker shuts down"),
        Event::ServerError(error) if violation_in(&error.to_string()).is_some() => {
            note_violation(health, &error.to_string());
        }
        Event::ServerError(_) | Event::ClientError(_) if health.is_new(event.to_string()) => {
            tracing::warn!(%event, "the broker reports an error");
        }
        Event::ServerError(_) | Event::ClientError(_) => {
            tracing::debug!(%event, "the broker reports an error")
        }
    }
}

fn note_violation(health: &BrokerHealth, error: &str) {
    let Some(violation) = violation_in(error) else { return };
    // The canary was tried on purpose: this refusal is correct.
    if violation.contains(CANARY) {
        return tracing::debug!(error, "the broker restricts this login");
    }
    let mut violations = health.violations.lock().unwrap_or_else(PoisonError::into_inner);
    if violations.len() < VIOLATIONS_MAX && violations.insert(violation.to_string()) {
        tracing::error!(error, "{MISSING}");
    }
}

/// Extracts the missing right from an error such as `Permissions Violation for Publish to "a.b"`.
fn violation_in(error: &str) -> Option<&str> {
    let (_, rest) = error.split_once(VIOLATION)?;
    Some(rest.trim_end_matches('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_logged_once_until_the_broker_is_connected_again() {
        let health = BrokerHealth::default();
        assert!(health.is_new("unknown login".to_string()));
        assert!(!health.is_new("unknown login".to_string()));
        note(&health, &Event::Connected);
        assert!(health.is_new("unknown login".to_string()));
        let logged = (0..100).filter(|at| health.is_new(at.to_string())).count();
        assert_eq!(logged, ERRORS_MAX - 1, "other errors are logged up to the bound");
    }

    #[test]
    fn a_missing_right_is_remembered_until_the_broker_is_connected_again() {
        let health = BrokerHealth::default();
        let error = |text: &str| Event::ServerError(async_nats::ServerError::Other(text.to_string()));
        for _ in 0..2 {
            note(&health, &error("'Permissions Violation for Publish to \"a.b\"'"));
        }
        note(&health, &error("'Permissions Violation for Publish to \"p.p.canary.A\"'"));
        note(&health, &error("'Unknown Protocol Operation'"));
        assert_eq!(health.violations(), ["Publish to \"a.b\""]);
        (0..2 * VIOLATIONS_MAX)
            .for_each(|n| note_violation(&health, &format!("Permissions Violation for Publish to \"{n}\"")));
        assert_eq!(health.violations().len(), VIOLATIONS_MAX);
        note(&health, &Event::Connected);
        assert_eq!(health.violations(), Vec::<String>::new());
    }
}
