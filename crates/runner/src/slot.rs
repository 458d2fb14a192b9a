//! One slot of a collector: claims a task, runs the command on it, and reports the result with the next claim.
//!
//! An exchange without an answer is repeated unchanged: the same request gets the same answer, and an accepted result is accepted again.
//! An idle slot waits for its bell.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::sleep;

use super::child::Child;
use super::collector::{ASK_AGAIN, Collector, LAST_WORDS, LOOK_AGAIN, NoCommand, Stop};
use super::command::say;
use super::task_run::{ClaimedTask, End};
use super::trouble::Trouble;
use super::work_source::WorkSource;
use soloist_domain::name::RequestId;
use soloist_process::clock;
use soloist_store::dispatch::{ClaimAsk, ClaimOwner, Claimed, Report, Reported, Waiter};

/// How long the store remembers that a slot waits.
const WAITS: Duration = Duration::from_secs(5);

/// How long a request for work waits at a node, which allows 30 s.
const LONGEST_POLL: Duration = Duration::from_secs(20);

/// The end of a task whose result is on its way.
struct Finished {
    report: Report,
    key: String,
    child: Option<Child>,
}

impl Collector {
    /// Works until there is no more to do.
    pub(super) async fn slot(&self, slot: usize) -> anyhow::Result<()> {
        let mut finished = None;
        let result = loop {
            if !self.may_start() {
                break Ok(());
            }
            let hand = match self.next(slot, &mut finished).await {
                Ok(Some(hand)) => hand,
                Ok(None) => {
                    self.started.fetch_sub(1, Ordering::AcqRel);
                    break Ok(());
                }
                Err(error) => break Err(error.into_error()),
            };
            let source = &hand.task.source;
            let known = self.leases.lock().get(source).copied();
            match hand.work(self, known).await {
                End::Result(report, child) => {
                    finished = Some(Finished { report, key: hand.task.key, child });
                }
                End::Unworked(child) => self.give_back(&hand, child).await,
                End::Lost => {}
                End::NoCommand(error) => {
                    self.give_back(&hand, None).await;
                    self.stop
                        .send_replace(Stop::Until(clock::boot() + self.with.program.stop_grace));
                    break Err(NoCommand(error).into());
                }
            }
        };
        self.hand_in(finished).await.and(result)
    }

    /// Hands a result in and gets the next task; `None` when there will be none.
    async fn next(
        &self,
        slot: usize,
        finished: &mut Option<Finished>,
    ) -> Result<Option<ClaimedTask>, Trouble> {
        let (waiter, bell) = &self.bells[slot];
        let wait_here = (!self.work_source.waits()).then(|| (waiter.clone(), WAITS));
        let mut ask = self.ask(wait_here.clone());
        let mut first_sent = None;
        let mut stop = self.stop.subscribe();
        let mut stopping_since = None;
        loop {
            let sent = *first_sent.get_or_insert_with(clock::boot);
            let reports: Vec<_> = finished.iter().map(|one| one.report.clone()).collect();
            // Only what nothing else hangs on may wait at a node: results go at once.
            let idle = reports.is_empty() && !self.is_stopping();
            let wait = match (self.work_source.waits() && idle, self.with.until_empty) {
                (false, _) => Duration::ZERO,
                (true, true) => LOOK_AGAIN,
                (true, false) => LONGEST_POLL,
            };
            let exchange = self.work_source.exchange(reports, Some(ask.clone()), wait);
            let exchanged = tokio::select! {
                exchanged = exchange => exchanged,
                // What it may have got meanwhile is requested once more, and returned.
                Ok(()) = stop.changed(), if !wait.is_zero() => continue,
            };
            let claimed = match exchanged {
                Ok(exchanged) => {
                    self.is_away(None);
                    accepted(finished.take(), exchanged.reports.first());
                    exchanged.claimed
                }
                // What came of it is unknown: the same is asked again, which is the same request.
                Err(error @ Trouble::Away(_)) => {
                    self.is_away(Some(&error));
                    if self.is_stopping() {
                        let since = *stopping_since.get_or_insert_with(clock::boot);
                        if clock::boot().since(since) > LAST_WORDS {
                            return Ok(None);
                        }
                    }
                    sleep(ASK_AGAIN.mul_f64(rand::random_range(0.75..1.25))).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            // Its source opens again after the gap, perhaps for a waiter.
            self.stir.notify_one();
            match claimed {
                Some(Claimed::Granted { claim, lease_until, mut tasks }) => {
                    if let Some(task) = tasks.pop() {
                        let mut hand = ClaimedTask { claim, task, lease_until, sent, lease: None };
                        if !self.is_stopping() {
                            if hand.is_fresh(&self.work_source).await {
                                return Ok(Some(hand));
                            }
                            (ask, first_sent) = (self.ask(wait_here.clone()), None);
                            continue;
                        }
                        self.give_back(&hand, None).await;
                        return Ok(None);
                    }
                    (ask, first_sent) = (self.ask(wait_here.clone()), None);
                }
                Some(Claimed::Nothing { .. }) | None => {
                    (ask, first_sent) = (self.ask(wait_here.clone()), None);
                    if self.is_stopping() || self.with.until_empty && self.is_empty().await? {
                        self.work_source.leave(waiter, &self.with.sources).await;
                        return Ok(None);
                    }
                    if self.work_source.waits() {
                        // The next request waits by itself; a node that is shutting down answers at once.
                        if clock::boot().since(sent) < ASK_AGAIN && !wait.is_zero() {
                            sleep(ASK_AGAIN).await;
                        }
                        continue;
                    }
                    tokio::select! {
                        () = bell.notified() => {}
                        () = sleep(LOOK_AGAIN.mul_f64(rand::random_range(0.75..1.25))) => {}
                        changed = stop.changed() => {
                            changed.ok();
                        }
                    }
                }
            }
        }
    }

    fn ask(&self, wait: Option<(Waiter, Duration)>) -> ClaimAsk {
        let random = || format!("{:032x}", rand::random::<u128>());
        #[expect(clippy::expect_used, reason = "hexadecimal digits are a label")]
        let request = RequestId::new(&random()).expect("a request id");
        ClaimAsk {
            owner: match &self.work_source {
                WorkSource::Store(_, owner) => owner.clone(),
                // The node knows the owner.
                WorkSource::Server(_) => ClaimOwner::of(""),
            },
            collector: self.with.collector.clone(),
            request,
            max: 1,
            sources: self.with.sources.clone(),
            wait,
        }
    }

    /// Whether no task is ready, due or leased.
    async fn is_empty(&self) -> Result<bool, Trouble> {
        match self.work_source.is_empty(&self.with.sources).await {
            Err(Trouble::Away(_)) => Ok(false),
            looked => looked,
        }
    }

    /// Says it once that the store is away, and once that it is back.
    fn is_away(&self, error: Option<&Trouble>) {
        if self.away.send_replace(error.is_some()) != error.is_some() {
            match error {
                Some(error) => say(&format!("{error}; it is asked again until it answers")),
                None if self.work_source.waits() => say("a node answers again"),
                None => say("the store answers again"),
            }
        }
    }

    /// The last result of a slot that claims nothing more.
    async fn hand_in(&self, mut finished: Option<Finished>) -> anyhow::Result<()> {
        let begun = clock::boot();
        while let Some(Finished { report, key, .. }) = &finished {
            match self.work_source.exchange(vec![report.clone()], None, Duration::ZERO).await {
                Ok(exchanged) => accepted(finished.take(), exchanged.reports.first()),
                Err(error @ Trouble::Away(_)) => {
                    self.is_away(Some(&error));
                    if clock::boot().since(begun) > LAST_WORDS {
                        // Not dismissed: its guard keeps trying.
                        anyhow::bail!(
                            "the result of task {key} is not reported yet ({error}): its guard goes on trying, and at the latest it is tried again"
                        );
                    }
                    sleep(ASK_AGAIN).await;
                }
                Err(error) => return Err(error.into_error()),
            }
        }
        Ok(())
    }

    /// Gives a task back as if it had never been claimed.
    async fn give_back(&self, hand: &ClaimedTask, child: Option<Child>) {
        let begun = clock::boot();
        loop {
            match self.work_source.give_back(&hand.claim).await {
                Ok(()) => break,
                Err(Trouble::Away(_)) if clock::boot().since(begun) < LAST_WORDS => {
                    sleep(ASK_AGAIN).await;
                }
                Err(error) => {
                    say(&format!(
                        "task {} could not be given back ({error}): its lease is left to run out",
                        hand.task.key
                    ));
                    break;
                }
            }
        }
        dismiss(child);
    }
}

/// What the store made of a result; with that the guard has nothing left to do.
fn accepted(finished: Option<Finished>, reported: Option<&Reported>) {
    let Some(Finished { key, child, .. }) = finished else { return };
    dismiss(child);
    match reported {
        Some(Reported::Ok) | None => {}
        Some(Reported::Stale) => {
            say(&format!("the result of task {key} was refused: its lease had ended"));
        }
        Some(Reported::Unknown) => {
            say(&format!(
                "the result of task {key} was refused: the store does not know this task"
            ));
        }
    }
}

/// Nothing is left to do for its guard.
fn dismiss(child: Option<Child>) {
    if let Some(child) = child {
        child.dismiss();
    }
}
