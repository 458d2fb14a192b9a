//! Dispatch: sources, their tasks, and who has claimed them. A task is delivered at least once, and at most one result of it is accepted.
//!
//! [`soloist_domain::dispatch`] decides; this room makes each decision and its consequences one atomic step, on the store's clock. A task is always
//! in exactly one state, a leased one in exactly one claim. Only the token of the current lease counts: a collector that lost the lease changes
//! nothing. [`Dispatch::pump`] does what happens without a client; any node may call it at any time. The step in which something becomes ready also
//! decides which waiter is woken.

use std::time::Duration;

use async_trait::async_trait;

use super::Result;
pub use soloist_domain::dispatch::{
    BATCH, ClaimAsk, ClaimId, ClaimOwner, DONE_BEYOND, DONE_KEPT, Exchange, Extended, HISTORY_KEPT,
    LONGEST_ERROR, LONGEST_KEY, LONGEST_PAYLOAD, NewTask, Past, PastEvent, Report, Reported,
    TaskId,
};
use soloist_domain::dispatch::{Reason, Rules, Shut, TaskState};
use soloist_domain::lease::Token;
pub use soloist_domain::name::Waiter;
use soloist_domain::name::{CollectorName, SourceName};
use soloist_domain::time::Stamp;

/// Most tasks in one [`Dispatch::put_tasks`].
pub const TASKS_AT_ONCE: usize = 1_000;

/// A task in a collector's hands.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Handed {
    pub id: TaskId,
    pub key: String,
    pub source: SourceName,
    /// JSON text.
    pub payload: String,
    pub token: Token,
    /// From 1.
    pub attempt: u32,
}

/// The answer to a [`ClaimAsk`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimed {
    /// Yours until then (the earliest end, should the sources' leases differ).
    Granted {
        /// To extend and to return.
        claim: ClaimId,
        /// The grant plus the source's lease.
        lease_until: Stamp,
        /// At least one, unless all of a repeated claim are finished already.
        tasks: Vec<Handed>,
    },
    /// Nothing now.
    Nothing {
        /// Of the source that can be served the soonest; [`Reason::Empty`] only when no source has a ready task.
        reason: Reason,
        /// When asking again may help, as far as is known.
        next_at: Option<Stamp>,
    },
}

/// The answer to an [`Exchange`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchanged {
    /// One for each report, in order.
    pub reports: Vec<Reported>,
    /// If something was asked.
    pub claimed: Option<Claimed>,
}

/// A source as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceView {
    /// Its name.
    pub name: SourceName,
    /// Its rules.
    pub rules: Rules,
    /// No collector is served before this (in the past when it is not blocked).
    pub blocked_until: Stamp,
    /// Tasks in each state. `ready + due + in_flight + dead` are here now; `done` counts all that were accepted as
    /// done for good (a recrawl is due again instead).
    pub ready: u64,
    /// See `ready`.
    pub due: u64,
    /// See `ready`.
    pub in_flight: u64,
    /// See `ready`.
    pub dead: u64,
    /// See `ready`.
    pub done: u64,
    /// Since the source exists: starts, accepted `done` (recrawls too), reported for another try, leases run out.
    pub started: u64,
    /// See `started`.
    pub finished: u64,
    /// See `started`.
    pub retried: u64,
    /// See `started`.
    pub expired: u64,
    /// Why no collector is served from it now; `None`: it can be served.
    pub shut: Option<Shut>,
    /// The store's clock at this reading.
    pub now: Stamp,
}

/// What goes with a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Tasks that are not done.
    pub tasks: u64,
    /// Of them, in a collector's hands.
    pub in_flight: u64,
}

/// The answer to [`Sources::remove_source`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovedSource {
    /// It is gone, and that with it.
    Done(Lost),
    /// Nothing was changed: that would be lost.
    Kept(Lost),
}

/// Which tasks [`Dispatch::tasks`] lists.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// Of this source; `None`: of all.
    pub source: Option<SourceName>,
    /// In this state; `None`: in any.
    pub state: Option<TaskState>,
}

/// A task as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in NewTask and Handed")]
pub struct TaskView {
    pub id: TaskId,
    pub key: String,
    pub source: SourceName,
    pub payload: String,
    pub priority: u8,
    pub state: TaskState,
    /// Tries so far, the present one counted.
    pub attempt: u32,
    /// Of the newest lease; 0 before the first.
    pub token: Token,
    pub every: Option<Duration>,
    pub created: Stamp,
    /// Of the newest change of state.
    pub changed: Stamp,
    /// When it becomes ready, if it is due.
    pub at: Option<Stamp>,
    /// Who holds it, under which claim, until when, if it is leased.
    pub held: Option<(CollectorName, ClaimId, Stamp)>,
    /// The newest error that was reported; none once it is done or revived.
    pub error: Option<String>,
    /// The newest [`HISTORY_KEPT`], oldest first.
    pub history: Vec<Past>,
}

/// A collector as the store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectorView {
    /// Its name.
    pub name: CollectorName,
    /// When it last asked for anything, to the second.
    pub seen: Stamp,
    /// What it holds, earliest end first: id, key, source and end; at most [`BATCH`].
    pub holds: Vec<(TaskId, String, SourceName, Stamp)>,
    /// How many it holds.
    pub in_flight: u64,
}

/// The answer to [`Dispatch::pump`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pumped {
    /// The store's clock.
    pub now: Stamp,
    /// When there may be something to do next, as far as is known now; `None`: not before another call changes something.
    pub next: Option<Stamp>,
    /// Leases that ran out and were acted on by this call.
    pub expired: u64,
    /// More is overdue than one call does: call again at once.
    pub more: bool,
}

/// Transitions and readings of sources.
#[async_trait]
pub trait Sources: Send + Sync {
    /// Makes a source, or changes its rules; tasks, starts and blocks are kept. The rules were checked.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`] (as for every call of this trait).
    async fn put_source(&self, source: &SourceName, rules: &Rules) -> Result<SourceView>;

    /// Serves no collector from it until it is resumed, or serves again; all else of its rules stays.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn pause_source(&self, source: &SourceName, paused: bool) -> Result<SourceView>;

    /// Serves no collector from it for so long from now; zero lifts a block.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn block_source(&self, source: &SourceName, lasting: Duration) -> Result<SourceView>;

    /// Removes a source with all its tasks, also those that are remembered as done; who waits for it is woken, and finds it
    /// gone. Without `force` only one that has no task that is not done. Many tasks go in several steps; from the first on
    /// the source is paused, and should this end before the last, it stays so, with what is left.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn remove_source(&self, source: &SourceName, force: bool) -> Result<RemovedSource>;

    /// One source, or all by name.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] for the one, [`super::StoreError::Unavailable`].
    async fn sources(&self, only: Option<&SourceName>) -> Result<Vec<SourceView>>;

    /// Every collector seen within a day, by name.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn collectors(&self) -> Result<Vec<CollectorView>>;
}

/// Transitions and readings of tasks.
#[async_trait]
pub trait Dispatch: Send + Sync {
    /// Puts tasks; `true` for each that was new. One that exists is left as it is, whatever its state.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when a source is missing: then none was put. [`super::StoreError::Unavailable`]:
    /// unknown; putting again is harmless.
    async fn put_tasks(&self, tasks: &[NewTask]) -> Result<Vec<bool>>;

    /// Takes results, then grants what was asked, in one step. Before a grant, leases that have run out are acted on.
    ///
    /// Sources are served in turn, at most [`soloist_domain::dispatch::share`] tasks at a time; each task gets
    /// a new token (`max(previous + 1, store_ms * 1024)`, growing within its source) and one more attempt.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] when a source named by the claim is missing: then nothing was done.
    /// [`super::StoreError::Unavailable`]: unknown; repeat it with the same `request`.
    async fn exchange(&self, ask: &Exchange) -> Result<Exchanged>;

    /// Extends what is still held of a claim, each from now for as long as it was granted.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`] for an unknown or finished claim, or another's when `only` is given;
    /// [`super::StoreError::Unavailable`].
    async fn extend(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<Extended>;

    /// Gives what is still held of a claim back at once, unworked: the attempt does not count. The request that it
    /// answered is forgotten. Returns how many; an unknown claim is no error.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn give_back(&self, claim: &ClaimId, only: Option<&ClaimOwner>) -> Result<u64>;

    /// As [`Self::give_back`], for a claim whose answer never left the node: unless the same request was answered
    /// again meanwhile, perhaps by another node, because then a collector has it in hand.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: its leases end by themselves.
    async fn give_back_unseen_claim(&self, claim: &ClaimId) -> Result<u64>;

    /// A waiter waits no more.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`]: harmless, it is forgotten when its time is over.
    async fn leave_queues(&self, waiter: &Waiter, sources: &[SourceName]) -> Result<()>;

    /// Does what is due: acts on leases that ran out, makes due tasks ready, opens sources whose gap or block is over,
    /// and wakes as many waiters as can be served. Calling it twice does no more than once.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn pump(&self) -> Result<Pumped>;

    /// One task; `None` when it is unknown (or done so long ago that it was forgotten).
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn task(&self, id: &TaskId) -> Result<Option<TaskView>>;

    /// Dead tasks, newest first, of one source or of all, without the first `skip`.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn dead(
        &self,
        source: Option<&SourceName>,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<TaskView>>;

    /// Tasks by their last change, newest first, of one instant by id; only those behind `before`, which is the change and id of
    /// the last one of the page before. Of very many the store may look at some: Redis at 10,000.
    ///
    /// # Errors
    /// [`super::StoreError::Unavailable`].
    async fn tasks(
        &self,
        filter: &TaskFilter,
        before: Option<&(Stamp, TaskId)>,
        limit: usize,
    ) -> Result<Vec<TaskView>>;

    /// Removes a task and its history; its key may be put again. Without `force` not one that is in a collector's hands;
    /// then `false`.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn remove_task(&self, id: &TaskId, force: bool) -> Result<bool>;

    /// Makes a dead task ready again, its attempts counted from zero; one that is not dead is left as it is.
    ///
    /// # Errors
    /// [`super::StoreError::NotFound`], [`super::StoreError::Unavailable`].
    async fn revive(&self, id: &TaskId) -> Result<TaskView>;
}
