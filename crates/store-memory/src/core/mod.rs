//! The laws of the core of the store, on a store in memory.

mod jobs;
mod rotations;
mod shared;
mod spent;
