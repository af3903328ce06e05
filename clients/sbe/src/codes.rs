//! Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookSide {
    B,
    A,
}

impl BookSide {
    pub fn from_code(code: u8) -> Option<BookSide> {
        match code {
            0 => Some(BookSide::B),
            1 => Some(BookSide::A),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            BookSide::B => "B",
            BookSide::A => "A",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    pub fn from_code(code: u8) -> Option<Side> {
        match code {
            0 => Some(Side::Buy),
            1 => Some(Side::Sell),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Side::Buy => "BUY",
            Side::Sell => "SELL",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderAction {
    Add,
    Change,
    Remove,
    Trade,
}

impl OrderAction {
    pub fn from_code(code: u8) -> Option<OrderAction> {
        match code {
            0 => Some(OrderAction::Add),
            1 => Some(OrderAction::Change),
            2 => Some(OrderAction::Remove),
            3 => Some(OrderAction::Trade),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            OrderAction::Add => "ADD",
            OrderAction::Change => "CHANGE",
            OrderAction::Remove => "REMOVE",
            OrderAction::Trade => "TRADE",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TradingSession {
    Closed,
    OpeningAuction,
    Continuous,
    ClosingAuction,
}

impl TradingSession {
    pub fn from_code(code: u8) -> Option<TradingSession> {
        match code {
            0 => Some(TradingSession::Closed),
            1 => Some(TradingSession::OpeningAuction),
            2 => Some(TradingSession::Continuous),
            3 => Some(TradingSession::ClosingAuction),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            TradingSession::Closed => "CLOSED",
            TradingSession::OpeningAuction => "OPENING_AUCTION",
            TradingSession::Continuous => "CONTINUOUS",
            TradingSession::ClosingAuction => "CLOSING_AUCTION",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    PendingNew,
    New,
    PartiallyFilled,
    Filled,
    PendingCancel,
    Canceled,
    PendingReplace,
    Rejected,
    Expired,
}

impl Status {
    pub fn from_code(code: u8) -> Option<Status> {
        match code {
            0 => Some(Status::PendingNew),
            1 => Some(Status::New),
            2 => Some(Status::PartiallyFilled),
            3 => Some(Status::Filled),
            4 => Some(Status::PendingCancel),
            5 => Some(Status::Canceled),
            6 => Some(Status::PendingReplace),
            7 => Some(Status::Rejected),
            8 => Some(Status::Expired),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Status::PendingNew => "PENDING_NEW",
            Status::New => "NEW",
            Status::PartiallyFilled => "PARTIALLY_FILLED",
            Status::Filled => "FILLED",
            Status::PendingCancel => "PENDING_CANCEL",
            Status::Canceled => "CANCELED",
            Status::PendingReplace => "PENDING_REPLACE",
            Status::Rejected => "REJECTED",
            Status::Expired => "EXPIRED",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecType {
    PendingNew,
    Rejected,
    New,
    Trade,
    PendingCancel,
    Canceled,
    Expired,
    PendingReplace,
    Replaced,
    Triggered,
    TradeCorrect,
    OrderStatus,
}

impl ExecType {
    pub fn from_code(code: u8) -> Option<ExecType> {
        match code {
            0 => Some(ExecType::PendingNew),
            1 => Some(ExecType::Rejected),
            2 => Some(ExecType::New),
            3 => Some(ExecType::Trade),
            4 => Some(ExecType::PendingCancel),
            5 => Some(ExecType::Canceled),
            6 => Some(ExecType::Expired),
            7 => Some(ExecType::PendingReplace),
            8 => Some(ExecType::Replaced),
            9 => Some(ExecType::Triggered),
            10 => Some(ExecType::TradeCorrect),
            11 => Some(ExecType::OrderStatus),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            ExecType::PendingNew => "PENDING_NEW",
            ExecType::Rejected => "REJECTED",
            ExecType::New => "NEW",
            ExecType::Trade => "TRADE",
            ExecType::PendingCancel => "PENDING_CANCEL",
            ExecType::Canceled => "CANCELED",
            ExecType::Expired => "EXPIRED",
            ExecType::PendingReplace => "PENDING_REPLACE",
            ExecType::Replaced => "REPLACED",
            ExecType::Triggered => "TRIGGERED",
            ExecType::TradeCorrect => "TRADE_CORRECT",
            ExecType::OrderStatus => "ORDER_STATUS",
        }
    }
}
