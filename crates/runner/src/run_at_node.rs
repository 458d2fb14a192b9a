//! `soloist run --server`: the lease of a command, taken, renewed and released at nodes instead of at the store.
//!
//! Environment, stop and exit code of the command are those of [`super::run_command`]. A grant may have waited long, so the lease is
//! renewed once before the command starts, and the trust counts from before that.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::attend::{Attendant, Command};
use super::child::{Child, Spec, Streams, Work, become_subreaper};
use super::command::{
    ASK_AGAIN, Interrupts, LAST_WORDS, NOT_HAD, NOT_STARTED, Patience, SIGNALLED, exit_code, say,
    to_its_end,
};
use super::hold::{Hold, Renew, Renewed};
use super::once::{self, Meant, NOTED_WITHIN};
use super::run_command::RunCommand;
use super::signals::Signals;
use super::trouble::Trouble;
use soloist_domain::job::Exit;
use soloist_domain::lease::{Timing, Token};
use soloist_domain::name::{Owner, RunId};
use soloist_domain::spent::{Once, Standing};
use soloist_domain::time::{Boot, StoreTime, millis, signed_millis};
use soloist_process::clock;
use soloist_remote::{Access, Call, Client, RemoteError, part};

/// How long a request for a lease waits at a node, which allows 30 s.
const LONGEST_POLL: Duration = Duration::from_secs(20);
/// Beyond the wait that was asked for, an answer may take this long.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Nothing was begun.
const UNUSED: &str = "unused";

/// What a node answers to a request for a lease.
#[derive(Deserialize)]
struct Answer {
    token: Option<Token>,
    secret: Option<String>,
    run: Option<String>,
    reason: Option<String>,
    holder: Option<String>,
    #[serde(default)]
    retry_in_ms: u64,
    spent: Option<SpentTick>,
}

/// What it says of a tick that another had.
#[derive(Deserialize)]
struct SpentTick {
    started: String,
    ended: Option<String>,
    outcome: Standing,
    code: Option<i32>,
}

/// What this needs of a node's status.
#[derive(Deserialize)]
struct Clock {
    now: Option<String>,
}

#[derive(Deserialize)]
struct Kept {
    expires_in_ms: u64,
    stop: Option<StopNow>,
}

#[derive(Deserialize)]
struct StopNow {
    why: String,
    within_ms: u64,
}

/// A lease under its secret.
#[derive(Clone)]
struct Leased {
    client: Client,
    name: String,
    secret: String,
    /// How long a renewal may take.
    patience: Duration,
    /// The node wants the command to end within this time.
    stop: watch::Sender<Option<Duration>>,
}

impl Leased {
    fn at(&self, what: &str) -> String {
        format!("/api/v1/leases/{}/{what}", part(&self.name))
    }

    /// Renews the lease; the times that follow from it.
    async fn extend(&self) -> Result<Timing, Trouble> {
        let call = Call::post(self.at("renew")).repeatable();
        let call = call.shared_within(self.patience, &self.client);
        let kept: Result<Kept, RemoteError> =
            self.client.ask(call.with(&json!({"secret": self.secret, "wait_ms": 0}))).await;
        let kept = match kept {
            // Over, or another's.
            Err(error @ RemoteError::Refused { status: 409, .. }) => {
                return Err(Trouble::NotFound(error.into()));
            }
            kept => kept?,
        };
        if let Some(StopNow { why, within_ms }) = kept.stop {
            if self.stop.borrow().is_none() {
                say(&format!("{} is to end: {why}", self.name));
            }
            self.stop.send_replace(Some(Duration::from_millis(within_ms)));
        }
        let lease = Duration::from_millis(kept.expires_in_ms);
        Timing::from_ttl(lease).map_err(|error| Trouble::Other(error.into()))
    }

    async fn release(&self, exit: Exit, end: &str) -> Result<(), RemoteError> {
        let body = json!({
            "secret": self.secret, "end": end,
            "code": exit.code, "error": Value::Null,
        });
        self.client.tell(Call::post(self.at("release")).with(&body).repeatable()).await
    }
}

impl Renew for Leased {
    async fn renew(&mut self) -> Renewed {
        match self.extend().await {
            Ok(timing) => Renewed::Kept(timing),
            Err(Trouble::NotFound(_)) => Renewed::Lost,
            Err(error) => Renewed::Unknown(error.to_string()),
        }
    }

    fn complain(&self, why: &str) {
        say(&format!("cannot renew the lease of {}: {why}", self.name));
    }
}

/// Stops the command by signals of this process, and when the node says so.
struct Told<'a> {
    interrupts: Interrupts<'a>,
    stop: watch::Receiver<Option<Duration>>,
}

impl Attendant for Told<'_> {
    async fn command(&mut self) -> Command {
        let told = async {
            match self.stop.changed().await {
                Ok(()) => *self.stop.borrow_and_update(),
                Err(_) => None,
            }
        };
        tokio::select! {
            command = self.interrupts.command() => command,
            Some(within) = told => Command::Stop(within),
        }
    }
}

/// As [`super::run_command::run`], by the nodes behind `access`.
///
/// # Errors
/// As of that; what a node refuses.
pub async fn run(mut with: RunCommand, access: Access) -> anyhow::Result<i32> {
    let mut signals = Signals::listen()?;
    // This process starts one guard and nothing else.
    become_subreaper();
    with.program.sweep()?;
    let client = Client::new(access)?;
    let mut patience = Patience::new(format!("the lease of {}", with.name), with.wait);
    let once = tokio::select! {
        meant = meant(&client, &with, &mut patience) => match meant? {
            Ok(meant) => meant,
            Err(code) => return Ok(code),
        },
        signal = signals.next() => return Ok(SIGNALLED + signal),
    };
    if let Some(meant) = &once {
        with.program = with.program.with(meant.variables());
        patience = Patience::new(format!("the lease of {}", with.name), with.wait);
    }
    let id = format!("{:032x}", rand::random::<u128>());
    let request = Request { id, once: once.map(|meant| meant.once) };
    let had = tokio::select! {
        had = acquire(&client, &with, &request, &mut patience) => had,
        signal = signals.next() => {
            give_back(&client, &with, &request).await;
            return Ok(SIGNALLED + signal);
        }
    };
    match had? {
        Said::Lease(had) => had.run(with, &mut signals).await,
        Said::Spent => Ok(0),
        Said::Nothing => {
            give_back(&client, &with, &request).await;
            Ok(NOT_HAD)
        }
    }
}

/// As [`super::run_command`] has it, by the clock that a node says.
async fn meant(
    client: &Client,
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
        let why = match client.ask(Call::get("/api/v1/status")).await {
            Ok(Clock { now: Some(now) }) => {
                let now = humantime::parse_rfc3339(&now).context("read the clock of the node")?;
                let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
                let ms = signed_millis(since);
                break once.at(StoreTime(ms))?;
            }
            Ok(Clock { now: None }) => "the node does not know the store's clock".to_owned(),
            Err(error) => Trouble::from(error).passing()?,
        };
        let Some(left) = patience.left(&why) else { return Ok(Err(NOT_HAD)) };
        sleep(left.min(ASK_AGAIN)).await;
    };
    if !meant.wait.is_zero() {
        say(&meant.waits(&with.name));
        sleep(meant.wait).await;
    }
    Ok(Ok(Some(meant)))
}

/// A request for a lease, however often it is sent.
struct Request {
    id: String,
    once: Option<Once>,
}

/// What came of it.
enum Said {
    Lease(Box<Had>),
    /// The tick is another's, and that was said.
    Spent,
    /// It was not granted in time.
    Nothing,
}

fn ask(with: &RunCommand, request: &Request, wait: Duration) -> Call {
    let wait = wait.min(LONGEST_POLL);
    let mut body = json!({
        "holder": with.program.node, "request_id": request.id,
        "ttl_ms": millis(with.timing.ttl),
        "wait_ms": millis(wait),
    });
    if let Some(once) = &request.once {
        body["tick"] = once.tick.as_str().into();
        body["retry_failed"] = once.retry_failed.into();
    }
    let path = format!("/api/v1/leases/{}", part(with.name.as_str()));
    Call::post(path).with(&body).repeatable().within(wait + ANSWER_MAX)
}

async fn acquire(
    client: &Client,
    with: &RunCommand,
    request: &Request,
    patience: &mut Patience,
) -> anyhow::Result<Said> {
    let mut wait = Duration::ZERO;
    loop {
        let asked = clock::boot();
        let (pause, why) = match client.ask(ask(with, request, wait)).await {
            Ok(Answer { token: Some(token), secret: Some(secret), run, .. }) => {
                let (client, name) = (client.clone(), with.name.to_string());
                let patience = with.timing.store_timeout;
                let lease =
                    Leased { client, name, secret, patience, stop: watch::Sender::new(None) };
                let sent = clock::boot();
                match lease.extend().await {
                    Ok(timing) if timing.trusted_until(sent) > clock::boot() => {
                        let had = Had { lease, token, run, timing, sent };
                        return Ok(Said::Lease(Box::new(had)));
                    }
                    Ok(_) => (Duration::ZERO, "it came too late to be trusted".to_owned()),
                    Err(Trouble::NotFound(_)) => {
                        (ASK_AGAIN, "it ended before its grant arrived".to_owned())
                    }
                    Err(error) => (ASK_AGAIN, error.passing()?),
                }
            }
            Ok(Answer { spent: Some(spent), holder, .. }) => {
                let Some(once) = &request.once else { return Ok(Said::Spent) };
                let had = once::Had {
                    name: &with.name,
                    tick: &once.tick,
                    by: holder.as_deref().unwrap_or("another"),
                    started: spent.started,
                    ended: spent.ended,
                    standing: spent.outcome,
                    code: spent.code,
                };
                say(&had.sentence());
                return Ok(Said::Spent);
            }
            Ok(Answer { reason, holder, retry_in_ms, .. }) => {
                if request.once.is_some() && reason.as_deref() == Some("busy") {
                    patience.at_least(NOTED_WITHIN);
                }
                // A node that is shutting down answers at once.
                let soon = !wait.is_zero() && clock::boot().since(asked) < ASK_AGAIN;
                let pause = if soon { Duration::from_millis(retry_in_ms) } else { Duration::ZERO };
                let why = match holder {
                    Some(holder) => format!("{holder} holds it"),
                    None => reason.unwrap_or_else(|| "it is not free".to_owned()).replace('_', " "),
                };
                (pause.clamp(Duration::ZERO, ASK_AGAIN * 5), why)
            }
            // What came of it is unknown: the same is asked again, which is the same request.
            Err(error) => (ASK_AGAIN, Trouble::from(error).passing()?),
        };
        let Some(left) = patience.left(&why) else { return Ok(Said::Nothing) };
        wait = left;
        sleep(pause.min(left)).await;
    }
}

/// An answer that was lost may have been a grant, which would keep others waiting.
async fn give_back(client: &Client, with: &RunCommand, request: &Request) {
    let asked = async {
        let answer: Answer = client.ask(ask(with, request, Duration::ZERO)).await?;
        let Some(secret) = answer.secret else { return Ok(()) };
        let (client, name) = (client.clone(), with.name.to_string());
        let (patience, stop) = (with.timing.store_timeout, watch::Sender::new(None));
        let lease = Leased { client, name, secret, patience, stop };
        lease.release(Exit::default(), UNUSED).await
    };
    drop(timeout(LAST_WORDS, asked).await);
}

/// A lease that is held.
struct Had {
    lease: Leased,
    token: Token,
    run: Option<String>,
    timing: Timing,
    /// When its last renewal was sent.
    sent: Boot,
}

impl Had {
    async fn run(self, with: RunCommand, signals: &mut Signals) -> anyhow::Result<i32> {
        let Self { lease, token, run, timing, sent } = self;
        let name = with.name.to_string();
        let stop = lease.stop.subscribe();
        let spec = Spec {
            program: with.program.clone(),
            job: with.name.clone(),
            run: RunId(run.unwrap_or_else(|| ulid::Ulid::generate().to_string())),
            token,
            // By which its guard releases it.
            owner: Owner(lease.secret.clone()),
            timing,
            streams: Streams::Inherited,
            work: Work::Run,
        };
        let mut hold = Hold::renewed_by(lease.clone(), timing, sent);
        let (child, events) = match Child::spawn(spec, hold.trusted_until()) {
            Ok(spawned) => spawned,
            Err(error) => {
                hold.end();
                drop(lease.release(Exit::default(), UNUSED).await);
                return Err(error.into());
            }
        };
        let interrupts = Interrupts::new(signals, with.program.stop_grace);
        let mut told = Told { interrupts, stop };
        let ended = to_its_end(&child, events, &mut hold, &mut told, &name).await?;
        hold.end();
        let end = match () {
            () if ended.cause.is_err() => UNUSED,
            () if ended.is_fenced() || !ended.exit.is_success() => "failed",
            () => "done",
        };
        if ended.lost || released(&lease, ended.exit, end).await {
            child.dismiss();
        }
        Ok(exit_code(&ended, &name, &format!("the lease of {name}"), "not renewed in time"))
    }
}

/// Whether the lease is released, or not held any more; otherwise that is left to the guard.
async fn released(lease: &Leased, exit: Exit, end: &str) -> bool {
    let begun = clock::boot();
    loop {
        match lease.release(exit, end).await {
            Ok(()) => return true,
            Err(error) if error.may_pass() && clock::boot().since(begun) < LAST_WORDS => {
                sleep(ASK_AGAIN).await;
            }
            Err(error) if error.may_pass() => {
                say(&format!(
                    "the lease of {} is not released yet ({error}): its guard goes on trying, and at the latest it runs out",
                    lease.name
                ));
                return false;
            }
            // Released by what was asked before and never answered, or over by time.
            Err(RemoteError::Refused { status: 409, .. }) => return true,
            Err(error) => {
                say(&format!("the lease of {} is left to run out by itself: {error}", lease.name));
                return true;
            }
        }
    }
}
