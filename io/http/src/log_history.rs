//! The last warnings and errors, so that a page that was just opened shows them. The written log
//! has all of them.

use std::collections::VecDeque;
use std::sync::Arc;

use pitlane_protocols::rest::{LogEventVO, Moment};
use pitlane_runtime::log::{LogEvent, Severity};

use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;

/// Log events that are kept: some hundred bytes each, and 2 MB if all of them are as long as they
/// can be.
const LOG_EVENTS_MAX: usize = 1_000;

/// A ring of log events, newest last.
#[derive(Debug, Default)]
pub(crate) struct LogHistory(VecDeque<Arc<LogEvent>>);

impl LogHistory {
    pub(crate) fn push(&mut self, event: Arc<LogEvent>) {
        self.0.push_back(event);
        if self.0.len() > LOG_EVENTS_MAX {
            self.0.pop_front();
        }
    }

    /// Returns the events, the newest first.
    fn newest_first(&self) -> impl Iterator<Item = &LogEvent> {
        self.0.iter().rev().map(|event| &**event)
    }
}

/// Lists the last log events, the newest first.
pub(crate) fn show(history: &LogHistory, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let limit = ctx.limit(&["limit"])?;
    Ok(HttpResponse::list(history.newest_first().take(limit).map(log_event_vo)))
}

fn log_event_vo(event: &LogEvent) -> LogEventVO<'_> {
    LogEventVO {
        date_time: Moment(event.time),
        ts: event.time.0.to_string(),
        level: match event.level {
            Severity::Warn => "WARN",
            Severity::Error => "ERROR",
        },
        logger: &event.target,
        message: &event.message,
        fields: event.fields.iter().map(|(name, text)| (*name, text.as_str())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::time::Timestamp;

    use super::*;

    #[test]
    fn the_last_events_are_kept_and_the_newest_comes_first() {
        let mut history = LogHistory::default();
        for time in 0..LOG_EVENTS_MAX as u64 + 5 {
            let (target, message) = ("engine".to_string(), "full".to_string());
            let event = LogEvent {
                time: Timestamp(time),
                level: Severity::Warn,
                target,
                message,
                fields: Vec::new(),
            };
            history.push(Arc::new(event));
        }
        let times: Vec<u64> = history.newest_first().map(|event| event.time.0).collect();
        assert_eq!((times.len(), times[0]), (LOG_EVENTS_MAX, LOG_EVENTS_MAX as u64 + 4));
        assert_eq!(times.last(), Some(&5));
    }
}
