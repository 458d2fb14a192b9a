//! `soloist run`: one command under a lease of its own, guarded and fenced as a job is.
//!
//! It waits for the lease, runs the command once, passes its output on, and gives the lease back. It shares the
//! keeper, the guard and the journal with jobs; there is no configuration, no participation and no retry.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use super::child::{Cause, Child, ChildEvent, Spec, become_subreaper};
use super::keeper::Keeper;
use super::leftovers;
use crate::clock;
use crate::domain::job::{Exit, RunEnd};
use crate::domain::lease::{Timing, Token};
use crate::domain::name::{JobName, NodeName, Owner, RunId};
use crate::domain::time::Boot;
use crate::guard::containment::Choice;
use crate::store::events::{Events, StoreEvent};
use crate::store::journal::{Ended, Journal, Started, Stream, Then};
use crate::store::leases::{Acquire, Acquired, Condition, Leases, Renewal};
use crate::store::{Store, StoreError};
use crate::telemetry::Metrics;

/// The lease was not had in time.
pub const NOT_HAD: i32 = 75;
/// The lease was lost and the command was killed.
pub const LOST: i32 = 76;
/// A waiter looks at least this often, whatever hints it missed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What to run.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as on the command line")]
pub struct Once {
    pub name: JobName,
    pub node: NodeName,
    pub timing: Timing,
    pub stop_grace: Duration,
    /// How long to wait for the lease; `None` for ever.
    pub wait: Option<Duration>,
    pub argv: Vec<String>,
    pub dir: PathBuf,
    pub env: BTreeMap<String, String>,
    pub store_url: String,
    pub prefix: String,
    pub containment: Choice,
}

/// Runs the command; returns its exit code, 128 + signal, [`NOT_HAD`] or [`LOST`].
///
/// # Errors
/// When the command cannot be started or signals cannot be listened to.
pub async fn run(store: &Store, once: Once) -> anyhow::Result<i32> {
    // This process starts one guard and nothing else: whatever comes to it as an orphan is of that guard's script.
    become_subreaper();
    leftovers::sweep(&leftovers::notes_of(&once.store_url, &once.prefix))?;
    let owner = Owner(format!("{:032x}/run", rand::random::<u128>()));
    let Some((token, sent)) = acquire(store, &once, &owner).await? else {
        return Ok(NOT_HAD);
    };
    let keeper = Keeper::start(store.clone(), Arc::new(Metrics::default()));
    let Once { name, node, timing, .. } = &once;
    let mut kept = keeper.keep(
        Renewal {
            job: name.clone(),
            owner: owner.clone(),
            node: node.clone(),
            token,
            ttl: timing.ttl,
        },
        *timing,
        sent,
    );
    let run = RunId(ulid::Ulid::generate().to_string());
    let spec = Spec {
        argv: once.argv.clone(),
        dir: once.dir.clone(),
        env: once.env.clone(),
        job: name.clone(),
        run: run.clone(),
        node: node.clone(),
        token,
        owner: owner.clone(),
        store_url: once.store_url.clone(),
        prefix: once.prefix.clone(),
        timing: *timing,
        stop_grace: once.stop_grace,
        containment: once.containment.clone(),
    };
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let deadline = *kept.trusted_until.borrow_and_update();
    let (child, mut events) = Child::spawn(spec, deadline)?;
    let (mut lost, mut stopped, mut listening) = (false, false, true);
    let (exit, killed, cause) = loop {
        tokio::select! {
            biased;
            Ok(()) = kept.trusted_until.changed() => child.extend(*kept.trusted_until.borrow_and_update()),
            answer = &mut kept.lost, if listening => {
                listening = false;
                if answer.is_ok() {
                    lost = true;
                    child.kill();
                }
            }
            _ = terminate.recv() => { stopped = true; child.stop(once.stop_grace) }
            _ = interrupt.recv() => { stopped = true; child.stop(once.stop_grace) }
            event = events.recv() => match event {
                Some(ChildEvent::Started { pid }) => {
                    let started = Started { job: name.clone(), token, run: run.clone(), node: node.clone(), pid };
                    let store = store.clone();
                    tokio::spawn(async move {
                        if let Err(error) = store.record_started(&started).await {
                            tracing::warn!(%error, "the start is not in the history");
                        }
                    });
                }
                Some(ChildEvent::Line(line)) => pass_on(line.stream, &line.text)?,
                Some(ChildEvent::Progress(_)) => {}
                Some(ChildEvent::Failed { error }) => {
                    eprintln!("soloist: {error}");
                    break (Exit { code: Some(127), signal: None }, 0, None);
                }
                Some(ChildEvent::Gone { exit, processes_killed, cause }) => {
                    break (exit, processes_killed, Some(cause));
                }
                None => anyhow::bail!("the guard ended without proof that the command is gone; its lease runs out by itself"),
            },
        }
    };
    keeper.forget(&owner);
    let fenced = lost || cause == Some(Cause::Deadline);
    let end = match () {
        () if fenced => RunEnd::Fenced,
        () if stopped => RunEnd::Stopped,
        () if exit.is_success() => RunEnd::Exited,
        () => RunEnd::Crashed,
    };
    let ended = Ended {
        job: name.clone(),
        owner,
        token,
        run,
        exit,
        end,
        processes_killed: killed,
        then: Then::Nothing,
    };
    if let Err(error) = store.record_ended(&ended).await {
        eprintln!("soloist: the lease of {name} is left to run out by itself: {error}");
    }
    child.dismiss();
    if fenced {
        eprintln!("soloist: the lease of {name} was lost, and the command was killed");
        return Ok(LOST);
    }
    Ok(exit.code.unwrap_or_else(|| 128 + exit.signal.unwrap_or(0)))
}

/// Subscribes, tries, then sleeps until a hint, the lease's remaining time or a second.
async fn acquire(
    store: &Store,
    once: &Once,
    owner: &Owner,
) -> anyhow::Result<Option<(Token, Boot)>> {
    let mut events = store.subscribe().await?;
    let begun = clock::boot();
    let mut said = false;
    loop {
        let sent = clock::boot();
        let ask = Acquire {
            job: once.name.clone(),
            owner: owner.clone(),
            node: once.node.clone(),
            ttl: once.timing.ttl,
            condition: Condition::None,
            seen: Token(0),
        };
        let (pause, why) = match store.acquire(&ask).await {
            Ok(Acquired::Granted { token, .. }) => {
                if once.timing.trusted_until(sent) > clock::boot() {
                    return Ok(Some((token, sent)));
                }
                (Duration::ZERO, "the answer came too late".to_owned())
            }
            Ok(Acquired::Busy { node, remaining }) => (remaining, format!("{node} holds it")),
            Ok(Acquired::Quarantined { wait }) => (wait, "the store has just restarted".to_owned()),
            Ok(other) => (LOOK_AGAIN, format!("{other:?}")),
            Err(StoreError::Unavailable(why)) => (Duration::from_millis(200), why),
            Err(error) => return Err(error.into()),
        };
        let left = once.wait.map(|wait| wait.saturating_sub(clock::boot().since(begun)));
        if left.is_some_and(|left| left.is_zero()) {
            eprintln!("soloist: the lease of {} was not had in time: {why}", once.name);
            store.release(&once.name, owner, Token(0)).await.unwrap_or_default();
            return Ok(None);
        }
        if !std::mem::replace(&mut said, true) {
            eprintln!("soloist: waiting for the lease of {}: {why}", once.name);
        }
        let pause = pause.min(LOOK_AGAIN).min(left.unwrap_or(LOOK_AGAIN));
        // A hint, the end of the pause: either way it is asked again.
        drop(timeout(pause, hint(&mut events, &once.name)).await);
    }
}

async fn hint(events: &mut tokio::sync::mpsc::Receiver<StoreEvent>, name: &JobName) {
    loop {
        match events.recv().await {
            Some(StoreEvent::Job(event)) if &event.job != name => {}
            Some(StoreEvent::Nodes | StoreEvent::Interrupted) => {}
            Some(_) => return,
            None => std::future::pending().await,
        }
    }
}

fn pass_on(stream: Stream, text: &str) -> std::io::Result<()> {
    match stream {
        Stream::Stdout => writeln!(std::io::stdout().lock(), "{text}"),
        Stream::Stderr => writeln!(std::io::stderr().lock(), "{text}"),
        Stream::Soloist => writeln!(std::io::stderr().lock(), "soloist: {text}"),
    }
}
