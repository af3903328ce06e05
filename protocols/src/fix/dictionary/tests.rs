use super::*;
use crate::decoded::Decoded;
use crate::fix::fields::{Fields, read};
use crate::fix::frame::{check_sum, decode};

/// Gives a message of a version with a valid header and this type and body to a check.
fn with_message_of<T>(version: FixVersion, body: &str, look: impl FnOnce(&FixMessage) -> T) -> T {
    let (kind, rest) = body.split_once('|').unwrap();
    let body = format!("{kind}|49=C|56=S|34=1|52=20261116-08:00:00|{rest}").replace('|', "\x01");
    let begin_string = version.begin_string();
    let mut bytes = format!("8={begin_string}\x019={}\x01{body}", body.len()).into_bytes();
    let sum = check_sum(&bytes);
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    let Ok(Decoded::Message { message: frame, .. }) = decode(&bytes, 100_000) else { panic!("{body}") };
    let mut fields = Fields::default();
    let message = read(frame, &mut fields);
    assert_eq!(message.fault, None, "{body}");
    look(&message)
}

fn with_message<T>(body: &str, look: impl FnOnce(&FixMessage) -> T) -> T {
    with_message_of(FixVersion::Fix44, body, look)
}

fn fault_in(
    version: FixVersion,
    settings: &DictionarySettings,
    body: &str,
) -> Option<(SessionRejectReason, u32)> {
    with_message_of(version, body, |message| check(message, version, settings))
        .map(|fault| (fault.reason, fault.tag))
}

fn fault_with(settings: &DictionarySettings, body: &str) -> Option<(SessionRejectReason, u32)> {
    fault_in(FixVersion::Fix44, settings, body)
}

fn fault(body: &str) -> Option<(SessionRejectReason, u32)> {
    fault_with(&DictionarySettings::default(), body)
}

const ORDER: &str = "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|38=5|";

#[test]
fn good_messages_pass() {
    for good in [
        "35=0|",
        "35=1|112=x|",
        "35=2|7=1|16=0|",
        "35=4|123=Y|36=5|",
        "35=A|98=0|108=30|141=Y|384=2|372=D|385=R|372=8|385=S|553=me|554=secret|",
        ORDER,
        "35=D|11=a|453=2|448=A|447=D|452=1|448=B|447=D|452=3|802=1|523=s|803=1|54=1|55=X|60=20261116-08:00:00|40=1|",
        "35=D|11=a|54=1|48=7|60=20261116-08:00:00|40=P|59=6|432=20261117|7001=1|7002=A|7003=Y|",
        "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|18=1 G|200=202612|167=OPT|201=1|114=N|423=10|",
        "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|78=1|79=A|539=1|524=B|525=D|538=1|804=1|545=C|805=1|80=5|",
        "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|711=2|311=U|457=1|458=a|459=1|305=1|311=V|463=x|",
        "35=D|11=a|454=0|54=1|55=X|60=20261116-08:00:00|40=1|",
        "35=F|41=a|11=b|54=1|55=X|60=20261116-08:00:00.123|38=5|",
        "35=q|11=a|530=1|55=X|336=DAY|60=20261116-08:00:00|7002=A|",
        "35=AF|584=a|585=7|453=1|448=A|54=1|",
        "35=V|262=a|263=1|264=0|265=1|267=2|269=0|269=1|146=2|55=X|454=1|455=a|456=4|207=XNAS|55=Y|48=7|",
        "35=AN|710=a|724=0|1=A|581=1|715=20261116|60=20261116-08:00:00|",
        // FIX 4.4 has the message, and the dictionary does not.
        "35=AE|55=X|150=x|99999=y|",
    ] {
        assert_eq!(fault(good), None, "{good}");
    }
}

#[test]
fn each_fault_of_the_dictionary_has_its_reason() {
    use SessionRejectReason::*;
    let cases = [
        (format!("{ORDER}4999=x|"), InvalidTag, 4999),
        (format!("{ORDER}957=x|"), InvalidTag, 957),
        // FIX 4.4 has neither of these numbers.
        (format!("{ORDER}101=x|"), InvalidTag, 101),
        (format!("{ORDER}5000=x|"), InvalidTag, 5000),
        (format!("{ORDER}7004=x|"), InvalidTag, 7004),
        (format!("{ORDER}112=x|"), TagNotForMessage, 112),
        (format!("{ORDER}150=x|"), TagNotForMessage, 150),
        ("35=1|112=x|7001=1|".to_string(), TagNotForMessage, 7001),
        // A member of a group that is not there.
        (format!("{ORDER}448=x|"), TagNotForMessage, 448),
        (format!("{ORDER}453=0|448=x|"), TagNotForMessage, 448),
        (ORDER.replace("11=a|", ""), RequiredTagMissing, 11),
        (ORDER.replace("11=a|54=1|", "54=1|").replace("40=1|", ""), RequiredTagMissing, 11),
        (ORDER.replace("60=20261116-08:00:00|", ""), RequiredTagMissing, 60),
        ("35=1|".to_string(), RequiredTagMissing, 112),
        (ORDER.replace("54=1", "54=x"), ValueIncorrect, 54),
        (ORDER.replace("40=1", "40=?"), ValueIncorrect, 40),
        (ORDER.replace("40=1", "40=5"), ValueIncorrect, 40),
        (format!("{ORDER}21=4|"), ValueIncorrect, 21),
        (format!("{ORDER}59=9|"), ValueIncorrect, 59),
        (format!("{ORDER}167=BOO|"), ValueIncorrect, 167),
        (format!("{ORDER}167=C|"), ValueIncorrect, 167),
        (format!("{ORDER}18=1 ?|"), ValueIncorrect, 18),
        (format!("{ORDER}18=1  G|"), ValueIncorrect, 18),
        (format!("{ORDER}423=12|"), ValueIncorrect, 423),
        (format!("{ORDER}453=1|448=A|447=?|"), ValueIncorrect, 447),
        ("35=A|98=7|108=30|".to_string(), ValueIncorrect, 98),
        (ORDER.replace("54=1", "54=12"), IncorrectFormat, 54),
        (ORDER.replace("38=5", "38=+200"), IncorrectFormat, 38),
        (ORDER.replace("38=5", "38=1e3"), IncorrectFormat, 38),
        (format!("{ORDER}114=yes|"), IncorrectFormat, 114),
        (format!("{ORDER}126=20040415|"), IncorrectFormat, 126),
        (format!("{ORDER}432=20261332|"), IncorrectFormat, 432),
        (format!("{ORDER}200=2026|"), IncorrectFormat, 200),
        (format!("{ORDER}423=1x|"), IncorrectFormat, 423),
        (format!("{ORDER}7001=one|"), IncorrectFormat, 7001),
        ("35=2|7=x|16=0|".to_string(), IncorrectFormat, 7),
        (format!("{ORDER}453=-1|448=A|"), IncorrectFormat, 453),
        ("35=V|262=a|262=b|263=1|264=0|267=1|269=0|146=1|55=X|".to_string(), TagTwice, 262),
        (format!("{ORDER}453=1|447=D|448=A|452=1|"), GroupOutOfOrder, 453),
        (format!("{ORDER}453=2|448=A|447=D|447=D|"), GroupOutOfOrder, 447),
        (format!("{ORDER}453=2|448=A|447=D|452=1|"), GroupCount, 453),
        (format!("{ORDER}453=1|448=A|448=B|"), GroupCount, 453),
        (format!("{ORDER}453=1|448=A|802=2|523=B|"), GroupCount, 802),
        (format!("{ORDER}453=2|448=A|802=1|523=B|"), GroupCount, 453),
        (format!("{ORDER}453=1000000000|448=A|"), GroupCount, 453),
        (format!("{ORDER}386=3|336=PRE-OPEN|336=AFTER-HOURS|"), GroupCount, 386),
    ];
    for (body, reason, tag) in cases {
        assert_eq!(fault(&body), Some((reason, tag)), "{body}");
    }
}

#[test]
fn groups_are_checked_without_the_rest_of_the_dictionary() {
    use SessionRejectReason::{GroupCount, GroupOutOfOrder, IncorrectFormat};
    let groups = |body: &str| {
        with_message(body, |message| {
            assert!(message.has_groups(), "{body}");
            check_groups(message, FixVersion::Fix44).map(|fault| (fault.reason, fault.tag))
        })
    };
    assert_eq!(groups(&format!("{ORDER}453=1|448=A|447=?|9999=x|")), None);
    assert_eq!(groups(&format!("{ORDER}453=2|448=A|447=D|9999=x|")), Some((GroupCount, 453)));
    assert_eq!(groups(&format!("{ORDER}386=1|625=A|")), Some((GroupOutOfOrder, 386)));
    assert_eq!(groups(&format!("{ORDER}78=one|79=A|")), Some((IncorrectFormat, 78)));
    assert!(with_message(ORDER, |message| !message.has_groups()));
}

#[test]
fn an_operator_adds_tags_values_and_messages() {
    use SessionRejectReason::*;
    let lines = [
        "9001 INT D,G",
        "9002 STRING D! RED,BLUE",
        "9002 STRING F GREEN",
        "167 STRING - CRYPTO",
        "112 STRING D",
    ];
    let fields = lines.map(|line| CustomField::parse(line).unwrap());
    assert_eq!(fields.clone().map(|field| field.to_string()), lines);
    let settings = DictionarySettings::new(fields.to_vec(), true);
    let fault = |body: &str| fault_with(&settings, body);
    let order = format!("{ORDER}9002=RED|");
    assert_eq!(fault(&order), None);
    assert_eq!(fault(&format!("{order}9001=-5|112=x|167=CRYPTO|")), None);
    assert_eq!(fault(&format!("{order}167=CS|")), None);
    assert_eq!(fault(ORDER), Some((RequiredTagMissing, 9002)));
    assert_eq!(fault(&format!("{ORDER}9002=WHITE|")), Some((ValueIncorrect, 9002)));
    assert_eq!(fault(&format!("{order}9001=x|")), Some((IncorrectFormat, 9001)));
    assert_eq!(fault(&format!("{order}9003=x|")), Some((InvalidTag, 9003)));
    assert_eq!(fault("35=1|112=x|9001=5|"), Some((TagNotForMessage, 9001)));
    assert_eq!(fault("35=F|41=a|11=b|54=1|60=20261116-08:00:00|9002=GREEN|"), None);
    let lenient = DictionarySettings::new(Vec::new(), false);
    assert_eq!(fault_with(&lenient, &format!("{ORDER}5000=x|20000=y|")), None);
    assert_eq!(fault_with(&lenient, &format!("{ORDER}4999=x|")), Some((InvalidTag, 4999)));
}

#[test]
fn a_wrong_custom_field_is_refused_with_its_reason() {
    for (line, reason) in [
        ("", "it must be tag, type, messages and values"),
        ("9001 INT", "it must be tag, type, messages and values"),
        ("9001 INT D a b", "it must be tag, type, messages and values"),
        ("0 INT D", "is not a tag"),
        ("x INT D", "is not a tag"),
        ("9001 int D", "is not a type of FIX"),
        ("9001 DATA D", "is not a type of FIX"),
        ("34 INT D", "is a tag of the header"),
        ("453 INT D", "is a tag of the header, the trailer, raw data or a group"),
        ("9001 INT 8", "is not the MsgType of a message that a client may send"),
        ("9001 INT D,", "is not the MsgType of a message that a client may send"),
        ("9001 INT D 1,,2", "an empty value is none"),
    ] {
        let problem = CustomField::parse(line).unwrap_err();
        assert!(problem.contains(reason), "{line}: {problem}");
    }
}

#[test]
fn message_types_are_those_of_fix_44() {
    for known in ["0", "D", "8", "j", "V", "AE", "BH", "AZ"] {
        assert!(is_msg_type(FixVersion::Fix44, known.as_bytes()), "{known}");
    }
    for unknown in ["", "I", "O", "U", "BI", "ZZ", "U1", "AEE", "?"] {
        assert!(!is_msg_type(FixVersion::Fix44, unknown.as_bytes()), "{unknown}");
    }
}

#[test]
fn types_have_the_names_of_the_standard() {
    use FieldType::*;
    for kind in [Text, Codes, Char, Int, Decimal, Boolean, Timestamp, Date, Time, MonthYear] {
        assert_eq!(FieldType::from_name(kind.name()), Some(kind));
    }
    assert_eq!(
        ["PRICE", "EXCHANGE", "UTCDATEONLY"].map(FieldType::from_name),
        [Decimal, Text, Date].map(Some)
    );
    // Counts and raw data have rules that an operator cannot add.
    assert_eq!(["string", "NUMINGROUP", "DATA"].map(FieldType::from_name), [None; 3]);
    for (good, bad) in [("202612", "202613"), ("20261231", "20261232"), ("202612w5", "202612w6")] {
        assert!(FieldType::MonthYear.permits(good.as_bytes()), "{good}");
        assert!(!FieldType::MonthYear.permits(bad.as_bytes()), "{bad}");
    }
    assert!(FieldType::Time.permits(b"08:00:00.123") && !FieldType::Time.permits(b"8:00"));
}

#[test]
fn a_tag_has_the_same_type_in_all_versions() {
    use FieldType::*;
    let types = [
        (55, Text),
        (18, Codes),
        (54, Char),
        (423, Int),
        (34, Count),
        (44, Decimal),
        (43, Boolean),
        (60, Timestamp),
        (432, Date),
        (273, Time),
        (200, MonthYear),
        (96, Data),
    ];
    for (tag, kind) in types {
        assert_eq!(FixVersion::ALL.map(|version| type_of(version, tag)), [Some(kind); 3], "{tag}");
    }
    assert_eq!(FixVersion::ALL.map(|version| type_of(version, 101)), [None; 3]);
}

#[test]
fn a_byte_that_is_no_character_is_no_value() {
    assert!(is_listed(54, b"1") && is_listed(423, b"11"));
    for byte in [0, b' ', 0x7f, 0x80, 0xff] {
        assert!(!is_listed(54, &[byte]), "{byte}");
    }
}

/// Columns: the message, and its fault in FIX 4.2, 4.4 and 5.0 SP2.
#[test]
fn versions_differ_in_tags_and_required_ones() {
    use SessionRejectReason::*;
    let order = "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|38=5|";
    let cases = [
        (order.to_string(), [Some((RequiredTagMissing, 21)), None, None]),
        (format!("{order}21=1|"), [None; 3]),
        (format!("{order}21=1|453=1|448=A|"), [Some((InvalidTag, 453)), None, None]),
        // The last tag of FIX 4.2 is 446, and the first of FIX 4.4 is 447.
        (format!("{order}21=1|445=1|446=x|"), [Some((TagNotForMessage, 445)); 3]),
        (
            format!("{order}21=1|447=D|"),
            [Some((InvalidTag, 447)), Some((TagNotForMessage, 447)), Some((TagNotForMessage, 447))],
        ),
        (format!("{order}21=1|59=7|"), [Some((ValueIncorrect, 59)), None, None]),
        (format!("{order}21=1|59=9|"), [Some((ValueIncorrect, 59)), Some((ValueIncorrect, 59)), None]),
        (format!("{order}21=1|18=1 T|"), [None, Some((ValueIncorrect, 18)), None]),
        (format!("{order}21=1|112=x|"), [Some((TagNotForMessage, 112)); 3]),
        (format!("{order}21=1|109=A|"), [None, Some((InvalidTag, 109)), Some((InvalidTag, 109))]),
        (format!("{order}21=1|1138=5|"), [Some((InvalidTag, 1138)), Some((InvalidTag, 1138)), None]),
        (
            format!("{order}21=1|1138=x|"),
            [Some((InvalidTag, 1138)), Some((InvalidTag, 1138)), Some((IncorrectFormat, 1138))],
        ),
        (
            "35=F|11=b|37=a|54=1|55=X|60=20261116-08:00:00|".to_string(),
            [Some((RequiredTagMissing, 41)), Some((RequiredTagMissing, 41)), None],
        ),
        ("35=A|98=0|108=30|553=me|554=x|".to_string(), [None, None, Some((RequiredTagMissing, 1137))]),
        ("35=A|98=0|108=30|1137=9|".to_string(), [Some((InvalidTag, 1137)), Some((InvalidTag, 1137)), None]),
    ];
    for (body, expected) in cases {
        let found = FixVersion::ALL.map(|version| fault_in(version, &DictionarySettings::default(), &body));
        assert_eq!(found, expected, "{body}");
    }
}

#[test]
fn the_header_of_fixt_is_known_to_fixt() {
    let body = "35=1|1128=9|112=x|";
    let found = FixVersion::ALL.map(|version| fault_in(version, &DictionarySettings::default(), body));
    let unknown = Some((SessionRejectReason::InvalidTag, 1128));
    assert_eq!(found, [unknown, unknown, None]);
}

#[test]
fn a_version_has_its_own_messages() {
    let has = |msg_type: &str| FixVersion::ALL.map(|version| is_msg_type(version, msg_type.as_bytes()));
    for common in ["0", "8", "D", "V", "c", "g", "j", "m"] {
        assert_eq!(has(common), [true; 3], "{common}");
    }
    for later in ["q", "x", "AF", "AN", "BH"] {
        assert_eq!(has(later), [false, true, true], "{later}");
    }
    assert_eq!((has("BZ"), has("CO"), has("CQ")), ([false, false, true], [false, false, true], has("CO")));
    assert_eq!((has("CP"), has("EC"), has("")), ([false; 3], [false; 3], [false; 3]));
}

/// Answers of QuickFIX with its dictionaries of FIX 5.0 SP2 and FIXT 1.1, see
/// `tests/quickfix/validator.cpp`.
const ANSWERS: &str = include_str!("../../../../tests/data/fix50-answers.txt");

#[test]
fn messages_of_fix_50_are_answered_as_quickfix_answers_them() {
    let mut reasons = std::collections::BTreeMap::new();
    for line in ANSWERS.lines() {
        let [reason, tag, body] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let expected =
            (reason != "ok").then(|| (reason.parse::<u64>().unwrap(), tag.parse::<u32>().unwrap()));
        let found = fault_in(FixVersion::Fix50Sp2, &DictionarySettings::default(), body);
        assert_eq!(found.map(|(reason, tag)| (reason as u64, tag)), expected, "{body}");
        *reasons.entry(reason).or_insert(0) += 1;
    }
    for reason in ["ok", "0", "1", "2", "5", "6", "16"] {
        assert!(reasons.get(reason).is_some_and(|count| *count >= 20), "{reason}: {reasons:?}");
    }
}

#[test]
fn groups_of_fix_50_have_more_tags_and_levels() {
    use SessionRejectReason::*;
    let fault = |body: &str| fault_in(FixVersion::Fix50Sp2, &DictionarySettings::default(), body);
    let groups = |body: &str| {
        let found = with_message_of(FixVersion::Fix50Sp2, body, |message| {
            check_groups(message, FixVersion::Fix50Sp2)
        });
        found.map(|fault| (fault.reason, fault.tag))
    };
    let order = "35=D|11=a|54=1|55=X|60=20261116-08:00:00|40=1|38=5|";
    for (body, expected) in [
        // PartyRoleQualifier is a member of each party.
        ("453=2|448=A|452=1|2376=24|448=B|452=3|2376=22|802=2|523=s|803=1|523=t|803=2|", None),
        ("453=2|448=A|2376=24|448=B|2376=24|2376=24|", Some((GroupOutOfOrder, 2376))),
        ("453=1|448=A|2376=24|448=B|", Some((GroupCount, 453))),
        ("453=1|2376=24|448=A|", Some((GroupOutOfOrder, 453))),
        ("78=1|79=A|539=1|524=B|804=2|545=C|805=1|", Some((GroupCount, 804))),
        // A group whose tags FIX 4.4 does not have, twice.
        ("1812=2|1813=6|1814=2|1813=6|1814=2|", None),
        ("1812=3|1813=6|1814=2|1813=6|1814=2|", Some((GroupCount, 1812))),
        ("1812=x|", Some((IncorrectFormat, 1812))),
    ] {
        let body = format!("{order}{body}");
        assert_eq!((fault(&body), groups(&body)), (expected, expected), "{body}");
    }
    for (body, expected) in [
        // A member without its group, and a tag that is no member, twice.
        (format!("{order}1813=6|"), Some((TagNotForMessage, 1813))),
        (format!("{order}453=1|448=A|2376=x|"), Some((IncorrectFormat, 2376))),
        // Our own tags stand in the messages of orders.
        (format!("{order}7001=1|7002=A|7003=Y|"), None),
        ("35=1|112=x|7001=1|".to_string(), Some((TagNotForMessage, 7001))),
        // Session messages have the dictionary of FIXT.
        ("35=1|112=x|1130=9|".to_string(), Some((TagNotForMessage, 1130))),
        ("35=1|112=x|1138=9|".to_string(), Some((InvalidTag, 1138))),
        ("35=A|98=0|108=30|1137=9|1407=5|384=1|372=D|385=R|1130=9|".to_string(), None),
        // Raw data with a delimiter in it.
        (format!("{order}1525=3|1527=a|b|1138=5|"), None),
    ] {
        assert_eq!(fault(&body), expected, "{body}");
    }
}
