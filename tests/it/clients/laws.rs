//! Laws that are asked of each library: nothing between "the deadline is near" and "the work is stopped" waits for who writes or reads a log; only a
//! node's answer counts, and only one that ends; a forked child has nothing; and no text costs anything.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;
use soloist::clock;

use super::driver::{Driver, Language};
use super::proxy::{Proxy, Way};
use super::witness::Acts;
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

judged! {
    output_that_nobody_reads_keeps_no_work_beyond_its_lease
    the_first_process_of_a_container_ends_though_its_event_loop_is_blocked
    a_log_handler_keeps_no_work_beyond_its_lease_and_costs_none
    what_no_node_said_extends_nothing_and_ends_nothing
    what_comes_in_drops_costs_no_lease_and_keeps_no_work_beyond_it
    of_no_answer_more_than_a_mebibyte_is_read
    who_waits_is_told_in_time_whatever_a_gateway_says
    a_forked_child_neither_keeps_nor_gives_back_what_its_parent_holds
    halves_of_pairs_cost_no_lease_and_no_line
    halves_of_pairs_in_an_error_cost_no_result
    half_a_pair_beside_good_results_costs_none_of_them
}

/// Two nodes on one store, and who may ask.
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
        let ground = Ground::new(&redis.url(), "");
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let (a, b) = (ground.start("node-a"), ground.start("node-b"));
        Self { a, b, token, ground, _redis: redis }
    }

    fn client(&self, language: Language, addresses: &[&str], acts: &Acts, mode: &str) -> Driver {
        Driver::start(language, "lease", addresses, &self.token, acts.name(), acts.file(), mode)
    }

    /// Waits a second for a lease of its own.
    fn waiter(&self, language: Language, addresses: &[&str]) -> Driver {
        let name = format!("{}-{}", language.word(), addresses.len());
        Driver::start(language, "wait", addresses, &self.token, &name, "/dev/null".as_ref(), "")
    }
}

/// Standard output and standard error are one full pipe of 4,096 bytes, and the node is frozen. The work asks nothing; Node's blocks its event loop, too.
async fn output_that_nobody_reads_keeps_no_work_beyond_its_lease() {
    let site = Site::new();
    let modes = [
        (Language::Python, "hog"),
        (Language::Java, "hog"),
        (Language::Node, "hog"),
        (Language::Node, "block"),
    ];
    for (language, mode) in modes {
        let acts = Acts::of(&site.ground, &format!("{}-{mode}", language.word()));
        let mut first = Driver::start_unread(
            language,
            &[&site.a.url],
            &site.token,
            acts.name(),
            acts.file(),
            mode,
        );
        let start = acts.until_works(first.id());
        let mut second = site.client(Language::Python, &[&site.b.url], &acts, "polite");
        assert!(acts.goes_on(start.token, 20), "{language:?}: it is the only one");
        site.a.signal(Signal::SIGSTOP);
        let next = acts.until_works(second.id());
        assert!(acts.goes_on(next.token, 25), "{language:?}: the second goes on");
        acts.judge();
        let (status, _) = first.wait();
        let blocked = mode == "block" && status.signal() == Some(9);
        assert!(blocked || status.code() == Some(76), "{language:?}, {mode}: {status}");
        site.a.signal(Signal::SIGCONT);
        second.close();
        acts.judge();
    }
}

/// No signal that it sends itself ends such a process, not even SIGKILL.
async fn the_first_process_of_a_container_ends_though_its_event_loop_is_blocked() {
    let site = Site::new();
    let acts = Acts::of(&site.ground, "first");
    let addresses = [site.a.url.as_str()];
    let (name, file) = (acts.name(), acts.file());
    let first = Driver::start_first(Language::Node, &addresses, &site.token, name, file, "block");
    let Some(mut first) = first else {
        println!("not judged: this machine lets nobody make a namespace of processes");
        return;
    };
    let start = acts.until("it works", 0, |act| act.word == "beat");
    assert_eq!(start.pid, 1);
    let mut second = site.client(Language::Python, &[&site.b.url], &acts, "polite");
    site.a.signal(Signal::SIGSTOP);
    let next = acts.until_works(second.id());
    assert!(acts.goes_on(next.token, 25), "the second goes on");
    acts.judge();
    let (status, said) = first.wait();
    assert!(!status.success() && said.contains("another may begin"), "{status} {said}");
    site.a.signal(Signal::SIGCONT);
    second.close();
    acts.judge();
}

/// A handler that never returns (a collector that is silent), that raises, or that asks the library. Node's log is the program's own `warning` event.
async fn a_log_handler_keeps_no_work_beyond_its_lease_and_costs_none() {
    let site = Site::new();
    for language in [Language::Python, Language::Java] {
        for mode in ["log-hangs", "log-raises", "log-calls"] {
            let acts = Acts::of(&site.ground, &format!("{}-{mode}", language.word()));
            let mut first = site.client(language, &[&site.a.url, &site.b.url], &acts, mode);
            let start = acts.until_works(first.id());
            // Longer than the lease of two seconds: the other node is asked.
            site.a.signal(Signal::SIGSTOP);
            let on = acts.goes_on(start.token, 120);
            in_time(on, || format!("{language:?}, {mode}: the lease was lost with one node"));
            let mut second = site.client(Language::Python, &[&site.b.url], &acts, "polite");
            site.a.signal(Signal::SIGCONT);
            first.close();
            acts.until_works(second.id());
            // And with no other node to ask, it stops in time.
            let mut first = site.client(language, &[&site.a.url], &acts, mode);
            second.close();
            let start = acts.until_works(first.id());
            let mut second = site.client(Language::Python, &[&site.b.url], &acts, "polite");
            assert!(acts.goes_on(start.token, 20), "{language:?}, {mode}");
            site.a.signal(Signal::SIGSTOP);
            let next = acts.until_works(second.id());
            assert!(acts.goes_on(next.token, 100), "{language:?}, {mode}: the second goes on");
            site.a.signal(Signal::SIGCONT);
            second.close();
            acts.judge();
            first.signal(Signal::SIGKILL);
            first.wait();
        }
    }
}

/// Status and content type, and a body: what stands between a program and its nodes says such things.
const NO_NODE: [(&str, &str); 24] = [
    ("200 OK|application/json", r#"{"status":"UP"}"#),
    ("200 OK|application/json", "{}"),
    ("200 OK|application/json", "[]"),
    ("200 OK|application/json", "null"),
    ("200 OK|application/json", r#""ok""#),
    ("200 OK|", ""),
    ("204 No Content|", ""),
    ("200 OK|text/html", "<html><body>Sign in</body></html>"),
    ("200 OK|application/json", r#"{"expires_in_ms":NaN,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":-2000,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":0,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":"2000","stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":true,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":1e999,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":60000000000,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":3600000,"stop":null}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":2000}"#),
    ("200 OK|application/json", r#"{"expires_in_ms":2000,"stop":{}}"#),
    ("302 Found|text/html", ""),
    ("403 Forbidden|text/html", "<html>blocked</html>"),
    ("404 Not Found|", ""),
    ("404 Not Found|application/json", r#"{"message":"no Route matched with those values"}"#),
    (
        "404 Not Found|application/problem+json",
        r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"No static resource","instance":"/api/v1"}"#,
    ),
    ("409 Conflict|application/json", r#"{"detail":"the way says so","status":409}"#),
];

/// A program of one language and what it did.
struct Member {
    driver: Driver,
    proxy: Proxy,
    acts: Acts,
    token: u64,
}

impl Member {
    /// Waits until it works under another lease than before.
    fn works(&mut self) {
        let (token, language) = (self.token, self.driver.language);
        let start = self.acts.until(&format!("{language:?} has a lease"), 0, |act| {
            act.token > token && act.word == "beat"
        });
        self.token = start.token;
    }
}

async fn what_no_node_said_extends_nothing_and_ends_nothing() {
    let site = Site::new();
    let api = site.b.api(&site.token);
    let mut members = Language::ALL.map(|language| {
        let (proxy, acts) = (Proxy::to(&site.a.url), Acts::of(&site.ground, language.word()));
        let driver = site.client(language, &[&proxy.url], &acts, "polite");
        Member { driver, proxy, acts, token: 0 }
    });
    let mut verdicts = Vec::new();
    for (head, body) in NO_NODE {
        members.iter_mut().for_each(Member::works);
        let before: Vec<usize> = members.iter().map(|member| member.proxy.answered()).collect();
        let from = clock::boot();
        for member in &members {
            member.proxy.set(Way::Gateway(head, body));
        }
        // Here another may begin.
        let mut open: BTreeSet<&str> = Language::ALL.iter().map(|each| each.word()).collect();
        let mut ends = Vec::new();
        until_async(&format!("{head} {body}: no lease is held"), async || {
            let leases = api.get("/api/v1/leases").await;
            let held = leases["leases"].as_array().expect("leases");
            open.retain(|word| {
                let holds = held.iter().any(|lease| lease["name"] == **word);
                if !holds {
                    ends.push(((*word).to_owned(), clock::boot()));
                }
                holds
            });
            open.is_empty().then_some(())
        })
        .await;
        let lasted = Duration::from_nanos(clock::boot().0 - from.0).as_secs_f64();
        for (member, before) in members.iter().zip(before) {
            let language = member.driver.language;
            let end = ends.iter().find(|(word, _)| word == language.word()).expect("its end");
            let end = Duration::from_nanos(end.1.0).as_secs_f64();
            let last = member.acts.all().into_iter().rfind(|act| act.token == member.token);
            let last = last.expect("an act");
            holds(last.at <= end, || {
                format!("{language:?}, {head} {body}: {last:?} is after {end}")
            });
            let since = Duration::from_nanos(from.0).as_secs_f64();
            if last.at - since < 0.6 {
                verdicts.push(format!("{language:?}, {head} {body}"));
            }
            let asked = member.proxy.answered() - before;
            assert!(
                u32::try_from(asked).is_ok_and(|asked| f64::from(asked) < 6.0 + 6.0 * lasted),
                "{language:?}, {head} {body}: asked {asked} times in {lasted} s"
            );
            member.proxy.set(Way::Open);
        }
    }
    for member in &mut members {
        member.works();
        let said = member.driver.close();
        assert!(!said.contains("refused"), "{:?}: {said}", member.driver.language);
        member.acts.judge();
    }
    in_time(verdicts.is_empty(), || format!("taken for verdicts: {verdicts:?}"));
}

/// A gateway that says a byte each tenth of a second: of the head, of a body, of one whose length no memory holds, of a chunk.
const DRIPS: [Way; 4] = [
    Way::Pours("HTTP/1.1 200 OK\r\nX-Drip: ", "x", 100),
    Way::Pours("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", " ", 100),
    Way::Pours("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n", " ", 100),
    Way::Pours("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n", " ", 100),
];

/// One that says as much as is taken: by its length, by chunks, until it hangs up, and as an error.
fn floods() -> [Way; 4] {
    let blanks: &str = " ".repeat(0x1_0000).leak();
    let chunk: &str = format!("10000\r\n{blanks}\r\n").leak();
    [
        Way::Pours("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n", blanks, 0),
        Way::Pours("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk, 0),
        Way::Pours("HTTP/1.1 200 OK\r\n\r\n", blanks, 0),
        Way::Pours("HTTP/1.1 403 Forbidden\r\nTransfer-Encoding: chunked\r\n\r\n", chunk, 0),
    ]
}

/// Its time is over at one time for the whole answer, so the next node is asked; and where there is none, the work ends in time.
async fn what_comes_in_drops_costs_no_lease_and_keeps_no_work_beyond_it() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let (one, two) = (Proxy::to(&site.a.url), Proxy::to(&site.b.url));
        two.set(Way::Closed);
        let mut client = site.client(language, &[&one.url, &two.url], &acts, "polite");
        let start = acts.until_works(client.id());
        two.set(Way::Open);
        for (way, proxy) in DRIPS.into_iter().zip([&one, &two].into_iter().cycle()) {
            proxy.set(way);
            // Longer than the lease of two seconds.
            let on = acts.goes_on(start.token, 120);
            proxy.set(Way::Closed);
            proxy.set(Way::Open);
            in_time(on, || format!("{language:?}: {way:?} cost it the lease"));
        }
        let mut second = site.client(Language::Python, &[&site.b.url], &acts, "polite");
        one.set(DRIPS[1]);
        two.set(DRIPS[1]);
        let next = acts.until_works(second.id());
        assert!(acts.goes_on(next.token, 25), "{language:?}: the second goes on");
        one.set(Way::Open);
        two.set(Way::Open);
        let said = client.close();
        assert!(said.contains("ends: it was not renewed in time"), "{language:?}: {said}");
        second.close();
        acts.judge();
    }
}

async fn of_no_answer_more_than_a_mebibyte_is_read() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let (one, two) = (Proxy::to(&site.a.url), Proxy::to(&site.b.url));
        two.set(Way::Closed);
        let mut client = site.client(language, &[&one.url, &two.url], &acts, "polite");
        let start = acts.until_works(client.id());
        two.set(Way::Open);
        let before = client.peak();
        for (way, proxy) in floods().into_iter().zip([&one, &two].into_iter().cycle()) {
            proxy.set(way);
            let on = acts.goes_on(start.token, 120);
            proxy.set(Way::Closed);
            proxy.set(Way::Open);
            in_time(on, || format!("{language:?}: an answer without end cost it the lease"));
        }
        // And while nobody else answers.
        one.set(floods()[0]);
        two.set(floods()[1]);
        let took = client.peak();
        assert!(took < before + 100, "{language:?}: it took {before} MiB, then {took}");
        let waiter = site.waiter(language, &[&one.url, &two.url]);
        let (end, _, said) = waited(waiter);
        assert_eq!(end, "Unreachable", "{language:?}: {said}");
        assert!(said.contains("answered with more than 1 MiB"), "{language:?}: {said}");
        let took = client.peak();
        assert!(took < before + 100, "{language:?}: it took {before} MiB, then {took}");
        one.set(Way::Open);
        two.set(Way::Open);
        client.close();
        acts.judge();
    }
}

/// Alone, and beside a node that would grant it.
async fn who_waits_is_told_in_time_whatever_a_gateway_says() {
    let site = Site::new();
    for way in DRIPS.into_iter().chain(floods()) {
        let gateway = Proxy::to(&site.a.url);
        gateway.set(way);
        let Way::Pours(head, ..) = way else { continue };
        let waiters = Language::ALL.map(|language| {
            let alone = site.waiter(language, &[&gateway.url]);
            (language, alone, site.waiter(language, &[&gateway.url, &site.b.url]))
        });
        for (language, alone, beside) in waiters {
            for (waiter, expected) in [(alone, "Unreachable"), (beside, "granted")] {
                let (end, seconds, said) = waited(waiter);
                assert_eq!(end, expected, "{language:?}, {head}: {said}");
                // The wait is a second, and two are for the answer.
                in_time(seconds < 4.5, || format!("{language:?}, {head}: {said}"));
            }
        }
        gateway.set(Way::Closed);
    }
}

/// How the wait of a driver ended, after how many seconds, and all that it said.
fn waited(mut waiter: Driver) -> (String, f64, String) {
    let (status, said) = waiter.wait();
    assert!(status.success(), "{:?}: {status} {said}", waiter.language);
    let words: Vec<&str> = said.split("waited: ").nth(1).expect(&said).split(' ').collect();
    (words[0].to_owned(), words[1].parse().expect("seconds"), said.clone())
}

/// Java cannot fork; what Node starts is a new program.
async fn a_forked_child_neither_keeps_nor_gives_back_what_its_parent_holds() {
    let site = Site::new();
    for mode in ["fork-ends", "fork-goes-on", "fork-pool"] {
        let acts = Acts::of(&site.ground, mode);
        let mut parent = site.client(Language::Python, &[&site.a.url], &acts, mode);
        // It works once its child has ended.
        let start = acts.until_works(parent.id());
        let mut other = site.client(Language::Python, &[&site.b.url], &acts, "polite");
        // Longer than the lease of two seconds.
        let on = acts.goes_on(start.token, 120);
        if !on {
            let next = acts.until_works(other.id());
            acts.goes_on(next.token, 50);
            acts.judge();
        }
        in_time(on, || format!("{mode}: the parent lost its lease"));
        parent.close();
        acts.until_works(other.id());
        other.close();
        acts.judge();
    }
}

const DEFINITION: &str = "[[job]]\nname = \"outbound\"\nrunner = \"external\"\nstop_grace = \"1s\"\nlease_ttl = \"2s\"\nmin_uptime = \"100ms\"\nbackoff = { first = \"50s\", max = \"60s\" }\n";

/// In a line, in a note, in an error; also a line that is cut where a pair stands.
async fn halves_of_pairs_cost_no_lease_and_no_line() {
    for language in Language::ALL {
        let ground = Ground::new("sqlite:soloist.db", DEFINITION);
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let node = ground.start("node-a");
        let api = node.api(&token);
        let acts = Acts::of(&ground, "outbound");
        let mut client = Driver::start(
            language,
            "lease",
            &[&node.url],
            &token,
            "outbound",
            acts.file(),
            "halves",
        );
        api.switch("outbound", true).await;
        acts.until_works(client.id());
        let crashed = until_async("the run has ended", async || {
            let runs = api.runs("outbound").await;
            runs.into_iter().find(|run| run["ended"].is_string())
        })
        .await;
        assert_eq!(crashed["end"], "crashed", "{language:?}: {crashed}");
        // After three seconds of work, which is longer than the lease.
        assert!(client.lives(), "{language:?}: {:?}", client.wait());
        let mut lines = Vec::new();
        until_async("its lines are there", async || {
            let after = lines.len();
            let page = api.get("/api/v1/jobs/outbound/log?limit=1000").await;
            lines = page["lines"].as_array().expect("lines").clone();
            (after > 0 && lines.len() == after).then_some(())
        })
        .await;
        let said: Vec<&str> = lines.iter().filter_map(|line| line["text"].as_str()).collect();
        let cut = "x".repeat(499);
        let is_cut = |line: &&&str| **line == cut || **line == format!("{cut}\u{1f600}");
        for number in 1..=150 {
            let half = format!("caf\u{fffd}.csv {number}");
            assert!(said.contains(&half.as_str()), "{language:?}: {half} is missing");
        }
        // At least once: the last ones may be sent again.
        assert!(said.iter().filter(is_cut).count() >= 150, "{language:?}");
        assert!(
            said.iter().any(|line| line.ends_with(": caf\u{fffd}.csv")),
            "{language:?}: the error is missing: {:?}",
            said.last()
        );
        api.switch("outbound", false).await;
        client.close();
    }
}

async fn halves_of_pairs_in_an_error_cost_no_result() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    ground.add_user("fetcher", "collector");
    let (token, theirs) = (ground.token("li"), ground.token("fetcher"));
    let node = ground.start("node-a");
    let api = node.api(&token);
    for language in Language::ALL {
        let source = language.word();
        let rules = json!({ "lease_ms": 60_000 });
        let path = format!("/api/v1/sources/{source}");
        let (status, said) = api.call(Method::PUT, &path, Some(rules)).await;
        assert!(status.is_success(), "{said}");
        let task = |key: &str, payload| json!({ "source": source, "key": key, "payload": payload });
        let mut tasks: Vec<_> =
            (0..4).map(|nth| task(&format!("h{nth}"), json!({ "dead": "half" }))).collect();
        tasks.extend((0..8).map(|nth| task(&format!("k{nth}"), json!(null))));
        let (status, said) =
            api.call(Method::POST, "/api/v1/tasks", Some(json!({ "tasks": tasks }))).await;
        assert!(status.is_success(), "{said}");
        let acts = Acts::of(&ground, source);
        let mut collector =
            Driver::start(language, "collect", &[&node.url], &theirs, source, acts.file(), "60");
        // Long before the lease of a task ends.
        until_async("all is reported", async || {
            let now = api.get(&path).await;
            (now["done"] == 8 && now["dead"] == 4).then_some(())
        })
        .await;
        let dead = api.get(&format!("/api/v1/dead?source={source}")).await.to_string();
        assert!(dead.contains("yyycaf\u{fffd}.csv"), "{language:?}: {dead}");
        collector.close();
    }
}

/// By a program that cuts its texts as it likes: JSON may have such an escape, and no text of a language may.
async fn half_a_pair_beside_good_results_costs_none_of_them() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let token = ground.token("li");
    let api = node.api(&token);
    let client = crate::support::http::client().build().expect("a client");
    let raw = async |path: &str, body: String| {
        let request = client.post(format!("{}{path}", node.url)).bearer_auth(&token).body(body);
        let answer = request.send().await.expect("the node answers");
        (answer.status().as_u16(), answer.text().await.expect("a whole answer"))
    };
    let (status, said) =
        api.call(Method::PUT, "/api/v1/sources/shop", Some(json!({ "lease_ms": 60_000 }))).await;
    assert!(status.is_success(), "{said}");
    let task = |nth: usize| json!({ "source": "shop", "key": format!("k{nth}") });
    let tasks = json!({ "tasks": (0..3).map(task).collect::<Vec<_>>() });
    let (status, said) = api.call(Method::POST, "/api/v1/tasks", Some(tasks)).await;
    assert!(status.is_success(), "{said}");
    let ask = json!({ "collector": "c-1", "request_id": "r-1", "max": 3 });
    let (_, claim) = api.call(Method::POST, "/api/v1/claims", Some(ask)).await;
    let tasks = claim["tasks"].as_array().expect("tasks");
    let results: Vec<String> = tasks
        .iter()
        .enumerate()
        .map(|(nth, task)| {
            let end = match nth {
                1 => r#""dead","error":"caf\ud83d.csv""#,
                _ => r#""done""#,
            };
            format!(r#"{{"id":{},"token":{},"outcome":{end}}}"#, task["id"], task["token"])
        })
        .collect();
    let body = format!(r#"{{"results":[{}]}}"#, results.join(","));
    let (status, said) = raw("/api/v1/results", body).await;
    assert_eq!((status, said.matches(r#""status":"ok""#).count()), (200, 3), "{said}");
    let dead = api.get("/api/v1/dead?source=shop").await.to_string();
    assert!(dead.contains("caf\u{fffd}.csv"), "{dead}");
    // What must come back as it was put is refused.
    let body = r#"{"tasks":[{"source":"shop","key":"caf\ud83d"}]}"#;
    let (status, said) = raw("/api/v1/tasks", body.to_owned()).await;
    assert_eq!(status, 400, "{said}");
    // A lease: taken, renewed with such a line and note, given back with such an error.
    let ask = json!({ "holder": "h", "request_id": "r-2", "ttl_ms": 60_000 });
    let (_, grant) = api.call(Method::POST, "/api/v1/leases/night", Some(ask)).await;
    let secret = &grant["secret"];
    let said = r#""lines":["\ud83d"],"progress":{"done":1,"total":2,"note":"\udc00"}"#;
    let (status, said) =
        raw("/api/v1/leases/night/renew", format!(r#"{{"secret":{secret},{said}}}"#)).await;
    assert_eq!(status, 200, "{said}");
    let body = format!(r#"{{"secret":{secret},"end":"failed","error":"\ud83d"}}"#);
    let (status, said) = raw("/api/v1/leases/night/release", body).await;
    assert_eq!(status, 200, "{said}");
}

/// A line end that came along from a file, as every library says by itself; nothing is asked.
#[test]
fn a_token_that_no_header_takes_is_refused_where_the_client_is_made() {
    for language in Language::ALL {
        for token in ["", "sol_a\n", "sol_a b", "sol_\u{e9}"] {
            let file = std::path::Path::new("/dev/null");
            let addresses = ["http://127.0.0.1:1"];
            let mut driver = Driver::start(language, "lease", &addresses, token, "x", file, "hog");
            let (status, said) = driver.wait();
            assert!(!status.success() && said.contains("token"), "{language:?}: {said}");
        }
    }
}
