//! Which waiter asks next, and when: one task for each name that has a waiter at this node.
//!
//! When a lease becomes free, every node with waiters reads the first places of the line. The node at which the first one waits calls it,
//! and it asks the store. If nothing comes of that (its node is dead, or its program is gone and no node has noticed yet), the next one is
//! called after a short time. The store decides who has the lease; a wrong call costs one request to the store.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use tokio::time::sleep;

use super::LeaseDesk;
use super::take::may_take;
use crate::waiting::DeskError;
use soloist_domain::job::JobRecord;
use soloist_domain::name::{JobName, Waiter};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::feed::{Change, HeardOfLease, Seen};
use soloist_store::leases::{Acquired, Leases as _};
use soloist_store::line::{Line, Lines as _, Place};
use soloist_store::{Result, StoreError};

/// How many places are looked at.
const PLACES: usize = 32;
/// Who was called has asked by then, or the next one is called.
const PROMISE: Duration = Duration::from_millis(200);
/// Who did not ask when called is passed over for so long.
const PASSED_OVER: Duration = Duration::from_secs(5);
/// A lease of a program's own name is looked at this often, in case its release was not heard of.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A store that is away is asked again this often.
const AWAY: Duration = Duration::from_millis(250);
/// Added to the end of a lease, so that it is over at the store, too.
const BEYOND: Duration = Duration::from_millis(3);

/// Where programs wait at this node for one lease.
#[derive(Default)]
pub(super) struct Post {
    waiting: AtomicUsize,
    nudged: Notify,
    /// The store said that no program can have it before.
    not_before: parking_lot::Mutex<Option<Boot>>,
}

/// A waiter waits for as long as this exists.
pub(super) struct Seat {
    desk: LeaseDesk,
    name: JobName,
    post: Arc<Post>,
}

impl Seat {
    /// What the store answered to who sits here.
    pub(super) fn refused(&self, why: &Acquired) {
        let wait = match why {
            Acquired::NotYet { wait }
            | Acquired::Reserved { wait }
            | Acquired::Quarantined { wait } => *wait,
            _ => Duration::ZERO,
        };
        if !wait.is_zero() {
            *self.post.not_before.lock() = Some(clock::boot() + wait);
        }
        self.post.nudged.notify_one();
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut posts = self.desk.shared.posts.lock();
        if self.post.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            posts.remove(&self.name);
            self.post.nudged.notify_one();
        }
    }
}

impl LeaseDesk {
    /// A waiter for `name` is at this node from now on.
    pub(super) fn sit(&self, name: &JobName) -> Seat {
        let mut posts = self.shared.posts.lock();
        let post = posts.entry(name.clone()).or_insert_with(|| {
            let post = Arc::<Post>::default();
            tokio::spawn(usher(self.clone(), name.clone(), Arc::clone(&post)));
            post
        });
        post.waiting.fetch_add(1, Ordering::Relaxed);
        Seat { desk: self.clone(), name: name.clone(), post: Arc::clone(post) }
    }

    /// Whether anybody waits for it at this node; then the usher looks now.
    fn nudge(&self, name: &JobName) -> bool {
        let posts = self.shared.posts.lock();
        posts.get(name).inspect(|post| post.nudged.notify_one()).is_some()
    }

    /// A lease of its own name was given back at this node: calls the first who waits for it, wherever that is. Where nobody waits here, the
    /// other nodes hear of the release as this one does ([`listen`]), but for a cluster, where they hear only of the jobs that they follow.
    pub(super) async fn call_next(&self, name: &JobName) {
        let here = self.nudge(name);
        let called = async {
            let store = self.store()?;
            if !here && !store.is_sharded() {
                return Ok(());
            }
            let line = store.line(name, PLACES).await?;
            let first = line.kept().find_map(|place| place.waiter.clone());
            match first {
                Some(waiter) if !self.shared.room.calls(&waiter) => {
                    store.call_waiter(&waiter).await?;
                }
                _ => {}
            }
            Ok::<(), DeskError>(())
        };
        if let Err(error) = called.await {
            // Each node looks by itself soon.
            tracing::debug!(%name, %error, "the next program was not called");
        }
    }
}

/// Has the ushers of this node look when a lease was given back, at whichever node or by a command, until the room closes.
pub(super) async fn listen(desk: LeaseDesk) {
    let mut heard = desk.shared.feed.leases();
    let mut closing = desk.shared.room.closing();
    loop {
        let one = tokio::select! {
            one = heard.recv() => one,
            _ = closing.wait_for(|closing| *closing) => return,
        };
        match one {
            Ok(HeardOfLease::GivenBack { name, .. }) => drop(desk.nudge(&name)),
            Ok(HeardOfLease::Held { .. }) => {}
            Err(broadcast::error::RecvError::Lagged(_)) => {
                desk.shared.posts.lock().values().for_each(|post| post.nudged.notify_one());
            }
            Err(broadcast::error::RecvError::Closed) => return,
        }
    }
}

/// What an usher remembers.
#[derive(Default)]
struct Memory {
    /// Who was called last, and when.
    called: Option<(Waiter, Boot)>,
    /// Who did not ask when called, by incarnation of the node, until when.
    silent: HashMap<String, Boot>,
}

/// Calls the first waiter whenever the lease may be free, until no waiter is left here.
async fn usher(desk: LeaseDesk, name: JobName, post: Arc<Post>) {
    let mut changes = desk.shared.feed.subscribe();
    let mut closing = desk.shared.room.closing();
    let mut memory = Memory::default();
    while post.waiting.load(Ordering::Relaxed) > 0 {
        let pause = match memory.round(&desk, &name, &post).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::debug!(%name, %error, "the line is not known at this moment");
                AWAY
            }
        };
        let over = sleep(pause);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => break,
                () = post.nudged.notified() => break,
                change = changes.recv() => match change {
                    Ok(Change::Job(changed)) if changed == name => {
                        *post.not_before.lock() = None;
                        break;
                    }
                    Ok(Change::Resynced) | Err(broadcast::error::RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                _ = closing.wait_for(|closing| *closing) => return,
            }
        }
    }
}

/// Whether a lease is free.
enum Now {
    /// Not for so long, unless something happens.
    In(Duration),
    /// For any waiter that asks.
    Free,
}

impl Memory {
    /// Calls the waiter that is to ask now; answers when to look again.
    async fn round(
        &mut self,
        desk: &LeaseDesk,
        name: &JobName,
        post: &Post,
    ) -> std::result::Result<Duration, DeskError> {
        let store = desk.store()?;
        let now = clock::boot();
        let barred = post.not_before.lock().map(|until| until.since(now));
        let barred = barred.filter(|wait| !wait.is_zero());
        let free = match (barred, desk.seen(name).filter(|_| desk.is_job(name))) {
            (Some(wait), _) => Now::In(wait),
            (None, Some(seen)) => of_job(&seen, now),
            (None, None) => of_program(desk, name).await?,
        };
        if let Now::In(wait) = free {
            self.called = None;
            return Ok(wait.min(LOOK_AGAIN) + BEYOND);
        }
        let line = store.line(name, PLACES).await?;
        for lapsed in line.lapsed() {
            store.leave_line(name, &lapsed.owner, Some(lapsed.until)).await?;
        }
        self.judge(desk, &line, now);
        let moving = desk.moving(name, line.now.floor());
        let first =
            line.kept().find(|place| may_take(moving.as_ref(), place) && self.answers(place));
        let Some(waiter) = first.and_then(|place| place.waiter.clone()) else {
            return Ok(LOOK_AGAIN);
        };
        if self.called.as_ref().is_none_or(|(called, _)| *called != waiter) {
            self.called = Some((waiter.clone(), now));
            // One that waits at another node is called there.
            let _elsewhere = !desk.shared.room.calls(&waiter);
        }
        Ok(PROMISE)
    }

    /// A waiter that was called and did not ask is passed over for a while. At another node, that node may be dead, with all its waiters.
    fn judge(&mut self, desk: &LeaseDesk, line: &Line, now: Boot) {
        self.silent.retain(|_, until| *until > now);
        let Some((called, at)) = &self.called else { return };
        let waits = line.places.iter().any(|place| place.waiter.as_ref() == Some(called));
        let room = &desk.shared.room;
        if !waits || now.since(*at) < PROMISE || room.calls(called) {
            return;
        }
        let own = called.incarnation() == room.incarnation();
        let silent = if own { &called.0 } else { called.incarnation() };
        self.silent.insert(silent.to_owned(), now + PASSED_OVER);
        self.called = None;
    }

    fn answers(&self, place: &Place) -> bool {
        let known = |waiter: &Waiter| {
            self.silent.contains_key(&waiter.0) || self.silent.contains_key(waiter.incarnation())
        };
        place.waiter.as_ref().is_some_and(|waiter| !known(waiter))
    }
}

/// Whether a program can take a job, by the newest state that was read.
fn of_job(seen: &Seen, now: Boot) -> Now {
    let record: &JobRecord = &seen.record;
    if let Some(lease) = &record.lease {
        let left = (seen.confirmed + lease.expires_in).since(now);
        return if left.is_zero() { Now::Free } else { Now::In(left) };
    }
    if !record.wanted() || record.given_up {
        return Now::In(Duration::MAX);
    }
    let store_now: StoreTime = seen.store_now(now);
    let due = record.next.map_or(Duration::ZERO, |next| next.at.since(store_now));
    let wait = due.max(seen.doubted_until.since(now));
    if wait.is_zero() { Now::Free } else { Now::In(wait) }
}

/// Whether a lease of a program's own name is free, by asking the store.
async fn of_program(desk: &LeaseDesk, name: &JobName) -> std::result::Result<Now, DeskError> {
    let observed: Result<_> = desk.store()?.observe(std::slice::from_ref(name)).await;
    let first = observed?
        .into_iter()
        .next()
        .ok_or_else(|| StoreError::Corrupt(format!("the store did not answer for {name}")))?;
    Ok(first.lease_left.map_or(Now::Free, Now::In))
}
