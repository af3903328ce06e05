//! Properties of the service: its settings, its addresses, its adapters to venues.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hyper::header::HOST;
use pitlane_auth::Role;
use pitlane_config::EventsPerSecond;
use pitlane_engine::command::Scope;
use pitlane_engine::id::AdapterId;
use pitlane_protocols::rest::{AdapterVO, IdentityVO};
use pitlane_protocols::stomp::throttle::Throttle;

use super::caller::RequestCaller;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::HttpResponse;
use super::settings::HttpSettings;
use super::shard_client::ShardClient;
use super::status::ServiceStatus;
use super::websocket_broker::WebSocketBroker;

/// Returns every effective setting, by its dotted name; secrets are `***`. Rates are those in
/// force, which may have changed since the start.
pub(crate) fn params(
    settings: &HttpSettings,
    ws_broker: &WebSocketBroker,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let mut params = settings.params.clone();
    let Throttle { max_rate_per_connection, min_rate_per_consumer } = ws_broker.throttle();
    for (name, rate) in [
        ("broker.maxRatePerConnection", max_rate_per_connection),
        ("broker.minRatePerConsumer", min_rate_per_consumer),
    ] {
        params.insert(name.to_string(), EventsPerSecond::from_raw(rate.raw()).to_string());
    }
    Ok(HttpResponse::json(&params))
}

/// Returns the caller's name and role, so that a client can hide what would be refused.
pub(crate) fn identity(ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (name, role) = match ctx.caller {
        RequestCaller::Known(identity) => (&*identity.name, identity.role),
        RequestCaller::Anonymous => ("", Role::Read),
    };
    Ok(HttpResponse::json(&IdentityVO { name, role: role.to_string() }))
}

/// Returns the address of STOMP over TCP: with TLS for callers that use TLS, and where there is no
/// other listener.
pub(crate) fn broker_main(
    settings: &HttpSettings,
    service_status: &ServiceStatus,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let find =
        |name, set: Option<SocketAddr>| service_status.listener(name).or(set).map(|address| address.port());
    let (scheme, port) = match (find("stomp", settings.stomp), find("stomp+tls", settings.stomp_tls)) {
        (_, Some(port)) if ctx.connection.tls => ("stomp+ssl", port),
        (Some(port), _) => ("stomp", port),
        (None, Some(port)) => ("stomp+ssl", port),
        (None, None) => return Err(Problem::unknown("no-listener", "STOMP over TCP is switched off")),
    };
    Ok(HttpResponse::json(&format!("{scheme}://{}:{port}", host(settings, ctx))))
}

/// Returns the address of STOMP over WebSocket, which is this listener.
pub(crate) fn broker_ws(settings: &HttpSettings, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let scheme = if ctx.connection.tls { "wss" } else { "ws" };
    // The port that the client used, since there may be a proxy in between.
    let port = authority(ctx).1.unwrap_or_else(|| ctx.connection.local.port().to_string());
    Ok(HttpResponse::json(&format!("{scheme}://{}:{port}/stomp", host(settings, ctx))))
}

/// Lists the adapters that the reference data use. The simulated venue is part of the shards and
/// always connected.
pub(crate) fn adapters(
    shard_client: &ShardClient,
    ctx: &RequestContext<'_>,
) -> Result<HttpResponse, Problem> {
    ctx.no_query()?;
    let (reference, view) = (shard_client.reference(), shard_client.view());
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
    Ok(HttpResponse::list(adapters.into_values()))
}

/// Returns the host by which the client reached us, unless the settings name one.
fn host(settings: &HttpSettings, ctx: &RequestContext<'_>) -> String {
    match &settings.public_host {
        Some(host) if host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) => format!("[{host}]"),
        Some(host) => host.clone(),
        None => authority(ctx).0,
    }
}

/// Returns host and port as the client wrote them; the guard has validated them.
fn authority(ctx: &RequestContext<'_>) -> (String, Option<String>) {
    let text = ctx.head.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host.to_string(), Some(port.to_string())),
        _ => (text.to_string(), None),
    }
}
