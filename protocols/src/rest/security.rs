//! Securities, their families, and currency pairs.

use pitlane_engine::refdata::SecurityKind;
use pitlane_engine::refdata::{OrderKinds, RefData, Security, SecurityFamily};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use super::Decimal;
use super::schema::OrderKindSchema;
use crate::codes::WireName;

/// A security. Tick, lot and contract size are its family's, so that a client can check an order
/// before it sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityVO<'a> {
    pub id: u32,
    pub symbol: &'a str,
    pub description: &'a str,
    /// STOCK, FUTURE, OPTION, FOREX, INDEX, COMMODITY, BOND, FUND or CRYPTO.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub security_family_id: u32,
    pub exchange_id: u16,
    /// Currency of its price.
    pub currency: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isin: Option<&'a str>,
    /// Of options and futures: the underlying security.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub underlying_id: Option<u32>,
    /// `YYYY-MM-DD`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strike: Option<Decimal>,
    /// CALL or PUT.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option_type: Option<&'static str>,
    /// Of a currency pair: the currency that is bought with `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_currency: Option<&'a str>,
    /// Prices are whole multiples of it.
    pub tick_size: Decimal,
    /// Quantities are whole multiples of it.
    pub lot_size: Decimal,
    /// Amount that one unit of quantity represents.
    pub contract_size: Decimal,
    pub tradeable: bool,
}

impl<'a> SecurityVO<'a> {
    /// Returns the value object of a security of this reference data.
    pub fn of(row: &'a Security, reference: &'a RefData) -> SecurityVO<'a> {
        let family = reference.family_of(row);
        SecurityVO {
            id: row.id.0,
            symbol: &row.symbol,
            description: &row.description,
            kind: row.kind.name(),
            security_family_id: family.id.0,
            exchange_id: family.exchange.0,
            currency: family.currency.as_str(),
            isin: row.isin.as_deref(),
            underlying_id: row.underlying.map(|id| id.0),
            expiration: row.expiration.map(|day| day.to_string()),
            strike: row.strike.map(Decimal::from),
            option_type: row.option.map(|option| option.name()),
            base_currency: row.base_currency.as_ref().map(|currency| currency.as_str()),
            tick_size: family.tick_size.into(),
            lot_size: family.lot_size.into(),
            contract_size: family.contract_size.into(),
            tradeable: row.tradeable && family.tradeable,
        }
    }
}

/// A currency pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForexVO<'a> {
    #[serde(flatten)]
    pub security: SecurityVO<'a>,
    /// The currency that pays for the base currency.
    pub transaction_currency: &'a str,
}

impl<'a> ForexVO<'a> {
    /// Returns the pair of two currencies: tradeable pairs first, currencies before crypto assets.
    pub fn find(reference: &'a RefData, base: &str, transaction: &str) -> Option<ForexVO<'a>> {
        let is_meant = |row: &&Security| {
            row.base_currency.is_some_and(|currency| currency.as_str() == base)
                && reference.family_of(row).currency.as_str() == transaction
        };
        let rank = |row: &&Security| (row.kind != SecurityKind::Forex, !row.tradeable, row.id);
        let row = reference.securities().iter().filter(is_meant).min_by_key(rank)?;
        let security = SecurityVO::of(row, reference);
        Some(ForexVO { transaction_currency: security.currency, security })
    }
}

/// Common properties of securities of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecurityFamilyVO<'a> {
    pub id: u32,
    pub name: &'a str,
    pub symbol_root: &'a str,
    pub exchange_id: u16,
    pub currency: &'a str,
    /// Amount that one unit of quantity represents.
    pub contract_size: Decimal,
    pub tick_size: Decimal,
    pub lot_size: Decimal,
    /// Per unit of quantity.
    pub commission: Decimal,
    pub tradeable: bool,
    pub expirable: bool,
    /// Smallest value of an order that the venue takes. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_notional: Option<Decimal>,
    /// Whether `minNotional` holds for orders without a limit price too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_min_to_market: Option<bool>,
    /// Largest value of an order that the venue takes. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_notional: Option<Decimal>,
    /// Whether `maxNotional` holds for orders without a limit price too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_max_to_market: Option<bool>,
    /// Types of orders that the venue takes. Absent: all.
    #[serde(skip_serializing_if = "is_all", serialize_with = "names")]
    #[schema(value_type = Option<Vec<OrderKindSchema>>)]
    pub order_types: OrderKinds,
}

impl SecurityFamilyVO<'_> {
    pub fn of(row: &SecurityFamily) -> SecurityFamilyVO<'_> {
        SecurityFamilyVO {
            id: row.id.0,
            name: &row.name,
            symbol_root: &row.symbol_root,
            exchange_id: row.exchange.0,
            currency: row.currency.as_str(),
            contract_size: row.contract_size.into(),
            tick_size: row.tick_size.into(),
            lot_size: row.lot_size.into(),
            commission: row.commission.into(),
            tradeable: row.tradeable,
            expirable: row.expirable,
            min_notional: row.limits.min_notional.map(|limit| limit.amount.into()),
            apply_min_to_market: row.limits.min_notional.map(|limit| limit.to_market),
            max_notional: row.limits.max_notional.map(|limit| limit.amount.into()),
            apply_max_to_market: row.limits.max_notional.map(|limit| limit.to_market),
            order_types: row.limits.kinds,
        }
    }
}

fn is_all(kinds: &OrderKinds) -> bool {
    *kinds == OrderKinds::ALL
}

fn names<S: Serializer>(kinds: &OrderKinds, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(kinds.iter().map(WireName::wire_name))
}
