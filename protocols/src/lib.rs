#![doc = include_str!("../README.md")]

pub mod codes;

pub mod order_line;

pub mod decoded;
pub mod json;

pub mod fix;
pub mod websocket;
pub mod stomp;

pub mod rest;
pub mod remote;
