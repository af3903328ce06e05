#![doc = include_str!("../README.md")]

pub mod workload;

pub mod chance;
pub mod scenario;

pub mod naive;

pub mod floor;

pub mod units;

pub mod book;

pub mod platform;

pub mod whole;
#[cfg(feature = "peers")]
pub mod peers;

pub mod conditions;
pub mod contest;
pub mod goals;
pub mod measure;

pub mod lane;
pub mod memory;
pub mod read_model;
pub mod ring;
