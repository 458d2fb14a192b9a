//! The law carried out on an engine answers as the law itself: random timed histories, played by processes that remember old records.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::MemoryStore;
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::journal::{Ended, NewLine, Output, Started, Stream, Then};
use soloist_domain::lease::{Stale, Token};
use soloist_domain::log::LogBounds;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist_domain::spent::Outcome;
use soloist_domain::time::{Began, StoreTime};
use soloist_domain::transition::history::Past;
use soloist_domain::transition::{
    Job, Now, Write, drill, handover, lease as leases, output, participation, run,
};
use soloist_store::backend::Backend as _;
use soloist_store::engine::Engine;
use soloist_store::jobs::Jobs as _;
use soloist_store::journal::{AuditEntry, Journal as _, RunEntry};
use soloist_store::leases::{Acquire, Acquired, Condition, Leases as _, Renewal};
use soloist_store::records::OfAnyKind as _;

/// What a decision is made on, beside the job.
struct Look<'a> {
    past: &'a Past,
    quarantine: Duration,
    now: Now,
}

type Decision<T> = Result<(T, Vec<Write>), Stale>;

const TTL: Duration = Duration::from_secs(5);

fn name() -> JobName {
    JobName::new("outbound").expect("a good name")
}

fn user(number: u64) -> UserName {
    UserName::new(&format!("user-{number}")).expect("a good name")
}

fn node(number: u64) -> NodeName {
    NodeName::new(&format!("node-{number}")).expect("a good name")
}

/// The law without a store: the job, the end of its lease, and every run.
struct Law {
    job: Job,
    until: i64,
    runs: Vec<RunEntry>,
    /// When the quarantine ends.
    calm_at: i64,
    /// Shows the clock of the machine.
    engine: MemoryStore,
}

impl Law {
    fn beside(engine: &MemoryStore) -> Self {
        let job = Job::untouched(name());
        Self { job, until: 0, runs: Vec::new(), calm_at: 0, engine: engine.clone() }
    }

    /// What the history says of the run `id`, read from all of it.
    fn past(&self, id: &RunId) -> Past {
        let this = self.runs.iter().position(|entry| entry.id == *id);
        let older = &self.runs[..this.unwrap_or(self.runs.len())];
        let ended = || self.runs.iter().filter(|entry| entry.ended.is_some());
        let newest = ended().next_back().map(|entry| entry.id.clone());
        let mut others =
            ended().filter(|entry| entry.id != *id && Some(&entry.id) != newest.as_ref());
        let oldest_idle = others.clone().find(|entry| entry.folded > 0);
        Past {
            this: this.map(|at| self.runs[at].clone()),
            before: older.iter().rev().find(|entry| entry.ended.is_some()).cloned(),
            ended: ended().count(),
            oldest_idle: oldest_idle.map(|entry| entry.id.clone()),
            oldest: others.next().map(|entry| entry.id.clone()),
        }
    }

    fn apply<T>(
        &mut self,
        about: Option<&RunId>,
        now: StoreTime,
        transition: impl FnOnce(&mut Job, &Look<'_>) -> Decision<T>,
    ) -> Result<T, Stale> {
        let mut job = self.job.clone();
        if let Some(lease) = &mut job.record.lease {
            lease.expires_in = StoreTime(self.until).since(now);
        }
        if job.record.lease.as_ref().is_some_and(|lease| lease.expires_in.is_zero()) {
            job.lapsed = job.record.lease.take();
        }
        let before = job.clone();
        let lost = job.record.run.as_ref().filter(|_| job.record.lease.is_none());
        let about = about.or(lost.map(|run| &run.id));
        let past = about.map(|id| self.past(id)).unwrap_or_default();
        let instant = Now { at: now, boot: self.engine.boots() };
        let quarantine = StoreTime(self.calm_at).since(now);
        let look = Look { past: &past, quarantine, now: instant };
        let (answer, writes) = transition(&mut job, &look)?;
        if job.record.lease != before.record.lease {
            let left = job.record.lease.as_ref().map(|lease| lease.expires_in);
            self.until = left.map_or(0, |left| (now + left).0);
        }
        for write in writes {
            match write {
                Write::KeepRun(entry) => {
                    match self.runs.iter_mut().find(|known| known.id == entry.id) {
                        Some(known) => *known = entry,
                        None => self.runs.push(entry),
                    }
                }
                Write::DropRun(id) => self.runs.retain(|entry| entry.id != id),
                Write::Publish(_)
                | Write::AppendLine(_)
                | Write::DropLines(_)
                | Write::KeepWant(_)
                | Write::KeepTick { .. } => {}
            }
        }
        self.job = job;
        Ok(answer)
    }
}

/// A small generator, so that a seed is a history on every machine.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What the players know: grants that were answered, and the runs under them.
#[derive(Clone)]
struct Grant {
    owner: Owner,
    node: NodeName,
    token: Token,
    since: StoreTime,
    run: RunId,
}

fn same<T: Debug>(what: &str, law: Result<T, Stale>, core: &soloist_store::Result<T>) {
    let law = law.map_err(soloist_store::StoreError::from).map_err(|error| error.to_string());
    let core = core.as_ref().map_err(ToString::to_string);
    assert_eq!(format!("{law:?}"), format!("{core:?}"), "{what}");
}

#[expect(clippy::too_many_lines, reason = "one arm for each act")]
async fn play(seed: u64, acts: usize) {
    let mut dice = Dice(seed);
    let first = MemoryStore::new();
    let processes = [first.clone(), first.beside(), first.beside()];
    let mut law = Law::beside(&first);
    let mut grants: Vec<Grant> = Vec::new();
    let job = name();
    for act in 0..acts {
        let engine = &processes[usize::try_from(dice.roll(3)).expect("small")];
        let now = engine.shows();
        let at = format!("seed {seed}, act {act}");
        let some = usize::try_from(dice.roll(4)).expect("small");
        let grant = grants.iter().rev().nth(some).or(grants.last()).cloned();
        match (dice.roll(14), grant) {
            (0, _) => {
                let (who, on) = (user(dice.roll(3)), dice.roll(3) > 0);
                let core = engine.law().participate(&job, &who, on, Some("why")).await;
                let told = law.apply(None, now, |job, look| {
                    Ok(participation::switch(job, &who, on, Some("why"), look.now))
                });
                same(&at, told, &core);
            }
            (1, _) if dice.roll(3) == 0 => {
                let core = engine.law().hold(&job, &user(1), "stocktaking").await;
                let told = law.apply(None, now, |job, look| {
                    Ok(((), participation::hold(job, &user(1), "stocktaking", look.now)))
                });
                same(&at, told, &core);
            }
            (1, _) => {
                let core = engine.law().resume(&job).await;
                let told = law
                    .apply(None, now, |job, look| Ok(((), participation::resume(job, look.now))));
                same(&at, told, &core);
            }
            (2..=4, _) => {
                let number = dice.roll(3);
                let ask = Acquire {
                    job: job.clone(),
                    owner: Owner(format!("owner-{number}-{}", dice.roll(40))),
                    node: node(number),
                    ttl: TTL,
                    condition: [Condition::Wanted, Condition::WantedDespiteMove, Condition::None]
                        [usize::try_from(dice.roll(3)).expect("small")],
                    seen: Token(0),
                };
                let core = engine.law().acquire(&ask).await;
                let told = law.apply(None, now, |job, look| {
                    Ok(leases::acquire(job, look.past, &ask, look.quarantine, look.now))
                });
                same(&at, told, &core);
                if let Ok(Acquired::Granted { token, since }) = core {
                    let run = RunId(format!("run-{token}"));
                    let (owner, node) = (ask.owner, ask.node);
                    grants.push(Grant { owner, node, token, since, run });
                }
            }
            (5 | 6, Some(grant)) => {
                let ask = Renewal {
                    job: job.clone(),
                    owner: grant.owner,
                    node: grant.node,
                    token: grant.token,
                    ttl: TTL,
                    since: Began { boot: engine.boots(), at: Some(grant.since) },
                    run: (dice.roll(2) == 0).then_some(grant.run),
                };
                let core = engine.law().renew(std::slice::from_ref(&ask)).await.map(|all| all[0]);
                let told = law.apply(None, now, |job, look| {
                    Ok((leases::renew_in(job, &ask, look.now), Vec::new()))
                });
                same(&at, told, &core);
            }
            (7, Some(grant)) if dice.roll(2) == 0 => {
                let core = engine
                    .law()
                    .release_under(&job, &grant.owner, grant.token, Outcome::UNUSED)
                    .await;
                let told = law.apply(None, now, |job, look| {
                    Ok(leases::release_under(
                        job,
                        &grant.owner,
                        grant.token,
                        Outcome::UNUSED,
                        look.now,
                    ))
                });
                same(&at, told, &core);
            }
            (7, Some(grant)) => {
                let core = engine.law().release(&job, &grant.owner).await;
                let told = law.apply(None, now, |job, look| {
                    Ok(((), leases::release(job, &grant.owner, look.now)))
                });
                same(&at, told, &core);
            }
            (8, Some(grant)) => {
                let started = Started {
                    job: job.clone(),
                    token: grant.token,
                    run: grant.run,
                    node: grant.node,
                    pid: 7,
                    began: Began { boot: engine.boots(), at: Some(now) },
                };
                let core = engine.law().record_started(&started).await;
                let told = law.apply(Some(&started.run), now, |job, look| {
                    run::started(job, look.past, &started, look.now)
                });
                same(&at, told, &core);
            }
            (9, Some(grant)) => {
                let lines = (0..dice.roll(3))
                    .map(|n| NewLine { stream: Stream::Stdout, text: format!("line {n}") });
                let told = Output {
                    job: job.clone(),
                    token: grant.token,
                    run: grant.run,
                    node: grant.node,
                    lines: lines.collect(),
                    progress: None,
                    heard: false,
                };
                let core = engine.law().record_output(&told).await;
                let said = told.clone();
                let told = law.apply(None, now, |job, look| {
                    Ok(((), output::report(job, said, LogBounds::default(), look.now)?))
                });
                same(&at, told, &core);
            }
            (10, Some(grant)) => {
                let end = [RunEnd::Exited, RunEnd::Crashed, RunEnd::Stopped]
                    [usize::try_from(dice.roll(3)).expect("small")];
                let wait = Duration::from_secs(dice.roll(4));
                let then = [
                    Then::Nothing,
                    Then::Repeat(wait),
                    Then::Done,
                    Then::Retry { crashes: 1, wait },
                    Then::GiveUp { crashes: 2 },
                ][usize::try_from(dice.roll(5)).expect("small")];
                let ended = Ended {
                    job: job.clone(),
                    owner: grant.owner,
                    token: grant.token,
                    run: grant.run,
                    exit: Exit { code: Some(0), signal: None },
                    end,
                    processes_killed: 0,
                    then,
                    began: None,
                };
                let core = engine.law().record_ended(&ended).await;
                let told = law.apply(Some(&ended.run), now, |job, look| {
                    Ok(((), run::ended(job, look.past, &ended, look.now)?))
                });
                same(&at, told, &core);
            }
            (11, _) => {
                let to = (dice.roll(2) == 0).then(|| node(dice.roll(3)));
                let lasts = Duration::from_secs(3);
                let core = engine.law().request_move(&job, to.as_ref(), &user(1), lasts).await;
                let told = law.apply(None, now, |job, look| {
                    Ok(((), handover::request(job, to.as_ref(), &user(1), lasts, look.now)))
                });
                same(&at, told, &core);
            }
            (12, Some(grant)) => {
                let core = engine.law().request_drill(&job, grant.token, &user(1)).await;
                let told = law.apply(None, now, |job, look| {
                    Ok(drill::request(job, grant.token, &user(1), look.now))
                });
                same(&at, told, &core);
            }
            _ => {
                let doubt = Duration::from_secs(if dice.roll(6) == 0 { 2 } else { 0 });
                engine.doubt(doubt);
                law.calm_at = (now + doubt).0;
                engine.pass(Duration::from_millis(dice.roll(4_000)));
            }
        }
        let now = engine.shows();
        let shown = engine.law().snapshot(std::slice::from_ref(&job)).await.expect("a snapshot");
        let known = law.apply(None, now, |job, _| Ok((job.record.clone(), Vec::new())));
        assert_eq!(shown.jobs[0], known.expect("nothing is written"), "{at}");
        if act % 50 == 0 {
            // Processes that read after every act would remember nothing old.
            processes.iter().for_each(|process| process.known().forget(&job));
        }
    }
    let listed = first.law().runs(&job, None, 2_000).await.expect("runs");
    let mut all = law.runs;
    all.sort_by_key(|entry| std::cmp::Reverse(entry.token));
    assert_eq!(listed, all, "seed {seed}");
}

#[tokio::test]
async fn random_timed_histories_are_answered_as_the_law_says() {
    for seed in 0..60 {
        play(seed, 400).await;
    }
}

#[tokio::test]
async fn of_twenty_processes_that_ask_at_once_one_is_granted_and_all_tokens_grow() {
    let first = MemoryStore::new();
    let mut newest = Token(0);
    for round in 0..20 {
        let asks = (0..20).map(|number| {
            let engine = first.lagging(Duration::from_millis(number));
            let ask = Acquire {
                job: name(),
                owner: Owner(format!("{round}-{number}")),
                node: node(number),
                ttl: TTL,
                condition: Condition::None,
                seen: Token(0),
            };
            async move { engine.law().acquire(&ask).await.expect("an answer") }
        });
        let answers = futures_util::future::join_all(asks).await;
        let granted: Vec<Token> = answers
            .iter()
            .filter_map(|answer| match answer {
                Acquired::Granted { token, .. } => Some(*token),
                _ => None,
            })
            .collect();
        assert!(matches!(granted[..], [token] if token > newest), "{answers:?}");
        newest = granted[0];
        first.pass(TTL);
    }
}

#[tokio::test]
async fn a_commit_that_is_sent_again_because_its_answer_was_lost_happens_once() {
    let engine = MemoryStore::new();
    let ask = Acquire {
        job: name(),
        owner: Owner("one".to_owned()),
        node: node(1),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    };
    engine.lose_answers(1);
    let Ok(Acquired::Granted { token, .. }) = engine.law().acquire(&ask).await else {
        panic!("not granted")
    };
    assert_eq!(engine.told(&name()).len(), 1, "told twice");
    let record = engine.law().snapshot(&[name()]).await.expect("a snapshot").jobs.remove(0);
    assert_eq!(record.lease.map(|lease| lease.token), Some(token));
}

#[tokio::test]
async fn a_process_whose_memory_is_old_is_told_the_newest_and_decides_anew() {
    let li = MemoryStore::new();
    let other = li.beside();
    li.law().participate(&name(), &user(1), true, None).await.expect("on");
    other.law().participate(&name(), &user(2), true, None).await.expect("on");
    // What it remembers is from before the other's switch.
    assert!(li.law().participate(&name(), &user(3), true, None).await.expect("on"));
    assert!(!li.law().participate(&name(), &user(2), true, None).await.expect("on already"));
    let record = other.law().snapshot(&[name()]).await.expect("a snapshot").jobs.remove(0);
    assert_eq!(record.participants.len(), 3);
    assert_eq!(record.version, 3);
}

#[tokio::test]
async fn an_act_that_changes_nothing_leaves_no_entry() {
    let store = MemoryStore::new();
    let act = |word: &str| AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "li".to_owned(),
        from: "terminal".to_owned(),
        act: word.to_owned(),
        target: "job".to_owned(),
        reason: None,
        kind: soloist_store::journal::Kind::Person,
        count: 1,
        until: None,
    };
    for changes in [true, false] {
        let switching: Arc<dyn Engine> = store.noting(act(if changes { "on" } else { "nothing" }));
        let switched = switching.participate(&name(), &user(1), true, None).await;
        assert_eq!(switched.expect("switched"), changes);
    }
    let acts = store.law().audits(None, None, 9).await.expect("audits");
    assert_eq!(acts.iter().map(|one| one.act.as_str()).collect::<Vec<_>>(), ["on"]);
}

#[tokio::test]
async fn a_batch_that_is_itself_over_the_bounds_leaves_its_newest_lines() {
    let bounds = LogBounds { lines: 100, ..LogBounds::default() };
    let store = MemoryStore::new().bounded(bounds);
    let told = Output {
        job: name(),
        token: Token(7),
        run: RunId("run".to_owned()),
        node: node(1),
        lines: (1..=250)
            .map(|n| NewLine { stream: Stream::Stdout, text: format!("line {n}") })
            .collect(),
        progress: None,
        heard: false,
    };
    store.law().record_output(&told).await.expect("kept");
    let first = store.law().log(&name(), Some(0), 1_000).await.expect("lines");
    assert_eq!((first.len(), first[0].seq), (100, 151));
    store.beside().law().record_output(&told).await.expect("kept");
    let more = store.law().log(&name(), Some(0), 1_000).await.expect("lines");
    assert_eq!((more.len(), more[0].seq, more[99].seq), (100, 401, 500));
}
