//! Reads Market Data Request (V).

use pitlane_engine::event::DEPTH_LEVELS_MAX;
use pitlane_engine::id::SecurityId;
use pitlane_engine::index::index_usize;
use pitlane_engine::refdata::RefData;
use pitlane_engine::text::parse_u64;

use super::{MD_REQ_ID_BYTES_MAX, MarketDataTerms, MdRejectReason};
use crate::fix::fields::{FieldFault, FixMessage, SessionRejectReason};
use crate::fix::order::OrderFields;
use crate::fix::resolve;
use crate::fix::tag;

/// SubscriptionRequestType (263).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionKind {
    Snapshot,
    Subscribe,
    Unsubscribe,
}

/// A request that can be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketDataRequest {
    /// MDReqID (262).
    pub id: Box<[u8]>,
    pub kind: SubscriptionKind,
    pub terms: MarketDataTerms,
    /// Without repetitions.
    pub securities: Vec<SecurityId>,
}

/// Why a request cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFault {
    /// A required tag is missing.
    Missing(u32),
    /// Session Reject (3).
    Field(FieldFault),
    /// Market Data Request Reject (Y).
    Refused(MdRejectReason),
}

impl MarketDataRequest {
    pub fn read(message: &FixMessage, reference: &RefData) -> Result<MarketDataRequest, RequestFault> {
        let id = needed(message, tag::MD_REQ_ID)?;
        if id.len() > MD_REQ_ID_BYTES_MAX {
            return Err(RequestFault::Field(fault(
                message,
                tag::MD_REQ_ID,
                SessionRejectReason::ValueIncorrect,
            )));
        }
        let kind = match needed(message, tag::SUBSCRIPTION_REQUEST_TYPE)? {
            b"0" => SubscriptionKind::Snapshot,
            b"1" => SubscriptionKind::Subscribe,
            b"2" => SubscriptionKind::Unsubscribe,
            _ => return Err(RequestFault::Refused(MdRejectReason::SubscriptionType)),
        };
        if kind == SubscriptionKind::Unsubscribe {
            // Everything else of the request is that of the subscription which it ends.
            let (id, terms, securities) = (id.into(), MarketDataTerms::NONE, Vec::new());
            return Ok(MarketDataRequest { id, kind, terms, securities });
        }
        let terms = read_terms(message, kind)?;
        let securities = read_securities(message, reference)?;
        Ok(MarketDataRequest { id: id.into(), kind, terms, securities })
    }
}

impl MarketDataTerms {
    const NONE: MarketDataTerms = MarketDataTerms {
        depth: 1,
        is_incremental: false,
        bids: false,
        offers: false,
        trades: false,
        volume: false,
    };
}

fn read_terms(message: &FixMessage, kind: SubscriptionKind) -> Result<MarketDataTerms, RequestFault> {
    let refuse = |reason| Err(RequestFault::Refused(reason));
    let depth = match parse_u64(needed(message, tag::MARKET_DEPTH)?) {
        Ok(0) => DEPTH_LEVELS_MAX,
        Ok(depth) if depth <= DEPTH_LEVELS_MAX as u64 => index_usize(depth),
        Ok(_) => return refuse(MdRejectReason::Depth),
        Err(_) => {
            let reason = SessionRejectReason::IncorrectFormat;
            return Err(RequestFault::Field(fault(message, tag::MARKET_DEPTH, reason)));
        }
    };
    let is_incremental = match (message.get(tag::MD_UPDATE_TYPE), kind) {
        (Some(b"1"), _) => true,
        (Some(b"0"), _) | (None, SubscriptionKind::Snapshot) => false,
        (None, _) => return Err(RequestFault::Missing(tag::MD_UPDATE_TYPE)),
        (Some(_), _) => return refuse(MdRejectReason::UpdateType),
    };
    if message.get(tag::AGGREGATED_BOOK).is_some_and(|aggregated| aggregated != b"Y") {
        return refuse(MdRejectReason::AggregatedBook);
    }
    let mut terms = MarketDataTerms { depth, is_incremental, ..MarketDataTerms::NONE };
    needed(message, tag::NO_MD_ENTRY_TYPES)?;
    let mut found = 0;
    for (_, value) in message.iter().filter(|(tag, _)| *tag == tag::MD_ENTRY_TYPE) {
        found += 1;
        match value {
            b"0" => terms.bids = true,
            b"1" => terms.offers = true,
            b"2" => terms.trades = true,
            b"B" => terms.volume = true,
            _ => return refuse(MdRejectReason::EntryType),
        }
    }
    check_count(message, tag::NO_MD_ENTRY_TYPES, found)?;
    Ok(terms)
}

/// Returns the securities of the group NoRelatedSym (146), whose members begin with Symbol (55).
fn read_securities(message: &FixMessage, reference: &RefData) -> Result<Vec<SecurityId>, RequestFault> {
    let (start, _) = message.find(tag::NO_RELATED_SYM).ok_or(RequestFault::Missing(tag::NO_RELATED_SYM))?;
    let mut members: Vec<OrderFields> = Vec::new();
    // The count itself is no part of a member.
    for (tag, value) in message.iter().skip(start) {
        if tag == tag::SYMBOL {
            members.push(OrderFields { symbol: Some(value), ..OrderFields::default() });
            continue;
        }
        let Some(member) = members.last_mut() else { continue };
        match tag {
            tag::SECURITY_ID => member.security_id = Some(value),
            tag::SECURITY_ID_SOURCE => member.security_id_source = Some(value),
            tag::SECURITY_EXCHANGE => member.security_exchange = Some(value),
            tag::SECURITY_TYPE => member.security_type = Some(value),
            tag::CURRENCY => member.currency = Some(value),
            _ => {}
        }
    }
    check_count(message, tag::NO_RELATED_SYM, members.len())?;
    let mut securities = Vec::new();
    for member in &members {
        let refuse = |reason| RequestFault::Refused(reason);
        let security =
            resolve::security(reference, member).map_err(|_| refuse(MdRejectReason::UnknownSymbol))?;
        if !securities.contains(&security.id) {
            securities.push(security.id);
        }
    }
    Ok(securities)
}

fn needed<'a>(message: &FixMessage<'a, '_>, tag: u32) -> Result<&'a [u8], RequestFault> {
    message.get(tag).ok_or(RequestFault::Missing(tag))
}

/// Checks that a group has as many members as it says, and at least one.
fn check_count(message: &FixMessage, tag: u32, found: usize) -> Result<(), RequestFault> {
    let counted = message.get(tag).and_then(|count| parse_u64(count).ok());
    if found > 0 && counted == Some(found as u64) {
        return Ok(());
    }
    Err(RequestFault::Field(fault(message, tag, SessionRejectReason::GroupCount)))
}

fn fault(message: &FixMessage, tag: u32, reason: SessionRejectReason) -> FieldFault {
    FieldFault { reason, tag, at: message.find(tag).map_or(message.len(), |(at, _)| at) }
}

#[cfg(test)]
mod tests {
    use pitlane_engine::id::Currency;
    use pitlane_engine::refdata::sample;

    use super::*;
    use crate::fix::fields::tests::check;

    /// Returns the sample with a third security that has the symbol of the first one, on another
    /// exchange and in another currency.
    fn ambiguous() -> RefData {
        let mut rows = sample::sound();
        rows.securities[2].symbol = "ACME".to_string();
        rows.families[2].currency = Currency::parse(b"CHF").unwrap();
        RefData::check(rows).unwrap()
    }

    fn request(reference: &RefData, body: &str) -> Result<MarketDataRequest, RequestFault> {
        let mut found = None;
        check(&format!("35=V|34=1|{body}"), |message| {
            found = Some(MarketDataRequest::read(message, reference));
        });
        found.unwrap()
    }

    #[test]
    fn a_security_is_named_by_all_of_its_members_fields() {
        let reference = ambiguous();
        let unknown = Err(RequestFault::Refused(MdRejectReason::UnknownSymbol));
        let count = Err(RequestFault::Field(FieldFault {
            reason: SessionRejectReason::GroupCount,
            tag: tag::NO_RELATED_SYM,
            at: 6,
        }));
        for (group, expected) in [
            ("146=1|55=ACME C10|", Ok(&[2][..])),
            ("146=1|55=ACME|", unknown),
            ("146=1|55=ACME|207=Home|", Ok(&[1])),
            ("146=1|55=ACME|207=Away|", Ok(&[3])),
            ("146=1|55=ACME|15=CHF|", Ok(&[3])),
            ("146=1|55=ACME|15=USD|", Ok(&[1])),
            ("146=1|55=ACME|15=EUR|", unknown),
            ("146=1|55=ACME|167=CS|", Ok(&[1])),
            ("146=1|55=ACME|167=FOR|", Ok(&[3])),
            ("146=1|55=ACME|48=3|", Ok(&[3])),
            ("146=1|55=ACME|48=3|22=8|", Ok(&[3])),
            ("146=1|55=ACME|48=3|22=4|", unknown),
            ("146=1|55=EURUSD|48=3|", unknown),
            ("146=1|55=[N/A]|48=3|", Ok(&[3])),
            ("146=2|55=ACME|207=Home|55=ACME|48=3|", Ok(&[1, 3])),
            ("146=2|55=ACME|48=3|55=ACME|48=3|", Ok(&[3])),
            ("146=2|55=ACME|48=3|", count),
            ("146=1|55=ACME|48=3|55=ACME|48=1|", count),
            ("146=0|", count),
            ("146=x|55=ACME|48=3|", count),
        ] {
            let found = request(&reference, &format!("262=r|263=0|264=1|267=1|269=0|{group}"));
            let expected = expected.map(|ids| ids.iter().copied().map(SecurityId).collect::<Vec<_>>());
            assert_eq!(found.map(|request| request.securities), expected, "{group}");
        }
    }

    #[test]
    fn a_request_names_the_entries_that_it_wants() {
        let reference = ambiguous();
        let terms = |types: &str| {
            let found = request(&reference, &format!("262=r|263=0|264=0|{types}146=1|55=ACME|48=1|"));
            found.map(|request| request.terms)
        };
        let none = MarketDataTerms { depth: DEPTH_LEVELS_MAX, ..MarketDataTerms::NONE };
        assert_eq!(terms("267=1|269=1|"), Ok(MarketDataTerms { offers: true, ..none }));
        let most = MarketDataTerms { bids: true, trades: true, volume: true, ..none };
        assert_eq!(terms("267=3|269=0|269=2|269=B|"), Ok(most));
        let (reason, tag) = (SessionRejectReason::GroupCount, tag::NO_MD_ENTRY_TYPES);
        for types in ["267=0|", "267=2|269=0|", "267=1|269=0|269=1|"] {
            let fault = FieldFault { reason, tag, at: 4 };
            assert_eq!(terms(types), Err(RequestFault::Field(fault)), "{types}");
        }
    }

    #[test]
    fn the_id_of_a_request_has_a_longest_length() {
        let read = |len: usize| {
            let id = "r".repeat(len);
            request(&ambiguous(), &format!("262={id}|263=2|")).map(|request| request.id.len())
        };
        assert_eq!(read(MD_REQ_ID_BYTES_MAX), Ok(MD_REQ_ID_BYTES_MAX));
        let (reason, tag) = (SessionRejectReason::ValueIncorrect, tag::MD_REQ_ID);
        let fault = RequestFault::Field(FieldFault { reason, tag, at: 1 });
        assert_eq!(read(MD_REQ_ID_BYTES_MAX + 1), Err(fault));
    }
}
