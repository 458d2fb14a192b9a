//! Alerts: which are on, what was sent where, which are muted, and which node sends.
//!
//! The store decides only who may write: the node that holds the seat of the sender. A message that was sent and could not be recorded is sent
//! again.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::Result;
use soloist_domain::alert::{On, Subject, When};
use soloist_domain::name::NodeName;
use soloist_domain::time::StoreTime;

/// So many of those that are over and done are remembered.
pub const PAST_KEPT: usize = 200;

/// The message, worded when it happened.
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
    /// When this changes, it is over: [`Mark::print`](soloist_domain::alert::Mark).
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

impl Incident {
    /// As the rules see one that is on: the channels that heard of it by what is written, and whether it is mute.
    #[must_use]
    pub fn as_on(&self, muted: bool) -> On {
        let began = self.sent.iter().filter(|(_, sent)| sent.begin.is_some());
        On {
            alert: self.alert.clone(),
            when: self.when,
            subject: self.subject.clone(),
            print: self.print.clone(),
            to: self.to.clone(),
            heard: began.map(|(channel, _)| channel.clone()).collect(),
            muted,
        }
    }
}

/// The newest attempt to send by a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Tried {
    pub at: StoreTime,
    pub ok: bool,
    pub error: Option<String>,
    /// Since when every attempt failed; `None` after one that went well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<StoreTime>,
    /// What the other channels report of it, until all of them know that it is over. It is here and not among the incidents,
    /// because nodes of older versions could not read those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<Box<Incident>>,
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

impl Book {
    /// Every alert that is on, also those about channels.
    pub fn on(&self) -> impl Iterator<Item = &Incident> {
        let lost = self.channels.values().filter_map(|tried| tried.lost.as_deref());
        self.incidents.iter().chain(lost).filter(|incident| incident.end.is_none())
    }
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
#[async_trait]
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

    /// Notes that a channel took a test: it is not lost any more. Whoever has the seat tells the others.
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn channel_took(&self, channel: &str) -> Result<()>;

    /// Mutes an alert, or lets it speak again; says until when it is mute.
    ///
    /// # Errors
    /// As [`Alerts::alert_book`].
    async fn mute_alert(&self, alert: &str, mute: Mute) -> Result<Option<StoreTime>>;
}
