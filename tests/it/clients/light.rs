//! What a program costs that holds much: a fixed number of threads and connections, and renewals that travel together. What becomes of one of
//! them disturbs no other.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use soloist::clock;

use super::driver::{Driver, Language};
use super::witness::Acts;
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, within};

judged! {
    five_thousand_leases_cost_eight_threads_and_eight_connections
    renewals_travel_together
    one_that_is_refused_disturbs_no_other
    a_node_that_knows_no_renewals_of_many_is_asked_for_each
    a_renewal_that_hangs_moves_no_deadline_and_keeps_no_other_call
    a_job_is_kept_while_many_others_are_taken_and_given_back
}

/// All of them, or the one that is named in the environment.
fn languages() -> impl Iterator<Item = Language> {
    let only = std::env::var_os("LIGHT_ONLY").and_then(|text| text.into_string().ok());
    let all = Language::ALL.into_iter();
    all.filter(move |each| only.as_deref().is_none_or(|only| only == each.word()))
}

/// Of threads, and of connections to the nodes.
const MOST: usize = 8;
const MANY: usize = 5_000;

/// How a [`Fake`] answers renewals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Well,
    /// It knows no `/api/v1/renewals`.
    Old,
    /// The third is refused. The fifth, the seventh and the ninth are not answered twice: 503, an odd shape, nothing.
    Odd,
    /// It reads them, and never answers.
    Hangs,
    /// Its leases are of jobs, and it is far away: an answer takes 50 ms, and as long as the program is ready to wait for an order to stop.
    Jobs,
}

#[derive(Default)]
struct Heard {
    mode: Option<Mode>,
    ttl_ms: HashMap<String, u64>,
    granted: usize,
    /// How often each lease was renewed; calls for one, for several, and the most leases in one.
    renewed: HashMap<String, usize>,
    alone: usize,
    together: usize,
    most: usize,
}

/// A node that grants whatever is asked for, and counts. Its threads end with the process.
struct Fake {
    url: String,
    heard: Arc<Mutex<Heard>>,
}

fn locked(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Fake {
    fn start(mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        let heard = Arc::new(Mutex::new(Heard { mode: Some(mode), ..Heard::default() }));
        let shared = Arc::clone(&heard);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(&client, &shared));
            }
        });
        Self { url, heard }
    }

    fn set(&self, mode: Mode) {
        locked(&self.heard).mode = Some(mode);
    }
}

/// Requests of one connection, until it ends.
fn serve(client: &TcpStream, heard: &Mutex<Heard>) -> Option<()> {
    let mut reader = BufReader::new(client);
    loop {
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).ok()?;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let path = first.split(' ').nth(1)?.to_owned();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if locked(heard).mode == Some(Mode::Jobs) {
            let asks = !path.starts_with("/api/v1/leases/") || path.ends_with("/renew");
            let waits = body["wait_ms"].as_u64().filter(|_| asks).unwrap_or(0);
            std::thread::sleep(Duration::from_millis(50 + waits));
        }
        let Some((status, said)) = answer(&path, &body, heard) else {
            // Nothing is ever said here any more; the connection stays.
            return reader.read_to_end(&mut Vec::new()).map(drop).ok();
        };
        let kind = if status == 200 { "application/json" } else { "application/problem+json" };
        let text = said.to_string();
        let head = format!(
            "HTTP/1.1 {status} So\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            text.len()
        );
        (&mut &*client).write_all(format!("{head}{text}").as_bytes()).ok()?;
    }
}

fn problem(status: u16, detail: &str) -> Value {
    json!({ "type": "about:blank", "title": "So", "status": status, "detail": detail })
}

fn answer(path: &str, body: &Value, heard: &Mutex<Heard>) -> Option<(u16, Value)> {
    let mut heard = locked(heard);
    let mode = heard.mode?;
    let words: Vec<&str> = path.trim_start_matches("/api/v1/").split('/').collect();
    match words.as_slice() {
        ["leases", name] => {
            let ttl = body["ttl_ms"].as_u64()?;
            heard.ttl_ms.insert((*name).to_owned(), ttl);
            heard.granted += 1;
            let (token, secret) = (heard.granted, format!("s-{name}"));
            let run = (mode == Mode::Jobs).then(|| format!("run-{name}"));
            Some((
                200,
                json!({ "name": name, "token": token, "secret": secret, "run": run, "ttl_ms": ttl,
                    "expires_in_ms": ttl, "renew_every_ms": ttl / 3 }),
            ))
        }
        ["leases", name, "release"] => Some((200, json!({ "name": name, "released": true }))),
        ["leases", ..] | ["renewals"] if mode == Mode::Hangs => None,
        ["leases", name, "renew"] => {
            heard.alone += 1;
            let said = renewed(&mut heard, name);
            Some((u16::try_from(said["status"].as_u64().unwrap_or(200)).ok()?, said))
        }
        ["renewals"] if mode == Mode::Old => Some((404, problem(404, "there is no such page"))),
        ["renewals"] => {
            let asked = body["leases"].as_array()?;
            heard.together += 1;
            heard.most = heard.most.max(asked.len());
            let names = asked.iter().filter_map(|one| one["name"].as_str());
            let mut all: Vec<Value> = names.map(|name| renewed(&mut heard, name)).collect();
            all.retain(|one| one.as_object().is_some_and(|fields| !fields.is_empty()));
            Some((200, json!({ "leases": all })))
        }
        _ => Some((404, problem(404, "the fake has no such page"))),
    }
}

/// What becomes of one renewal.
fn renewed(heard: &mut Heard, name: &str) -> Value {
    let times = heard.renewed.entry(name.to_owned()).or_default();
    *times += 1;
    let (nth, early) = (name.rsplit('-').next().unwrap_or_default(), *times < 3);
    let status = |status| {
        let mut said = problem(status, "the fake says so");
        said["name"] = json!(name);
        said
    };
    match (heard.mode, nth) {
        (Some(Mode::Odd), "3") => status(409),
        (Some(Mode::Odd), "5") if early => status(503),
        (Some(Mode::Odd), "7") if early => json!({ "name": name, "status": "UP" }),
        (Some(Mode::Odd), "9") if early => json!({}),
        _ => json!({ "name": name, "expires_in_ms": heard.ttl_ms.get(name), "stop": null }),
    }
}

/// A program that holds so many leases of 2 and 4 s by turns.
struct Holder {
    driver: Driver,
    acts: Acts,
}

impl Holder {
    fn start(ground: &Ground, language: Language, url: &str, token: &str, count: usize) -> Self {
        let acts = Acts::of(ground, &format!("light-{}-{count}", language.word()));
        let ttl = if count > 100 { "10" } else { "2" };
        let driver = Driver::start_in(
            (language, "light"),
            &[url],
            token,
            acts.name(),
            acts.file(),
            &count.to_string(),
            &[("DRIVER_TTL", ttl)],
        );
        let holder = Self { driver, acts };
        holder.acts.until("its client is made", 0, |act| act.word == "ready");
        holder
    }

    fn takes(ground: &Ground, language: Language, fake: &Fake, count: usize) -> Self {
        let mut holder = Self::start(ground, language, &fake.url, "sol_x", count);
        holder.driver.tell("go");
        holder.acts.until("it has all", 0, |act| act.word == "held");
        holder
    }

    /// Tells it so, and gives the instant and the word of its answer.
    fn told(&mut self, line: &str, begins: &str) -> (f64, String) {
        let before = self.acts.all().len();
        self.driver.tell(line);
        let act = self.acts.until(line, before, |act| act.word.starts_with(begins));
        (act.at, act.word)
    }

    fn holds(&mut self) -> String {
        self.told("look", "holds-").1
    }

    /// When this word was written of a lease, by its number.
    fn when(&self, word: &str) -> HashMap<usize, f64> {
        let of = |word_of: &str| word_of.strip_prefix(word)?.parse::<usize>().ok();
        self.acts.all().iter().filter_map(|act| Some((of(&act.word)?, act.at))).collect()
    }
}

fn now() -> f64 {
    Duration::from_nanos(clock::boot().0).as_secs_f64()
}

/// Waits for so long, and looks meanwhile.
fn goes_by(seconds: f64, mut look: impl FnMut()) {
    let end = now() + seconds;
    let over = within(Duration::from_secs_f64(seconds + 10.0), || {
        look();
        (now() >= end).then_some(())
    });
    assert!(over.is_some());
}

/// The names of its threads.
fn threads(pid: i32) -> Vec<String> {
    let all = std::fs::read_dir(format!("/proc/{pid}/task")).expect("our own child").flatten();
    // One may end meanwhile.
    all.filter_map(|one| std::fs::read_to_string(one.path().join("comm")).ok()).collect()
}

/// How many connections the process has to that port.
fn connections(pid: i32, port: u16) -> usize {
    let links = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("our own child").flatten();
    let own: Vec<String> = links
        .filter_map(|link| {
            std::fs::read_link(link.path()).ok()?.into_os_string().into_string().ok()
        })
        .collect();
    let to = format!(":{port:04X}");
    let mut count = 0;
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, _, remote, "01", ..] = words.as_slice() else { continue };
            let socket = format!("socket:[{}]", words.get(9).unwrap_or(&""));
            count += usize::from(remote.ends_with(&to) && own.contains(&socket));
        }
    }
    count
}

async fn five_thousand_leases_cost_eight_threads_and_eight_connections() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), "");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let port = node.url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    for language in languages() {
        let mut holder = Holder::start(&ground, language, &node.url, &token, MANY);
        let pid = holder.driver.id();
        let before = threads(pid).len();
        let mut most = 0;
        holder.driver.tell("go");
        let held = within(Duration::from_secs(150), || {
            most = most.max(connections(pid, port));
            holder.acts.all().iter().any(|act| act.word == "held").then_some(())
        });
        assert!(held.is_some(), "{language:?}: {:?}", holder.acts.all());
        let mut crowd = 0;
        // Twice the lease of every second one, and once that of the others.
        goes_by(20.0, || {
            most = most.max(connections(pid, port));
            let all = threads(pid);
            let ours = all.iter().filter(|name| name.starts_with("soloist")).count();
            crowd = crowd.max(if language == Language::Java { ours } else { all.len() - before });
        });
        holds(most <= MOST, || format!("{language:?}: {most} connections"));
        holds(crowd <= MOST, || format!("{language:?}: {crowd} threads: {:?}", threads(pid)));
        let word = holder.holds();
        in_time(word == format!("holds-{MANY}"), || format!("{language:?}: {word}"));
        let before = holder.acts.all().len();
        let given = Duration::from_secs(120);
        holder.driver.ends();
        within(given, || (!holder.driver.lives()).then_some(()));
        holder.driver.close();
        assert_eq!(holder.acts.all().len(), before, "{language:?}: what ended it");
    }
}

async fn renewals_travel_together() {
    let ground = Ground::new("sqlite:soloist.db", "");
    for language in languages() {
        let fake = Fake::start(Mode::Well);
        let mut holder = Holder::takes(&ground, language, &fake, 50);
        let before = {
            let heard = locked(&fake.heard);
            heard.alone + heard.together
        };
        goes_by(8.0, || {});
        {
            let heard = locked(&fake.heard);
            let calls = heard.alone + heard.together - before;
            // Each by itself would be at least three in two seconds, of each of 50.
            holds(calls < 100, || format!("{language:?}: {calls} calls"));
            holds(heard.most > 20, || format!("{language:?}: {} at once", heard.most));
            assert_eq!(heard.renewed.len(), 50, "{language:?}: each is renewed");
        }
        let word = holder.holds();
        in_time(word == "holds-50", || format!("{language:?}: {word}"));
        holder.driver.close();
    }
}

async fn one_that_is_refused_disturbs_no_other() {
    let ground = Ground::new("sqlite:soloist.db", "");
    for language in languages() {
        let fake = Fake::start(Mode::Odd);
        let mut holder = Holder::takes(&ground, language, &fake, 20);
        holder.acts.until("the third is lost", 0, |act| act.word == "lost-3");
        goes_by(8.0, || {});
        let (took, lost) = (holder.when("took-"), holder.when("lost-"));
        // Its own deadline would be asked for after 3.2 s.
        in_time(lost[&3] - took[&3] < 2.5, || format!("{language:?}: it was told late"));
        in_time(lost.len() == 1, || format!("{language:?}: lost, too: {lost:?}"));
        let word = holder.holds();
        in_time(word == "holds-19", || format!("{language:?}: {word}"));
        let said = holder.driver.close();
        assert!(said.contains("lost 3: refused: the fake says so"), "{language:?}: {said}");
    }
}

async fn a_node_that_knows_no_renewals_of_many_is_asked_for_each() {
    let ground = Ground::new("sqlite:soloist.db", "");
    for language in languages() {
        let fake = Fake::start(Mode::Old);
        let mut holder = Holder::takes(&ground, language, &fake, 20);
        goes_by(8.0, || {});
        let word = holder.holds();
        in_time(word == "holds-20", || format!("{language:?}: {word}"));
        let lost = holder.when("lost-");
        in_time(lost.is_empty(), || format!("{language:?}: {lost:?}"));
        holder.driver.close();
        assert_eq!(locked(&fake.heard).renewed.len(), 20, "{language:?}: each is renewed");
    }
}

async fn a_renewal_that_hangs_moves_no_deadline_and_keeps_no_other_call() {
    let ground = Ground::new("sqlite:soloist.db", "");
    for language in languages() {
        let fake = Fake::start(Mode::Well);
        let mut holder = Holder::takes(&ground, language, &fake, 20);
        // Each has been renewed.
        until("each was renewed", || (locked(&fake.heard).renewed.len() == 20).then_some(()));
        fake.set(Mode::Hangs);
        let from = now();
        let (gave, _) = holder.told("give 0", "gave-0");
        in_time(gave - from < 1.0, || format!("{language:?}: gave back after {}", gave - from));
        holder.holds();
        until("all are over", || (holder.when("overrun-").len() == 19).then_some(()));
        let (lost, over) = (holder.when("lost-"), holder.when("overrun-"));
        for nth in 1..20 {
            let length = if nth % 2 == 0 { 2.0 } else { 4.0 };
            let (lost, over) = (lost[&nth] - from, over[&nth] - from);
            // What is told before the deadline is told a fifth of the lease before.
            in_time(lost < length * 0.9, || format!("{language:?}: {nth} was told after {lost} s"));
            in_time(over < length + 0.1, || format!("{language:?}: {nth} was over after {over} s"));
            // Its last renewal was answered at most so long before, and that was worth the whole of it.
            in_time(over > length / 2.0, || format!("{language:?}: {nth} was over after {over} s"));
        }
        assert_eq!(holder.holds(), "holds-0", "{language:?}");
        holder.driver.close();
    }
}

async fn a_job_is_kept_while_many_others_are_taken_and_given_back() {
    let ground = Ground::new("sqlite:soloist.db", "");
    for language in languages() {
        let fake = Fake::start(Mode::Jobs);
        let mut holder = Holder::takes(&ground, language, &fake, 1);
        // Three times as long as it lasts.
        holder.told("storm 6", "stormed");
        let word = holder.holds();
        in_time(word == "holds-1", || format!("{language:?}: {word}"));
        let lost = holder.when("lost-");
        in_time(lost.is_empty(), || format!("{language:?}: {lost:?}"));
        holder.driver.close();
    }
}
