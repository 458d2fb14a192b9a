//! Soloist runs a script exactly once in a cluster, for as long as a user wants it.

// A store with its coordination is a state machine on a state machine.
#![recursion_limit = "256"]

mod alerts;
pub mod app;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dispatch;
pub mod domain;
pub mod feed;
pub mod fence;
pub mod guard;
mod history;
mod leases;
pub mod ops;
pub mod remote;
pub mod rotation;
pub mod runner;
pub mod sabotage;
pub mod secrets;
pub mod store;
pub mod telemetry;
mod view;
pub mod waiting;
pub mod web;
pub mod words;
