//! Alerts: people are told when a job, a node or the store needs them, and when it is over.
//!
//! `sender` watches on every node and sends on one; `sight` is what it looks at, and the words for it; `channel` sends a
//! message, `mail` by mail; `trial` tests a channel; `heartbeat` calls outwards when all is well. `domain::alert` decides which rules tell what; `ops::alerts` who may mute and test.

pub mod channel;
mod heartbeat;
#[cfg(feature = "mail")]
mod mail;
mod sender;
mod sight;
mod trial;

pub use sender::{Alerting, id_of_message};
pub use trial::test;
