//! Finds the security, account and strategy of an order in the reference data.

use pitlane_engine::id::{AccountId, SecurityId, StrategyId};
use pitlane_engine::reason::Reason;
use pitlane_engine::refdata::{RefData, Security, SecurityKind};
use pitlane_engine::text::parse_u64;

use super::order::OrderFields;

/// Returns the one security that SecurityID (48), else Symbol (55), names. Other fields (55, 207,
/// 15, 167) must agree.
pub fn security<'r>(reference: &'r RefData, order: &OrderFields) -> Result<&'r Security, Reason> {
    let by_id = match order.security_id {
        Some(id) => {
            if order.security_id_source.is_some_and(|source| source != b"8") {
                return Err(Reason::UnknownSecurity);
            }
            let number = parse_u64(id).ok().and_then(|id| u32::try_from(id).ok());
            let found = number.and_then(|id| reference.security(SecurityId(id)));
            Some(found.ok_or(Reason::UnknownSecurity)?)
        }
        None => None,
    };
    if let Some(security) = by_id {
        let contradicted = order.symbol.is_some_and(|symbol| {
            // FIX writes this in place of a symbol when SecurityID identifies the security.
            symbol != b"[N/A]" && symbol != security.symbol.as_bytes()
        });
        let agrees = !contradicted && narrows(reference, security, order);
        return if agrees { Ok(security) } else { Err(Reason::UnknownSecurity) };
    }
    let symbol = order.symbol.ok_or(Reason::UnknownSecurity)?;
    let fitting =
        |&id: &SecurityId| reference.security(id).filter(|security| narrows(reference, security, order));
    let found = match reference.by_symbol(symbol) {
        // Most symbols are of one exchange.
        [only] => fitting(only),
        several => {
            let mut several = several.iter().filter_map(fitting);
            several.next().filter(|_| several.next().is_none())
        }
    };
    found.ok_or(Reason::UnknownSecurity)
}

/// Returns whether a security agrees with the exchange, currency and type of an order.
pub fn narrows(reference: &RefData, security: &Security, order: &OrderFields) -> bool {
    // Most orders have none of these.
    let names_more = [order.security_exchange, order.currency, order.security_type];
    if names_more.iter().all(Option::is_none) {
        return true;
    }
    let family = reference.family_of(security);
    let exchange = reference.exchange_of(security);
    let on_exchange = order
        .security_exchange
        .is_none_or(|name| name == exchange.mic.as_bytes() || name == exchange.name.as_bytes());
    let in_currency = order.currency.is_none_or(|code| code == family.currency.as_str().as_bytes());
    let of_type = order.security_type.is_none_or(|kind| {
        kind == security.kind.name().as_bytes()
            || security_type(security.kind).is_some_and(|code| kind == code.as_bytes())
    });
    on_exchange && in_currency && of_type
}

/// Returns SecurityType (167) of FIX 4.4, if it has one.
pub fn security_type(kind: SecurityKind) -> Option<&'static str> {
    match kind {
        SecurityKind::Stock => Some("CS"),
        SecurityKind::Future => Some("FUT"),
        SecurityKind::Option => Some("OPT"),
        // Choice: any pair of currencies. See protocols/README.md.
        SecurityKind::Forex | SecurityKind::Crypto => Some("FOR"),
        SecurityKind::Bond => Some("CORP"),
        SecurityKind::Fund => Some("MF"),
        SecurityKind::Index | SecurityKind::Commodity => None,
    }
}

/// Returns the account that Account (1) names by id or name; without it the session's own, else the
/// only active one of the exchange.
pub fn account(
    reference: &RefData,
    order: &OrderFields,
    default: Option<AccountId>,
    security: &Security,
) -> Result<AccountId, Reason> {
    let Some(named) = order.account else {
        let only = || reference.default_account(reference.exchange_of(security)).map(|account| account.id);
        return default.or_else(only).ok_or(Reason::UnknownAccount);
    };
    named_account(reference, named).ok_or(Reason::UnknownAccount)
}

pub fn named_account(reference: &RefData, named: &[u8]) -> Option<AccountId> {
    let number = parse_u64(named).ok().and_then(|id| u16::try_from(id).ok());
    let by_id = number.and_then(|id| reference.account(AccountId(id)));
    let by_name = || reference.accounts().iter().find(|account| account.name.as_bytes() == named);
    by_id.or_else(by_name).map(|account| account.id)
}

/// Returns the strategy that tags 7001 and 7002 name, which must agree; without them the session's
/// own.
pub fn strategy(reference: &RefData, order: &OrderFields, default: StrategyId) -> Result<StrategyId, Reason> {
    let by_id = match order.strategy_id {
        Some(id) => {
            let number = parse_u64(id).ok().and_then(|id| u16::try_from(id).ok());
            let found = number.and_then(|id| reference.strategy(StrategyId(id)));
            Some(found.ok_or(Reason::UnknownStrategy)?)
        }
        None => None,
    };
    let by_name = match order.strategy_name {
        Some(name) => {
            let found = reference.strategies().iter().find(|strategy| strategy.name.as_bytes() == name);
            Some(found.ok_or(Reason::UnknownStrategy)?)
        }
        None => None,
    };
    match (by_id, by_name) {
        (Some(a), Some(b)) if a.id != b.id => Err(Reason::UnknownStrategy),
        (Some(named), _) | (None, Some(named)) => Ok(named.id),
        (None, None) => Ok(default),
    }
}
