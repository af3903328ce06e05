//! Typed fields of New Order Single (D), Order Cancel Request (F) and Order Cancel/Replace Request
//! (G). A value that is not written as its type is a fault. A well-formed value that we do not
//! support is refused by [`super::entry`].

use pitlane_engine::id::IntId;
use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::{ExecInst, SpecialTerms};
use pitlane_engine::text::TextError;
use pitlane_engine::time::{Day, Timestamp};

use super::dictionary::is_listed;
use super::fields::{FieldFault, FixMessage, SessionRejectReason};
use super::tag;
use super::timestamp::parse_date;

/// A well-formed decimal that may be beyond our range.
pub type ParsedDecimal<T> = Result<T, TextError>;

/// Fields of D, F and G; `None` for a field that is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderFields<'a> {
    pub cl_ord_id: Option<IntId>,
    pub orig_cl_ord_id: Option<IntId>,
    pub account: Option<&'a [u8]>,
    pub symbol: Option<&'a [u8]>,
    pub security_id: Option<&'a [u8]>,
    pub security_id_source: Option<&'a [u8]>,
    pub security_exchange: Option<&'a [u8]>,
    pub security_type: Option<&'a [u8]>,
    pub currency: Option<&'a [u8]>,
    pub side: Option<u8>,
    pub ord_type: Option<u8>,
    pub time_in_force: Option<u8>,
    pub order_qty: Option<ParsedDecimal<Qty>>,
    pub price: Option<ParsedDecimal<Price>>,
    pub stop_px: Option<ParsedDecimal<Price>>,
    pub transact_time: Option<Timestamp>,
    pub expire_time: Option<Timestamp>,
    pub expire_date: Option<Day>,
    pub strategy_id: Option<&'a [u8]>,
    pub strategy_name: Option<&'a [u8]>,
    pub exchange_order: Option<bool>,
    /// ExecInst, MinQty and MaxFloor, if there is one of them.
    pub special: Option<ParsedDecimal<SpecialTerms>>,
}

impl<'a> OrderFields<'a> {
    /// Reads the fields by tag and not in message order, so that messages of the same shape take
    /// the same branches.
    #[inline]
    pub fn read(message: &FixMessage<'a, '_>) -> Result<OrderFields<'a>, FieldFault> {
        let mut parser = FieldParser { message, fault: None };
        let instant = |value: &[u8]| message.timestamp(value).ok_or(SessionRejectReason::IncorrectFormat);
        let order = OrderFields {
            cl_ord_id: parser.typed(tag::CL_ORD_ID, id),
            orig_cl_ord_id: parser.typed(tag::ORIG_CL_ORD_ID, id),
            account: message.get(tag::ACCOUNT),
            symbol: message.get(tag::SYMBOL),
            security_id: message.get(tag::SECURITY_ID),
            security_id_source: message.get(tag::SECURITY_ID_SOURCE),
            security_exchange: message.get(tag::SECURITY_EXCHANGE),
            security_type: message.get(tag::SECURITY_TYPE),
            currency: message.get(tag::CURRENCY),
            side: parser.typed(tag::SIDE, code),
            ord_type: parser.typed(tag::ORD_TYPE, code),
            time_in_force: parser.typed(tag::TIME_IN_FORCE, code),
            order_qty: parser.typed(tag::ORDER_QTY, |value| decimal(Qty::parse(value))),
            price: parser.typed(tag::PRICE, |value| decimal(Price::parse(value))),
            stop_px: parser.typed(tag::STOP_PX, |value| decimal(Price::parse(value))),
            transact_time: parser.typed(tag::TRANSACT_TIME, instant),
            expire_time: parser.typed(tag::EXPIRE_TIME, instant),
            expire_date: parser.typed(tag::EXPIRE_DATE, |value| {
                parse_date(value).ok_or(SessionRejectReason::IncorrectFormat)
            }),
            strategy_id: message.get(tag::STRATEGY_ID),
            strategy_name: message.get(tag::STRATEGY_NAME),
            exchange_order: parser.typed(tag::EXCHANGE_ORDER, flag),
            special: if message.has_special_terms() { Some(parser.special_terms()) } else { None },
        };
        match parser.fault {
            Some(fault) => Err(fault),
            None => Ok(order),
        }
    }
}

/// Parses fields of a message, and keeps the first fault.
struct FieldParser<'m, 'a, 'f> {
    message: &'m FixMessage<'a, 'f>,
    fault: Option<FieldFault>,
}

impl FieldParser<'_, '_, '_> {
    #[inline]
    fn typed<T>(&mut self, tag: u32, parse: impl Fn(&[u8]) -> Result<T, SessionRejectReason>) -> Option<T> {
        let (at, value) = self.message.find(tag)?;
        match parse(value) {
            Ok(value) => Some(value),
            Err(reason) => {
                let faults = self.fault.into_iter().chain([FieldFault { reason, tag, at }]);
                self.fault = faults.min_by_key(|fault| fault.at);
                None
            }
        }
    }
}

impl FieldParser<'_, '_, '_> {
    /// Parses the terms that most orders do not have. Quantities that are well formed and beyond
    /// our range are an error of the order.
    #[cold]
    fn special_terms(&mut self) -> ParsedDecimal<SpecialTerms> {
        let exec_inst = self.typed(tag::EXEC_INST, exec_inst);
        let min_qty = self.typed(tag::MIN_QTY, quantity).transpose()?;
        let max_floor = self.typed(tag::MAX_FLOOR, quantity).transpose()?;
        Ok(SpecialTerms { exec_inst: exec_inst.unwrap_or_default(), min_qty, max_floor })
    }
}

/// Reads instructions, each of which FIX lists.
fn exec_inst(value: &[u8]) -> Result<ExecInst, SessionRejectReason> {
    ExecInst::parse(value)
        .filter(|parsed| parsed.codes().all(|code| is_listed(tag::EXEC_INST, &[code])))
        .ok_or(SessionRejectReason::ValueIncorrect)
}

/// Reads a quantity that cannot be below zero.
fn quantity(value: &[u8]) -> Result<ParsedDecimal<Qty>, SessionRejectReason> {
    match decimal(Qty::parse(value))? {
        Ok(qty) if qty.is_negative() => Err(SessionRejectReason::ValueIncorrect),
        parsed => Ok(parsed),
    }
}

/// Refuses an id that cannot be an order's, because it would have to be echoed, shown and put into
/// names.
#[inline]
fn id(value: &[u8]) -> Result<IntId, SessionRejectReason> {
    IntId::parse(value).map_err(|_| SessionRejectReason::ValueIncorrect)
}

/// Reads one character. We support no longer codes of FIX, so they are refused like an unknown one.
#[inline]
fn code(value: &[u8]) -> Result<u8, SessionRejectReason> {
    match value {
        [code] => Ok(*code),
        _ => Err(SessionRejectReason::ValueIncorrect),
    }
}

#[inline]
fn decimal<T>(parsed: ParsedDecimal<T>) -> Result<ParsedDecimal<T>, SessionRejectReason> {
    match parsed {
        Err(TextError::Character | TextError::Empty) => Err(SessionRejectReason::IncorrectFormat),
        other => Ok(other),
    }
}

fn flag(value: &[u8]) -> Result<bool, SessionRejectReason> {
    match value {
        b"Y" => Ok(true),
        b"N" => Ok(false),
        _ => Err(SessionRejectReason::ValueIncorrect),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decoded::Decoded;
    use crate::fix::fields::{Fields, read};
    use crate::fix::frame::{check_sum, decode};

    fn check(body: &str, look: impl FnOnce(Result<OrderFields, FieldFault>)) {
        let body = format!("35=D|{body}").replace('|', "\x01");
        let mut bytes = format!("8=FIX.4.4\x019={}\x01{body}", body.len()).into_bytes();
        let sum = check_sum(&bytes);
        bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
        let Ok(Decoded::Message { message: frame, .. }) = decode(&bytes, 100_000) else { panic!("{body}") };
        let mut fields = Fields::default();
        look(OrderFields::read(&read(frame, &mut fields)));
    }

    #[test]
    fn fields_have_their_types() {
        check(
            "11=o1|38=1.5|40=2|44=187.25|54=1|55=AAPL|59=6|60=20261116-08:00:00|432=20261117|7003=Y|",
            |order| {
                let order = order.unwrap();
                assert_eq!(order.cl_ord_id.unwrap().as_str(), "o1");
                assert_eq!(order.order_qty, Some(Ok(Qty::from_raw(150_000_000))));
                assert_eq!(order.price, Some(Price::parse(b"187.25")));
                assert_eq!(
                    (order.side, order.ord_type, order.time_in_force),
                    (Some(b'1'), Some(b'2'), Some(b'6'))
                );
                assert_eq!(order.symbol, Some(&b"AAPL"[..]));
                assert_eq!(order.expire_date.unwrap().to_string(), "2026-11-17");
                assert_eq!((order.exchange_order, order.stop_px), (Some(true), None));
            },
        );
    }

    #[test]
    fn a_malformed_number_is_a_fault_and_a_large_one_is_not() {
        for bad in ["NaN", "inf", "1e308", "+5", " 5", "1,000", "0x10", "--1", "1.2.3"] {
            check(&format!("11=o1|38={bad}|"), |order| {
                let fault = order.unwrap_err();
                assert_eq!(
                    (fault.reason, fault.tag, fault.at),
                    (SessionRejectReason::IncorrectFormat, 38, 1),
                    "{bad}"
                );
            });
        }
        let digits = "9".repeat(400);
        for (big, error) in [("0.123456789", TextError::TooManyDecimals), (&digits, TextError::Range)] {
            check(&format!("38={big}|"), |order| assert_eq!(order.unwrap().order_qty, Some(Err(error))));
        }
        check("60=yesterday|", |order| {
            assert_eq!(order.unwrap_err().reason, SessionRejectReason::IncorrectFormat)
        });
        check("54=12|", |order| assert_eq!(order.unwrap_err().reason, SessionRejectReason::ValueIncorrect));
        check("11=two words|", |order| assert_eq!(order.unwrap_err().tag, 11));
        check("7003=x|", |order| assert_eq!(order.unwrap_err().reason, SessionRejectReason::ValueIncorrect));
        check("7003=N|", |order| assert_eq!(order.unwrap().exchange_order, Some(false)));
    }

    #[test]
    fn the_first_of_several_faults_is_reported() {
        for (body, first) in [("38=x|54=12|44=y|", 38), ("44=y|38=x|54=12|", 44), ("54=12|44=y|38=x|", 54)] {
            check(body, |order| assert_eq!(order.unwrap_err().tag, first, "{body}"));
        }
    }

    #[test]
    fn special_terms_are_read_if_there_is_one_of_them() {
        check("11=o1|38=5|", |order| assert_eq!(order.unwrap().special, None));
        check("11=o1|18=1 6|110=2|", |order| {
            let special = order.unwrap().special.unwrap().unwrap();
            assert_eq!(special.exec_inst, ExecInst::parse(b"1 6").unwrap());
            assert_eq!((special.min_qty, special.max_floor), (Qty::parse(b"2").ok(), None));
        });
        for (bad, reason, tag) in [
            ("18=T", SessionRejectReason::ValueIncorrect, 18),
            ("18=16", SessionRejectReason::ValueIncorrect, 18),
            ("18=1  6", SessionRejectReason::ValueIncorrect, 18),
            ("110=x", SessionRejectReason::IncorrectFormat, 110),
            ("111=-1", SessionRejectReason::ValueIncorrect, 111),
        ] {
            check(&format!("11=o1|{bad}|"), |order| {
                let fault = order.unwrap_err();
                assert_eq!((fault.reason, fault.tag), (reason, tag), "{bad}");
            });
        }
        let beyond = Err(TextError::TooManyDecimals);
        check("111=0.123456789|", |order| assert_eq!(order.unwrap().special, Some(beyond)));
    }
}
