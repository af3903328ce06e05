#![doc = include_str!("../README.md")]

pub mod words;

pub mod line;
