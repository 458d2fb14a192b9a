//! What public reports about other lock clients found, and its kind, asked of each library that can have it.
//!
//! | law | Python | Node | Java | else |
//! | --- | --- | --- | --- | --- |
//! | a lease taken before a fork is nobody's in the child, though the parent ended (C5) | x | | | what Node starts is a new program; Java does not fork |
//! | an exception that strikes while a lease begins leaves nothing behind (C6) | x | | | no other language has exceptions that come from elsewhere |
//! | a thread that cannot be started keeps no lease (C7) | x | | x | Node: `without_its_watchdog` (C18) |
//! | a NAT that forgets all connections costs no lease (C8) | x | x | x | |
//! | a thread that is interrupted gives its lease back (C9) | | | x | no other language has such a flag |
//! | what ends a thread ends no loop (C10, C12) | x | x | x | Node: `throw undefined`, which is no error |
//! | work that closes its own loop waits for nobody (C11) | x | x | x | |
//! | a name with two addresses, of which the first refuses, is reached (C13) | x | x | x | Java over HTTP; by HTTPS the certificate is for the name |
//! | nodes that do not answer are told of (C16) | x | x | x | |
//! | a watchdog that cannot be loaded costs no process (C18) | | x | | only Node loads one |
//! | a loop is a whole program (C19) | x | x | x | `ends.rs`: every program there is one |
//! | a coroutine is refused (C19) | x | | | Node awaits it; Java has none |
//! | an empty name is refused at the call (C20) | x | x | x | |
//!
//! C1 to C4, C14 and C15 are `laws.rs`. C17 (5,000 names leave keys in the store) is the node's.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use super::driver::{Driver, Language, clients};
use super::proxy::Proxy;
use super::witness::Acts;
use crate::support::machine::{in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::wait::{until, until_async};

judged! {
    a_lease_taken_before_a_fork_is_nobodys_in_the_child
    an_exception_that_strikes_while_a_lease_begins_leaves_nothing_behind
    a_thread_that_cannot_be_started_keeps_no_lease
    a_nat_that_forgets_all_connections_costs_no_lease
    a_thread_that_is_interrupted_gives_its_lease_back
    what_ends_a_thread_ends_no_loop
    what_ends_a_thread_ends_no_collecting
    work_that_closes_its_own_loop_waits_for_nobody
    a_name_with_two_addresses_of_which_the_first_refuses_is_reached
    nodes_that_do_not_answer_are_told_of_once
    a_watchdog_that_cannot_be_loaded_costs_no_process
}

const TEN: (&str, &str) = ("DRIVER_TTL", "10");

struct Site {
    node: Node,
    token: String,
    ground: Ground,
}

impl Site {
    fn new() -> Self {
        let ground = Ground::new("sqlite:soloist.db", "");
        ground.add_user("li", "operator");
        let token = ground.token("li");
        Self { node: ground.start("node-a"), token, ground }
    }

    fn start(&self, language: Language, acts: &Acts, mode: &str, more: &[(&str, &str)]) -> Driver {
        self.start_at(&self.node.url, language, "lease", acts, mode, more)
    }

    fn start_at(
        &self,
        address: &str,
        language: Language,
        what: &str,
        acts: &Acts,
        mode: &str,
        more: &[(&str, &str)],
    ) -> Driver {
        let (name, file) = (acts.name(), acts.file());
        Driver::start_in((language, what), &[address], &self.token, name, file, mode, more)
    }

    async fn until_free(&self, name: &str) {
        let api = self.node.api(&self.token);
        until_async(&format!("{name} is free"), async || {
            let list = api.get("/api/v1/leases").await;
            let leases = list["leases"].as_array().expect("leases");
            leases.iter().all(|lease| lease["name"] != name).then_some(())
        })
        .await;
    }
}

/// As by a daemon, or by a server that loads the program before it forks.
async fn a_lease_taken_before_a_fork_is_nobodys_in_the_child() {
    let site = Site::new();
    let acts = Acts::of(&site.ground, "daemon");
    let mut parent = site.start(Language::Python, &acts, "fork-daemon", &[]);
    let (status, said) = parent.wait();
    assert!(status.success(), "{status} {said}");
    let child = until("the child has asked", || {
        std::fs::read_to_string(site.ground.path("daemon.acts.child"))
            .ok()
            .filter(|it| !it.is_empty())
    });
    assert_eq!(child, "stopped");
    let mut next = site.start(Language::Python, &acts, "polite", &[]);
    acts.until_works(next.id());
    next.close();
    acts.judge();
}

/// Forty times at a random instant of the beginning: of the lease that was being had nothing may go on.
async fn an_exception_that_strikes_while_a_lease_begins_leaves_nothing_behind() {
    let site = Site::new();
    let acts = Acts::of(&site.ground, "struck");
    let mut driver = site.start(Language::Python, &acts, "alarms", &[]);
    let times =
        until_async("it was struck forty times, or a lease is kept by nobody", async || {
            let times = acts.all().len();
            (times == 40 || !driver.lives()).then_some(times)
        })
        .await;
    let (status, said) = driver.wait();
    assert!(status.success() && times == 40, "after {times} times: {status} {said}");
}

async fn a_thread_that_cannot_be_started_keeps_no_lease() {
    let site = Site::new();
    for language in [Language::Python, Language::Java] {
        for nth in ["1", "2"] {
            let acts = Acts::of(&site.ground, &format!("{}-{nth}", language.word()));
            let threads = ("DRIVER_THREADS", nth);
            let mut driver =
                site.start_at(&site.node.url, language, "wait", &acts, "", &[TEN, threads]);
            let begun = soloist::clock::boot();
            acts.until("it has tried", 0, |act| act.word == "waited");
            site.until_free(acts.name()).await;
            let took = soloist::clock::boot().since(begun);
            assert!(driver.lives(), "{language:?}: it is free though the program lives");
            let said = driver.close();
            assert!(said.contains("start new thread") || said.contains("native thread"), "{said}");
            // A lease lasts 10 s.
            in_time(took.as_secs() < 6, || format!("{language:?}: it ran out: {took:?}"));
        }
    }
}

/// With ten connections in the pool.
async fn a_nat_that_forgets_all_connections_costs_no_lease() {
    let site = Site::new();
    for language in Language::ALL {
        let (acts, proxy) = (Acts::of(&site.ground, language.word()), Proxy::to(&site.node.url));
        let mut client = site.start_at(&proxy.url, language, "lease", &acts, "many", &[]);
        let start = acts.until_works(client.id());
        proxy.forget();
        // Longer than the lease of two seconds.
        let on = acts.goes_on(start.token, 150);
        in_time(on, || format!("{language:?}: the lease was lost"));
        client.close();
    }
}

async fn a_thread_that_is_interrupted_gives_its_lease_back() {
    let site = Site::new();
    let acts = Acts::of(&site.ground, "interrupted");
    let mut client = site.start(Language::Java, &acts, "interrupted", &[TEN]);
    let tokens = until("it has it three times", || {
        let starts = acts.all().into_iter().filter(|act| act.word == "start");
        let starts: Vec<f64> = starts.map(|act| act.at).collect();
        (starts.len() >= 3).then_some(starts)
    });
    in_time(tokens[2] - tokens[0] < 5.0, || format!("the leases ran out: {tokens:?}"));
    client.close();
}

async fn what_ends_a_thread_ends_no_loop() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let mut client = site.start(language, &acts, "dies", &[TEN]);
        let acts = until("it was tried three times", || {
            let all = acts.all();
            (all.len() >= 3).then_some(all)
        });
        in_time(acts[2].at - acts[0].at < 5.0, || format!("{language:?}: {acts:?}"));
        client.close();
    }
}

async fn what_ends_a_thread_ends_no_collecting() {
    let site = Site::new();
    let api = site.node.api(&site.token);
    for language in Language::ALL {
        let source = language.word();
        let path = format!("/api/v1/sources/{source}");
        let rules = json!({ "lease_ms": 60_000, "backoff": { "first_ms": 10, "max_ms": 10 } });
        let (status, said) = api.call(Method::PUT, &path, Some(rules)).await;
        assert!(status.is_success(), "{said}");
        let task = |nth: usize| json!({ "source": source, "key": format!("k{nth}"), "payload": { "exit": true, "fail": 1 } });
        let tasks = json!({ "tasks": (0..6).map(task).collect::<Vec<_>>() });
        let (status, said) = api.call(Method::POST, "/api/v1/tasks", Some(tasks)).await;
        assert!(status.is_success(), "{said}");
        let acts = Acts::of(&site.ground, source);
        let mut collector = site.start_at(&site.node.url, language, "collect", &acts, "60", &[]);
        until_async("all are done at the second try", async || {
            (api.get(&path).await["done"] == 6).then_some(())
        })
        .await;
        collector.close();
    }
}

/// And a second `close()`, by its program, ends, too.
async fn work_that_closes_its_own_loop_waits_for_nobody() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let mut client = site.start(language, &acts, "closes", &[TEN]);
        acts.until_works(client.id());
        let begun = soloist::clock::boot();
        site.until_free(acts.name()).await;
        let took = soloist::clock::boot().since(begun);
        in_time(took.as_secs() < 5, || format!("{language:?}: it ran out: {took:?}"));
        let said = client.close();
        assert!(!said.contains("RuntimeError"), "{language:?}: {said}");
        assert_eq!(acts.all().iter().filter(|act| act.word == "start").count(), 1, "{language:?}");
    }
}

async fn a_name_with_two_addresses_of_which_the_first_refuses_is_reached() {
    let site = Site::new();
    let hosts = site.ground.path("hosts");
    std::fs::write(&hosts, "127.0.0.2 two.test\n127.0.0.1 two.test\n127.0.0.1 localhost\n")
        .expect("a file");
    let java = format!("-Djdk.net.hosts.file={}", hosts.display());
    let address = site.node.url.replace("127.0.0.1", "two.test");
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let two = [("DRIVER_TWO", "1"), ("JDK_JAVA_OPTIONS", &*java)];
        let mut client = site.start_at(&address, language, "lease", &acts, "polite", &two);
        let start = acts.until_works(client.id());
        let on = acts.goes_on(start.token, 120);
        in_time(on, || format!("{language:?}: the lease was lost"));
        client.close();
    }
}

/// A wrong port and a wrong name.
async fn nodes_that_do_not_answer_are_told_of_once() {
    let site = Site::new();
    for language in Language::ALL {
        for address in ["http://127.0.0.1:1", "http://nowhere.invalid:80"] {
            let acts = Acts::of(&site.ground, &format!("{}-{}", language.word(), address.len()));
            let mut client = site.start_at(address, language, "wait", &acts, "", &[]);
            let (_, said) = client.wait();
            let times = said.matches("no node answers").count();
            assert_eq!(times, 1, "{language:?}, {address}: {said}");
            let host = address.trim_start_matches("http://");
            let host = host.trim_end_matches(":80");
            assert!(said.contains(host), "{language:?}, {address}: {said}");
        }
    }
}

/// As in a bundle, and as a text on the command line. The work blocks the event loop, so nothing else ends its process.
async fn a_watchdog_that_cannot_be_loaded_costs_no_process() {
    let site = Site::new();
    let bundle = site.ground.path("bundle");
    for (from, to) in [("node/src", "src"), ("node/tests", "tests")] {
        std::fs::create_dir_all(bundle.join(to)).expect("a directory");
        for file in std::fs::read_dir(clients(from)).expect("the library").flatten() {
            if file.file_name() != "watchdog.js" {
                std::fs::copy(file.path(), bundle.join(to).join(file.file_name())).expect("a copy");
            }
        }
    }
    std::fs::write(bundle.join("package.json"), "{\"type\":\"module\"}").expect("a file");
    let of = |program: &Path| format!("await import({:?})", program.join("tests/driver.mjs"));
    let (bundled, whole) = (of(&bundle), of(&clients("node")));
    for (name, text) in [("bundle", bundled), ("text", whole)] {
        let acts = Acts::of(&site.ground, name);
        let mut command = Command::new("node");
        command.args(["--input-type=module", "-e", &text, "driver"]);
        let file = acts.file().to_str().expect("UTF-8");
        let arguments = ["lease", &site.node.url, &site.token, name, file, "block"];
        let mut blocked = Driver::start_by(command, &arguments);
        let start = acts.until("it works", 0, |act| act.word == "beat");
        let mut second = site.start(Language::Python, &acts, "polite", &[]);
        let (status, said) = blocked.wait();
        assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{name}: {status} {said}");
        let next = acts.until_works(second.id());
        assert!(next.token > start.token);
        second.close();
        acts.judge();
    }
}

#[test]
fn a_coroutine_is_refused_where_it_is_given() {
    let file = Path::new("/dev/null");
    let addresses = ["http://127.0.0.1:1"];
    let mut driver =
        Driver::start(Language::Python, "lease", &addresses, "sol_x", "x", file, "async");
    let (status, said) = driver.wait();
    assert!(!status.success() && said.contains("the work is a coroutine"), "{said}");
}

#[test]
fn an_empty_name_is_refused_where_it_is_given() {
    for language in Language::ALL {
        for name in ["", ".", ".."] {
            let addresses = ["http://127.0.0.1:1"];
            let file = Path::new("/dev/null");
            let mut driver = Driver::start(language, "wait", &addresses, "sol_x", name, file, "");
            let (_, said) = driver.wait();
            assert!(said.contains("is no name"), "{language:?}: {said}");
        }
    }
}
