//! Shared by the brokers of all threads: their settings, and the access rights that a login gives.

mod broker_host;
mod logins;
mod subscriptions;

use pitlane_config::{BrokerConfig, Config, StompConfig};
use pitlane_engine::time::NS_PER_MS;
use pitlane_protocols::stomp::access::{StompAccess, StrategyAccess};
use pitlane_protocols::stomp::decode::FrameLimits;
use pitlane_protocols::stomp::settings::{BrokerSettings, StompLimits};
use pitlane_protocols::stomp::slots::SLOT_BYTES_MAX;
use pitlane_protocols::stomp::throttle::{EventRate, Throttle};

pub use self::broker_host::BrokerHost;
pub use self::logins::{Logins, access};
pub(crate) use self::subscriptions::{MarketWatch, Subscriptions};

/// Returns the broker settings of this config.
pub fn settings(config: &Config) -> BrokerSettings {
    let Config { stomp, broker, service, net, .. } = config;
    BrokerSettings {
        instance: service.instance,
        // Names that cannot be topics are rejected with the config.
        naming: broker.naming().unwrap_or_default(),
        throttle: throttle(broker),
        // Where a login is required, anonymous clients have no access.
        anonymous_access: (!config.login_required())
            .then_some(StompAccess { strategies: StrategyAccess::All, may_send: true }),
        sessions_max: net.connections_max,
        limits: limits(stomp),
        ..BrokerSettings::default()
    }
}

pub fn throttle(broker: &BrokerConfig) -> Throttle {
    Throttle {
        max_rate_per_connection: EventRate::from_raw(broker.max_rate_per_connection.raw()),
        min_rate_per_consumer: EventRate::from_raw(broker.min_rate_per_consumer.raw()),
    }
}

fn limits(stomp: &StompConfig) -> StompLimits {
    let ns = |ms: u32| u64::from(ms) * NS_PER_MS;
    StompLimits {
        frame: FrameLimits {
            line_bytes_max: stomp.header_line_bytes_max,
            headers_max: stomp.headers_max,
            head_bytes_max: stomp.head_bytes_max,
            body_bytes_max: stomp.body_bytes_max,
        },
        connect_ns_max: ns(stomp.connect_timeout_ms),
        stuck_ns_max: ns(stomp.stuck_timeout_ms),
        subscriptions_max: stomp.subscriptions_max,
        window_max: stomp.unacknowledged_max,
        mark_bytes: stomp.out_buffer_bytes,
        // A queue entry is a topic, not its message, so a limit in bytes is a limit on the number
        // of entries.
        slots_max: (stomp.conflated_keys_max as usize).min(stomp.conflated_bytes_max / SLOT_BYTES_MAX),
        backlog_bytes_max: stomp.queue_bytes_max,
        backlog_max: stomp.queue_events_max as usize,
        total_bytes_max: stomp.total_bytes_max,
        ..StompLimits::default()
    }
}
