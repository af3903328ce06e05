//! Identifies the sender of a request and checks its role: `Authorization: Basic` for people,
//! `Bearer` for machines.
//!
//! The `auth` thread verifies credentials, and a request waits for the verdict without blocking
//! others. Only calls that reveal nothing are public: liveness, readiness, and what is the same for
//! all, the web pages and the API description.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64ct::{Base64, Encoding};
use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::http::request::Parts as Head;
use pitlane_auth::{AuthClient, Credentials, Identity, Refusal, RevocationWatch, Role, Verdict, network};
use pitlane_config::Secret;
use pitlane_engine::time::Timestamp;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::api_call::ApiCall;
use super::caller::RequestCaller;
use super::connection_info::ConnectionInfo;
use super::meter::Meter;
use super::problem::Problem;
use super::rate_limit::Limit;
use super::settings::HttpSettings;
use super::thread_clock::ThreadClock;

const SEC_FETCH_DEST: &str = "sec-fetch-dest";

/// Checks whether the sender of a request is who it claims to be, and may send it now.
#[derive(Debug)]
pub(crate) struct Authorizer {
    pub login_queue: LoginQueue,
    peers: RefCell<Limit<IpAddr>>,
    logins: RefCell<Limit<Arc<str>>>,
    clock: Rc<ThreadClock>,
}

impl Authorizer {
    pub(crate) fn new(
        login_queue: LoginQueue,
        settings: &HttpSettings,
        clock: Rc<ThreadClock>,
    ) -> Authorizer {
        Authorizer {
            login_queue,
            peers: RefCell::new(Limit::new(settings.rate_per_peer)),
            logins: RefCell::new(Limit::new(settings.rate_per_login)),
            clock,
        }
    }

    /// Checks that the sender may make this call, and returns who it is.
    pub(crate) async fn authorize(
        &self,
        connection: &ConnectionInfo,
        head: &Head,
        call: ApiCall,
        role: Role,
    ) -> Result<RequestCaller, Problem> {
        let identity = match self.login_queue.default_identity() {
            Some(identity) => identity,
            None => match credentials_of(&head.headers, connection.peer.ip())? {
                Some(credentials) => {
                    let identity = self.login_queue.authenticate(credentials).await?;
                    connection.set_known();
                    identity
                }
                None if call.is_public() => return Ok(RequestCaller::Anonymous),
                None => return Err(missing()),
            },
        };
        let taken = self.logins.borrow_mut().take(self.clock.now(), &identity.name);
        taken.map_err(|wait_s| too_many("too many requests by this login", wait_s))?;
        if identity.role < role {
            let detail = format!("{} may not do this: it requires the role {role}", identity.name);
            return Err(Problem::new(StatusCode::FORBIDDEN, "role-too-low", detail));
        }
        Ok(RequestCaller::Known(identity))
    }

    /// Checks that the sender's address may send another request now.
    pub(crate) fn check_rate(&self, connection: &ConnectionInfo) -> Result<(), Problem> {
        let taken = self.peers.borrow_mut().take(self.clock.now(), &network(connection.peer.ip()));
        taken.map_err(|wait_s| too_many("too many requests from this address", wait_s))
    }
}

fn too_many(detail: &'static str, wait_s: u32) -> Problem {
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too-many-requests", detail).with_retry_after(wait_s)
}

/// Returns the credentials of a request; `None` if there are none. A header that cannot be parsed
/// is an error.
fn credentials_of(headers: &HeaderMap, peer: IpAddr) -> Result<Option<Credentials>, Problem> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(Problem::bad_request(
            "bad-authorization",
            "a request must have at most one Authorization",
        ));
    }
    let parsed = line.to_str().ok().and_then(|line| line.split_once(' '));
    let credentials = parsed.and_then(|(scheme, rest)| {
        let rest = rest.trim_matches(' ');
        if scheme.eq_ignore_ascii_case("Bearer") && !rest.is_empty() {
            return Some(Credentials { login: None, secret: Secret::new(rest), peer });
        }
        if scheme.eq_ignore_ascii_case("Basic") {
            return basic(rest, peer);
        }
        None
    });
    credentials.map(Some).ok_or_else(|| {
        unauthorized("bad-authorization", "the Authorization must be Bearer with a token, or Basic")
    })
}

/// Parses RFC 7617: base64 of login, colon and password, in UTF-8.
fn basic(text: &str, peer: IpAddr) -> Option<Credentials> {
    let text = String::from_utf8(Base64::decode_vec(text).ok()?).ok()?;
    let (login, password) = text.split_once(':')?;
    Some(Credentials { login: Some(login.to_string()), secret: Secret::new(password), peer })
}

fn missing() -> Problem {
    unauthorized("login-required", "this requires a login: Authorization with a Bearer token, or Basic")
}

fn unauthorized(code: &'static str, detail: &'static str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, code, detail)
}

/// Adds the authentication schemes to a response. A script of a page is not offered Basic, or the
/// browser would open its own login dialog over the page.
pub(crate) fn challenge(request: &HeaderMap, answer: &mut HeaderMap) {
    let is_script = request.get(SEC_FETCH_DEST).is_some_and(|dest| dest.as_bytes() == b"empty");
    if !is_script {
        let basic = HeaderValue::from_static("Basic realm=\"pitlane\", charset=\"UTF-8\"");
        answer.append(WWW_AUTHENTICATE, basic);
    }
    answer.append(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"pitlane\""));
}

/// This thread's client of the `auth` thread, and the requests that wait for it.
#[derive(Debug)]
pub(crate) struct LoginQueue {
    auth_client: RefCell<AuthClient>,
    /// Waiting requests by ticket; never more than the client has open queries.
    waiting: RefCell<BTreeMap<u64, oneshot::Sender<Verdict>>>,
    tickets: Cell<u64>,
    clock: Rc<ThreadClock>,
    meter: Rc<Meter>,
    answer_timeout: Duration,
}

impl LoginQueue {
    pub(crate) fn new(
        auth_client: AuthClient,
        clock: Rc<ThreadClock>,
        meter: Rc<Meter>,
        answer_timeout: Duration,
    ) -> LoginQueue {
        LoginQueue {
            auth_client: RefCell::new(auth_client),
            waiting: RefCell::default(),
            tickets: Cell::new(0),
            clock,
            meter,
            answer_timeout,
        }
    }

    /// Returns the owner of a token; `None` if there is none.
    pub(crate) fn find_token(&self, token: &str, peer: IpAddr) -> Option<Identity> {
        let credentials = Credentials { login: None, secret: Secret::new(token), peer };
        let verdict = self.auth_client.borrow_mut().judge_at_once(self.clock.now(), &credentials);
        if !matches!(verdict, Some(Ok(_))) {
            self.meter.logins_refused.increment();
        }
        verdict.and_then(Result::ok)
    }

    /// Returns a watch that detects revoked logins of open connections.
    pub(crate) fn revocations(&self) -> RevocationWatch {
        self.auth_client.borrow().revocations()
    }

    /// Returns the identity of all callers, where no login is required.
    pub(crate) fn default_identity(&self) -> Option<Identity> {
        self.auth_client.borrow().default_identity().cloned()
    }

    /// Gives verdicts to the requests that wait for them, and returns how many there were.
    pub(crate) fn poll(&self) -> usize {
        let mut auth_client = self.auth_client.borrow_mut();
        let mut work = 0;
        while let Some((ticket, verdict)) = auth_client.poll() {
            if let Some(reply_to) = self.waiting.borrow_mut().remove(&ticket) {
                // If the request is gone, the verdict is discarded.
                let _ = reply_to.send(verdict);
            }
            work += 1;
        }
        work
    }

    pub(crate) async fn authenticate(&self, credentials: Credentials) -> Result<Identity, Problem> {
        let now = self.clock.now();
        let verdict = self.auth_client.borrow_mut().judge_at_once(now, &credentials);
        let verdict = match verdict {
            Some(verdict) => verdict,
            None => self.verify_password(now, credentials).await?,
        };
        verdict.map_err(|refusal| {
            self.meter.logins_refused.increment();
            refused(refusal)
        })
    }

    /// Has a password verified. Returns an error if no thread can do it now.
    async fn verify_password(&self, now: Timestamp, credentials: Credentials) -> Result<Verdict, Problem> {
        let ticket = self.tickets.get();
        self.tickets.set(ticket + 1);
        self.auth_client.borrow_mut().ask(now, ticket, credentials).map_err(|_busy| Problem::busy())?;
        let (reply_to, verdict) = oneshot::channel();
        self.waiting.borrow_mut().insert(ticket, reply_to);
        match timeout(self.answer_timeout, verdict).await {
            Ok(Ok(verdict)) => Ok(verdict),
            // The `auth` thread always answers, unless the process ends.
            Ok(Err(_)) | Err(_) => Err(Problem::busy()),
        }
    }
}

fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Wrong => unauthorized("bad-credentials", "the login or the secret is wrong"),
        Refusal::Locked { wait_s } => {
            let detail = "too many wrong passwords; wait, then try once";
            Problem::new(StatusCode::TOO_MANY_REQUESTS, "locked-out", detail).with_retry_after(wait_s)
        }
        Refusal::Busy => Problem::busy(),
        Refusal::Ending => Problem::stopping(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(lines: &[&str]) -> Result<Option<(Option<String>, String)>, &'static str> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(line.as_bytes()).unwrap());
        }
        let credentials_of =
            credentials_of(&headers, [127, 0, 0, 1].into()).map_err(|problem| problem.code)?;
        Ok(credentials_of
            .map(|credentials_of| (credentials_of.login, credentials_of.secret.reveal().to_string())))
    }

    #[test]
    fn a_client_sends_a_token_or_a_login_with_password() {
        let some =
            |login: Option<&str>, secret: &str| Ok(Some((login.map(str::to_string), secret.to_string())));
        assert_eq!(parsed(&[]), Ok(None));
        assert_eq!(parsed(&["Bearer pit_x"]), some(None, "pit_x"));
        assert_eq!(parsed(&["bearer   pit_x"]), some(None, "pit_x"));
        // The example of RFC 7617.
        assert_eq!(parsed(&["Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="]), some(Some("Aladdin"), "open sesame"));
        assert_eq!(parsed(&["BASIC dGVzdDoxMjPCow=="]), some(Some("test"), "123£"));
        assert_eq!(parsed(&["Basic YTpiOmM="]), some(Some("a"), "b:c"));
        assert_eq!(parsed(&["Basic Og=="]), some(Some(""), ""));
        for odd in [
            "",
            "Bearer",
            "Bearer ",
            "Basic",
            "Basic x",
            "Basic YQ==",
            "Basic YTpi=",
            "Basic /zr/",
            "Digest a",
            "\u{e9} x",
        ] {
            assert_eq!(parsed(&[odd]), Err("bad-authorization"), "{odd}");
        }
        assert_eq!(parsed(&["Bearer a", "Bearer a"]), Err("bad-authorization"));
    }
}
