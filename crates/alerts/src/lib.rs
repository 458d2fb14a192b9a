//! Alerts: messages to people when a job, a node or the store needs them, and when that ends.
//!
//! | file | what it does |
//! | --- | --- |
//! | `sender` | watches on every node, sends on one |
//! | `sight` | what a node observes, and the words for it |
//! | `channel`, `mail` | sends one message; by mail |
//! | `trial` | tests a channel |
//! | `heartbeat` | calls outside addresses while all is well |
//!
//! `domain::alert` decides which rules send what; `ops::alerts` decides who may mute and test.

pub mod channel;
mod heartbeat;
#[cfg(feature = "mail")]
mod mail;
mod sender;
mod sight;
mod trial;

pub use sender::{Alerting, id_of_message};
pub use trial::test;
