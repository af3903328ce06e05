//! The dialect of a venue, as settings: a signed Logon, fields of its own, and fields that it does
//! not take.
//!
//! A signature proves who logs on. It is made of the values of some fields of the Logon, joined by
//! SOH, and is sent as RawData (95, 96). Which fields, and which key, the venue documents.

use std::fmt;

use pitlane_engine::reason::Reason;
use pitlane_engine::terms::SpecialTerms;
use pitlane_engine::time::Timestamp;

use super::InitiatorSettings;
use crate::fix::msg_type;
use crate::fix::tag;
use crate::fix::timestamp::TimestampText;

/// Fields of the settings for one kind of message. Venues ask for one or two.
pub const EXTRA_FIELDS_MAX: usize = 16;
/// Longest value of such a field.
const VALUE_BYTES_MAX: usize = 128;
/// Highest tag.
const TAG_MAX: u32 = 999_999;

/// Separates the signed values, and fields of a message.
const SOH: u8 = 1;

/// Tags that a signature can be made of: those of the header of a Logon, and of its login.
pub const SIGNED_TAGS: [u32; 7] = [34, 35, 49, 52, 56, 553, 554];

/// Tags that orders and cancels need not have. OrderQty and Side (38, 54) are left out of cancels
/// only. An order with ExecInst, MinQty or MaxFloor (18, 110, 111) is refused instead.
pub const OMITTED_TAGS: [u32; 8] = [18, 21, 38, 54, 60, 110, 111, 207];

/// Tags that messages have already, or that belong to the session.
const OWN_TAGS: [u32; 37] = [
    1, 7, 8, 9, 10, 11, 16, 21, 34, 35, 36, 37, 38, 40, 41, 43, 44, 49, 52, 54, 55, 56, 59, 60, 95, 96, 97,
    98, 99, 108, 122, 123, 126, 141, 207, 553, 554,
];

/// Signs Logons. The key is outside, so that this crate holds no secret and no cryptography.
pub trait LogonSigner: fmt::Debug + Send {
    /// Appends the signature of the payload as text.
    fn sign(&self, payload: &[u8], out: &mut Vec<u8>);
}

/// A field that the settings add to messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraField {
    tag: u32,
    value: String,
}

impl ExtraField {
    /// Parses `TAG=VALUE`.
    pub fn parse(text: &str) -> Result<ExtraField, String> {
        let (tag, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not TAG=VALUE"))?;
        let is_number = tag.len() <= 6 && tag.bytes().all(|byte| byte.is_ascii_digit());
        let number = tag.parse().ok().filter(|number| is_number && (1..=TAG_MAX).contains(number));
        let Some(number) = number else {
            return Err(format!("{tag:?} is not a tag from 1 to {TAG_MAX}"));
        };
        if OWN_TAGS.contains(&number) {
            return Err(format!("the service writes tag {number} itself"));
        }
        let is_value = (1..=VALUE_BYTES_MAX).contains(&value.len())
            && value.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        if !is_value {
            return Err(format!(
                "the value of {number} must have 1 to {VALUE_BYTES_MAX} printable characters"
            ));
        }
        Ok(ExtraField { tag: number, value: value.to_string() })
    }
}

impl fmt::Display for ExtraField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.tag, self.value)
    }
}

/// The dialect of a venue. The default is plain FIX 4.4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VenueProfile {
    /// Tags whose values are signed, in this order; empty: the Logon has no signature.
    signed_tags: Vec<u32>,
    /// Fields as bytes, without the last separator.
    logon_fields: Vec<u8>,
    order_fields: Vec<u8>,
    omitted: OmittedFields,
    /// Of 18, 110 and 111: those that an order of a client cannot have.
    refused: Vec<u32>,
}

/// Fields that are left out, each as a flag, because every order asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedFields {
    pub handl_inst: bool,
    pub transact_time: bool,
    pub security_exchange: bool,
    /// Of cancels only.
    pub side: bool,
    pub order_qty: bool,
}

impl VenueProfile {
    pub fn new(
        signed_tags: &[u32],
        logon_fields: &[ExtraField],
        order_fields: &[ExtraField],
        omitted: &[u32],
    ) -> VenueProfile {
        VenueProfile {
            signed_tags: signed_tags.to_vec(),
            logon_fields: joined(logon_fields),
            order_fields: joined(order_fields),
            omitted: OmittedFields {
                handl_inst: omitted.contains(&21),
                transact_time: omitted.contains(&60),
                security_exchange: omitted.contains(&207),
                side: omitted.contains(&54),
                order_qty: omitted.contains(&38),
            },
            // A field that the settings give all orders is not the client's to choose.
            refused: order_fields.iter().map(|field| field.tag).chain(omitted.iter().copied()).collect(),
        }
    }

    pub fn is_signed(&self) -> bool {
        !self.signed_tags.is_empty()
    }

    pub fn logon_fields(&self) -> &[u8] {
        &self.logon_fields
    }

    pub fn order_fields(&self) -> &[u8] {
        &self.order_fields
    }

    /// Returns why an order with these terms cannot be sent to the venue.
    pub fn check_special(&self, special: &SpecialTerms) -> Result<(), Reason> {
        let is_refused = |tag: u32, is_given: bool| is_given && self.refused.contains(&tag);
        if is_refused(tag::EXEC_INST, !special.exec_inst.is_empty()) {
            return Err(Reason::ExecInstNotTaken);
        }
        if is_refused(tag::MIN_QTY, special.min_qty.is_some()) {
            return Err(Reason::MinQtyNotTaken);
        }
        if is_refused(tag::MAX_FLOOR, special.max_floor.is_some()) {
            return Err(Reason::MaxFloorNotTaken);
        }
        Ok(())
    }

    pub fn omitted(&self) -> OmittedFields {
        self.omitted
    }
}

fn joined(fields: &[ExtraField]) -> Vec<u8> {
    let texts: Vec<String> = fields.iter().map(ExtraField::to_string).collect();
    texts.join("\u{1}").into_bytes()
}

/// What is signed besides the settings.
#[derive(Clone, Copy, Debug)]
pub(in crate::fix) struct LogonHead<'a> {
    pub sender_comp_id: &'a str,
    pub target_comp_id: &'a str,
    pub number: u64,
    pub now: Timestamp,
}

/// Returns the values that are signed, joined by SOH.
pub(in crate::fix) fn signed_payload(settings: &InitiatorSettings, head: &LogonHead<'_>) -> Vec<u8> {
    let mut payload = Vec::new();
    for (at, tag) in settings.profile.signed_tags.iter().enumerate() {
        if at > 0 {
            payload.push(SOH);
        }
        let login = settings.login.as_ref();
        match tag {
            34 => payload.extend_from_slice(itoa::Buffer::new().format(head.number).as_bytes()),
            35 => payload.push(msg_type::LOGON),
            49 => payload.extend_from_slice(head.sender_comp_id.as_bytes()),
            52 => payload.extend_from_slice(TimestampText::default().text(head.now)),
            56 => payload.extend_from_slice(head.target_comp_id.as_bytes()),
            553 => payload.extend_from_slice(login.map_or("", |login| &login.username).as_bytes()),
            554 => {
                let password = login.and_then(|login| login.password.as_deref());
                payload.extend_from_slice(password.unwrap_or_default().as_bytes());
            }
            // The settings accept no other.
            _ => {}
        }
    }
    payload
}

#[cfg(test)]
mod tests {
    use pitlane_engine::number::Qty;
    use pitlane_engine::terms::ExecInst;

    use super::*;
    use crate::fix::timestamp::parse_timestamp;
    use crate::fix::venue::VenueLogin;

    #[test]
    fn the_payload_of_a_signature_is_that_of_the_documentation() {
        let now = parse_timestamp(b"20240627-11:17:25.223").unwrap();
        let head = LogonHead { sender_comp_id: "EXAMPLE", target_comp_id: "SPOT", number: 1, now };
        let login = VenueLogin { username: "key".to_string(), password: Some("pass".to_string()) };
        let with = |tags: &[u32]| InitiatorSettings {
            login: Some(login.clone()),
            profile: VenueProfile::new(tags, &[], &[], &[]),
            ..InitiatorSettings::new(1)
        };
        // `fix-api.md` of Binance Spot, section "How to sign Logon request".
        let payload = signed_payload(&with(&[35, 49, 56, 34, 52]), &head);
        assert_eq!(payload, b"A\x01EXAMPLE\x01SPOT\x011\x0120240627-11:17:25.223");
        // The order of Coinbase Exchange, which signs the password too.
        let payload = signed_payload(&with(&[52, 35, 34, 49, 56, 554]), &head);
        assert_eq!(payload, b"20240627-11:17:25.223\x01A\x011\x01EXAMPLE\x01SPOT\x01pass");
        assert_eq!(signed_payload(&with(&[554, 553]), &head), b"pass\x01key");
        assert!(with(&[554]).profile.is_signed() && !with(&[]).profile.is_signed());
    }

    #[test]
    fn fields_of_the_settings_are_ready_to_be_written() {
        let fields = |texts: &[&str]| -> Vec<ExtraField> {
            texts.iter().map(|text| ExtraField::parse(text).unwrap()).collect()
        };
        let profile = VenueProfile::new(&[], &fields(&["25035=2", "5000=a"]), &fields(&["528=A"]), &[21, 38]);
        assert_eq!(profile.logon_fields(), b"25035=2\x015000=a");
        assert_eq!(profile.order_fields(), b"528=A");
        let omitted = OmittedFields { handl_inst: true, order_qty: true, ..OmittedFields::default() };
        assert_eq!(profile.omitted(), omitted);
        assert_eq!(VenueProfile::default().logon_fields(), b"");
    }

    #[test]
    fn special_terms_that_the_venue_does_not_take_are_refused() {
        let (min_qty, max_floor) = (Some(Qty::from_raw(1)), Some(Qty::from_raw(2)));
        let all = SpecialTerms { exec_inst: ExecInst::parse(b"G").unwrap(), min_qty, max_floor };
        let exec_inst = ExecInst::default();
        let cases = [
            (18, all, Reason::ExecInstNotTaken),
            (110, SpecialTerms { exec_inst, ..all }, Reason::MinQtyNotTaken),
            (111, SpecialTerms { exec_inst, min_qty: None, max_floor }, Reason::MaxFloorNotTaken),
        ];
        for (tag, special, reason) in cases {
            assert_eq!(VenueProfile::default().check_special(&special), Ok(()));
            assert_eq!(VenueProfile::new(&[], &[], &[], &[tag]).check_special(&special), Err(reason));
            let field = ExtraField::parse(&format!("{tag}=1")).unwrap();
            assert_eq!(VenueProfile::new(&[], &[], &[field], &[]).check_special(&special), Err(reason));
        }
    }

    #[test]
    fn fields_of_the_settings_are_checked() {
        assert_eq!(ExtraField::parse("25035=2").unwrap().to_string(), "25035=2");
        assert_eq!(ExtraField::parse("5000=a=b c").unwrap().to_string(), "5000=a=b c");
        for (text, wanted) in [
            ("25035", "is not TAG=VALUE"),
            ("=2", "is not a tag"),
            ("0=2", "is not a tag"),
            ("+7=2", "is not a tag"),
            ("1000000=2", "is not a tag"),
            ("0005000=2", "is not a tag"),
            ("554=x", "writes tag 554 itself"),
            ("25035=", "printable"),
            ("25035=a\u{1}10=000", "printable"),
        ] {
            assert!(ExtraField::parse(text).unwrap_err().contains(wanted), "{text}");
        }
        let long = format!("25035={}", "x".repeat(VALUE_BYTES_MAX + 1));
        assert!(ExtraField::parse(&long).unwrap_err().contains("printable"));
    }
}
