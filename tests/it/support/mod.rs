//! What tests start and stop: real servers on free ports, real nodes, real browsers.

pub mod api;
pub mod browser;
pub mod cluster;
pub mod guarded;
pub mod machine;
pub mod node;
pub mod redis;
pub mod sentinel;
pub mod wait;
pub mod witness;
pub mod worker;
