#![doc = include_str!("../README.md")]

pub mod args;
pub mod clock;
pub mod refdata;
