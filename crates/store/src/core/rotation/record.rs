//! A rotation and those who wait, as texts.
//!
//! A record begins with its head, `SHAPE VERSION INSTANT`: how often it was written, and the instant at which that was decided. A
//! condition names the head, because a version alone comes a second time after a restore from an older copy. The shape says which
//! queues there are: it names the head with which the types or the node incarnations changed last. Whoever takes a place in a queue
//! names nothing but the shape.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Result, StoreError};
use soloist_domain::lease::Token;
use soloist_domain::name::{RotationName, TypeName, Waiter, WorkerName};
use soloist_domain::rotation::{Ending, PastTurn, Rotation};
use soloist_domain::time::Stamp;

/// All that is written as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Body {
    pub rotation: Rotation,
    /// Node incarnations (`NODE/RANDOM`) that may have waiters.
    #[serde(default)]
    pub incarnations: BTreeSet<String>,
    /// How the turns of each type ended.
    #[serde(default)]
    pub ended: BTreeMap<TypeName, Endings>,
}

impl Body {
    /// Whether there are the same queues.
    pub(super) fn has_queues_of(&self, other: &Self) -> bool {
        let types = self.rotation.rules.types.iter().map(|kind| &kind.name);
        let others = other.rotation.rules.types.iter().map(|kind| &kind.name);
        self.incarnations == other.incarnations && types.eq(others)
    }
}

/// How many turns ended in which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub(super) struct Endings {
    pub done: u64,
    pub empty: u64,
    pub failed: u64,
    pub lost: u64,
}

impl Endings {
    /// Of one of them.
    pub(super) fn of(&mut self, ending: Ending) -> &mut u64 {
        match ending {
            Ending::Done => &mut self.done,
            Ending::Empty => &mut self.empty,
            Ending::Failed => &mut self.failed,
            Ending::Lost => &mut self.lost,
        }
    }
}

/// A record as it was read or written.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// `SHAPE VERSION INSTANT`.
    pub(super) head: String,
    pub(super) body: Arc<Body>,
}

impl Case {
    pub(super) fn read(name: &RotationName, text: &str) -> Result<Self> {
        let (head, body) = text.split_once('\n').ok_or_else(|| unreadable(name, &"no head"))?;
        let body = serde_json::from_str(body).map_err(|why| unreadable(name, &why))?;
        Ok(Self { head: head.to_owned(), body: Arc::new(body) })
    }

    /// The next one, and its text.
    pub(super) fn next(
        name: &RotationName,
        before: Option<&Self>,
        body: Body,
        now: Stamp,
    ) -> Result<(Self, String)> {
        let version = before.map_or(0, Self::version) + 1;
        let same = before.filter(|before| before.body.has_queues_of(&body));
        let shape =
            same.map_or_else(|| format!("{version}@{}", now.0), |before| before.shape().to_owned());
        let head = format!("{shape} {version} {}", now.0);
        let json = serde_json::to_string(&body).map_err(|why| unreadable(name, &why))?;
        let text = format!("{head}\n{json}");
        Ok((Self { head, body: Arc::new(body) }, text))
    }

    /// Which queues there are.
    pub(super) fn shape(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    fn version(&self) -> u64 {
        self.head.split(' ').nth(1).and_then(|version| version.parse().ok()).unwrap_or(0)
    }

    /// When it was written.
    pub(super) fn written(&self) -> Option<Stamp> {
        self.head.split(' ').nth(2)?.parse().ok().map(Stamp)
    }
}

fn unreadable(name: &RotationName, why: &dyn Display) -> StoreError {
    StoreError::Corrupt(format!("rotation {name}: {why}"))
}

/// A row of those who wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) until: Stamp,
    pub(super) since: Stamp,
    pub(super) kind: TypeName,
    pub(super) worker: WorkerName,
}

impl Standing {
    pub(super) fn text(&self) -> String {
        format!("{} {} {} {}", self.until.0, self.since.0, self.kind, self.worker)
    }

    pub(super) fn read(waiter: &Waiter, text: &str) -> Result<Self> {
        let bad = || StoreError::Corrupt(format!("waiter {}: {text:?}", waiter.0));
        let parts: Vec<&str> = text.split(' ').collect();
        let [until, since, kind, worker] = parts[..] else { return Err(bad()) };
        Ok(Self {
            until: Stamp(until.parse().map_err(|_| bad())?),
            since: Stamp(since.parse().map_err(|_| bad())?),
            kind: kind.parse().map_err(|_| bad())?,
            worker: worker.parse().map_err(|_| bad())?,
        })
    }
}

/// The row of a request that had a turn.
pub(super) fn had_text(turn: Token, until: Stamp) -> String {
    format!("{} {}", turn.0, until.0)
}

/// The turn that it had, and until when that is known.
pub(super) fn had(request: &str, text: &str) -> Result<(Token, Stamp)> {
    let bad = || StoreError::Corrupt(format!("the turn of {request}: {text:?}"));
    let (token, until) = text.split_once(' ').ok_or_else(bad)?;
    Ok((word(token).ok_or_else(bad).map(Token)?, word(until).ok_or_else(bad).map(Stamp)?))
}

fn word<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// The entry of a turn that ended.
///
/// # Errors
/// [`StoreError::Corrupt`].
pub(super) fn past_text(past: &PastTurn) -> Result<String> {
    serde_json::to_string(past).map_err(|why| StoreError::Corrupt(format!("a past turn: {why}")))
}

pub(super) fn past(rotation: &RotationName, text: &str) -> Result<PastTurn> {
    serde_json::from_str(text).map_err(|why| unreadable(rotation, &format!("a past turn: {why}")))
}
