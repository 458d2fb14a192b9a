//! Leases: granted, renewed, released.
//!
//! The laws of all else:
//!
//! - a valid lease is never granted to another owner;
//! - every grant has a token above all earlier ones, also above those that the store has forgotten;
//! - a lease that was released, or that a newer token superseded, is never renewed;
//! - an owner that renews a lease, or asks for it again, never gets a shorter one: an answer that is lost cannot say that it is shorter;
//! - a program extends only the lease that the store granted to it; nothing that it sends makes or replaces a lease;
//! - an owner that asks again gets the same grant, so an answer lost in the network is harmless.

use std::time::Duration;

use super::history::{Past, close_as_lost};
use super::{Job, Now, Write};
use crate::event::EventKind;
use crate::grant::{Acquire, Acquired, Condition, Released, Renewal, Renewed};
use crate::handover::is_for_another;
use crate::job::{JobRecord, LeaseRecord};
use crate::lease::Token;
use crate::name::{Owner, RunId};
use crate::spent::{self, Outcome};
use crate::tick;
use crate::time::StoreTime;

/// Takes the lease if it is free and the condition holds.
///
/// `quarantine` is how much longer leases may last that the store has forgotten: nothing is granted meanwhile. `past` is needed
/// only if the record shows a run, which is then closed as lost.
pub fn acquire(
    job: &mut Job,
    past: &Past,
    ask: &Acquire,
    quarantine: Duration,
    now: Now,
) -> (Acquired, Vec<Write>) {
    if let Some(answer) = held(job, ask) {
        return (answer, Vec::new());
    }
    if let Some(refused) = refusal(&job.record, ask, now.at).or_else(|| doubt(quarantine)) {
        return (refused, Vec::new());
    }
    grant(job, past, ask, now)
}

/// The answer while a lease lasts.
pub(super) fn held(job: &mut Job, ask: &Acquire) -> Option<Acquired> {
    let lease = job.record.lease.as_mut()?;
    if lease.owner != ask.owner {
        let (node, remaining) = (lease.node.clone(), lease.expires_in);
        return Some(match lease.owner.is_kept_back() {
            true => Acquired::Quarantined { wait: remaining },
            false => Acquired::Busy { node, remaining },
        });
    }
    // The answer to the first request was lost on its way.
    *lease = extended(lease, ask.ttl);
    Some(Acquired::Granted { token: lease.token, since: lease.since })
}

/// Nothing is granted while the store may have forgotten leases.
pub(super) fn doubt(quarantine: Duration) -> Option<Acquired> {
    (!quarantine.is_zero()).then_some(Acquired::Quarantined { wait: quarantine })
}

/// Grants a free lease.
pub(super) fn grant(job: &mut Job, past: &Past, ask: &Acquire, now: Now) -> (Acquired, Vec<Write>) {
    // Even the same node gets a new token: its paused former self must lose to it.
    let Some(token) = mint(job.record.token, ask.seen, now.at) else {
        return (Acquired::Exhausted, Vec::new());
    };
    let mut writes = close_as_lost(job, past, now.at);
    job.record.token = token;
    (job.record.next, job.record.moving) = (None, None);
    job.lapsed = None;
    job.record.lease = Some(LeaseRecord {
        node: ask.node.clone(),
        owner: ask.owner.clone(),
        token,
        since: now.at,
        expires_in: ask.ttl,
        ttl: ask.ttl,
    });
    writes.push(job.publish(EventKind::LeaseAcquired));
    (Acquired::Granted { token, since: now.at }, writes)
}

/// A living lease for `ttl` from now, or for what is left of it if that is more, in whole milliseconds.
fn extended(lease: &LeaseRecord, ttl: Duration) -> LeaseRecord {
    let left = lease.expires_in.as_nanos().div_ceil(1_000_000);
    let ttl = ttl.max(Duration::from_millis(u64::try_from(left).unwrap_or(u64::MAX)));
    LeaseRecord { expires_in: ttl, ttl, ..lease.clone() }
}

/// Why a free lease is not for the asker now.
fn refusal(record: &JobRecord, ask: &Acquire, at: StoreTime) -> Option<Acquired> {
    if ask.condition == Condition::None {
        return None;
    }
    // A run that was asked for when the job had a schedule is none of a continuous one.
    if !record.is_on() || record.given_up {
        return Some(Acquired::NotWanted);
    }
    if let Some(next) = record.next.filter(|next| next.at > at) {
        return Some(Acquired::NotYet { wait: next.at.since(at) });
    }
    reserved(record, ask, at)
}

/// A move keeps it for another.
pub(super) fn reserved(record: &JobRecord, ask: &Acquire, at: StoreTime) -> Option<Acquired> {
    let moving = record.moving.as_ref().filter(|_| ask.condition == Condition::Wanted)?;
    let reserved = moving.until > at && is_for_another(moving, &ask.node);
    reserved.then(|| Acquired::Reserved { wait: moving.until.since(at) })
}

/// The next token: above the newest one that the store knows and the newest one that the asker saw. On the scale of the clock, so
/// that it grows although both may have forgotten. `None`: it would be above [`Token::LARGEST`].
fn mint(newest: Token, seen: Token, at: StoreTime) -> Option<Token> {
    let above = |token: Token| token.0.saturating_add(1);
    let token = Token(Token::at(at).0.max(above(newest)).max(above(seen)));
    (token <= Token::LARGEST).then_some(token)
}

/// The part of a job that a renewal reads. Thousands of leases are renewed every second, and none needs the whole record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tenure {
    /// Highest token ever granted, as far as the store knows.
    pub token: Token,
    /// The lease, while it lasts.
    pub lease: Option<LeaseRecord>,
    /// As in [`Job`].
    pub lapsed: Option<LeaseRecord>,
    /// As in [`Job`].
    pub released: Token,
    /// The present run.
    pub run: Option<RunId>,
}

impl Tenure {
    /// Of a whole job.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        Self {
            token: job.record.token,
            lease: job.record.lease.clone(),
            lapsed: job.lapsed.clone(),
            released: job.released,
            run: job.record.run.as_ref().map(|run| run.id.clone()),
        }
    }
}

/// As [`renew`], on a whole job. It publishes nothing: no state changes that people see.
pub fn renew_in(job: &mut Job, ask: &Renewal, now: Now) -> Renewed {
    let (answer, kept) = renew(&Tenure::of(job), ask, now);
    if let Some(kept) = kept {
        (job.record.token, job.lapsed) = (kept.token, None);
        job.record.lease = Some(kept);
    }
    answer
}

/// Renews a lease for its `ttl`; a living one never for less than is left of it. The second value is what the lease is now; `None`: it stays as it is.
///
/// A lease is missing, and no newer token was minted: it ran out unclaimed, or the store has forgotten it. Its living
/// holder asserts it again: that is what makes the quarantine harmless. The token of the job is then the lease's.
///
/// That is so for processes of Soloist, which reach the store themselves. What a program says comes from outside: it extends what is
/// recorded, and nothing else. When a store forgot the lease of a program, a node keeps the name back ([`Owner::kept_back`]).
#[must_use]
pub fn renew(known: &Tenure, ask: &Renewal, now: Now) -> (Renewed, Option<LeaseRecord>) {
    let newest = known.lease.as_ref().map_or(known.token, |lease| known.token.max(lease.token));
    if ask.token < newest || ask.token <= known.released || ask.token > Token::LARGEST {
        return (Renewed::Lost, None);
    }
    let unknown = ask.run.is_some() && ask.run != known.run;
    let same = |lease: &&LeaseRecord| lease.token == ask.token;
    if let Some(lease) = known.lease.as_ref().filter(same) {
        if lease.owner != ask.owner {
            return (Renewed::Lost, None);
        }
        let kept = Renewed::Kept { margin: lease.expires_in, forgot: unknown };
        return (kept, Some(extended(lease, ask.ttl)));
    }
    let lapsed = known.lapsed.as_ref().filter(same);
    let refused = if ask.owner.is_kept_back() {
        // Somebody has it.
        known.lease.is_some()
    } else {
        // A program has ended its work by its own clock when its lease ran out, and its job may have been shown as off since: that is final.
        ask.owner.is_program() || lapsed.is_some_and(|lease| lease.owner != ask.owner)
    };
    if refused {
        return (Renewed::Lost, None);
    }
    // A lease under an older token can only be that of a sleeper, asserted again in a store that had forgotten this one.
    let lease = LeaseRecord {
        node: ask.node.clone(),
        owner: ask.owner.clone(),
        token: ask.token,
        since: lapsed.map_or_else(|| ask.since.on(now.at, now.boot), |lease| lease.since),
        expires_in: ask.ttl,
        ttl: ask.ttl,
    };
    let forgot = ask.token > known.token || unknown;
    (Renewed::Kept { margin: Duration::ZERO, forgot }, Some(lease))
}

/// Gives a lease back under which nothing runs. Only the owner is compared: it is random per acquisition, and a node that lost
/// the answer to its request knows no token. Not being the owner any more is no error: there is nothing to release.
pub fn release(job: &mut Job, owner: &Owner, now: Now) -> Vec<Write> {
    give_back(job, owner, Outcome::UNUSED, now)
}

fn give_back(job: &mut Job, owner: &Owner, outcome: Outcome, now: Now) -> Vec<Write> {
    let newest = job.record.lease.as_ref().or(job.lapsed.as_ref());
    let Some(token) = newest.filter(|lease| &lease.owner == owner).map(|lease| lease.token) else {
        return Vec::new();
    };
    job.give_back(token);
    tick::unused(&mut job.record, token, now.at);
    spent::end(&mut job.record, token, outcome, now.at);
    vec![job.publish(EventKind::LeaseReleased)]
}

/// Gives a lease back that was granted to `owner` under `token`, or what is kept back of it ([`Owner::kept_back`]). `outcome` says what
/// became of the tick that was spent with it, if one was.
pub fn release_under(
    job: &mut Job,
    owner: &Owner,
    token: Token,
    outcome: Outcome,
    now: Now,
) -> (Released, Vec<Write>) {
    let kept_back = owner.kept_back();
    match &job.record.lease {
        // The store had forgotten it, and now the work is over.
        Some(lease) if lease.token == token && lease.owner == kept_back => {
            (Released::Yes, give_back(job, &kept_back, outcome, now))
        }
        Some(lease) if lease.token != token || lease.owner != *owner => {
            (Released::Another, Vec::new())
        }
        _ if job.record.token > token => (Released::Another, Vec::new()),
        Some(_) => (Released::Yes, give_back(job, owner, outcome, now)),
        None => (Released::Nothing, give_back(job, owner, outcome, now)),
    }
}
