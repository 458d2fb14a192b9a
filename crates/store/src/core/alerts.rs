//! Alerts, on any [`Records`].
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `alerts` | table | id: an incident, in JSON |
//! | `alerts:muted` | table | name of an alert: until when, milliseconds since 1970 |
//! | `alerts:channels` | table | name of a channel: the newest attempt, in JSON |
//! | `alerts:past` | list | by when it was over, in milliseconds since 1970: an incident that is done, in JSON |
//! | `alerts:sender` | table | `seat`: `NODE BOOT UNTIL`, milliseconds since 1970 |

use std::time::Duration;

use async_trait::async_trait;

use super::shared::{decide, json, look_at, parsed, row, rows, set, still, unset};
use crate::Result;
use crate::alerts::{Alerts, Book, Incident, Mute, Noted, PAST_KEPT, Tried};
use crate::records::{Changed, Check, Found, Look, Plan, Records, Write};
use soloist_domain::name::NodeName;
use soloist_domain::time::StoreTime;

pub(super) const INCIDENTS: &str = "alerts";
pub(super) const MUTED: &str = "alerts:muted";
pub(super) const CHANNELS: &str = "alerts:channels";
pub(super) const PAST: &str = "alerts:past";
const SENDER: &str = "alerts:sender";
const SEAT: &str = "seat";

fn mark(node: &NodeName, boot: &str) -> String {
    format!("{node} {boot} ")
}

/// When the seat lapses; one that cannot be read has.
fn until(seat: &str) -> StoreTime {
    StoreTime(seat.rsplit(' ').next().and_then(|ms| ms.parse().ok()).unwrap_or(0))
}

#[async_trait]
impl Alerts for dyn Records + '_ {
    async fn alert_book(&self) -> Result<Book> {
        let looks = [
            Look::Rows(INCIDENTS.to_owned()),
            Look::Rows(MUTED.to_owned()),
            Look::Rows(CHANNELS.to_owned()),
            look_at(SENDER, SEAT),
        ];
        let looked = self.look(&looks).await?;
        let now = looked.at.floor();
        let mut book = Book { now, ..Book::default() };
        for (_, text) in rows(&looked, 0) {
            book.incidents.push(parsed(INCIDENTS, text)?);
        }
        for (alert, text) in rows(&looked, 1) {
            book.muted.insert(alert.to_owned(), StoreTime(parsed(MUTED, text)?));
        }
        for (channel, text) in rows(&looked, 2) {
            book.channels.insert(channel.to_owned(), parsed(CHANNELS, text)?);
        }
        book.incidents.sort_by(|one, other| one.id.cmp(&other.id));
        book.sender = row(&looked, 3)
            .filter(|seat| until(seat) > now)
            .and_then(|seat| NodeName::new(seat.split(' ').next()?).ok());
        Ok(book)
    }

    async fn past_alerts(&self, most: usize) -> Result<Vec<Incident>> {
        let looked = self.look(&[Look::Last(PAST.to_owned(), most.min(PAST_KEPT))]).await?;
        let Some(Found::Entries(entries)) = looked.found.into_iter().next() else {
            return Ok(Vec::new());
        };
        entries.iter().rev().map(|(_, text)| parsed(PAST, text)).collect()
    }

    async fn keep_sending(&self, node: &NodeName, boot: &str, lasting: Duration) -> Result<bool> {
        let mark = mark(node, boot);
        decide(self, &[look_at(SENDER, SEAT)], |looked| {
            let (now, seat) = (looked.at.floor(), row(looked, 0));
            if seat.is_some_and(|seat| !seat.starts_with(&mark) && until(seat) > now) {
                return Ok((false, None));
            }
            let text = format!("{mark}{}", (now + lasting).0);
            let plan = Plan {
                checks: vec![still(SENDER, SEAT, seat)],
                writes: vec![set(SENDER, SEAT, text)],
                ..Plan::default()
            };
            Ok((true, Some(plan)))
        })
        .await
    }

    async fn stop_sending(&self, node: &NodeName, boot: &str) -> Result<()> {
        let mark = mark(node, boot);
        decide(self, &[look_at(SENDER, SEAT)], |looked| {
            let Some(seat) = row(looked, 0).filter(|seat| seat.starts_with(&mark)) else {
                return Ok(((), None));
            };
            let plan = Plan {
                checks: vec![still(SENDER, SEAT, Some(seat))],
                writes: vec![unset(SENDER, SEAT)],
                ..Plan::default()
            };
            Ok(((), Some(plan)))
        })
        .await
    }

    async fn note_alerts(&self, node: &NodeName, boot: &str, noted: &Noted) -> Result<bool> {
        let mut plan = Plan::default();
        plan.checks.push(Check::Begins {
            table: SENDER.to_owned(),
            row: SEAT.to_owned(),
            with: mark(node, boot),
        });
        for incident in &noted.incidents {
            plan.writes.push(set(INCIDENTS, &incident.id, json(INCIDENTS, incident)?));
        }
        for incident in &noted.past {
            plan.writes.push(unset(INCIDENTS, &incident.id));
            let over = incident.end.as_ref().unwrap_or(&incident.begin).at.0;
            plan.writes.push(Write::Add {
                list: PAST.to_owned(),
                number: u64::try_from(over).unwrap_or(0),
                text: json(PAST, incident)?,
            });
        }
        if !noted.past.is_empty() {
            plan.writes.push(Write::Cut { list: PAST.to_owned(), kept: PAST_KEPT });
        }
        for (channel, tried) in &noted.channels {
            plan.writes.push(set(CHANNELS, channel, json(CHANNELS, tried)?));
        }
        if plan.writes.is_empty() {
            return Ok(true);
        }
        Ok(self.change(&plan).await? == Changed::Done)
    }

    async fn channel_took(&self, channel: &str) -> Result<()> {
        decide(self, &[look_at(CHANNELS, channel)], |looked| {
            let old = row(looked, 0);
            let Some(known) = old.map(|text| parsed::<Tried>(CHANNELS, text)).transpose()? else {
                return Ok(((), None));
            };
            let at = looked.at.floor();
            let tried = Tried { at, ok: true, error: None, failing: None, ..known };
            let plan = Plan {
                checks: vec![still(CHANNELS, channel, old)],
                writes: vec![set(CHANNELS, channel, json(CHANNELS, &tried)?)],
                ..Plan::default()
            };
            Ok(((), Some(plan)))
        })
        .await
    }

    async fn mute_alert(&self, alert: &str, mute: Mute) -> Result<Option<StoreTime>> {
        decide(self, &[look_at(MUTED, alert)], |looked| {
            let old = row(looked, 0);
            let until = match mute {
                Mute::Until(until) => Some(until),
                Mute::For(lasting) => Some(looked.at.floor() + lasting),
                Mute::Not => None,
            };
            let write = match until {
                Some(until) => set(MUTED, alert, until.0.to_string()),
                None => unset(MUTED, alert),
            };
            let plan = Plan {
                checks: vec![still(MUTED, alert, old)],
                writes: vec![write],
                ..Plan::default()
            };
            Ok((until, Some(plan)))
        })
        .await
    }
}
