use super::SessionRejectReason::{DelimiterInValue, InvalidTag, NoValue, OutOfOrder, TagTwice};
use super::*;
use crate::decoded::Decoded;
use crate::fix::frame::{check_sum, decode};

fn framed(body: &str) -> Vec<u8> {
    let body = body.replace('|', "\x01");
    let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
    let sum = check_sum(&bytes);
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}

/// Gives a message with this body to a check.
pub(in crate::fix) fn check(body: &str, look: impl FnOnce(&FixMessage)) {
    let bytes = framed(body);
    let Ok(Decoded::Message { message: frame, .. }) = decode(&bytes, 100_000) else { panic!("{body}") };
    look(&read(frame, &mut Fields::default()));
}

/// Returns reason and tag of a message's fault.
fn fault(body: &str) -> Option<(SessionRejectReason, u32)> {
    let mut found = None;
    check(body, |message| found = message.fault.map(|fault| (fault.reason, fault.tag)));
    found
}

#[test]
fn the_number_of_fields_is_bounded() {
    // The type is not one of the fields.
    let fields =
        |count: usize| (0..count).fold("35=B|".to_string(), |body, at| format!("{body}{}=x|", 10_000 + at));
    check(&fields(FIELDS_MAX), |message| assert_eq!((message.fault, message.len()), (None, FIELDS_MAX)));
    let beyond = fields(FIELDS_MAX + 1);
    assert_eq!(fault(&beyond), Some((SessionRejectReason::Other, 0)));
    check(&beyond, |message| assert_eq!(message.len(), FIELDS_MAX));
}

#[test]
fn fields_are_borrowed_unchanged() {
    check("35=D|49=C|56=S|34=7|43=Y|52=T|11=a=b|58= x |7001=5|", |message| {
        assert_eq!(message.fault, None);
        assert_eq!(message.msg_type, b"D");
        assert_eq!(message.header.msg_seq_num, Some(&b"7"[..]));
        assert_eq!((message.header.poss_dup, message.header.poss_resend), (true, false));
        assert_eq!(message.get(11), Some(&b"a=b"[..]));
        assert_eq!(message.get(58), Some(&b" x "[..]));
        assert_eq!(message.get(7001), Some(&b"5"[..]));
        assert_eq!(message.get(12), None);
        assert_eq!(message.len(), 8);
    });
}

#[test]
fn each_fault_of_structure_has_its_reason() {
    use SessionRejectReason::*;
    let long_tag = format!("35=0|34=1|{}=x|", "9".repeat(400));
    let cases = [
        ("35=0|34=1|112=|", NoValue, 112),
        ("35=0|34=1|112=a|112=b|", TagTwice, 112),
        ("35=0|34=1|7005=a|7005=b|", TagTwice, 7005),
        ("35=0|35=0|34=1|", TagTwice, 35),
        ("35=0|34=1|9=5|", TagTwice, 9),
        ("35=0|34=1|112=a|49=C|", OutOfOrder, 49),
        ("35=0|34=1|10=000|112=a|", OutOfOrder, 10),
        ("35=0|93=1|89=a|112=x|", OutOfOrder, 112),
        ("35=0|34=1|453=1|448=a|49=C|", OutOfOrder, 49),
        ("35=0|34=1|20000=x|49=C|", OutOfOrder, 49),
        ("35=0|34=1|0=x|", InvalidTag, 0),
        ("35=0|34=1|012=x|", InvalidTag, 0),
        ("35=0|34=1|-5=x|", InvalidTag, 0),
        ("35=0|34=1|abc=x|", InvalidTag, 0),
        ("35=0|34=1|=x|", InvalidTag, 0),
        ("35=0|34=1|4294967331=x|", InvalidTag, 0),
        ("35=0|34=1|2147483648=x|", InvalidTag, 0),
        (&long_tag, InvalidTag, 0),
        ("35=0|34=1|58=a|b|", DelimiterInValue, 0),
        ("35=0|34=1|58=a|17|", DelimiterInValue, 0),
        ("35=0|34=1|58=a|99999999999|", DelimiterInValue, 0),
        ("35=0|34=1||", DelimiterInValue, 0),
        ("35=|34=1|", NoValue, 35),
        ("35=0|34=1|95=3|58=abc|", IncorrectFormat, 95),
        ("35=0|34=1|95=4|96=abc|", IncorrectFormat, 95),
        ("35=0|34=1|95=99999|96=abc|", IncorrectFormat, 95),
        ("35=0|34=1|95=-1|96=abc|", IncorrectFormat, 95),
        ("35=0|34=1|95=x|96=abc|", IncorrectFormat, 95),
        ("35=0|34=1|95=0|96=|", IncorrectFormat, 95),
        ("35=0|34=1|95=000003|96=abc|", IncorrectFormat, 95),
        ("35=0|34=1|96=abc|", OutOfOrder, 96),
        ("35=0|34=1|95=3|", IncorrectFormat, 95),
    ];
    for (body, reason, tag) in cases {
        assert_eq!(fault(body), Some((reason, tag)), "{body}");
    }
}

#[test]
fn raw_data_may_hold_delimiters() {
    check("35=0|34=1|95=7|96=a|10=00|58=z|", |message| {
        assert_eq!(message.fault, None);
        assert_eq!(message.get(96), Some(&b"a\x0110=00"[..]));
        assert_eq!(message.get(58), Some(&b"z"[..]));
    });
    for length in [1, 12, 10_000] {
        check(&format!("35=0|34=1|95={length}|96={}|58=z|", "|".repeat(length)), |message| {
            assert_eq!(message.fault, None);
            assert_eq!((message.get(96).map(<[u8]>::len), message.len()), (Some(length), 4));
        });
    }
}

/// Returns tag and value of fields as text.
fn readable<'a>(fields: impl Iterator<Item = (u32, &'a [u8])>) -> Vec<String> {
    fields.map(|(tag, value)| format!("{tag}={}", String::from_utf8_lossy(value))).collect()
}

#[test]
fn a_field_without_a_tag_is_kept_whole() {
    check("35=D|34=1|abc=x|58=y|", |message| {
        assert_eq!(readable(message.iter()), ["34=1", "0=abc=x", "58=y"]);
    });
}

/// A book has more fields than the table, and each of its levels the same tags.
#[test]
fn market_data_has_any_number_of_fields() {
    for msg_type in ["W", "X"] {
        let head = ["34=1", "262=r", "268=300"];
        let levels = ["269=0", "270=1.5", "271=2"].repeat(300);
        let fields = [&head[..], &levels].concat();
        check(&format!("35={msg_type}|{}|", fields.join("|")), |message| {
            assert_eq!((message.fault, message.len()), (None, FIELDS_MAX));
            assert_eq!(readable(message.all_fields()), fields);
            assert_eq!(readable(message.iter()), fields[..FIELDS_MAX]);
        });
    }
    check("35=W|34=1|x=y|58|", |message| {
        assert_eq!(readable(message.all_fields()), ["34=1", "0=y", "58="]);
    });
}

#[test]
fn plain_fields_are_read_in_one_pass() {
    for len in 1..60 {
        let value = "v".repeat(len);
        let head = format!("35=D|49={value}|56=S|34=7|");
        let bytes = framed(&format!("{head}1=A|55={value}|100=X|1023={value}|7001=5|58={value}|"));
        let Ok(Decoded::Message { message: frame, .. }) = decode(&bytes, 100_000) else { panic!("{len}") };
        let pass = FieldReader { bytes: &bytes, end: frame.end, begin_string: frame.begin_string };
        let mut fields = Fields::default();
        fields.clear();
        let start = frame.body + "35=D|".len();
        assert_eq!(pass.plain_fields(start, tag::HEADER, &mut fields), (frame.end, 0));
        assert_eq!(fields.len, 9, "with values of {len} bytes");
        // A field of the header that follows the body is none of them.
        fields.clear();
        assert_eq!(pass.plain_fields(start, 0, &mut fields), (start, 0));
        let body = frame.body + head.len();
        assert_eq!(pass.plain_fields(body, tag::HEADER, &mut fields), (frame.end, 0));
        fields.clear();
        assert_eq!(pass.plain_fields(body, tag::TRAILER, &mut fields), (body, tag::TRAILER));
    }
}

#[test]
fn members_of_groups_may_be_repeated() {
    assert_eq!(fault("35=D|34=1|453=2|448=a|447=D|452=1|448=b|447=D|452=3|"), None);
}

#[test]
fn a_message_with_thousands_of_fields_is_a_fault() {
    let mut body = String::from("35=0|");
    for tag in 0..5_000 {
        body += &format!("{}=x|", 20_000 + tag);
    }
    assert_eq!(fault(&body), Some((SessionRejectReason::Other, 0)));
}

#[test]
fn the_first_fault_is_reported() {
    assert_eq!(fault("35=0|34=1|112=|58=a|58=b|"), Some((SessionRejectReason::NoValue, 112)));
}

#[test]
fn a_delimiter_is_found_at_every_offset() {
    for len in 0..100 {
        let mut bytes = vec![b'x'; len];
        bytes.push(SOH);
        bytes.extend_from_slice(b"yyyyyyyyyyyyyyyy\x01");
        assert_eq!(find_soh(&bytes, 0), len);
        assert_eq!(find_soh(&bytes, len + 1), len + 17);
    }
    // A byte above SOH must not be taken for SOH because of a borrow.
    assert_eq!(find_soh(b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x01\x02\x02\x02\x02\x02\x02\x02\x01", 0), 9);
    assert_eq!(find_soh(b"\x01\x02\x00\x80\x81\x02\x02\x02\x02\x01", 1), 9);
}

/// What a plain reader finds: tag and value of each field, and the first fault.
type FieldList = (Vec<(u32, Vec<u8>)>, Option<(SessionRejectReason, u32)>);

/// Reads a body without raw data and groups, field by field.
fn read_plainly(body: &str) -> FieldList {
    let (mut fields, mut fault, mut in_header) = (Vec::new(), None, true);
    for (at, field) in body.strip_suffix('|').unwrap_or(body).split('|').enumerate().skip(1) {
        let mut add_fault = |reason, tag| _ = fault.get_or_insert((reason, tag));
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let is_number = |tag: &u32| *tag <= tag::TAG_MAX && !name.starts_with(['0', '+']);
        let tag = name.parse().ok().filter(is_number).filter(|_| field.contains('='));
        let Some(tag) = tag else {
            let is_field = field.contains('=');
            add_fault(if is_field { InvalidTag } else { DelimiterInValue }, 0);
            fields.push((0, field.as_bytes().to_vec()));
            continue;
        };
        let is_header = tag::class(tag) & tag::HEADER != 0;
        match (is_header, in_header) {
            (true, false) => add_fault(OutOfOrder, tag),
            _ => in_header &= is_header,
        }
        if value.is_empty() {
            add_fault(NoValue, tag);
        }
        let is_framing = [tag::BEGIN_STRING, tag::BODY_LENGTH, tag::MSG_TYPE].contains(&tag);
        if is_framing || fields[..at - 1].iter().any(|(before, _)| *before == tag) {
            add_fault(TagTwice, tag);
        }
        fields.push((tag, value.as_bytes().to_vec()));
    }
    (fields, fault)
}

/// Random messages, most of them sound, are read as a reader without shortcuts reads them.
#[test]
fn messages_are_read_as_field_by_field() {
    const TAGS: [&str; 24] = [
        "34", "49", "52", "56", "43", "97", "1", "11", "38", "40", "44", "54", "55", "58", "59", "60", "207",
        "526", "7001", "7063", "7064", "9000", "1023", "20000",
    ];
    const ODD: [&str; 10] = ["08", "0", "1x", "", "8", "35", "99999999999", "1128", "5000", "x"];
    let mut rng = pitlane_engine::rng::Rng::new(3);
    let (mut sound, mut table) = (0, Fields::default());
    for _ in 0..20_000 {
        let mut pick = |count: usize| (rng.next_u64() % count as u64) as usize;
        let mut tags = TAGS[..6].to_vec();
        tags.truncate(pick(7));
        for _ in 0..pick(16) {
            match pick(60) {
                0 => tags.push(ODD[pick(ODD.len())]),
                1 => tags.push(TAGS[pick(TAGS.len())]),
                _ => {
                    let tag = TAGS[6 + pick(TAGS.len() - 6)];
                    if !tags.contains(&tag) {
                        tags.push(tag);
                    }
                }
            }
        }
        let mut body = "35=D|".to_string();
        for tag in tags {
            let value = match pick(80) {
                0 => String::new(),
                1 => "a=b".to_string(),
                8..28 => "y".repeat(1 + pick(60)),
                _ => "y".repeat(1 + pick(12)),
            };
            let equals = if pick(200) == 0 { "" } else { "=" };
            body += &format!("{tag}{equals}{value}|");
        }
        let (fields, fault) = read_plainly(&body);
        sound += fault.is_none() as usize;
        let bytes = framed(&body);
        let Ok(Decoded::Message { message: frame, .. }) = decode(&bytes, 100_000) else { panic!("{body}") };
        // The table is the same for all messages.
        let message = read(frame, &mut table);
        let found: Vec<_> = message.iter().map(|(tag, value)| (tag, value.to_vec())).collect();
        assert_eq!(found, fields, "{body}");
        assert_eq!(message.fault.map(|fault| (fault.reason, fault.tag)), fault, "{body}");
        for tag in [34, 43, 11, 60, 207, 7001, 9000, 20_000, 1_128, 5_000, 8, 35] {
            let is_framing = [8, 9, 35].contains(&tag);
            let first = fields.iter().find(|(found, _)| *found == tag && !is_framing);
            assert_eq!(message.get(tag), first.map(|(_, value)| &value[..]), "{tag} in {body}");
        }
    }
    assert!((8_000..18_000).contains(&sound), "{sound} messages are sound");
}
