//! Reference data for a client: Security List Request (x) and Security Definition Request (c). The
//! answers (y, d) are not stored: a client that misses them asks again.
//!
//! Rules: docs/fix-rules.md#reference-data.

use pitlane_engine::id::SecurityId;
use pitlane_engine::refdata::{OptionKind, RefData, Security};
use pitlane_engine::text::date_of;
use pitlane_engine::time::Timestamp;

use super::Acceptor;
use crate::fix::encode::Draft;
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::msg_type;
use crate::fix::order::OrderFields;
use crate::fix::report;
use crate::fix::resolve;
use crate::fix::session::layer::{SessionLayer, route};
use crate::fix::tag::{self, prefix};
use crate::fix::version::FixVersion;

/// Longest id of a request for reference data, trading sessions or positions, in bytes. It is
/// repeated in every part of the answer.
const REQUEST_ID_BYTES_MAX: usize = 64;
/// Securities in one part of a list: some 3 KiB.
const PER_PART: usize = 25;

/// SecurityListRequestType (559).
const BY_SYMBOL: &[u8] = b"0";
const BY_TYPE: &[u8] = b"1";
const ALL: &[u8] = b"4";

/// SecurityRequestResult (560).
const VALID: u8 = b'0';
const UNSUPPORTED: u8 = b'1';
const NOT_FOUND: u8 = b'2';

/// SecurityRequestType (321): identity and specifications.
const IDENTITY: &[u8] = b"0";

/// SecurityResponseType (323).
const AS_IS: u8 = b'1';
const REFUSED: u8 = b'5';
const NO_MATCH: u8 = b'6';

/// A list that is being sent, in parts.
#[derive(Debug)]
pub(super) struct SecurityList {
    /// SecurityReqID (320).
    id: Box<[u8]>,
    securities: Vec<SecurityId>,
    next: usize,
    parts: u64,
}

impl Acceptor {
    /// Handles Security List Request (x). Its parts follow as the connection has room, and nothing
    /// is read until they are written.
    pub(super) fn handle_security_list_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let Some(id) = request_id(layer, now, message, number, tag::SECURITY_REQ_ID) else { return };
        let Some(kind) = message.get(tag::SECURITY_LIST_REQUEST_TYPE) else {
            return layer.refuse_missing(now, message, number, tag::SECURITY_LIST_REQUEST_TYPE);
        };
        let reference = &self.reference;
        let fields = instrument_fields(message);
        let securities: Vec<SecurityId> = match kind {
            BY_SYMBOL => {
                resolve::security(reference, &fields).map(|security| security.id).into_iter().collect()
            }
            BY_TYPE | ALL => {
                let is_meant =
                    |security: &&Security| kind == ALL || resolve::narrows(reference, security, &fields);
                reference.securities().iter().filter(is_meant).map(|security| security.id).collect()
            }
            _ => return self.send_empty_list(layer, now, id, UNSUPPORTED),
        };
        if securities.is_empty() {
            return self.send_empty_list(layer, now, id, NOT_FOUND);
        }
        self.security_list = Some(SecurityList { id: id.into(), securities, next: 0, parts: 0 });
    }

    fn send_empty_list(&self, layer: &mut SessionLayer, now: Timestamp, id: &[u8], result: u8) {
        layer.send_admin(now, msg_type::SECURITY_LIST, |draft| {
            draft.text(prefix::SECURITY_REQ_ID, id);
            draft.text(prefix::SECURITY_RESPONSE_ID, id);
            draft.code(prefix::SECURITY_REQUEST_RESULT, result);
            draft.number(prefix::TOT_NO_RELATED_SYM, 0);
            draft.code(prefix::LAST_FRAGMENT, b'Y');
        });
    }

    fn is_sending_security_list(&self, layer: &SessionLayer) -> bool {
        self.security_list.is_some() && layer.is_logged_on()
    }

    /// Sends the next parts of a list, while there is room.
    #[inline]
    pub(super) fn continue_security_list(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        while self.is_sending_security_list(layer) && layer.stream.has_room() && !layer.is_resending() {
            self.send_part(layer, now);
        }
    }

    fn send_part(&mut self, layer: &mut SessionLayer, now: Timestamp) {
        let Some(list) = &mut self.security_list else { return };
        let rest = &list.securities[list.next..];
        let part = &rest[..rest.len().min(PER_PART)];
        let is_last = part.len() == rest.len();
        list.parts += 1;
        let version = layer.settings.version;
        layer.send_admin(now, msg_type::SECURITY_LIST, |draft| {
            draft.text(prefix::SECURITY_REQ_ID, &list.id);
            let number = list.parts.to_string();
            draft.pieces(prefix::SECURITY_RESPONSE_ID, &[&list.id, b"-", number.as_bytes()]);
            draft.code(prefix::SECURITY_REQUEST_RESULT, VALID);
            draft.number(prefix::TOT_NO_RELATED_SYM, list.securities.len() as u64);
            draft.code(prefix::LAST_FRAGMENT, if is_last { b'Y' } else { b'N' });
            draft.number(prefix::NO_RELATED_SYM, part.len() as u64);
            part.iter().for_each(|id| definition(draft, version, &self.reference, *id));
        });
        list.next += part.len();
        if is_last {
            self.security_list = None;
        }
    }

    /// Answers Security Definition Request (c).
    pub(super) fn handle_security_definition_request(
        &mut self,
        layer: &mut SessionLayer,
        now: Timestamp,
        message: &FixMessage,
        number: u64,
    ) {
        let Some(id) = request_id(layer, now, message, number, tag::SECURITY_REQ_ID) else { return };
        let Some(kind) = message.get(tag::SECURITY_REQUEST_TYPE) else {
            return layer.refuse_missing(now, message, number, tag::SECURITY_REQUEST_TYPE);
        };
        let found =
            resolve::security(&self.reference, &instrument_fields(message)).map(|security| security.id);
        let result = match found {
            _ if kind != IDENTITY => Err((REFUSED, "SecurityRequestType must be 0")),
            Ok(security) => Ok(security),
            Err(_) => Err((NO_MATCH, "Unknown security")),
        };
        let version = layer.settings.version;
        layer.send_admin(now, msg_type::SECURITY_DEFINITION, |draft| {
            route(draft, message);
            draft.text(prefix::SECURITY_REQ_ID, id);
            draft.text(prefix::SECURITY_RESPONSE_ID, id);
            if version == FixVersion::Fix42 {
                draft.number(prefix::TOT_NO_RELATED_SYM, result.is_ok() as u64);
            }
            match result {
                Ok(security) => {
                    draft.code(prefix::SECURITY_RESPONSE_TYPE, AS_IS);
                    definition(draft, version, &self.reference, security);
                }
                Err((code, words)) => {
                    draft.code(prefix::SECURITY_RESPONSE_TYPE, code);
                    draft.text(prefix::TEXT, words.as_bytes());
                }
            }
        });
    }
}

/// Writes the terms of a security. FIX 4.2 divides the day of expiry into month and day, and has no
/// lot.
fn definition(draft: &mut Draft, version: FixVersion, reference: &RefData, id: SecurityId) {
    report::instrument(draft, reference, id);
    let Some(security) = reference.security(id) else { return };
    let family = reference.family_of(security);
    if let Some(day) = security.expiration {
        let (year, month, day) = date_of(day.0);
        if version == FixVersion::Fix42 {
            draft.text(prefix::MATURITY_MONTH_YEAR, format!("{year:04}{month:02}").as_bytes());
            draft.text(prefix::MATURITY_DAY, format!("{day:02}").as_bytes());
        } else {
            draft.text(prefix::MATURITY_DATE, format!("{year:04}{month:02}{day:02}").as_bytes());
        }
    }
    if let Some(option) = security.option {
        draft.code(prefix::PUT_OR_CALL, if option == OptionKind::Put { b'0' } else { b'1' });
    }
    if let Some(strike) = security.strike {
        draft.scaled(prefix::STRIKE_PRICE, strike.raw());
    }
    draft.text(prefix::CONTRACT_MULTIPLIER, family.contract_size.to_string().as_bytes());
    draft.text(prefix::SECURITY_EXCHANGE, reference.exchange_of(security).mic.as_bytes());
    if !security.description.is_empty() {
        draft.text(prefix::SECURITY_DESC, security.description.as_bytes());
    }
    draft.text(prefix::CURRENCY, family.currency.as_str().as_bytes());
    if version != FixVersion::Fix42 {
        draft.scaled(prefix::ROUND_LOT, family.lot_size.raw());
    }
}

fn instrument_fields<'a>(message: &FixMessage<'a, '_>) -> OrderFields<'a> {
    OrderFields {
        symbol: message.get(tag::SYMBOL),
        security_id: message.get(tag::SECURITY_ID),
        security_id_source: message.get(tag::SECURITY_ID_SOURCE),
        security_exchange: message.get(tag::SECURITY_EXCHANGE),
        security_type: message.get(tag::SECURITY_TYPE),
        currency: message.get(tag::CURRENCY),
        ..OrderFields::default()
    }
}

/// Returns the id of a request, which this tag has; otherwise answers the request with its fault.
pub(super) fn request_id<'a>(
    layer: &mut SessionLayer,
    now: Timestamp,
    message: &FixMessage<'a, '_>,
    number: u64,
    tag: u32,
) -> Option<&'a [u8]> {
    match message.find(tag) {
        Some((_, id)) if id.len() <= REQUEST_ID_BYTES_MAX => return Some(id),
        Some((at, _)) => {
            let reason = SessionRejectReason::ValueIncorrect;
            layer.reject(now, message, number, FieldFault { reason, tag, at });
        }
        None => layer.refuse_missing(now, message, number, tag),
    }
    None
}
