//! Events between strategies: any name, any JSON. The name and the sender are in headers, so that
//! the body is exactly what was published, readable for any client of the broker.
//!
//! A stream keeps them. Each strategy has a consumer of its name that remembers what it has
//! acknowledged, across restarts of the strategy and of the broker. A sender that does not know
//! whether an event was stored sends it again under the same id, and the stream stores it once.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{Config as StreamConfig, DiscardPolicy, StorageType};
use async_nats::jetstream::{self, Context};
use async_nats::{Client, HeaderMap, Message};
use bytes::Bytes;
use pitlane_config::RemoteStrategiesConfig;
use pitlane_protocols::json;

use super::subjects::{Subjects, segment};

const NAME: &str = "Pitlane-Event";
const FROM: &str = "Pitlane-From";
/// Time for which the stream recognises an id: longer than any sender retries.
const DUPLICATE_WINDOW: Duration = Duration::from_secs(120);
/// Timeout of an answer of JetStream.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Maximum number of deliveries to a strategy that may crash on the event; then it is skipped.
const DELIVERIES_MAX: i64 = 5;

/// Longest accepted name in bytes, longer than is readable.
const NAME_BYTES_MAX: usize = 256;
/// Longest accepted body in bytes: the usual message limit of a broker.
const BODY_BYTES_MAX: usize = 1 << 20;

/// An event between strategies. Any client of the broker can publish anything; a message that does
/// not meet the rules for clients of the server is not an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generic {
    pub name: String,
    pub body: Bytes,
    /// Sender as the message states it: a strategy, or the server for its clients.
    pub from: String,
}

impl Generic {
    /// Creates an event; returns `None` unless both names are short and without control characters,
    /// and the body is JSON.
    pub fn new(name: &str, body: Bytes, from: &str) -> Option<Generic> {
        let is_name =
            |name: &str| !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(char::is_control);
        let is_valid = is_name(name) && is_name(from) && body.len() <= BODY_BYTES_MAX && json::is_json(&body);
        is_valid.then(|| Generic { name: name.to_string(), body, from: from.to_string() })
    }

    /// Decodes a message; returns `None` if it is not an event.
    pub fn of(message: &Message) -> Option<Generic> {
        let headers = message.headers.as_ref()?;
        let text = |name| headers.get(name).map(|value| value.as_str());
        Generic::new(text(NAME)?, message.payload.clone(), text(FROM)?)
    }

    /// Publishes the event, and waits until it is stored. `id` is the same for every attempt.
    pub async fn publish(&self, context: &Context, subjects: &Subjects, id: &str) -> Result<(), String> {
        let mut headers = HeaderMap::new();
        headers.insert(NAME, self.name.as_str());
        headers.insert(FROM, self.from.as_str());
        let message = PublishMessage::build().headers(headers).message_id(id).payload(self.body.clone());
        let stored =
            context.send_publish(subjects.generic(), message).await.map_err(|error| error.to_string())?;
        stored.await.map_err(|error| error.to_string())?;
        Ok(())
    }
}

pub fn context(client: &Client) -> Context {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(ANSWER_MAX);
    context
}

/// Ensures that the stream exists.
pub async fn ensure_stream(
    context: &Context,
    subjects: &Subjects,
    settings: &RemoteStrategiesConfig,
) -> Result<(), String> {
    let stream = StreamConfig {
        name: subjects.stream(),
        subjects: vec![subjects.generic()],
        storage: StorageType::File,
        discard: DiscardPolicy::Old,
        max_age: Duration::from_secs(settings.generic_keep_s),
        max_messages: i64::try_from(settings.generic_max).unwrap_or(i64::MAX),
        duplicate_window: DUPLICATE_WINDOW.min(Duration::from_secs(settings.generic_keep_s)),
        ..StreamConfig::default()
    };
    context.get_or_create_stream(stream).await.map_err(|error| error.to_string())?;
    Ok(())
}

/// Ensures that a strategy has a consumer, which starts with new messages. The server creates it: a
/// client that may create consumers can make the broker deliver messages to any subject.
pub async fn ensure_consumer(context: &Context, subjects: &Subjects, strategy: &str) -> Result<(), String> {
    let stream = context.get_stream(subjects.stream()).await.map_err(|error| error.to_string())?;
    let name = consumer_name(strategy);
    let config = pull::Config {
        durable_name: Some(name.clone()),
        deliver_policy: DeliverPolicy::New,
        ack_policy: AckPolicy::Explicit,
        ack_wait: Duration::from_secs(5),
        max_deliver: DELIVERIES_MAX,
        ..pull::Config::default()
    };
    stream.get_or_create_consumer(&name, config).await.map_err(|error| error.to_string())?;
    Ok(())
}

/// Returns the consumer of a strategy; fails if the server has not created it.
pub async fn consumer(
    context: &Context,
    subjects: &Subjects,
    strategy: &str,
) -> Result<PullConsumer, String> {
    let found = context.get_consumer_from_stream(consumer_name(strategy), subjects.stream()).await;
    found.map_err(|error| error.to_string())
}

pub fn consumer_name(strategy: &str) -> String {
    segment(strategy).replace('%', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_no_client_could_publish_is_not_an_event() {
        let made = |name: &str, body: &str| Generic::new(name, Bytes::copy_from_slice(body.as_bytes()), "A");
        assert!(made("signal.x", "{\"a\":1}").is_some());
        assert!(made(&"n".repeat(NAME_BYTES_MAX), "1").is_some());
        let string = |len: usize| format!("\"{}\"", "x".repeat(len - 2));
        assert!(made("a", &string(BODY_BYTES_MAX)).is_some());
        let longer = string(BODY_BYTES_MAX + 1);
        let bad =
            [("", "1"), ("a\nb", "1"), ("a\r", "1"), ("a", ""), ("a", "{"), ("a", "1 2"), ("a", &longer)];
        for (name, body) in bad {
            assert_eq!(made(name, body), None, "{name:?}");
        }
        assert_eq!(made(&"n".repeat(NAME_BYTES_MAX + 1), "1"), None);
        assert_eq!(Generic::new("a", Bytes::from_static(b"1"), "A\r\nB: c"), None);
    }
}
