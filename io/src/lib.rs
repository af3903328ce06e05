#![doc = include_str!("../README.md")]

pub mod args;
pub mod serve;
pub mod platform;
pub mod demo;
pub mod idle;
pub mod wake;
pub mod http;
pub mod tls;
pub mod metrics;
pub mod clock;
pub mod refdata;
