//! Errors as RFC 9457 has them: `application/problem+json`, with a stable code for machines and a sentence for people.

use std::borrow::Cow;

use hyper::StatusCode;
use pitlane_engine::reason::Reason;
use serde::Serialize;

/// Something that was not done, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub status: StatusCode,
    /// Stable; where a shard refused, its reason's code.
    pub code: &'static str,
    pub detail: Cow<'static, str>,
    /// Methods, with 405.
    pub allow: Option<String>,
    /// Seconds, with 429 and 503.
    pub retry_after: Option<u32>,
    /// Whether it is told what to upgrade to, with 426.
    pub upgrade: bool,
    /// Whether the connection ends with it: what follows on it cannot be trusted, or will not be read.
    pub close: bool,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        let detail = detail.into();
        Problem { status, code, detail, allow: None, retry_after: None, upgrade: false, close: false }
    }

    pub fn upgrading(self) -> Problem {
        Problem { upgrade: true, ..self }
    }

    pub fn closing(self) -> Problem {
        Problem { close: true, ..self }
    }

    pub fn later(self, seconds: u32) -> Problem {
        Problem { retry_after: Some(seconds), ..self }
    }

    pub fn bad_request(code: &'static str, detail: impl Into<Cow<'static, str>>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    pub fn not_found() -> Problem {
        Problem::new(StatusCode::NOT_FOUND, "not-found", "there is nothing at this path")
    }

    pub fn method_not_allowed(allow: String) -> Problem {
        let problem = Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            "the path exists, but not with this method",
        );
        Problem { allow: Some(allow), ..problem }
    }

    /// Nothing was sent.
    pub fn busy() -> Problem {
        let reason = Reason::LaneFull;
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason.code(), reason.words()).later(1)
    }

    pub fn stopping() -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is stopping").later(5)
    }

    /// Something was sent, and nobody knows what became of it.
    pub fn no_answer() -> Problem {
        let detail = "no answer in time; the command may still take effect, so look before asking again";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-answer", detail).later(5)
    }

    /// A shard said no.
    pub fn refused(reason: Reason) -> Problem {
        match reason {
            Reason::LaneFull | Reason::ShardFull => {
                Problem::new(StatusCode::SERVICE_UNAVAILABLE, reason.code(), reason.words()).later(1)
            }
            _ => Problem::new(StatusCode::UNPROCESSABLE_ENTITY, reason.code(), reason.words()),
        }
    }

    /// The body of the answer.
    pub fn to_json(&self, path: &str, request: &str) -> Vec<u8> {
        let body = Body {
            kind: format!("urn:pitlane:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Problem"),
            status: self.status.as_u16(),
            detail: &self.detail,
            instance: path,
            code: self.code,
            request_id: request,
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
}
