//! Which member of a Redis Cluster serves a key.
//!
//! Every master is asked for its `CLUSTER NODES` a few times a second, each by a task of its own, so that one which hangs
//! delays no other. An owner is trusted only if a majority of the masters names it, and only for [`BELIEVED_FOR`]. The time
//! starts before the masters are asked. Two majorities share a master, and a master never goes back to an older owner of a
//! slot. So the first process that calls a new owner does so after the newest moment at which any process was told of the old
//! one. New leases wait that much longer there ([`super::route::Route::lag`]), by when every lease that a cut-off former master
//! may have renewed has run out. This file decides nothing about leases, and sends nothing but that question.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::redis::AsyncConnectionConfig;
use ::redis::aio::MultiplexedConnection;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::fault::in_words;
use super::members::{self, HashSlot, Member};
use super::route::Master;
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::{Result, StoreError};

/// For how long a master's word counts.
pub(super) const BELIEVED_FOR: Duration = Duration::from_secs(1);
/// How often each is asked while all is quiet.
const ASK_EVERY: Duration = Duration::from_millis(300);
/// How soon again when something is wrong.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// One that takes longer counts as silent.
const PATIENCE: Duration = Duration::from_millis(800);
const PORT: u16 = 6_379;

/// A URL of the form `redis+cluster://[USER:PASSWORD@]HOST[:PORT],...[/]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// `redis` or `rediss`.
    scheme: &'static str,
    /// `USER:PASSWORD@` or nothing.
    login: &'a str,
    /// `HOST:PORT` each.
    seeds: Vec<String>,
}

impl<'a> Parts<'a> {
    /// `None` when it is no URL of a cluster.
    pub(super) fn of(url: &'a str) -> Option<Result<Self>> {
        let (scheme, rest) = if let Some(rest) = url.strip_prefix("redis+cluster://") {
            ("redis", rest)
        } else {
            ("rediss", url.strip_prefix("rediss+cluster://")?)
        };
        Some(Self::parse(scheme, rest).ok_or_else(|| {
            StoreError::Unsupported(
                "the store URL cannot be used: write redis+cluster://USER:PASSWORD@HOST1:6379,HOST2:6379,HOST3:6379/ (a cluster has no databases but 0)"
                    .to_owned(),
            )
        }))
    }

    fn parse(scheme: &'static str, rest: &'a str) -> Option<Self> {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !matches!(path, "" | "0") || authority.contains('?') {
            return None;
        }
        let (login, hosts) = match authority.rfind('@') {
            Some(at) => authority.split_at(at + 1),
            None => ("", authority),
        };
        let seed = |host: &str| {
            let bare = host.rsplit_once(':').is_none_or(|(_, port)| port.ends_with(']'));
            let named = !host.is_empty() && !host.starts_with(':');
            named.then(|| if bare { format!("{host}:{PORT}") } else { host.to_owned() })
        };
        let seeds = hosts.split(',').map(seed).collect::<Option<Vec<_>>>()?;
        Some(Self { scheme, login, seeds })
    }
}

/// A cluster, as its masters tell of it.
pub(super) struct Cluster {
    /// What stands before a server's address in its URL.
    front: String,
    tls: bool,
    seeds: Vec<String>,
    timeout: Duration,
    view: Mutex<View>,
    /// A master answered, or failed to.
    news: Notify,
}

#[derive(Default)]
struct View {
    known: HashMap<String, Known>,
    /// What was said of these before that moment counts no more.
    doubted: HashMap<String, Boot>,
    /// Owners of slots as last logged.
    owners: BTreeSet<String>,
}

/// One server that is asked.
struct Known {
    master: Arc<Master>,
    answer: Option<Answer>,
    /// Since when it has not answered, and why.
    trouble: Option<(Boot, String)>,
    nudge: Arc<Notify>,
    asking: tokio::task::AbortHandle,
}

struct Answer {
    /// From before it was asked.
    at: Boot,
    members: Vec<Member>,
}

/// What is known of a slot.
enum Owner {
    Known(Arc<Master>),
    /// A majority agrees on the owner, and that it has failed.
    Failed(String),
    Unknown,
}

impl Cluster {
    /// Begins to ask; needs a runtime.
    pub(super) fn start(parts: Parts<'_>, timeout: Duration) -> Result<Arc<Self>> {
        let Parts { scheme, login, seeds } = parts;
        let cluster = Arc::new(Self {
            front: format!("{scheme}://{login}"),
            tls: scheme == "rediss",
            seeds,
            timeout,
            view: Mutex::default(),
            news: Notify::new(),
        });
        {
            let mut view = cluster.view.lock();
            for seed in &cluster.seeds {
                cluster.ask_from_now_on(&mut view, seed)?;
            }
        }
        Ok(cluster)
    }

    /// The members that the URL names.
    pub(super) fn seed_masters(&self) -> Vec<Master> {
        let url = |seed| format!("{}{seed}/0", self.front);
        self.seeds.iter().filter_map(|seed| Master::new(&url(seed)).ok()).collect()
    }

    /// The server that has `slot`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when too few masters answer, they do not agree, or they call it failed.
    pub(super) async fn master_of(&self, slot: HashSlot) -> Result<Arc<Master>> {
        self.look(|view, now| match view.owner(slot, now) {
            Owner::Known(master) => Some(Ok(master)),
            Owner::Failed(address) => Some(Err(StoreError::Unavailable(format!(
                "the Redis Cluster calls its master {address} failed and has promoted no replica of it yet: look at `redis-cli CLUSTER NODES`"
            )))),
            Owner::Unknown => None,
        })
        .await
    }

    /// All masters that have slots, those that have failed included.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when too few of them answer.
    pub(super) async fn masters(&self) -> Result<Vec<Arc<Master>>> {
        self.look(|view, now| {
            let answers: Vec<&Answer> = view.fresh(now).collect();
            let most = answers.iter().map(|answer| answer.members.len()).max()?;
            let members = answers.iter().flat_map(|answer| &answer.members);
            let addresses: BTreeSet<&str> = members.map(|m| m.address.as_str()).collect();
            let masters = addresses
                .into_iter()
                .filter_map(|address| Some(Arc::clone(&view.known.get(address)?.master)));
            (answers.len() > most / 2).then(|| Ok(masters.collect()))
        })
        .await
    }

    /// Looks at every change until `find` finds something, everybody asked has failed, or patience ends.
    async fn look<T>(&self, find: impl Fn(&View, Boot) -> Option<Result<T>>) -> Result<T> {
        let begun = clock::boot();
        let found = async {
            loop {
                let mut news = std::pin::pin!(self.news.notified());
                // Before looking, or what comes between would be missed.
                news.as_mut().enable();
                {
                    let view = self.view.lock();
                    if let Some(found) = find(&view, clock::boot()) {
                        return found;
                    }
                    if view.all_failed_since(begun) {
                        return Err(self.no_majority(&view));
                    }
                    view.nudge();
                }
                news.await;
            }
        };
        match tokio::time::timeout(self.timeout, found).await {
            Ok(found) => found,
            Err(_) => Err(self.no_majority(&self.view.lock())),
        }
    }

    /// The server that has `slot`, if that is known at this moment and it has not failed.
    pub(super) fn owner_now(&self, slot: HashSlot) -> Option<Arc<Master>> {
        match self.view.lock().owner(slot, clock::boot()) {
            Owner::Known(master) => Some(master),
            Owner::Failed(_) | Owner::Unknown => None,
        }
    }

    /// Something is wrong with that server: what was said of it before counts no more.
    pub(super) fn doubt(&self, address: &str) {
        let mut view = self.view.lock();
        view.doubted.insert(address.to_owned(), clock::boot());
        view.nudge();
    }

    /// Whether `address` had a slot by the newest answers.
    pub(super) fn names(&self, address: &str) -> bool {
        self.view.lock().owners.contains(address)
    }

    /// For messages.
    pub(super) fn name(&self) -> String {
        format!("the cluster of {}", self.seeds.join(", "))
    }

    fn no_majority(&self, view: &View) -> StoreError {
        let mut said: Vec<&str> = view
            .known
            .values()
            .filter_map(|known| known.trouble.as_ref().map(|(_, why)| why.as_str()))
            .collect();
        said.sort_unstable();
        said.dedup();
        let said = if said.is_empty() { "they do not agree".to_owned() } else { said.join("; ") };
        StoreError::Unavailable(format!(
            "a majority of the masters of {} must say who serves: {said}",
            self.name()
        ))
    }

    fn ask_from_now_on(self: &Arc<Self>, view: &mut View, address: &str) -> Result<()> {
        let master = Arc::new(Master::new(&format!("{}{address}/0", self.front))?);
        let nudge = Arc::new(Notify::new());
        let asking = tokio::spawn(ask(
            Arc::downgrade(self),
            Arc::clone(&master),
            address.to_owned(),
            Arc::clone(&nudge),
        ));
        let known =
            Known { master, answer: None, trouble: None, nudge, asking: asking.abort_handle() };
        if let Some(before) = view.known.insert(address.to_owned(), known) {
            before.asking.abort();
        }
        Ok(())
    }

    /// Takes what one server said; `false` when it need not be asked any more.
    fn hear(
        self: &Arc<Self>,
        address: &str,
        at: Boot,
        said: std::result::Result<String, String>,
    ) -> bool {
        let mut view = self.view.lock();
        let Some(known) = view.known.get_mut(address) else { return false };
        match said {
            Ok(text) => {
                let members = members::owners(&text, address, self.tls);
                let named: Vec<String> = members.iter().map(|m| m.address.clone()).collect();
                known.answer = Some(Answer { at, members });
                known.trouble = None;
                for address in named {
                    if !view.known.contains_key(&address)
                        && let Err(error) = self.ask_from_now_on(&mut view, &address)
                    {
                        tracing::warn!(%address, %error, "a member of the cluster cannot be asked");
                    }
                }
            }
            Err(why) => known.trouble = Some((clock::boot(), why)),
        }
        view.note_owners();
        let wanted = self.seeds.iter().any(|seed| seed == address)
            || view.named(address)
            || view.known.get(address).is_some_and(|known| known.answer.is_none());
        if !wanted {
            view.known.remove(address);
        }
        self.news.notify_waiters();
        wanted
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for known in self.view.lock().known.values() {
            known.asking.abort();
        }
    }
}

impl View {
    /// Answers young enough to be believed, one of each server.
    fn fresh(&self, now: Boot) -> impl Iterator<Item = &Answer> {
        let mut newest: HashMap<&str, &Answer> = HashMap::new();
        for answer in self.known.values().filter_map(|known| known.answer.as_ref()) {
            let young = now.since(answer.at) < BELIEVED_FOR;
            // Who has no slots has no vote. One server may be known by two names.
            let Some(itself) = answer.members.iter().find(|m| m.myself).filter(|_| young) else {
                continue;
            };
            let seat = newest.entry(&itself.id).or_insert(answer);
            if seat.at < answer.at {
                *seat = answer;
            }
        }
        newest.into_values()
    }

    fn owner(&self, slot: HashSlot, now: Boot) -> Owner {
        let mut votes: HashMap<&str, (usize, bool)> = HashMap::new();
        let mut masters = 0;
        for answer in self.fresh(now) {
            masters = masters.max(answer.members.len());
            let Some(owner) = answer.members.iter().find(|member| member.has(slot)) else {
                continue;
            };
            if self.doubted.get(&owner.address).is_none_or(|doubted| answer.at >= *doubted) {
                let (count, failed) = votes.entry(&owner.address).or_default();
                *count += 1;
                *failed |= owner.failed;
            }
        }
        let majority = masters / 2 + 1;
        match votes.into_iter().find(|(_, (count, _))| *count >= majority) {
            Some((address, (_, true))) => Owner::Failed(address.to_owned()),
            Some((address, _)) => match self.known.get(address) {
                Some(known) => Owner::Known(Arc::clone(&known.master)),
                None => Owner::Unknown,
            },
            None => Owner::Unknown,
        }
    }

    /// Whether another server names it: a former master does not stop to name itself.
    fn named(&self, address: &str) -> bool {
        let others = self.known.iter().filter(|(other, _)| *other != address);
        let answers = others.filter_map(|(_, known)| known.answer.as_ref());
        answers.flat_map(|answer| &answer.members).any(|member| member.address == address)
    }

    fn all_failed_since(&self, begun: Boot) -> bool {
        self.known.values().all(|k| k.trouble.as_ref().is_some_and(|(since, _)| *since >= begun))
    }

    fn nudge(&self) {
        for known in self.known.values() {
            known.nudge.notify_one();
        }
    }

    /// Keeps the list of owners, and says when it changed.
    fn note_owners(&mut self) {
        let now = clock::boot();
        let owners: BTreeSet<String> =
            self.fresh(now).flat_map(|a| &a.members).map(|m| m.address.clone()).collect();
        if !owners.is_empty() && owners != self.owners {
            tracing::info!(masters = ?owners, "masters of the Redis Cluster");
            self.owners = owners;
        }
    }
}

/// Asks one server again and again, for as long as the cluster is in use and names it.
async fn ask(cluster: Weak<Cluster>, master: Arc<Master>, address: String, nudge: Arc<Notify>) {
    let mut connection: Option<MultiplexedConnection> = None;
    loop {
        let at = clock::boot();
        let said = match tokio::time::timeout(PATIENCE, question(&master, &mut connection)).await {
            Ok(Ok(text)) => Ok(text),
            Ok(Err(error)) if error.to_string().contains("cluster support disabled") => {
                Err(format!(
                    "Redis at {address} is no member of a cluster: write redis://{address}/0 for one server"
                ))
            }
            Ok(Err(error)) => Err(in_words(&error, &address).to_string()),
            Err(_) => Err(format!("Redis at {address} did not answer within {PATIENCE:?}")),
        };
        if said.is_err() {
            connection = None;
        }
        match cluster.upgrade() {
            Some(cluster) if cluster.hear(&address, at, said) => {}
            _ => return,
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_EVERY) => {}
            () = nudge.notified() => {
                tokio::time::sleep((at + ASK_AGAIN).since(clock::boot())).await;
            }
        }
    }
}

async fn question(
    master: &Master,
    connection: &mut Option<MultiplexedConnection>,
) -> ::redis::RedisResult<String> {
    let mut nodes = ::redis::cmd("CLUSTER");
    nodes.arg("NODES");
    let open = match connection {
        Some(open) => open,
        none => {
            let config = AsyncConnectionConfig::new().set_response_timeout(None);
            let made = master.client.get_multiplexed_async_connection_with_config(&config).await?;
            none.insert(made)
        }
    };
    nodes.query_async(open).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_cluster_is_taken_apart() {
        let parts = |url| Parts::of(url).expect("of a cluster").expect("usable");
        let all = parts("rediss+cluster://u:p%40ss@one:7000,[::1],three/");
        assert_eq!((all.scheme, all.login), ("rediss", "u:p%40ss@"));
        assert_eq!(all.seeds, ["one:7000", "[::1]:6379", "three:6379"]);
        assert_eq!(parts("redis+cluster://one").seeds, ["one:6379"]);
        assert_eq!(parts("redis+cluster://one/0").login, "");
        assert!(Parts::of("redis://one/0").is_none());
    }

    #[test]
    fn a_url_that_cannot_be_meant_is_refused_without_its_password() {
        for wrong in [
            "redis+cluster://:sesame@",
            "redis+cluster://:sesame@one,,two/",
            "redis+cluster://:sesame@one/3",
            "redis+cluster://:sesame@:7000/",
            "redis+cluster://one?password=sesame",
        ] {
            let error = Parts::of(wrong).expect("of a cluster").expect_err(wrong).to_string();
            assert!(error.contains("HOST1") && !error.contains("sesame"), "{error}");
        }
    }

    /// What one of three masters says that takes `first` for the owner of the first slots.
    fn says(myself: &str, first: &str) -> std::result::Result<String, String> {
        let line = |address: &str, slots: &str| {
            let flags = if address == myself { "myself,master" } else { "master" };
            format!("id-of-{address} {address}@17000 {flags} - 0 0 1 connected {slots}\n")
        };
        Ok(line(first, "0-5000")
            + &line("127.0.0.1:2", "5001-9999")
            + &line("127.0.0.1:3", "10000-16383"))
    }

    #[tokio::test]
    async fn the_owner_of_a_slot_is_who_a_majority_names_lately() {
        let [one, two, three, new] = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"];
        let url = format!("redis+cluster://{one},{two},{three}/");
        let parts = Parts::of(&url).expect("of a cluster").expect("usable");
        let cluster = Cluster::start(parts, Duration::from_secs(1)).expect("started");
        let owner =
            || cluster.owner_now(HashSlot::default()).map(|master| master.address.to_string());
        let hear = |from: &str, said| cluster.hear(from, clock::boot(), said);
        assert_eq!(owner(), None);
        hear(one, says(one, one));
        assert_eq!(owner(), None, "one of three");
        hear(two, says(two, one));
        assert_eq!(owner().as_deref(), Some(one));
        // The first is cut off and believes in itself; a replica was promoted.
        hear(three, says(three, new));
        assert_eq!(owner().as_deref(), Some(one), "two of three still say so");
        cluster.doubt(one);
        assert_eq!(owner(), None, "what was said before the doubt counts no more");
        hear(one, says(one, one));
        hear(two, says(two, new));
        assert_eq!(owner().as_deref(), Some(new));
        // Silence: no answer is trusted for longer than a second.
        let old = clock::boot() - BELIEVED_FOR;
        for from in [one, two, three] {
            cluster.hear(from, old, says(from, new));
        }
        assert_eq!(owner(), None);
    }
}
