//! Frames come back, and no other bytes are frames.

use pitlane_engine::command::{Command, CommandKind};
use pitlane_engine::id::{AccountId, IntId, SecurityId, Source, StrategyId};
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::{OrderKind, Side, Terms, Tif};

use super::*;
use crate::remote::strategy::{RemoteReply, RemoteRequest};

fn strategy_frames() -> Vec<StrategyFrame> {
    let (name, body) = ("signal".to_string(), b"{\"a\":1}".to_vec());
    vec![
        StrategyFrame::Login { version: LINK_VERSION, strategy: "MOMENTUM".into(), token: "pit_x".into() },
        StrategyFrame::Request { number: 7, request: RemoteRequest::Bye { incarnation: 9 }.encode() },
        StrategyFrame::Publish { publisher: 1, number: 2, name, body },
        StrategyFrame::Acknowledge { number: 3 },
    ]
}

fn server_frames() -> Vec<ServerFrame> {
    let (from, name, body) = ("PAIRS".to_string(), "signal".to_string(), b"1".to_vec());
    vec![
        ServerFrame::LoggedIn { version: LINK_VERSION, server: "pitlane".into(), idle_ms: 9_000 },
        LinkRefusal::Idle.frame(),
        ServerFrame::Reply { number: 7, reply: vec![1, 8] },
        ServerFrame::Generic { number: 4, from, name, body },
        ServerFrame::Published { number: 2 },
    ]
}

/// Returns a frame without its length, as a receiver gets it.
fn received(bytes: &[u8]) -> Vec<u8> {
    let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
    buffer.extend(bytes);
    let frame = buffer.next_frame().unwrap().expect("it is whole").to_vec();
    assert!(!buffer.has_part() && buffer.next_frame() == Ok(None));
    frame
}

#[test]
fn frames_come_back_and_no_part_of_one_is_another() {
    for frame in strategy_frames() {
        let bytes = received(&frame.encode());
        assert_eq!(StrategyFrame::decode(&bytes), Ok(frame.clone()));
        assert!(matches!(ServerFrame::decode(&bytes), Err(FrameError::Kind(_))));
        // A request is read up to the end of its frame; its own codec finds what is missing.
        let fixed = if matches!(frame, StrategyFrame::Request { .. }) { 9 } else { bytes.len() };
        for cut in 0..fixed {
            assert!(StrategyFrame::decode(&bytes[..cut]).is_err(), "{frame:?} cut at {cut}");
        }
    }
    for frame in server_frames() {
        let bytes = received(&frame.encode());
        assert_eq!(ServerFrame::decode(&bytes), Ok(frame.clone()));
        let fixed = if matches!(frame, ServerFrame::Reply { .. }) { 9 } else { bytes.len() };
        for cut in 0..fixed {
            assert!(ServerFrame::decode(&bytes[..cut]).is_err(), "{frame:?} cut at {cut}");
        }
    }
    for batch in [ServerFrame::Events(vec![1, 2]), ServerFrame::Prices(Vec::new())] {
        assert_eq!(ServerFrame::decode(&received(&batch.encode())), Ok(batch));
    }
}

#[test]
fn bytes_after_a_frame_are_damage() {
    for frame in strategy_frames().into_iter().filter(|frame| !matches!(frame, StrategyFrame::Request { .. }))
    {
        let mut bytes = received(&frame.encode());
        bytes.push(0);
        assert!(matches!(StrategyFrame::decode(&bytes), Err(FrameError::Damaged(_))), "{frame:?}");
    }
}

#[test]
fn frames_arrive_in_any_portions() {
    let all: Vec<u8> = strategy_frames().iter().flat_map(StrategyFrame::encode).collect();
    for portion in [1, 2, 3, 5, all.len()] {
        let (mut buffer, mut decoded) = (FrameBuffer::new(FRAME_BYTES_MAX), Vec::new());
        for bytes in all.chunks(portion) {
            buffer.extend(bytes);
            while let Some(frame) = buffer.next_frame().unwrap() {
                decoded.push(StrategyFrame::decode(frame).unwrap());
            }
        }
        assert_eq!(decoded, strategy_frames(), "in portions of {portion}");
    }
}

#[test]
fn a_frame_beyond_the_limit_is_refused_before_its_body_arrives() {
    let mut buffer = FrameBuffer::new(LOGIN_BYTES_MAX);
    let length = u32::try_from(LOGIN_BYTES_MAX).unwrap() + 1;
    buffer.extend(&length.to_le_bytes());
    assert_eq!(buffer.next_frame(), Err(FrameError::Length { length, max: LOGIN_BYTES_MAX }));
    buffer.set_max(FRAME_BYTES_MAX);
    assert_eq!(buffer.next_frame(), Ok(None), "after the login it may be longer");
    let mut empty = FrameBuffer::new(LOGIN_BYTES_MAX);
    empty.extend(&[0; 4]);
    assert!(empty.next_frame().is_err());
    // A client of another protocol.
    let mut http = FrameBuffer::new(LOGIN_BYTES_MAX);
    http.extend(b"GET / HTTP/1.1\r\n\r\n");
    assert!(http.next_frame().is_err());
}

#[test]
fn a_frame_waits_for_its_rest_and_may_be_as_long_as_the_limit() {
    let mut buffer = FrameBuffer::new(3);
    assert!(!buffer.has_part());
    buffer.extend(&[3, 0, 0, 0, 7]);
    assert_eq!(buffer.next_frame(), Ok(None));
    assert!(buffer.has_part());
    buffer.extend(&[8, 9, 1]);
    assert_eq!(buffer.next_frame(), Ok(Some(&[7, 8, 9][..])));
    assert!(buffer.has_part(), "of the next one");
}

#[test]
fn bytes_that_are_no_frame_are_described() {
    let short = DecodeError { at: 3, problem: DecodeProblem::Short };
    for (error, text) in [
        (FrameError::Length { length: 9, max: 4 }, "a frame has 9 bytes; it must have 1 to 4".to_string()),
        (FrameError::Kind(77), "a frame has the unknown kind 77".to_string()),
        (FrameError::Damaged(short), short.to_string()),
        (FrameError::Rule("names are short"), "names are short".to_string()),
    ] {
        assert_eq!(LinkRefusal::BadFrame(error).to_string(), text);
    }
}

#[test]
fn a_login_of_another_version_is_known_as_such() {
    let bytes = [kind::LOGIN, LINK_VERSION + 1, 0xff, 0xff];
    let version = LINK_VERSION + 1;
    let login = StrategyFrame::Login { version, strategy: String::new(), token: String::new() };
    assert_eq!(StrategyFrame::decode(&bytes), Ok(login));
    assert!(LinkRefusal::BadVersion(version).to_string().contains("not 2"));
}

/// The page for developers of processes in other languages lists every code, with whether another
/// attempt may succeed.
#[test]
fn the_page_lists_every_refusal() {
    let page = include_str!("../../../../docs/strategy-link.md");
    let refusals = [
        LinkRefusal::BadFrame(FrameError::Kind(0)),
        LinkRefusal::BadVersion(0),
        LinkRefusal::LoginRequired,
        LinkRefusal::LoginTimeout,
        LinkRefusal::BadToken,
        LinkRefusal::Forbidden,
        LinkRefusal::UnknownStrategy,
        LinkRefusal::TooManyConnections,
        LinkRefusal::Revoked,
        LinkRefusal::Idle,
    ];
    let rows: Vec<&str> =
        page.lines().filter(|line| line.ends_with(" yes |") || line.ends_with(" no |")).collect();
    assert_eq!(rows.len(), refusals.len());
    for refusal in refusals {
        let row = rows.iter().find(|row| row.starts_with(&format!("| `{}` |", refusal.code())));
        let retry = if refusal.may_retry() { " yes |" } else { " no |" };
        assert!(row.is_some_and(|row| row.ends_with(retry)), "{}", refusal.code());
    }
}

#[test]
fn the_page_states_the_limits() {
    let page = include_str!("../../../../docs/strategy-link.md").replace(',', "");
    for limit in [FRAME_BYTES_MAX, LOGIN_BYTES_MAX] {
        assert!(page.contains(&limit.to_string()), "{limit}");
    }
}

/// Returns the hexadecimal text of a frame, in lines as on the page.
fn hexadecimal(frame: &[u8]) -> String {
    let digits: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<&str> =
        digits.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    lines.join("\n")
}

#[test]
fn the_examples_of_the_page_are_frames() {
    let terms = Terms {
        qty: Qty::from_raw(500_000_000),
        limit: Price::from_raw(10_025_000_000),
        security: SecurityId(1),
        strategy: StrategyId(2),
        account: AccountId(1),
        side: Side::Sell,
        kind: OrderKind::Limit,
        tif: Tif::Gtc,
        limit_given: true,
        ..Terms::default()
    };
    let body = CommandKind::Submit { id: IntId::numbered(b's', 1), terms };
    let command = Command::new(Source::default(), 0, body);
    let beat = RemoteRequest::Heartbeat { incarnation: 9, prices: 5, received: vec![3], idle: true };
    let submit = RemoteRequest::Command { incarnation: 9, command };
    let request =
        |number, request: &RemoteRequest| StrategyFrame::Request { number, request: request.encode() };
    let (strategy, token) = ("MOMENTUM".to_string(), "pit_x".to_string());
    let page = include_str!("../../../../docs/strategy-link.md");
    for frame in [
        StrategyFrame::Login { version: LINK_VERSION, strategy, token }.encode(),
        request(7, &beat).encode(),
        request(8, &submit).encode(),
        ServerFrame::Reply { number: 8, reply: RemoteReply::Accepted.encode() }.encode(),
    ] {
        let text = hexadecimal(&frame);
        assert!(page.contains(&format!("```text\n{text}\n```")), "the page lacks\n{text}");
    }
}
