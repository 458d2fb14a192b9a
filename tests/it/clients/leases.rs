//! What other locks got wrong, one test each, in every language. The nodes are real; the way to them is ours.

use std::time::Duration;

use nix::sys::signal::Signal;
use soloist::clock;

use super::driver::{Driver, Language};
use super::proxy::{Proxy, Way};
use super::witness::Acts;
use crate::support::machine::{in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

judged! {
    a_lease_that_is_given_back_is_the_next_clients_at_once
    a_killed_node_costs_a_client_nothing
    a_paused_node_costs_a_client_nothing
    errors_and_lost_answers_cost_a_client_nothing
    a_client_that_nobody_hears_ends_in_time_and_another_goes_on
    a_client_that_was_paused_past_its_deadline_does_nothing_more
    a_late_answer_makes_no_deadline_later
    a_renewal_that_is_refused_ends_the_work_at_once
    work_that_does_not_end_ends_its_process
    work_that_blocks_the_event_loop_is_killed
    who_chose_to_is_called_and_lives_on
    work_that_fails_is_tried_again_and_gives_the_lease_back
    a_wish_to_wait_survives_every_lost_connection
    a_way_that_leads_nowhere_costs_a_client_that_begins_nothing
}

const NAME: &str = "ship";

/// Two nodes on one store, and who may ask.
struct Site {
    a: Node,
    b: Node,
    token: String,
    acts: Acts,
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
        Self { a, b, token, acts: Acts::of(&ground, NAME), ground, _redis: redis }
    }

    fn client(&self, language: Language, addresses: &[&str], mode: &str) -> Driver {
        Driver::start(language, "lease", addresses, &self.token, NAME, self.acts.file(), mode)
    }

    /// Waits until a client that lost its lease to `token` has one again. A machine that gives its work no time ends its process instead.
    fn until_again(&self, client: &mut Driver, token: u64) {
        let start = until("it has the lease again, or has ended", || {
            let again =
                self.acts.all().into_iter().find(|act| act.pid == client.id() && act.token > token);
            again.map(Some).or_else(|| (!client.lives()).then_some(None))
        });
        let language = client.language;
        in_time(start.is_some(), || format!("{language:?}: {:?}", client.wait()));
        assert!(start.is_some_and(|act| act.word == "start"));
    }

    /// Forgets what was written down, between two languages.
    fn clear(&self) {
        self.acts.judge();
        std::fs::remove_file(self.acts.file()).expect("its own file");
    }

    fn held(&self) -> String {
        self.ground.must(&["lease", "list"])
    }
}

/// The next of the three.
fn another(language: Language) -> Language {
    let at = Language::ALL.iter().position(|each| *each == language).expect("one of them");
    Language::ALL[(at + 1) % 3]
}

async fn a_lease_that_is_given_back_is_the_next_clients_at_once() {
    let site = Site::new();
    for language in Language::ALL {
        let mut first = site.client(language, &[&site.a.url], "polite");
        let mut old = site.acts.until_works(first.id());
        let mut second = site.client(another(language), &[&site.b.url], "polite");
        assert!(site.acts.goes_on(old.token, 20), "{language:?}: nobody else has it meanwhile");
        assert!(
            site.held().contains(&format!("{}-{}", language.word(), first.id())),
            "{}",
            site.held()
        );
        let said = first.close();
        assert!(said.contains("ends: closed"), "{language:?}: {said}");
        let new = site.acts.until_works(second.id());
        let last = site.acts.all().into_iter().rfind(|act| act.token == old.token);
        old = last.unwrap_or(old);
        in_time(new.at - old.at < 1.0, || format!("{language:?}: {old:?}, then {new:?}"));
        second.close();
        site.clear();
    }
    until("nothing is held", || (!site.held().contains(NAME)).then_some(()));
}

async fn a_killed_node_costs_a_client_nothing() {
    for language in Language::ALL {
        let mut site = Site::new();
        let mut client = site.client(language, &[&site.a.url, &site.b.url], "polite");
        let start = site.acts.until_works(client.id());
        site.a.kill();
        let on = site.acts.goes_on(start.token, 150);
        in_time(on, || format!("{language:?}: the lease was lost with the node"));
        client.close();
        site.acts.judge();
    }
}

async fn a_paused_node_costs_a_client_nothing() {
    let site = Site::new();
    for language in Language::ALL {
        let mut client = site.client(language, &[&site.a.url, &site.b.url], "polite");
        let start = site.acts.until_works(client.id());
        // Longer than the lease of two seconds.
        for node in [&site.a, &site.b] {
            node.signal(Signal::SIGSTOP);
            let on = site.acts.goes_on(start.token, 120);
            node.signal(Signal::SIGCONT);
            in_time(on, || format!("{language:?}: the lease was lost with {}", node.name));
        }
        client.close();
        site.clear();
    }
}

/// A renewal that is answered with an error, or whose answer is lost, is made again; it neither ends the renewing nor counts as one.
async fn errors_and_lost_answers_cost_a_client_nothing() {
    let site = Site::new();
    for language in Language::ALL {
        let (one, two) = (Proxy::to(&site.a.url), Proxy::to(&site.b.url));
        let mut client = site.client(language, &[&one.url, &two.url], "polite");
        let start = site.acts.until_works(client.id());
        let ways = [Way::Says(503), Way::Closed, Way::Says(429), Way::Deaf, Way::Says(502)];
        for (way, proxy) in ways.into_iter().zip([&one, &two].into_iter().cycle()) {
            proxy.set(way);
            let on = site.acts.goes_on(start.token, 75);
            proxy.set(Way::Closed);
            proxy.set(Way::Open);
            in_time(on, || format!("{language:?}: {way:?} cost it the lease"));
        }
        client.close();
        site.clear();
    }
}

async fn a_client_that_nobody_hears_ends_in_time_and_another_goes_on() {
    let site = Site::new();
    for language in Language::ALL {
        for way in [Way::Hole, Way::Closed, Way::Deaf, Way::Mute, Way::Says(500)] {
            let proxy = Proxy::to(&site.a.url);
            let mut first = site.client(language, &[&proxy.url], "polite");
            let start = site.acts.until_works(first.id());
            let mut second = site.client(another(language), &[&site.b.url], "polite");
            proxy.set(way);
            let next = site.acts.until_works(second.id());
            assert!(next.token > start.token);
            // Its work ended by itself, so the process lives, waits, and has it again.
            proxy.set(Way::Closed);
            proxy.set(Way::Open);
            second.close();
            site.until_again(&mut first, next.token);
            let said = first.close();
            assert!(
                said.contains("ends: it was not renewed in time"),
                "{language:?}, {way:?}: {said}"
            );
            site.clear();
        }
    }
}

async fn a_client_that_was_paused_past_its_deadline_does_nothing_more() {
    let site = Site::new();
    for language in Language::ALL {
        let mut first = site.client(language, &[&site.a.url], "polite");
        let start = site.acts.until_works(first.id());
        first.signal(Signal::SIGSTOP);
        let mut second = site.client(another(language), &[&site.b.url], "polite");
        let next = site.acts.until_works(second.id());
        assert!(next.token > start.token);
        first.signal(Signal::SIGCONT);
        assert!(site.acts.goes_on(next.token, 50), "{language:?}: the second goes on");
        second.close();
        site.until_again(&mut first, next.token);
        first.close();
        site.clear();
    }
}

/// A renewal waits at the node for an order to stop, so its answer is a sixth of the lease old when it comes: here 333 ms.
async fn a_late_answer_makes_no_deadline_later() {
    let site = Site::new();
    let api = site.b.api(&site.token);
    for language in Language::ALL {
        let proxy = Proxy::to(&site.a.url);
        let mut client = site.client(language, &[&proxy.url], "callback");
        site.acts.until_works(client.id());
        proxy.set(Way::Mute);
        let end = until_async("no renewal has come for long", async || {
            let leases = api.get("/api/v1/leases").await;
            let left = leases["leases"][0]["expires_in_ms"].as_u64()?;
            (left < 1_000).then(|| clock::boot() + Duration::from_millis(left + 150))
        })
        .await;
        let act = site.acts.until("it is called", 0, |act| act.word == "overrun");
        let end = Duration::from_nanos(end.0).as_secs_f64();
        in_time(act.at <= end, || format!("{language:?}: {} is after {end}", act.at));
        site.acts.until("the work has ended", 0, |act| act.word == "ended");
        proxy.set(Way::Closed);
        proxy.set(Way::Open);
        client.close();
        site.clear();
    }
}

async fn a_renewal_that_is_refused_ends_the_work_at_once() {
    let site = Site::new();
    for language in Language::ALL {
        let proxy = Proxy::to(&site.a.url);
        let mut client = site.client(language, &[&proxy.url], "polite");
        let start = site.acts.until_works(client.id());
        proxy.set(Way::Says(409));
        let reported = until("it has tried to begin anew", || {
            (proxy.answered() > 2).then_some(site.acts.all())
        });
        assert!(
            reported.iter().all(|act| act.token == start.token),
            "{language:?}: it began nothing new"
        );
        let count = reported.len();
        assert!(site.acts.all().len() <= count + 1, "{language:?}: it works on");
        proxy.set(Way::Open);
        site.until_again(&mut client, start.token);
        let said = client.close();
        assert!(said.contains("ends: refused: the way says so"), "{language:?}: {said}");
        site.clear();
    }
}

async fn work_that_does_not_end_ends_its_process() {
    let site = Site::new();
    for language in Language::ALL {
        let proxy = Proxy::to(&site.a.url);
        let mut hog = site.client(language, &[&proxy.url], "hog");
        let start = site.acts.until_works(hog.id());
        let mut second = site.client(another(language), &[&site.b.url], "polite");
        proxy.set(Way::Hole);
        let (status, said) = hog.wait();
        assert_eq!(status.code(), Some(76), "{language:?}: {said}");
        for words in
            ["lease ship", &start.token.to_string(), "not renewed in time", "not ended in time"]
        {
            assert!(said.contains(words), "{language:?}: {words}: {said}");
        }
        site.acts.until_works(second.id());
        second.close();
        site.clear();
    }
}

/// JavaScript has one thread for the work and for everything else: so the watchdog has its own.
async fn work_that_blocks_the_event_loop_is_killed() {
    let site = Site::new();
    let mut blocked = site.client(Language::Node, &[&site.a.url], "block");
    site.acts.until("it works", 0, |act| act.word == "beat");
    let mut second = site.client(Language::Python, &[&site.b.url], "polite");
    let (status, said) = blocked.wait();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9), "{status} {said}");
    assert!(said.contains("blocks the event loop"), "{said}");
    site.acts.until_works(second.id());
    second.close();
    site.acts.judge();
}

async fn who_chose_to_is_called_and_lives_on() {
    let site = Site::new();
    for language in Language::ALL {
        let proxy = Proxy::to(&site.a.url);
        let mut client = site.client(language, &[&proxy.url], "callback");
        site.acts.until_works(client.id());
        proxy.set(Way::Hole);
        site.acts.until("it is called", 0, |act| act.word == "overrun");
        assert!(client.lives(), "{language:?}");
        // It was the last act: whoever is called ends the work.
        site.acts.until("the work has ended", 0, |act| act.word == "ended");
        proxy.set(Way::Closed);
        proxy.set(Way::Open);
        client.close();
        site.clear();
    }
}

async fn work_that_fails_is_tried_again_and_gives_the_lease_back() {
    let site = Site::new();
    for language in Language::ALL {
        let mut client = site.client(language, &[&site.a.url], "fail");
        until("it was tried three times", || (site.acts.all().len() >= 3).then_some(()));
        let tokens: Vec<u64> = site.acts.all().iter().map(|act| act.token).collect();
        assert!(tokens.windows(2).all(|pair| pair[0] < pair[1]), "{language:?}: {tokens:?}");
        let acts = site.acts.all();
        in_time(acts[1].at - acts[0].at < 1.5, || {
            format!("{language:?}: the lease ran out: {acts:?}")
        });
        let said = client.close();
        assert!(said.contains("about to fail"), "{language:?}: {said}");
        site.clear();
    }
}

/// The place in the line is the request's, not the connection's.
async fn a_wish_to_wait_survives_every_lost_connection() {
    let site = Site::new();
    for language in Language::ALL {
        let mut first = site.client(another(language), &[&site.a.url], "polite");
        let start = site.acts.until_works(first.id());
        let (one, two) = (Proxy::to(&site.a.url), Proxy::to(&site.b.url));
        let mut waiter = site.client(language, &[&one.url, &two.url], "polite");
        for way in [Way::Closed, Way::Says(503)] {
            one.set(way);
            assert!(site.acts.goes_on(start.token, 25));
            one.set(Way::Open);
            two.set(way);
            assert!(site.acts.goes_on(start.token, 25));
            two.set(Way::Open);
        }
        assert!(waiter.lives());
        first.close();
        let next = site.acts.until_works(waiter.id());
        let last = site.acts.all().into_iter().rfind(|act| act.token == start.token).expect("acts");
        in_time(next.at - last.at < 5.0, || format!("{language:?}: {last:?}, then {next:?}"));
        waiter.close();
        site.clear();
    }
}

/// A connection that is closed before anything was sent over it is a failure like any other: the next node is asked at once. (`fetch` of
/// Node 20 waits until its time-out instead, which is twelve seconds for who waits for a lease.) So is an answer that says "not now".
async fn a_way_that_leads_nowhere_costs_a_client_that_begins_nothing() {
    let site = Site::new();
    for language in Language::ALL {
        let (nowhere, open) = (Proxy::to(&site.a.url), Proxy::to(&site.b.url));
        // Each begins with any of the four.
        let addresses = [&*nowhere.url, &nowhere.url, &nowhere.url, &open.url];
        for way in [Way::Closed, Way::Says(503), Way::Closed, Way::Says(503)] {
            nowhere.set(way);
            let begun = Duration::from_nanos(clock::boot().0).as_secs_f64();
            let mut client = site.client(language, &addresses, "polite");
            let start = site.acts.until_works(client.id());
            in_time(start.at - begun < 8.0, || {
                format!("{language:?} began after {} s", start.at - begun)
            });
            client.close();
        }
        site.clear();
    }
}
