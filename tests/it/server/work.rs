//! `collect` and `turn` at nodes: a node that dies or freezes costs no task and no turn, and neither does a worker.

use std::ops::Deref;

use nix::sys::signal::Signal;
use serde_json::Value;
use soloist::clock;

use super::{Away, accounts};
use crate::support::node::Node;
use crate::support::wait::until;
use crate::support::worker::{Site, WAITS};

/// Two nodes on a Redis, and a source `pages` and a rotation `api`.
struct Place {
    site: Site,
    nodes: [Node; 2],
}

impl Deref for Place {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

impl Place {
    fn new(lease: &str) -> Self {
        let site = Site::on_redis();
        accounts(&site.ground);
        site.ground.must(&["source", "set", "pages", "--lease", lease]);
        let types = ["--type", "a", "--type", "b", "--lease", lease];
        site.ground.must(&[&["rotation", "set", "api"], &types[..]].concat());
        let nodes = ["node-a", "node-b"].map(|name| site.ground.start(name));
        Self { site, nodes }
    }

    /// Who has only a collector's token, for `bound`; the first node is asked first.
    fn away(&self, bound: &[&str]) -> Away {
        let words = [&["token", "new", "--user", "robot"], bound].concat();
        let token = self.ground.must(&words);
        let [first, second] = &self.nodes;
        Away::new(&[first, second], token.trim())
    }

    /// Writes where the test looks.
    fn script(&self, text: &str) -> String {
        format!("cd {}; {text}", self.ground.path("").display())
    }

    fn put(&self, keys: impl Iterator<Item = String>) {
        for key in keys {
            self.ground.must(&["task", "put", "--source", "pages", "--key", &key]);
        }
    }

    fn source(&self) -> Value {
        let text = self.ground.must(&["source", "list", "--json"]);
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        answer["sources"][0].clone()
    }
}

const NOTES: &str = r#"mkdir "at-$SOLOIST_TASK_KEY" || echo "$SOLOIST_TASK_KEY" >> twice
echo "$SOLOIST_TASK_KEY $SOLOIST_ATTEMPT" >> noted; sleep 0.05; rmdir "at-$SOLOIST_TASK_KEY""#;

#[test]
fn a_node_that_is_killed_costs_a_collector_no_task() {
    let mut place = Place::new("30s");
    let keys = || (0..40).map(|n| format!("page-{n:02}"));
    place.put(keys());
    let away = place.away(&["--source", "pages"]);
    let script = place.script(NOTES);
    let words = ["collect", "--source", "pages", "--parallel", "2", "--", "sh", "-c", &script];
    let collector = away.start(&words);
    until("some are done", || (place.lines("noted").len() > 5).then_some(()));
    place.nodes[0].kill();
    until("all are done", || (place.source()["done"] == 40).then_some(()));
    assert_eq!(place.source()["in_flight"], 0);
    let mut noted = place.lines("noted");
    noted.sort_unstable();
    assert_eq!(noted, keys().map(|key| format!("{key} 1")).collect::<Vec<_>>());
    assert!(place.lines("twice").is_empty(), "two at once");
    collector.signal(Signal::SIGTERM);
    assert_eq!(collector.end().0, 0);
}

#[test]
fn a_task_is_extended_at_another_node_while_its_own_is_frozen() {
    let place = Place::new("3s");
    place.put(["long".to_owned()].into_iter());
    let away = place.away(&["--source", "pages"]);
    let script = place.script(&format!("echo $SOLOIST_ATTEMPT >> noted; {WAITS}"));
    let words = ["collect", "--source", "pages", "--max", "1", "--", "sh", "-c", &script];
    let collector = away.start(&words);
    until("it works", || (!place.lines("noted").is_empty()).then_some(()));
    place.nodes[0].signal(Signal::SIGSTOP);
    // For longer than a lease.
    let begun = clock::boot();
    until("the lease would have run out", || {
        (clock::boot().since(begun).as_secs() >= 5).then_some(())
    });
    place.go();
    let (code, said) = collector.end();
    place.nodes[0].signal(Signal::SIGCONT);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        (place.lines("noted"), place.source()["done"].as_u64()),
        (vec!["1".to_owned()], Some(1)),
        "{said}"
    );
}

#[test]
fn a_waiting_collector_is_given_what_comes_and_ends_at_once_when_told() {
    let place = Place::new("2s");
    let away = place.away(&["--source", "pages"]);
    let script = place.script("echo $SOLOIST_ATTEMPT >> noted");
    let words = ["collect", "--source", "pages", "--", "sh", "-c", &script];
    let collector = away.start(&words);
    until("it waits at a node", || {
        let api = place.ground.must(&["source", "list"]);
        api.contains("empty").then_some(())
    });
    // It has waited for longer than the lease: what it is given then is still trusted.
    let begun = clock::boot();
    until("a lease is over", || (clock::boot().since(begun).as_secs() >= 3).then_some(()));
    place.put(["late".to_owned()].into_iter());
    until("it is done", || (place.source()["done"] == 1).then_some(()));
    assert_eq!(place.lines("noted"), ["1"]);
    let told = clock::boot();
    collector.signal(Signal::SIGTERM);
    let (code, said) = collector.end();
    assert_eq!(code, 0, "{said}");
    assert!(clock::boot().since(told).as_secs() < 10, "it did not wait for its request to end");
}

#[test]
fn the_guard_of_a_killed_collector_gives_the_task_back_by_another_node() {
    let mut place = Place::new("5m");
    place.put(["orphan".to_owned()].into_iter());
    let away = place.away(&["--source", "pages"]);
    let script = place.script(WAITS);
    let words = ["collect", "--source", "pages", "--", "sh", "-c", &script];
    let collector = away.start(&words);
    place.number("pid");
    place.nodes[0].kill();
    collector.signal(Signal::SIGKILL);
    // Five minutes before its lease ends.
    until("it is ready again", || (place.source()["ready"] == 1).then_some(()));
    assert_eq!(place.source()["retried"], 1);
}

#[test]
fn what_a_collectors_token_may_not_look_at_is_said() {
    let place = Place::new("30s");
    let away = place.away(&["--source", "pages"]);
    let said = away.fails(&["collect", "--source", "pages", "--until-empty", "--", "true"], 4);
    assert!(said.contains("use a token of an operator that is bound to it"), "{said}");
    let said = away.fails(&["collect", "--source", "shop", "--", "true"], 4);
    assert!(said.contains("for the source pages only"), "{said}");
    let operator = place.ground.must(&["token", "new", "--user", "li", "--source", "pages"]);
    let operator = Away { token: operator.trim().to_owned(), ..away };
    place.put(["one".to_owned()].into_iter());
    operator.must(&["collect", "--source", "pages", "--until-empty", "--", "true"]);
    assert_eq!(place.source()["done"], 1);
    let nothing = ["collect", "--source", "nothing", "--", "true"];
    operator.fails(&nothing, 4);
    let unbound = Away { token: place.ground.token("li"), ..operator };
    assert!(unbound.fails(&nothing, 3).contains("nothing"));
}

#[test]
fn a_turn_is_had_kept_and_passed_by_nodes() {
    let mut place = Place::new("3s");
    let away = place.away(&["--rotation", "api"]);
    let turn = |script: &str| {
        let script = place.script(script);
        away.run(&["turn", "--rotation", "api", "--type", "a", "--", "sh", "-c", &script])
    };
    assert_eq!(turn("echo $SOLOIST_TYPE > type; exit 7").status.code(), Some(7));
    assert_eq!(place.lines("type"), ["a"]);
    let words = ["turn", "--rotation", "api", "--type", "zzz", "--wait", "0s", "--", "true"];
    assert!(away.fails(&words, 3).contains("zzz"));
    let script = place.script(WAITS);
    let words = ["turn", "--rotation", "api", "--type", "b", "--", "sh", "-c", &script];
    let running = away.start(&words);
    place.number("pid");
    let words = ["turn", "--rotation", "api", "--type", "a", "--wait", "100ms", "--", "true"];
    assert!(away.fails(&words, 75).contains("has it as b"));
    place.nodes[0].kill();
    let begun = clock::boot();
    until("the lease would have run out", || {
        (clock::boot().since(begun).as_secs() >= 5).then_some(())
    });
    place.go();
    let (code, said) = running.end();
    assert_eq!(code, 0, "{said}");
    let turns: Value =
        serde_json::from_str(&place.ground.must(&["rotation", "list", "api", "--json"]))
            .expect("JSON");
    assert_eq!(
        (&turns["turns"][0]["outcome"], &turns["turns"][1]["outcome"]),
        (&"done".into(), &"failed".into())
    );
}

#[test]
fn the_guard_of_a_killed_turn_passes_it_by_another_node() {
    let mut place = Place::new("5m");
    let away = place.away(&["--rotation", "api"]);
    let script = place.script(WAITS);
    let words = ["turn", "--rotation", "api", "--type", "a", "--", "sh", "-c", &script];
    let running = away.start(&words);
    place.number("pid");
    place.nodes[0].kill();
    running.signal(Signal::SIGKILL);
    until("nobody has the turn", || {
        let text = place.ground.must(&["rotation", "list", "api", "--json"]);
        let rotation: Value = serde_json::from_str(&text).expect("JSON");
        (rotation["holder"].is_null() && rotation["turns"][0]["outcome"] == "failed").then_some(())
    });
}
