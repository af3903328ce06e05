//! Exchanges.

use pitlane_engine::refdata::Exchange;
use pitlane_engine::time::TimeOfDay;
use serde::Serialize;
use utoipa::ToSchema;

const SECONDS_PER_DAY: u32 = 86_400;

/// A market place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeVO<'a> {
    pub id: u16,
    pub name: &'a str,
    /// ISO 10383 market identifier.
    pub mic: &'a str,
    /// IANA name of the time zone of the hours.
    pub time_zone: &'a str,
    /// `HH:MM:SS`.
    pub open: String,
    /// `HH:MM:SS`. Before `open`: on the next day. Equal to `open`: all day. The end of a day is
    /// `00:00:00`.
    pub close: String,
    /// The adapter that connects to it, `SIM` for the simulated venue.
    pub adapter_type: &'a str,
}

impl ExchangeVO<'_> {
    pub fn of(row: &Exchange) -> ExchangeVO<'_> {
        ExchangeVO {
            id: row.id.0,
            name: &row.name,
            mic: &row.mic,
            time_zone: &row.time_zone,
            open: row.open.to_string(),
            close: TimeOfDay(row.close.0 % SECONDS_PER_DAY).to_string(),
            adapter_type: &row.adapter_type,
        }
    }
}
