//! ZooKeeper under test: three servers of its own for each cluster that keeps its leases there, the ways of its nodes to them, and what is done
//! to the servers.

use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::dice::Dice;
use crate::proxy::{Direction, Flow, HEALTHY, Proxy};
use crate::zookeeper::ZooKeeper;

const SERVERS: usize = 3;
const CHROOT: &str = "soloist";

/// What is done to the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    KillFollower,
    KillLeader,
    FreezeFollower,
    FreezeLeader,
    /// For longer than a lease.
    FreezeAll,
    RestartAll,
    /// All are killed, and start without their files.
    EmptyAll,
}

impl Harm {
    /// For counting.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::KillFollower => "kill -9 of a follower",
            Self::KillLeader => "kill -9 of the leader",
            Self::FreezeFollower => "SIGSTOP of a follower",
            Self::FreezeLeader => "SIGSTOP of the leader",
            Self::FreezeAll => "SIGSTOP of all of ZooKeeper",
            Self::RestartAll => "kill -9 of all of ZooKeeper",
            Self::EmptyAll => "ZooKeeper emptied",
        }
    }

    /// One of them, and how long it lasts, with leases of two seconds.
    pub(crate) fn random(dice: &mut Dice) -> (Self, Duration) {
        let (short, around) = (dice.between(0, 800), dice.between(100, 2_500));
        let longer = dice.between(2_100, 3_500);
        match dice.below(8) {
            0 => (Self::KillFollower, short),
            1 | 2 => (Self::KillLeader, short),
            3 => (Self::FreezeFollower, around),
            4 => (Self::FreezeLeader, around),
            5 => (Self::FreezeAll, longer),
            6 => (Self::RestartAll, short),
            _ => (Self::EmptyAll, short),
        }
    }
}

/// The servers of one cluster.
pub(crate) struct Ensemble {
    servers: ZooKeeper,
}

impl Ensemble {
    pub(crate) fn start() -> Self {
        Self { servers: ZooKeeper::start(SERVERS, &[], &[]) }
    }

    /// What `coordination` says to whoever reaches the servers themselves.
    pub(crate) fn url(&self) -> String {
        self.servers.url(CHROOT)
    }

    /// Does it, lets it last, and heals it.
    pub(crate) fn suffer(&mut self, harm: Harm, lasts: Duration) {
        let leader = self.servers.leader();
        let follower = (leader + 1) % SERVERS;
        match harm {
            Harm::KillFollower => self.restart(&[follower], lasts, false),
            Harm::KillLeader => self.restart(&[leader], lasts, false),
            Harm::FreezeFollower => self.freeze(&[follower], lasts),
            Harm::FreezeLeader => self.freeze(&[leader], lasts),
            Harm::FreezeAll => self.freeze(&[0, 1, 2], lasts),
            Harm::RestartAll => self.restart(&[0, 1, 2], lasts, false),
            Harm::EmptyAll => self.restart(&[0, 1, 2], lasts, true),
        }
        self.servers.wait();
    }

    fn restart(&mut self, some: &[usize], rest: Duration, emptied: bool) {
        some.iter().for_each(|nth| self.servers.kill(*nth));
        sleep(rest);
        some.iter().for_each(|nth| self.servers.start_again(*nth, emptied));
    }

    fn freeze(&self, some: &[usize], lasts: Duration) {
        some.iter().for_each(|nth| self.servers.signal(*nth, Signal::SIGSTOP));
        sleep(lasts);
        some.iter().for_each(|nth| self.servers.signal(*nth, Signal::SIGCONT));
    }
}

/// The relays of one node, one to each server.
pub(crate) struct Ways {
    proxies: Vec<Proxy>,
}

impl Ways {
    /// From `listen` to all of `ensemble`.
    pub(crate) fn to(ensemble: &Ensemble, listen: IpAddr) -> Self {
        let servers = ensemble.servers.addresses();
        Self { proxies: servers.into_iter().map(|server| Proxy::start(listen, server)).collect() }
    }

    /// What `coordination` says to the node.
    pub(crate) fn url(&self) -> String {
        let address = |proxy: &Proxy| SocketAddr::to_string(&proxy.address());
        let servers: Vec<String> = self.proxies.iter().map(address).collect();
        format!("zookeeper://{}/{CHROOT}", servers.join(","))
    }

    /// Changes one direction of all.
    pub(crate) fn set(&self, direction: Direction, flow: Flow) {
        self.proxies.iter().for_each(|proxy| proxy.set(direction, flow));
    }

    /// Loses the bytes of one direction, or does not any more.
    pub(crate) fn silence(&self, direction: Direction, on: bool) {
        self.set(direction, if on { Flow::Silent } else { HEALTHY });
    }

    /// Breaks every open connection.
    pub(crate) fn reset(&self) {
        self.proxies.iter().for_each(Proxy::reset);
    }
}
