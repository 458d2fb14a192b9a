//! What the stores that speak SQL have in common.
//!
//! A statement that all of them understand is written once, here; what differs between them is asked of [`session::Dialect`].
//! Each driver (`../sqlite/`) brings its connection, its clock, its bell and what is refused of its server.

pub(super) mod dispatch;
#[cfg_attr(not(test), expect(dead_code, reason = "for the servers that come next"))]
pub(super) mod relay;
pub(super) mod row;
pub(super) mod session;
