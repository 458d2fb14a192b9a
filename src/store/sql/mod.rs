//! What the stores that speak SQL have in common.
//!
//! A statement that all of them understand is written once, here; what differs between them is asked of [`session::Dialect`].
//! Each driver (`../sqlite/`, `../postgres/`) brings its connection, its clock, its bell and what is refused of its server.

#[expect(dead_code, reason = "dispatch moves here next")]
pub(super) mod session;
