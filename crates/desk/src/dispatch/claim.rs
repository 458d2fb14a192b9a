//! Results in, work out: one call, or as many as it takes until there is work or the time is over.
//!
//! A waiter sleeps until the store names it. If that wake is lost, the waiter asks again by itself, about a second later:
//! later than the pump would have woken it. Otherwise all waiters would ask at once at every end of a gap.

use std::time::Duration;

use tokio::time::sleep;

use super::ClaimDesk;
use crate::waiting::{Asking, DeskError, Errand, SHORTEST_WAIT, left};
use soloist_domain::dispatch::Reason;
use soloist_domain::name::SourceName;
use soloist_process::clock;
use soloist_store::dispatch::{
    ClaimId, Claimed, Dispatch as _, Exchange, Exchanged, Reported, Waiter,
};
use soloist_store::{Result as Stored, Store};

/// A grant of tasks, until it is delivered.
pub type Hand = crate::waiting::Hand<Work>;

/// A request for work.
#[derive(Debug, Clone)]
pub struct Work {
    claim: ClaimId,
    sources: Vec<SourceName>,
}

impl Errand for Work {
    type Name = ClaimId;
    type Call = Exchange;
    type Answer = Exchanged;
    type Grant = ClaimId;

    fn name(&self) -> Self::Name {
        self.claim.clone()
    }

    async fn call(store: Store, call: Exchange) -> Stored<Exchanged> {
        store.exchange(&call).await
    }

    fn granted(answer: &Exchanged) -> Option<ClaimId> {
        match &answer.claimed {
            Some(Claimed::Granted { claim, .. }) => Some(claim.clone()),
            _ => None,
        }
    }

    async fn give_back(&self, store: &Store, grant: &ClaimId) -> Stored<()> {
        store.give_back_unseen_claim(grant).await.map(drop)
    }

    async fn leave_queues(&self, store: &Store, waiter: &Waiter) -> Stored<()> {
        store.leave_queues(waiter, &self.sources).await
    }
}

/// What [`ClaimDesk::exchange`] answers.
pub struct Answer {
    /// One for each report, in order.
    pub reports: Vec<Reported>,
    /// If something was asked.
    pub claimed: Option<Claimed>,
    /// A grant, until it is delivered.
    pub hand: Option<Hand>,
}

impl ClaimDesk {
    /// Takes results and grants what is asked, waiting for work up to `wait`. The results count at once. Dropped before
    /// its end, it leaves neither a waiter nor a grant behind; `ask.claim.wait` is set here.
    ///
    /// # Errors
    /// [`DeskError`]; of the store [`soloist_store::StoreError::NotFound`] for a source that is not defined.
    pub async fn exchange(&self, mut ask: Exchange, wait: Duration) -> Result<Answer, DeskError> {
        let Some(claim) = ask.claim.clone() else {
            let done = self.store()?.exchange(&ask).await?;
            return Ok(Answer { reports: done.reports, claimed: None, hand: None });
        };
        let mut closing = self.room.closing();
        let deadline = clock::boot() + wait;
        let work = Work { claim: claim.id(), sources: claim.sources.clone() };
        let mut asking = Asking::new(&self.room, &self.newest, work);
        let mut reports = None;
        loop {
            self.store()?;
            let patience = left(deadline);
            let waits = patience >= SHORTEST_WAIT && !*closing.borrow();
            let waiter = waits.then(|| (asking.waiter(), patience));
            if let Some(claim) = &mut ask.claim {
                claim.wait = waiter;
            }
            // The results count once.
            let reported = std::mem::take(&mut ask.reports);
            let done = asking.call(Exchange { reports: reported, ..ask.clone() }).await?;
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
            self.bell.look_around();
            if let Some(next_at) = next_at {
                self.expect(Some(next_at));
            }
            tokio::select! {
                () = asking.woken() => {}
                () = sleep(self.room.patience(next_at).min(left(deadline))) => {}
                // Not remembered by the store under this request: it may be asked again elsewhere.
                _ = closing.wait_for(|closing| *closing) => {
                    let reports = std::mem::take(reports);
                    return Ok(self.answered(reports, claimed, &claim.sources, asking));
                }
            }
        }
    }

    fn answered(
        &self,
        reports: Vec<Reported>,
        claimed: Option<Claimed>,
        sources: &[SourceName],
        asking: Asking<Work>,
    ) -> Answer {
        match &claimed {
            Some(Claimed::Granted { lease_until, tasks, .. }) => {
                let mut served: Vec<&SourceName> = tasks.iter().map(|task| &task.source).collect();
                served.sort();
                served.dedup();
                for source in served {
                    self.metrics.claimed(Some(source), "granted");
                }
                self.expect(Some(*lease_until));
                if self.room.waiting() > 0 {
                    // When the next can be served is known only now.
                    self.expect(None);
                }
            }
            Some(Claimed::Nothing { reason, .. }) => {
                let only = if let [only] = sources { Some(only) } else { None };
                self.metrics.claimed(only, word(*reason));
            }
            None => {}
        }
        let granted = matches!(claimed, Some(Claimed::Granted { .. }));
        Answer { reports, claimed, hand: granted.then(|| asking.into_hand()) }
    }
}

/// The word for it in JSON.
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
