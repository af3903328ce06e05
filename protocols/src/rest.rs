//! REST without its sockets: the value objects of the interface, how they are read and written, and
//! the small grammars of paths and queries. Domain types are not serialised: output has its own
//! types here, so that the engine may change without breaking a client.
//!
//! Names are camelCase, absent values are left out, prices and quantities are exact decimals, and
//! times are RFC 3339 in UTC. Unknown and repeated members of a request are refused by name.

mod account;
mod adapter;
mod alert;
mod body;
mod canceled_orders;
mod decimal;
mod exchange;
mod history;
mod identity;
mod moment;
mod limit_use;
mod limits;
mod log_event;
mod named;
mod order;
mod order_changes;
mod order_request;
mod portfolio;
mod portfolio_sample;
mod position;
mod profit;
mod query;
mod reader_error;
mod schema;
mod search;
mod security;
mod sender;
mod session;
mod strategy;
mod subscription;
pub(crate) mod transaction;

pub use self::account::AccountVO;
pub use self::adapter::AdapterVO;
pub use self::alert::AlertVO;
pub use self::body::{BadBody, account_id, quantity, read};
pub use self::canceled_orders::CanceledOrdersVO;
pub use self::decimal::Decimal;
pub use self::exchange::ExchangeVO;
pub use self::history::{BarVO, QuoteVO, TickVO};
pub use self::identity::IdentityVO;
pub use self::limit_use::{CreditInUse, LimitRefusalsVO, LimitUseVO};
pub use self::limits::{ConfirmationVO, LimitsVO, RestrictionVO, RiskVO, SwitchStateVO, UnconfirmedVO};
pub use self::log_event::LogEventVO;
pub use self::moment::Moment;
pub use self::named::NamedValue;
pub use self::order::OrderVO;
pub use self::order_changes::{OrderChangesVO, StatusChangeVO};
pub use self::order_request::{
    AnyOrderVO, LimitOrderChangeVO, LimitOrderVO, MarketOrderChangeVO, MarketOrderVO, OrderChange,
    OrderRequest, StopLimitOrderChangeVO, StopLimitOrderVO, StopOrderChangeVO, StopOrderVO,
};
pub use self::portfolio::{CashBalanceVO, HoldingVO, MissingVO, PortfolioVO};
pub use self::portfolio_sample::PortfolioSampleVO;
pub use self::position::PositionVO;
pub use self::profit::{ConvertedResult, ProfitDayVO, ProfitRowVO, ProfitSumVO, ProfitSums, ProfitVO};
pub use self::query::{BadQuery, Query, percent_decode};
pub use self::search::{Search, SearchError};
pub use self::security::{ForexVO, SecurityFamilyVO, SecurityVO};
pub use self::sender::{SenderVO, SentByVO, protocol_name};
pub use self::session::{RatesVO, SessionVO, VenueLimitVO};
pub use self::strategy::{PhaseVO, StrategyVO};
pub use self::subscription::MarketDataSubscriptionVO;
pub use self::transaction::{TransactionRequestVO, TransactionVO, parse_uuid};

#[cfg(test)]
mod tests;
