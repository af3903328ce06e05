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
    for (tag, value) in message.iter().skip(start + 1) {
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
