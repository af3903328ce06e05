//! Tests with requests, whole and split at every position, against a naive parser of the whole.

use pitlane_engine::rng::Rng;

use super::*;

/// Returns the result for bytes that are split at `cuts`: the fault, or whether a head is open at
/// the end.
fn verdict(bytes: &[u8], cuts: &[usize]) -> Result<bool, FramingFault> {
    let mut framing = Framing::default();
    let mut start = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        framing.feed(&bytes[start..cut])?;
        start = cut;
    }
    Ok(framing.is_in_head())
}

/// Checks the result for every split.
fn check(text: &str, expected: Result<bool, FramingFault>) {
    let bytes = text.as_bytes();
    let verdict_of = |cuts: &[usize]| verdict(bytes, cuts);
    assert_eq!(verdict_of(&[]), expected, "{text:?}");
    for cut in 0..=bytes.len() {
        assert_eq!(verdict_of(&[cut]), expected, "{text:?} cut at {cut}");
    }
    let everywhere: Vec<_> = (1..bytes.len()).collect();
    assert_eq!(verdict_of(&everywhere), expected, "{text:?} byte by byte");
}

#[test]
fn requests_follow_each_other() {
    check("", Ok(false));
    check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(false));
    check("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", Ok(true));
    check("GET / HTTP/1.1\r\nHost: a\r\n", Ok(true));
    check("\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(false));
    check("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET", Ok(true));
    check("POST / HTTP/1.1\r\ncontent-length:3\r\n\r\nabc", Ok(false));
    check("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\n\r\n", Ok(false));
}

#[test]
fn a_chunked_body_is_followed_to_its_end() {
    let head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    check(&format!("{head}3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n"), Ok(false));
    check(&format!("{head}0\r\nTrailer: 1\r\n\r\nGET"), Ok(true));
    check(&format!("{head}3\r\nabc\r\n"), Ok(false));
    check(&format!("{head}3\r\nabcd\r\n"), Err(FramingFault::BadChunk));
    check(&format!("{head}x\r\n"), Err(FramingFault::BadChunk));
    check(&format!("{head}-1\r\n"), Err(FramingFault::BadChunk));
    check(&format!("{head}10000000000000000\r\n"), Err(FramingFault::BadChunk));
}

#[test]
fn an_ambiguous_request_is_a_fault() {
    let cases = [
        ("X: 1\nY: 2", FramingFault::BareLineFeed),
        ("X: 1\n", FramingFault::BareLineFeed),
        ("Content-Length: 3\r\nTransfer-Encoding: chunked", FramingFault::LengthAndCoding),
        ("Transfer-Encoding: chunked\r\nX: 1\r\nContent-Length: 3", FramingFault::LengthAndCoding),
        ("Content-Length: 3\r\nContent-Length: 3", FramingFault::LengthTwice),
        ("Content-Length: 3\r\nCONTENT-LENGTH: 4", FramingFault::LengthTwice),
        ("Content-Length: 3, 3", FramingFault::BadLength),
        ("Content-Length: +3", FramingFault::BadLength),
        ("Content-Length:", FramingFault::BadLength),
        ("Content-Length: 99999999999999999999", FramingFault::BadLength),
        ("Transfer-Encoding: gzip, chunked", FramingFault::BadCoding),
        ("Transfer-Encoding: identity", FramingFault::BadCoding),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", FramingFault::BadCoding),
        ("Transfer-Encoding: xchunked", FramingFault::BadCoding),
    ];
    for (headers, fault) in cases {
        check(&format!("POST / HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n"), Err(fault));
    }
}

#[test]
fn a_request_that_only_resembles_an_ambiguous_one_is_accepted() {
    let head = "POST / HTTP/1.1\r\nContent-Lengthy: x\r\nX: Content-Length: 3\r\nContent: 1\r\nT: 1\r\n";
    check(&format!("{head}\r\n"), Ok(false));
    let body = "Content-Length: 1\r\nContent-Length: 2\r\nTransfer-Encoding: x\r\n";
    check(&format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()), Ok(false));
    // A line longer than any buffer.
    check(&format!("GET /{} HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(300), "y".repeat(300)), Ok(false));
}

#[test]
fn a_header_is_found_wherever_its_line_is_split() {
    // An earlier version forgot a line after its 64th byte if it came in two reads.
    for spaces in [0, 1, 40, 63, 64, 65, 200, 4_000] {
        let blank = " ".repeat(spaces);
        let both = format!("Content-Length:{blank}3\r\nTransfer-Encoding:{blank}chunked\r\n");
        check_sparsely(&format!("POST / HTTP/1.1\r\n{both}\r\n"), Err(FramingFault::LengthAndCoding));
        let chunk = format!("Transfer-Encoding: chunked\r\n\r\n3;{}\r\nabc\r\n0\r\n\r\n", "x".repeat(spaces));
        check_sparsely(&format!("POST / HTTP/1.1\r\n{chunk}"), Ok(false));
    }
}

/// As [`check`], with splits around the positions where a buffer might end.
fn check_sparsely(text: &str, expected: Result<bool, FramingFault>) {
    for cut in (0..=text.len()).step_by(31) {
        assert_eq!(verdict(text.as_bytes(), &[cut]), expected, "cut at {cut}");
    }
    let everywhere: Vec<_> = (1..text.len()).collect();
    assert_eq!(verdict(text.as_bytes(), &everywhere), expected);
}

/// Applies the same rules to the whole text, line by line.
fn naive(text: &[u8]) -> Result<bool, FramingFault> {
    let mut rest = text;
    while !rest.is_empty() {
        // Empty lines before a request.
        let Some(line) = naive_line(&mut rest)? else { return Ok(true) };
        if line.is_empty() {
            continue;
        }
        let (mut length, mut chunked) = (None, false);
        loop {
            let Some(line) = naive_line(&mut rest)? else { return Ok(true) };
            if line.is_empty() {
                break;
            }
            if let Some(value) = naive_value(line, "content-length") {
                let digits = value.bytes().all(|b| b.is_ascii_digit()) && !value.is_empty();
                let number = value.parse::<u64>().ok().filter(|_| digits).ok_or(FramingFault::BadLength)?;
                if length.replace(number).is_some() {
                    return Err(FramingFault::LengthTwice);
                }
            } else if let Some(value) = naive_value(line, "transfer-encoding") {
                if std::mem::replace(&mut chunked, true) || !value.eq_ignore_ascii_case("chunked") {
                    return Err(FramingFault::BadCoding);
                }
            } else {
                continue;
            }
            if chunked && length.is_some() {
                return Err(FramingFault::LengthAndCoding);
            }
        }
        if chunked {
            if !naive_chunks(&mut rest)? {
                return Ok(false);
            }
        } else {
            rest = rest.get(length.unwrap_or(0) as usize..).unwrap_or_default();
        }
    }
    Ok(false)
}

/// Returns the next line without its end; `None` if it is incomplete.
fn naive_line<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, FramingFault> {
    let Some(end) = rest.iter().position(|b| *b == b'\n') else { return Ok(None) };
    let line = rest[..end].strip_suffix(b"\r").ok_or(FramingFault::BareLineFeed)?;
    *rest = &rest[end + 1..];
    Ok(Some(line))
}

fn naive_value(line: &[u8], name: &str) -> Option<String> {
    let line = String::from_utf8_lossy(line);
    let (header_name, value) = line.split_once(':')?;
    let header_name = header_name.trim_end_matches(|c: char| c.is_ascii_whitespace());
    let value = value.trim_matches(|c: char| c.is_ascii_whitespace());
    header_name.eq_ignore_ascii_case(name).then(|| value.to_string())
}

/// Returns whether all chunks and the trailer are complete.
fn naive_chunks(rest: &mut &[u8]) -> Result<bool, FramingFault> {
    loop {
        let Some(line) = naive_line(rest)? else { return Ok(false) };
        let text = String::from_utf8_lossy(line).into_owned();
        let size = text.split(';').next().unwrap_or_default();
        let size = size.trim_matches(|c: char| c.is_ascii_whitespace());
        let is_hex = !size.is_empty() && size.bytes().all(|b| b.is_ascii_hexdigit());
        let size = u64::from_str_radix(size, 16).ok().filter(|_| is_hex).ok_or(FramingFault::BadChunk)?;
        if size == 0 {
            break;
        }
        *rest = rest.get(size as usize..).unwrap_or_default();
        match naive_line(rest)? {
            Some(b"") => {}
            Some(_) => return Err(FramingFault::BadChunk),
            None => return Ok(false),
        }
    }
    loop {
        match naive_line(rest)? {
            Some(b"") => return Ok(true),
            Some(_) => {}
            None => return Ok(false),
        }
    }
}

/// Generates requests from tokens that matter, some of them damaged.
fn any_request(chance: &mut Rng) -> Vec<u8> {
    const WORDS: [&str; 28] = [
        "POST / HTTP/1.1\r\n",
        "GET /a HTTP/1.1\r\n",
        "Host: a\r\n",
        "Content-Length: 3\r\n",
        "content-length:\t5 \r\n",
        "CONTENT-LENGTH : 0\r\n",
        "Content-Length: 3, 3\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length:",
        "Content-Lengthy: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding:CHUNKED\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding:",
        "X: Transfer-Encoding: chunked\r\n",
        "\r\n",
        "\r\n",
        "\n",
        "\r",
        "abc",
        "0\r\n\r\n",
        "3\r\nabc\r\n",
        "a;x=1\r\n0123456789\r\n",
        "g\r\n",
        "3\r\nabcd\r\n",
        " ",
        "chunked",
        ";",
    ];
    let mut text = Vec::new();
    for _ in 0..chance.below(24) + 1 {
        let token = WORDS[chance.index(WORDS.len())];
        if chance.below(8) == 0 {
            text.extend(std::iter::repeat_n(b' ', chance.index(130)));
        }
        text.extend_from_slice(token.as_bytes());
    }
    if chance.below(4) == 0 {
        let at = chance.index(text.len());
        text[at] = chance.byte();
    }
    text
}

#[test]
fn every_split_of_a_request_has_the_verdict_of_the_whole() {
    let mut chance = Rng::new(20);
    for _ in 0..20_000 {
        let text = any_request(&mut chance);
        let whole = verdict(&text, &[]);
        let text_shown = String::from_utf8_lossy(&text);
        if text.is_ascii() {
            let is_open = naive(&text);
            // Whether a head is open is only checked where it is known to have begun.
            assert_eq!(whole.map(|_| ()), is_open.map(|_| ()), "{text_shown:?}");
        }
        let mut cuts: Vec<_> = (0..chance.below(6)).map(|_| chance.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        assert_eq!(verdict(&text, &cuts), whole, "{text_shown:?} cut at {cuts:?}");
        let everywhere: Vec<_> = (1..text.len()).collect();
        assert_eq!(verdict(&text, &everywhere), whole, "{text_shown:?} byte by byte");
    }
}
