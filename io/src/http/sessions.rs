//! Lists FIX, STOMP and WebSocket sessions, ends and resets them, and sets the market data rates of
//! WebSocket clients.

use pitlane_protocols::rest::{self, Decimal, Moment, RatesVO, SessionVO};
use pitlane_protocols::stomp::throttle::{EventRate, Throttle};

use super::app_state::AppState;
use super::body::{self, Input};
use super::notification_hub::HERE;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;
use crate::notifications::SessionInfo;

/// Lists all sessions, as of the last second.
pub fn all(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let mut sessions = Vec::new();
    house.switchboard.each(|thread, row| sessions.push(shown(thread, row)));
    house.hall.each(|row| sessions.push(shown(HERE, &row)));
    Ok(Answer::list(sessions.into_iter()))
}

/// Disconnects a client, with a reason where its protocol has one.
pub async fn end(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    ask.no_query()?;
    body::read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    let id = ask.name()?;
    let is_found = house.switchboard.kick(|thread, row| id_of(thread, row) == id)
        || house.hall.kick(|row| id_of(HERE, row) == id);
    if is_found {
        return Ok(Answer::empty());
    }
    Err(Problem::unknown("unknown-session", "there is no session of this id"))
}

/// Resets both sequence numbers of a FIX session to one. A client that is logged on is logged out.
pub async fn reset(house: &AppState, ask: &RequestContext<'_>, body: Input) -> Result<Answer, Problem> {
    ask.no_query()?;
    body::read_nothing(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    let id = ask.name()?;
    if house.switchboard.reset(|thread, row| id_of(thread, row) == id) {
        return Ok(Answer::empty());
    }
    Err(Problem::unknown("unknown-session", "there is no FIX session of this id"))
}

pub fn rates(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let Throttle { max_rate_per_connection, min_rate_per_consumer } = house.hall.throttle();
    let rate = |rate: EventRate| Some(Decimal { raw: rate.raw() });
    Ok(Answer::json(&RatesVO {
        max_rate_per_connection: rate(max_rate_per_connection),
        min_rate_per_consumer: rate(min_rate_per_consumer),
    }))
}

/// Changes the rates of every connection immediately. They hold until the next start, which takes
/// them from the settings again.
pub async fn change_rates(
    house: &AppState,
    ask: &RequestContext<'_>,
    body: Input,
) -> Result<Answer, Problem> {
    ask.no_query()?;
    let bytes = body::read(house, body).await?;
    ask.sight(&house.floor.reference()).touch_all()?;
    let wanted: RatesVO = rest::read(&bytes).map_err(Problem::bad_body)?;
    let old = house.hall.throttle();
    let rate = |wanted: Option<Decimal>, old| wanted.map_or(old, |decimal| EventRate::from_raw(decimal.raw));
    house.hall.set_throttle(Throttle {
        max_rate_per_connection: rate(wanted.max_rate_per_connection, old.max_rate_per_connection),
        min_rate_per_consumer: rate(wanted.min_rate_per_consumer, old.min_rate_per_consumer),
    });
    Ok(Answer::empty())
}

fn id_of(thread: &str, row: &SessionInfo) -> String {
    format!("{}-{thread}-{}", row.kind.prefix(), row.number)
}

fn shown(thread: &str, row: &SessionInfo) -> SessionVO {
    SessionVO {
        id: id_of(thread, row),
        kind: row.kind.word(),
        name: row.name.as_deref().map(str::to_string),
        peer: row.peer.map(|peer| peer.to_string()),
        since: Moment(row.since),
        state: row.state,
        bytes_in: row.bytes_in,
        bytes_out: row.bytes_out,
        messages_in: row.messages_in,
        messages_out: row.messages_out,
        queue_bytes: row.queue_bytes,
        conflated: row.stomp.map(|stomp| stomp.conflated),
        slots: row.stomp.map(|stomp| stomp.slots),
        backlog: row.stomp.map(|stomp| stomp.backlog),
        backlog_bytes: row.stomp.map(|stomp| stomp.backlog_bytes),
        subscriptions: row.stomp.map(|stomp| stomp.subscriptions),
        next_in: row.next_in,
        next_out: row.next_out,
    }
}
