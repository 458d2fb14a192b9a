//! A real Redis Cluster for tests: three masters with a third of the slots each, and a replica of each.
//!
//! Made by commands, on free ports, bus ports too. Members may be killed, paused and spoken to like any
//! [`RedisServer`]. One cluster is shared by all tests that do not harm it: forming one takes a second or two.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::OnceLock;

use super::redis::RedisServer;
use super::wait::until;

/// Masters; as many replicas follow them.
const MASTERS: usize = 3;

/// Six servers that know each other.
pub(crate) struct RedisCluster {
    /// The first three were made masters, and the one three places behind each is its replica.
    pub members: Vec<RedisServer>,
    /// Where they find each other, and nodes find them.
    address: IpAddr,
}

impl RedisCluster {
    /// Forms a cluster whose masters count as failed when silent for `node_timeout_ms`.
    ///
    /// # Panics
    /// When it does not come about.
    #[must_use]
    pub(crate) fn start(node_timeout_ms: u32) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), node_timeout_ms, &[])
    }

    /// As [`Self::start`], at another address of this machine, and with more options (`["--appendonly", "yes"]`).
    ///
    /// # Panics
    /// When it does not come about.
    #[must_use]
    pub(crate) fn start_at(address: IpAddr, node_timeout_ms: u32, more: &[&str]) -> Self {
        let timeout = node_timeout_ms.to_string();
        let host = address.to_string();
        // The last one is for those who speak to one member alone.
        let listen = ["--protected-mode", "no", "--bind", &host, "127.0.0.1"];
        let listen = if address.is_loopback() { &[][..] } else { &listen };
        let start = || {
            // The usual bus port, 10,000 above, may be beyond the last port.
            let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let bus = free.local_addr().expect("its address").port();
            drop(free);
            let bus_port = bus.to_string();
            let options = [
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &bus_port],
                ["--cluster-announce-ip", &host],
                ["--cluster-node-timeout", &timeout],
                ["--cluster-require-full-coverage", "no"],
                ["--cluster-replica-validity-factor", "0"],
                ["--repl-diskless-sync-delay", "0"],
                ["--repl-ping-replica-period", "1"],
            ];
            (RedisServer::start(&[options.as_flattened(), listen, more].concat()), bus)
        };
        let (members, buses): (Vec<_>, Vec<_>) = (0..2 * MASTERS).map(|_| start()).unzip();
        let cluster = Self { members, address };
        for (i, member) in cluster.members.iter().enumerate() {
            member.run::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()]);
            if i < MASTERS {
                let first = (16_384 * i / MASTERS).to_string();
                let last = (16_384 * (i + 1) / MASTERS - 1).to_string();
                member.run::<()>(&["CLUSTER", "ADDSLOTSRANGE", &first, &last]);
            }
        }
        for (member, bus) in cluster.members.iter().zip(buses).skip(1) {
            let (port, bus) = (member.port().to_string(), bus.to_string());
            cluster.members[0].run::<()>(&["CLUSTER", "MEET", &host, &port, &bus]);
        }
        for i in MASTERS..2 * MASTERS {
            let id: String = cluster.members[i - MASTERS].run(&["CLUSTER", "MYID"]);
            until("a replica knows its master", || {
                cluster.members[i].try_run::<()>(&["CLUSTER", "REPLICATE", &id]).ok()
            });
        }
        cluster.until_healthy();
        cluster
    }

    /// The one that tests share which do not harm it. It dies with the process: nobody drops what is static.
    #[must_use]
    pub(crate) fn shared() -> &'static Self {
        static SHARED: OnceLock<RedisCluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            let (give, take) = std::sync::mpsc::channel();
            std::thread::Builder::new()
                .name("keeps the shared cluster".to_owned())
                .spawn(move || {
                    give.send(Self::start(15_000)).ok();
                    // The servers are bound to the thread that started them, which has to last as long as they.
                    loop {
                        std::thread::park();
                    }
                })
                .expect("a thread");
            take.recv().expect("the cluster forms")
        })
    }

    /// Its URL, with the addresses of the first masters.
    #[must_use]
    pub(crate) fn url(&self) -> String {
        let address = |member: &RedisServer| format!("{}:{}", self.address, member.port());
        let masters: Vec<String> = self.members[..MASTERS].iter().map(address).collect();
        format!("redis+cluster://{}/", masters.join(","))
    }

    /// The place in `members` of the master that has `key`, as `asked` sees it.
    ///
    /// # Panics
    /// When nobody has it.
    #[must_use]
    pub(crate) fn master_of(&self, key: &str, asked: usize) -> usize {
        let slot: u16 = self.members[asked].run(&["CLUSTER", "KEYSLOT", key]);
        let nodes: String = self.members[asked].run(&["CLUSTER", "NODES"]);
        let serves = |line: &str| {
            line.contains("master")
                && line.split(' ').skip(8).filter_map(|range| range.split_once('-')).any(
                    |(first, last)| {
                        let number = |text: &str| text.parse::<u16>().ok();
                        number(first).is_some_and(|first| first <= slot)
                            && number(last).is_some_and(|last| last >= slot)
                    },
                )
        };
        let line = nodes.lines().find(|line| serves(line)).expect("every slot is served");
        let at =
            |member: &RedisServer| line.contains(&format!("{}:{}@", self.address, member.port()));
        self.members.iter().position(at).expect("a member")
    }

    /// Waits until every member sees every slot served, and every replica follows its master.
    pub(crate) fn until_healthy(&self) {
        until("the cluster is healthy", || {
            self.members
                .iter()
                .all(|member| {
                    let cluster: String = member.try_run(&["CLUSTER", "INFO"]).unwrap_or_default();
                    let link: String = member.try_run(&["INFO", "replication"]).unwrap_or_default();
                    let nodes: String = member.try_run(&["CLUSTER", "NODES"]).unwrap_or_default();
                    let replicas = nodes.lines().filter(|line| line.contains("slave")).count();
                    cluster.contains("cluster_state:ok")
                        && cluster.contains("cluster_slots_ok:16384")
                        && replicas == MASTERS
                        // A replica that has confirmed nothing yet is sent nothing, for up to a second.
                        && (link.contains("role:master")
                            && link.contains("connected_slaves:1")
                            && !link.contains(",offset=0,")
                            || link.contains("master_link_status:up"))
                })
                .then_some(())
        });
    }
}
