//! Gives the lease back for a node that is dead, after the tree is proved gone: a run's by recording its end, a task's
//! by reporting what came of it, a turn by passing it.
//!
//! Only here does a guard start a runtime: nothing is left to kill, so nothing can be late. It tries for as long as
//! the lease could still be in the way of another node, then leaves it to run out.

use std::time::Duration;

use super::message::{Plan, Work};
use crate::clock;
use crate::domain::dispatch::Outcome;
use crate::domain::job::{Exit, RunEnd};
use crate::domain::time::Boot;
use crate::store::dispatch::{Dispatch, Exchange, Report};
use crate::store::journal::{Ended, Journal, Then};
use crate::store::rotation::{Pass, Rotations};
use crate::store::{Options, Store, StoreError};

/// Beyond its trusted time a lease lives a little longer at the store.
const AFTER_DEADLINE: Duration = Duration::from_secs(5);
/// Between two attempts, doubling: at first every millisecond counts for the node that waits; later a store that comes
/// back must not be met by all guards of a dead node at once.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

pub(super) fn record_lost(plan: &Plan, exit: Exit, processes_killed: u32, deadline: Boot) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let ended = Ended {
        job: plan.job.clone(),
        owner: plan.owner.clone(),
        token: plan.token,
        run: plan.run.clone(),
        exit,
        end: RunEnd::Lost,
        processes_killed,
        then: Then::Nothing,
        // The store knows it. Should it have forgotten it since the last renewal, it takes the start of the lease.
        began: None,
    };
    runtime.block_on(async {
        let mut pause = FIRST_PAUSE;
        // The node has checked the store; every round trip less, another node starts sooner.
        let options = Options {
            prefix: plan.prefix.clone(),
            checked: true,
            make: false,
            ..Options::default()
        };
        while clock::boot() < deadline + AFTER_DEADLINE {
            match record(plan, &options, &ended).await {
                Ok(()) => return,
                Err(StoreError::Unavailable(_)) => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(_) => return,
            }
        }
    });
}

async fn record(plan: &Plan, options: &Options, ended: &Ended) -> Result<(), StoreError> {
    let store = Store::connect(&plan.store_url, options).await?;
    let id = match &plan.work {
        Work::Run => return store.record_ended(ended).await,
        Work::Turn(turn) => return pass(&store, turn.pass(plan.token, &ended.exit)).await,
        Work::Task { id, .. } => id.clone(),
    };
    let outcome = Outcome::of(&ended.exit);
    let report = Report {
        id,
        token: plan.token,
        outcome,
        // Killed because its collector died: that is no reason to wait.
        delay: (ended.exit.code.is_none() && outcome == Outcome::Retry).then_some(Duration::ZERO),
        error: (outcome != Outcome::Done).then(|| "its collector died".to_owned()),
    };
    store.exchange(&Exchange { reports: vec![report], ..Exchange::default() }).await.map(drop)
}

/// Passes a turn; one who is to come next and is gone from the rules is no reason to keep it.
async fn pass(store: &Store, mut pass: Pass) -> Result<(), StoreError> {
    match store.pass_turn(&pass).await {
        Err(StoreError::NotFound(_)) if pass.next.take().is_some() => {
            store.pass_turn(&pass).await.map(drop)
        }
        passed => passed.map(drop),
    }
}
