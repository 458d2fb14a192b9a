//! Queues of programs for a lease, on any [`Records`]: for each lease a list of waiters, and a table of their places.
//!
//! | name | kind | holds |
//! | --- | --- | --- |
//! | `line:NAME` | list | owners, in the order in which they came to the store |
//! | `line:at:NAME` | table | owner: `UNTIL HOLDER WAITER`; the waiter is `-` while its connection is gone |
//!
//! Instants are microseconds since 1970. Names, owners and waiters have no spaces.

use std::time::Duration;

use async_trait::async_trait;

use super::shared::{decide, look_at, row, set, still, unset};
use crate::line::{Line, Lines, Place};
use crate::records::{Found, Look, Plan, Records, Tell, Write};
use crate::{Result, StoreError};
use soloist_domain::name::{JobName, NodeName, Owner, Waiter};
use soloist_domain::time::Stamp;

/// Counts the places of all lines.
const PLACES: &str = "line:places";
/// Who waits nowhere at this moment.
const AWAY: &str = "-";

pub(super) fn list(name: &JobName) -> String {
    format!("line:{name}")
}

fn table(name: &JobName) -> String {
    format!("line:at:{name}")
}

fn text(until: Stamp, holder: &str, waiter: Option<&Waiter>) -> String {
    format!("{} {holder} {}", until.0, waiter.map_or(AWAY, |waiter| &waiter.0))
}

fn place(name: &JobName, owner: &str, text: &str) -> Result<Place> {
    let corrupt = || StoreError::Corrupt(format!("{}: {text:?}", table(name)));
    let mut words = text.splitn(3, ' ');
    let mut word = || words.next().ok_or_else(corrupt);
    let (until, holder, waiter) = (word()?, word()?, word()?);
    Ok(Place {
        owner: Owner(owner.to_owned()),
        holder: NodeName::new(holder).map_err(|_| corrupt())?,
        waiter: (waiter != AWAY).then(|| Waiter(waiter.to_owned())),
        until: Stamp(until.parse().map_err(|_| corrupt())?),
    })
}

#[async_trait]
impl Lines for dyn Records + '_ {
    async fn line(&self, name: &JobName, most: usize) -> Result<Line> {
        let look = Look::Described { list: list(name), table: table(name), most };
        let looked = self.look(&[look]).await?;
        let found = match looked.found.into_iter().next() {
            Some(Found::Described(found)) => found,
            _ => Vec::new(),
        };
        let mut places = Vec::with_capacity(found.len());
        for (_, owner, told) in found {
            // Who is listed and stands nowhere: a place that was never taken.
            let told = told.unwrap_or_else(|| format!("0 {} {AWAY}", NodeName::unknown()));
            places.push(place(name, &owner, &told)?);
        }
        Ok(Line { now: looked.at, places })
    }

    async fn join_line(
        &self,
        name: &JobName,
        owner: &Owner,
        holder: &NodeName,
        waiter: &Waiter,
        lasting: Duration,
    ) -> Result<()> {
        decide(self, &[], |looked| {
            let kept = text(looked.at + lasting, holder.as_str(), Some(waiter));
            let (counter, text) = (PLACES.to_owned(), owner.0.clone());
            let join = Write::Join { list: list(name), counter, text };
            let writes = vec![join, set(&table(name), &owner.0, kept)];
            Ok(((), Some(Plan { writes, ..Plan::default() })))
        })
        .await
    }

    async fn step_aside(
        &self,
        name: &JobName,
        owner: &Owner,
        waiter: &Waiter,
        lasting: Duration,
    ) -> Result<()> {
        let table = table(name);
        decide(self, &[look_at(&table, &owner.0)], |looked| {
            let Some(is) = row(looked, 0) else { return Ok(((), None)) };
            let known = place(name, &owner.0, is)?;
            if known.waiter.as_ref() != Some(waiter) {
                return Ok(((), None));
            }
            let kept = text(looked.at + lasting, known.holder.as_str(), None);
            let checks = vec![still(&table, &owner.0, Some(is))];
            let writes = vec![set(&table, &owner.0, kept)];
            Ok(((), Some(Plan { checks, writes, ..Plan::default() })))
        })
        .await
    }

    async fn leave_line(&self, name: &JobName, owner: &Owner, lapsed: Option<Stamp>) -> Result<()> {
        let table = table(name);
        let strike = || Write::Strike { list: list(name), text: owner.0.clone() };
        decide(self, &[look_at(&table, &owner.0)], |looked| {
            let is = row(looked, 0);
            let known = is.map(|is| place(name, &owner.0, is)).transpose()?;
            if let (Some(known), Some(lapsed)) = (known, lapsed)
                && known.until > lapsed
            {
                return Ok(((), None));
            }
            let checks = vec![still(&table, &owner.0, is)];
            let writes = vec![strike(), unset(&table, &owner.0)];
            Ok(((), Some(Plan { checks, writes, ..Plan::default() })))
        })
        .await
    }

    async fn call_waiter(&self, waiter: &Waiter) -> Result<()> {
        let plan = Plan { tells: vec![Tell::Wake(vec![waiter.clone()])], ..Plan::default() };
        self.change(&plan).await.map(drop)
    }
}
