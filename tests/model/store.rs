//! The record keeping of the model's store. What becomes of a record is decided by `domain::transition`, as in the real stores, and how
//! long a store is doubted by `domain::doubt`.
//!
//! A state of the model must be small, and equal to every other that differs in nothing that matters. So a record is
//! kept here in numbers: before a transition it is made into the one that `domain` knows, after it back. Time that passes is
//! the store's own: a lease runs out, a quarantine ends.
//!
//! Broken rules ([`Rules`]) are planted around a transition: it is shown records that say less than the store knows.

use std::sync::LazyLock;
use std::time::Duration;

use soloist::domain::doubt::{Epoch, Look, judge};
use soloist::domain::grant::{Acquire, Acquired, Condition, Renewal, Renewed};
use soloist::domain::handover::is_for_another;
use soloist::domain::job::{
    Exit, JobRecord, LeaseRecord, Move, Next, NextWhat, Participant, RunEnd,
};
use soloist::domain::journal::{Ended, Then};
use soloist::domain::lease::Token;
use soloist::domain::name::{self, JobName, NodeName, RunId, UserName};
use soloist::domain::time::{Began, Boot, StoreTime};
use soloist::domain::transition::history::Past;
use soloist::domain::transition::lease::{self, Tenure};
use soloist::domain::transition::{Job, Now, handover, participation, run};

use super::rules::Rules;

/// One unit of time.
pub(crate) const UNIT: Duration = Duration::from_secs(1);
/// Length of a lease in units of time.
pub(crate) const TTL: u8 = 3;
/// The same in milliseconds.
const LONGEST: i64 = 1_000 * TTL as i64;
/// How long a move keeps a job for the node it is for.
pub(crate) const MOVE: u8 = 4;
/// How long a job rests after a crash.
pub(crate) const BACKOFF: u8 = 2;

/// Random per acquisition: here a node and the number of its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner {
    pub node: u8,
    pub attempt: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    pub owner: Owner,
    pub token: u64,
    /// Units of time.
    pub left: u8,
}

/// A hand-over that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Moving {
    pub from: Option<u8>,
    pub to: Option<u8>,
    /// Units of time.
    pub left: u8,
}

impl Moving {
    /// The job is kept for another node than `node`.
    pub(crate) fn is_for_another(self, node: u8) -> bool {
        is_for_another(&self.record(now(0)), &node_name(node))
    }

    /// As transitions see it at `now`.
    fn record(self, now: Now) -> Move {
        Move {
            from: self.from.map(node_name),
            to: self.to.map(node_name),
            by: USER.clone(),
            until: now.at + units(self.left),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Store {
    pub lease: Option<Lease>,
    pub moving: Option<Moving>,
    /// Units of time until the next run may begin.
    pub due: u8,
    pub minted: u64,
    pub released: u64,
    pub wanted: bool,
    /// Units of time in which nothing is granted.
    pub quarantine: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Answer {
    Granted(u64),
    /// No use asking before so many units.
    Refused(u8),
    Kept,
    Lost,
    Done,
}

impl Store {
    pub(crate) fn tick(&mut self) {
        self.quarantine = self.quarantine.saturating_sub(1);
        self.due = self.due.saturating_sub(1);
        if let Some(moving) = &mut self.moving {
            moving.left -= 1;
            self.moving = self.moving.filter(|moving| moving.left > 0);
        }
        if let Some(lease) = &mut self.lease {
            lease.left -= 1;
            if lease.left == 0 {
                self.lease = None;
            }
        }
    }

    /// `clock` stands for the store's time: it exceeds every token minted before.
    pub(crate) fn acquire(&mut self, owner: Owner, clock: u64, rules: Rules) -> Answer {
        let now = now(if rules.token_counts_only { 0 } else { clock });
        let ask = Acquire {
            job: JOB.clone(),
            owner: owner_name(owner),
            node: node_name(owner.node),
            ttl: units(TTL),
            condition: Condition::Wanted,
            seen: Token(0),
        };
        let quarantine = units(if rules.no_quarantine { 0 } else { self.quarantine });
        let mut job = self.job(now);
        let (answer, _) = lease::acquire(&mut job, &Past::default(), &ask, quarantine, now);
        self.keep(&job, now);
        match answer {
            Acquired::Granted { token, .. } => Answer::Granted(token.0),
            Acquired::NotWanted | Acquired::Exhausted => Answer::Refused(1),
            Acquired::Busy { remaining: wait, .. }
            | Acquired::NotYet { wait }
            | Acquired::Reserved { wait }
            | Acquired::Quarantined { wait } => Answer::Refused(in_units(wait)),
        }
    }

    pub(crate) fn renew(&mut self, owner: Owner, token: u64, rules: Rules) -> Answer {
        let ask = Renewal {
            job: JOB.clone(),
            owner: owner_name(owner),
            node: node_name(owner.node),
            token: Token(token),
            ttl: units(TTL),
            since: Began::at_boot(Boot(0)),
            run: None,
        };
        let Job { record, lapsed, released, .. } = self.job(now(0));
        let mut known =
            Tenure { token: record.token, lease: record.lease, lapsed, released, run: None };
        if rules.renewal_resurrects {
            known.released = Token(0);
        }
        if rules.token_not_compared {
            known.token = known.token.min(ask.token);
            known.lease.take_if(|lease| lease.owner != ask.owner);
        }
        let (answer, lease) = lease::renew(&known, &ask, now(0));
        if let Some(lease) = lease {
            self.minted = self.minted.max(lease.token.0);
            self.lease = Some(kept_lease(&lease));
        }
        match answer {
            Renewed::Kept { .. } => Answer::Kept,
            Renewed::Lost => Answer::Lost,
        }
    }

    /// A client renews and gives back a lease that was never granted to it, under a token of its choice. Whether that changes anything.
    pub(crate) fn forge(&self, token: u64, rules: Rules) -> bool {
        let believed = Owner { node: 0, attempt: u64::MAX };
        let program = name::Owner(format!("{}0123.4567", name::Owner::OF_PROGRAMS));
        let owner = if rules.clients_are_believed { owner_name(believed) } else { program };
        let ask = Renewal {
            job: JOB.clone(),
            owner: owner.clone(),
            node: node_name(0),
            token: Token(token),
            ttl: units(TTL),
            since: Began::at_boot(Boot(0)),
            run: None,
        };
        let before = self.job(now(0));
        let (answer, lease) = lease::renew(&Tenure::of(&before), &ask, now(0));
        let mut after = before.clone();
        lease::release(&mut after, &owner, now(0));
        answer != Renewed::Lost || lease.is_some() || after != before
    }

    /// A run ended, and its lease with it. A newer holder may have closed it already.
    pub(crate) fn end(&mut self, owner: Owner, token: u64, crashed: bool, rules: Rules) -> Answer {
        let ended = Ended {
            job: JOB.clone(),
            owner: owner_name(owner),
            token: Token(token),
            run: RunId(String::new()),
            exit: Exit::default(),
            end: if crashed { RunEnd::Crashed } else { RunEnd::Stopped },
            processes_killed: 0,
            then: if crashed {
                Then::Retry { crashes: 1, wait: units(BACKOFF) }
            } else {
                Then::Nothing
            },
            began: None,
        };
        let mut job = self.job(now(0));
        if rules.token_not_compared {
            job.record.token = job.record.token.min(ended.token);
        }
        if run::ended(&mut job, &Past::default(), &ended, now(0)).is_ok() {
            let minted = self.minted;
            self.keep(&job, now(0));
            self.minted = self.minted.max(minted);
        }
        Answer::Done
    }

    pub(crate) fn release(&mut self, owner: Owner) -> Answer {
        let mut job = self.job(now(0));
        lease::release(&mut job, &owner_name(owner), now(0));
        self.keep(&job, now(0));
        Answer::Done
    }

    /// Somebody switches the job on or off.
    pub(crate) fn switch(&mut self) {
        let mut job = self.job(now(0));
        participation::switch(&mut job, &USER, !self.wanted, None, now(0));
        self.keep(&job, now(0));
    }

    /// An operator asks for a hand-over, to `to` or away from the holder.
    pub(crate) fn request_move(&mut self, to: Option<u8>) {
        let mut job = self.job(now(0));
        // The model's jobs do not rest on a node: who ran last is not kept.
        handover::request(&mut job, to.map(node_name).as_ref(), &USER, units(MOVE), now(0));
        self.keep(&job, now(0));
    }

    /// This copy is now the store: its server is another, and nobody knows what it never heard of.
    pub(crate) fn promoted(mut self) -> Self {
        let known = Epoch { id: "old".to_owned(), server: "old".to_owned(), ..Epoch::default() };
        self.quarantine = doubted(Some(&Epoch { longest: LONGEST, ..known }));
        self
    }

    /// All of it is lost, also what it says of itself.
    pub(crate) fn emptied() -> Self {
        Self { quarantine: doubted(None), ..Self::default() }
    }

    /// The record, as transitions and pages see it at `now`.
    pub(crate) fn job(&self, now: Now) -> Job {
        let mut record = JobRecord::untouched(JOB.clone());
        record.token = Token(self.minted);
        if self.wanted {
            record.participants.push(Participant { user: USER.clone(), since: StoreTime(0) });
        }
        record.lease = self.lease.map(|lease| LeaseRecord {
            node: node_name(lease.owner.node),
            owner: owner_name(lease.owner),
            token: Token(lease.token),
            since: StoreTime(0),
            expires_in: units(lease.left),
            ttl: units(TTL),
        });
        let next = |due| Next { what: NextWhat::Retry, at: now.at + units(due) };
        record.next = (self.due > 0).then(|| next(self.due));
        record.moving = self.moving.map(|moving| moving.record(now));
        Job { released: Token(self.released), record, ..Job::untouched(JOB.clone()) }
    }

    /// Keeps what became of it.
    fn keep(&mut self, job: &Job, now: Now) {
        let record = &job.record;
        let number = |node: &Option<NodeName>| node.as_ref().map(node_number);
        let left = |at: StoreTime| in_units(at.since(now.at));
        self.lease = record.lease.as_ref().map(kept_lease);
        self.moving = record.moving.as_ref().map(|moving| Moving {
            from: number(&moving.from),
            to: number(&moving.to),
            left: left(moving.until),
        });
        self.due = record.next.map_or(0, |next| left(next.at));
        self.minted = record.token.0;
        self.released = job.released.0;
        self.wanted = record.wanted();
    }
}

/// For how many units nothing is granted by a store that has another server, and says `record` of itself.
fn doubted(record: Option<&Epoch>) -> u8 {
    let look = Look {
        known: "old",
        remembered: LONGEST,
        server: "new",
        ttl: 0,
        suspect: false,
        fresh: "new",
        // Any instant that is not the beginning of time.
        now: 1_000_000,
    };
    let left = judge(record, &look).0.quarantine(look.now);
    in_units(Duration::from_millis(left.unsigned_abs()))
}

/// The instant at which the store's clock shows `clock`; what is kept counts from it.
pub(crate) fn now(clock: u64) -> Now {
    Now { at: StoreTime(i64::try_from(clock).expect("a rank")), boot: Boot(0) }
}

fn units(count: u8) -> Duration {
    UNIT * u32::from(count)
}

fn in_units(span: Duration) -> u8 {
    u8::try_from(span.as_secs()).expect("short")
}

fn kept_lease(lease: &LeaseRecord) -> Lease {
    let (node, attempt) = lease.owner.as_str().split_once(' ').expect("as made here");
    let owner = Owner {
        node: node.parse().expect("a number"),
        attempt: attempt.parse().expect("a number"),
    };
    Lease { owner, token: lease.token.0, left: in_units(lease.expires_in) }
}

static JOB: LazyLock<JobName> = LazyLock::new(|| "job".parse().expect("a name"));
static USER: LazyLock<UserName> = LazyLock::new(|| "li".parse().expect("a name"));
static NODES: LazyLock<[NodeName; 2]> =
    LazyLock::new(|| ["0", "1"].map(|name| name.parse().expect("a name")));

fn node_name(node: u8) -> NodeName {
    NODES[usize::from(node)].clone()
}

fn node_number(name: &NodeName) -> u8 {
    name.as_str().parse().expect("a number")
}

fn owner_name(Owner { node, attempt }: Owner) -> name::Owner {
    name::Owner(format!("{node} {attempt}"))
}
