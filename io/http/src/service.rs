//! From a request to its response: checks, routes and handles it, and adds the common headers.

use std::rc::Rc;

use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, LINK, LOCATION, REFERRER_POLICY, RETRY_AFTER, SEC_WEBSOCKET_VERSION,
    UPGRADE, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts as Head;
use hyper::{Method, Request, Response, StatusCode};
use pitlane_auth::Role;
use pitlane_runtime::metrics::exposition;

use super::app_state::AppState;
use super::body::{BodyLimits, RequestBody};
use super::connection_info::ConnectionInfo;
use super::cors::{self, Cors};
use super::login;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::request_ids::X_REQUEST_ID;
use super::response::{HttpResponse, ResponseBody, ResponseKind};
use super::routes::RouteMatch;
use super::{audit, calls, compression, guard, websocket};

/// Number of headers of a usual response. With one more, the map would have a size for which the
/// allocator has no size class.
const HEADERS_USUAL: usize = 6;

// Checked at compile time, so that no response has to be.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const CSV: HeaderValue = HeaderValue::from_static("text/csv; charset=utf-8; header=present");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const ACCEPT_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Header with the age, in seconds, of the data of members that are away.
const AGE: HeaderName = HeaderName::from_static("pitlane-age");

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Pages load nothing from other hosts, must not be framed, and connect to their own host only
/// (STOMP too, by `connect-src`). The hash is that of the style sheet inside a report: the web page
/// opens reports that it has fetched, and they inherit its policy.
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; \
     style-src 'self' 'sha256-+IxgaTYC8lI8iuUH8HDvlMa7XupOXehyFQ98qatwW98='; \
     img-src 'self' data:; font-src 'self'; connect-src 'self'; manifest-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

pub(crate) async fn respond(
    app: &Rc<AppState>,
    connection: &ConnectionInfo,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    connection.progress.begin();
    app.drain_pending_events();
    let (mut head, body) = request.into_parts();
    let mut cors = Cors::Listed;
    let mut headers = HeaderMap::with_capacity(HEADERS_USUAL);
    let checked = app
        .access
        .authorizer
        .check_rate(connection)
        .and_then(|()| guard::check(&app.access.rules, connection, &head));
    let answered = match checked {
        // A connection that is no longer HTTP needs nothing of what follows.
        Ok(()) if is_stomp(&head) => match upgrade(app, connection, &mut head) {
            Ok(response) => return response,
            Err(problem) => Err(problem),
        },
        Ok(()) => route(app, connection, &head, body, &mut cors, &mut headers).await,
        Err(problem) => {
            app.monitoring.meter.rejected.increment();
            Err(problem)
        }
    };
    cors::add_headers(cors, &head.headers, &app.access.rules.origins, &mut headers);
    if head.method == Method::OPTIONS
        && let Some(allow) = headers.get(ALLOW).cloned()
    {
        cors::add_methods(&allow, &mut headers);
    }
    let id = app.access.request_ids.id_of(&head.headers);
    let mut answer = answered.unwrap_or_else(|problem| problem_response(&problem, &head, &id, &mut headers));
    app.monitoring.meter.count_response(answer.status.as_u16());
    if answer.status == StatusCode::SERVICE_UNAVAILABLE && !headers.contains_key(RETRY_AFTER) {
        headers.insert(RETRY_AFTER, HeaderValue::from(1));
    }
    if compression::is_candidate(&answer) {
        headers.append(VARY, ACCEPT_ENCODING);
        answer = app.compression.apply(&head.headers, &app.turns, answer).await;
    } else if answer.status == StatusCode::NOT_MODIFIED {
        headers.append(VARY, ACCEPT_ENCODING);
        answer.etag = answer.etag.map(|etag| compression::validator(&head.headers, etag));
    }
    let HttpResponse { status, kind, content, location, link, etag, encoding } = answer;
    add_common_headers(kind, etag, &mut headers);
    if let Some(location) = location {
        headers.insert(LOCATION, location);
    }
    if let Some(link) = link {
        headers.insert(LINK, link);
    }
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    headers.insert(X_REQUEST_ID, id);
    if let Some(cluster) = app.trading.cluster.as_ref().filter(|_| head.uri.path().starts_with("/rest/"))
        && let Some(ages) = cluster.ages(app.now())
    {
        headers.insert(AGE, text(ages));
    }
    let mut response =
        Response::new(ResponseBody::new(content, kind, connection.progress.clone(), app.turns.clone()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

async fn route(
    app: &Rc<AppState>,
    connection: &ConnectionInfo,
    head: &Head,
    body: Incoming,
    cors: &mut Cors,
    headers: &mut HeaderMap,
) -> Result<HttpResponse, Problem> {
    let path = head.uri.path();
    let route = match app.content.routes.find(&head.method, path) {
        RouteMatch::ApiCall { route, role, call, segments } => {
            *cors = route.cors;
            let admitted = app.access.authorizer.authorize(connection, head, call, role).await;
            if admitted.is_ok() && call.is_health() && connection.is_on_probation() {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            } else if connection.is_on_probation() {
                return Err(Problem::no_room());
            }
            let caller = admitted?;
            let rules = &app.access.rules;
            let limits = BodyLimits { bytes_max: rules.body_bytes_max, timeout: app.settings.body_timeout };
            let body = RequestBody::Incoming(body, limits);
            let (input, act) = match role {
                Role::Admin => {
                    let bytes = body.read().await?;
                    let act = audit::record(&app.access.acts, connection, head, &caller, &bytes).await?;
                    (RequestBody::Read(bytes), act)
                }
                Role::Strategy | Role::Read | Role::Trade => (body, None),
            };
            let ctx = RequestContext { connection, head, caller: &caller, segments };
            let answered = calls::handle(app, &ctx, call, input).await;
            if let Some(act) = act {
                act.end(answered.as_ref().map_or_else(|problem| problem.status, |answer| answer.status));
            }
            return answered;
        }
        // The server as a whole.
        RouteMatch::Nothing if head.method == Method::OPTIONS && path == "*" => {
            return Ok(HttpResponse::empty());
        }
        RouteMatch::Nothing => return Err(Problem::not_found()),
        RouteMatch::WrongMethod(route) => return Err(Problem::method_not_allowed(route.allow())),
        RouteMatch::Options(route) => route,
    };
    *cors = route.cors;
    headers.insert(ALLOW, text(route.allow()));
    Ok(HttpResponse::empty())
}

/// Upgrades to a WebSocket. Its client logs in later, so where only the reserve is left, another
/// client of the same network must have logged in before.
fn upgrade(
    app: &Rc<AppState>,
    connection: &ConnectionInfo,
    head: &mut Head,
) -> Result<Response<ResponseBody>, Problem> {
    if connection.is_on_probation() && !connection.is_from_known_network() {
        return Err(Problem::no_room());
    }
    websocket::upgrade(app, connection, head)
}

/// Returns whether the request is for the WebSocket endpoint, with or without the upgrade headers.
fn is_stomp(head: &Head) -> bool {
    head.uri.path() == "/stomp" && head.method == Method::GET
}

fn problem_response(
    problem: &Problem,
    head: &Head,
    id: &HeaderValue,
    headers: &mut HeaderMap,
) -> HttpResponse {
    if let Some(allow) = &problem.allow {
        headers.insert(ALLOW, text(allow.clone()));
    }
    if let Some(seconds) = problem.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.upgrade {
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        login::challenge(&head.headers, headers);
    }
    if problem.close {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let id = id.to_str().unwrap_or_default();
    HttpResponse::text(ResponseKind::Problem, problem.to_json(head.uri.path(), id))
        .with_status(problem.status)
}

/// Adds the headers that every response of a kind has.
fn add_common_headers(kind: ResponseKind, etag: Option<HeaderValue>, headers: &mut HeaderMap) {
    let content_type = match kind {
        ResponseKind::Empty => None,
        ResponseKind::Json => Some(JSON),
        ResponseKind::Problem => Some(PROBLEM),
        ResponseKind::Metrics => Some(HeaderValue::from_static(exposition::CONTENT_TYPE)),
        ResponseKind::Csv => Some(CSV),
        ResponseKind::Columns(format) => Some(HeaderValue::from_static(format.media_type())),
        ResponseKind::Asset { content_type, .. } => Some(HeaderValue::from_static(content_type)),
    };
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    match etag {
        Some(etag) => {
            headers.insert(ETAG, etag);
            let is_immutable = matches!(kind, ResponseKind::Asset { is_immutable: true, .. });
            headers.insert(CACHE_CONTROL, if is_immutable { FOR_EVER } else { NO_CACHE });
        }
        None => {
            headers.insert(CACHE_CONTROL, NO_STORE);
        }
    }
    if let ResponseKind::Asset { .. } = kind {
        headers.append(VARY, ACCEPT_ENCODING);
        headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
}

fn text(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("our own texts are plain ASCII")
}

#[cfg(test)]
mod tests {
    use base64ct::{Base64, Encoding};
    use pitlane_performance::page::STYLE;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn the_policy_of_pages_permits_the_style_of_a_report() {
        let hash = Base64::encode_string(&Sha256::digest(STYLE));
        let permitted = format!("style-src 'self' 'sha256-{hash}';");
        assert!(PAGE_POLICY.to_str().unwrap().contains(&permitted), "{permitted}");
    }
}
