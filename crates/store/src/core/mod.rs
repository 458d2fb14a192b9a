//! The law, carried out on any store: load, decide, commit. This file does it for jobs, on any [`Engine`]; `shared` for accounts, credentials,
//! nodes and the audit, and `rotation` for rotations, on any store that keeps tables, lists and logs.
//!
//! `domain::transition` decides. This room loads what a transition reads, commits the result on condition that nothing of that has changed, and
//! decides anew on the newest record when something has. It keeps the newest record of each job that it saw, so that the usual transition is one
//! call.
//!
//! - A remembered record may be old. So an answer that writes nothing is never given from memory: it is decided on a record that was read for it.
//!   The commit checks the record of an answer that writes.
//! - A stale caller is refused in the same way: nothing is written for it.

mod accounts;
mod alerts;
pub mod audit;
mod calls;
pub mod carry;
mod credentials;
mod forget_void;
mod hidden;
mod known;
mod line;
mod log;
mod nodes;
mod record;
pub mod rotation;
mod shared;
mod sign_in;
mod spent;
mod throughput;
mod ticks;
mod timeline;
mod told;

use std::ops::Range;
use std::time::Duration;

use self::calls::{reach, settled};
pub use self::forget_void::forget_void;
pub use self::known::Known;
pub use self::record::version;
use self::record::{Case, Summary, body, lease_text, text};
pub use self::record::{lease_terms, token_in};
pub use self::rotation::KnownTurns;
pub use self::shared::noted;
pub use self::told::{left_of, members, record, understood};
use super::engine::{Beside, Change, Commit, Engine, LeaseWrite, Unsafe, Way};
use super::journal::{RUNS_KEPT, RunEntry};
use super::{Result, StoreError, records};
use soloist_domain::event::JobEvent;
use soloist_domain::job::JobRecord;
use soloist_domain::lease::{Stale, Token};
use soloist_domain::name::{JobName, RunId};
use soloist_domain::spent::Spent;
use soloist_domain::time::StoreTime;
use soloist_domain::transition::forget;
use soloist_domain::transition::history::Past;
use soloist_domain::transition::{Job, Now, Write};
use soloist_process::sabotage::{Bug, planted};

/// How often a change is decided anew. One of those that write at once always wins, so no change comes close to this.
const ATTEMPTS: usize = 64;
/// A commit may arrive so much later than it was decided.
const ON_ITS_WAY: Duration = Duration::from_secs(1);
/// How an entry of the history shows that it stands for idle runs. SQLite has an index of it (`store-sql/sqlite/schema.sql`), the other SQL stores a column.
pub const FOLDED: &str = "\"folded\":";

/// What a decision is made on, beside the job.
struct Look<'a> {
    past: &'a Past,
    /// The row beside the record of [`Kind::tick`].
    beside: Option<&'a Spent>,
    quarantine: Duration,
    now: Now,
}

/// What kind of call it is.
#[derive(Clone, Copy)]
struct Kind<'a> {
    way: Way,
    /// A lease is asked for, of this length.
    grant: Option<Duration>,
    /// As in [`Change`].
    reach: Duration,
    /// As in [`Change`].
    unlisted: Option<&'a str>,
    once: bool,
    /// The run of which a decision must know what the history says. None: the run that the record shows while the lease has no
    /// holder, as that run is closed then.
    about: Option<About<'a>>,
    /// A tick that its caller names.
    tick: Option<spent::Of<'a>>,
}

/// A run that a call is about.
#[derive(Clone, Copy)]
struct About<'a> {
    id: &'a RunId,
    token: Token,
    /// It is closed. Else only a run that the record shows may be, as lost.
    ends: bool,
}

impl Kind<'_> {
    fn of(way: Way) -> Self {
        let reach = Duration::ZERO;
        Kind { way, grant: None, reach, unlisted: None, once: false, about: None, tick: None }
    }
}

type Decision<T> = std::result::Result<(T, Vec<Write>), Stale>;

/// Loads the job, lets `transition` decide, and commits what it says.
async fn decide<T: Send>(
    engine: &dyn Engine,
    name: &JobName,
    kind: Kind<'_>,
    transition: impl Fn(&mut Job, &Look<'_>) -> Decision<T> + Sync,
) -> Result<(T, Option<Unsafe>)> {
    let decided = decide_unlisted(engine, name, kind, transition).await?;
    decided.ok_or_else(|| StoreError::Corrupt(format!("{name}: a list that nobody asked about")))
}

/// The same; `None`, and nothing is written, if something is in [`Kind::unlisted`].
async fn decide_unlisted<T: Send>(
    engine: &dyn Engine,
    name: &JobName,
    kind: Kind<'_>,
    transition: impl Fn(&mut Job, &Look<'_>) -> Decision<T> + Sync,
) -> Result<Option<(T, Option<Unsafe>)>> {
    let mut answer = None;
    let carried = carry_out(engine, name, kind, &mut |job, look| {
        let (said, writes) = transition(job, look)?;
        answer = Some(said);
        Ok(((), writes))
    })
    .await?;
    let Some(unsafe_grant) = carried else { return Ok(None) };
    Ok(Some((answer.ok_or_else(|| too_often(name))?, unsafe_grant)))
}

/// As [`decide_unlisted`], which keeps the answer: what is decided last counts.
async fn carry_out(
    engine: &dyn Engine,
    name: &JobName,
    kind: Kind<'_>,
    transition: &mut (dyn FnMut(&mut Job, &Look<'_>) -> Decision<()> + Send),
) -> Result<Option<Option<Unsafe>>> {
    let mut remembered = engine.known().of(name);
    let mut quarantine = Duration::ZERO;
    let note = engine.note().map(noted).transpose()?.map(records::Write::Log);
    for attempt in 0..ATTEMPTS {
        let (case, fresh) = match remembered.take() {
            Some(case) => (case, attempt > 0),
            None => {
                let reading = engine.read(std::slice::from_ref(name), kind.way).await?;
                quarantine = reading.quarantine;
                let stored = reading.records.into_iter().next().unwrap_or_default();
                (engine.known().put(Case::read(name, stored)?), true)
            }
        };
        let beside = match kind.tick {
            Some(of) => spent::beside(engine, &case, of).await?,
            None => None,
        };
        let boot = engine.boot();
        let Some((estimate, slack)) = engine.estimate(name, boot) else { continue };
        // What was written last was written before now, however far the estimate lags behind.
        let written = case.written().filter(|at| *at <= estimate + slack);
        let now = Now { at: written.map_or(estimate, |at| at.max(estimate)), boot };
        let past = past(engine, &case, kind.about).await?;
        let mut shown = case.job.clone();
        show_less(&mut shown);
        let mut job = shown.clone();
        let look = Look { past: &past.past, beside: beside.as_ref(), quarantine, now };
        let decided = transition(&mut job, &look);
        let ((), writes) = match decided {
            Ok(decided) => decided,
            Err(stale) if fresh => return Err(stale.into()),
            Err(_) => continue,
        };
        let plan = Plan::of(&case, &shown, job, writes, &past, now.at)?;
        let Some(plan) = plan else {
            if fresh {
                return Ok(Some(None));
            }
            continue;
        };
        let slack = if kind.grant.is_some() && !fresh { slack } else { slack + ON_ITS_WAY };
        let change = Change {
            job: name,
            way: kind.way,
            head: &case.head,
            lease: case.lease_begins(),
            window: window(&case.job.record, now.at, slack),
            grant: kind.grant,
            reach: kind.reach,
            calm: kind.grant.is_some() && shown.record.lease.is_none(),
            unlisted: kind.unlisted,
            record: plan.body.as_deref().map(|body| (plan.job.record.version, body)),
            expires: plan.expires,
            lease_write: plan.lease.clone(),
            beside: plan.beside.clone(),
            tell: &plan.tell,
            once: kind.once || note.is_some(),
            notes: plan.notes.iter().chain(&note).cloned().collect(),
        };
        match engine.commit(&change).await {
            Ok(Commit::Done { head, unsafe_grant }) => {
                engine.known().put(plan.done(&case, head));
                return Ok(Some(unsafe_grant));
            }
            Ok(Commit::Listed) => return Ok(None),
            Ok(Commit::Refused { stored, quarantine: doubted }) => {
                quarantine = doubted;
                remembered = Some(engine.known().put(Case::read(name, stored)?));
            }
            Err(error) => {
                engine.known().forget(name);
                return Err(error);
            }
        }
    }
    Err(too_often(name))
}

fn too_often(job: &JobName) -> StoreError {
    StoreError::Unavailable(format!("{job} is changed too often at this moment"))
}

/// The bug in which no token is compared: a transition is shown less than the store knows.
fn show_less(job: &mut Job) {
    if planted(Bug::TokenNotCompared) {
        (job.record.token, job.released) = (Token(0), Token(0));
    }
}

/// The instants at which the decision would have been the same: no instant that is in the record, and compared with now, lies
/// between `at` and the commit.
fn window(record: &JobRecord, at: StoreTime, slack: Duration) -> Range<StoreTime> {
    let mut window = at - slack..at + slack;
    let next = record.next.map(|next| next.at);
    for limit in next.into_iter().chain(record.moving.as_ref().map(|moving| moving.until)) {
        if at < limit {
            window.end = window.end.min(limit);
        } else {
            window.start = window.start.max(limit);
        }
    }
    window
}

/// The history, as a transition sees it, and under which numbers the entries stand that it may drop.
struct Seen {
    past: Past,
    numbers: Vec<(RunId, Token)>,
}

async fn past(engine: &dyn Engine, case: &Case, about: Option<About<'_>>) -> Result<Seen> {
    let record = &case.job.record;
    let lost = record.run.as_ref().filter(|_| record.lease.is_none());
    let shown = lost.map(|run| About { id: &run.id, token: run.token, ends: true });
    let Some(About { id, token, ends }) = about.or(shown) else {
        return Ok(Seen { past: Past::default(), numbers: Vec::new() });
    };
    let Summary { newest, ended } = &case.history;
    let mut past = Past { before: newest.clone(), ended: *ended, ..Past::default() };
    let mut numbers: Vec<(RunId, Token)> =
        newest.iter().map(|entry| (entry.id.clone(), entry.token)).collect();
    let present = record.run.as_ref().filter(|run| run.id == *id);
    let older = newest.as_ref().is_some_and(|entry| entry.token >= token);
    if let Some(run) = present {
        past.this = Some(RunEntry::begun(record, run));
    } else if let Some(entry) = newest.as_ref().filter(|entry| entry.id == *id) {
        past.this = Some(entry.clone());
    }
    // What goes when there are too many matters only if one is added.
    let full = *ended >= RUNS_KEPT && (ends || record.run.is_some());
    if full || older && past.this.is_none() {
        let entries = engine.oldest(&record.name, token.0, FOLDED).await?;
        let [this, oldest, idle] = entries.map(|text| text.map(|text| entry(record, &text)));
        let this = this.transpose()?.filter(|entry| entry.id == *id);
        past.this = past.this.take().or(this);
        if full {
            let (oldest, idle) = (oldest.transpose()?, idle.transpose()?);
            numbers.extend(oldest.iter().chain(&idle).map(|one| (one.id.clone(), one.token)));
            past.oldest = oldest.map(|entry| entry.id);
            past.oldest_idle = idle.map(|entry| entry.id);
        }
    }
    Ok(Seen { past, numbers })
}

/// The text of an entry of the history: `ID JSON`.
///
/// # Errors
/// [`StoreError::Corrupt`].
fn entry_text(entry: &RunEntry) -> Result<String> {
    Ok(format!("{} {}", entry.id, text(&entry.job, entry)?))
}

/// The entry under such a text.
fn entry(record: &JobRecord, text: &str) -> Result<RunEntry> {
    let (_, json) = text.split_once(' ').unwrap_or_default();
    serde_json::from_str(json)
        .map_err(|error| StoreError::Corrupt(format!("runs of {}: {error}", record.name)))
}

/// A decision as what is to be written.
struct Plan {
    job: Job,
    history: Summary,
    /// As it shall be; `None`: it stays.
    body: Option<String>,
    /// So long after the commit the store may forget it.
    expires: Option<Duration>,
    lease: LeaseWrite,
    lease_text: Option<String>,
    beside: Vec<Beside>,
    notes: Vec<records::Write>,
    tell: Vec<JobEvent>,
}

impl Plan {
    /// `None` when nothing is to be written. `shown` is what the transition was shown, `job` what it made of it.
    fn of(
        case: &Case,
        shown: &Job,
        job: Job,
        writes: Vec<Write>,
        seen: &Seen,
        at: StoreTime,
    ) -> Result<Option<Self>> {
        let (before, after) = (shown.record.lease.as_ref(), job.record.lease.as_ref());
        let mut history = case.history.clone();
        let (mut events, mut beside, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for write in writes {
            match write {
                Write::Publish(event) => events.push(event),
                Write::KeepRun(entry) => {
                    // One under way is in the record.
                    if entry.ended.is_some() {
                        beside.push(Beside::Index {
                            number: entry.token.0,
                            text: entry_text(&entry)?,
                        });
                        history.ended += 1;
                        history.newest = Some(entry);
                    }
                }
                Write::DropRun(id) => {
                    if let Some((_, token)) = seen.numbers.iter().find(|(known, _)| *known == id) {
                        beside.push(Beside::Unindex { number: token.0 });
                        history.ended = history.ended.saturating_sub(1);
                    }
                }
                Write::AppendLine(line) => beside.push(Beside::Append {
                    number: line.seq,
                    text: text(&job.record.name, &line)?,
                }),
                Write::DropLines(gone) => {
                    let kept = job.record.log_seq.saturating_sub(gone);
                    beside.push(Beside::Trim(usize::try_from(kept).unwrap_or(usize::MAX)));
                }
                Write::KeepWant(want) => notes.push(timeline::kept(&job.record.name, &want)?),
                Write::KeepTick { entry, instead } => {
                    notes.extend(ticks::kept(&job.record.name, &entry, instead.as_deref())?);
                }
            }
        }
        let lease_text = lease_text(&job)?;
        let lease = match (&lease_text, after) {
            (Some(text), Some(now)) if before != after || case.overlong => {
                LeaseWrite::For(text.clone(), now.expires_in)
            }
            (Some(text), _) if case.lease.as_ref() != Some(text) => LeaseWrite::Text(text.clone()),
            (None, _) if case.lease.is_some() => LeaseWrite::Drop,
            _ => LeaseWrite::None,
        };
        let same = job == *shown && lease == LeaseWrite::None && beside.is_empty();
        if same && events.is_empty() {
            return Ok(None);
        }
        let body = Some(body(&job, &history)?)
            .filter(|body| *body != case.body || version(&case.head) != Some(job.record.version));
        let expires = forget::may_be_forgotten(&job, history.ended, at).then_some(forget::KEPT);
        Ok(Some(Self {
            job,
            history,
            body,
            expires,
            lease,
            lease_text,
            beside,
            notes,
            tell: events,
        }))
    }

    /// The job after the commit under `head`.
    fn done(self, before: &Case, head: String) -> Case {
        let body = self.body.unwrap_or_else(|| before.body.clone());
        let Self { job, history, lease_text, .. } = self;
        Case { head, body, lease: lease_text, overlong: false, job, history }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instant_of_the_record_lies_between_a_decision_and_its_commit() {
        let at = StoreTime(10_000);
        let slack = Duration::from_millis(250);
        let mut record = JobRecord::untouched(JobName::new("outbound").expect("a good name"));
        assert_eq!(window(&record, at, slack), StoreTime(9_750)..StoreTime(10_250));
        let due = |at| soloist_domain::job::Next { what: soloist_domain::job::NextWhat::Retry, at };
        record.next = Some(due(StoreTime(10_100)));
        assert_eq!(window(&record, at, slack).end, StoreTime(10_100), "not due before");
        record.next = Some(due(StoreTime(9_900)));
        assert_eq!(window(&record, at, slack).start, StoreTime(9_900), "due since then");
    }
}
