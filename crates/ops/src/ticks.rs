//! Runs that people request: now, by hand, or of a tick by its name.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{Act, Actor, OpsError, Result, noting, reason};
use soloist_config::{JobConfig, Scheduled, params};
use soloist_domain::detail::Detail;
use soloist_domain::tick::{Asked, Tick, TickName};
use soloist_domain::time::StoreTime;
use soloist_store::Store;
use soloist_store::ticks::TickBook as _;

/// The longest `request_id`.
const LONGEST_ID: usize = 100;

/// What somebody asks for.
#[derive(Debug, Clone, Default)]
pub struct RunAsk {
    /// Values of parameters.
    pub params: BTreeMap<String, String>,
    /// Why.
    pub reason: Option<String>,
    /// The same gets the same answer.
    pub request: Option<String>,
    /// A tick of the schedule; a new one by hand when absent.
    pub tick: Option<String>,
}

/// The schedule of a job, or why there is none.
///
/// # Errors
/// [`OpsError::Conflict`].
pub fn schedule(job: &JobConfig) -> Result<&Scheduled> {
    job.schedule.as_ref().ok_or_else(|| {
        let text = format!(
            "{} has no schedule, it runs continuously: switch it on, or give it schedule, every or at in the file",
            job.name
        );
        OpsError::conflict(Detail::new(text).told("refused-no-schedule", &[("job", &job.name)]))
    })
}

/// The same for who acts: of a job that only other nodes define, rules and parameters are not known here.
///
/// # Errors
/// [`OpsError::Conflict`].
pub fn own_schedule(job: &JobConfig) -> Result<&Scheduled> {
    if job.is_elsewhere() {
        let text = format!(
            "{} is defined on other nodes only, and its parameters are known there: ask one of them",
            job.name
        );
        let detail = Detail::new(text).told("refused-run-elsewhere", &[("job", &job.name)]);
        return Err(OpsError::conflict(detail));
    }
    schedule(job)
}

/// Whether `actor` may ask for runs of `job`.
///
/// # Errors
/// [`OpsError::Forbidden`].
pub fn may_run(actor: &Actor, job: &JobConfig) -> Result<()> {
    actor.check_job(job)
}

/// Asks for a run now; answers the name of its tick.
///
/// # Errors
/// [`OpsError::Forbidden`]; [`OpsError::Malformed`] for a parameter that does not fit; [`OpsError::NotFound`] for a tick that the schedule
/// does not have; [`OpsError::Conflict`] for a continuous or held job, or a tick that cannot run now; [`OpsError::Store`].
pub async fn ask_run(
    store: &Store,
    actor: &Actor,
    job: &JobConfig,
    ask: &RunAsk,
) -> Result<TickName> {
    may_run(actor, job)?;
    let scheduled = own_schedule(job)?;
    let why = reason(ask.reason.as_deref())?;
    if ask.request.as_ref().is_some_and(|id| id.is_empty() || id.len() > LONGEST_ID) {
        return Err(OpsError::malformed(format!(
            "request_id has 1 to {LONGEST_ID} bytes: make one for each run that is wanted"
        )));
    }
    let now = Timestamp::now();
    let zone = scheduled.plan.zone().and_then(|zone| jiff::tz::TimeZone::get(zone).ok());
    let today = now.to_zoned(zone.unwrap_or(jiff::tz::TimeZone::UTC)).date();
    // Settled at the first grant; that it fits is said now.
    params::values(&scheduled.params, &ask.params, today, ask.tick.is_some())
        .map_err(|wrong| OpsError::malformed(wrong.after("parameter ")))?;
    let at = StoreTime(now.as_millisecond());
    let tick = match &ask.tick {
        None => {
            let name = TickName(format!("{}@hand:{}", job.name, ulid::Ulid::generate()));
            Tick { name, due: at, starts: at, note: None }
        }
        Some(name) => {
            // A `+` that was not escaped arrives as a blank.
            let name = TickName(name.trim().replace(' ', "+"));
            match scheduled.plan.named(&name) {
                Some(tick) => tick,
                None => listed(store, job, &name).await?,
            }
        }
    };
    let asked = Asked {
        tick,
        by: actor.user.clone(),
        params: ask.params.clone(),
        at,
        request: ask.request.clone(),
        attempts: 0,
        known: None,
    };
    let params: Vec<String> =
        ask.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut said = asked.tick.name.0.clone();
    if !params.is_empty() {
        said = format!("{said} {}", params.join(" "));
    }
    if let Some(why) = why {
        said = format!("{said}: {why}");
    }
    store.settle_ticks(&job.name, &scheduled.law, None).await?;
    let store = noting(store, &actor.signature, Act::JobRun, job.name.as_str(), Some(&said));
    let answer = store.ask_run(&job.name, &scheduled.law, &asked).await?;
    answer.map_err(|refused| OpsError::conflict(refused.detail()))
}

/// A tick of expressions that are in force no more: it has its entry.
async fn listed(store: &Store, job: &JobConfig, name: &TickName) -> Result<Tick> {
    let entries = store.ticks(&job.name).await?;
    // What is in a gap of former expressions is unknown: only a single one.
    let own = entries.into_iter().find(|entry| entry.count == 1 && entry.tick.name == *name);
    own.filter(|_| !name.is_by_hand()).map(|entry| entry.tick).ok_or_else(|| {
        let text = format!(
            "{name} is no tick of {}: GET /api/v1/jobs/{}/ticks has their names",
            job.name, job.name
        );
        OpsError::NotFound(Detail::new(text).told("refused-no-tick", &[("tick", name)]))
    })
}

/// Takes back a run that waits.
///
/// # Errors
/// As [`ask_run`]; [`OpsError::NotFound`] when none of that name waits.
pub async fn take_back(
    store: &Store,
    actor: &Actor,
    job: &JobConfig,
    tick: &TickName,
) -> Result<()> {
    actor.check_job(job)?;
    let noted =
        noting(store, &actor.signature, Act::JobRunTakenBack, job.name.as_str(), Some(&tick.0));
    if noted.take_back_run(&job.name, tick).await? {
        return Ok(());
    }
    let text = format!("{tick} does not wait: it has begun, is over, or was never asked for");
    Err(OpsError::NotFound(Detail::new(text).told("refused-no-run-waits", &[])))
}

/// Sets a newest tick that lies ahead of the store's clock to now.
///
/// # Errors
/// As [`ask_run`], for admins alone; [`OpsError::Conflict`] when it does not lie ahead.
pub async fn reset_taken(store: &Store, actor: &Actor, job: &JobConfig) -> Result<()> {
    actor.check_admin()?;
    actor.bound.check_job(&job.name)?;
    let noted = noting(store, &actor.signature, Act::JobTakenReset, job.name.as_str(), None);
    if noted.reset_taken(&job.name).await? {
        return Ok(());
    }
    Err(OpsError::conflict(format!(
        "the newest tick of {} does not lie ahead of the store's clock: nothing to reset",
        job.name
    )))
}
