//! What people do to jobs: switch, hold, resume, move, drill.

use super::{Act, Actor, OpsError, Result, noting, reason};
use crate::drill::{NoDrill, target};
use soloist_config::JobConfig;
use soloist_domain::detail::Detail;
use soloist_domain::drill::Drill;
use soloist_domain::handover::{Takers, lasts, may_move};
use soloist_domain::job::{JobRecord, LeaseRecord};
use soloist_domain::name::{NodeName, UserName};
use soloist_store::accounts::{Accounts as _, Role};
use soloist_store::jobs::Jobs as _;
use soloist_store::nodes::Nodes as _;
use soloist_store::{Store, StoreError};

/// Switches a participation: the actor's, or for an admin that of `user`. Whether that changed anything.
///
/// # Errors
/// [`OpsError::Forbidden`], [`OpsError::Field`], [`OpsError::Store`].
pub async fn participate(
    store: &Store,
    actor: &Actor,
    job: &JobConfig,
    user: Option<&str>,
    on: bool,
    given: Option<&str>,
) -> Result<bool> {
    actor.check_job(job)?;
    let reason = reason(given)?;
    let user = match user {
        Some(name) if name != actor.user.as_str() => named_user(store, actor, name).await?,
        _ => actor.user.clone(),
    };
    let said = match &reason {
        reason if user == actor.user => reason.clone(),
        Some(reason) => Some(format!("for {user}: {reason}")),
        None => Some(format!("for {user}")),
    };
    let act = if on { Act::ParticipationOn } else { Act::ParticipationOff };
    let store = noting(store, &actor.signature, act, job.name.as_str(), said.as_deref());
    Ok(store.participate(&job.name, &user, on, reason.as_deref()).await?)
}

async fn named_user(store: &Store, actor: &Actor, name: &str) -> Result<UserName> {
    if actor.check_admin().is_err() {
        return Err(OpsError::forbidden(format!(
            "only an admin may switch for another user: leave out user, or ask {name}"
        )));
    }
    let wrong = |what: &str| OpsError::malformed(format!("field user: {what}"));
    let name = UserName::new(name).map_err(|error| OpsError::Malformed(error.detail()))?;
    match store.user(&name).await? {
        Some(user) if user.role != Role::Collector => Ok(name),
        Some(_) => Err(wrong(&format!("{name} is a collector and takes no part"))),
        None => Err(wrong(&format!("there is no account {name}"))),
    }
}

/// Forbids a job, saying why. Returns the reason as it is kept.
///
/// # Errors
/// As [`participate`].
pub async fn hold(store: &Store, actor: &Actor, job: &JobConfig, given: &str) -> Result<String> {
    actor.check_job(job)?;
    let reason = reason(Some(given))?.ok_or_else(|| OpsError::Field {
        field: "reason",
        what: Detail::new("is empty: say why the job is held, others will read it")
            .told("refused-hold-reason", &[]),
    })?;
    let name = &job.name;
    let store = noting(store, &actor.signature, Act::JobHold, name.as_str(), Some(&reason));
    store.hold(name, &actor.user, &reason).await?;
    Ok(reason)
}

/// Allows a job again.
///
/// # Errors
/// As [`participate`].
pub async fn resume(store: &Store, actor: &Actor, job: &JobConfig) -> Result<()> {
    actor.check_job(job)?;
    let store = noting(store, &actor.signature, Act::JobResume, job.name.as_str(), None);
    Ok(store.resume(&job.name).await?)
}

/// What the audit says before the reason of a hand-over to nobody in particular.
pub const ELSEWHERE: &str = "elsewhere";

/// Asks for a hand-over, to `to` or to any other holder; returns the holder that the job leaves. Holders are nodes, or the
/// programs that take the lease of an external job.
///
/// # Errors
/// As [`participate`], and [`OpsError::Move`].
pub async fn hand_over(
    store: &Store,
    actor: &Actor,
    job: &JobConfig,
    to: Option<&NodeName>,
    given: Option<&str>,
) -> Result<NodeName> {
    actor.check_job(job)?;
    let why = reason(given)?;
    let record = record(store, job).await?;
    let takers: Vec<_> = match job.is_external() {
        true => Vec::new(),
        false => store.nodes().await?.iter().map(|node| node.taker(&job.name)).collect(),
    };
    let takers = if job.is_external() { Takers::Programs } else { Takers::Nodes(&takers) };
    let from = may_move(&record, to, takers).map_err(OpsError::Move)?;
    let whither = to.map(|to| format!("to {to}"));
    let said = match why {
        None => whither,
        Some(why) => Some(format!("{}: {why}", whither.as_deref().unwrap_or(ELSEWHERE))),
    };
    let name = &job.name;
    let store = noting(store, &actor.signature, Act::JobMove, name.as_str(), said.as_deref());
    store.request_move(name, to, &actor.user, lasts(job.stop_grace)).await?;
    Ok(from.clone())
}

/// A drill that was ordered.
pub struct Ordered {
    /// The job as it was before.
    pub before: JobRecord,
    /// Whose holder crashes.
    pub lease: LeaseRecord,
    /// The order.
    pub drill: Drill,
}

/// Has the node process that holds a job crash; with `force` also when no node could take over, and `word` is how an
/// actor says that. Calls `warn` when nothing refuses it any more.
///
/// # Errors
/// As [`participate`], and [`OpsError::Conflict`] when there is no node to crash or none to take over, or when a program
/// holds the job.
pub async fn drill(
    store: &Store,
    actor: &Actor,
    job: &JobConfig,
    (force, word): (bool, &'static str),
    given: Option<&str>,
    warn: impl FnOnce(&LeaseRecord),
) -> Result<Ordered> {
    actor.check_admin()?;
    actor.bound.check_job(&job.name)?;
    let why = reason(given)?.map_or_else(String::new, |why| format!(": {why}"));
    if job.is_external() {
        return Err(OpsError::Conflict(NoDrill::External(job.name.clone()).detail()));
    }
    let before = record(store, job).await?;
    let nodes = store.nodes().await?;
    let lease = target(&before, &nodes, force, word)
        .map_err(|refusal| OpsError::Conflict(refusal.detail()))?
        .clone();
    warn(&lease);
    let said = format!("{} under token {}{why}", lease.node, lease.token);
    let store = noting(store, &actor.signature, Act::JobDrill, job.name.as_str(), Some(&said));
    let Some(at) = store.request_drill(&job.name, lease.token, &actor.user).await? else {
        let (job, node) = (&job.name, &lease.node);
        return Err(OpsError::Conflict(
            Detail::new(format!("{job} has just left {node}, so no node was crashed: try again"))
                .told("refused-drill-left", &[("job", job), ("node", node)]),
        ));
    };
    let (token, by) = (lease.token, actor.user.clone());
    let drill = Drill { token, by, at, to: None, started: None };
    Ok(Ordered { before, lease, drill })
}

async fn record(store: &Store, job: &JobConfig) -> Result<JobRecord> {
    let mut jobs = store.snapshot(std::slice::from_ref(&job.name)).await?.jobs;
    let missing = || StoreError::Corrupt("a snapshot without the job".into());
    Ok(jobs.pop().ok_or_else(missing)?)
}
