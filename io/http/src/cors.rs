//! Decides which pages may read our responses. What a page may *do* is checked in [`super::guard`];
//! this only informs the browser.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, HeaderMap, HeaderValue, ORIGIN, VARY,
};

/// The rule of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cors {
    /// Every page may read it: `/rest/account`, by the specification.
    Any,
    /// Pages of the origins in `http.cors_origins`.
    Listed,
}

/// Headers a page may send beyond the simple ones.
const HEADERS: HeaderValue = HeaderValue::from_static("authorization, content-type, prefer, x-request-id");
/// Seconds a browser may cache a preflight.
const MAX_AGE_S: HeaderValue = HeaderValue::from_static("600");

/// Returns the value of Access-Control-Allow-Origin, if there is to be one.
pub(crate) fn allowed(rule: Cors, origin: Option<&HeaderValue>, listed: &[String]) -> Option<HeaderValue> {
    let is_listed = |origin: &&HeaderValue| listed.iter().any(|other| other.as_bytes() == origin.as_bytes());
    match rule {
        Cors::Any => Some(HeaderValue::from_static("*")),
        Cors::Listed => origin.filter(is_listed).cloned(),
    }
}

/// Adds the headers of a rule to the response to a request with these headers.
pub(crate) fn add_headers(rule: Cors, request: &HeaderMap, listed: &[String], answer: &mut HeaderMap) {
    if rule == Cors::Listed && !listed.is_empty() {
        // Caches must keep the responses for different origins apart.
        answer.append(VARY, HeaderValue::from_static("origin"));
    }
    if let Some(origin) = allowed(rule, request.get(ORIGIN), listed) {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
}

/// Adds the allowed methods to the response to OPTIONS; only if the page may call at all.
pub(crate) fn add_methods(allow: &HeaderValue, answer: &mut HeaderMap) {
    if answer.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        answer.insert(ACCESS_CONTROL_ALLOW_METHODS, allow.clone());
        answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
        answer.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE_S);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_of_a_path_and_the_list_decide() {
        let listed = ["https://desk.example".to_string()];
        let cases = [
            (Cors::Any, None, Some("*")),
            (Cors::Any, Some("https://any.example"), Some("*")),
            (Cors::Listed, None, None),
            (Cors::Listed, Some("https://desk.example"), Some("https://desk.example")),
            (Cors::Listed, Some("https://desk.example.evil"), None),
            (Cors::Listed, Some("http://desk.example"), None),
            (Cors::Listed, Some("null"), None),
        ];
        for (rule, origin, expected) in cases {
            let origin = origin.map(HeaderValue::from_static);
            let found = allowed(rule, origin.as_ref(), &listed);
            assert_eq!(found, expected.map(HeaderValue::from_static), "{rule:?} {origin:?}");
        }
    }
}
