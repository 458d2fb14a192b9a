//! The two steps of a grant: the node first, then the record. What is begun and not finished is taken back, whatever became of its caller.
//!
//! Between the steps the node is *half* granted. This process never shows it to anybody: the law answers "the same owner asks again" with
//! the lease that it sees. Other processes see a lease of another owner, which is true enough.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Locks;
use super::link::Session;
use super::locks::lease_of;
use crate::clock;
use crate::domain::name::JobName;
use crate::store::Result;

/// Between two attempts to take something back.
const PAUSE: Duration = Duration::from_millis(100);
/// Half grants of one job that were taken back, and are remembered.
const REMEMBERED: usize = 16;

/// The nodes of one job that this process made, or may have made, and that its record does not show.
///
/// A reader asks a server for a node, and here whether it is half granted, later. Meanwhile it may have been taken back. So the texts of these
/// stay; each is of one grant only.
#[derive(Default)]
pub(super) struct Halves {
    under_way: Vec<String>,
    taken_back: VecDeque<String>,
}

impl Halves {
    fn has(&self, text: &str) -> bool {
        self.under_way.iter().chain(&self.taken_back).any(|half| half == text)
    }

    fn is_not_made(&mut self, text: &str) {
        self.under_way.retain(|half| half != text);
    }

    fn is_granted(&mut self, text: &str) {
        self.is_not_made(text);
        self.taken_back.retain(|half| half != text);
    }

    fn is_taken_back(&mut self, text: &str) {
        self.is_granted(text);
        self.taken_back.push_back(text.to_owned());
        if self.taken_back.len() > REMEMBERED {
            self.taken_back.pop_front();
        }
    }
}

/// A grant under way.
pub(super) struct Step {
    locks: Arc<Locks>,
    job: JobName,
    text: String,
    session: Arc<Session>,
    term: Option<i32>,
    done: bool,
}

impl Step {
    /// To be called before the node is asked for.
    pub(super) fn begin(
        locks: &Arc<Locks>,
        job: &JobName,
        text: &str,
        session: &Arc<Session>,
    ) -> Self {
        locks.with_halves(job, |halves| halves.under_way.push(text.to_owned()));
        let (locks, session) = (Arc::clone(locks), Arc::clone(session));
        let (job, text) = (job.clone(), text.to_owned());
        Self { locks, job, text, session, term: None, done: false }
    }

    /// The node is there.
    pub(super) fn made(mut self, term: i32) -> Self {
        self.term = Some(term);
        self
    }

    /// The node was certainly not made.
    pub(super) fn nothing(mut self) {
        self.end(Halves::is_not_made);
    }

    /// The record shows it: the lease is granted.
    pub(super) fn finish(mut self, text: &str, ttl: Duration) {
        if let Some(term) = self.term {
            self.locks.note(&self.job, &self.session, (term, 0), text, ttl);
        }
        self.end(Halves::is_granted);
    }

    /// Whether its session is still there, now that the record shows it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`](crate::store::StoreError::Unavailable): it is taken back.
    pub(super) async fn confirm(&self) -> Result<()> {
        self.locks.confirm(&self.session).await
    }

    /// Takes it back. When that fails, it goes on by itself.
    pub(super) async fn undo(mut self) -> Result<()> {
        if let Some(term) = self.term {
            self.locks.delete(&self.session.client, &self.job, term).await?;
        }
        self.end(Halves::is_taken_back);
        Ok(())
    }

    fn end(&mut self, how: fn(&mut Halves, &str)) {
        self.done = true;
        self.locks.with_halves(&self.job, |halves| how(halves, &self.text));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let (locks, session) = (Arc::clone(&self.locks), Arc::clone(&self.session));
        let (job, text) = (self.job.clone(), std::mem::take(&mut self.text));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { locks.take_back(&session, &job, &text).await });
        }
    }
}

impl Locks {
    /// Whether that node is one that this process has made and not granted.
    pub(super) fn is_half(&self, job: &str, text: &str) -> bool {
        self.lock(&self.halves).get(job).is_some_and(|halves| halves.has(text))
    }

    /// A leader that stood still first answers what waited for it, and then ends the sessions of which it has not heard meanwhile: a node that
    /// was just made may end with them. An answer to what is asked later says that this session was none of them.
    pub(super) async fn confirm(&self, session: &Session) -> Result<()> {
        self.ensemble.bounded(session.client.sync("/")).await
    }

    fn with_halves(&self, job: &JobName, change: impl FnOnce(&mut Halves)) {
        change(self.lock(&self.halves).entry(job.to_string()).or_default());
    }

    /// Deletes a node of which it is not known whether it was made. It is asked in the session that asked for it: so it is asked after that.
    /// When the session is over, its node ends without us.
    async fn take_back(&self, session: &Arc<Session>, job: &JobName, text: &str) {
        let lease = lease_of(job);
        while !session.is_over() {
            // A server that lags would not show what the leader has accepted already.
            let (sync, read) = (session.client.sync("/"), session.client.get_data(&lease));
            let found = match self.ensemble.within(sync).await {
                Ok(()) => self.ensemble.within(read).await,
                Err(error) => Err(error),
            };
            let gone = match found {
                // No other node has this text, and no other node can stand there while the session lives.
                Ok((data, _)) if data == text.as_bytes() => {
                    let delete = session.client.delete(&lease, Some(0));
                    self.ensemble.within(delete).await.is_ok()
                }
                Ok(_) | Err(zookeeper_client::Error::NoNode) => true,
                Err(_) => false,
            };
            if gone {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.with_halves(job, |halves| halves.is_taken_back(text));
    }

    /// Ends a lease of this process that is not renewed.
    pub(super) fn attend(self: &Arc<Self>, job: JobName, term: i32) {
        let locks = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let Some(here) = locks.upgrade() else { return };
                let mine = here.lock(&here.mine).get(&job).cloned();
                let Some(mine) = mine.filter(|mine| mine.term == term) else { return };
                let left = mine.until.since(clock::boot());
                if !left.is_zero() {
                    drop(here);
                    tokio::time::sleep(left).await;
                    continue;
                }
                // It is not extended meanwhile.
                let _turn = here.turn(&job).await;
                if here.is_unrenewed(&job, term) {
                    here.delete_surely(&mine.session, &job, term).await;
                    return;
                }
            }
        });
    }

    /// Ends the lease of that term in this session after its length, unless this process knows by then that it has it: whoever asked for the node
    /// may never hear that it was made.
    pub(super) fn end_unheard(
        self: &Arc<Self>,
        job: &JobName,
        session: &Arc<Session>,
        term: i32,
        ttl: Duration,
    ) {
        let (locks, session, job) = (Arc::downgrade(self), Arc::clone(session), job.clone());
        tokio::spawn(async move {
            tokio::time::sleep(ttl).await;
            let Some(here) = locks.upgrade() else { return };
            if here.lock(&here.mine).get(&job).is_none_or(|mine| mine.term != term) {
                here.delete_surely(&session, &job, term).await;
            }
        });
    }

    /// Whether the time of the lease is over; then this process has it no more.
    fn is_unrenewed(&self, job: &JobName, term: i32) -> bool {
        let mut all = self.lock(&self.mine);
        let over = all.get(job).is_some_and(|mine| mine.is_over(term));
        if over {
            all.remove(job);
        }
        over
    }

    /// Deletes the node of that term, unless its session ends before.
    async fn delete_surely(&self, session: &Session, job: &JobName, term: i32) {
        while !session.is_over() {
            if self.delete(&session.client, job, term).await.is_ok() {
                return;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Deletes the node of a lease that was given back, for as long as that may be in anybody's way.
    pub(super) fn go_on_removing(self: &Arc<Self>, job: JobName, text: String) {
        let locks = Arc::clone(self);
        tokio::spawn(async move {
            for _ in 0..100 {
                let gone = match locks.node(&job).await {
                    Ok(Some(node)) if is_same(&node.text, &text) => {
                        locks.remove(&job, &node).await.is_ok()
                    }
                    Ok(_) => true,
                    Err(_) => false,
                };
                if gone {
                    return;
                }
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}

/// Whether both are of one lease. They begin with its token, and that is of one grant only.
fn is_same(one: &str, other: &str) -> bool {
    one.split(',').next() == other.split(',').next()
}
