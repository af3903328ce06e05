//! Properties of the service: its settings, its addresses, its adapters to venues.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hyper::header::HOST;
use pitlane_engine::command::Scope;
use pitlane_engine::id::AdapterId;
use pitlane_protocols::rest::{AdapterVO, IdentityVO};
use pitlane_protocols::stomp::throttle::Throttle;

use super::app_state::AppState;
use super::login::Who;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::Answer;
use crate::auth::Role;
use crate::config::EventsPerSecond;

/// Returns every effective setting, by its dotted name; secrets are `***`. Rates are those in
/// force, which may have changed since the start.
pub fn params(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let mut params = house.settings.params.clone();
    let Throttle { max_rate_per_connection, min_rate_per_consumer } = house.hall.throttle();
    for (name, rate) in [
        ("broker.maxRatePerConnection", max_rate_per_connection),
        ("broker.minRatePerConsumer", min_rate_per_consumer),
    ] {
        params.insert(name.to_string(), EventsPerSecond::from_raw(rate.raw()).to_string());
    }
    Ok(Answer::json(&params))
}

/// Returns the caller's name and role, so that a client can hide what would be refused.
pub fn identity(ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let (name, role) = match ask.who {
        Who::Known(identity) => (&*identity.name, identity.role),
        Who::Anybody => ("", Role::Read),
    };
    Ok(Answer::json(&IdentityVO { name, role: role.to_string() }))
}

/// Returns the address of STOMP over TCP: with TLS for callers that use TLS, and where there is no
/// other listener.
pub fn broker_main(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let find = |name, set: Option<SocketAddr>| house.listener(name).or(set).map(|address| address.port());
    let settings = &house.settings;
    let (scheme, port) = match (find("stomp", settings.stomp), find("stomp+tls", settings.stomp_tls)) {
        (_, Some(port)) if ask.visit.tls => ("stomp+ssl", port),
        (Some(port), _) => ("stomp", port),
        (None, Some(port)) => ("stomp+ssl", port),
        (None, None) => return Err(Problem::unknown("no-listener", "STOMP over TCP is switched off")),
    };
    Ok(Answer::json(&format!("{scheme}://{}:{port}", host(house, ask))))
}

/// Returns the address of STOMP over WebSocket, which is this listener.
pub fn broker_ws(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let scheme = if ask.visit.tls { "wss" } else { "ws" };
    // The port that the client used, since there may be a proxy in between.
    let port = authority(ask).1.unwrap_or_else(|| ask.visit.local.port().to_string());
    Ok(Answer::json(&format!("{scheme}://{}:{port}/stomp", host(house, ask))))
}

/// Lists the adapters that the reference data use. The simulated venue is part of the shards and
/// always connected.
pub fn adapters(house: &AppState, ask: &RequestContext<'_>) -> Result<Answer, Problem> {
    ask.no_query()?;
    let (reference, view) = (house.floor.reference(), house.floor.view());
    let mut adapters: BTreeMap<AdapterId, AdapterVO<'_>> = BTreeMap::new();
    for exchange in reference.exchanges() {
        let id = exchange.adapter;
        let adapter = adapters.entry(id).or_insert_with(|| AdapterVO {
            id: id.0,
            name: &exchange.adapter_type,
            connected: id == AdapterId::SIM || view.adapter(id).unwrap_or(false),
            killed: view.kills().any(|scope| scope == Scope::Adapter(id) || scope == Scope::Global),
            exchanges: Vec::new(),
        });
        adapter.exchanges.push(&exchange.mic);
    }
    Ok(Answer::list(adapters.into_values()))
}

/// Returns the host by which the client reached us, unless the settings name one.
fn host(house: &AppState, ask: &RequestContext<'_>) -> String {
    match &house.settings.public_host {
        Some(host) if host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) => format!("[{host}]"),
        Some(host) => host.clone(),
        None => authority(ask).0,
    }
}

/// Returns host and port as the client wrote them; the guard has validated them.
fn authority(ask: &RequestContext<'_>) -> (String, Option<String>) {
    let text = ask.head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host.to_string(), Some(port.to_string())),
        _ => (text.to_string(), None),
    }
}
