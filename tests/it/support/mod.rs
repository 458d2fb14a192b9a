//! What tests start and stop: real servers on free ports, real nodes.

pub mod guarded;
pub mod redis;
