//! Results in, work out: one call, or as many as it takes until there is work or the time is over.
//!
//! Whoever waits sleeps until the store names them. Should that word be lost, they ask again by themselves, about a
//! second later: later than the pump would have woken them, or every end of a gap would see all of them asking at once.

use std::time::Duration;

use tokio::time::sleep;

use super::asking::Asking;
use super::{Desk, DispatchError, Hand, jittered};
use crate::clock;
use crate::domain::dispatch::Reason;
use crate::domain::name::SourceName;
use crate::domain::time::Stamp;
use crate::store::dispatch::{Claimed, Dispatch as _, Exchange, Reported};

/// A wait that would be shorter is none.
const SHORTEST_WAIT: Duration = Duration::from_millis(5);
/// How long after the moment that the store named a waiter asks unasked.
const GRACE: Duration = Duration::from_millis(100);
/// How often a waiter asks in any case.
const ASK_AGAIN: Duration = Duration::from_secs(1);
/// With many waiters, each asks less often: so much for each of them.
const ASK_AGAIN_EACH: Duration = Duration::from_millis(2);

/// What [`Desk::exchange`] answers.
pub struct Answer {
    /// One for each report, in order.
    pub reports: Vec<Reported>,
    /// If something was asked.
    pub claimed: Option<Claimed>,
    /// A grant, until it is delivered.
    pub hand: Option<Hand>,
}

impl Desk {
    /// Takes results and grants what is asked, waiting for work up to `wait`. The results count at once. Dropped before
    /// its end, it leaves neither a waiter nor a grant behind; `ask.claim.wait` is set here.
    ///
    /// # Errors
    /// [`DispatchError`]; of the store [`crate::store::StoreError::NotFound`] for a source that is not defined.
    pub async fn exchange(
        &self,
        mut ask: Exchange,
        wait: Duration,
    ) -> Result<Answer, DispatchError> {
        let Some(claim) = ask.claim.clone() else {
            let done = self.store()?.exchange(&ask).await?;
            return Ok(Answer { reports: done.reports, claimed: None, hand: None });
        };
        let mut closing = self.shared.closing.subscribe();
        let deadline = clock::boot() + wait;
        let mut asking = Asking::new(&self.shared, &claim);
        let mut reports = None;
        loop {
            self.store()?;
            let left = deadline.since(clock::boot());
            let waits = left >= SHORTEST_WAIT && !*closing.borrow();
            let waiter = waits.then(|| (asking.waiter(), left));
            if let Some(claim) = &mut ask.claim {
                claim.wait = waiter;
            }
            let done = asking.call(ask.clone()).await?;
            ask.reports.clear();
            let reports = reports.get_or_insert(done.reports);
            let claimed = done.claimed;
            let next_at = match &claimed {
                Some(Claimed::Nothing { next_at, .. }) if waits => *next_at,
                _ => {
                    asking.sit_no_more();
                    let reports = std::mem::take(reports);
                    return Ok(self.answered(reports, claimed, &claim.sources, asking));
                }
            };
            self.look_around();
            if let Some(next_at) = next_at {
                self.expect(Some(next_at));
            }
            tokio::select! {
                () = asking.woken() => {}
                () = sleep(self.patience(next_at).min(deadline.since(clock::boot()))) => {}
                // Not remembered by the store under this request: it may be asked again elsewhere.
                _ = closing.wait_for(|closing| *closing) => {
                    let reports = std::mem::take(reports);
                    return Ok(self.answered(reports, claimed, &claim.sources, asking));
                }
            }
        }
    }

    /// How long to sleep before asking unasked.
    fn patience(&self, next_at: Option<Stamp>) -> Duration {
        let here = u32::try_from(self.shared.waiters.len()).unwrap_or(u32::MAX);
        let again = jittered(ASK_AGAIN.max(ASK_AGAIN_EACH.saturating_mul(here)));
        let next = next_at.and_then(|at| self.shared.clock.until(at));
        next.map_or(again, |next| again.min(next.saturating_add(jittered(GRACE))))
    }

    fn answered(
        &self,
        reports: Vec<Reported>,
        claimed: Option<Claimed>,
        sources: &[SourceName],
        asking: Asking,
    ) -> Answer {
        match &claimed {
            Some(Claimed::Granted { lease_until, tasks, .. }) => {
                let mut served: Vec<&SourceName> = tasks.iter().map(|task| &task.source).collect();
                served.sort();
                served.dedup();
                for source in served {
                    self.shared.metrics.claimed(Some(source), "granted");
                }
                self.expect(Some(*lease_until));
                if self.shared.waiters.len() > 0 {
                    // When the next can be served is known only now.
                    self.expect(None);
                }
            }
            Some(Claimed::Nothing { reason, .. }) => {
                let only = if let [only] = sources { Some(only) } else { None };
                self.shared.metrics.claimed(only, word(*reason));
            }
            None => {}
        }
        let granted = matches!(claimed, Some(Claimed::Granted { .. }));
        Answer { reports, claimed, hand: granted.then(|| asking.into_hand()) }
    }
}

/// As in the contract.
#[must_use]
pub fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Empty => "empty",
        Reason::Gap => "gap",
        Reason::Cap => "cap",
        Reason::Paused => "paused",
        Reason::Blocked => "blocked",
    }
}
