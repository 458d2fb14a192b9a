//! The sessions of this process: one for each length of lease, and one for everything else.
//!
//! A session is the life of the leases that are made in it, and it has one length. So a lease is made in the session of its own
//! length, which is asked for with a tick more: a follower tells the leader of the sessions that it heard of every half tick, and may
//! die before it does. Trust counts the length of the lease and no tick, so it ends before the session can.
//!
//! A session that this process leaves is never closed: its end would free leases under which scripts may still run.
//!
//! An ensemble that was emptied knows no session of before. So a session that lives is a proof that it was not emptied since that session began,
//! and sessions are numbered: what was read of the ensemble before a session began is no word about the one that the session is in.
//!
//! A request of the driver is queued whole by the call that makes it. A caller that stops waiting leaves nothing half done; what was queued may
//! still be carried out, before everything that the same session is asked later.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use zookeeper_client::{Acls, Client, CreateMode, Error, MultiWriteError};

use crate::clock;
use crate::domain::ensemble::Ensemble as Place;
use crate::store::{Result, StoreError};

/// Of the session that holds nothing.
const LOOKING: Duration = Duration::from_secs(6);
/// Shorter than any ensemble grants, and long enough to connect.
const SHORTEST: Duration = Duration::from_millis(100);
/// A server that says nothing for so long is left, whatever the session would allow.
const SILENCE: Duration = Duration::from_secs(1);

/// A session.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) id: i64,
    /// As the ensemble grants it.
    pub(super) timeout: Duration,
    /// The how manieth of this process it is.
    pub(super) nth: u64,
}

impl Session {
    /// Nothing can be asked in it any more. The ensemble may still keep its nodes for a while.
    pub(super) fn is_over(&self) -> bool {
        self.client.state().is_terminated()
    }
}

/// When something was read.
#[derive(Clone)]
pub(super) struct Reading {
    /// In which session.
    pub(super) looking: Arc<Session>,
    /// How many had begun before.
    begun: u64,
}

impl Reading {
    /// Whether it was read after this session began: then it is of the ensemble that the session is in.
    pub(super) fn is_of(&self, session: &Session) -> bool {
        session.nth <= self.begun
    }
}

type Slot = Arc<tokio::sync::Mutex<Option<Arc<Session>>>>;

/// An ensemble, and our sessions there.
pub(super) struct Ensemble {
    pub(super) place: Place,
    pub(super) timeout: Duration,
    /// By the length of their leases; zero: of the one that holds nothing.
    sessions: Mutex<HashMap<Duration, Slot>>,
    /// How many have begun.
    begun: AtomicU64,
    /// The shortest session that it grants.
    shortest: OnceCell<Duration>,
}

impl Ensemble {
    pub(super) fn new(place: Place, timeout: Duration) -> Self {
        let (sessions, begun) = (Mutex::default(), AtomicU64::new(0));
        Self { place, timeout, sessions, begun, shortest: OnceCell::new() }
    }

    /// Begins to read something, in the session that holds nothing.
    pub(super) async fn reading(&self) -> Result<Reading> {
        let looking = self.looking().await?;
        let begun = self.begun.load(Ordering::SeqCst);
        Ok(Reading { looking, begun })
    }

    /// Who may do what with our nodes.
    pub(super) fn acls(&self) -> Acls<'static> {
        if self.place.login.is_some() { Acls::creator_all() } else { Acls::anyone_all() }
    }

    /// The session that holds nothing.
    pub(super) async fn looking(&self) -> Result<Arc<Session>> {
        self.session_for(Duration::ZERO, LOOKING).await
    }

    /// The session for leases of this length.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`]: the ensemble grants none that is long enough. [`StoreError::Unavailable`].
    pub(super) async fn session(&self, ttl: Duration) -> Result<Arc<Session>> {
        let tick = self.shortest().await? / 2;
        let asked = ttl + tick;
        let session = self.session_for(ttl, asked).await?;
        if session.timeout < asked {
            return Err(StoreError::Unsupported(format!(
                "ZooKeeper at {}: a lease of {ttl:?} needs a session of {ttl:?} + a tick of {tick:?} = {asked:?}, but the longest that it grants is {:?}: raise maxSessionTimeout in zoo.cfg to {} on every server, or choose a shorter lease",
                self.place.name(),
                session.timeout,
                asked.as_millis(),
            )));
        }
        Ok(session)
    }

    /// The shortest session that the ensemble grants: two ticks, unless it was told otherwise.
    pub(super) async fn shortest(&self) -> Result<Duration> {
        let ask = self.shortest.get_or_try_init(|| async {
            let session = self.connect(SHORTEST).await?;
            Ok::<_, StoreError>(session.timeout)
        });
        ask.await.copied()
    }

    async fn session_for(&self, key: Duration, asked: Duration) -> Result<Arc<Session>> {
        let slot = {
            let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(sessions.entry(key).or_default())
        };
        let mut slot = slot.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.is_over()) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.connect(asked).await?);
        *slot = Some(Arc::clone(&session));
        Ok(session)
    }

    async fn connect(&self, asked: Duration) -> Result<Session> {
        self.connect_to(&self.place.chroot, asked).await
    }

    /// The driver gives up when a session of this length could not be begun within it: then it is tried again.
    async fn connect_to(&self, chroot: &str, asked: Duration) -> Result<Session> {
        let until = clock::boot() + self.timeout;
        loop {
            match self.try_to_connect(chroot, asked).await {
                Err(Error::Timeout) if clock::boot() < until => {}
                outcome => return outcome.map_err(|error| self.told(&error)),
            }
        }
    }

    async fn try_to_connect(
        &self,
        chroot: &str,
        asked: Duration,
    ) -> std::result::Result<Session, Error> {
        let silence = SILENCE.min(asked / 4).max(self.timeout.min(SILENCE) / 5);
        let mut connector = Client::connector()
            .with_session_timeout(asked)
            .with_connection_timeout(silence)
            .with_detached();
        if let Some(login) = &self.place.login {
            connector = connector.with_auth("digest", login.as_bytes());
        }
        let servers = format!("{}{chroot}", self.place.servers.join(","));
        let client = self.within(connector.connect(&servers)).await?;
        let (id, timeout) = (client.session_id().0, client.session_timeout());
        let nth = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(Session { client, id, timeout, nth })
    }

    /// Makes the chroot, if it is not there; or says that it is not.
    pub(super) async fn reach(&self, make: bool) -> Result<()> {
        let looking = self.looking().await?;
        if self.bounded(looking.client.check_stat("/")).await?.is_some() {
            return Ok(());
        }
        if !make {
            return Err(StoreError::Absent(format!("ZooKeeper, {}", self.place.name())));
        }
        let root = self.connect_to("", LOOKING).await?;
        let options = CreateMode::Persistent.with_acls(self.acls());
        self.bounded(root.client.mkdir(&self.place.chroot, &options)).await
    }

    /// Makes the chroot and the directories below it, as far as they are not there.
    pub(super) async fn make(&self, directories: &[&str], make: bool) -> Result<()> {
        self.reach(make).await?;
        self.directories(&self.looking().await?.client, directories).await
    }

    async fn directories(&self, client: &Client, names: &[&str]) -> Result<()> {
        let options = CreateMode::Persistent.with_acls(self.acls());
        for name in names {
            match self.within(client.create(name, b"", &options)).await {
                Ok(_) | Err(Error::NodeExists) => {}
                Err(error) => return Err(self.told(&error)),
            }
        }
        Ok(())
    }

    /// No longer than one call may take.
    pub(super) async fn within<T, X: From<Error>>(
        &self,
        call: impl Future<Output = std::result::Result<T, X>>,
    ) -> std::result::Result<T, X> {
        tokio::time::timeout(self.timeout, call)
            .await
            .unwrap_or_else(|_| Err(Error::Timeout.into()))
    }

    /// The same, with the error in our words.
    pub(super) async fn bounded<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, Error>>,
    ) -> Result<T> {
        self.within(call).await.map_err(|error| self.told(&error))
    }

    /// What an error means for the caller.
    pub(super) fn told(&self, error: &Error) -> StoreError {
        let name = self.place.name();
        match error {
            Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => {
                StoreError::Unsupported(format!(
                    "ZooKeeper at {name} does not let us in ({error}): give `coordination` the USER:PASSWORD@ that made its chroot"
                ))
            }
            Error::Timeout => StoreError::Unavailable(format!(
                "ZooKeeper at {name} did not answer within {:?}",
                self.timeout
            )),
            error => StoreError::Unavailable(format!("ZooKeeper at {name}: {error}")),
        }
    }

    /// The same of several operations.
    pub(super) fn told_multi(&self, error: MultiWriteError) -> StoreError {
        self.told(&error.into())
    }
}
