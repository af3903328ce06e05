//! Lists FIX, STOMP and WebSocket sessions, ends and resets them, and sets the market data rates of
//! WebSocket clients.

use pitlane_gateway::notifications::SessionInfo;
use pitlane_protocols::rest::{self, Decimal, Moment, RatesVO, SessionVO, VenueLimitVO};
use pitlane_protocols::stomp::throttle::{EventRate, Throttle};

use super::body::RequestBody;
use super::notification_hub::THREAD_NAME;
use super::notifications::Notifications;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::trading::Trading;

/// Lists all sessions, as of the last second.
pub(crate) fn all(notifications: &Notifications, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let mut sessions = Vec::new();
    notifications.hub.for_each_session(|thread, session| sessions.push(session_vo(thread, session)));
    notifications.ws_broker.for_each_session(|session| sessions.push(session_vo(THREAD_NAME, &session)));
    Ok(HttpResponse::list(sessions.into_iter()))
}

/// Disconnects a client, with a reason where its protocol has one.
pub(crate) async fn end(
    notifications: &Notifications,
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    body.read_nothing().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    let id = ctx.name()?;
    let is_found = notifications.hub.kick(|thread, session| id_of(thread, session) == id)
        || notifications.ws_broker.kick(|session| id_of(THREAD_NAME, session) == id);
    if is_found {
        return Ok(HttpResponse::empty());
    }
    Err(Problem::unknown("unknown-session", "there is no session of this id"))
}

/// Resets both sequence numbers of a FIX session to one. A client that is logged on is logged out.
pub(crate) async fn reset(
    notifications: &Notifications,
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    body.read_nothing().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    let id = ctx.name()?;
    if notifications.hub.reset(|thread, session| id_of(thread, session) == id) {
        return Ok(HttpResponse::empty());
    }
    Err(Problem::unknown("unknown-session", "there is no FIX session of this id"))
}

pub(crate) fn rates(
    notifications: &Notifications,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let Throttle { max_rate_per_connection, min_rate_per_consumer } = notifications.ws_broker.throttle();
    let rate = |rate: EventRate| Some(Decimal { raw: rate.raw() });
    Ok(HttpResponse::json(&RatesVO {
        max_rate_per_connection: rate(max_rate_per_connection),
        min_rate_per_consumer: rate(min_rate_per_consumer),
    }))
}

/// Changes the rates of every connection immediately. They hold until the next start, which takes
/// them from the settings again.
pub(crate) async fn change_rates(
    notifications: &Notifications,
    trading: &Trading,
    ctx: &RequestContext<'_>,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let bytes = body.read().await?;
    ctx.scope(&trading.shard_client.reference()).authorize_all()?;
    let wanted: RatesVO = rest::read(&bytes).map_err(Problem::bad_body)?;
    let old = notifications.ws_broker.throttle();
    let rate = |wanted: Option<Decimal>, old| wanted.map_or(old, |decimal| EventRate::from_raw(decimal.raw));
    notifications.ws_broker.set_throttle(Throttle {
        max_rate_per_connection: rate(wanted.max_rate_per_connection, old.max_rate_per_connection),
        min_rate_per_consumer: rate(wanted.min_rate_per_consumer, old.min_rate_per_consumer),
    });
    Ok(HttpResponse::empty())
}

fn id_of(thread: &str, session: &SessionInfo) -> String {
    format!("{}-{thread}-{}", session.kind.prefix(), session.number)
}

fn session_vo(thread: &str, session: &SessionInfo) -> SessionVO {
    let health = session.health.as_deref();
    SessionVO {
        id: id_of(thread, session),
        kind: session.kind.name(),
        name: session.name.as_deref().map(str::to_string),
        peer: session.peer.map(|peer| peer.to_string()),
        since: Moment(session.since),
        state: session.state,
        bytes_in: session.bytes_in,
        bytes_out: session.bytes_out,
        messages_in: session.messages_in,
        messages_out: session.messages_out,
        queue_bytes: session.queue_bytes,
        conflated: session.stomp.map(|stomp| stomp.conflated),
        slots: session.stomp.map(|stomp| stomp.slots),
        backlog: session.stomp.map(|stomp| stomp.backlog),
        backlog_bytes: session.stomp.map(|stomp| stomp.backlog_bytes),
        subscriptions: session.stomp.map(|stomp| stomp.subscriptions),
        next_in: session.next_in,
        next_out: session.next_out,
        round_trip_us: health.and_then(|health| health.round_trip_us),
        clock_offset_us: health.and_then(|health| health.clock_offset_us),
        last_error: health.and_then(|health| health.last_error.as_deref()).map(str::to_string),
        limits: health
            .map(|health| health.limits.iter().map(VenueLimitVO::from).collect::<Vec<_>>())
            .filter(|limits| !limits.is_empty()),
    }
}
