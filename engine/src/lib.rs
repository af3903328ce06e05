#![doc = include_str!("../README.md")]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::wildcard_enum_match_arm,
        reason = "the numbers of a test are small, and a test looks at one variant at a time"
    )
)]

// Text, numbers and tables.
pub mod text;
pub mod index;
pub mod slot_map;
pub mod slot_table;
pub mod id;
pub mod number;
pub mod time;
pub mod reason;
pub mod rng;

// Commands, events and their bytes.
pub mod terms;
pub mod refdata;
pub mod command;
pub mod directive;
pub mod sender;
pub mod event;
pub mod codec;

// One shard, from its parts to the whole.
pub mod settings;
mod prefetch;
pub mod pages;
mod keyed_hash;
pub mod used_ids;
pub mod order;
pub mod orders;
pub mod ledger;
pub mod risk;
pub mod directory;
mod level_pages;
pub mod order_nodes;
pub mod ladder;
pub mod venue;
pub mod timers;
pub mod outbox;
pub mod book_orders;
pub mod level_book;
pub mod shard;

// Many shards, and the components that communicate with them.
pub mod lane;
pub mod mesh;
pub mod worker;
pub mod keyed_index;
pub mod pending_commands;
pub mod desk;
pub mod budget;
pub mod view;
pub mod feed;
