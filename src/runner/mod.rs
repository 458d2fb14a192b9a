//! The runner (stub until the lead's is merged).
pub mod once;
