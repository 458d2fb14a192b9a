//! Programs on a life line (contract 15): whether a secret is that of the holder, and what the death of its process ends.

use std::time::Duration;

use tokio::sync::watch;

use super::end::close;
use super::keep::held;
use super::secret::Secret;
use super::{LeaseDesk, Released, Terms};
use crate::waiting::DeskError;
use soloist_domain::job::{Exit, JobRecord, RunEnd};
use soloist_domain::journal::Stream;
use soloist_domain::name::NodeName;
use soloist_domain::spent::{How, Outcome};
use soloist_domain::time::StoreTime;
use soloist_store::journal::{Ended, NewLine, Then};
use soloist_store::nodes::Watched;

/// How a watched process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Death<'a> {
    /// Which.
    pub pid: i32,
    /// On which node's machine.
    pub node: &'a NodeName,
    /// The watcher killed it: its work was not over in time.
    pub killed: bool,
}

impl LeaseDesk {
    /// What this node watches; `None`: it has no life line.
    #[must_use]
    pub fn watched(&self) -> &watch::Sender<Option<Watched>> {
        &self.shared.watched
    }

    /// Whether `secret` is that of the holder.
    ///
    /// # Errors
    /// [`DeskError`]: not known now.
    pub async fn holds(&self, terms: &Terms, secret: &Secret) -> Result<bool, DeskError> {
        if self.seen(&terms.name).is_some_and(|seen| held(&seen, secret).is_some()) {
            return Ok(true);
        }
        self.is_holder(terms, secret).await
    }

    /// Gives back the lease of a process that is dead, as the kernel says. The next may begin at once, unless programs die one after
    /// the other soon after their grants. The same death twice is harmless.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn died(
        &self,
        terms: &Terms,
        secret: &Secret,
        death: Death<'_>,
    ) -> Result<Released, DeskError> {
        let Death { pid, node, killed } = death;
        let said = match killed {
            true => format!(
                "process {pid} on the machine of {node} was killed: it had not renewed its lease, and its work was not over in time"
            ),
            false => format!("the program died: process {pid} on the machine of {node}"),
        };
        let last_words = NewLine { stream: Stream::Soloist, text: said };
        let ended = |record: &JobRecord, now| ended(terms, secret, record, killed, now);
        let exit = Exit { code: None, signal: killed.then_some(9) };
        let outcome = Outcome { how: How::Lost, exit };
        close(self, terms, secret, outcome, vec![last_words], ended).await
    }
}

fn ended(
    terms: &Terms,
    secret: &Secret,
    record: &JobRecord,
    killed: bool,
    now: StoreTime,
) -> Ended {
    let run = record.run.as_ref().filter(|run| run.id == secret.run(&terms.name));
    let uptime = run.map_or(Duration::ZERO, |run| now.since(run.started));
    let (end, then) = match (killed, &terms.job) {
        (true, _) => (RunEnd::Fenced, Then::Nothing),
        (false, Some(job)) => {
            let last = record.last_exit.as_ref();
            (RunEnd::Died, job.follows_death(last, record.crashes, uptime, rand::random::<f64>()))
        }
        (false, None) => (RunEnd::Died, Then::Nothing),
    };
    Ended {
        job: terms.name.clone(),
        owner: secret.owner(),
        token: secret.token,
        run: secret.run(&terms.name),
        exit: Exit { code: None, signal: killed.then_some(9) },
        end,
        processes_killed: 0,
        then,
        began: None,
    }
}
