//! Warnings and errors of the service.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::Moment;

/// A warning or an error, as in the topics `log-event.warn` and `log-event.error`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEventVO<'a> {
    pub date_time: Moment,
    /// Nanoseconds since the epoch, as text: the `ts` of the message of the topic.
    pub ts: String,
    /// WARN or ERROR.
    pub level: &'static str,
    pub logger: &'a str,
    pub message: &'a str,
    pub fields: BTreeMap<&'a str, &'a str>,
}
