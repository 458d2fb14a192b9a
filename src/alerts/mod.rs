//! Alerts: somebody is told when a job, a node or the store needs them, and when it is over.
//!
//! `sender` watches on every node and sends on one; `sight` is what it looks at, and the words for it; `channel` sends a
//! message, `mail` by mail; `trial` tests a channel. Which rules tell what is decided in `domain::alert`; who may mute and test, in `ops::alerts`.

pub mod channel;
mod mail;
mod sender;
mod sight;
mod trial;

pub use sender::{Alerting, id_of_message};
pub use trial::test;
