//! What the kernel says ends a lease at once, and nothing else does.

use std::time::Duration;

use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};
use soloist::clock;

use super::program::{Program, Site, span};
use crate::support::machine::{in_time, judged};
use crate::support::wait::until_async;

judged! {
    the_next_has_it_at_once_when_its_holder_is_killed
}

const JOB: &str = "[[job]]\nname = \"outbound\"\nrunner = \"external\"\nlease_ttl = \"10s\"\nbackoff = { first = \"20s\", max = \"60s\" }\n";

async fn the_next_has_it_at_once_when_its_holder_is_killed() {
    let site = Site::new("");
    let (mut first, ..) = site.worker("ship").await;
    let waiting = site.ask("ship", "next", 9_000);
    let begun = clock::boot();
    let killed = async {
        until_async("it waits", async || {
            (site.held("ship").await.is_some_and(|held| held["watched"] == true)).then_some(())
        })
        .await;
        first.kill();
        clock::boot()
    };
    let (next, killed) = tokio::join!(waiting, killed);
    assert!(next["secret"].is_string(), "{next}");
    let took = clock::boot().since(killed);
    in_time(took < Duration::from_secs(2), || format!("it took {took:?}"));
    assert!(clock::boot().since(begun) < Duration::from_secs(9), "before the lease ends");
}

async fn run(site: &Site) -> Value {
    site.api.runs("outbound").await.into_iter().next().expect("a run")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_whose_program_died_is_lost_and_begins_again_without_a_backoff() {
    let site = Site::new(&format!("{JOB}min_uptime = \"1ms\"\n"));
    site.api.switch("outbound", true).await;
    let (mut program, ..) = site.worker("outbound").await;
    program.kill();
    site.until_free("outbound").await;
    let first = run(&site).await;
    assert_eq!(
        (&first["end"], &first["why"]),
        (&"lost".into(), &"the program died".into()),
        "{first}"
    );
    let log = site.api.get("/api/v1/jobs/outbound/log").await.to_string();
    assert!(log.contains("the program died: process"), "{log}");
    let page = site.ground.must(&["history", "outbound"]);
    assert!(page.contains("lost"), "{page}");
    site.acquire("outbound", "next").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_die_soon_after_their_grants_count_as_crashes_from_the_second_on() {
    let site = Site::new(&format!("{JOB}min_uptime = \"1h\"\n"));
    site.api.switch("outbound", true).await;
    for (death, crashes) in [(1, 0), (2, 1)] {
        let (mut program, ..) = site.worker("outbound").await;
        program.kill();
        site.until_free("outbound").await;
        let job = site.api.get("/api/v1/jobs/outbound").await;
        assert_eq!(job["crashes"].as_u64().unwrap_or(0), crashes, "death {death}: {job}");
        assert_eq!(run(&site).await["end"], "lost");
    }
    let refused = site.ask("outbound", "next", 0).await;
    assert_eq!(refused["reason"], "backing_off", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_ends_every_lease_of_the_process_and_of_no_other() {
    let site = Site::new("");
    let (mut one, line, ..) = site.worker("a").await;
    let before = one.say(line, &json!({"end": "nothing"}))["now_ns"].as_u64().expect("a time");
    for name in ["b", "c"] {
        let grant = site.acquire(name, "one").await;
        let under =
            json!({"under": name, "secret": grant["secret"], "until_ns": before + span(&grant)});
        assert_eq!(one.say(line, &under)["ok"], true);
    }
    // Given back before the death, and acquired by another.
    assert_eq!(one.say(line, &json!({"end": "c"}))["ok"], true);
    let (mut other, ..) = site.worker("d").await;
    one.kill();
    site.until_free("a").await;
    site.until_free("b").await;
    for name in ["c", "d"] {
        assert!(site.held(name).await.is_some(), "{name}");
    }
    assert!(other.lives());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_connection_is_no_death_and_the_process_is_still_watched() {
    let site = Site::new("");
    let (mut program, line, grant, _) = site.worker("ship").await;
    // Without a word more on it.
    program.tell(&json!({"line": line, "raw": "no JSON\n"}));
    assert_eq!(program.tell(&json!({"line": line, "read": true})), "end");
    assert!(site.held("ship").await.is_some(), "a lost watch gives nothing back");
    // What was said counts for the process: it goes on, on another connection.
    let again = program.connect(&site.socket());
    assert_eq!(program.say(again, &json!({"auth": site.token}))["ok"], true);
    let now = program.say(again, &json!({"end": "other"}))["now_ns"].as_u64().expect("a time");
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    assert_eq!(program.say(again, &under)["release"], true);
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_of_many_threads_is_dead_when_all_of_them_are() {
    let site = Site::new("");
    let (mut program, ..) = site.worker("ship").await;
    program.tell(&json!({"threads": 20}));
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_in_the_same_process_is_watched_on() {
    let site = Site::new("");
    let (mut program, line, ..) = site.worker("ship").await;
    // Its answer is that of the command.
    program.tell(&json!({"line": line, "exec": ["sh", "-c", "echo 1; exec sleep 600"]}));
    assert!(site.held("ship").await.is_some(), "an exec is no death");
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kernel_that_does_not_say_who_connected_needs_one_line_more() {
    let ground =
        crate::support::node::Ground::new("sqlite:soloist.db", "lifeline = \"line.sock\"\n");
    ground.add_user("ada", "admin");
    let token = ground.token("ada");
    let program = ground.path("soloist-old-kernel");
    let text = format!(
        "#!/bin/sh\nSOLOIST_LIFELINE_OLD_KERNEL=1 exec {} \"$@\"\n",
        crate::support::node::SOLOIST
    );
    std::fs::write(&program, text).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("ours");
    let ground = ground.with_program(&program);
    let node = ground.start("node-a");
    let api = node.api(&token);
    let site = Site { ground, node, token, api };
    let mut program = crate::support::wait::until("somebody listens", || {
        site.socket().exists().then(Program::start)
    });
    let line = program.connect(&site.socket());
    let said = program.say(line, &json!({"auth": site.token}));
    assert_eq!((&said["kill"], &said["release"]), (&false.into(), &false.into()), "{said}");
    let grant = site.acquire("ship", "one").await;
    let now = said["now_ns"].as_u64().expect("a time");
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    assert_eq!(program.say(line, &under)["ok"], false);
    let again = program.say(line, &json!({"again": said["again"]}));
    assert_eq!((&again["kill"], &again["release"]), (&true.into(), &true.into()), "{again}");
    assert_eq!(program.say(line, &under)["release"], true);
    program.kill();
    site.until_free("ship").await;
    // Who says something else is told so, and is not watched.
    let mut liar = Program::start();
    let line = liar.connect(&site.socket());
    liar.say(line, &json!({"auth": site.token}));
    assert_eq!(liar.say(line, &json!({"again": "0"}))["ok"], false);
    assert_eq!(liar.tell(&json!({"line": line, "read": true})), "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_say_what_is_watched() {
    let site = Site::new("[[job]]\nname = \"labels\"\ncommand = [\"sleep\", \"600\"]\n");
    site.api.switch("labels", true).await;
    let (_program, ..) = site.worker("ship").await;
    site.acquire("alone", "one").await;
    for (name, watched) in [("labels", true), ("ship", true), ("alone", false)] {
        until_async(&format!("{name} is shown as watched: {watched}"), async || {
            (site.held(name).await?["watched"] == watched).then_some(())
        })
        .await;
    }
    let nodes = until_async("the node says how many", async || {
        let nodes = site.api.get("/api/v1/nodes").await;
        (nodes["nodes"][0]["watched"] == 1).then_some(nodes)
    })
    .await;
    assert_eq!(nodes["nodes"][0]["watched"], 1);
    let table = until_async("the command line says it, too", async || {
        let table = site.ground.must(&["lease", "list"]);
        let line =
            |name: &str| table.lines().find(|line| line.starts_with(name)).map(str::to_owned);
        (line("ship")?.ends_with("yes") && line("alone")?.ends_with("no")).then_some(table)
    })
    .await;
    assert!(table.contains("WATCHED"), "{table}");
}

/// A renewal at another node, or at this one, moves nothing on the line; only what is said there does.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_a_program_takes_is_no_death() {
    let site = Site::new("");
    let (mut program, ..) = site.worker("ship").await;
    program.signal(Signal::SIGCONT);
    assert!(program.lives() && site.held("ship").await.is_some());
    let body = json!({"secret": "nonsense"});
    let (status, _) = site.api.call(Method::POST, "/api/v1/leases/ship/renew", Some(body)).await;
    assert_eq!(status.as_u16(), 409);
    program.kill();
    site.until_free("ship").await;
}
