#![doc = include_str!("../README.md")]

pub mod text;
pub mod id;
pub mod number;
pub mod time;
pub mod reason;
pub mod terms;
pub mod refdata;
pub mod command;
pub mod event;
