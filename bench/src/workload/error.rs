//! Defects of a workload file and of its records.

use std::{fmt, io};

use super::{ORDER_ID_MAX, PRICE_MAX, SECURITIES_MAX};

/// The reason why a file is no workload.
#[derive(Debug)]
pub enum WorkloadError {
    Io(io::Error),
    Magic,
    Length { expected: u128, found: usize },
    Securities(u32),
    OrderIds(u64),
    Record { number: usize, error: RecordError },
}

impl std::error::Error for WorkloadError {}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadError::Io(error) => write!(f, "{error}"),
            WorkloadError::Magic => write!(f, "no workload file: it does not begin with EWL1"),
            WorkloadError::Length { expected, found } => {
                write!(f, "{found} bytes long where the header asks for {expected}")
            }
            WorkloadError::Securities(count) => {
                write!(f, "{count} securities; 1 to {SECURITIES_MAX} are possible")
            }
            WorkloadError::OrderIds(id) => write!(f, "order ids up to {id}; {ORDER_ID_MAX} is the most"),
            WorkloadError::Record { number, error } => write!(f, "record {number}: {error}"),
        }
    }
}

/// The defect of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    Kind(u8),
    Side(u8),
    Padding,
    Security(u32),
    Order(u64),
    Price(i32),
    Quantity,
    Twice(u64),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Kind(code) => write!(f, "kind {code}; 1 to 5 are known"),
            RecordError::Side(code) => write!(f, "side {code}; 0 is buy, 1 is sell"),
            RecordError::Padding => write!(f, "bytes 2 and 3 are not zero"),
            RecordError::Security(security) => write!(f, "security {security} is beyond the header's count"),
            RecordError::Order(order) => write!(f, "order id {order} is above the header's highest"),
            RecordError::Price(price) => write!(f, "price {price}; 0 to {PRICE_MAX} ticks are possible"),
            RecordError::Quantity => write!(f, "a new order without a quantity"),
            RecordError::Twice(order) => write!(f, "order id {order} is entered a second time"),
        }
    }
}
