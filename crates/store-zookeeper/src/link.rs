//! The sessions of this process, one for each length of lease and one for everything else; and the requests in them.
//!
//! The leases of a session live as long as it, and it has one length. So a lease is made in the session of its own length, whose time-out is one
//! tick longer: a follower reports the sessions to the leader every half tick, and may die before it does. Trust counts the length of the lease
//! without the tick, so it ends before the session can.
//!
//! A session that this process leaves is never closed: its end would free leases under which scripts may still run.
//!
//! An ensemble that was emptied knows no earlier session. So what was read in a session is true for the ensemble of that session, and a change on
//! condition of something is made in the session in which that was read.
//!
//! The call that makes a request of the driver queues all of it, and a session answers in order. A caller that stops waiting leaves nothing half
//! done; what was queued may still run, before everything that the same session is asked later.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use zookeeper_client::{
    Acls, AddWatchMode, Client, CreateMode, Error, MultiWriteError, MultiWriteResult,
    PersistentWatcher, Stat,
};

use super::era::Era;
use soloist_domain::ensemble::Ensemble as Place;
use soloist_process::clock;
use soloist_store::{Result, StoreError};

/// Of the session that holds nothing.
const LOOKING: Duration = Duration::from_secs(6);
/// Shorter than any ensemble grants, and long enough to connect.
const SHORTEST: Duration = Duration::from_millis(100);
/// A server that says nothing for so long is left, whatever the session would allow.
const SILENCE: Duration = Duration::from_secs(1);

/// One operation of a step. A version is a condition.
pub(super) enum Op {
    Check(String, i32),
    Create(String, String, CreateMode),
    Set(String, String, Option<i32>),
    Delete(String),
}

/// How a step ended that is done as a whole or not at all.
pub(super) enum Written {
    /// Its number, if it sets a text; else 0.
    Done(i64),
    /// The condition of that operation does not hold.
    Refused(usize),
}

/// An ensemble, and how long it may take to answer.
struct Site {
    place: Place,
    patience: Duration,
}

impl Site {
    /// No longer than one call may take.
    async fn within<T, X: From<Error>>(
        &self,
        call: impl Future<Output = std::result::Result<T, X>>,
    ) -> std::result::Result<T, X> {
        let answer = tokio::time::timeout(self.patience, call).await;
        answer.unwrap_or_else(|_| Err(Error::Timeout.into()))
    }

    /// The same, with the error in our words.
    async fn bounded<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, Error>>,
    ) -> Result<T> {
        self.within(call).await.map_err(|error| self.told(&error))
    }

    /// What an error means for the caller.
    fn told(&self, error: &Error) -> StoreError {
        let (name, patience) = (self.place.name(), self.patience);
        match error {
            Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => {
                StoreError::Unsupported(format!(
                    "ZooKeeper at {name} does not let us in ({error}): give `coordination` the USER:PASSWORD@ that made its chroot"
                ))
            }
            Error::Timeout => StoreError::Unavailable(format!(
                "ZooKeeper at {name} did not answer within {patience:?}"
            )),
            error => StoreError::Unavailable(format!("ZooKeeper at {name}: {error}")),
        }
    }

    /// Who may do what with our nodes.
    fn acls(&self) -> Acls<'static> {
        if self.place.login.is_some() { Acls::creator_all() } else { Acls::anyone_all() }
    }
}

/// A session.
pub(super) struct Session {
    client: Client,
    pub(super) id: i64,
    /// As the ensemble grants it.
    pub(super) timeout: Duration,
    /// As it was read in this session.
    pub(super) era: Mutex<Option<Era>>,
    site: Arc<Site>,
}

impl Session {
    /// Nothing can be asked in it any more. The ensemble may still keep its nodes for a while.
    pub(super) fn is_over(&self) -> bool {
        self.client.state().is_terminated()
    }

    /// What is read behind this is as new as any answer that anybody had before.
    pub(super) fn sync(&self) -> impl Future<Output = Result<()>> + Send + '_ {
        self.site.bounded(self.client.sync("/"))
    }

    /// The text of a node, if there is one.
    pub(super) fn read(
        &self,
        path: &str,
    ) -> impl Future<Output = Result<Option<(String, Stat)>>> + Send + use<'_> {
        let read = self.client.get_data(path);
        async move {
            match self.site.within(read).await {
                Ok((data, stat)) => Ok(Some((String::from_utf8(data).unwrap_or_default(), stat))),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(self.site.told(&error)),
            }
        }
    }

    /// The names of the nodes below this one.
    pub(super) async fn children(&self, path: &str) -> Result<Vec<String>> {
        self.site.bounded(self.client.list_children(path)).await
    }

    /// Hears of every node that comes, goes or changes.
    pub(super) async fn watch(&self) -> Result<PersistentWatcher> {
        self.site.bounded(self.client.watch("/", AddWatchMode::PersistentRecursive)).await
    }

    /// Carries out a step.
    pub(super) async fn write(&self, ops: &[Op]) -> Result<Written> {
        let mut writer = self.client.new_multi_writer();
        for op in ops {
            let added = match op {
                Op::Check(path, version) => writer.add_check_version(path, *version),
                Op::Create(path, text, mode) => {
                    let options = mode.with_acls(self.site.acls());
                    writer.add_create(path, text.as_bytes(), &options)
                }
                Op::Set(path, text, version) => {
                    writer.add_set_data(path, text.as_bytes(), *version)
                }
                Op::Delete(path) => writer.add_delete(path, None),
            };
            added.map_err(|error| self.site.told(&error))?;
        }
        let number = |result: &MultiWriteResult| match result {
            MultiWriteResult::SetData { stat } => Some(stat.mzxid),
            _ => None,
        };
        match self.site.within(writer.commit()).await {
            Ok(results) => Ok(Written::Done(results.iter().find_map(number).unwrap_or(0))),
            Err(MultiWriteError::OperationFailed {
                index,
                source: Error::BadVersion | Error::NoNode | Error::NodeExists,
            }) => Ok(Written::Refused(index)),
            Err(error) => Err(self.site.told(&error.into())),
        }
    }
}

type Slot = Arc<tokio::sync::Mutex<Option<Arc<Session>>>>;

/// Our sessions in an ensemble.
pub(super) struct Ensemble {
    site: Arc<Site>,
    /// By the length of their leases; none: of the one that holds nothing.
    sessions: Mutex<HashMap<Option<Duration>, Slot>>,
    /// The shortest session that it grants.
    shortest: OnceCell<Duration>,
}

impl Ensemble {
    pub(super) fn new(place: Place, patience: Duration) -> Self {
        let site = Arc::new(Site { place, patience });
        Self { site, sessions: Mutex::default(), shortest: OnceCell::new() }
    }

    pub(super) fn place(&self) -> &Place {
        &self.site.place
    }

    /// The session that holds nothing.
    pub(super) async fn looking(&self) -> Result<Arc<Session>> {
        self.session(None).await
    }

    /// The session for leases of this length; without one, that which holds nothing.
    ///
    /// # Errors
    /// [`StoreError::Unsupported`]: the ensemble grants none that is long enough. [`StoreError::Unavailable`].
    pub(super) async fn session(&self, ttl: Option<Duration>) -> Result<Arc<Session>> {
        let slot = Arc::clone(self.sessions.lock().entry(ttl).or_default());
        let mut slot = slot.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.is_over()) {
            return Ok(Arc::clone(session));
        }
        let asked = match ttl {
            Some(ttl) => ttl + self.shortest().await? / 2,
            None => LOOKING,
        };
        let session = self.connect(&self.place().chroot, asked).await?;
        if let Some(ttl) = ttl.filter(|_| session.timeout < asked) {
            return Err(StoreError::Unsupported(format!(
                "ZooKeeper at {}: a lease of {ttl:?} needs a session of {ttl:?} + a tick of {:?} = {asked:?}, but the longest that it grants is {:?}: raise maxSessionTimeout in zoo.cfg to {} on every server, or choose a shorter lease",
                self.place().name(),
                asked - ttl,
                session.timeout,
                asked.as_millis(),
            )));
        }
        Ok(Arc::clone(slot.insert(Arc::new(session))))
    }

    /// The shortest session that the ensemble grants: two ticks, unless it was told otherwise.
    pub(super) async fn shortest(&self) -> Result<Duration> {
        let ask = || async { Ok(self.connect(&self.place().chroot, SHORTEST).await?.timeout) };
        self.shortest.get_or_try_init(ask).await.copied()
    }

    async fn connect(&self, chroot: &str, asked: Duration) -> Result<Session> {
        let Site { place, patience } = &*self.site;
        let silence = SILENCE.min(asked / 4).max(SILENCE.min(*patience) / 5);
        let mut connector = Client::connector()
            .with_session_timeout(asked)
            .with_connection_timeout(silence)
            .with_detached();
        if let Some(login) = &place.login {
            connector = connector.with_auth("digest", login.as_bytes());
        }
        let servers = format!("{}{chroot}", place.servers.join(","));
        let until = clock::boot() + *patience;
        let client = loop {
            match self.site.within(connector.clone().connect(&servers)).await {
                // The driver gives up when a session of this length could not be begun within it.
                Err(Error::Timeout) if clock::boot() < until => {}
                outcome => break outcome.map_err(|error| self.site.told(&error))?,
            }
        };
        let (id, timeout) = (client.session_id().0, client.session_timeout());
        Ok(Session { client, id, timeout, era: Mutex::default(), site: Arc::clone(&self.site) })
    }

    /// Makes the chroot, if it is not there; or says that it is not.
    pub(super) async fn reach(&self, make: bool) -> Result<()> {
        if self.looking().await?.read("/").await?.is_some() {
            return Ok(());
        }
        if !make {
            return Err(StoreError::Absent(format!("ZooKeeper, {}", self.place().name())));
        }
        let root = self.connect("", LOOKING).await?;
        let options = CreateMode::Persistent.with_acls(self.site.acls());
        self.site.bounded(root.client.mkdir(&self.place().chroot, &options)).await
    }
}
