//! Alerts: what is on, what was sent where, who is muted, and which node sends.
//!
//! The store decides nothing about them but who may write: the node that holds the seat of the sender. A message that was sent
//! and could not be noted is sent again.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Result;
use crate::domain::alert::{Subject, When};
use crate::domain::name::NodeName;
use crate::domain::time::StoreTime;

/// So many of those that are over and done are remembered.
pub const PAST_KEPT: usize = 200;

/// What is told, worded when it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Of the message, the same in each attempt to send it.
    pub id: String,
    /// When.
    pub at: StoreTime,
    /// In English.
    pub en: String,
    /// In Chinese.
    pub zh: String,
}

/// Which messages a channel took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Sent {
    pub begin: Option<StoreTime>,
    pub end: Option<StoreTime>,
}

/// An alert from its begin until every channel took its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    /// Later ones have greater ids.
    pub id: String,
    /// The name of its rule.
    pub alert: String,
    /// What the rule is about.
    pub when: When,
    /// Of whom it is true.
    pub subject: Subject,
    /// Since when.
    pub since: StoreTime,
    /// When this changes, it is over: [`Mark::print`](crate::domain::alert::Mark).
    #[serde(default)]
    pub print: String,
    /// The page about it.
    pub url: String,
    /// The channels that are to be told.
    pub to: Vec<String>,
    /// That it began.
    pub begin: Told,
    /// That it is over; `None` while it is on.
    #[serde(default)]
    pub end: Option<Told>,
    /// By channel.
    #[serde(default)]
    pub sent: BTreeMap<String, Sent>,
}

/// The newest attempt to send by a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Tried {
    pub at: StoreTime,
    pub ok: bool,
    pub error: Option<String>,
}

/// Everything about alerts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Book {
    /// The store's clock at this reading.
    pub now: StoreTime,
    /// In the order in which they began.
    pub incidents: Vec<Incident>,
    /// Until when, by the name of the alert; also in the past.
    pub muted: BTreeMap<String, StoreTime>,
    /// By channel.
    pub channels: BTreeMap<String, Tried>,
    /// The node that sends.
    pub sender: Option<NodeName>,
}

/// What the sender writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// New, or changed.
    pub incidents: Vec<Incident>,
    /// Those that are done: they leave the book, and the newest [`PAST_KEPT`] of them are remembered.
    pub past: Vec<Incident>,
    /// How sending went.
    pub channels: BTreeMap<String, Tried>,
}

/// How long an alert is mute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mute {
    /// Until an instant.
    Until(StoreTime),
    /// For so long from now.
    For(Duration),
    /// It speaks again.
    Not,
}

/// Transitions and readings of alerts.
#[expect(async_fn_in_trait, reason = "never used as a trait object; the enum Store forwards")]
pub trait Alerts {
    /// Everything.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait), [`super::StoreError::Corrupt`].
    async fn alert_book(&self) -> Result<Book>;

    /// The newest of those that are done, newest end first: at most so many, and at most [`PAST_KEPT`].
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn past_alerts(&self, most: usize) -> Result<Vec<Incident>>;

    /// Takes the seat of the sender for `lasting` from now, if it is free or held by this incarnation (`boot`) of `node`. Says
    /// whether `node` holds it now.
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn keep_sending(&self, node: &NodeName, boot: &str, lasting: Duration) -> Result<bool>;

    /// Gives the seat up, if this incarnation of `node` holds it.
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn stop_sending(&self, node: &NodeName, boot: &str) -> Result<()>;

    /// Writes what the sender decided. Writes nothing and says `false` when another holds the seat.
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn note_alerts(&self, node: &NodeName, boot: &str, noted: &Noted) -> Result<bool>;

    /// Mutes an alert, or lets it speak again; says until when it is mute.
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn mute_alert(&self, alert: &str, mute: Mute) -> Result<Option<StoreTime>>;
}
