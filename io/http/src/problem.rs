//! Errors as in RFC 9457: `application/problem+json`, with a stable code for machines and a
//! sentence for people.
//!
//! Rules: docs/rest.md#errors.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hyper::StatusCode;
use pitlane_engine::reason::Reason;
use pitlane_protocols::rest::BadBody;
use serde::Serialize;
use serde_json::Value;

/// Something that was not done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub status: StatusCode,
    /// Stable code; where a shard refused, the code of its reason.
    pub code: &'static str,
    pub detail: Cow<'static, str>,
    /// Further members of the body, for machines.
    pub more: Vec<(&'static str, Value)>,
    /// Allowed methods, with 405.
    pub allow: Option<String>,
    /// Seconds until a retry, with 429 and 503.
    pub retry_after: Option<u32>,
    /// Whether the response has the headers that name the upgrade, with 426.
    pub upgrade: bool,
    /// Whether the connection is closed after it: what follows on it cannot be trusted, or will not
    /// be read.
    pub close: bool,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<Cow<'static, str>>,
    ) -> Problem {
        Problem {
            status,
            code,
            detail: detail.into(),
            more: Vec::new(),
            allow: None,
            retry_after: None,
            upgrade: false,
            close: false,
        }
    }

    pub(crate) fn upgrading(self) -> Problem {
        Problem { upgrade: true, ..self }
    }

    pub(crate) fn closing(self) -> Problem {
        Problem { close: true, ..self }
    }

    pub(crate) fn with_retry_after(self, seconds: u32) -> Problem {
        Problem { retry_after: Some(seconds), ..self }
    }

    pub(crate) fn bad_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// Adds a further member of the body.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Problem {
        self.more.push((name, value.into()));
        self
    }

    /// Reports that something named by the path, or by its id, does not exist.
    pub(crate) fn unknown(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// Reports that a request is not possible in the current state.
    pub(crate) fn conflict(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::CONFLICT, code, detail)
    }

    /// Reports that a request is well formed, and refused.
    pub(crate) fn unprocessable(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, code, detail)
    }

    /// Reports that the body is not what the call takes.
    pub(crate) fn bad_body(bad: BadBody) -> Problem {
        let problem = Problem::bad_request("bad-body", bad.to_string());
        match bad.field() {
            Some(field) => problem.with("field", field),
            None => problem,
        }
    }

    pub(crate) fn not_found() -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "there is nothing at this path")
    }

    pub(crate) fn method_not_allowed(allow: String) -> Problem {
        let problem = Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            "the path exists, but not with this method",
        );
        Problem { allow: Some(allow), ..problem }
    }

    /// Reports that nothing was sent.
    pub(crate) fn busy() -> Problem {
        let reason = Reason::LaneFull;
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason.code(), reason.text()).with_retry_after(1)
    }

    /// Reports that all walks over long lists are in use.
    pub(crate) fn too_many_lists() -> Problem {
        let detail = "too many long lists are being read; try again";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).with_retry_after(1)
    }

    /// Reports that only the reserve of connections is left, which is for clients with a login and
    /// health checks.
    pub(crate) fn no_room() -> Problem {
        let detail = "too many connections; those left are for clients with a valid login";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-room", detail).with_retry_after(1).closing()
    }

    /// Reports that the shards have not sent their snapshots yet.
    pub(crate) fn starting() -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "starting", "the service is starting")
            .with_retry_after(1)
    }

    pub(crate) fn stopping() -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is stopping")
            .with_retry_after(5)
    }

    /// Reports that a command was sent, and its result is unknown.
    pub(crate) fn no_answer() -> Problem {
        let detail =
            "no response in time; the command may still take effect, so check before sending it again";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", detail).with_retry_after(5)
    }

    /// Reports that a shard, or the desk before it, refused a request.
    pub(crate) fn refused(reason: Reason) -> Problem {
        let problem = |status| Problem::new(status, reason.code(), reason.text());
        if matches!(
            reason,
            Reason::LaneFull
                | Reason::ShardFull
                | Reason::StorageFailed
                | Reason::BrokerLost
                | Reason::OwnerAway
        ) {
            return problem(StatusCode::SERVICE_UNAVAILABLE).with_retry_after(1);
        }
        if matches!(reason, Reason::UnknownOrder | Reason::UnknownPosition) {
            return problem(StatusCode::NOT_FOUND);
        }
        if matches!(
            reason,
            Reason::OrderFinished
                | Reason::RequestPending
                | Reason::NotAcknowledged
                | Reason::PositionFlat
                | Reason::CloseInProgress
        ) {
            return problem(StatusCode::CONFLICT);
        }
        problem(StatusCode::UNPROCESSABLE_ENTITY)
    }

    /// Returns the body of the response.
    pub(crate) fn to_json(&self, path: &str, request: &str) -> Vec<u8> {
        let body = Body {
            kind: format!("urn:pitlane:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Problem"),
            status: self.status.as_u16(),
            detail: &self.detail,
            instance: path,
            code: self.code,
            request_id: request,
            more: self.more.iter().cloned().collect(),
        };
        serde_json::to_vec(&body).expect("text and numbers are always JSON")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    instance: &'a str,
    code: &'a str,
    request_id: &'a str,
    #[serde(flatten)]
    more: BTreeMap<&'static str, Value>,
}
