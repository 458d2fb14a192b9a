//! A way to the store for one kind of calls: one connection to one server, or one to each master of a cluster.
//!
//! Where every millisecond counts each runtime of the process has a connection of its own: an answer then wakes no other
//! thread on its way to the caller.
//!
//! On a cluster a call goes to the master that has its keys. One that has them no more did nothing: the call is sent
//! to the next one, within the same time. A master that hangs or is gone delays only the calls for its own keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::redis::{
    Arg, Cmd, FromRedisValue, RedisWrite as _, Script, ToRedisArgs, Value, from_redis_value,
};
use parking_lot::Mutex;
use tokio::runtime;

use super::cluster::Cluster;
use super::link::{Failure, Generation, Link, Repeat, Work};
use super::members::HashSlot;
use super::route::{Master, Route};
use super::scripts::Transition;
use soloist_store::{Result, StoreError};

/// Between two attempts while a slot is on its way from one master to another.
const ON_ITS_WAY: Duration = Duration::from_millis(10);

/// A call of a script, and where its keys are. Keys and arguments stand in lists of their own until it is sent: in a `Cmd` all of them are
/// one piece of memory.
pub(super) struct Call {
    script: &'static Script,
    slot: HashSlot,
    keys: Cmd,
    arguments: Cmd,
}

impl Call {
    pub(super) fn new(transition: &'static Transition, on_a_cluster: bool) -> Self {
        let script = transition.on(on_a_cluster);
        Self { script, slot: HashSlot::default(), keys: Cmd::new(), arguments: Cmd::new() }
    }

    pub(super) fn key(&mut self, key: impl AsRef<str>) -> &mut Self {
        if self.keys.args_iter().len() == 0 {
            self.slot = HashSlot::of(key.as_ref());
        }
        self.keys.arg(key.as_ref());
        self
    }

    pub(super) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        self.arguments.arg(argument);
        self
    }

    /// Adds those of a list.
    pub(super) fn args(&mut self, list: &Cmd) -> &mut Self {
        add_all(&mut self.arguments, list);
        self
    }

    fn command(&self) -> Cmd {
        let (keys, arguments) = (self.keys.args_iter().len(), self.arguments.args_iter().len());
        let hash = self.script.get_hash();
        let all = |list: &Cmd| list.args_iter().map(|one| bytes(one).len()).sum::<usize>();
        let size = hash.len() + 32 + all(&self.keys) + all(&self.arguments);
        let mut command = Cmd::with_capacity(3 + keys + arguments, size);
        command.arg("EVALSHA").arg(hash).arg(keys);
        add_all(&mut command, &self.keys);
        add_all(&mut command, &self.arguments);
        command
    }
}

fn add_all(to: &mut Cmd, list: &Cmd) {
    list.args_iter().for_each(|one| to.write_arg(bytes(one)));
}

/// No list of ours has anything else, such as a cursor.
fn bytes(one: Arg<&[u8]>) -> &[u8] {
    match one {
        Arg::Simple(bytes) => bytes,
        _ => &[],
    }
}

/// Which connection a call went by.
pub(super) struct Sent {
    link: Arc<Link>,
    generation: Generation,
}

impl Sent {
    /// Runs one more command on that connection and no other.
    pub(super) async fn command<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        self.link.command_on(command, self.generation).await
    }
}

/// The connections.
pub(super) enum Lane {
    /// To the one server.
    One(Arc<Link>),
    /// To the one server, from each runtime.
    Near(Near),
    /// To each master, made when needed.
    Each(Links),
}

/// Connections to one server, each of which belongs to the runtime that uses it. A node has three: the main one and those
/// of the two threads that serve HTTP.
pub(super) struct Near {
    route: Arc<Route>,
    timeout: Duration,
    links: Mutex<HashMap<runtime::Id, Arc<Link>>>,
}

/// Connections to the masters of a cluster.
pub(super) struct Links {
    cluster: Arc<Cluster>,
    timeout: Duration,
    links: Mutex<HashMap<Arc<str>, Arc<Link>>>,
    name: Mutex<Option<String>>,
}

impl Lane {
    pub(super) fn one(route: Arc<Route>, timeout: Duration) -> Self {
        Self::One(Arc::new(Link::new(route, timeout)))
    }

    pub(super) fn near(route: Arc<Route>, timeout: Duration) -> Self {
        Self::Near(Near { route, timeout, links: Mutex::default() })
    }

    pub(super) fn each(cluster: Arc<Cluster>, timeout: Duration) -> Self {
        Self::Each(Links { cluster, timeout, links: Mutex::default(), name: Mutex::default() })
    }

    /// Runs a script.
    pub(super) async fn script<T: FromRedisValue>(&self, call: &Call, repeat: Repeat) -> Result<T> {
        Ok(self.script_where(call, repeat).await?.0)
    }

    /// Runs a script and says on which connection.
    pub(super) async fn script_where<T: FromRedisValue>(
        &self,
        call: &Call,
        repeat: Repeat,
    ) -> Result<(T, Sent)> {
        self.work(Work::Script(call.script, &call.command()), call.slot, repeat).await
    }

    /// Runs one command about `key`.
    pub(super) async fn command<T: FromRedisValue>(
        &self,
        key: &str,
        command: &Cmd,
        repeat: Repeat,
    ) -> Result<T> {
        Ok(self.work(Work::Command(command), HashSlot::of(key), repeat).await?.0)
    }

    /// A connection to every server there is, for what must be asked of all of them.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the servers are not known.
    pub(super) async fn links(&self) -> Result<Vec<Arc<Link>>> {
        match self {
            Self::One(link) => Ok(vec![Arc::clone(link)]),
            Self::Near(near) => Ok(vec![near.here()]),
            Self::Each(links) => {
                let masters = links.cluster.masters().await?;
                Ok(masters.iter().map(|master| links.to(master)).collect())
            }
        }
    }

    /// Gives its connections a name, if the servers permit that.
    pub(super) async fn call_itself(&self, name: &str) {
        match self {
            Self::One(link) => link.call_itself(name).await,
            Self::Near(near) => near.here().call_itself(name).await,
            Self::Each(links) => {
                *links.name.lock() = Some(name.to_owned());
                let open: Vec<_> = links.links.lock().values().cloned().collect();
                for link in open {
                    link.call_itself(name).await;
                }
            }
        }
    }

    async fn work<T: FromRedisValue>(
        &self,
        work: Work<'_>,
        slot: HashSlot,
        repeat: Repeat,
    ) -> Result<(T, Sent)> {
        match self {
            Self::One(link) => Ok(one(Arc::clone(link), work, repeat).await?),
            Self::Near(near) => Ok(one(near.here(), work, repeat).await?),
            Self::Each(links) => {
                let sending = links.work(work, slot, repeat);
                let (value, sent) = match tokio::time::timeout(links.timeout, sending).await {
                    Ok(answer) => answer?,
                    Err(_) => {
                        return Err(StoreError::Unavailable(format!(
                            "{} did not answer within {:?}",
                            links.cluster.name(),
                            links.timeout
                        )));
                    }
                };
                let value = from_redis_value(value).map_err(|error| {
                    StoreError::Corrupt(format!("an answer of {}: {error}", links.cluster.name()))
                })?;
                Ok((value, sent))
            }
        }
    }
}

async fn one<T: FromRedisValue>(
    link: Arc<Link>,
    work: Work<'_>,
    repeat: Repeat,
) -> std::result::Result<(T, Sent), Failure> {
    let (value, generation) = link.call(work, repeat, None).await?;
    Ok((value, Sent { link, generation }))
}

impl Near {
    /// That of the current runtime.
    fn here(&self) -> Arc<Link> {
        let mut links = self.links.lock();
        let link = links
            .entry(runtime::Handle::current().id())
            .or_insert_with(|| Arc::new(Link::new(Arc::clone(&self.route), self.timeout)));
        Arc::clone(link)
    }
}

impl Links {
    async fn work(&self, work: Work<'_>, slot: HashSlot, repeat: Repeat) -> Result<(Value, Sent)> {
        let mut again = repeat == Repeat::Harmless;
        let mut master = self.cluster.master_of(slot).await?;
        loop {
            let link = self.to(&master);
            let failure = match link.call(work, repeat, None).await {
                Ok((value, generation)) => return Ok((value, Sent { link, generation })),
                Err(failure) => failure,
            };
            let worth_another = failure.elsewhere || again && is_unavailable(&failure);
            if !worth_another {
                return Err(failure.words);
            }
            // The trouble made the cluster doubtful, so this is what a majority says since then.
            let next = match self.cluster.master_of(slot).await {
                Ok(next) => next,
                Err(_) if !failure.elsewhere => return Err(failure.words),
                Err(error) => return Err(error),
            };
            if Arc::ptr_eq(&next, &master) {
                if !failure.elsewhere {
                    return Err(failure.words);
                }
                tokio::time::sleep(ON_ITS_WAY).await;
            }
            again &= failure.elsewhere;
            master = next;
        }
    }

    fn to(&self, master: &Arc<Master>) -> Arc<Link> {
        let mut links = self.links.lock();
        if let Some(link) = links.get(&master.address) {
            return Arc::clone(link);
        }
        // Those that are masters no more will not be asked again.
        links.retain(|address, _| self.cluster.names(address));
        let route = Route::Member(Arc::clone(master), Arc::clone(&self.cluster));
        let link = Arc::new(Link::new(Arc::new(route), self.timeout));
        if let Some(name) = &*self.name.lock() {
            link.name_next(name);
        }
        links.insert(Arc::clone(&master.address), Arc::clone(&link));
        link
    }
}

fn is_unavailable(failure: &Failure) -> bool {
    matches!(failure.words, StoreError::Unavailable(_))
}
