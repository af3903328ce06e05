//! What every thread of the service needs: clock, wake-ups, idle waiting, start and stop, log,
//! metrics, latency recording, and injected faults.

pub mod clock;
pub mod fault_injection;
pub mod idle;
pub mod latency_buckets;
pub mod lifecycle;
pub mod log;
pub mod mailbox;
pub mod metrics;
pub mod service_manager;
pub mod stages;
pub mod sync;
pub mod thread_class;
pub mod thread_wakeup;
pub mod wakeup;
pub mod wakeups;
