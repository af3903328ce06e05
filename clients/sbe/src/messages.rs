//! Made by `clients/sbe/generate.py` from `docs/sbe/pitlane.xml`.

use crate::codes::{BookSide, ExecType, OrderAction, Side, Status, TradingSession};
use crate::{Decimal, Group, Reader, SbeError, View, octets};

pub(crate) const SCHEMA_ID: u16 = 1;

/// Any message of the schema.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    Tick(Tick<'a>),
    Book(Book<'a>),
    DepthSnapshot(DepthSnapshot<'a>),
    DepthUpdate(DepthUpdate<'a>),
    OrderStatus(OrderStatus<'a>),
    Trade(Trade<'a>),
    OrdersSnapshot(OrdersSnapshot<'a>),
    OrdersUpdate(OrdersUpdate<'a>),
    SecurityStatus(SecurityStatus<'a>),
    Bar(Bar<'a>),
}

impl<'a> Message<'a> {
    pub(crate) fn read(template: u16, reader: &mut Reader<'a>) -> Result<Message<'a>, SbeError> {
        match template {
            1 => Ok(Message::Tick(Tick::read(reader)?)),
            2 => Ok(Message::Book(Book::read(reader)?)),
            3 => Ok(Message::DepthSnapshot(DepthSnapshot::read(reader)?)),
            4 => Ok(Message::DepthUpdate(DepthUpdate::read(reader)?)),
            5 => Ok(Message::OrderStatus(OrderStatus::read(reader)?)),
            6 => Ok(Message::Trade(Trade::read(reader)?)),
            7 => Ok(Message::OrdersSnapshot(OrdersSnapshot::read(reader)?)),
            8 => Ok(Message::OrdersUpdate(OrdersUpdate::read(reader)?)),
            9 => Ok(Message::SecurityStatus(SecurityStatus::read(reader)?)),
            10 => Ok(Message::Bar(Bar::read(reader)?)),
            other => Err(SbeError::UnknownTemplate(other)),
        }
    }
}

/// An entry of a group.
#[derive(Clone, Copy, Debug)]
pub struct Level<'a> {
    block: &'a [u8],
}

impl<'a> View<'a> for Level<'a> {
    const BLOCK_LENGTH: usize = 16;

    fn new(block: &'a [u8]) -> Level<'a> {
        Level { block }
    }
}

impl Level<'_> {
    pub fn price(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 0)))
    }

    pub fn size(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 8)))
    }
}

/// An entry of a group.
#[derive(Clone, Copy, Debug)]
pub struct LevelChange<'a> {
    block: &'a [u8],
}

impl<'a> View<'a> for LevelChange<'a> {
    const BLOCK_LENGTH: usize = 17;

    fn new(block: &'a [u8]) -> LevelChange<'a> {
        LevelChange { block }
    }
}

impl LevelChange<'_> {
    pub fn price(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 0)))
    }

    pub fn size(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 8)))
    }

    pub fn side(&self) -> Option<BookSide> {
        BookSide::from_code(u8::from_le_bytes(octets(self.block, 16)))
    }
}

/// An entry of a group.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    block: &'a [u8],
}

impl<'a> View<'a> for Order<'a> {
    const BLOCK_LENGTH: usize = 24;

    fn new(block: &'a [u8]) -> Order<'a> {
        Order { block }
    }
}

impl Order<'_> {
    pub fn number(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn price(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 8)))
    }

    pub fn size(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 16)))
    }
}

/// An entry of a group.
#[derive(Clone, Copy, Debug)]
pub struct OrderChange<'a> {
    block: &'a [u8],
}

impl<'a> View<'a> for OrderChange<'a> {
    const BLOCK_LENGTH: usize = 26;

    fn new(block: &'a [u8]) -> OrderChange<'a> {
        OrderChange { block }
    }
}

impl OrderChange<'_> {
    pub fn number(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn price(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 8)))
    }

    pub fn size(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 16)))
    }

    pub fn side(&self) -> Option<BookSide> {
        BookSide::from_code(u8::from_le_bytes(octets(self.block, 24)))
    }

    pub fn action(&self) -> Option<OrderAction> {
        OrderAction::from_code(u8::from_le_bytes(octets(self.block, 25)))
    }
}

/// `TICK`
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    block: &'a [u8],
}

impl<'a> Tick<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Tick<'a>, SbeError> {
        let block = reader.block(84)?;
        Ok(Tick { block })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn date_time(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 16))
    }

    pub fn bid(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 24)))
    }

    pub fn bid_size(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 32)))
    }

    pub fn ask(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 40)))
    }

    pub fn ask_size(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 48)))
    }

    pub fn last(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 56)))
    }

    pub fn last_size(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 64)))
    }

    pub fn volume(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 72)))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 80))
    }
}

/// `BOOK`
#[derive(Clone, Copy, Debug)]
pub struct Book<'a> {
    block: &'a [u8],
    pub bids: Group<'a, Level<'a>>,
    pub asks: Group<'a, Level<'a>>,
}

impl<'a> Book<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Book<'a>, SbeError> {
        let block = reader.block(20)?;
        let bids = reader.group()?;
        let asks = reader.group()?;
        Ok(Book { block, bids, asks })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 16))
    }
}

/// `SNAPSHOT`
#[derive(Clone, Copy, Debug)]
pub struct DepthSnapshot<'a> {
    block: &'a [u8],
    pub bids: Group<'a, Level<'a>>,
    pub asks: Group<'a, Level<'a>>,
}

impl<'a> DepthSnapshot<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<DepthSnapshot<'a>, SbeError> {
        let block = reader.block(24)?;
        let bids = reader.group()?;
        let asks = reader.group()?;
        Ok(DepthSnapshot { block, bids, asks })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 16))
    }

    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 20))
    }
}

/// `UPDATE`
#[derive(Clone, Copy, Debug)]
pub struct DepthUpdate<'a> {
    block: &'a [u8],
    pub changes: Group<'a, LevelChange<'a>>,
}

impl<'a> DepthUpdate<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<DepthUpdate<'a>, SbeError> {
        let block = reader.block(33)?;
        let changes = reader.group()?;
        Ok(DepthUpdate { block, changes })
    }

    pub fn prev_seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 16))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 24))
    }

    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 28))
    }

    pub fn is_checked(&self) -> bool {
        u8::from_le_bytes(octets(self.block, 32)) & 1 != 0
    }
}

/// `ORDER_STATUS`
#[derive(Clone, Copy, Debug)]
pub struct OrderStatus<'a> {
    block: &'a [u8],
    pub int_id: &'a str,
    pub orig_int_id: &'a str,
    pub strategy_name: &'a str,
    pub reason: &'a str,
}

impl<'a> OrderStatus<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<OrderStatus<'a>, SbeError> {
        let block = reader.block(74)?;
        let int_id = reader.text()?;
        let orig_int_id = reader.text()?;
        let strategy_name = reader.text()?;
        let reason = reader.text()?;
        Ok(OrderStatus { block, int_id, orig_int_id, strategy_name, reason })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn quantity(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 16)))
    }

    pub fn filled_quantity(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 24)))
    }

    pub fn remaining_quantity(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 32)))
    }

    pub fn avg_price(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 40)))
    }

    pub fn last_quantity(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 48)))
    }

    pub fn last_price(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 56)))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 64))
    }

    pub fn account_id(&self) -> u16 {
        u16::from_le_bytes(octets(self.block, 68))
    }

    pub fn status(&self) -> Option<Status> {
        Status::from_code(u8::from_le_bytes(octets(self.block, 70)))
    }

    pub fn exec_type(&self) -> Option<ExecType> {
        ExecType::from_code(u8::from_le_bytes(octets(self.block, 71)))
    }

    pub fn side(&self) -> Option<Side> {
        Side::from_code(u8::from_le_bytes(octets(self.block, 72)))
    }

    pub fn is_unknown(&self) -> bool {
        u8::from_le_bytes(octets(self.block, 73)) & 1 != 0
    }
}

/// `TRADE`
#[derive(Clone, Copy, Debug)]
pub struct Trade<'a> {
    block: &'a [u8],
}

impl<'a> Trade<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Trade<'a>, SbeError> {
        let block = reader.block(45)?;
        Ok(Trade { block })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn trade_id(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 16))
    }

    pub fn price(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 24)))
    }

    pub fn size(&self) -> Option<Decimal> {
        Decimal::optional(i64::from_le_bytes(octets(self.block, 32)))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 40))
    }

    pub fn aggressor(&self) -> Option<Side> {
        Side::from_code(u8::from_le_bytes(octets(self.block, 44)))
    }
}

/// `SNAPSHOT`
#[derive(Clone, Copy, Debug)]
pub struct OrdersSnapshot<'a> {
    block: &'a [u8],
    pub bids: Group<'a, Order<'a>>,
    pub asks: Group<'a, Order<'a>>,
}

impl<'a> OrdersSnapshot<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<OrdersSnapshot<'a>, SbeError> {
        let block = reader.block(24)?;
        let bids = reader.group()?;
        let asks = reader.group()?;
        Ok(OrdersSnapshot { block, bids, asks })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 16))
    }

    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 20))
    }
}

/// `UPDATE`
#[derive(Clone, Copy, Debug)]
pub struct OrdersUpdate<'a> {
    block: &'a [u8],
    pub changes: Group<'a, OrderChange<'a>>,
}

impl<'a> OrdersUpdate<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<OrdersUpdate<'a>, SbeError> {
        let block = reader.block(33)?;
        let changes = reader.group()?;
        Ok(OrdersUpdate { block, changes })
    }

    pub fn prev_seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 16))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 24))
    }

    pub fn checksum(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 28))
    }

    pub fn is_checked(&self) -> bool {
        u8::from_le_bytes(octets(self.block, 32)) & 1 != 0
    }
}

/// `SECURITY_STATUS`
#[derive(Clone, Copy, Debug)]
pub struct SecurityStatus<'a> {
    block: &'a [u8],
}

impl<'a> SecurityStatus<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<SecurityStatus<'a>, SbeError> {
        let block = reader.block(22)?;
        Ok(SecurityStatus { block })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 16))
    }

    pub fn session(&self) -> Option<TradingSession> {
        TradingSession::from_code(u8::from_le_bytes(octets(self.block, 20)))
    }

    pub fn is_halted(&self) -> bool {
        u8::from_le_bytes(octets(self.block, 21)) & 1 != 0
    }
}

/// `BAR`
#[derive(Clone, Copy, Debug)]
pub struct Bar<'a> {
    block: &'a [u8],
    pub size: &'a str,
}

impl<'a> Bar<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Bar<'a>, SbeError> {
        let block = reader.block(68)?;
        let size = reader.text()?;
        Ok(Bar { block, size })
    }

    pub fn seq(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 0))
    }

    pub fn ts(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 8))
    }

    pub fn date_time(&self) -> u64 {
        u64::from_le_bytes(octets(self.block, 16))
    }

    pub fn open(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 24)))
    }

    pub fn high(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 32)))
    }

    pub fn low(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 40)))
    }

    pub fn close(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 48)))
    }

    pub fn volume(&self) -> Decimal {
        Decimal(i64::from_le_bytes(octets(self.block, 56)))
    }

    pub fn security_id(&self) -> u32 {
        u32::from_le_bytes(octets(self.block, 64))
    }
}
