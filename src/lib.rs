//! Soloist runs a script exactly once in a cluster, for as long as a user wants it.

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
pub mod outlet;
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
