#![doc = include_str!("../README.md")]

pub mod workload;

pub mod convert;
pub mod rng;
pub mod naive;
pub mod scenario;

pub mod book;
pub mod bare_ladder;
#[cfg(feature = "peers")]
pub mod peers;
pub mod platform;
pub mod units;
pub mod whole_shard;

pub mod budget;
pub mod conditions;
pub mod comparison;
#[cfg(feature = "flame")]
pub mod flame;
pub mod gate;
pub mod goals;
pub mod instructions;
pub mod measure;
pub mod nautilus;
pub mod noise;
pub mod pairs;
pub mod progress;
pub mod report;
pub mod soak;
pub mod sweep;
pub mod work;

pub mod peer_table;
pub mod brokers;
pub mod nats;
pub mod program;
pub mod publisher;

pub mod attacker;
pub mod consumers;
pub mod fan_out;
pub mod fix;
pub mod fix_path;
pub mod fix_wire;
mod free_addresses;
pub mod http;
pub mod idle;
pub mod isolation;
pub mod journal;
pub mod lane;
pub mod neighbours;
pub mod net;
pub mod memory;
pub mod order_to_tick;
pub mod read_model;
pub mod rest;
pub mod ring;
pub mod simulate;
pub mod stages;
pub mod stomp;
pub mod tick_reader;
