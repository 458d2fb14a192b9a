//! Shared by `soloist run`, `soloist collect` and `soloist turn`: messages, waiting times, exit codes, and how signals stop a command.

use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::attend::{Attendant, Command, Ended, attend};
use super::child::{Cause, Child, ChildEvent};
use super::hold::Hold;
use super::signals::Signals;
use soloist_domain::job::Exit;
use soloist_domain::time::{Boot, format_duration, millis};
use soloist_process::clock;
/// Says something beside the command's own output: that no reader is left, or that it stands still, is no reason to stop or to wait.
pub(super) use soloist_process::outlet::say;
use soloist_store::{Opener, Options, Store, StoreError};

/// What was waited for was not granted in time.
pub(super) const NOT_HAD: i32 = 75;
/// What was held was lost and the command was killed.
const LOST: i32 = 76;
/// As a shell says that a command could not be started.
pub(super) const NOT_STARTED: i32 = 127;
/// As a shell says which signal ended a command.
pub(super) const SIGNALLED: i32 = 128;
/// A store that is away is asked again this often.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(200);

/// How long the end of this process waits for a store that is away; then the guard keeps trying alone.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

/// A time that is left, for people: whole seconds, or milliseconds when it is less than one.
pub(super) fn rounded(time: Duration) -> impl std::fmt::Display {
    let ms = millis(time);
    format_duration(match ms {
        0..1_000 => Duration::from_millis(ms),
        _ => Duration::from_secs(ms.div_ceil(1_000)),
    })
}

/// How long is still waited, and whether it was said that it is.
pub(super) struct Patience {
    what: String,
    begun: Boot,
    wait: Option<Duration>,
    lengthened: bool,
    said: bool,
}

impl Patience {
    /// To wait for `what`, for ever if that is not limited.
    pub(super) fn new(what: String, wait: Option<Duration>) -> Self {
        Self { what, begun: clock::boot(), wait, lengthened: false, said: false }
    }

    /// Waits for at least so long from now on, the first time that this is said.
    pub(super) fn at_least(&mut self, more: Duration) {
        if !std::mem::replace(&mut self.lengthened, true)
            && let Some(wait) = &mut self.wait
        {
            *wait = (*wait).max(clock::boot().since(self.begun) + more);
        }
    }

    /// Notes that it has to wait because of `why`. For how long at most; `None` when the patience is over.
    pub(super) fn left(&mut self, why: &str) -> Option<Duration> {
        let left = self.wait.map(|wait| wait.saturating_sub(clock::boot().since(self.begun)));
        if left.is_some_and(|left| left.is_zero()) {
            say(&format!("{} was not had in time: {why}", self.what));
            return None;
        }
        if !std::mem::replace(&mut self.said, true) {
            say(&format!("waiting for {}: {why}", self.what));
        }
        Some(left.unwrap_or(Duration::MAX))
    }
}

/// Opens the store; tried again for as long as the patience lasts.
pub(super) async fn connect(
    open: Opener,
    url: &str,
    options: &Options,
    patience: &mut Patience,
) -> anyhow::Result<Option<Store>> {
    loop {
        match open(url, options).await {
            Ok(store) => return Ok(Some(store)),
            Err(error @ StoreError::Unavailable(_)) => {
                let Some(left) = patience.left(&error.to_string()) else { return Ok(None) };
                sleep(left.min(ASK_AGAIN)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Signals that stop a command. The second one does not wait for the grace, as with a node.
pub(super) struct Interrupts<'a> {
    signals: &'a mut Signals,
    grace: Duration,
    /// Whether one came.
    pub(super) came: bool,
}

impl<'a> Interrupts<'a> {
    pub(super) fn new(signals: &'a mut Signals, grace: Duration) -> Self {
        Self { signals, grace, came: false }
    }
}

impl Attendant for Interrupts<'_> {
    async fn command(&mut self) -> Command {
        self.signals.next().await;
        match std::mem::replace(&mut self.came, true) {
            false => Command::Stop(self.grace),
            true => Command::Kill,
        }
    }
}

/// Attends to the one command of this process, which `of` names; one that could not be started ends as in a shell.
///
/// # Errors
/// When it is not known whether the command is gone.
pub(super) async fn to_its_end(
    child: &Child,
    mut events: mpsc::Receiver<ChildEvent>,
    hold: &mut Hold,
    attendant: &mut impl Attendant,
    of: &str,
) -> anyhow::Result<Ended> {
    let ended = attend(child, &mut events, &mut [hold], attendant).await;
    let mut ended = ended.with_context(|| {
        format!("the guard of {of} ended without proof that the command is gone; its lease runs out by itself")
    })?;
    if let Err(error) = &ended.cause {
        say(error);
        ended.exit = Exit { code: Some(NOT_STARTED), signal: None };
    }
    Ok(ended)
}

/// What this process exits with after its command ended; says what the command did not. `what` was held, and the words of
/// `late` say that it was not renewed in time.
pub(super) fn exit_code(ended: &Ended, of: &str, what: &str, late: &str) -> i32 {
    if ended.cause == Ok(Cause::GuardLost) {
        say(&format!("the guard of {of} was killed or fell silent, so its command was killed"));
    }
    if ended.is_fenced() {
        let why = if ended.lost { "lost to another" } else { late };
        say(&format!("{what} was {why}, and the command was killed"));
        return LOST;
    }
    ended.exit.code.unwrap_or_else(|| SIGNALLED + ended.exit.signal.unwrap_or(0))
}
