//! The web page: files built from `web/`, part of the binary. They are compressed at build time; a
//! request only selects one.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderMap, HeaderValue};
use xxhash_rust::xxh3::xxh3_64;

use super::content_coding::AcceptedCodings;
use super::problem::Problem;
use super::request_context::RequestContext;
use super::response::{HttpResponse, ResponseKind};

/// Files that `build.rs` found: names below `web/dist/page`, and their contents.
static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// Shown where the page was not built.
static UNBUILT: &str = include_str!("page.html");

pub(crate) fn show(page: &WebPage, ctx: &RequestContext<'_>) -> Result<HttpResponse, Problem> {
    let file = page.find(ctx.head.uri.path()).ok_or_else(Problem::not_found)?;
    let file_sent = file.encoded(&ctx.head.headers);
    let kind = ResponseKind::Asset { content_type: file.content_type, is_immutable: file.is_immutable };
    if ctx.has(&file_sent.etag) {
        let known =
            HttpResponse::text(ResponseKind::Empty, Bytes::new()).with_status(StatusCode::NOT_MODIFIED);
        return Ok(known.with_etag(file_sent.etag));
    }
    Ok(HttpResponse::text(kind, Bytes::from_static(file_sent.bytes))
        .with_encoding(file_sent.encoding)
        .with_etag(file_sent.etag))
}

/// A file in its available encodings.
#[derive(Debug)]
pub(crate) struct PageFile {
    pub content_type: &'static str,
    /// Whether its name changes with its content, so that a client may cache it for ever.
    pub is_immutable: bool,
    plain: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
    hash: u64,
}

/// A file as a client gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedFile {
    pub bytes: &'static [u8],
    pub encoding: Option<&'static str>,
    pub etag: HeaderValue,
}

#[derive(Debug)]
pub(crate) struct WebPage {
    files: BTreeMap<&'static str, PageFile>,
}

impl WebPage {
    pub(crate) fn new() -> WebPage {
        WebPage::of(FILES)
    }

    fn of(all: &[(&'static str, &'static [u8])]) -> WebPage {
        let bytes_of = |name: String| all.iter().find(|(other, _)| *other == name).map(|(_, bytes)| *bytes);
        let is_encoded = |name: &str| name.ends_with(".br") || name.ends_with(".gz");
        let mut files: BTreeMap<_, _> = all
            .iter()
            .filter(|(name, _)| !is_encoded(name))
            .map(|&(name, plain)| {
                let (brotli, gzip) = (bytes_of(format!("{name}.br")), bytes_of(format!("{name}.gz")));
                (name, PageFile::new(name, plain, brotli, gzip))
            })
            .collect();
        files
            .entry("index.html")
            .or_insert_with(|| PageFile::new("index.html", UNBUILT.as_bytes(), None, None));
        WebPage { files }
    }

    /// Returns the file for the path of a request.
    pub(crate) fn find(&self, path: &str) -> Option<&PageFile> {
        match path.strip_prefix('/')? {
            "" => self.files.get("index.html"),
            name => self.files.get(name),
        }
    }
}

impl PageFile {
    fn new(
        name: &str,
        plain: &'static [u8],
        brotli: Option<&'static [u8]>,
        gzip: Option<&'static [u8]>,
    ) -> PageFile {
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let content_type = match extension {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "json" => "application/json",
            _ => "application/octet-stream",
        };
        let is_immutable = name.starts_with("assets/");
        PageFile { content_type, is_immutable, plain, brotli, gzip, hash: xxh3_64(plain) }
    }

    /// Returns the smallest encoding that the client accepts. Each has its own ETag, since their
    /// octets differ.
    pub(crate) fn encoded(&self, headers: &HeaderMap) -> EncodedFile {
        let accepted = AcceptedCodings::of(headers);
        let encodings = [("br", self.brotli), ("gzip", self.gzip)];
        let found = encodings.into_iter().find_map(|(encoding, bytes)| {
            Some((encoding, bytes?)).filter(|_| accepted.quality(encoding) > 0)
        });
        let (encoding, bytes) = match found {
            Some((encoding, bytes)) => (Some(encoding), bytes),
            None => (None, self.plain),
        };
        let etag = format!(
            "\"{:016x}{}\"",
            self.hash,
            encoding.map_or(String::new(), |encoding| format!("-{encoding}"))
        );
        EncodedFile {
            bytes,
            encoding,
            etag: HeaderValue::try_from(etag).expect("digits and letters in quotation marks"),
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::ACCEPT_ENCODING;

    use super::*;

    const BUILT: &[(&str, &[u8])] = &[
        ("assets/a-1.js", b"plain"),
        ("assets/a-1.js.br", b"b"),
        ("assets/a-1.js.gz", b"gz"),
        ("favicon.svg", b"<svg/>"),
        ("index.html", b"<html>"),
    ];

    fn headers(accepted: Option<&'static str>) -> HeaderMap {
        accepted.map(|codings| (ACCEPT_ENCODING, HeaderValue::from_static(codings))).into_iter().collect()
    }

    #[test]
    fn a_client_gets_the_smallest_encoding_it_accepts() {
        let page = WebPage::of(BUILT);
        let file = page.find("/assets/a-1.js").unwrap();
        assert!(file.is_immutable);
        type EncodingCase = (Option<&'static str>, Option<&'static str>, &'static [u8]);
        let cases: [EncodingCase; 8] = [
            (Some("gzip, deflate, br"), Some("br"), b"b"),
            (Some("gzip"), Some("gzip"), b"gz"),
            (Some("br;q=0, gzip;q=0.5"), Some("gzip"), b"gz"),
            (Some("br;q=0.000"), None, b"plain"),
            (Some("BR"), Some("br"), b"b"),
            (Some("brotli"), None, b"plain"),
            (Some(""), None, b"plain"),
            (None, None, b"plain"),
        ];
        for (accepted, encoding, bytes) in cases {
            let file_sent = file.encoded(&headers(accepted));
            assert_eq!((file_sent.encoding, file_sent.bytes), (encoding, bytes), "{accepted:?}");
        }
    }

    #[test]
    fn each_encoding_and_content_has_its_own_etag() {
        let page = WebPage::of(BUILT);
        let tag = |path: &str, accepted| page.find(path).unwrap().encoded(&headers(Some(accepted))).etag;
        let tags = [
            tag("/assets/a-1.js", ""),
            tag("/assets/a-1.js", "br"),
            tag("/assets/a-1.js", "gzip"),
            tag("/", ""),
        ];
        for (at, one) in tags.iter().enumerate() {
            assert!(!tags[..at].contains(one), "{one:?}");
        }
        assert_eq!(tag("/", ""), tag("/index.html", "br"));
    }

    #[test]
    fn there_is_always_a_page_and_only_its_files_are_served() {
        let unbuilt = WebPage::of(&[]);
        let bytes = unbuilt.find("/").unwrap().encoded(&headers(None)).bytes;
        assert!(std::str::from_utf8(bytes).unwrap().contains("make run"));
        for path in ["", "index.html", "/assets", "/assets/", "/assets/a-1.js.br", "/../Cargo.toml", "//"] {
            assert!(WebPage::of(BUILT).find(path).is_none(), "{path}");
        }
    }
}
