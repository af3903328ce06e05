//! Addresses of venues that speak WebSocket or HTTP.

use std::net::IpAddr;

/// A parsed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VenueUrl {
    pub is_tls: bool,
    pub host: String,
    pub port: u16,
    /// Begins with a slash.
    pub path: String,
}

impl VenueUrl {
    /// Parses `wss://host[:port]/path`. `ws://` is accepted for addresses of this host only, so
    /// that no key is sent unencrypted.
    pub fn parse(text: &str) -> Result<VenueUrl, String> {
        VenueUrl::parse_with(text, "wss", "ws")
    }

    /// Parses `https://host[:port]/path`; `http://` for addresses of this host only.
    pub fn parse_https(text: &str) -> Result<VenueUrl, String> {
        VenueUrl::parse_with(text, "https", "http")
    }

    fn parse_with(text: &str, secured: &str, plain: &str) -> Result<VenueUrl, String> {
        let wrong = || format!("it must be {secured}://HOST[:PORT]/PATH, not {text:?}");
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let is_tls = scheme == secured;
        if !is_tls && scheme != plain {
            return Err(wrong());
        }
        let (authority, path) =
            rest.split_once('/').map_or((rest, ""), |(authority, path)| (authority, path));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
            None => (authority, if is_tls { 443 } else { 80 }),
        };
        let is_name = !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        let is_path = path.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_name || !is_path || port == 0 {
            return Err(wrong());
        }
        let url = VenueUrl { is_tls, host: host.to_string(), port, path: format!("/{path}") };
        if !is_tls && !url.is_loopback() {
            return Err(format!("{plain}:// is allowed for loopback addresses only; use {secured}://"));
        }
        Ok(url)
    }

    /// Returns host and port, as a request names them.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub fn is_loopback(&self) -> bool {
        self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_a_port_and_a_path() {
        let url = VenueUrl::parse("wss://ws-api.testnet.binance.vision/ws-api/v3").unwrap();
        assert_eq!((url.is_tls, url.host.as_str(), url.port), (true, "ws-api.testnet.binance.vision", 443));
        assert_eq!(url.path, "/ws-api/v3");
        let url = VenueUrl::parse("ws://127.0.0.1:8099").unwrap();
        assert_eq!(
            (url.is_tls, url.host.as_str(), url.port, url.path.as_str()),
            (false, "127.0.0.1", 8099, "/")
        );
    }

    #[test]
    fn addresses_of_http_have_schemes_of_their_own() {
        let url = VenueUrl::parse_https("https://api.binance.com/api/v3/exchangeInfo").unwrap();
        assert_eq!((url.is_tls, url.port, url.path.as_str()), (true, 443, "/api/v3/exchangeInfo"));
        assert!(!VenueUrl::parse_https("http://127.0.0.1:8099/x").unwrap().is_tls);
        assert!(VenueUrl::parse_https("http://api.binance.com/x").unwrap_err().contains("https://"));
        assert!(VenueUrl::parse_https("wss://api.binance.com/x").unwrap_err().contains("must be https://"));
    }

    #[test]
    fn keys_are_not_sent_unencrypted_and_mistakes_are_named() {
        assert!(VenueUrl::parse("ws://api.example.com/x").unwrap_err().contains("wss://"));
        for text in [
            "",
            "host",
            "http://host/",
            "wss:///x",
            "wss://host:0/",
            "wss://host:70000/",
            "wss://a b/",
            "wss://h/a b",
        ] {
            assert!(VenueUrl::parse(text).unwrap_err().contains("must be"), "{text}");
        }
    }
}
