//! Checks whether the configured logins have the rights they need at the broker, and whether others
//! have too many: for `pitlane doctor`.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use futures_util::{FutureExt, StreamExt};
use pitlane_config::{Config, NatsConfig, StrategyTransport};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::Warning;
use super::link::{self, BrokerHealth};
use super::rights::{self, Rights};
use super::subjects::{Subjects, segment};

/// Time limit for all checks together.
const ANSWER_MAX: Duration = Duration::from_secs(3);
const FILE: &str = "give the logins the rights of config/nats/pitlane.conf";

/// A configured login, and its purpose.
struct Login {
    purpose: &'static str,
    nats: NatsConfig,
    inbox: String,
    rights: Rights,
}

/// Returns whether these settings use a broker.
pub fn is_used(config: &Config) -> bool {
    config.has_remote_strategies(StrategyTransport::Nats)
        || config.cluster.is_on()
        || config.standby.group.is_some()
}

fn logins(config: &Config) -> Vec<Login> {
    let subjects = Subjects::of(&config.nats, &config.service);
    let mut logins = Vec::new();
    if config.has_remote_strategies(StrategyTransport::Nats) {
        let strategies: Vec<&str> = config.strategies.iter().map(|strategy| strategy.name.as_str()).collect();
        let (nats, inbox) = (config.nats.clone(), subjects.server_inbox());
        logins.push(Login {
            purpose: STRATEGIES,
            nats,
            inbox,
            rights: rights::server(&subjects, &strategies),
        });
    }
    let nats = config.nats.between_servers();
    if let Some(group) = &config.standby.group {
        let (nats, inbox) = (nats.clone(), subjects.server_inbox());
        logins.push(Login { purpose: "the standby", nats, inbox, rights: rights::standby(&subjects, group) });
    }
    if config.cluster.is_on() {
        let prefix = format!("{}.{}.", config.nats.prefix, config.cluster.name);
        let member = segment(&config.cluster.member);
        let inbox = format!("{prefix}inbox.{member}");
        logins.push(Login {
            purpose: "the cluster",
            nats,
            inbox,
            rights: rights::member(&subjects, &prefix, &member),
        });
    }
    logins
}

const STRATEGIES: &str = "strategies";

/// Queries the broker. It creates nothing there, and nothing that it sends is stored.
pub fn probe(config: &Config) -> Result<Vec<Warning>, String> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let checked = timeout(ANSWER_MAX, check_logins(config)).await;
        checked.unwrap_or_else(|_| Err("it does not answer, or refuses a login".to_string()))
    })
}

async fn check_logins(config: &Config) -> Result<Vec<Warning>, String> {
    let subjects = Subjects::of(&config.nats, &config.service);
    let mut warnings = Vec::new();
    let mut strategies = None;
    for login in logins(config) {
        let opened = link::open(&login.nats, "pitlane doctor", login.inbox.clone()).await;
        let (client, broker_health) = opened.map_err(|error| error.to_string())?;
        if login.purpose == STRATEGIES {
            let canary =
                client.subscribe(subjects.servers_canary()).await.map_err(|error| error.to_string())?;
            client.flush().await.map_err(|error| error.to_string())?;
            strategies = Some((client.clone(), canary));
        }
        warnings.extend(check(&login, &client, &broker_health).await?);
    }
    // A message from a connection between servers reaches the strategies' connection only within
    // one account.
    if let Some((client, mut canary)) = strategies {
        client.flush().await.map_err(|error| error.to_string())?;
        if canary.next().now_or_never().flatten().is_some() {
            let found = "servers and strategies share an account: a strategy can have the broker write on subjects of the servers";
            let remedy =
                "set nats.peer_user to a login of another account, as config/nats/pitlane.conf has it";
            warnings.push(Warning { found: found.to_string(), remedy: remedy.to_string() });
        }
    }
    Ok(warnings)
}

async fn check(
    login: &Login,
    client: &Client,
    broker_health: &Arc<BrokerHealth>,
) -> Result<Vec<Warning>, String> {
    // Waits for the connection.
    client.flush().await.map_err(|error| error.to_string())?;
    for subject in &login.rights.subscribe {
        let _ = client.subscribe(subject.clone()).await;
    }
    login.rights.probe(client).await;
    let warn = |found: String| Warning { found, remedy: FILE.to_string() };
    let missing = broker_health.violations().into_iter();
    let mut warnings: Vec<Warning> =
        missing.map(|right| warn(format!("the login for {} may not: {right}", login.purpose))).collect();
    if !client.server_info().auth_required {
        warnings.push(warn(format!(
            "the broker requires no login, and the connection for {} uses it",
            login.purpose
        )));
    }
    Ok(warnings)
}
