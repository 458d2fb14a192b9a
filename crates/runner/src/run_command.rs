//! `soloist run`: one command under a lease of its own, guarded and fenced as a job is.
//!
//! It waits for the lease, runs the command once, and releases the lease. It shares the keeper, the guard and the journal with jobs; there
//! is no configuration, no participation and no retry. The command writes to this process's own standard output and error, so nothing of
//! it is changed, delayed or kept; its standard input is empty, as a job's is. Signals that were ignored when this process started
//! (`nohup`) stay ignored.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use super::attend::{Attendant, Command};
use super::child::{Child, ChildEvent, Spec, Streams, Work, become_subreaper};
use super::command::{
    ASK_AGAIN, Interrupts, LAST_WORDS, NOT_HAD, NOT_STARTED, Patience, SIGNALLED, connect,
    exit_code, rounded, say, to_its_end,
};
use super::keeper::{Keeper, Kept, Told};
use super::once::{self, Meant, NOTED_WITHIN, RunOnce};
use super::program::Program;
use super::signals::Signals;
use soloist_domain::job::{Exit, RunEnd};
use soloist_domain::lease::{Timing, Token};
use soloist_domain::name::{JobName, Owner, RunId};
use soloist_domain::time::{Began, Boot, StoreTime};
use soloist_process::clock;
use soloist_process::telemetry::Metrics;
use soloist_store::events::{Events, StoreEvent};
use soloist_store::jobs::Jobs as _;
use soloist_store::journal::{Ended, Journal, Started, Then};
use soloist_store::leases::{Acquire, Acquired, Condition, Leases, Renewal};
use soloist_store::spent::{Answer, Once, Spent, SpentTicks as _};
use soloist_store::{Opener, Store, StoreError};

/// A waiter asks again at least this often, in case a hint was lost.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as on the command line")]
pub struct RunCommand {
    /// What opens the store.
    pub open: Opener,
    pub name: JobName,
    pub timing: Timing,
    /// How long to wait for the lease, and for a store that is away; `None` for ever.
    pub wait: Option<Duration>,
    /// Once for a tick; `None`: each time.
    pub once: Option<RunOnce>,
    pub program: Program,
}

/// Runs the command; returns its exit code, 128 + signal, 75 when the lease was not granted in time, 76 when it was
/// lost and the command was killed, 0 when its tick is spent.
///
/// # Errors
/// When the store cannot be used at all, the guard cannot be started, or signals cannot be listened to.
pub async fn run(mut with: RunCommand) -> anyhow::Result<i32> {
    let mut signals = Signals::listen()?;
    // This process starts one guard and nothing else: every orphan that comes to it is of that guard's script.
    become_subreaper();
    with.program.sweep()?;
    let options = with.program.options(with.timing.ttl);
    let mut patience = Patience::new(format!("the lease of {}", with.name), with.wait);
    let store = tokio::select! {
        store = connect(with.open, &with.program.store_url, &options, &mut patience) => store?,
        signal = signals.next() => return Ok(SIGNALLED + signal),
    };
    let Some(store) = store else { return Ok(NOT_HAD) };
    let once = tokio::select! {
        meant = meant(&store, &with, &mut patience) => match meant? {
            Ok(meant) => meant,
            Err(code) => return Ok(code),
        },
        signal = signals.next() => return Ok(SIGNALLED + signal),
    };
    if let Some(meant) = &once {
        with.program = with.program.with(meant.variables());
        patience = Patience::new(format!("the lease of {}", with.name), with.wait);
    }
    let once = once.map(|meant| meant.once);
    let ask = Acquire {
        job: with.name.clone(),
        owner: Owner(format!("{:032x}/run", rand::random::<u128>())),
        node: with.program.node.clone(),
        ttl: with.timing.ttl,
        condition: Condition::None,
        seen: Token(0),
    };
    let acquired = tokio::select! {
        acquired = acquire(&store, &with, &ask, once.as_ref(), &mut patience) => acquired?,
        signal = signals.next() => {
            give_back(&store, &ask, once.as_ref()).await;
            return Ok(SIGNALLED + signal);
        }
    };
    let (token, since, sent) = match acquired {
        Had::Lease { token, since, sent } => (token, since, sent),
        Had::Spent => return Ok(0),
        Had::Nothing => {
            give_back(&store, &ask, once.as_ref()).await;
            return Ok(NOT_HAD);
        }
    };
    let by = with.program.node.clone();
    let spent = once.map(|once| Spent { tick: once.tick, token, by, at: since, ended: None });
    let keeper = Keeper::start(store.clone(), Arc::new(Metrics::default()));
    let renewal = Renewal {
        job: with.name.clone(),
        owner: ask.owner.clone(),
        node: with.program.node.clone(),
        token,
        ttl: with.timing.ttl,
        since: Began { boot: sent, at: Some(since) },
        run: None,
    };
    let kept = keeper.keep(renewal, with.timing, sent);
    let held = Held {
        store,
        with,
        owner: ask.owner,
        token,
        run: RunId(ulid::Ulid::generate().to_string()),
        spent,
        said: Arc::default(),
    };
    held.run(keeper, kept, &mut signals).await
}

/// Which tick is meant, once it is due. A program that is not there must not spend it: the inner error is what to exit with.
async fn meant(
    store: &Store,
    with: &RunCommand,
    patience: &mut Patience,
) -> anyhow::Result<Result<Option<Meant>, i32>> {
    let Some(once) = &with.once else { return Ok(Ok(None)) };
    if let Err(why) = with.program.find() {
        say(&why);
        return Ok(Err(NOT_STARTED));
    }
    let meant = loop {
        if let Some(meant) = once.at_any_time() {
            break meant;
        }
        match store.snapshot(std::slice::from_ref(&with.name)).await {
            Ok(snapshot) => break once.at(snapshot.at)?,
            Err(error @ StoreError::Unavailable(_)) => {
                let Some(left) = patience.left(&error.to_string()) else {
                    return Ok(Err(NOT_HAD));
                };
                sleep(left.min(ASK_AGAIN)).await;
            }
            Err(error) => return Err(error.into()),
        }
    };
    if !meant.wait.is_zero() {
        say(&meant.waits(&with.name));
        sleep(meant.wait).await;
    }
    Ok(Ok(Some(meant)))
}

/// What came of asking for the lease.
enum Had {
    /// It was granted to a request that was sent at `sent`.
    Lease { token: Token, since: StoreTime, sent: Boot },
    /// The tick is another's, and that was said.
    Spent,
    /// It was not granted in time.
    Nothing,
}

/// Subscribes, tries, then sleeps until a hint, the lease's remaining time or a second.
async fn acquire(
    store: &Store,
    with: &RunCommand,
    ask: &Acquire,
    once: Option<&Once>,
    patience: &mut Patience,
) -> anyhow::Result<Had> {
    let mut events: Option<mpsc::Receiver<StoreEvent>> = None;
    loop {
        if events.is_none() {
            // Without a subscription hints are missed, and nothing else.
            events = store.subscribe(std::slice::from_ref(&with.name)).await.ok();
        }
        let sent = clock::boot();
        let answer = match once {
            None => store.acquire(ask).await,
            Some(once) => match store.acquire_once(ask, once).await {
                Ok(Answer::Lease(acquired)) => Ok(acquired),
                Ok(Answer::Spent { spent, standing, .. }) => {
                    say(&once::Had::of(&with.name, &spent, standing).sentence());
                    return Ok(Had::Spent);
                }
                Err(error) => Err(error),
            },
        };
        if once.is_some() && matches!(answer, Ok(Acquired::Busy { .. })) {
            patience.at_least(NOTED_WITHIN);
        }
        let (pause, why) = match answer {
            Ok(Acquired::Granted { token, since }) => {
                if with.timing.trusted_until(sent) > clock::boot() {
                    return Ok(Had::Lease { token, since, sent });
                }
                (Duration::ZERO, "the answer came too late to be trusted".to_owned())
            }
            Ok(Acquired::Busy { node, remaining }) => (remaining, format!("{node} holds it")),
            Ok(Acquired::Quarantined { wait }) => (
                wait,
                format!(
                    "the store was restarted, emptied or replaced, so nothing is granted for another {}, until every lease that it may have forgotten has run out",
                    rounded(wait)
                ),
            ),
            Ok(Acquired::NotYet { wait } | Acquired::Reserved { wait }) => {
                (wait, "it is reserved for another".to_owned())
            }
            Ok(Acquired::NotWanted | Acquired::Exhausted) => {
                (LOOK_AGAIN, "it is a job that nobody wants".to_owned())
            }
            Err(error @ StoreError::Unavailable(_)) => (ASK_AGAIN, error.to_string()),
            Err(error) => return Err(error.into()),
        };
        let Some(left) = patience.left(&why) else { return Ok(Had::Nothing) };
        let hint = async {
            match &mut events {
                Some(events) => hint(events, &with.name).await,
                None => std::future::pending().await,
            }
        };
        // A hint, the end of the pause: either way it is asked again.
        drop(timeout(pause.min(left).min(LOOK_AGAIN), hint).await);
    }
}

async fn hint(events: &mut mpsc::Receiver<StoreEvent>, name: &JobName) {
    loop {
        match events.recv().await {
            Some(StoreEvent::Job(event)) if &event.job != name => {}
            Some(StoreEvent::Lease(job)) if &job != name => {}
            Some(
                StoreEvent::Record(_)
                | StoreEvent::Nodes
                | StoreEvent::Accounts
                | StoreEvent::Interrupted,
            ) => {}
            Some(_) => return,
            None => std::future::pending().await,
        }
    }
}

/// An answer that was lost may have been a grant, which would keep others waiting: it is asked for once more, under
/// the same owner, and released.
async fn give_back(store: &Store, ask: &Acquire, once: Option<&Once>) {
    let asked = match once {
        None => store.acquire(ask).await.map(Answer::Lease),
        // Nothing was started: so the tick is not spent.
        Some(once) => store.acquire_once(ask, once).await,
    };
    if let Ok(Answer::Lease(Acquired::Granted { .. })) = asked
        && let Err(error) = store.release(&ask.job, &ask.owner).await
    {
        say(&format!("the lease of {} is left to run out by itself: {error}", ask.job));
    }
}

/// What is done while the command runs: its start is reported, also to a store that forgot it.
struct Attending<'a> {
    held: &'a Held,
    forgot: watch::Receiver<()>,
    told: Told,
    interrupts: Interrupts<'a>,
    /// The command's process, and when it started.
    started: Option<(u32, Boot)>,
}

impl Attendant for Attending<'_> {
    async fn command(&mut self) -> Command {
        loop {
            tokio::select! {
                Ok(()) = self.forgot.changed() => self.report(),
                command = self.interrupts.command() => return command,
            }
        }
    }

    fn hear(&mut self, event: ChildEvent) {
        if let ChildEvent::Started { pid } = event {
            self.started = Some((pid, clock::boot()));
            self.report();
        }
    }
}

impl Attending<'_> {
    fn report(&self) {
        self.held.report(self.started, &self.told);
    }
}

/// A lease under which the command runs.
struct Held {
    store: Store,
    with: RunCommand,
    owner: Owner,
    token: Token,
    run: RunId,
    /// The tick that it is for.
    spent: Option<Spent>,
    /// When the command started, as the store said it.
    said: Arc<OnceLock<StoreTime>>,
}

impl Held {
    fn spec(&self) -> Spec {
        Spec {
            program: self.with.program.clone(),
            job: self.with.name.clone(),
            run: self.run.clone(),
            token: self.token,
            owner: self.owner.clone(),
            timing: self.with.timing,
            streams: Streams::Inherited,
            work: Work::Run,
        }
    }

    async fn run(self, keeper: Keeper, kept: Kept, signals: &mut Signals) -> anyhow::Result<i32> {
        let spawned = Child::spawn(self.spec(), kept.lease.trusted_until());
        let (child, events) = match spawned {
            Ok(spawned) => spawned,
            Err(error) => {
                keeper.forget(&self.owner);
                // Nothing was started: so the tick is not spent.
                drop(timeout(LAST_WORDS, self.store.release(&self.with.name, &self.owner)).await);
                return Err(error.into());
            }
        };
        let Kept { mut lease, forgot, told } = kept;
        let interrupts = Interrupts::new(signals, self.with.program.stop_grace);
        let mut attending = Attending { held: &self, forgot, told, interrupts, started: None };
        let name = self.with.name.as_str();
        let ended = to_its_end(&child, events, &mut lease, &mut attending, name).await?;
        let (stopped, started) = (attending.interrupts.came, attending.started);
        keeper.forget(&self.owner);
        let end = match () {
            () if ended.is_fenced() => RunEnd::Fenced,
            () if stopped => RunEnd::Stopped,
            () if ended.exit.is_success() => RunEnd::Exited,
            () => RunEnd::Crashed,
        };
        let began = started.map(|(_, boot)| self.began(boot));
        let then = if ended.cause.is_err() { Then::Unused } else { Then::Nothing };
        if self.record_ended(ended.exit, end, ended.processes_killed, then, began).await {
            child.dismiss();
        }
        Ok(exit_code(&ended, name, &format!("the lease of {name}"), "not renewed in time"))
    }

    fn began(&self, boot: Boot) -> Began {
        Began { boot, at: self.said.get().copied() }
    }

    /// Tells the store the start, and then which tick is spent: a store that was emptied just before takes in the start with its lease,
    /// and no renewal finds out that it forgot the tick.
    fn report(&self, started: Option<(u32, Boot)>, told: &Told) {
        let started = started.map(|(pid, boot)| Started {
            job: self.with.name.clone(),
            token: self.token,
            run: self.run.clone(),
            node: self.with.program.node.clone(),
            pid,
            began: self.began(boot),
        });
        let (store, said, told) = (self.store.clone(), Arc::clone(&self.said), told.clone());
        let (name, owner, spent) = (self.with.name.clone(), self.owner.clone(), self.spent.clone());
        tokio::spawn(async move {
            if let Some(started) = started {
                match store.record_started(&started).await {
                    Ok(at) => {
                        said.get_or_init(|| at);
                        told.reported(&started.run);
                    }
                    Err(error) => tracing::warn!(%error, "the start is not in the history"),
                }
            }
            if let Some(spent) = spent
                && let Err(error) = store.tell_spent(&name, &owner, &spent).await
            {
                tracing::warn!(%error, "the store may have forgotten the tick");
            }
        });
    }

    /// Whether the end is recorded, which gives the lease back; otherwise that is left to the guard.
    async fn record_ended(
        &self,
        exit: Exit,
        end: RunEnd,
        processes_killed: u32,
        then: Then,
        began: Option<Began>,
    ) -> bool {
        let name = &self.with.name;
        let ended = Ended {
            job: name.clone(),
            owner: self.owner.clone(),
            token: self.token,
            run: self.run.clone(),
            exit,
            end,
            processes_killed,
            then,
            began,
        };
        let begun = clock::boot();
        loop {
            match self.store.record_ended(&ended).await {
                Ok(()) => return true,
                Err(StoreError::Unavailable(_)) if clock::boot().since(begun) < LAST_WORDS => {
                    sleep(ASK_AGAIN).await;
                }
                Err(error @ StoreError::Unavailable(_)) => {
                    say(&format!(
                        "the end of {name} is not recorded yet ({error}): its guard goes on trying, and at the latest the lease runs out"
                    ));
                    return false;
                }
                // The next holder has closed this run already.
                Err(StoreError::Stale { .. }) => return true,
                Err(error) => {
                    say(&format!("the lease of {name} is left to run out by itself: {error}"));
                    return true;
                }
            }
        }
    }
}
