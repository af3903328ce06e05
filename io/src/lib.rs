#![doc = include_str!("../README.md")]

pub mod args;
pub mod serve;
pub mod platform;
pub mod demo;
pub mod idle;
pub mod wake;
pub mod net;
pub mod clock;
pub mod refdata;
