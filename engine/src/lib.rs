#![doc = include_str!("../README.md")]

pub mod chance;
pub mod command;
pub mod event;
pub mod feed;
pub mod id;
pub mod number;
pub mod outbox;
pub mod reason;
pub mod refdata;
pub mod settings;
pub mod shard;
pub mod terms;
pub mod text;
pub mod time;
pub mod view;
