#![doc = include_str!("../README.md")]

pub mod args;
pub mod config;
pub mod serve;
pub mod topology;
pub mod platform;
pub mod demo;
pub mod printer;
pub mod stages;
pub mod idle;
pub mod wake;
pub mod sync;
pub mod fault;
pub mod clock;
pub mod refdata;
pub mod journal;
