//! Any bytes into the FIX codec and into a FIX session, as acceptor and as initiator: no panic,
//! bounded memory, and the output obeys the rules.
//!
//! A session's bytes are a script: each step is a byte that selects the actor and a few more that
//! select the action.

use pitlane_engine::terms::Side;
use pitlane_protocols::decoded::Decoded;
use pitlane_protocols::fix::dictionary::{self, CustomField, DictionarySettings};
use pitlane_protocols::fix::fields::{FIELDS_MAX, Fields, FixMessage, read};
use pitlane_protocols::fix::frame::{self, FixFrameError};
use pitlane_protocols::fix::msg_type;
use pitlane_protocols::fix::order::OrderFields;
use pitlane_protocols::fix::venue::InitiatorSettings;
use pitlane_protocols::fix::version::FixVersion;

use crate::fix::{FixHarness, frame_of, seconds, settings};
use crate::venue;

const BODY_BYTES_MAX: usize = 4_096;

/// Most steps of one script, so that no input takes long.
const STEPS_MAX: usize = 400;

/// Decodes a stream of frames, valid and invalid: every byte is skipped or belongs to a frame, and
/// a frame is incomplete up to its end.
pub fn decode(bytes: &[u8]) {
    let mut rest = bytes;
    let mut fields = Fields::default();
    loop {
        match frame::decode(rest, BODY_BYTES_MAX) {
            Ok(Decoded::Incomplete) | Err(FixFrameError::TooLong) => return,
            Err(FixFrameError::Garbled { skip }) => {
                assert!(skip > 0 && skip <= rest.len(), "rubbish is passed over");
                rest = &rest[skip..];
            }
            Ok(Decoded::Message { message, consumed }) => {
                assert!(
                    consumed <= rest.len() && message.bytes.len() == consumed,
                    "a frame lies in its bytes"
                );
                for cut in [0, 1, consumed / 2, consumed - 1] {
                    let cut = frame::decode(&rest[..cut], BODY_BYTES_MAX);
                    assert!(matches!(cut, Ok(Decoded::Incomplete)), "half a frame is none: {cut:?}");
                }
                let message = read(message, &mut fields);
                assert!(message.len() <= FIELDS_MAX, "the table has an end");
                let values: usize = message.iter().map(|(_, value)| value.len()).sum();
                assert!(values < consumed, "values lie apart");
                check_dictionary(&message);
                let _ = OrderFields::read(&message);
                rest = &rest[consumed..];
            }
        }
    }
}

/// Checks a message with and without the rules of an operator. A fault is that of a field, and a
/// message without a fault has no wrong group.
fn check_dictionary(message: &FixMessage) {
    let fields = ["9001 INT D!,G", "112 STRING D A,B"].map(|text| CustomField::parse(text).expect("a field"));
    let groups = FixVersion::ALL.map(|version| dictionary::check_groups(message, version));
    for settings in [DictionarySettings::default(), DictionarySettings::new(fields.to_vec(), false)] {
        let faults = FixVersion::ALL.map(|version| dictionary::check(message, version, &settings));
        for fault in faults.into_iter().chain(groups).flatten() {
            assert!(fault.tag != 0 && fault.at <= message.len(), "{fault:?}");
        }
        for (fault, groups) in faults.into_iter().zip(groups) {
            if message.type_code() == msg_type::NEW_ORDER_SINGLE && fault.is_none() {
                assert_eq!(groups, None);
            }
        }
    }
}

/// Messages that a script can send.
const MESSAGES: [&str; 28] = [
    "35=0",
    "35=1|112=x",
    "35=1",
    "35=2|7=1|16=0",
    "35=2|7=2|16=3",
    "35=3|45=1",
    "35=4|123=Y|36=9",
    "35=4|36=12",
    "35=4|36=1",
    "35=5",
    "35=A|98=0|108=30",
    "35=A|34=1|98=0|108=30|141=Y",
    "35=D|11=a|55=S8|54=1|38=10|40=2|44=100|1=6|60=20261116-08:00:00",
    "35=D|11=b|55=S1|54=2|38=10|40=1|1=1|60=20261116-08:00:00",
    "35=D|11=c|55=S1|54=1|38=10|40=4|44=100|99=100|1=1|59=1|60=20261116-08:00:00",
    "35=D|97=Y|11=a|55=S8|54=1|38=10|40=2|44=100|1=6|60=20261116-08:00:00",
    "35=F|11=d|41=a|55=S8|54=1|60=20261116-08:00:00",
    "35=F|11=e|41=g|55=S8|54=1|60=20261116-08:00:00",
    "35=F|11=f|41=c|55=S1|54=1|60=20261116-08:00:00",
    "35=G|11=g|41=a|55=S8|54=1|38=12|40=2|44=101|60=20261116-08:00:00",
    "35=G|11=h|41=g|55=S8|54=1|38=3|40=2|44=101|60=20261116-08:00:00",
    "35=V|262=x",
    "35=V|262=x|263=1|264=0|265=1|267=1|269=0|146=1|55=S8",
    "35=D|11=i|453=1|448=A|447=D|452=1|802=1|523=B|55=S8|54=1|38=10|40=2|44=100|1=6|60=20261116-08:00:00",
    "35=D|11=j|453=2|448=A|447=D|452=1|55=S8|54=1|38=10|40=2|44=100|1=6|60=20261116-08:00:00",
    "35=D|11=k|5000=x|55=S8|54=1|38=10|40=2|44=100|1=6|60=20261116-08:00:00",
    "35=0|49=OTHER",
    "35=0|52=20200101-00:00:00",
];

const REPORTS: [&[&str]; 9] = [
    &["accept"],
    &["reject"],
    &["fill", "4", "100"],
    &["cancelled"],
    &["cancel"],
    &["expire"],
    &["cancel-refused"],
    &["replaced"],
    &["replace-refused"],
];

/// Runs a script for a session with its shard.
pub fn session(script: &[u8]) {
    let mut script = script.iter().copied();
    let Some(flags) = script.next() else { return };
    if flags & 32 != 0 {
        return with_venue(flags, script);
    }
    let mut settings = settings();
    settings.reset_on_logon = flags & 1 != 0;
    settings.validate = flags & 2 != 0;
    settings.next_expected = flags & 4 != 0;
    settings.resend_chunk = if flags & 8 != 0 { 3 } else { 0 };
    settings.cancel_on_disconnect_ns = (flags & 16 != 0).then_some(seconds(5));
    settings.message_bytes_max = BODY_BYTES_MAX;
    let mut harness = FixHarness::new(settings);
    let mut number = 1;
    // Sequence numbers sent on this connection: each is the next, or marked as a possible
    // duplicate.
    let mut sent = SentMessages::default();
    for _ in 0..STEPS_MAX {
        let Some(step) = script.next() else { break };
        let mut more = || script.next().unwrap_or(0);
        match step {
            0..=9 => {
                harness.disconnect();
                harness.connect();
                sent.begins = true;
                number = if step < 7 { 1 } else { number };
                harness.bytes(&frame_of("35=A|98=0|108=30", number, harness.now));
                number += 1;
            }
            10..=149 => {
                let text = MESSAGES[step as usize % MESSAGES.len()];
                harness.bytes(&frame_of(text, number, harness.now));
                number += 1;
            }
            150..=179 => {
                // The same with another number, at times marked as a duplicate.
                let (text, by) = (MESSAGES[more() as usize % MESSAGES.len()], more());
                let other = (number + by as u64 % 8).saturating_sub(4);
                let stamp = "20261116-08:00:00";
                let marked = text.replacen('|', &format!("|43=Y|122={stamp}|"), 1);
                let text = if by & 1 != 0 { &marked } else { text };
                harness.bytes(&frame_of(text, other, harness.now));
                number = number.max(other + 1);
            }
            180..=199 => {
                // A message with one byte changed.
                let mut bytes = frame_of(MESSAGES[more() as usize % MESSAGES.len()], number, harness.now);
                let at = more() as usize % bytes.len();
                bytes[at] = more();
                harness.bytes(&bytes);
            }
            200..=209 => {
                let count = more() as usize;
                let bytes: Vec<u8> = (0..count).map(|_| more()).collect();
                harness.bytes(&bytes);
            }
            210..=224 => harness.wait(seconds(more() as u64)),
            225..=244 => harness.venue(REPORTS[step as usize % REPORTS.len()]),
            245 => harness.disconnect(),
            246 => harness.elsewhere(&["qty", "15"]),
            247 => harness.elsewhere(&["cancel"]),
            248 => harness.restart(),
            249 => harness.reads = false,
            250..=255 => {
                harness.reads = true;
                harness.settle();
            }
        }
        sent.check(&harness.sent());
    }
}

/// Messages that a venue can send; `$` is an id of ours that it has seen.
const ANSWERS: [&str; 22] = [
    "35=A|98=0|108=30",
    "35=A|34=1|98=0|108=30|141=Y",
    "35=5|58=go away",
    "35=0",
    "35=1|112=x",
    "35=2|7=1|16=0",
    "35=2|7=3|16=4",
    "35=4|123=Y|36=9",
    "35=4|36=12",
    "35=3|45=3|372=D|373=5",
    "35=j|45=4|372=F|380=3",
    "35=8|17=e1|11=$|150=0|39=0",
    "35=8|17=e2|11=$|150=F|39=1|32=4|31=100",
    "35=8|17=e3|11=$|150=F|39=2|32=6|31=100",
    "35=8|17=e4|11=$|150=4|39=4",
    "35=8|17=e5|11=$|150=5|39=0",
    "35=8|17=e6|11=$|150=I|39=4",
    "35=8|17=e7|19=e2|11=$|150=H|39=0",
    "35=8|17=e8|11=$|150=8|39=8",
    "35=8|17=e9|11=$|150=Z|39=?",
    "35=9|11=$|41=$|39=0|434=1|102=0",
    "35=9|11=$|41=$|39=0|434=2|102=1",
];

/// Runs a script for a session that connects to a venue.
pub fn venue(script: &[u8]) {
    let mut script = script.iter().copied();
    if let Some(flags) = script.next() {
        with_venue(flags, script);
    }
}

fn with_venue(flags: u8, mut script: impl Iterator<Item = u8>) {
    let mut settings = venue::settings();
    settings.reset_on_logon = flags & 1 != 0;
    settings.message_bytes_max = BODY_BYTES_MAX;
    let mut about = InitiatorSettings::new(3);
    about.supports_status_request = flags & 2 != 0;
    let mut harness = venue::VenueHarness::new(settings, about);
    let (mut number, mut orders) = (1, 0);
    // From our messages: ClOrdIDs, and the last Test Request.
    let (mut ids, mut asked) = (vec!["nobody".to_string()], String::new());
    for _ in 0..STEPS_MAX {
        let Some(step) = script.next() else { break };
        let mut more = || script.next().unwrap_or(0);
        match step {
            0..=19 => {
                harness.wait(seconds(5));
                _ = harness.connect();
                harness.bytes(&venue::frame_of("35=A|98=0|108=30", number, harness.now));
                number += 1;
            }
            20..=49 => {
                harness.bytes(&venue::frame_of(&format!("35=0|112={asked}"), number, harness.now));
                number += 1;
            }
            50..=149 => {
                let id = &ids[more() as usize % ids.len()];
                let text = ANSWERS[step as usize % ANSWERS.len()].replace('$', id);
                harness.bytes(&venue::frame_of(&text, number, harness.now));
                number += 1;
            }
            150..=169 => {
                let other = (number + more() as u64 % 8).saturating_sub(4);
                let text = ANSWERS[more() as usize % ANSWERS.len()];
                let text = text.replacen('|', "|43=Y|122=20261116-08:00:00|", 1);
                harness.bytes(&venue::frame_of(&text, other, harness.now));
            }
            170..=189 => {
                let mut bytes =
                    venue::frame_of(ANSWERS[more() as usize % ANSWERS.len()], number, harness.now);
                let at = more() as usize % bytes.len();
                bytes[at] = more();
                harness.bytes(&bytes);
            }
            190..=214 => {
                orders += 1;
                harness.submit(&format!("o{orders}"), Side::Buy, "10", "100");
            }
            215..=224 => harness.cancel(&format!("c{step}-{orders}"), &format!("o{}", more() % 8)),
            225..=234 => harness.replace(&format!("r{step}-{orders}"), &format!("o{}", more() % 8), "12"),
            235..=244 => harness.wait(seconds(more() as u64)),
            245..=249 => harness.disconnect(),
            250 => harness.shard.stores = false,
            251 => harness.instructed = false,
            252 => number = 1,
            253..=255 => harness.restart(),
        }
        for message in harness.sent() {
            let get = |tag: &str| message.split('|').find_map(|field| field.strip_prefix(tag));
            ids.extend(get("11=").map(str::to_string));
            if get("35=") == Some("1") {
                asked = get("112=").unwrap_or_default().to_string();
            }
        }
    }
}

/// What the session has sent on one connection.
#[derive(Default)]
struct SentMessages {
    begins: bool,
    next: u64,
}

impl SentMessages {
    fn check(&mut self, messages: &[String]) {
        for message in messages {
            let get = |tag: &str| {
                message.split('|').find_map(|field| field.strip_prefix(tag)?.strip_prefix('=')).unwrap_or("")
            };
            if self.begins {
                assert!(matches!(get("35"), "A" | "5"), "Logon is the first: {message}");
                self.begins = false;
                self.next = get("34").parse().expect("a number");
            }
            if get("43") == "Y" {
                continue;
            }
            let number: u64 = get("34").parse().expect("a number");
            let reset = get("35") == "A" && number == 1;
            assert!(number == self.next || reset, "{} was next: {message}", self.next);
            self.next = number + 1;
        }
    }
}
