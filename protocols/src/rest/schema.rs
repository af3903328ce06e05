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
pub(super) struct SideSchema;
pub(super) struct OrderKindSchema;
pub(super) struct TifSchema;
pub(super) struct StatusSchema;
pub(super) struct PhaseSchema;
pub(super) struct MovementSchema;

described! {
    SideSchema, "Side", enum_schema::<Side>("Side of the order: buy or sell.");
    OrderKindSchema, "OrderType", enum_schema::<OrderKind>("The type of an order.");
    TifSchema, "TimeInForce", enum_schema::<Tif>("Time in force of an order.");
    StatusSchema, "OrderStatus", enum_schema::<Status>("Current status of an order.");
    PhaseSchema, "Phase", enum_schema::<StrategyPhase>("Current phase of a strategy.");
    MovementSchema, "TransactionType", enum_schema::<MovementKind>("Type of a transaction.");
    Decimal, "Decimal", decimal();
    Moment, "Moment", instant();
}

fn enum_schema<T: WireName>(about: &str) -> Object {
    let names = T::VALUES.iter().map(|value| value.wire_name());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).description(Some(about)).build()
}

fn decimal() -> Object {
    let about = "An exact decimal with at most eight places. In a request, a string such as \"1.5\" is accepted, too.";
    ObjectBuilder::new().schema_type(Type::Number).description(Some(about)).build()
}

fn instant() -> Object {
    let about =
        "A time in RFC 3339 format, in UTC, with as many decimals as needed. Requests may use any offset.";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
        .description(Some(about))
        .build()
}
