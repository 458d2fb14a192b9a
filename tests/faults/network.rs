//! A network of our own, with cables that can be cut for real: packets are dropped, nothing answers, nobody is told.
//!
//! The whole program runs in a network namespace (and a mount namespace) of its own, where nothing leads to a real
//! interface; every node gets another one, joined to ours by a bridge. A cut sends packets to an address of the link
//! layer that nobody has, one direction at a time. Each end has three addresses, one for node and store, one for
//! tests and node, so that a node cut off from its store can still be asked, and one for node and ZooKeeper. All of it vanishes with the processes in
//! it. Where namespaces are not allowed (neither root nor user namespaces), the relay between node and store goes
//! silent instead; the run says which it was.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::proxy::Direction;

/// Set by [`enter`] for the program that it becomes.
const MARK: &str = "FAULTS_NETWORK";
/// The third number of the addresses through which nodes reach their store, and ZooKeeper.
const STORE: u8 = 0;
const ENSEMBLE: u8 = 2;
/// Nobody's address.
const NOBODY: &str = "02:00:00:00:00:fe";

/// Whether this process lives in namespaces of its own, after [`enter`].
pub(crate) fn is_real() -> bool {
    std::env::var_os(MARK).is_some_and(|mark| mark == "namespaces")
}

/// Becomes this program again inside namespaces, if they are allowed. To be called first.
pub(crate) fn enter() {
    if std::env::var_os(MARK).is_some() {
        return;
    }
    let flags: [&[&str]; 2] = [&["-n", "-m"], &["-r", "-n", "-m"]];
    let user = usize::from(!nix::unistd::geteuid().is_root());
    for flags in &flags[user..] {
        let probe =
            "ip link set lo up && ip link add probe type bridge && mount -t tmpfs none /mnt";
        let allowed = Command::new("unshare")
            .args(*flags)
            .args(["sh", "-c", probe])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if allowed {
            let exe = std::env::current_exe().expect("this program");
            let error = Command::new("unshare")
                .args(*flags)
                .args(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"])
                .arg(exe)
                .args(std::env::args_os().skip(1))
                .env(MARK, "namespaces")
                .exec();
            panic!("unshare cannot be started any more: {error}");
        }
    }
}

/// What stands between node and store, in words.
pub(crate) fn in_words() -> &'static str {
    if is_real() {
        "network namespaces: packets are dropped for real"
    } else {
        "a silent relay (neither root nor user namespaces: no network of our own)"
    }
}

/// The wire of one cluster: a bridge and its addresses, when the network is real.
pub(crate) struct Network {
    number: u8,
}

/// One node's end.
pub(crate) struct Port {
    number: u8,
    node: u8,
    /// Its namespace lives as long as this process, which ends when we do.
    holder: Child,
}

impl Network {
    /// Of the cluster with that number; `None` when there is no namespace to build it in.
    pub(crate) fn build(number: u8) -> Option<Self> {
        if !is_real() {
            return None;
        }
        let bridge = bridge(number);
        ip(&["link", "add", &bridge, "type", "bridge"]);
        ip(&["addr", "add", &format!("10.{number}.0.1/24"), "dev", &bridge]);
        for network in [1, ENSEMBLE] {
            ip(&["addr", "add", &format!("10.{number}.{network}.1/24"), "dev", &bridge]);
        }
        ip(&["link", "set", &bridge, "up"]);
        Some(Self { number })
    }

    /// Where the relays to the store listen.
    pub(crate) fn store_side(&self) -> IpAddr {
        Ipv4Addr::new(10, self.number, STORE, 1).into()
    }

    /// Where those to ZooKeeper listen.
    pub(crate) fn ensemble_side(&self) -> IpAddr {
        Ipv4Addr::new(10, self.number, ENSEMBLE, 1).into()
    }

    /// A namespace for the node with that number, joined to the bridge.
    pub(crate) fn join(&self, node: u8) -> Port {
        let holder = Command::new("unshare")
            .args(["-n", "sh", "-c", "echo here; read -r _"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut holder = holder.expect("unshare starts");
        let mut said = [0; 5];
        let out = holder.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(out, &mut said).expect("the namespace is there");
        let port = Port { number: self.number, node, holder };
        let (number, pid, cable) = (self.number, port.holder.id().to_string(), port.cable());
        ip(&["link", "add", &cable, "type", "veth", "peer", "name", "wire", "netns", &pid]);
        ip(&["link", "set", &cable, "master", &bridge(number), "up"]);
        port.inside(&["link", "set", "lo", "up"]);
        for network in [STORE, 1, ENSEMBLE] {
            port.inside(&["addr", "add", &format!("{}/24", port.at(network)), "dev", "wire"]);
        }
        port.inside(&["link", "set", "wire", "up"]);
        port
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        ip(&["link", "del", &bridge(self.number)]);
    }
}

impl Port {
    fn cable(&self) -> String {
        format!("cable{}-{}", self.number, self.node)
    }

    fn at(&self, network: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, self.number, network, 10 + self.node)
    }

    /// Where the node is to listen.
    pub(crate) fn node_side(&self) -> IpAddr {
        self.at(1).into()
    }

    /// What a command line begins with to run inside.
    pub(crate) fn enter(&self) -> [String; 3] {
        let namespace = format!("--net=/proc/{}/ns/net", self.holder.id());
        ["nsenter".to_owned(), namespace, "--".to_owned()]
    }

    fn inside(&self, arguments: &[&str]) {
        let pid = self.holder.id().to_string();
        run("nsenter", &[&["-t", &pid, "-n", "ip"], arguments].concat());
    }

    /// From now on packets of that direction, from or to the store, are lost, or are not any more.
    pub(crate) fn cut(&self, direction: Direction, cut: bool) {
        self.cut_from(STORE, direction, cut);
    }

    /// As [`Self::cut`], from or to ZooKeeper.
    pub(crate) fn cut_ensemble(&self, direction: Direction, cut: bool) {
        self.cut_from(ENSEMBLE, direction, cut);
    }

    fn cut_from(&self, network: u8, direction: Direction, cut: bool) {
        let store = format!("10.{}.{network}.1", self.number);
        let (node, bridge) = (self.at(network).to_string(), bridge(self.number));
        let lost = ["lladdr", NOBODY, "nud", "permanent"];
        match (direction, cut) {
            (Direction::ToStore, true) => {
                let to = ["neigh", "replace", &store, "dev", "wire"];
                self.inside(&[&to[..], &lost].concat());
            }
            (Direction::ToStore, false) => {
                self.inside(&["neigh", "flush", "to", &store, "dev", "wire", "nud", "all"]);
            }
            (Direction::FromStore, true) => {
                let to = ["neigh", "replace", &node, "dev", &bridge];
                ip(&[&to[..], &lost].concat());
            }
            (Direction::FromStore, false) => {
                ip(&["neigh", "flush", "to", &node, "dev", &bridge, "nud", "all"]);
            }
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

fn bridge(number: u8) -> String {
    format!("bridge{number}")
}

fn ip(arguments: &[&str]) {
    run("ip", arguments);
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("iproute2 is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}
