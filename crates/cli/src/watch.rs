//! Following the store from a terminal: a change, Ctrl-C, or a look once a second for what time alone changes. Its events are heard at
//! the store itself: handlers answer calls and hear nothing. Under `--server` no events come, so a node is asked every half second.

use std::io::IsTerminal as _;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::time::sleep;

use super::Failure;
use super::office::Office;
use super::output::print;
use soloist_domain::name::JobName;
use soloist_store::events::{Events, StoreEvent};

/// A state such as `starting` ends without an event.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A node is asked this often.
const ASK_AGAIN: Duration = Duration::from_millis(500);
/// Clears the terminal and goes to its first line (ECMA-48 ED and CUP).
const CLEAR: &str = "\x1b[H\x1b[2J";

/// A subscription that a command listens to.
pub(super) struct Watch {
    /// What the store says; `None`: a node is asked, again and again.
    events: Option<Receiver<StoreEvent>>,
    /// Kept from the start: Ctrl-C while something is being read must not be lost.
    interrupt: Signal,
    shown: String,
}

impl Watch {
    /// Subscribes; confirmed when this returns.
    pub(super) async fn start(office: &Office) -> Result<Self, Failure> {
        let interrupt = signal(SignalKind::interrupt())
            .map_err(|error| Failure::Failed(format!("cannot listen for Ctrl-C: {error}")))?;
        let events = match office.terminal() {
            Some(terminal) => {
                let jobs = office.jobs().await?.jobs.into_iter();
                let jobs: Vec<_> = jobs.filter_map(|job| JobName::new(&job.name).ok()).collect();
                Some(terminal.store.subscribe(&jobs).await?)
            }
            None => None,
        };
        Ok(Self { events, interrupt, shown: String::new() })
    }

    /// Waits until something may have changed; `false` on Ctrl-C.
    pub(super) async fn change(&mut self) -> Result<bool, Failure> {
        let pause = if self.events.is_some() { LOOK_AGAIN } else { ASK_AGAIN };
        let event = async {
            match &mut self.events {
                Some(events) => events.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => return Ok(false),
            event = event => if event.is_none() {
                return Err(Failure::Failed("the store ended the subscription".to_owned()));
            },
            () = sleep(pause) => {}
        }
        // One look answers all that is waiting.
        while self.events.as_mut().is_some_and(|events| events.try_recv().is_ok()) {}
        Ok(true)
    }

    /// Shows `text` if it differs from what is shown: in place on a terminal, below it in a pipe.
    pub(super) fn show(&mut self, text: &str) -> Result<(), Failure> {
        if self.shown != text {
            let clear = if std::io::stdout().is_terminal() { CLEAR } else { "" };
            print(&format!("{clear}{text}"))?;
            text.clone_into(&mut self.shown);
        }
        Ok(())
    }
}
