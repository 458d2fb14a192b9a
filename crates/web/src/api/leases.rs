//! `/api/v1/leases`: everything that is held, and leases for programs: taken, renewed and given back.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{self, Bytes};
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use serde::{Deserialize, Serialize};

use super::handing::handed;
use super::{Answer, answer, clamp, patience, query, read};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use soloist_config::JobConfig;
use soloist_desk::leases::{self, Ask, Holding, Renewal, Renewed, Secret, Terms};
use soloist_domain::job::Progress;
use soloist_domain::lease::Timing;
use soloist_domain::name::{JobName, NodeName, RequestId, TickText};
use soloist_domain::tick::Params;
use soloist_domain::time::millis;
use soloist_ops as ops;
use soloist_store::journal::{NewLine, Stream};
use soloist_store::leases::Leases as _;
use soloist_store::spent::{Once, Spent, Standing};
use soloist_view::HeldLeaseView;
use soloist_view::lists::Held;
use soloist_view::words::{At, iso};
use soloist_view::{mended, whole};

/// Most lines in one renewal.
const LINES_AT_ONCE: usize = 500;

/// Most leases in one call of renewals.
const RENEWALS_AT_ONCE: usize = 1_000;

/// Most leases in one answer.
const LEASES_AT_ONCE: usize = 1_000;

/// Which leases are asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    limit: Option<u64>,
    after: Option<String>,
}

/// Everything that is held now, in pages by name: each job, whether a node has it or a program, each command under `soloist run`, and each lease that a
/// program holds under a name of its own. A lease that the store forgot is missing until its holder renews it. This call
/// reads the whole store and costs more than others: follow jobs on `/live`.
#[utoipa::path(get, path = "/api/v1/leases", tag = "leases", operation_id = "list_leases",
    params(
        ("limit" = Option<u64>, Query, description = "How many: 1 to 1,000, 1,000 when absent; what is outside is moved inside."),
        ("after" = Option<String>, Query, description = "Only names behind this one, the first of them.")),
    responses((status = 200, description = "The leases.", body = Held)))]
pub async fn list(web: web::Data<Web>, caller: Caller, request: HttpRequest) -> Answer<Held> {
    let Wanted { limit, after } = query(&request)?;
    let limit = clamp(limit, LEASES_AT_ONCE, LEASES_AT_ONCE);
    let held = web.store.held().await?;
    let watches = web.watches();
    let is_watched = |name: &JobName, token| watches.iter().any(|watched| watched.has(name, token));
    let is_job = |name: &JobName| web.live.job_named(name.as_str()).is_some();
    let view = |held| HeldLeaseView::of(held, is_job, is_watched);
    let hidden = web.live.hidden_from(Some(&caller));
    let behind = |name: &str| after.as_ref().is_none_or(|after| name > after.as_str());
    let seen = held.iter().filter(|held| behind(held.name.as_str()));
    let mut seen = seen.filter(|held| !hidden.has(held.name.as_str()));
    let leases: Vec<_> = seen.by_ref().take(limit).map(view).collect();
    let last = leases.last().map(|last| last.name.clone());
    answer(Held { next_after: seen.next().and(last), leases })
}

/// A request for a lease.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LeaseBody {
    /// The program's name, as people see it.
    #[schema(example = "shop-7f", format = "name")]
    pub holder: String,
    /// Chosen anew for each lease, and repeated when the answer did not arrive: the same one, from the same token or session, has the same
    /// lease while that lasts, and keeps its place among those who wait. Once that lease is over, it asks for a new one.
    #[schema(example = "01J8Z", format = "label")]
    pub request_id: String,
    /// How long a lease of the program's own name lasts unrenewed; 10,000 when left out. A job's `lease_ttl` wins, and `lease_ttl_max` of
    /// the configuration may allow less.
    #[schema(minimum = 1_000, maximum = 600_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub ttl_ms: Option<u64>,
    /// How long to wait for it.
    #[schema(default = 0, minimum = 0, maximum = 30_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub wait_ms: Option<u64>,
    /// What this run is for: 1 to 200 bytes without control characters. It is spent with the grant, and no other program or command
    /// has a lease of this name for the same one: the answer is `spent`, whoever holds the lease. It is kept for 400 days, and of a name
    /// the newest 100,000. Only for a name of the program's own.
    #[schema(example = "2026-11-27", min_length = 1, max_length = 200)]
    #[serde(default)]
    pub tick: Option<String>,
    /// With `tick`: also when it is spent, but its work failed or was lost.
    #[schema(default = false)]
    #[serde(default)]
    pub retry_failed: Option<bool>,
}

/// A lease.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct GrantedLease {
    /// Its name.
    #[schema(example = "outbound")]
    pub name: String,
    /// The fencing token: grows with every grant; any sink can refuse an older one.
    pub token: u64,
    /// To renew and to release: known to this holder alone.
    #[schema(example = "1835019492704256.5000.j.5f2a90c3d1e84b7796d03ac8e1f7b264")]
    pub secret: String,
    /// The run that began, if it is a job's; null else.
    pub run: Option<String>,
    /// How long it lasts unrenewed; each renewal extends it by the same, whatever the configuration says by then.
    pub ttl_ms: u64,
    /// How long it lasts, counted on the program's own clock from *before* it sent this request, less 1 %. A grant that was waited for says
    /// nothing about that clock: renew once before the work begins.
    pub expires_in_ms: u64,
    /// How often to renew.
    pub renew_every_ms: u64,
    /// Of a job with a schedule: the tick that it was granted for; else what was asked for. It is an idempotency key for what the work writes.
    #[schema(example = "settle@2026-11-27T02:30+08:00[Asia/Shanghai]")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<String>,
    /// When the schedule said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Counts the grants of the tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How long after its start this was granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<u64>,
    /// Parameters of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Params>,
}

/// No lease now.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct NoLease {
    /// Its name.
    #[schema(example = "outbound")]
    pub name: String,
    /// `not_wanted`, `busy`, `not_due` (the next tick is yet to come), `resting`, `backing_off`, `given_up`, `held`, `reserved` (a move keeps it for another), `recovery` (the store
    /// may have forgotten a lease that is still held) or `spent` (another had this `tick`: there is nothing to do).
    #[schema(example = "busy")]
    pub reason: &'static str,
    /// Who has it, or spent the tick; null when it has no holder.
    pub holder: Option<String>,
    /// When asking again may help.
    pub retry_in_ms: u64,
    /// With `spent`: what is known of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentTick>,
}

/// A tick that another had.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct SpentTick {
    /// As it was asked for.
    pub tick: String,
    /// When its lease was granted, by the store's clock.
    pub started: At,
    /// When its work ended; null while it lasts, or if nobody said.
    pub ended: Option<At>,
    /// `running`, `done`, `failed`, or `lost` (nobody said how it ended, and nobody holds the lease for it).
    #[schema(value_type = String, example = "done")]
    pub outcome: Standing,
    /// The exit code, if one was said.
    pub code: Option<i32>,
}

impl SpentTick {
    fn of(spent: Spent, outcome: Standing) -> Self {
        let code = spent.ended.as_ref().and_then(|end| end.outcome.exit.code);
        Self {
            tick: spent.tick.into(),
            started: At(spent.at),
            ended: spent.ended.map(|end| At(end.at)),
            outcome,
            code,
        }
    }
}

/// The answer to a request for a lease.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "what is inside says it")]
pub enum LeaseAnswer {
    Granted(GrantedLease),
    Refused(NoLease),
}

/// To who may not see a job, its lease does not exist.
fn check_sees(caller: &Caller, job: &JobConfig) -> Result<(), WebError> {
    if caller.sees(job) {
        return Ok(());
    }
    Err(WebError::not_found(format!("there is no lease {} for you: use another name", job.name)))
}

/// What is known of a lease.
type Known = (JobName, Option<Arc<JobConfig>>);

fn named(name: &str) -> Result<JobName, WebError> {
    JobName::new(name).map_err(|error| WebError::not_found(error.to_string()))
}

/// A lease by its name, for a caller who may hold it.
fn allowed(web: &Web, caller: &Caller, name: &str) -> Result<Known, WebError> {
    let name = named(name)?;
    let job = web.live.job_named(name.as_str());
    if let Some(job) = &job {
        check_sees(caller, job)?;
    }
    ops::leases::check(&caller.actor(), &name, job.as_deref())?;
    Ok((name, job))
}

/// The terms on which a lease was granted.
fn granted((name, job): Known, secret: &Secret) -> Result<Terms, WebError> {
    let timing = Timing::from_ttl(secret.ttl).map_err(|_| over(&name))?;
    Ok(Terms { name, job, timing })
}

/// The secret that a holder sent.
fn secret_of(text: &str) -> Result<Secret, WebError> {
    Secret::read(text).ok_or_else(|| WebError::Conflict {
        detail: "secret: this is not the secret of a lease; nothing was changed: send the `secret` with which it was granted".into(),
    })
}

fn over(name: &JobName) -> WebError {
    over_named(name.as_str())
}

fn over_named(name: &str) -> WebError {
    WebError::Conflict {
        detail: format!(
            "the lease {name} is over or another's: end the work at once, and ask for it again with a new request_id"
        )
        .into(),
    }
}

/// One run for a tick that the program names.
fn once(
    terms: &Terms,
    tick: Option<&str>,
    retry_failed: Option<bool>,
) -> Result<Option<Once>, WebError> {
    let Some(tick) = tick else {
        return match retry_failed {
            Some(true) => Err(WebError::bad(
                "retry_failed: it counts only with a tick: send one, or leave it out",
            )),
            _ => Ok(None),
        };
    };
    if terms.job.is_some() {
        return Err(WebError::bad(format!(
            "tick: {} is a job, and its ticks come from its schedule: leave it out, or ask for a lease of another name",
            terms.name
        )));
    }
    let tick = TickText::new(tick).map_err(|error| WebError::bad(format!("tick: {error}")))?;
    Ok(Some(Once { tick, retry_failed: retry_failed.unwrap_or(false) }))
}

/// Asks for a lease: it is granted, or the answer says why not, at once or after a wait. A waiter has one place, in order of arrival.
#[utoipa::path(post, path = "/api/v1/leases/{name}", tag = "leases", operation_id = "take_lease",
    params(("name" = String, Path, description = "A job with runner = \"external\", or a name of the program's own.")),
    request_body = LeaseBody,
    responses((status = 200, description = "The lease, or why it cannot be had.", body = LeaseAnswer)))]
pub async fn post(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    body: Bytes,
) -> Result<HttpResponse, WebError> {
    let bad = |field: &str, problem: &str| WebError::bad(format!("{field}: {problem}"));
    let body: LeaseBody = read(&body)?;
    let most = web.config().lease_ttl_max;
    let ttl = body.ttl_ms.map_or(leases::DEFAULT.min(most), Duration::from_millis);
    if !(leases::SHORTEST..=most).contains(&ttl) {
        return Err(bad("ttl_ms", &format!("from 1000 to {}", most.as_millis())));
    }
    let (name, job) = allowed(&web, &caller, &name)?;
    let timing = match &job {
        Some(job) => job.timing,
        None => Timing::from_ttl(ttl).map_err(|error| bad("ttl_ms", &error.to_string()))?,
    };
    let terms = Terms { name, job, timing };
    let holder = NodeName::new(&body.holder).map_err(|error| bad("holder", &error.to_string()))?;
    let request =
        RequestId::new(&body.request_id).map_err(|error| bad("request_id", &error.to_string()))?;
    let wait = patience(body.wait_ms).map_err(|problem| bad("wait_ms", problem))?;
    let once = once(&terms, body.tick.as_deref(), body.retry_failed)?;
    let account = leases::account(&caller.user);
    let most = web.config().doors.leases_per_account;
    if terms.job.is_none() && web.leases.is_full(&account, most, &terms.name) {
        return Err(ops::quota::leases(&caller.user, most).into());
    }
    let request = ["lease", terms.name.as_str(), request.as_str()];
    // Another tick is another request.
    let tick = once.as_ref().map(|once| once.tick.as_str());
    let text = caller.seal(&request.into_iter().chain(tick).collect::<Vec<_>>());
    let seal = leases::seal(&account, &text);
    let asked = once.as_ref().map(|once| once.tick.to_string());
    let (name, timing) = (terms.name.to_string(), terms.timing);
    let said = match web.leases.take(Ask { terms, holder, seal, once }, wait).await? {
        leases::Answer::Granted { secret, run, tick, hand } => {
            let granted = GrantedLease {
                name,
                token: secret.token.0,
                secret: secret.text(),
                run: run.map(|run| run.0),
                ttl_ms: millis(timing.ttl),
                expires_in_ms: millis(timing.ttl),
                renew_every_ms: millis(timing.renew_every),
                due: tick.as_ref().map(|granted| iso(granted.tick.due)),
                attempt: tick.as_ref().map(|granted| granted.attempt),
                late_ms: tick.as_ref().map(|granted| granted.late_ms),
                params: tick.as_ref().map(|granted| granted.params.clone()),
                tick: tick.map(|granted| granted.tick.name.0).or(asked),
            };
            return Ok(handed(&LeaseAnswer::Granted(granted), Some(hand)));
        }
        leases::Answer::Refused(refusal) => NoLease {
            name,
            reason: refusal.reason,
            holder: refusal.holder.map(|holder| holder.to_string()),
            retry_in_ms: millis(refusal.retry_in),
            spent: refusal.spent.map(|(spent, standing)| SpentTick::of(*spent, standing)),
        },
    };
    Ok(HttpResponse::Ok().json(LeaseAnswer::Refused(said)))
}

/// How far a program is.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgressBody {
    /// How many are done.
    #[serde(deserialize_with = "whole::exact")]
    pub done: u64,
    /// How many there are in all.
    #[serde(deserialize_with = "whole::exact")]
    pub total: u64,
    /// What it does now; 200 characters are kept.
    #[serde(default, deserialize_with = "mended::optional")]
    pub note: Option<String>,
}

/// A renewal.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewBody {
    /// As granted.
    pub secret: String,
    /// How long to wait for a reason to stop; the lease is extended before.
    #[schema(default = 0, minimum = 0, maximum = 30_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub wait_ms: Option<u64>,
    /// For the lease of a job: moves its progress bar.
    pub progress: Option<ProgressBody>,
    /// For the lease of a job: lines of output, at most 500 at a time; one longer than 4 KiB is cut.
    #[serde(default, deserialize_with = "mended::lines")]
    #[schema(max_items = 500)]
    pub lines: Option<Vec<String>>,
}

/// That the program must end its work.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct StopNow {
    /// `off`, `held`, `moved`, `drained`, `removed`, or `timed_out` (the job's `max_runtime` is over). Whatever it says: stop.
    #[schema(example = "off")]
    pub why: &'static str,
    /// It is given so long from now; then its lease is not extended any more.
    pub within_ms: u64,
}

/// A lease that goes on.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct KeptLease {
    /// How long it lasts, counted on the program's own clock from *before* it sent this renewal, less 1 %.
    pub expires_in_ms: u64,
    /// Null: go on.
    pub stop: Option<StopNow>,
}

fn waits(wait_ms: Option<u64>) -> Result<Duration, WebError> {
    patience(wait_ms).map_err(|problem| WebError::bad(format!("wait_ms: {problem}")))
}

fn said(progress: Option<ProgressBody>, lines: Option<Vec<String>>) -> Result<Renewal, WebError> {
    let lines = lines.unwrap_or_default();
    if lines.len() > LINES_AT_ONCE {
        return Err(WebError::bad(
            "lines: at most 500 at a time: send the others with the next renewal",
        ));
    }
    let line = |text: &str| {
        let text = NewLine::as_shown(text).replace('\0', "\u{fffd}");
        NewLine::cut(Stream::Stdout, text, false)
    };
    let lines = lines.iter().flat_map(|text| text.split('\n')).map(line).collect();
    let progress = progress.map(|ProgressBody { done, total, note }| {
        Progress::new(done, total, note.as_deref().unwrap_or_default())
    });
    Ok(Renewal { progress, lines })
}

/// The terms of a lease that its holder gives back: who has the secret may, whatever else it may not do (any more).
fn given_back(web: &Web, name: &str, secret: &Secret) -> Result<Terms, WebError> {
    let job = web.live.job_named(name).filter(|job| job.is_external() && !job.is_elsewhere());
    granted((named(name)?, job), secret)
}

/// Extends a lease when the renewal arrives; then answers after `wait_ms`, or at once when the holder must end its work. Any node will do.
#[utoipa::path(post, path = "/api/v1/leases/{name}/renew", tag = "leases", operation_id = "renew_lease",
    params(("name" = String, Path, description = "As granted.")),
    request_body = RenewBody,
    responses((status = 200, description = "It goes on.", body = KeptLease)))]
pub async fn renew(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    body: Bytes,
) -> Answer<KeptLease> {
    let RenewBody { secret, wait_ms, progress, lines } = read(&body)?;
    let wait = waits(wait_ms)?;
    let holding = holding(&web, &caller, &name, &secret, said(progress, lines)?)?;
    let Holding { terms, secret, renewal } = holding;
    match web.leases.renew(&terms, &secret, renewal, wait).await? {
        Renewed::Kept { expires_in, stop } => answer(kept(expires_in, stop)),
        Renewed::Over => Err(over(&terms.name)),
    }
}

fn kept(expires_in: Duration, stop: Option<leases::Stop>) -> KeptLease {
    KeptLease {
        expires_in_ms: millis(expires_in),
        stop: stop.map(|stop| StopNow { why: stop.why, within_ms: millis(stop.within) }),
    }
}

/// A lease that is to be extended. As for a grant: who may hold it no more does not keep it either.
fn holding(
    web: &Web,
    caller: &Caller,
    name: &str,
    secret: &str,
    renewal: Renewal,
) -> Result<Holding, WebError> {
    let secret = secret_of(secret)?;
    let terms = granted(allowed(web, caller, name)?, &secret)?;
    Ok(Holding { terms, secret, renewal })
}

/// One of several renewals.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OneRenewal {
    /// Of the lease.
    #[schema(example = "outbound")]
    pub name: String,
    /// As granted.
    pub secret: String,
    /// For the lease of a job: moves its progress bar.
    pub progress: Option<ProgressBody>,
    /// For the lease of a job: lines of output, at most 500 at a time; one longer than 4 KiB is cut.
    #[serde(default, deserialize_with = "mended::lines")]
    #[schema(max_items = 500)]
    pub lines: Option<Vec<String>>,
}

/// Renewals of one program.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewalsBody {
    /// How long to wait for a reason to stop any of them; they are extended before.
    #[schema(default = 0, minimum = 0, maximum = 30_000)]
    #[serde(default, deserialize_with = "whole::optional")]
    pub wait_ms: Option<u64>,
    /// At most 1,000.
    #[schema(max_items = 1_000)]
    pub leases: Vec<OneRenewal>,
}

/// What became of one renewal.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(missing_docs, reason = "what is inside says it")]
pub enum OneAnswer {
    Kept {
        name: String,
        #[serde(flatten)]
        #[schema(inline)]
        kept: KeptLease,
    },
    /// As `renew` of this lease alone would have answered.
    Refused { name: String, status: u16, detail: String },
}

/// What became of renewals, in their order.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct RenewalsAnswer {
    /// One for each.
    pub leases: Vec<OneAnswer>,
}

/// Extends many leases as `renew` extends each, in one call: answered after `wait_ms`, or as soon as one of them must end or is over.
#[utoipa::path(post, path = "/api/v1/renewals", tag = "leases", operation_id = "renew_leases",
    request_body = RenewalsBody,
    responses((status = 200, description = "What became of each.", body = RenewalsAnswer)))]
pub async fn renew_all(web: web::Data<Web>, caller: Caller, body: Bytes) -> Answer<RenewalsAnswer> {
    let body: RenewalsBody = read(&body)?;
    if body.leases.len() > RENEWALS_AT_ONCE {
        return Err(WebError::bad(
            "leases: at most 1000 at a time: send the others in another call",
        ));
    }
    let wait = waits(body.wait_ms)?;
    let (mut names, mut refused, mut held) = (Vec::new(), Vec::new(), Vec::new());
    for OneRenewal { name, secret, progress, lines } in body.leases {
        let renewal = said(progress, lines);
        let one = renewal.and_then(|renewal| holding(&web, &caller, &name, &secret, renewal));
        names.push(name);
        refused.push(match one {
            Ok(one) => {
                held.push(one);
                None
            }
            Err(error) => Some(error),
        });
    }
    // Who is told that one of them is over waits no longer for the others.
    let wait = if refused.iter().all(Option::is_none) { wait } else { Duration::ZERO };
    let mut renewed = web.leases.renew_all(held, wait).await.into_iter();
    let leases = names.into_iter().zip(refused).map(|(name, refused)| {
        let answer = match refused {
            Some(error) => Err(error),
            None => match renewed.next() {
                Some(Ok(Renewed::Kept { expires_in, stop })) => Ok(kept(expires_in, stop)),
                Some(Err(error)) => Err(error.into()),
                Some(Ok(Renewed::Over)) | None => Err(over_named(&name)),
            },
        };
        match answer {
            Ok(kept) => OneAnswer::Kept { name, kept },
            Err(error) => OneAnswer::Refused {
                name,
                status: error.status_code().as_u16(),
                detail: error.to_string(),
            },
        }
    });
    answer(RenewalsAnswer { leases: leases.collect() })
}

/// How the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WorkEnd {
    /// As it should: `repeat` follows.
    Done,
    /// It did not: a crash, with its backoff.
    Failed,
    /// Nothing was begun: no crash, no backoff, no repeat.
    Unused,
    /// The program stopped it in the middle, for an end of its own: no crash, no backoff, and of a tick `on_loss` decides.
    Lost,
}

/// The end of a lease.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// As granted.
    pub secret: String,
    /// How the work ended; `done` when left out.
    pub end: Option<WorkEnd>,
    /// Exit code; 0 for done and 1 for failed when left out.
    #[schema(minimum = -2_147_483_648, maximum = 2_147_483_647)]
    pub code: Option<i32>,
    /// What went wrong: the last lines of the run's output.
    #[serde(default, deserialize_with = "mended::optional")]
    pub error: Option<String>,
}

/// A lease that was given back.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ReleasedLease {
    /// Its name.
    pub name: String,
    /// Whether it is free now.
    pub released: bool,
}

/// Gives a lease back: the next who waits has it at once. The same release twice is harmless. Whoever has the secret may, also when its
/// account lost the role with which it was granted.
#[utoipa::path(post, path = "/api/v1/leases/{name}/release", tag = "leases", operation_id = "release_lease",
    params(("name" = String, Path, description = "As granted.")),
    request_body = ReleaseBody,
    responses((status = 200, description = "It is free.", body = ReleasedLease)))]
pub async fn release(
    web: web::Data<Web>,
    caller: Caller,
    name: web::Path<String>,
    body: Bytes,
) -> Answer<ReleasedLease> {
    let body: ReleaseBody = read(&body)?;
    let secret = secret_of(&body.secret)?;
    let terms = given_back(&web, &name, &secret)?;
    let error = body.error.map(|error| NewLine::cut(Stream::Stderr, error, false).text);
    let ending = leases::Ending {
        how: match body.end.unwrap_or(WorkEnd::Done) {
            WorkEnd::Done => leases::How::Done,
            WorkEnd::Failed => leases::How::Failed,
            WorkEnd::Unused => leases::How::Unused,
            WorkEnd::Lost => leases::How::Lost,
        },
        code: body.code,
        error: error.filter(|error| !error.trim().is_empty()),
    };
    let released = web.leases.release(&terms, &secret, &ending).await?;
    if released != leases::Released::Yes
        && let Some(job) = web.live.job_named(terms.name.as_str())
    {
        check_sees(&caller, &job)?;
        if !job.is_external() {
            return Err(over(&terms.name));
        }
    }
    match released {
        leases::Released::Yes | leases::Released::Nothing => {
            answer(ReleasedLease { name: terms.name.to_string(), released: true })
        }
        leases::Released::Another => Err(over(&terms.name)),
    }
}
