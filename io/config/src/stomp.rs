//! Publication of events: `[stomp]` and `[broker]`.

use std::net::SocketAddr;

use pitlane_protocols::stomp::topic::{Naming, NamingError};

use super::section::Section;
use super::words::EventsPerSecond;
use crate::role::Role;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StompConfig {
    pub listen: Option<SocketAddr>,
    pub tls_listen: Option<SocketAddr>,
    pub connect_timeout_ms: u32,
    pub header_line_bytes_max: usize,
    pub headers_max: usize,
    pub head_bytes_max: usize,
    pub body_bytes_max: usize,
    pub subscriptions_max: u16,
    pub unacknowledged_max: u32,
    pub out_buffer_bytes: usize,
    pub conflated_keys_max: u32,
    pub conflated_bytes_max: usize,
    pub queue_events_max: u32,
    pub queue_bytes_max: usize,
    /// Bytes for all readers of one thread together.
    pub total_bytes_max: usize,
    pub stuck_timeout_ms: u32,
    pub generic_event_role: Role,
}

impl StompConfig {
    pub(super) fn read(section: &mut Section<'_>) -> StompConfig {
        StompConfig {
            listen: section.address("listen"),
            tls_listen: section.address("tls_listen"),
            connect_timeout_ms: section.number("connect_timeout_ms", 100..=600_000),
            header_line_bytes_max: section.number("header_line_bytes_max", 256..=1 << 20),
            headers_max: section.number("headers_max", 8..=1_024),
            head_bytes_max: section.number("head_bytes_max", 1_024..=1 << 20),
            body_bytes_max: section.number("body_bytes_max", 0..=16 << 20),
            subscriptions_max: section.number("subscriptions_max", 1..=65_535),
            unacknowledged_max: section.number("unacknowledged_max", 1..=1_000_000),
            out_buffer_bytes: section.number("out_buffer_bytes", 4_096..=1 << 30),
            conflated_keys_max: section.number("conflated_keys_max", 1..=1 << 20),
            conflated_bytes_max: section.number("conflated_bytes_max", 65_536..=1 << 30),
            queue_events_max: section.number("queue_events_max", 1..=10_000_000),
            queue_bytes_max: section.number("queue_bytes_max", 65_536..=1 << 30),
            total_bytes_max: section.number("total_bytes_max", 1 << 20..=1 << 40),
            stuck_timeout_ms: section.number("stuck_timeout_ms", 100..=600_000),
            generic_event_role: section.word("generic_event_role", &Role::CLIENT_WORDS),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerConfig {
    /// Over one WebSocket connection.
    pub max_rate_per_connection: EventsPerSecond,
    /// Of one instrument; below this rate nothing is throttled.
    pub min_rate_per_consumer: EventsPerSecond,
    pub order_topic_prefix: String,
    pub order_topic_aliases: Vec<String>,
}

impl BrokerConfig {
    /// Returns the names of order topics.
    pub fn naming(&self) -> Result<Naming, NamingError> {
        let aliases: Vec<&str> = self.order_topic_aliases.iter().map(String::as_str).collect();
        Naming::new(&self.order_topic_prefix, &aliases)
    }

    pub(super) fn read(section: &mut Section<'_>) -> BrokerConfig {
        BrokerConfig {
            max_rate_per_connection: section.rate("maxRatePerConnection"),
            min_rate_per_consumer: section.rate("minRatePerConsumer"),
            order_topic_prefix: section
                .text_as("orderTopicPrefix", parse_segment, String::clone)
                .unwrap_or_default(),
            order_topic_aliases: section.items(
                "orderTopicAliases",
                |value| {
                    let super::tree::ConfigValue::Text(text) = value else {
                        return Err(format!("it must be a list of texts, not of {}", value.kind()));
                    };
                    parse_segment(text)
                },
                String::clone,
            ),
        }
    }
}

/// Parses one segment of a topic's name.
fn parse_segment(text: &str) -> Result<String, String> {
    let plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b".*>/%".contains(&byte));
    if plain && (1..=64).contains(&text.len()) {
        return Ok(text.to_string());
    }
    Err(format!("it must be 1 to 64 characters without . * > / and %, not {text:?}"))
}
