//! Leases for programs at a node: asked for, waited for, kept and given back over HTTP.
//!
//! The holder is a thread or service in a user's own program; no node can stop it. So this room grants, renews and tells it to stop, and
//! the token lets every sink refuse an older one. The store decides every grant by the same transitions as for a job with a command
//! (`domain/transition`); the name of a program takes the place of a node's name.
//!
//! | file | what |
//! | --- | --- |
//! | `secret` | what a holder sends, and what any node reads from it |
//! | `take` | the request for a lease: one call, or a place in the line |
//! | `usher` | which waiter asks next, and when |
//! | `keep` | renewals, and when a holder must stop |
//! | `end` | releases, and the runs of holders that fell silent |
//! | `watched` | programs on a life line: whose a secret is, what a death ends |
//! | `void` | records that say nothing any more, removed once a day |
//! | `forgotten` | which leases this node saw, and whose names it keeps back when the store forgot them |
//!
//! Nothing is decided by what is kept here and not in the store: a holder may renew at any node.

mod end;
mod forgotten;
mod keep;
pub mod secret;
mod take;
mod usher;
mod void;
mod watched;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, watch};

pub use self::end::{Ending, How};
use self::forgotten::Sightings;
pub use self::keep::{Holding, Renewal, Renewed, Stop};
pub use self::secret::{Kind, Secret, account, seal};
use self::take::Wish;
pub use self::take::{Answer, Ask};
use self::usher::Post;
pub use self::watched::Death;
use crate::waiting::{DeskError, Newest, WaitingRoom};
use soloist_config::{Current, JobConfig};
use soloist_domain::job::{JobRecord, LeaseRecord};
use soloist_domain::lease::{Timing, Token};
use soloist_domain::name::{JobName, NodeName, Owner};
use soloist_domain::time::StoreTime;
use soloist_store::feed::{Feed, Seen};
use soloist_store::jobs::Jobs as _;
pub use soloist_store::leases::Released;
use soloist_store::nodes::Watched;
use soloist_store::{Store, StoreError};

/// The shortest lease of a program's own name.
pub const SHORTEST: Duration = Duration::from_secs(1);
/// The longest that `lease_ttl_max` can allow.
pub const LONGEST: Duration = Duration::from_secs(600);
/// Unless the program says otherwise.
pub const DEFAULT: Duration = Duration::from_secs(10);

/// So many ask the store for the first time at once: a crowd that arrives must not stand before those who renew.
const ARRIVALS: usize = 16;
/// The highest tokens of so many names are remembered.
const NAMES_REMEMBERED: usize = 20_000;

/// Where programs ask for leases at a node; cheap to clone.
#[derive(Clone)]
pub struct LeaseDesk {
    shared: Arc<Shared>,
}

struct Shared {
    room: WaitingRoom,
    feed: Feed,
    config: Current,
    newest: Newest<Wish>,
    /// Held by each request that asks for the first time.
    arrivals: Semaphore,
    /// Lines with a waiter at this node.
    posts: Mutex<HashMap<JobName, Arc<Post>>>,
    /// The highest token that this node has seen of each name.
    seen: Mutex<HashMap<JobName, Token>>,
    /// The leases of programs that this node saw.
    sightings: Mutex<Sightings>,
    watched: watch::Sender<Option<Watched>>,
}

/// A name, and what a lease under it is.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Its name.
    pub name: JobName,
    /// The job with `runner = "external"` of that name.
    pub job: Option<Arc<JobConfig>>,
    /// The times that follow from the length of the lease.
    pub timing: Timing,
}

impl Terms {
    /// What it is of.
    #[must_use]
    pub fn kind(&self) -> Kind {
        if self.job.is_some() { Kind::Job } else { Kind::Program }
    }

    /// A lease on these terms that was granted or extended just now.
    fn lease(&self, owner: &Owner, holder: &NodeName, token: Token) -> LeaseRecord {
        let ttl = self.timing.ttl;
        let (owner, node) = (owner.clone(), holder.clone());
        LeaseRecord { node, owner, token, since: StoreTime(0), expires_in: ttl, ttl }
    }

    /// The same, of a lease that was granted with `secret`. What that says of itself counts only where no configuration does: a name that has
    /// become a job is one.
    fn kind_of(&self, secret: &Secret) -> Kind {
        if self.job.is_some() { Kind::Job } else { secret.kind }
    }
}

impl LeaseDesk {
    /// Opens a desk in `room`, until that closes.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(room: WaitingRoom, feed: Feed, config: Current) -> Self {
        let shared = Shared {
            room,
            feed,
            config,
            newest: Newest::default(),
            arrivals: Semaphore::new(ARRIVALS),
            posts: Mutex::default(),
            seen: Mutex::default(),
            sightings: Mutex::default(),
            watched: watch::Sender::default(),
        };
        let desk = Self { shared: Arc::new(shared) };
        let room = &desk.shared.room;
        room.spawn(end::close_silent(desk.clone()));
        room.spawn(forgotten::watch(desk.clone()));
        room.spawn(usher::listen(desk.clone()));
        room.spawn(void::forget(desk.clone()));
        desk
    }

    fn store(&self) -> Result<&Store, DeskError> {
        self.shared.room.store()
    }

    /// The newest picture of a job that is followed here.
    fn seen(&self, name: &JobName) -> Option<Seen> {
        self.shared.feed.job(name)
    }

    /// The records of any names, as the store has them now.
    async fn records(&self, names: &[JobName]) -> Result<Vec<JobRecord>, DeskError> {
        Ok(self.store()?.snapshot(names).await?.jobs)
    }

    /// The same of one, with the store's clock.
    async fn record(&self, name: &JobName) -> Result<(JobRecord, StoreTime), DeskError> {
        let snapshot = self.store()?.snapshot(std::slice::from_ref(name)).await?;
        let record = snapshot.jobs.into_iter().next();
        let record = record
            .ok_or_else(|| StoreError::Corrupt(format!("the store did not answer for {name}")))?;
        Ok((record, snapshot.at))
    }

    fn sightings(&self) -> MutexGuard<'_, Sightings> {
        self.shared.sightings.lock()
    }

    /// Whether `account` ([`secret::account`]) has so many leases of its own names, not counting `name`: as far as this node heard.
    pub fn is_full(&self, account: &str, most: usize, name: &JobName) -> bool {
        self.sightings().has(account, most, name)
    }

    fn highest(&self, name: &JobName) -> Token {
        let known = self.shared.seen.lock().get(name).copied().unwrap_or_default();
        let followed = self.seen(name).map(|seen| seen.record.token).unwrap_or_default();
        known.max(followed)
    }

    fn saw(&self, name: &JobName, token: Token) {
        let mut seen = self.shared.seen.lock();
        if seen.len() >= NAMES_REMEMBERED && !seen.contains_key(name) {
            // The store knows them, too; this is for the case that it forgets.
            seen.clear();
        }
        let known = seen.entry(name.clone()).or_default();
        *known = token.max(*known);
    }
}
