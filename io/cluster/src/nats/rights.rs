//! The subjects that each kind of login needs, in one place. `config/nats/pitlane.conf` grants
//! these rights and no others; a test compares the two.
//!
//! | login | account | purpose |
//! |---|---|---|
//! | server | STRATEGIES | a server and its strategies: requests, events, prices |
//! | a strategy | STRATEGIES | one process of `pitlane strategy`: its own requests, events and answers |
//! | a standby | SERVERS | the stream of a group |
//! | a member | SERVERS | messages between the servers of a cluster |
//!
//! There are two accounts because the broker replies to any subject that a client names: a strategy
//! that publishes an event between strategies with a subject of the standby as its reply subject
//! makes the broker write there. Nothing passes between accounts.
//!
//! A start checks its own rights: it publishes an empty message on each subject, marked as a probe,
//! and the broker reports those that it may not use. Canary subjects show whether the rights of
//! others go too far: see [`super::subjects::Subjects::canary`].

use std::time::Duration;

use async_nats::{Client, HeaderMap, Message};
use bytes::Bytes;
use tokio::time::sleep;

use super::generic::consumer_name;
use super::subjects::Subjects;

/// Time to wait for the broker's errors: far longer than a round trip.
const ERRORS_WAIT: Duration = Duration::from_millis(300);
/// Header of messages that only test whether they may be sent.
const PROBE: &str = "Pitlane-Probe";
/// Header with which a stream that captures the subject refuses the message.
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";

/// Subjects that a login may publish on and subscribe to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    pub publish: Vec<String>,
    pub subscribe: Vec<String>,
}

/// Returns the rights of a server, for its strategies.
pub fn server(subjects: &Subjects, strategies: &[&str]) -> Rights {
    let stream = subjects.stream();
    let api = |what: &str| format!("$JS.API.{what}.{stream}");
    let mut publish = vec![subjects.market(), subjects.phases(), subjects.generic()];
    publish.extend([api("STREAM.INFO"), api("STREAM.CREATE")]);
    let mut subscribe = vec![
        subjects.generic(),
        subjects.hellos(),
        subjects.canaries(),
        subjects.servers_canary(),
        format!("{}.>", subjects.server_inbox()),
    ];
    for strategy in strategies {
        publish.push(subjects.events(strategy));
        publish.push(format!("{}.>", subjects.inbox(strategy)));
        let consumer = consumer_name(strategy);
        publish.push(format!("{}.{consumer}", api("CONSUMER.INFO")));
        publish.push(format!("{}.{consumer}", api("CONSUMER.CREATE")));
        subscribe.push(subjects.ask(strategy));
    }
    Rights { publish, subscribe }
}

/// Returns the rights of a strategy's process.
pub fn strategy(subjects: &Subjects, strategy: &str) -> Rights {
    let (stream, consumer) = (subjects.stream(), consumer_name(strategy));
    Rights {
        publish: vec![
            subjects.ask(strategy),
            subjects.hello(strategy),
            subjects.generic(),
            format!("$JS.API.CONSUMER.INFO.{stream}.{consumer}"),
            format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"),
            format!("$JS.ACK.{stream}.{consumer}.>"),
        ],
        subscribe: vec![
            subjects.events(strategy),
            subjects.market(),
            format!("{}.>", subjects.inbox(strategy)),
        ],
    }
}

/// Returns the rights of a server of a standby group.
pub fn standby(subjects: &Subjects, group: &str) -> Rights {
    let (stream, prefix) = subjects.standby(group);
    let calls = ["STREAM.INFO", "STREAM.CREATE", "STREAM.PURGE", "STREAM.MSG.GET", "STREAM.MSG.DELETE"];
    let mut publish = vec![format!("{prefix}>"), subjects.servers_canary(), "$JS.API.INFO".to_string()];
    publish.extend(calls.map(|call| format!("$JS.API.{call}.{stream}")));
    // The client library chooses the name of the consumer that notifies of new messages.
    publish.push(format!("$JS.API.CONSUMER.*.{stream}"));
    publish.push(format!("$JS.API.CONSUMER.*.{stream}.>"));
    publish.push(format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.>"));
    Rights { publish, subscribe: vec![format!("{}.>", subjects.server_inbox())] }
}

/// Returns the rights of a cluster member; `prefix` is the prefix of the cluster's subjects.
pub fn member(subjects: &Subjects, prefix: &str, member: &str) -> Rights {
    Rights {
        publish: vec![
            format!("{prefix}call.{member}"),
            format!("{prefix}letter.*.{member}"),
            format!("{prefix}again.*.{member}"),
            subjects.servers_canary(),
        ],
        subscribe: vec![
            format!("{prefix}call.*"),
            format!("{prefix}letter.{member}.*"),
            format!("{prefix}again.{member}.*"),
            format!("{prefix}inbox.{member}.>"),
        ],
    }
}

impl Rights {
    /// Returns one subject for each right to publish that can be tested without a request to the
    /// broker itself.
    fn probes(&self) -> impl Iterator<Item = String> {
        let is_ours = |subject: &&String| !subject.starts_with('$');
        self.publish.iter().filter(is_ours).map(|subject| subject.replace(['>', '*'], "probe"))
    }

    /// Tests all rights to publish. The broker's errors about missing rights arrive before this
    /// returns, as a rule; [`super::link::BrokerHealth::violations`] lists them.
    pub async fn probe(&self, client: &Client) {
        for subject in self.probes() {
            let mut headers = HeaderMap::new();
            headers.insert(PROBE, "1");
            headers.insert(EXPECTED_STREAM, "none");
            if client.publish_with_headers(subject, headers, Bytes::new()).await.is_err() {
                return;
            }
        }
        // A flush only hands the messages to the system: the broker's errors come back a round trip
        // later, and nothing marks their end.
        let _ = client.flush().await;
        sleep(ERRORS_WAIT).await;
    }
}

/// Returns whether a message is only a probe.
pub fn is_probe(message: &Message) -> bool {
    message.payload.is_empty() && message.headers.as_ref().is_some_and(|headers| headers.get(PROBE).is_some())
}

#[cfg(test)]
mod tests {
    use pitlane_config::Config;

    use super::*;

    const FILE: &str = include_str!("../../../../config/nats/pitlane.conf");

    /// Returns the publish and subscribe lists of one user in the file.
    fn granted(user: &str) -> [Vec<String>; 2] {
        let from = FILE.find(&format!("user: {user},")).unwrap_or_else(|| panic!("no user {user}"));
        ["publish: [", "subscribe: ["].map(|keyword| {
            let rest = &FILE[from..];
            let rest = &rest[rest.find(keyword).unwrap() + keyword.len()..];
            let list = &rest[..rest.find(']').unwrap()];
            list.split('"').skip(1).step_by(2).map(str::to_string).collect()
        })
    }

    fn assert_same(user: &str, rights: Rights) {
        let sorted = |mut list: Vec<String>| {
            list.sort();
            list
        };
        let [publish, subscribe] = granted(user).map(sorted);
        assert_eq!(publish, sorted(rights.publish), "{user} publishes");
        assert_eq!(subscribe, sorted(rights.subscribe), "{user} subscribes");
    }

    #[test]
    fn the_shipped_file_gives_each_login_what_it_needs_and_nothing_else() {
        let config = Config::default();
        let subjects = Subjects::of(&config.nats, &config.service);
        let strategies = ["MARKET_MAKER", "MOMENTUM"];
        assert_same("server", server(&subjects, &strategies));
        assert_same("market-maker", strategy(&subjects, "MARKET_MAKER"));
        assert_same("momentum", strategy(&subjects, "MOMENTUM"));
        for user in ["standby-a", "standby-b"] {
            assert_same(user, standby(&subjects, "pair"));
        }
        for name in ["zurich", "geneva"] {
            assert_same(&format!("member-{name}"), member(&subjects, "pitlane.desk.", name));
        }
    }

    #[test]
    fn a_strategy_cannot_publish_on_subjects_of_servers_or_of_other_strategies() {
        let config = Config::default();
        let subjects = Subjects::of(&config.nats, &config.service);
        let own = strategy(&subjects, "A");
        let others = [server(&subjects, &["A", "B"]), standby(&subjects, "pair"), strategy(&subjects, "B")];
        for right in own.publish.iter().filter(|right| **right != subjects.generic()) {
            assert!(
                !others.iter().any(|other| other.publish.contains(right) && !right.contains("CONSUMER.INFO")),
                "{right}"
            );
            assert!(!right.contains("CREATE") && !right.contains("STREAM."), "{right}");
        }
    }
}
