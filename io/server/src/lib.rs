#![doc = include_str!("../../README.md")]

pub mod args;
mod cli;
pub mod doctor;
pub mod health;
pub mod port_owner;
mod refdata_import;
pub mod serve;
mod simulation;
pub mod topology;
pub mod tune;

pub use self::cli::run;
