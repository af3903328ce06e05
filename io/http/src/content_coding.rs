//! Content codings that a client accepts (RFC 9110, 12.5.3), and validators of coded responses.

use hyper::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue, IF_NONE_MATCH};

/// Largest quality, in thousandths.
const QUALITY_MAX: u16 = 1_000;

/// The preferences of one request. A header that is not well formed accepts nothing, so its sender
/// gets the response as it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptedCodings<'a>(Vec<(&'a str, u16)>);

impl<'a> AcceptedCodings<'a> {
    pub(crate) fn of(headers: &'a HeaderMap) -> AcceptedCodings<'a> {
        let mut all = Vec::new();
        for value in headers.get_all(ACCEPT_ENCODING) {
            let parsed = value.to_str().ok().map(|list| list.split(',').map(str::trim));
            let Some(list) = parsed else { return AcceptedCodings::default() };
            for one in list.filter(|one| !one.is_empty()) {
                let Some(preference) = preference(one) else { return AcceptedCodings::default() };
                all.push(preference);
            }
        }
        AcceptedCodings(all)
    }

    /// Returns the quality of a coding in thousandths; zero if it is not accepted.
    pub(crate) fn quality(&self, coding: &str) -> u16 {
        self.named(coding).or_else(|| self.named("*")).unwrap_or(0)
    }

    /// Returns the coding that the client prefers; of equal ones the first. `None`: the response is
    /// sent as it is, which every client accepts unless it says otherwise.
    pub(crate) fn preferred(&self, codings: &[&'static str]) -> Option<&'static str> {
        let plain = self.named("identity").unwrap_or(0);
        let mut best = None;
        for coding in codings {
            let quality = self.quality(coding);
            if quality > 0 && quality >= plain && best.is_none_or(|(most, _)| quality > most) {
                best = Some((quality, *coding));
            }
        }
        best.map(|(_, coding)| coding)
    }

    fn named(&self, coding: &str) -> Option<u16> {
        let found = self.0.iter().find(|(name, _)| name.eq_ignore_ascii_case(coding));
        found.map(|(_, quality)| *quality)
    }
}

/// Parses `gzip` or `gzip;q=0.5`.
fn preference(text: &str) -> Option<(&str, u16)> {
    let (name, parameter) = match text.split_once(';') {
        Some((name, parameter)) => (name.trim_end(), Some(parameter.trim_start())),
        None => (text, None),
    };
    let is_token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
    if name.is_empty() || !name.bytes().all(is_token) {
        return None;
    }
    let quality = match parameter {
        None => QUALITY_MAX,
        Some(text) => quality(text.strip_prefix("q=").or(text.strip_prefix("Q="))?)?,
    };
    Some((name, quality))
}

/// Parses a quality: 0 or 1 with at most three decimals.
fn quality(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if !matches!(whole, "0" | "1") || decimals.len() > 3 {
        return None;
    }
    let mut quality = if whole == "1" { QUALITY_MAX } else { 0 };
    for (digit, worth) in decimals.bytes().zip([100, 10, 1]) {
        quality += u16::from(digit.is_ascii_digit().then(|| digit - b'0')?) * worth;
    }
    (quality <= QUALITY_MAX).then_some(quality)
}

/// Returns the weak form of an ETag. A response that is compressed on the way has other octets each
/// time the library changes, but the same meaning.
pub(crate) fn weak(etag: &HeaderValue) -> HeaderValue {
    let text = etag.to_str().unwrap_or_default();
    if text.starts_with("W/") {
        return etag.clone();
    }
    HeaderValue::try_from(["W/", text].concat()).unwrap_or_else(|_| etag.clone())
}

/// Returns whether the client holds a response under the weak form of this ETag.
pub(crate) fn holds_weak(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let weak = weak(etag);
    let values = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|tag| tag.trim().as_bytes() == weak.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let value = |text: &&str| (ACCEPT_ENCODING, HeaderValue::from_str(text).unwrap());
        values.iter().map(value).collect()
    }

    #[test]
    fn a_client_gets_the_coding_that_it_prefers() {
        for (accepted, coding) in [
            (&["gzip, deflate, br, zstd"][..], Some("zstd")),
            (&["gzip"], Some("gzip")),
            (&["GZip"], Some("gzip")),
            (&["gzip", "zstd;q=0.5"], Some("gzip")),
            (&["gzip;q=0.5, zstd;q=0.5"], Some("zstd")),
            (&["gzip;q=0.501, zstd;q=0.5"], Some("gzip")),
            (&["gzip ; q=1.000"], Some("gzip")),
            (&["zstd;q=0, *"], Some("gzip")),
            (&["*"], Some("zstd")),
            (&["*;q=0"], None),
            (&["zstd;q=0.000"], None),
            (&["identity, gzip;q=0.5"], None),
            (&["identity;q=0.5, gzip;q=0.5"], Some("gzip")),
            (&["identity"], None),
            (&["identity;q=0, br"], None),
            (&["br, deflate"], None),
            (&[""], None),
            (&[], None),
        ] {
            let headers = headers(accepted);
            let codings = AcceptedCodings::of(&headers);
            assert_eq!(codings.preferred(&["zstd", "gzip"]), coding, "{accepted:?}");
        }
    }

    #[test]
    fn a_header_that_is_not_well_formed_accepts_nothing() {
        for bad in [
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.0001",
            "gzip;q=",
            "gzip;q=a",
            "gzip;q=0.5x",
            "gzip;level=9",
            "gzip zstd",
            "gzip;q=1;q=1",
            ";q=1",
            "zstd, gz\u{e9}p",
            "(gzip)",
        ] {
            let headers =
                HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_bytes(bad.as_bytes()).unwrap())]);
            assert_eq!(AcceptedCodings::of(&headers), AcceptedCodings::default(), "{bad}");
        }
    }

    #[test]
    fn a_weak_etag_is_recognised() {
        let strong = HeaderValue::from_static("\"1f\"");
        assert_eq!(weak(&strong), "W/\"1f\"");
        assert_eq!(weak(&weak(&strong)), "W/\"1f\"");
        let sent = |text| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(text))]);
        assert!(holds_weak(&sent("\"2\", W/\"1f\""), &strong));
        assert!(!holds_weak(&sent("\"1f\""), &strong) && !holds_weak(&HeaderMap::new(), &strong));
    }
}
