//! Random faults over all libraries at once, from a seed: nodes killed and paused, ways cut, the store away, the watcher killed, its socket
//! removed, clients paused and killed, their clocks set, with a life line and without one. Whatever happens, no two work at one time, and afterwards somebody
//! works.
//!
//! `SOLOIST_CLIENT_FAULTS=500` makes so many (12 else), `SOLOIST_CLIENT_SEED=N` repeats a seed, which is printed.

use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;

use super::driver::{Driver, Language};
use super::proxy::{Proxy, Way};
use super::witness::Acts;
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::service::give_a_clock;

const NAME: &str = "ship";
const SOCKET: &str = "line.sock";

/// SplitMix64: the same numbers from the same seed, on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("a small number")
    }

    /// From a part of the lease of two seconds to more than it.
    fn while_of_it(&mut self) {
        std::thread::sleep(Duration::from_millis(200 + self.next() % 2_800));
    }
}

/// A client, and its own way to each node.
struct Member {
    driver: Driver,
    ways: [Proxy; 2],
    watched: bool,
}

impl Member {
    fn start(
        language: Language,
        nodes: &[Node; 2],
        token: &str,
        acts: &Acts,
        watched: bool,
    ) -> Self {
        let ways = [Proxy::to(&nodes[0].url), Proxy::to(&nodes[1].url)];
        let addresses = [ways[0].url.as_str(), ways[1].url.as_str()];
        let socket = acts.file().with_file_name(if watched { SOCKET } else { "none" });
        let mut with = Command::new("true");
        give_a_clock(&mut with, &clock_of(language, acts));
        with.env("SOLOIST_LIFELINE", socket);
        let set =
            with.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
        let environment: Vec<(&str, &str)> = set.collect();
        let file = acts.file();
        let driver = Driver::start_in(
            (language, "lease"),
            &addresses,
            token,
            NAME,
            file,
            "polite",
            &environment,
        );
        Self { driver, ways, watched }
    }
}

/// Another one of the same language, with a life line or without.
fn again(old: &Member, nodes: &[Node; 2], token: &str, acts: &Acts, random: &mut Random) -> Member {
    Member::start(old.driver.language, nodes, token, acts, random.below(3) > 0)
}

/// The file that sets the clock of all programs of that language, as of one machine.
fn clock_of(language: Language, acts: &Acts) -> PathBuf {
    let file = acts.file().with_file_name(format!("clock-{language:?}"));
    if !file.exists() {
        std::fs::write(&file, "+0").expect("written");
    }
    file
}

fn watcher(acts: &Acts) -> Option<Pid> {
    let line = UnixStream::connect(acts.file().with_file_name(SOCKET)).ok()?;
    let peer = getsockopt(&line, sockopt::PeerCredentials).ok()?;
    Some(Pid::from_raw(peer.pid()))
}

fn number(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

#[test]
fn random_faults_never_let_two_clients_work_at_one_time() {
    let rounds = number("SOLOIST_CLIENT_FAULTS").unwrap_or(12);
    let seed = number("SOLOIST_CLIENT_SEED")
        .unwrap_or_else(|| u64::from(std::process::id()) ^ soloist::clock::boot().0);
    println!("SOLOIST_CLIENT_SEED={seed} SOLOIST_CLIENT_FAULTS={rounds}");
    let mut random = Random(seed);
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &format!("lifeline = {SOCKET:?}\n"));
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let mut nodes = [ground.start("node-a"), ground.start("node-b")];
    let acts = Acts::of(&ground, NAME);
    let mut members = Language::ALL
        .map(|language| Member::start(language, &nodes, &token, &acts, random.below(3) > 0));
    let mut starts = 0;
    for round in 0..rounds {
        // Half of all faults hit the holder.
        let newest = acts.all().pop().map_or(0, |act| act.pid);
        let holder = members.iter().position(|member| member.driver.id() == newest);
        let victim = holder.filter(|_| random.below(2) == 0).unwrap_or_else(|| random.below(3));
        let (node, which) = (random.below(2), random.below(11));
        println!(
            "round {round}: fault {which} at {:?}, watched: {}, node {node}",
            members[victim].driver.language, members[victim].watched
        );
        match which {
            0 => {
                nodes[node].kill();
                random.while_of_it();
                nodes[node] = ground.start(["node-a", "node-b"][node]);
                for member in &members {
                    member.ways[node].point(&nodes[node].url);
                }
            }
            1 => {
                nodes[node].signal(Signal::SIGSTOP);
                random.while_of_it();
                nodes[node].signal(Signal::SIGCONT);
            }
            2 => {
                members[victim].driver.signal(Signal::SIGSTOP);
                random.while_of_it();
                members[victim].driver.signal(Signal::SIGCONT);
            }
            3 => {
                members[victim].driver.signal(Signal::SIGKILL);
                members[victim].driver.wait();
                members[victim] = again(&members[victim], &nodes, &token, &acts, &mut random);
            }
            7 => {
                if let Some(watcher) = watcher(&acts) {
                    kill(watcher, Signal::SIGKILL).expect("our own");
                }
            }
            8 => drop(std::fs::remove_file(acts.file().with_file_name(SOCKET))),
            9 => {
                redis.pause();
                random.while_of_it();
                redis.resume();
            }
            10 => {
                let clock = clock_of(members[victim].driver.language, &acts);
                let by = ["+0", "+3600", "-3600", "+86400"][random.below(4)];
                std::fs::write(clock, by).expect("written");
                random.while_of_it();
            }
            way => {
                let way =
                    [Way::Hole, Way::Deaf, [Way::Closed, Way::Says(503)][random.below(2)]][way - 4];
                let whole = random.below(2) == 0;
                members[victim].ways[node].set(way);
                if whole {
                    members[victim].ways[1 - node].set(way);
                }
                random.while_of_it();
                for each in &members[victim].ways {
                    // Connections that fell silent are cut: no cable stays pulled for ever.
                    each.set(Way::Closed);
                    each.set(Way::Open);
                }
            }
        }
        // Ended loudly, because it was too late: as it should, and it is started again.
        for member in &mut members {
            if !member.driver.lives() {
                let (status, said) = member.driver.wait();
                // 9: by the watchdog's thread, when the main one had no time.
                let is_ours = status.code() == Some(76) || status.signal() == Some(9);
                // The watcher says nothing to who is killed.
                let told = said.contains("another may begin")
                    || (member.watched && status.signal() == Some(9));
                assert!(is_ours && told, "seed {seed}, round {round}: {status} {said}");
                *member = again(member, &nodes, &token, &acts, &mut random);
            }
        }
        let before = acts.all().len();
        acts.until(&format!("somebody works after round {round} of seed {seed}"), before, |act| {
            act.word == "beat"
        });
        acts.judge();
        starts = acts.all().iter().filter(|act| act.word == "start").count();
    }
    for member in &mut members {
        member.driver.close();
    }
    acts.judge();
    drop(nodes);
    if let Some(watcher) = watcher(&acts) {
        // It may have ended.
        kill(watcher, Signal::SIGTERM).ok();
    }
    println!("{rounds} faults, {starts} grants, 0 overlaps, seed {seed}");
}
