//! The life line (contract 15), which each library uses by itself: a program that dies frees its lease at once, and one that was paused never wakes
//! up under a lease that has passed on. It comes on top of what the other laws hold the libraries to.

use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;
use soloist::clock;

use super::driver::{Driver, Language};
use super::proxy::{Proxy, Way};
use super::witness::Acts;
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

judged! {
    a_program_that_is_killed_frees_its_lease_at_once
    a_program_that_is_paused_is_dead_before_another_begins
    a_watcher_that_is_killed_is_replaced_and_the_work_is_watched_again
    a_node_that_is_killed_leaves_the_watch_as_it_is
    a_forked_child_has_a_line_of_its_own
    who_chose_to_be_left_alone_is_not_killed_and_does_nothing_more
    without_a_socket_all_is_as_before_and_said_once
    a_watcher_that_says_nothing_costs_no_lease
    work_that_does_not_end_ends_its_process_before_the_watcher_does
}

/// Two nodes on one store; the first has the life line.
struct Site {
    a: Node,
    b: Node,
    token: String,
    ground: Ground,
    _redis: RedisServer,
}

impl Site {
    fn new() -> Self {
        let redis = RedisServer::start(&[]);
        let ground = Ground::new(&redis.url(), "lifeline = \"line.sock\"\n");
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let a = ground.start("node-a");
        until("somebody listens", || UnixStream::connect(ground.path("line.sock")).ok().map(drop));
        let b = ground.start("node-b");
        Self { a, b, token, ground, _redis: redis }
    }

    fn socket(&self) -> PathBuf {
        self.ground.path("line.sock")
    }

    /// The watcher's process, which listens there.
    fn watcher(&self) -> Option<Pid> {
        let line = UnixStream::connect(self.socket()).ok()?;
        let peer = getsockopt(&line, sockopt::PeerCredentials).ok()?;
        Some(Pid::from_raw(peer.pid()))
    }

    /// A client on the life line, by the second node and then the first, with a lease of so many seconds.
    fn client(&self, language: Language, acts: &Acts, mode: &str, more: &[(&str, &str)]) -> Driver {
        let socket = self.socket();
        let mut environment = vec![
            ("SOLOIST_LIFELINE", socket.to_str().expect("UTF-8")),
            ("NODE_DEBUG", "soloist"),
            ("DRIVER_LOG", "1"),
        ];
        environment.extend(more);
        let (name, file) = (acts.name(), acts.file());
        let addresses = [self.b.url.as_str(), &self.a.url];
        Driver::start_in(
            (language, "lease"),
            &addresses,
            &self.token,
            name,
            file,
            mode,
            &environment,
        )
    }

    /// Waits until the list of what is held says of this lease that it is watched.
    async fn until_watched(&self, name: &str) {
        let api = self.b.api(&self.token);
        until_async(&format!("{name} is watched"), async || {
            let list = api.get("/api/v1/leases").await;
            let leases = list["leases"].as_array().expect("leases");
            let lease = leases.iter().find(|lease| lease["name"] == name)?;
            (lease["watched"] == true).then_some(())
        })
        .await;
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.a.kill();
        self.b.kill();
        if let Some(watcher) = self.watcher() {
            // It may have ended.
            kill(watcher, Signal::SIGTERM).ok();
        }
    }
}

const TEN: (&str, &str) = ("DRIVER_TTL", "10");

/// The next of the three.
fn another(language: Language) -> Language {
    let at = Language::ALL.iter().position(|each| *each == language).expect("one of them");
    Language::ALL[(at + 1) % 3]
}

fn boot() -> f64 {
    Duration::from_nanos(clock::boot().0).as_secs_f64()
}

async fn a_program_that_is_killed_frees_its_lease_at_once() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let mut first = site.client(language, &acts, "polite", &[TEN]);
        let start = acts.until_works(first.id());
        let mut second = site.client(another(language), &acts, "polite", &[TEN]);
        assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
        site.until_watched(acts.name()).await;
        let killed = boot();
        first.signal(Signal::SIGKILL);
        let next = acts.until_works(second.id());
        // A lease lasts 10 s.
        in_time(next.at - killed < 1.0, || format!("{language:?}: {killed}, then {next:?}"));
        first.wait();
        second.close();
        acts.judge();
    }
}

/// For longer than its lease of two seconds.
async fn a_program_that_is_paused_is_dead_before_another_begins() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let mut first = site.client(language, &acts, "hog", &[]);
        let start = acts.until_works(first.id());
        site.until_watched(acts.name()).await;
        let mut second = site.client(another(language), &acts, "polite", &[]);
        assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
        first.signal(Signal::SIGSTOP);
        let (status, _) = first.wait();
        holds(status.signal() == Some(9), || format!("{language:?} was not killed: {status}"));
        let next = acts.until_works(second.id());
        assert!(acts.goes_on(next.token, 25), "{language:?}: the second goes on");
        acts.judge();
        second.close();
    }
}

async fn a_watcher_that_is_killed_is_replaced_and_the_work_is_watched_again() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let mut first = site.client(language, &acts, "polite", &[TEN]);
        let start = acts.until_works(first.id());
        site.until_watched(acts.name()).await;
        let before = site.watcher().expect("a watcher");
        kill(before, Signal::SIGKILL).expect("our own watcher");
        until("there is another", || site.watcher().filter(|now| *now != before));
        let api = site.b.api(&site.token);
        until_async("the new one watches it", async || {
            let text = api.get("/api/v1/leases").await.to_string();
            text.contains("\"watched\":true").then_some(())
        })
        .await;
        assert!(acts.goes_on(start.token, 25), "{language:?}: it works on");
        let mut second = site.client(another(language), &acts, "polite", &[TEN]);
        assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
        let killed = boot();
        first.signal(Signal::SIGKILL);
        let next = acts.until_works(second.id());
        in_time(next.at - killed < 1.0, || format!("{language:?}: {killed}, then {next:?}"));
        let (_, said) = first.wait();
        let lost = said.find("not watched").expect(&said);
        assert!(said[lost..].contains("life line: watched"), "{language:?}: {said}");
        second.close();
        acts.judge();
    }
}

async fn a_node_that_is_killed_leaves_the_watch_as_it_is() {
    for language in Language::ALL {
        let mut site = Site::new();
        let acts = Acts::of(&site.ground, language.word());
        let mut first = site.client(language, &acts, "hog", &[]);
        let start = acts.until_works(first.id());
        site.until_watched(acts.name()).await;
        let watcher = site.watcher();
        site.a.kill();
        let on = acts.goes_on(start.token, 120);
        in_time(on, || format!("{language:?}: the lease was lost with the node"));
        assert_eq!(site.watcher(), watcher, "the watcher lives on");
        first.signal(Signal::SIGSTOP);
        let (status, _) = first.wait();
        holds(status.signal() == Some(9), || format!("{language:?} was not killed: {status}"));
        let mut second = site.client(another(language), &acts, "polite", &[]);
        acts.until_works(second.id());
        acts.judge();
        second.close();
    }
}

/// Java does not fork; what Node starts is a new program. The child is killed, and its parent works on under a lease of its own.
async fn a_forked_child_has_a_line_of_its_own() {
    let site = Site::new();
    let (acts, theirs) = (Acts::of(&site.ground, "family"), Acts::of(&site.ground, "family-child"));
    let mut parent = site.client(Language::Python, &acts, "fork-own", &[TEN]);
    let start = acts.until_works(parent.id());
    let child = theirs.until("the child works", 0, |act| act.word == "beat");
    site.until_watched(acts.name()).await;
    site.until_watched(theirs.name()).await;
    let mut other = site.client(Language::Node, &theirs, "polite", &[TEN]);
    assert!(theirs.goes_on(child.token, 25), "the child is the only one");
    kill(Pid::from_raw(child.pid), Signal::SIGKILL).expect("a child of ours");
    let killed = boot();
    let next = theirs.until_works(other.id());
    in_time(next.at - killed < 1.0, || format!("{killed}, then {next:?}"));
    assert!(acts.goes_on(start.token, 25), "the parent works on");
    site.until_watched(acts.name()).await;
    parent.close();
    other.close();
    acts.judge();
    theirs.judge();
}

/// As under a debugger. Its library keeps the deadline all the same.
async fn who_chose_to_be_left_alone_is_not_killed_and_does_nothing_more() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let leave = ("DRIVER_OVERRUN", "leave");
        let mut first = site.client(language, &acts, "polite", &[leave]);
        acts.until_works(first.id());
        site.until_watched(acts.name()).await;
        first.signal(Signal::SIGSTOP);
        let mut second = site.client(another(language), &acts, "polite", &[]);
        let next = acts.until_works(second.id());
        holds(first.lives(), || format!("{language:?} was killed"));
        first.signal(Signal::SIGCONT);
        assert!(acts.goes_on(next.token, 25), "{language:?}: the second goes on");
        second.close();
        first.signal(Signal::SIGKILL);
        let (_, said) = first.wait();
        assert!(said.contains("it is not killed in time: overrun = leave"), "{language:?}: {said}");
        acts.judge();
    }
}

async fn without_a_socket_all_is_as_before_and_said_once() {
    let site = Site::new();
    let nowhere = site.ground.path("none.sock");
    for language in Language::ALL {
        for (named, word) in [("", "there is no"), (nowhere.to_str().expect("UTF-8"), "none.sock")]
        {
            let acts = Acts::of(&site.ground, &format!("{}-{}", language.word(), named.len()));
            let none = ("SOLOIST_LIFELINE", named);
            let mut client = site.client(language, &acts, "polite", &[none]);
            let start = acts.until_works(client.id());
            // Longer than the lease of two seconds.
            let on = acts.goes_on(start.token, 120);
            in_time(on, || format!("{language:?}: the lease was lost"));
            let said = client.close();
            let lines: Vec<&str> =
                said.lines().filter(|line| line.contains("life line: ")).collect();
            let [line] = lines[..] else { panic!("{language:?}: {said}") };
            assert!(line.contains("not watched") && line.contains(word), "{language:?}: {line}");
        }
    }
}

/// One that takes what is said, and one that takes nothing.
async fn a_watcher_that_says_nothing_costs_no_lease() {
    let site = Site::new();
    let path = site.ground.path("silent.sock");
    // Who connects waits in its queue.
    let _silent = UnixListener::bind(&path).expect("a socket");
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let silent = ("SOLOIST_LIFELINE", path.to_str().expect("UTF-8"));
        let begun = boot();
        let mut client = site.client(language, &acts, "polite", &[silent]);
        let start = acts.until_works(client.id());
        in_time(start.at - begun < 4.0, || {
            format!("{language:?} began after {}", start.at - begun)
        });
        let on = acts.goes_on(start.token, 150);
        in_time(on, || format!("{language:?}: the lease was lost"));
        let said = client.close();
        assert!(said.contains("it did not answer within a second"), "{language:?}: {said}");
    }
    // The watcher stands still while it watches.
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, &format!("{}-still", language.word()));
        let mut client = site.client(language, &acts, "polite", &[]);
        let start = acts.until_works(client.id());
        site.until_watched(acts.name()).await;
        let watcher = site.watcher().expect("a watcher");
        kill(watcher, Signal::SIGSTOP).expect("our own watcher");
        let on = acts.goes_on(start.token, 150);
        kill(watcher, Signal::SIGCONT).expect("our own watcher");
        in_time(on, || format!("{language:?}: the lease was lost"));
        client.signal(Signal::SIGKILL);
        client.wait();
    }
}

/// The library's own end comes first: with its exit code and its words.
async fn work_that_does_not_end_ends_its_process_before_the_watcher_does() {
    let site = Site::new();
    let socket = site.socket();
    let environment = [("SOLOIST_LIFELINE", socket.to_str().expect("UTF-8")), TEN];
    let mut all = Vec::new();
    for language in Language::ALL {
        let (acts, proxy) = (Acts::of(&site.ground, language.word()), Proxy::to(&site.b.url));
        let (name, file) = (acts.name(), acts.file());
        let addresses = [proxy.url.as_str()];
        let hog = Driver::start_in(
            (language, "lease"),
            &addresses,
            &site.token,
            name,
            file,
            "hog",
            &environment,
        );
        acts.until_works(hog.id());
        site.until_watched(name).await;
        proxy.set(Way::Hole);
        all.push((hog, proxy));
    }
    for (mut hog, _way) in all {
        let (status, said) = hog.wait();
        in_time(status.code() == Some(76), || format!("{:?}: {status} {said}", hog.language));
        assert!(said.contains("not ended in time"), "{:?}: {said}", hog.language);
    }
}
