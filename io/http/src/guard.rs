//! Checks that are always on. Every request is checked here by its head, before its sender is
//! identified ([`super::login`]) and long before any handler sees it.
//!
//! The danger on a trader's machine is less the network than the browser: any page may send
//! requests to `localhost`. So a request must be addressed to us (Host: a page that points its own
//! host name at our address is foreign) and, if it changes anything, must not come from a foreign
//! page (Origin, Sec-Fetch-Site).

use std::net::IpAddr;

use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, ORIGIN, TRANSFER_ENCODING, UPGRADE};
use hyper::http::request::Parts as Head;
use hyper::{Method, StatusCode};

use super::connection_info::ConnectionInfo;
use super::problem::Problem;
use super::settings::HttpSettings;

const SEC_FETCH_SITE: &str = "sec-fetch-site";

#[derive(Debug)]
pub(crate) struct RequestRules {
    pub hosts: Vec<String>,
    pub origins: Vec<String>,
    pub body_bytes_max: usize,
}

impl RequestRules {
    pub(crate) fn new(settings: &HttpSettings) -> RequestRules {
        RequestRules {
            hosts: settings.public_hosts.clone(),
            origins: settings.cors_origins.clone(),
            body_bytes_max: settings.body_bytes_max,
        }
    }
}

/// Checks whether a request may go on to its handler.
pub(crate) fn check(rules: &RequestRules, connection: &ConnectionInfo, head: &Head) -> Result<(), Problem> {
    if let Some(fault) = connection.progress.fault() {
        return Err(Problem::bad_request("ambiguous-request", fault.to_string()).closing());
    }
    check_host(rules, connection, head)?;
    check_origin(rules, head)?;
    check_body(rules, &head.headers)
}

fn check_host(rules: &RequestRules, connection: &ConnectionInfo, head: &Head) -> Result<(), Problem> {
    let mut hosts = head.headers.get_all(HOST).iter();
    // Usually a connection sends the same Host again and again.
    if let (Some(host), None, None) = (hosts.next(), hosts.next(), head.uri.authority())
        && connection.is_same_host(host.as_bytes())
    {
        return Ok(());
    }
    let authority = authority(head)?;
    if !is_ours(rules, connection.local.ip(), authority.host) {
        let detail = "the Host is not one of this server; name it in http.public_host if it should be";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, "foreign-host", detail));
    }
    connection.set_known_host(authority.text.as_bytes());
    Ok(())
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The addressee of a request: `host` or `host:port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RequestAuthority<'a> {
    text: &'a str,
    /// The host without port and brackets.
    host: &'a str,
}

impl<'a> RequestAuthority<'a> {
    fn parse(text: &'a str) -> Option<RequestAuthority<'a>> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let is_port = match port.strip_prefix(':') {
            Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok(),
            None => port.is_empty(),
        };
        let is_host =
            !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b));
        (is_host && is_port).then_some(RequestAuthority { text, host })
    }
}

fn authority(head: &Head) -> Result<RequestAuthority<'_>, Problem> {
    let bad = |detail: &'static str| Problem::bad_request("bad-host", detail).closing();
    let mut hosts = head.headers.get_all(HOST).iter();
    let host = hosts.next().ok_or_else(|| bad("a request needs a Host"))?;
    if hosts.next().is_some() {
        return Err(bad("a request must have exactly one Host"));
    }
    let text = host.to_str().map_err(|_| bad("the Host is not text"))?;
    let authority = RequestAuthority::parse(text).ok_or_else(|| bad("the Host is not a valid host"))?;
    // RFC 9112, 3.2.2: an absolute target outranks Host. No client needs them to differ.
    match head.uri.authority() {
        Some(target) if !target.as_str().eq_ignore_ascii_case(text) => Err(bad("Host and target differ")),
        _ => Ok(authority),
    }
}

/// Returns whether the host is ours. The port is not checked: behind a forwarded port it differs,
/// and a page cannot choose the host name that we see.
fn is_ours(rules: &RequestRules, local: IpAddr, host: &str) -> bool {
    let mut names = ["localhost"].into_iter().chain(rules.hosts.iter().map(String::as_str));
    if names.any(|name| name.eq_ignore_ascii_case(host)) {
        return true;
    }
    let address = host.parse::<IpAddr>().map(|address| address.to_canonical());
    address.is_ok_and(|address| address.is_loopback() || address == local.to_canonical())
}

fn check_origin(rules: &RequestRules, head: &Head) -> Result<(), Problem> {
    if is_safe(&head.method) && !head.headers.contains_key(UPGRADE) {
        return Ok(());
    }
    let authority = authority(head)?.text;
    let origins: Vec<_> = head.headers.get_all(ORIGIN).iter().map(|origin| origin.as_bytes()).collect();
    let is_listed = |origin: &[u8]| rules.origins.iter().any(|other| other.as_bytes() == origin);
    let is_same = |origin: &[u8]| {
        let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
        host.is_some_and(|host| host.eq_ignore_ascii_case(authority.as_bytes()))
    };
    let foreign = |detail| Err(Problem::new(StatusCode::FORBIDDEN, "foreign-origin", detail));
    if !origins.iter().all(|origin| is_listed(origin) || is_same(origin)) {
        return foreign("a page of another origin may not do this; name it in http.cors_origins if it may");
    }
    let from_listed = !origins.is_empty() && origins.iter().all(|origin| is_listed(origin));
    let sites = head.headers.get_all(SEC_FETCH_SITE).iter();
    let is_own_site = |site: &[u8]| matches!(site, b"same-origin" | b"none");
    if !from_listed && !sites.into_iter().all(|site| is_own_site(site.as_bytes())) {
        return foreign("a page of another site may not do this");
    }
    Ok(())
}

fn check_body(rules: &RequestRules, headers: &HeaderMap) -> Result<(), Problem> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.unwrap_or(0) > rules.body_bytes_max as u64 {
        return Err(body_too_large(rules.body_bytes_max));
    }
    let has_body = length.unwrap_or(0) > 0 || headers.contains_key(TRANSFER_ENCODING);
    if has_body && !is_json(headers) {
        let detail = "a body must have the Content-Type application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json", detail).closing());
    }
    Ok(())
}

/// Returns the problem of a body that is too large, also when that shows only while it is read.
pub(crate) fn body_too_large(max: usize) -> Problem {
    let detail = format!("a body has at most {max} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", detail).closing()
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return false };
    let essence = kind.as_bytes().split(|&b| b == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_host_with_or_without_port() {
        let host = |text| RequestAuthority::parse(text).map(|authority| authority.host);
        for (text, expected) in [
            ("localhost", "localhost"),
            ("localhost:9090", "localhost"),
            ("127.0.0.1:1", "127.0.0.1"),
            ("[::1]", "::1"),
            ("[::1]:9090", "::1"),
            ("a-b.example", "a-b.example"),
        ] {
            assert_eq!(host(text), Some(expected));
        }
        let bad = [
            "",
            ":9090",
            "localhost:",
            "a:70000",
            "a:b",
            "a:1:2",
            "u@a",
            "[::1",
            "[::1]x",
            "a b",
            "a/b",
            "[]",
        ];
        for text in bad {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn loopback_the_local_address_and_the_configured_names_are_ours() {
        let rules = RequestRules { hosts: vec!["desk.example".into()], origins: vec![], body_bytes_max: 0 };
        let local: IpAddr = "::ffff:10.0.0.7".parse().unwrap();
        for host in ["localhost", "LocalHost", "127.0.0.1", "::1", "10.0.0.7", "desk.example", "DESK.example"]
        {
            assert!(is_ours(&rules, local, host), "{host}");
        }
        for host in ["evil.example", "10.0.0.8", "localhost.evil.example", "localhost.", "desk", "0.0.0.0"] {
            assert!(!is_ours(&rules, local, host), "{host}");
        }
    }
}
