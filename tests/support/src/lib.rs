//! Helpers that several test crates share: the real binary as a child process, clients of each of
//! its protocols, and what surrounds it, such as a broker, a disk image, or a network link that can
//! be cut.
//!
//! The kit uses `engine` and `protocols`, and no crate of `io`, so each crate of `io` may use it in
//! its tests. It starts the binary from the target folder; see [`paths::binary`].
//!
//! | module | content |
//! |---|---|
//! | [`patience`] | how long a test waits |
//! | [`paths`] | the binary, the repository, a folder for files of tests |
//! | [`temp_folder`] | a folder that a passing test removes |
//! | [`service`], [`secured_service`] | the server as a child process, without and with logins |
//! | [`http_client`], [`stomp_client`], [`web_socket`], [`fix_client`] | clients over real sockets |
//! | [`fix_fields`], [`stomp_frames`] | messages of dialogue files as text |
//! | [`binance`] | a stand-in of Binance Spot, without a socket |
//! | [`known_orders`] | what a FIX client knows from its reports |
//! | [`loopback`] | clients at several addresses of this machine |
//! | [`certificates`] | a certificate authority |
//! | [`nats_server`], [`raw_nats_client`] | the broker of remote strategies, and a client by hand |
//! | [`strategy_link`] | what connects strategies to their server, and a client by hand |
//! | [`quickfix`] | programs on QuickFIX |
//! | [`python`] | Python with a package |
//! | [`disk_image`], [`network_link`] | a file system in a file, a network of one process |

#![allow(clippy::unwrap_used, reason = "every function is part of a test, and a test may")]

pub use pitlane_dialogue::{binance, binance_book, fix_fields, stomp_frames};

pub mod certificates;
pub mod disk_image;
pub mod fix_client;
pub mod http_client;
pub mod known_orders;
pub mod loopback;
pub mod nats_server;
pub mod network_link;
pub mod paths;
pub mod patience;
pub mod python;
pub mod quickfix;
pub mod raw_nats_client;
pub mod secured_service;
pub mod service;
pub mod stomp_client;
pub mod strategy_link;
pub mod temp_folder;
pub mod web_socket;
