//! From a request to its response: checks, routes and handles it, and adds the common headers.

use std::rc::Rc;

use hyper::body::Incoming;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    HeaderMap, HeaderName, HeaderValue, LOCATION, REFERRER_POLICY, RETRY_AFTER, SEC_WEBSOCKET_VERSION,
    UPGRADE, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::request::Parts as Head;
use hyper::{Method, Request, Response, StatusCode};

use super::app_state::AppState;
use super::body::{self, Input};
use super::connection::ConnectionInfo;
use super::cors::{self, Cors};
use super::login;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{Answer, Kind, Reply};
use super::routes::Found;
use super::{audit, calls, guard, websocket};
use crate::auth::Role;
use crate::metrics::exposition;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest request id of a client that we pass on.
const REQUEST_ID_BYTES_MAX: usize = 64;

/// Number of headers of a usual response. With one more, the map would have a size for which the
/// allocator has no size class.
const HEADERS_USUAL: usize = 6;

// Checked at compile time, so that no response has to be.
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
/// Header with the age, in seconds, of the data of members that are away.
const AGE: HeaderName = HeaderName::from_static("pitlane-age");

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Pages load nothing from other hosts, must not be framed, and connect to their own host only
/// (STOMP too, by `connect-src`).
const PAGE_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
     connect-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
);

pub async fn answer(
    house: &Rc<AppState>,
    visit: &ConnectionInfo,
    request: Request<Incoming>,
) -> Response<Reply> {
    visit.link.begin();
    house.receive();
    let (mut head, body) = request.into_parts();
    let mut cors = Cors::Listed;
    let mut headers = HeaderMap::with_capacity(HEADERS_USUAL);
    let judged = login::pace(house, visit).and_then(|()| guard::judge(&house.rules, visit, &head));
    let answered = match judged {
        // A connection that is no longer HTTP needs nothing of what follows.
        Ok(()) if is_stomp(&head) => match upgrade(house, visit, &mut head) {
            Ok(response) => return response,
            Err(problem) => Err(problem),
        },
        Ok(()) => route(house, visit, &head, body, &mut cors, &mut headers).await,
        Err(problem) => {
            house.meter.guarded.one_more();
            Err(problem)
        }
    };
    cors::tell(cors, &head.headers, &house.rules.origins, &mut headers);
    if head.method == Method::OPTIONS
        && let Some(allow) = headers.get(ALLOW).cloned()
    {
        cors::tell_methods(&allow, &mut headers);
    }
    let id = request_id(house, &head.headers);
    let answer = answered.unwrap_or_else(|problem| show(&problem, &head, &id, &mut headers));
    house.meter.answered(answer.status.as_u16());
    if answer.status == StatusCode::SERVICE_UNAVAILABLE && !headers.contains_key(RETRY_AFTER) {
        headers.insert(RETRY_AFTER, HeaderValue::from(1));
    }
    let Answer { status, kind, content, location, etag, encoding } = answer;
    dress(kind, etag, &mut headers);
    if let Some(location) = location {
        headers.insert(LOCATION, location);
    }
    if let Some(encoding) = encoding {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    headers.insert(X_REQUEST_ID, id);
    if let Some(cluster) = house.cluster.as_ref().filter(|_| head.uri.path().starts_with("/rest/"))
        && let Some(ages) = cluster.ages(house.now())
    {
        headers.insert(AGE, text(ages));
    }
    let mut response = Response::new(Reply::new(content, kind, visit.link.clone(), house.turns.clone()));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

async fn route(
    house: &Rc<AppState>,
    visit: &ConnectionInfo,
    head: &Head,
    body: Incoming,
    cors: &mut Cors,
    headers: &mut HeaderMap,
) -> Result<Answer, Problem> {
    let path = head.uri.path();
    let route = match house.routes.find(&head.method, path) {
        Found::Call { route, role, call, segments } => {
            *cors = route.cors;
            let admitted = login::admit(house, visit, head, call, role).await;
            if admitted.is_ok() && login::is_health(call) && visit.is_on_probation() {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            } else if visit.is_on_probation() {
                return Err(Problem::no_room());
            }
            let who = admitted?;
            let (input, act) = match role {
                Role::Admin => {
                    let bytes = body::read(house, Input::Coming(body)).await?;
                    let act = audit::note(house, visit, head, &who, &bytes).await?;
                    (Input::Here(bytes), act)
                }
                Role::Read | Role::Trade => (Input::Coming(body), None),
            };
            let ask = RequestContext { visit, head, who: &who, segments };
            let answered = calls::handle(house, &ask, call, input).await;
            if let Some(act) = act {
                act.end(answered.as_ref().map_or_else(|problem| problem.status, |answer| answer.status));
            }
            return answered;
        }
        // The server as a whole.
        Found::Nothing if head.method == Method::OPTIONS && path == "*" => return Ok(Answer::empty()),
        Found::Nothing => return Err(Problem::not_found()),
        Found::WrongMethod(route) => return Err(Problem::method_not_allowed(route.allow())),
        Found::Options(route) => route,
    };
    *cors = route.cors;
    headers.insert(ALLOW, text(route.allow()));
    Ok(Answer::empty())
}

/// Upgrades to a WebSocket. Its client logs in later, so where only the reserve is left, another
/// client of the same network must have logged in before.
fn upgrade(
    house: &Rc<AppState>,
    visit: &ConnectionInfo,
    head: &mut Head,
) -> Result<Response<Reply>, Problem> {
    if visit.is_on_probation() && !visit.is_from_known_network() {
        return Err(Problem::no_room());
    }
    websocket::upgrade(house, visit, head)
}

/// Returns whether the request is for the WebSocket endpoint, with or without the upgrade headers.
fn is_stomp(head: &Head) -> bool {
    head.uri.path() == "/stomp" && head.method == Method::GET
}

fn show(problem: &Problem, head: &Head, id: &HeaderValue, headers: &mut HeaderMap) -> Answer {
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
    Answer::text(Kind::Problem, problem.to_json(head.uri.path(), id)).with_status(problem.status)
}

/// Adds the headers that every response of a kind has.
fn dress(kind: Kind, etag: Option<HeaderValue>, headers: &mut HeaderMap) {
    let content_type = match kind {
        Kind::Empty => None,
        Kind::Json => Some(JSON),
        Kind::Problem => Some(PROBLEM),
        Kind::Metrics => Some(HeaderValue::from_static(exposition::CONTENT_TYPE)),
        Kind::Asset { content_type, .. } => Some(HeaderValue::from_static(content_type)),
    };
    if let Some(content_type) = content_type {
        headers.insert(CONTENT_TYPE, content_type);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    match etag {
        Some(etag) => {
            headers.insert(ETAG, etag);
            let is_immutable = matches!(kind, Kind::Asset { is_immutable: true, .. });
            headers.insert(CACHE_CONTROL, if is_immutable { FOR_EVER } else { NO_CACHE });
        }
        None => {
            headers.insert(CACHE_CONTROL, NO_STORE);
        }
    }
    if let Kind::Asset { .. } = kind {
        headers.append(VARY, HeaderValue::from_static("accept-encoding"));
        headers.insert(CONTENT_SECURITY_POLICY, PAGE_POLICY);
        headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
}

/// Returns the client's request id if it is valid, else a new one.
fn request_id(house: &AppState, headers: &HeaderMap) -> HeaderValue {
    let is_sane = |id: &&HeaderValue| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
    };
    match headers.get(X_REQUEST_ID).filter(is_sane) {
        Some(id) => id.clone(),
        None => house.next_request_id(),
    }
}

fn text(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("our own words are plain ASCII")
}
