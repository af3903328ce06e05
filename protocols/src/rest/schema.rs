//! OpenAPI schemas of the smallest parts of the value types: names, decimals, times. The value
//! types are described by their own comments.

use std::borrow::Cow;

use pitlane_engine::command::{MovementKind, StrategyPhase};
use pitlane_engine::terms::{OrderKind, Side, Status, Tif};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use super::{Decimal, Moment};
use crate::codes::WireName;

/// Implements schemas under names of their own.
macro_rules! described {
    ($($kind:ty, $name:literal, $schema:expr;)*) => {$(
        impl PartialSchema for $kind {
            fn schema() -> RefOr<Schema> {
                RefOr::T(Schema::Object($schema))
            }
        }

        impl ToSchema for $kind {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }
        }
    )*};
}

// Each is a closed list of names for `NamedValue`: the types belong to the engine, which knows
// nothing of schemas.
pub struct SideWord;
pub struct OrderKindWord;
pub struct TifWord;
pub struct StatusWord;
pub struct PhaseWord;
pub struct MovementWord;

described! {
    SideWord, "Side", words::<Side>("Which side of the market.");
    OrderKindWord, "OrderType", words::<OrderKind>("The type of an order.");
    TifWord, "TimeInForce", words::<Tif>("How long an order is good.");
    StatusWord, "OrderStatus", words::<Status>("Where an order is in its life.");
    PhaseWord, "Phase", words::<StrategyPhase>("Where a strategy is in its life.");
    MovementWord, "TransactionType", words::<MovementKind>("What a transaction is.");
    Decimal, "Decimal", decimal();
    Moment, "Moment", instant();
}

fn words<T: WireName>(about: &str) -> Object {
    let words = T::VALUES.iter().map(|value| value.wire_name());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some(about)).build()
}

fn decimal() -> Object {
    let about =
        "An exact decimal with at most eight places. In a request a text such as \"1.5\" is taken too.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(about)).build()
}

fn instant() -> Object {
    let about = "An instant as RFC 3339 has it, in UTC, with as many decimals as needed. In a request any offset is taken.";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some(about))
        .build()
}
