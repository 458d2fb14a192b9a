//! Attempts to sign in, on any [`Records`]: counted and judged in one step, by what [`sign_in`](soloist_domain::sign_in) says.
//!
//! It shares the table of failures with other counts. It gets hashes: it knows no account and no address.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::credentials::{COUNTED, FAILURES, SWEPT, swept};
use super::shared::{decide, json, look_at, parsed, row, set, still, unset};
use crate::Result;
use crate::credentials::{SignIn, Tried};
use crate::records::{Look, Looked, Plan, Records, Write};
use soloist_domain::sign_in::{BY_ACCOUNT, BY_ADDRESS, BY_BOTH, Limit, WINDOW};
use soloist_domain::time::StoreTime;

/// By account: where it has signed in.
pub(super) const HOMES: &str = "homes";
/// So many addresses of an account are known, the newest.
const MOST_HOMES: usize = 16;
/// More attempts in a window change no answer.
const MOST: usize = 128;

/// Where in what is looked at the oldest counts stand.
const OLDEST: usize = 4;

/// An address of an account.
#[derive(Serialize, Deserialize)]
struct Home {
    address: String,
    at: StoreTime,
}

/// A count as it was found.
struct Counted<'a> {
    key: String,
    limit: Limit,
    text: Option<&'a str>,
    attempts: Vec<StoreTime>,
}

fn keys(ask: &SignIn) -> [(String, Limit); 3] {
    let SignIn { account, address } = ask;
    [
        (format!("login:both:{account}:{address}"), BY_BOTH),
        (format!("login:account:{account}"), BY_ACCOUNT),
        (format!("login:address:{address}"), BY_ADDRESS),
    ]
}

fn looks(ask: &SignIn) -> Vec<Look> {
    let mut looks = vec![look_at(HOMES, &ask.account)];
    looks.extend(keys(ask).map(|(key, _)| look_at(FAILURES, &key)));
    looks.push(Look::First(COUNTED.to_owned(), SWEPT));
    looks
}

/// Where the account is at home, and the counts that apply: at home only that of both.
fn found<'a>(looked: &'a Looked, ask: &SignIn) -> Result<(Vec<Home>, Vec<Counted<'a>>)> {
    let homes: Vec<Home> = match row(looked, 0) {
        Some(text) => parsed(HOMES, text)?,
        None => Vec::new(),
    };
    let at_home = homes.iter().any(|home| home.address == ask.address);
    let mut counts = Vec::new();
    for (nth, (key, limit)) in keys(ask).into_iter().enumerate() {
        if at_home && nth > 0 {
            break;
        }
        let text = row(looked, nth + 1);
        let attempts = text.map(|text| parsed(FAILURES, text)).transpose()?.unwrap_or_default();
        counts.push(Counted { key, limit, text, attempts });
    }
    Ok((homes, counts))
}

/// Counts an attempt and returns zero, or how long it must wait and counts nothing.
pub(super) async fn attempt(records: &dyn Records, ask: &SignIn) -> Result<Duration> {
    decide(records, &looks(ask), |looked| {
        let now = looked.at.floor();
        let (_, counts) = found(looked, ask)?;
        let waits = counts.iter().map(|one| one.limit.wait(&one.attempts, now));
        let wait = waits.max().unwrap_or_default();
        if !wait.is_zero() {
            return Ok((wait, None));
        }
        let mut plan = Plan::default();
        for one in &counts {
            let mut attempts = one.attempts.clone();
            attempts.retain(|at| now.since(*at) < WINDOW);
            attempts.push(now);
            attempts.drain(..attempts.len().saturating_sub(MOST));
            plan.checks.push(still(FAILURES, &one.key, one.text));
            plan.writes.push(set(FAILURES, &one.key, json(FAILURES, &attempts)?));
            let number = u64::try_from(now.0).unwrap_or_default();
            plan.writes.push(Write::Add {
                list: COUNTED.to_owned(),
                number,
                text: one.key.clone(),
            });
        }
        let kept: Vec<&str> = counts.iter().map(|one| one.key.as_str()).collect();
        plan.writes.extend(swept(looked, OLDEST, &kept, now, WINDOW));
        Ok((Duration::ZERO, Some(plan)))
    })
    .await
}

/// What became of an attempt that was let through; a wrong one stays counted.
pub(super) async fn settle(records: &dyn Records, ask: &SignIn, tried: Tried) -> Result<()> {
    decide(records, &looks(ask), |looked| {
        let now = looked.at.floor();
        let (mut homes, counts) = found(looked, ask)?;
        let mut plan = Plan::default();
        for (nth, one) in counts.iter().enumerate() {
            if one.text.is_none() {
                continue;
            }
            plan.checks.push(still(FAILURES, &one.key, one.text));
            let mut left = one.attempts.clone();
            match tried {
                Tried::Right if nth == 0 => left.clear(),
                Tried::Right | Tried::Unchecked => drop(left.pop()),
            }
            if left.is_empty() {
                plan.writes.push(unset(FAILURES, &one.key));
                let (list, text) = (COUNTED.to_owned(), one.key.clone());
                plan.writes.push(Write::Strike { list, text });
            } else {
                plan.writes.push(set(FAILURES, &one.key, json(FAILURES, &left)?));
            }
        }
        if tried == Tried::Right {
            let old = row(looked, 0);
            homes.retain(|home| home.address != ask.address);
            homes.push(Home { address: ask.address.clone(), at: now });
            homes.drain(..homes.len().saturating_sub(MOST_HOMES));
            plan.checks.push(still(HOMES, &ask.account, old));
            plan.writes.push(set(HOMES, &ask.account, json(HOMES, &homes)?));
        }
        Ok(((), (!plan.writes.is_empty()).then_some(plan)))
    })
    .await
}
