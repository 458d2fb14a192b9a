//! The Redis Cluster under test: three masters and a replica of each, and what is done to the one that has a job.

use std::net::IpAddr;
use std::thread::sleep;
use std::time::Duration;

use crate::dice::Dice;
use crate::redis::RedisServer;
use crate::redis_cluster::RedisCluster;
use crate::wait::until;

/// Masters count as failed after this: shorter than many of the stops below, and longer than some.
const NODE_TIMEOUT_MS: u32 = 1_000;
/// Whatever was answered is on the disk: a master that comes back has forgotten nothing, a replica may not have heard it.
const DURABLE: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

/// What is done to the servers. A number is that of a job, whose master it is; the one behind the last means what belongs to no job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// `kill -9`; it comes back on its files, before or after its replica was promoted.
    Kill(usize),
    /// SIGSTOP, often for so long that its replica is promoted, and the old master wakes up beside it.
    Freeze(usize),
    /// Its replica hears nothing for a while and then takes its place.
    FailOver(usize),
    /// An operator lets its replica take its place; nothing is lost.
    HandOver(usize),
    /// All masters refuse to write.
    TooFewReplicas,
    /// All members end every connection.
    CutConnections,
}

impl Harm {
    /// For counting.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Kill(_) => "kill -9 of a master",
            Self::Freeze(_) => "SIGSTOP of a master",
            Self::FailOver(_) => "fail-over of a master that loses writes",
            Self::HandOver(_) => "CLUSTER FAILOVER",
            Self::TooFewReplicas => "masters without enough replicas",
            Self::CutConnections => "all connections ended by the members",
        }
    }

    /// One of them, and how long it lasts, with leases of two seconds.
    pub(crate) fn random(dice: &mut Dice, jobs: usize) -> (Self, Duration) {
        let (short, around) = (dice.between(0, 800), dice.between(100, 2_500));
        let longer = dice.between(1_500, 4_500);
        let job = dice.index(jobs + 1);
        match dice.below(8) {
            0 | 1 => (Self::Kill(job), if dice.below(2) == 0 { short } else { longer }),
            2 | 3 => (Self::Freeze(job), if dice.below(2) == 0 { around } else { longer }),
            4 | 5 => (Self::FailOver(job), around),
            6 => (Self::HandOver(job), short),
            _ if dice.below(2) == 0 => (Self::TooFewReplicas, around),
            _ => (Self::CutConnections, short),
        }
    }
}

/// The servers of one cluster of nodes.
pub(crate) struct Members {
    servers: RedisCluster,
}

impl Members {
    /// Starts them where nodes reach them.
    pub(crate) fn start(address: IpAddr) -> Self {
        Self { servers: RedisCluster::start_at(address, NODE_TIMEOUT_MS, &DURABLE) }
    }

    pub(crate) fn url(&self) -> String {
        self.servers.url()
    }

    /// Does it, lets it last, and heals it. `jobs` are all names.
    pub(crate) fn suffer(&mut self, harm: Harm, jobs: &[&str], lasts: Duration) {
        match harm {
            Harm::Kill(job) => {
                let master = self.master_of(jobs, job);
                self.servers.members[master].kill();
                sleep(lasts);
                self.servers.members[master].restart();
            }
            Harm::Freeze(job) => {
                let master = &self.servers.members[self.master_of(jobs, job)];
                master.pause();
                sleep(lasts);
                master.resume();
            }
            Harm::FailOver(job) => {
                let (master, replica) = self.pair_of(jobs, job);
                self.servers.members[replica].pause();
                sleep(lasts);
                self.servers.members[master].kill();
                self.servers.members[replica].resume();
                self.until_master(replica);
                self.servers.members[master].restart();
            }
            Harm::HandOver(job) => {
                let (_, replica) = self.pair_of(jobs, job);
                // Refused while the replica has not caught up.
                until("a replica is asked to take over", || {
                    self.servers.members[replica].try_run::<()>(&["CLUSTER", "FAILOVER"]).ok()
                });
                self.until_master(replica);
                sleep(lasts);
            }
            Harm::TooFewReplicas => {
                let demand = |count| {
                    for member in &self.servers.members {
                        member.run::<()>(&["CONFIG", "SET", "min-replicas-to-write", count]);
                    }
                };
                demand("3");
                sleep(lasts);
                demand("0");
            }
            Harm::CutConnections => {
                for member in &self.servers.members {
                    for kind in ["normal", "pubsub"] {
                        member.run::<u64>(&["CLIENT", "KILL", "TYPE", kind]);
                    }
                }
            }
        }
        self.servers.until_healthy();
    }

    /// Whether `user` participates in `job`; `None` when no master says.
    pub(crate) fn participates(&self, job: &str, user: &str) -> Option<bool> {
        let says = |member: &RedisServer| crate::store::participates(member, job, user);
        // All but the master of the job send elsewhere.
        self.servers.members.iter().find_map(says)
    }

    fn master_of(&self, jobs: &[&str], job: usize) -> usize {
        let name = jobs.get(job).copied().unwrap_or("~");
        self.servers.master_of(&format!("soloist:{{{name}}}:record"), 0)
    }

    /// The master of a job, and its replica.
    fn pair_of(&self, jobs: &[&str], job: usize) -> (usize, usize) {
        let master = self.master_of(jobs, job);
        let port = format!("master_port:{}", self.servers.members[master].port());
        let follows = |member: &RedisServer| {
            let info: String = member.run(&["INFO", "replication"]);
            info.lines().any(|line| line.trim() == port)
        };
        let replica = self.servers.members.iter().position(follows);
        (master, replica.expect("healthy: every master has one"))
    }

    fn until_master(&self, member: usize) {
        until("a replica is promoted", || {
            (self.servers.members[member].role() == "master").then_some(())
        });
    }
}
