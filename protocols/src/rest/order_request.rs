//! Requests for orders: a body for each type, to submit and to modify. A price that a type does not
//! have is an unknown member and is refused by its name.

use pitlane_engine::number::{Price, Qty};
use pitlane_engine::terms::{Changes, OrderKind, Side, Tif};
use pitlane_engine::time::Timestamp;
use serde::Deserialize;
use utoipa::ToSchema;

use super::schema::{OrderKindSchema, SideSchema, TifSchema};
use super::{Decimal, Moment, NamedValue};

/// A new order of any type, parsed and not yet resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderRequest {
    pub kind: OrderKind,
    pub int_id: Option<String>,
    pub security_id: u32,
    pub side: Side,
    pub quantity: Qty,
    pub limit: Option<Price>,
    pub stop: Option<Price>,
    pub strategy_id: Option<u16>,
    pub strategy_name: Option<String>,
    pub account_id: Option<u64>,
    pub exchange_id: Option<u16>,
    pub tif: Tif,
    pub tif_date: Timestamp,
    pub exchange_order: bool,
}

/// A modification of an order of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderChange {
    pub kind: OrderKind,
    pub int_id: String,
    pub new_int_id: Option<String>,
    pub account_id: Option<u64>,
    pub changes: Changes,
    /// Unchangeable values may be repeated.
    pub security_id: Option<u32>,
    pub side: Option<Side>,
}

macro_rules! submits {
    ($($(#[$doc:meta])* $name:ident $kind:ident { $($(#[$about:meta])* $price:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub struct $name {
            /// 1 to 48 printable ASCII characters without space; the service makes one if it is
            /// absent. The same body under the same id gives the same response and no second order.
            pub int_id: Option<String>,
            pub security_id: u32,
            #[schema(value_type = SideSchema)]
            pub side: NamedValue<Side>,
            /// Above zero, a multiple of the lot size.
            pub quantity: Decimal,
            $($(#[$about])* pub $price: Decimal,)*
            /// The strategy, or `strategyName`; without both `SERVER`.
            pub strategy_id: Option<u16>,
            pub strategy_name: Option<String>,
            /// May be left out for the only active account of the security's exchange.
            pub account_id: Option<u64>,
            /// The security's own exchange; another one is refused.
            pub exchange_id: Option<u16>,
            /// Time in force; DAY if absent.
            #[schema(value_type = Option<TifSchema>)]
            pub tif: Option<NamedValue<Tif>>,
            /// End of a GTD order.
            pub tif_date: Option<Moment>,
            /// Passed on to the venue.
            #[serde(default)]
            pub exchange_order: bool,
        }

        impl From<$name> for OrderRequest {
            fn from(body: $name) -> OrderRequest {
                #[allow(unused_mut, reason = "a market order has no price")]
                let mut request = OrderRequest {
                    kind: OrderKind::$kind,
                    int_id: body.int_id,
                    security_id: body.security_id,
                    side: body.side.0,
                    quantity: body.quantity.into(),
                    limit: None,
                    stop: None,
                    strategy_id: body.strategy_id,
                    strategy_name: body.strategy_name,
                    account_id: body.account_id,
                    exchange_id: body.exchange_id,
                    tif: body.tif.map(|tif| tif.0).unwrap_or_default(),
                    tif_date: body.tif_date.map(|date| date.0).unwrap_or_default(),
                    exchange_order: body.exchange_order,
                };
                $(request.$price = Some(body.$price.into());)*
                request
            }
        }
    )*};
}

submits! {
    /// An order at any price.
    MarketOrderVO Market {}
    /// An order at its limit price or better.
    LimitOrderVO Limit {
        /// On the tick grid.
        limit,
    }
    /// An order that becomes a market order when its stop price is reached.
    StopOrderVO Stop {
        /// On the tick grid.
        stop,
    }
    /// An order that becomes a limit order when its stop price is reached.
    StopLimitOrderVO StopLimit {
        /// On the tick grid.
        limit,
        /// On the tick grid.
        stop,
    }
}

/// An order of any type, to be checked and not sent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct AnyOrderVO {
    #[serde(rename = "type")]
    #[schema(value_type = OrderKindSchema)]
    pub kind: NamedValue<OrderKind>,
    pub int_id: Option<String>,
    pub security_id: u32,
    #[schema(value_type = SideSchema)]
    pub side: NamedValue<Side>,
    pub quantity: Decimal,
    /// Of LIMIT and STOP_LIMIT.
    pub limit: Option<Decimal>,
    /// Of STOP and STOP_LIMIT.
    pub stop: Option<Decimal>,
    pub strategy_id: Option<u16>,
    pub strategy_name: Option<String>,
    pub account_id: Option<u64>,
    pub exchange_id: Option<u16>,
    #[schema(value_type = Option<TifSchema>)]
    pub tif: Option<NamedValue<Tif>>,
    pub tif_date: Option<Moment>,
    #[serde(default)]
    pub exchange_order: bool,
}

impl From<AnyOrderVO> for OrderRequest {
    fn from(body: AnyOrderVO) -> OrderRequest {
        OrderRequest {
            kind: body.kind.0,
            int_id: body.int_id,
            security_id: body.security_id,
            side: body.side.0,
            quantity: body.quantity.into(),
            limit: body.limit.map(Price::from),
            stop: body.stop.map(Price::from),
            strategy_id: body.strategy_id,
            strategy_name: body.strategy_name,
            account_id: body.account_id,
            exchange_id: body.exchange_id,
            tif: body.tif.map(|tif| tif.0).unwrap_or_default(),
            tif_date: body.tif_date.map(|date| date.0).unwrap_or_default(),
            exchange_order: body.exchange_order,
        }
    }
}

macro_rules! modifies {
    ($($(#[$doc:meta])* $name:ident $kind:ident { $($price:ident $with:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Deserialize, ToSchema)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub struct $name {
            /// The order, by any id it has had.
            pub int_id: String,
            /// The order's new id; the service makes one if it is absent.
            pub new_int_id: Option<String>,
            /// Selects the order, if several have had the id.
            pub account_id: Option<u64>,
            /// The new total quantity, filled quantity included.
            pub quantity: Option<Decimal>,
            $(pub $price: Option<Decimal>,)*
            #[schema(value_type = Option<TifSchema>)]
            pub tif: Option<NamedValue<Tif>>,
            pub tif_date: Option<Moment>,
            /// Cannot be changed, and may be left out.
            pub security_id: Option<u32>,
            /// Cannot be changed, and may be left out.
            #[schema(value_type = Option<SideSchema>)]
            pub side: Option<NamedValue<Side>>,
        }

        impl From<$name> for OrderChange {
            fn from(body: $name) -> OrderChange {
                let mut changes = Changes::default();
                if let Some(quantity) = body.quantity {
                    changes = changes.with_qty(quantity.into());
                }
                $(if let Some(price) = body.$price {
                    changes = changes.$with(price.into());
                })*
                if let Some(tif) = body.tif {
                    changes = changes.with_tif(tif.0);
                }
                if let Some(date) = body.tif_date {
                    changes = changes.with_tif_date(date.0);
                }
                OrderChange {
                    kind: OrderKind::$kind,
                    int_id: body.int_id,
                    new_int_id: body.new_int_id,
                    account_id: body.account_id,
                    changes,
                    security_id: body.security_id,
                    side: body.side.map(|side| side.0),
                }
            }
        }
    )*};
}

modifies! {
    /// Changes of a market order; absent values stay unchanged.
    MarketOrderChangeVO Market {}
    /// Changes of a limit order; absent values stay unchanged.
    LimitOrderChangeVO Limit { limit with_limit, }
    /// Changes of a stop order; absent values stay unchanged.
    StopOrderChangeVO Stop { stop with_stop, }
    /// Changes of a stop limit order; absent values stay unchanged.
    StopLimitOrderChangeVO StopLimit { limit with_limit, stop with_stop, }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: for<'a> Deserialize<'a>>(json: &str) -> String {
        serde_json::from_str::<T>(json).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_body_is_read_completely_or_refused_by_name() {
        let body: StopLimitOrderVO = serde_json::from_str(
            r#"{"securityId":1,"side":"SELL","quantity":"2.5","limit":10.01,"stop":1e1,"tif":"GTD","tifDate":"2027-01-01T00:00:00Z"}"#,
        )
        .unwrap();
        let request = OrderRequest::from(body);
        assert_eq!((request.kind, request.side, request.tif), (OrderKind::StopLimit, Side::Sell, Tif::Gtd));
        assert_eq!(request.limit, Price::parse(b"10.01").ok());
        assert_eq!(request.stop, Price::parse(b"10").ok());
        assert!(
            refused::<StopOrderVO>(r#"{"securityId":1,"side":"BUY","quantity":1,"stopp":3}"#)
                .contains("`stopp`")
        );
        assert!(
            refused::<MarketOrderVO>(r#"{"securityId":1,"side":"BUY","quantity":1,"limit":3}"#)
                .contains("`limit`")
        );
        assert!(
            refused::<LimitOrderVO>(r#"{"securityId":1,"side":"BUY","quantity":1}"#)
                .contains("missing field `limit`")
        );
        assert!(
            refused::<MarketOrderVO>(r#"{"securityId":1,"side":"buy","quantity":1}"#).contains("BUY, SELL")
        );
        let doubled = r#"{"securityId":1,"side":"BUY","quantity":1,"quantity":2}"#;
        assert!(refused::<MarketOrderVO>(doubled).contains("duplicate field `quantity`"));
        assert!(refused::<MarketOrderVO>(r#"{"securityId":-1,"side":"BUY","quantity":1}"#).contains("-1"));
        assert!(refused::<MarketOrderVO>(r#"{"securityId":1.5,"side":"BUY","quantity":1}"#).contains("1.5"));
    }

    #[test]
    fn a_modification_names_what_it_changes() {
        let body: LimitOrderChangeVO =
            serde_json::from_str(r#"{"intId":"a","limit":3,"side":"BUY"}"#).unwrap();
        let change = OrderChange::from(body);
        assert_eq!(change.changes, Changes::default().with_limit(Price::whole(3).unwrap()));
        assert!(refused::<LimitOrderChangeVO>(r#"{"limit":3}"#).contains("`intId`"));
        assert!(refused::<LimitOrderChangeVO>(r#"{"intId":"a","stop":3}"#).contains("`stop`"));
    }
}
