//! How many connections a node takes, in all and from one address; tunes each when it comes.
//!
//! Past the cap no connection is accepted until a place is free; the kernel keeps new ones waiting. A client with too many from one
//! address is cut off. TLS handshakes of one address take a quarter of all places at most, whoever it is: past that its oldest one is
//! given up, which is one of a client that says nothing. It reads no request: how long a request may take is decided in `body` and by
//! the framework.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::rt::net::TcpStream;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{setsockopt, sockopt};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::sync::oneshot;
use tokio::time::Instant;

use soloist_config::{Config, Current};
use soloist_domain::time::Boot;
use soloist_process::clock::boot;

/// Descriptors kept back for what a node cannot do without: its store, logs, nursery, guards that wait for work.
const RESERVED: u64 = 96;
/// Descriptors kept back for the guard of each job: its socket, process and output, twice while one run follows another.
const RESERVED_PER_JOB: u64 = 8;
/// Connections that are not live sockets, when the configuration does not say.
const BESIDE_LIVE: usize = 2_000;
/// A node that can take no more than this is of no use.
const FEWEST: usize = 16;
/// Connections from one address, when the configuration does not say.
const PER_ADDRESS: usize = 200;
/// A TLS handshake must be done within this time, however slowly its bytes come...
const HANDSHAKE_MAX: Duration = Duration::from_secs(3);
/// ...and within this when places run out.
const CROWDED_HANDSHAKE: Duration = Duration::from_millis(500);
/// How often a handshake looks whether places run out.
const LOOK_AROUND: Duration = Duration::from_millis(250);
/// Of one address, handshakes take one in so many places at most.
const HANDSHAKES: usize = 4;
/// A node that ends goes on answering until no request has come for so long: by then its balancer has seen that it ends.
const QUIET: Duration = Duration::from_millis(200);
/// It ends after this, even if requests still come.
const PARTING_MAX: Duration = Duration::from_secs(2);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A connection whose peer acknowledges nothing, or takes nothing, for this long is dropped by the kernel: only that frees a client
/// which stopped reading (the framework stops polling it, and with it every timer of ours).
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(15);
/// Bytes that the kernel keeps for a peer which does not read, beyond what is under way: without a bound it takes megabytes, and a
/// slow reader is told what was long ago. What is under way is not counted, so no reader is slower for it.
const UNSENT_MAX: u32 = 64 * 1024;

/// Counts connections; cheap to clone.
#[derive(Clone)]
pub struct Connections {
    config: Current,
    cap: usize,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    open: AtomicUsize,
    /// When a node that ends answered last, as [`Boot`].
    last: AtomicU64,
    by_address: Mutex<HashMap<IpAddr, Guests>>,
}

/// The connections of one address.
#[derive(Default)]
struct Guests {
    open: usize,
    /// Handshakes under way, the oldest first; dropped, one is given up.
    handshakes: VecDeque<(u64, oneshot::Sender<()>)>,
    /// Numbers them.
    begun: u64,
}

impl Connections {
    /// None is open yet. The cap follows from the configuration and from how many files this process may have open.
    #[must_use]
    pub fn new(config: Current) -> Self {
        let open = getrlimit(Resource::RLIMIT_NOFILE).map_or(1_024, |(soft, _)| soft);
        let cap = cap(&config.get(), open);
        Self { config, cap, counts: Arc::default() }
    }

    /// How many are allowed at once.
    #[must_use]
    pub fn cap(&self) -> usize {
        self.cap
    }

    /// Whether places are running out: then a client that holds one must hurry. As many live sockets as are allowed by default are no
    /// crowd.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        self.counts.open.load(Ordering::Relaxed) * 8 >= self.cap * 7
    }

    /// The node, which is about to end, answered a request.
    pub fn on_last_answer(&self) {
        self.counts.last.store(boot().0, Ordering::Relaxed);
    }

    /// Waits until no connection is open, or no request has come for a while.
    pub async fn quiet(&self) {
        let began = boot();
        let open = || self.counts.open.load(Ordering::Relaxed) > 0;
        let asked = || began.max(Boot(self.counts.last.load(Ordering::Relaxed)));
        if !open() {
            return;
        }
        while boot().since(asked()) < QUIET && boot().since(began) < PARTING_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A connection was made: it is tuned, and counted until that is dropped. `None`: its address has too many, or it is gone already.
    #[must_use]
    pub fn count_in(&self, stream: &TcpStream) -> Option<Counted> {
        tune(stream);
        let peer = stream.peer_addr().ok()?;
        let counted = self.count(peer);
        if counted.is_none() {
            tracing::debug!(%peer, "one address has too many connections: this one is closed");
        }
        counted
    }

    fn count(&self, peer: SocketAddr) -> Option<Counted> {
        let (address, place) = (peer.ip(), place(peer.ip()));
        let doors = &self.config.get().doors;
        let most = match doors.connections_per_address {
            _ if doors.trusts(address) => usize::MAX,
            Some(most) => most,
            // A proxy on this machine that the configuration does not name.
            None if address.to_canonical().is_loopback() => usize::MAX,
            None => PER_ADDRESS,
        };
        let mut by_address = self.counts.by_address.lock();
        let here = by_address.entry(place).or_default();
        if here.open >= most {
            return None;
        }
        here.open += 1;
        self.counts.open.fetch_add(1, Ordering::Relaxed);
        Some(Counted { all: self.clone(), peer, place })
    }
}

/// One connection, for as long as it lasts.
pub struct Counted {
    all: Connections,
    peer: SocketAddr,
    place: IpAddr,
}

impl Counted {
    /// Who is at its other end.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Waits for its TLS handshake, as long as it may take.
    ///
    /// # Errors
    /// Its own; [`io::ErrorKind::TimedOut`] when it is given up.
    pub async fn handshake<T>(
        &self,
        handshake: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        let begun = Instant::now();
        let (_under_way, mut given_up) = self.begin_handshake();
        let mut handshake = std::pin::pin!(handshake);
        loop {
            let most = if self.all.is_crowded() { CROWDED_HANDSHAKE } else { HANDSHAKE_MAX };
            let left = most.saturating_sub(begun.elapsed());
            tokio::select! {
                done = &mut handshake => return done,
                _ = &mut given_up => return Err(io::ErrorKind::TimedOut.into()),
                () = tokio::time::sleep(left.min(LOOK_AROUND)) => if left <= LOOK_AROUND {
                    return Err(io::ErrorKind::TimedOut.into());
                },
            }
        }
    }

    /// The receiver hears when it is given up: when it is the oldest of an address that has too many.
    fn begin_handshake(&self) -> (Handshake<'_>, oneshot::Receiver<()>) {
        let (sender, receiver) = oneshot::channel();
        let mut by_address = self.all.counts.by_address.lock();
        let here = by_address.entry(self.place).or_default();
        here.begun += 1;
        let number = here.begun;
        here.handshakes.push_back((number, sender));
        if here.handshakes.len() > (self.all.cap / HANDSHAKES).max(1) {
            here.handshakes.pop_front();
        }
        (Handshake { of: self, number }, receiver)
    }
}

/// A handshake under way.
struct Handshake<'c> {
    of: &'c Counted,
    number: u64,
}

impl Drop for Handshake<'_> {
    fn drop(&mut self) {
        if let Some(here) = self.of.all.counts.by_address.lock().get_mut(&self.of.place) {
            here.handshakes.retain(|(number, _)| *number != self.number);
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let counts = &self.all.counts;
        counts.open.fetch_sub(1, Ordering::Relaxed);
        let mut by_address = counts.by_address.lock();
        if let Some(here) = by_address.get_mut(&self.place) {
            here.open = here.open.saturating_sub(1);
            if here.open == 0 {
                by_address.remove(&self.place);
            }
        }
    }
}

/// What counts as one address: in IPv6 the owner of one has all of its /64.
#[must_use]
pub fn place(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let mut octets = v6.octets();
            octets[8..].fill(0);
            IpAddr::from(octets)
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// As many connections as the configuration asks for and `open` descriptors allow.
fn cap(config: &Config, open: u64) -> usize {
    let reserved = RESERVED + RESERVED_PER_JOB * config.jobs.len() as u64;
    let possible = usize::try_from(open.saturating_sub(reserved)).unwrap_or(usize::MAX);
    let possible = possible.max(FEWEST);
    match config.doors.max_connections {
        Some(asked) if asked > possible => {
            tracing::warn!(
                "limits.max_connections is {asked}, but with {open} descriptors only {possible} are possible: raise the limit (LimitNOFILE= of systemd, --ulimit nofile= of Docker)"
            );
            possible
        }
        Some(asked) => asked,
        None => possible.min(config.live.sockets_per_node + BESIDE_LIVE),
    }
}

fn tune(stream: &TcpStream) {
    let unacknowledged = u32::try_from(UNACKNOWLEDGED_MAX.as_millis()).unwrap_or(u32::MAX);
    let set = stream.set_nodelay(true).map_err(|error| error.to_string()).and_then(|()| {
        setsockopt(stream, sockopt::TcpUserTimeout, &unacknowledged)
            .map_err(|error| error.to_string())
    });
    let set = set.and_then(|()| {
        SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_MAX).map_err(|error| error.to_string())
    });
    if let Err(error) = set {
        // A peer that is gone already; it costs nothing.
        tracing::debug!(%error, "the connection could not be tuned");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(limits: &str) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("soloist.toml");
        std::fs::write(&file, limits).unwrap();
        soloist_config::examine(Some(&file), Default::default(), &|_| None).config.unwrap()
    }

    #[test]
    fn descriptors_are_kept_back_for_guards_and_store() {
        let usual = config("");
        assert_eq!(cap(&usual, 65_536), 12_000);
        assert_eq!(cap(&usual, 1_024), 1_024 - 96);
        let job = "[[job]]\nname = \"a\"\ncommand = [\"true\"]\n";
        assert_eq!(cap(&config(job), 256), 256 - 96 - 8);
        assert_eq!(cap(&config("limits = { max_connections = 50 }"), 1_024), 50);
        assert_eq!(cap(&config("limits = { max_connections = 5000 }"), 1_024), 1_024 - 96);
        assert_eq!(cap(&usual, 64), FEWEST);
    }

    #[test]
    fn each_address_has_its_share_except_trusted_proxies() {
        let counting = |limits: &str| Connections::new(Current::new(config(limits)));
        let count = |all: &Connections, address: &str| {
            all.count(SocketAddr::new(address.parse().unwrap(), 4_711))
        };
        let past = |all: &Connections, address: &str, times: usize| {
            let open: Vec<Option<Counted>> = (0..times).map(|_| count(all, address)).collect();
            open.iter().filter(|counted| counted.is_none()).count()
        };
        let usual = counting("");
        assert_eq!(past(&usual, "192.0.2.1", 205), 5);
        assert_eq!(past(&usual, "192.0.2.1", 200), 0, "the others are over");
        assert_eq!(past(&usual, "127.0.0.1", 1_000), 0, "a proxy on this machine");
        assert_eq!(usual.counts.by_address.lock().len(), 0, "nothing is left of them");
        assert_eq!(usual.counts.open.load(Ordering::Relaxed), 0);
        let said = counting(
            "limits = { connections_per_address = 3 }\ntrusted_proxies = [\"10.0.0.0/8\"]",
        );
        assert_eq!(past(&said, "127.0.0.1", 5), 2);
        assert_eq!(past(&said, "10.1.1.1", 50), 0);
        let one: Vec<Option<Counted>> = (0..3).map(|_| count(&said, "2001:db8::1")).collect();
        assert_eq!(past(&said, "2001:db8::2", 1), 1, "the same /64");
        assert_eq!(past(&said, "2001:db8:0:1::2", 1), 0);
        drop(one);
    }

    #[tokio::test]
    async fn of_an_address_with_too_many_handshakes_the_oldest_is_given_up_and_a_new_one_is_not() {
        let all = Connections::new(Current::new(config("limits = { max_connections = 16 }")));
        let peer = |address: &str| SocketAddr::new(address.parse().unwrap(), 4_711);
        let silent = |all: &Connections, address: &str| {
            let counted = all.count(peer(address)).unwrap();
            tokio::spawn(async move {
                counted.handshake(std::future::pending::<io::Result<()>>()).await
            })
        };
        let mut strangers: Vec<_> = (0..4).map(|_| silent(&all, "127.0.0.9")).collect();
        tokio::task::yield_now().await;
        assert!(strangers.iter().all(|one| !one.is_finished()), "a quarter of all places");
        let last = silent(&all, "127.0.0.9");
        let first = strangers.remove(0).await.unwrap();
        assert_eq!(first.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(!last.is_finished() && strangers.iter().all(|one| !one.is_finished()));
        // From the same address, too: who says something is done before it is the oldest.
        let honest = all.count(peer("127.0.0.9")).unwrap();
        assert_eq!(honest.handshake(std::future::ready(Ok(7))).await.unwrap(), 7);
        drop(honest);
        for one in strangers.into_iter().chain([last]) {
            one.abort();
            drop(one.await);
        }
        assert_eq!(all.counts.by_address.lock().len(), 0, "nothing is left of them");
    }
}
