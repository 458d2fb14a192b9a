//! Soloist runs a script exactly once in a cluster, for as long as a user wants it.
//!
//! This crate is the program: what a process is made of, from the crates in `crates/`. Tests and benches find all rooms here.

pub mod app;
pub mod program;

pub use soloist_cli::{self as cli, fence};
pub use soloist_config as config;
pub use soloist_desk::{dispatch, rotation, waiting};
pub use soloist_domain as domain;
pub use soloist_guard as guard;
pub use soloist_ops as ops;
pub use soloist_process::{clock, outlet, parts, sabotage, telemetry};
pub use soloist_remote::{self as remote, http};
pub use soloist_runner as runner;
pub use soloist_secrets as secrets;
pub use soloist_store::{self as store, feed};
pub use soloist_stores as stores;
pub use soloist_view::words;
pub use soloist_web as web;
