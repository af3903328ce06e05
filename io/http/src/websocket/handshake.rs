//! The opening handshake (RFC 6455, 4.2). Host and Origin were checked before.

use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::http::request::Parts as Head;
use hyper::{StatusCode, Version};
use pitlane_net::websocket_key::accept_of;
use pitlane_protocols::stomp::sub_protocol::{self, SubProtocolChoice};

use crate::problem::Problem;

/// Returns the headers of the 101 response, or why there is none.
pub(super) fn answer(head: &Head) -> Result<HeaderMap, Problem> {
    let bad = |detail: &'static str| Problem::bad_request("bad-websocket", detail);
    let has = |name, token| has_token(&head.headers, name, token);
    if !has(CONNECTION, "upgrade") || !has(UPGRADE, "websocket") {
        let detail = "this path serves STOMP over WebSocket: request an upgrade";
        return Err(Problem::new(StatusCode::UPGRADE_REQUIRED, "upgrade-required", detail).upgrading());
    }
    if head.version != Version::HTTP_11 {
        return Err(bad("a WebSocket begins with HTTP/1.1"));
    }
    if one(&head.headers, SEC_WEBSOCKET_VERSION) != Some(b"13") {
        let detail = "the only version of WebSocket is 13";
        return Err(Problem::new(StatusCode::UPGRADE_REQUIRED, "bad-websocket", detail).upgrading());
    }
    let key = one(&head.headers, SEC_WEBSOCKET_KEY).filter(|key| is_key(key));
    let key = key.ok_or_else(|| bad("Sec-WebSocket-Key must be 16 bytes in Base64"))?;
    let offers = head.headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let offers: Vec<&str> = offers.map(|offer| offer.to_str().unwrap_or_default()).collect();
    let mut headers = HeaderMap::with_capacity(4);
    match sub_protocol::choose(offers.into_iter()) {
        SubProtocolChoice::Accept => {}
        SubProtocolChoice::Echo(name) => {
            _ = headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name))
        }
        SubProtocolChoice::Refuse => {
            return Err(bad(
                "of the sub-protocols v12.stomp, v11.stomp, v10.stomp and stomp none is offered",
            ));
        }
    }
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let accept = HeaderValue::try_from(accept_of(key)).expect("Base64 is plain ASCII");
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(headers)
}

/// Returns the value of a header that must occur exactly once.
fn one(headers: &HeaderMap, name: HeaderName) -> Option<&[u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.as_bytes().trim_ascii();
    values.next().is_none().then_some(value)
}

/// Returns whether a list of tokens has this one, in any case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let lists = headers.get_all(name).iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b','));
    lists.map(<[u8]>::trim_ascii).any(|other| other.eq_ignore_ascii_case(token.as_bytes()))
}

/// Returns whether the key has 24 characters that encode 16 bytes.
fn is_key(key: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn status(change: &[(&str, Option<&str>)]) -> u16 {
        let mut headers = vec![
            ("Connection", "keep-alive, Upgrade"),
            ("Upgrade", "WebSocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        for (name, value) in change {
            headers.retain(|(other, _)| other != name || value.is_none_or(|value| value.starts_with('+')));
            headers.extend(value.map(|value| (*name, value.trim_start_matches('+'))));
        }
        let mut request = Request::builder().uri("/stomp");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        match answer(&request.body(()).unwrap().into_parts().0) {
            Ok(_) => 101,
            Err(problem) => problem.status.as_u16(),
        }
    }

    #[test]
    fn the_request_must_be_for_a_websocket_of_version_13() {
        assert_eq!(status(&[]), 101);
        assert_eq!(status(&[("Connection", Some("close"))]), 426);
        assert_eq!(status(&[("Upgrade", Some("h2c"))]), 426);
        assert_eq!(status(&[("Sec-WebSocket-Version", Some("8"))]), 426);
        assert_eq!(status(&[("Sec-WebSocket-Key", Some("short=="))]), 400);
        assert_eq!(status(&[("Sec-WebSocket-Key", Some("+AAAAAAAAAAAAAAAAAAAAAA=="))]), 400, "there are two");
        assert_eq!(status(&[("Sec-WebSocket-Protocol", Some("v12.stomp, x"))]), 101);
        assert_eq!(status(&[("Sec-WebSocket-Protocol", Some("mqtt"))]), 400);
    }
}
