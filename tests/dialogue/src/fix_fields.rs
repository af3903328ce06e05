//! The lines of a dialogue: fields that a client sends and fields that it must receive, with `|`
//! for SOH. Dialogues are played with and without a socket.

use std::collections::BTreeMap;

use pitlane_engine::time::{NS_PER_S, Timestamp};
use pitlane_protocols::fix::frame::check_sum;
use pitlane_protocols::fix::timestamp::TimestampText;

/// Values of names, from their first occurrence.
pub type Bound = BTreeMap<String, String>;

/// Inserts times and the values of names, and the time of an order.
pub fn filled(text: &str, now: Timestamp, bound: &Bound) -> String {
    let mut fields: Vec<String> = text
        .split('|')
        .map(|field| match field.split_once("=@") {
            Some((tag, offset)) => {
                let offset: i64 = offset.parse().expect("seconds from now");
                let at = now.0.wrapping_add_signed(offset * NS_PER_S as i64);
                format!("{tag}={}", stamp(Timestamp(at)))
            }
            None => match field.split_once("=$") {
                Some((tag, name)) => format!("{tag}={}", bound[name]),
                None => field.to_string(),
            },
        })
        .collect();
    let is_order = ["35=D", "35=F", "35=G", "35=q"].contains(&fields[0].as_str());
    if is_order && !fields.iter().any(|field| field.trim_start_matches('-').starts_with("60")) {
        fields.push(format!("60={}", stamp(now)));
    }
    fields.join("|").replace("|-60", "")
}

/// Checks that a message has these fields, and not those with a minus before them.
pub fn fits(expected: &str, message: &str, bound: &mut Bound) -> Result<(), String> {
    let fields: Vec<(&str, &str)> = message.split('|').filter_map(|field| field.split_once('=')).collect();
    let get = |tag: &str| fields.iter().find(|field| field.0 == tag).map(|field| field.1);
    for field in expected.split('|') {
        if let Some(tag) = field.strip_prefix('-') {
            if get(tag).is_some() {
                return Err(format!("{tag} should not be there: {message}"));
            }
            continue;
        }
        let (tag, value) = field.split_once('=').ok_or("a field has a value")?;
        let found = get(tag).ok_or_else(|| format!("{tag} is not there: {message}"))?;
        let fits = match value.strip_prefix('$') {
            Some(name) => bound.entry(name.to_string()).or_insert(found.to_string()) == found,
            None => match value.strip_suffix('*') {
                Some(beginning) => found.starts_with(beginning),
                None => found == value,
            },
        };
        if !fits {
            return Err(format!("{field}: {message}"));
        }
    }
    Ok(())
}

/// Returns a frame of FIX 4.4 from readable fields: missing fields of the header are added.
pub fn frame_of(text: &str, client: &str, number: u64, now: Timestamp) -> Vec<u8> {
    frame_in("FIX.4.4", text, client, number, now)
}

/// The same with another BeginString.
pub fn frame_in(begin_string: &str, text: &str, client: &str, number: u64, now: Timestamp) -> Vec<u8> {
    let has = |tag: &str| text.split('|').any(|field| field.starts_with(tag));
    let mut fields = text.trim_end_matches('|').splitn(2, '|');
    let msg_type = fields.next().unwrap_or_default();
    let rest = fields.next().unwrap_or_default();
    let mut body = format!("{msg_type}|");
    for (tag, value) in
        [("49=", client.to_string()), ("56=", "PITLANE".to_string()), ("34=", number.to_string())]
    {
        if !has(tag) {
            body += &format!("{tag}{value}|");
        }
    }
    if !has("52=") {
        body += &format!("52={}|", stamp(now));
    }
    if !rest.is_empty() {
        body += rest;
        body += "|";
    }
    // A field to be left out is written without a value and with a minus before it.
    let body: String = body.split_inclusive('|').filter(|field| !field.starts_with('-')).collect();
    sealed(begin_string, &body)
}

/// Returns a frame with its length and checksum.
pub fn sealed(begin_string: &str, body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut bytes = format!("8={begin_string}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = check_sum(&bytes);
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

/// Returns the client's sequence number after this message, if its next number was `number`.
pub fn number_after(text: &str, number: u64) -> u64 {
    if text.contains("|43=Y") {
        return number;
    }
    let named = text.split('|').find_map(|field| field.strip_prefix("34="));
    named.and_then(|number| number.parse().ok()).unwrap_or(number).saturating_add(1)
}

fn stamp(at: Timestamp) -> String {
    String::from_utf8_lossy(TimestampText::default().text(at)).into_owned()
}
