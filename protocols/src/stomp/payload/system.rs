//! Subscriptions, external sessions, life cycles, log events and generic events.

use pitlane_engine::command::StrategyPhase;
use pitlane_engine::id::{SecurityId, StrategyId};
use pitlane_engine::refdata::RefData;

use super::{EventStamp, begin};
use crate::codes::WireName;
use crate::json::Object;

/// State of an external session: an adapter or a FIX client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExternalSessionState {
    Disconnected,
    Connected,
    LoggedOn,
    Subscribed,
}

impl ExternalSessionState {
    pub fn wire_name(self) -> &'static str {
        match self {
            ExternalSessionState::Disconnected => "DISCONNECTED",
            ExternalSessionState::Connected => "CONNECTED",
            ExternalSessionState::LoggedOn => "LOGGED_ON",
            ExternalSessionState::Subscribed => "SUBSCRIBED",
        }
    }
}

/// Severity of a log event; lower ones have no topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Warn,
    Error,
}

impl LogLevel {
    pub fn wire_name(self) -> &'static str {
        match self {
            LogLevel::Warn => "WARN",
            LogLevel::Error => "ERROR",
        }
    }

    /// Returns the segment in the topic.
    pub fn segment(self) -> &'static str {
        match self {
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEventPayload<'a> {
    pub level: LogLevel,
    pub logger: &'a str,
    pub message: &'a str,
    pub fields: &'a [(&'a str, &'a str)],
}

pub fn subscription(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    (strategy, security): (StrategyId, SecurityId),
    on: bool,
    subscribers: u32,
    reference: &RefData,
) {
    let mut object = begin(out, "SUBSCRIPTION", stamp);
    object.number("strategyId", strategy.0.into());
    if let Some(row) = reference.strategy(strategy) {
        object.text("strategyName", &row.name);
    }
    object.number("securityId", security.0.into());
    if let Some(row) = reference.security(security) {
        object.text("symbol", &row.symbol);
    }
    object.flag("subscribe", on);
    object.number("subscribers", subscribers.into());
    object.end();
}

pub fn session(out: &mut Vec<u8>, stamp: EventStamp, name: &str, link: ExternalSessionState) {
    let mut object = begin(out, "SESSION", stamp);
    object.text("name", name);
    object.text("state", link.wire_name());
    object.end();
}

/// Writes a life cycle event, with the reason of a failure.
pub fn lifecycle(
    out: &mut Vec<u8>,
    stamp: EventStamp,
    strategy: StrategyId,
    name: &str,
    phase: StrategyPhase,
    reason: Option<&str>,
) {
    let mut object = begin(out, "LIFECYCLE", stamp);
    object.number("strategyId", strategy.0.into());
    object.text("strategyName", name);
    object.text("phase", phase.wire_name());
    if let Some(reason) = reason {
        object.text("reason", reason);
    }
    object.end();
}

pub fn log_event(out: &mut Vec<u8>, stamp: EventStamp, event: &LogEventPayload<'_>) {
    let mut object = begin(out, "LOG_EVENT", stamp);
    object.text("level", event.level.wire_name());
    object.text("logger", event.logger);
    object.text("message", event.message);
    let mut fields = Object::new(object.value("fields"));
    for (name, value) in event.fields {
        fields.text_named(name, value);
    }
    fields.end();
    object.end();
}

/// Writes a generic event. `data` is JSON, which was checked on receipt.
pub fn generic_event(out: &mut Vec<u8>, stamp: EventStamp, name: &str, data: &[u8]) {
    let mut object = begin(out, "GENERIC_EVENT", stamp);
    object.text("name", name);
    object.json("data", data);
    object.end();
}
