//! Everything that a strategy usually names: `use pitlane_strategy::prelude::*;`.

pub use crate::bars::Bar;
pub use crate::context::{Context, Operation};
pub use crate::host::StrategyFactory;
pub use crate::orders::{OpenOrder, Refused, StrategyRequestKind};
pub use crate::parameters::{BadParameter, FromParameters, Parameter, Parameters};
pub use crate::registry::{Registry, StrategyKind};
pub use crate::security_key::SecurityKey;
pub use crate::{Failure, Strategy};
pub use pitlane_engine::command::StrategyPhase;
pub use pitlane_engine::event::{Booking, OrderReport, PositionState, Tick};
pub use pitlane_engine::id::{Currency, IntId, SecurityId};
pub use pitlane_engine::number::{Money, Price, Qty};
pub use pitlane_engine::reason::Reason;
pub use pitlane_engine::terms::{Changes, OrderKind, Side, Status, Terms};
pub use pitlane_engine::time::{NS_PER_MS, NS_PER_S, Timestamp};
