//! Work is over in time: a program that is paused, or goes on, past what it said is dead before its lease can pass on.

use nix::sys::signal::Signal;
use serde_json::json;
use soloist::clock;

use super::program::{Site, span};
use crate::support::wait::until_async;

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_program_is_dead_before_another_can_hold_its_lease() {
    let site =
        Site::new("[[job]]\nname = \"outbound\"\nrunner = \"external\"\nlease_ttl = \"2s\"\n");
    site.api.switch("outbound", true).await;
    for name in ["outbound", "ship"] {
        let (mut program, _, grant, said) = site.worker(name).await;
        program.signal(Signal::SIGSTOP);
        let waits = site.ask(name, "next", 30_000);
        let dead = async {
            let status = until_async("the watcher kills it", async || {
                (!program.lives()).then(|| program.wait())
            })
            .await;
            (status, clock::boot())
        };
        let (next, (status, dead)) = tokio::join!(waits, dead);
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        assert!(next["token"].as_u64() > grant["token"].as_u64(), "{next}");
        let kill = said["kill_ns"].as_u64().expect("an instant");
        assert!(dead.0 >= kill, "not before it had to be");
        site.release(name, &next).await;
    }
    let runs = site.api.runs("outbound").await;
    let fenced = runs.iter().find(|run| run["end"] == "fenced").expect("the history says so");
    assert_eq!(fenced["exit"]["signal"], 9, "{fenced}");
    let log = site.api.get("/api/v1/jobs/outbound/log").await.to_string();
    assert!(log.contains("was killed: it had not renewed"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_more_lives_and_who_says_that_it_has_ended_is_let_be() {
    let site = Site::new("");
    let (mut renewing, line, grant, said) = site.worker("ship").await;
    let (mut ended, its, ..) = site.worker("pack").await;
    let (mut late, ..) = site.worker("late").await;
    assert_eq!(ended.say(its, &json!({"end": "pack"}))["ok"], true);
    let first = said["kill_ns"].as_u64().expect("an instant");
    // It renews at the node, and says so until the third is dead.
    let mut kill = first;
    until_async("who says nothing is killed", async || {
        let now = renewing.say(line, &json!({"end": "other"}))["now_ns"].as_u64().expect("a time");
        let path = "/api/v1/leases/ship/renew";
        let body = json!({"secret": grant["secret"]});
        let (status, kept) = site.api.call(reqwest::Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{kept}");
        let under =
            json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&kept)});
        let said = renewing.say(line, &under);
        assert!(said["kill_ns"].as_u64() > Some(kill), "{said}");
        kill = said["kill_ns"].as_u64().expect("an instant");
        (!late.lives()).then_some(())
    })
    .await;
    // The third one had to be over after the first two.
    assert!(clock::boot().0 > first, "all of them would be dead");
    assert!(renewing.lives() && ended.lives());
    // An earlier instant takes nothing back.
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": first});
    assert_eq!(renewing.say(line, &under)["kill_ns"].as_u64(), Some(kill));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_no_kill_is_paused_as_long_as_somebody_debugs_it() {
    let site = Site::new("");
    let (mut program, line) = site.program();
    let said = program.say(line, &json!({"auth": site.token, "overrun": "leave"}));
    assert_eq!((&said["kill"], &said["release"]), (&false.into(), &true.into()), "{said}");
    let now = said["now_ns"].as_u64().expect("a time");
    let grant = site.acquire("ship", "one").await;
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    let said = program.say(line, &under);
    assert_eq!((&said["kill_ns"], &said["release"]), (&json!(null), &true.into()), "{said}");
    program.signal(Signal::SIGSTOP);
    let next = site.ask("ship", "next", 30_000).await;
    assert!(next["secret"].is_string(), "it passed on by itself: {next}");
    assert!(program.lives());
    program.signal(Signal::SIGCONT);
    // The older secret is over; its death gives nothing back.
    program.kill();
    until_async("the watcher has seen the death, and the node has been told", async || {
        let nodes = site.api.get("/api/v1/nodes").await;
        (nodes["nodes"][0]["watched"] == 0).then_some(())
    })
    .await;
    assert_eq!(site.held("ship").await.expect("the next has it")["token"], next["token"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn instants_that_no_lease_lasts_to_are_refused_and_kill_nobody() {
    let site = Site::new("");
    let (mut program, line) = site.program();
    let grant = site.acquire("ship", "one").await;
    let now = program.say(line, &json!({"end": "none"}))["now_ns"].as_u64().expect("a time");
    for (until, why) in [
        (json!(0), "has passed"),
        (json!(now), "has passed"),
        (json!(now + 3_600_000_000_000_u64), "later than"),
        (json!(u64::MAX), "later than"),
        (json!(null), "until_ns is missing"),
    ] {
        let said = program
            .say(line, &json!({"under": "ship", "secret": grant["secret"], "until_ns": until}));
        assert_eq!(said["ok"], false, "{until}");
        assert!(said["detail"].as_str().expect("why").contains(why), "{until}: {said}");
    }
    assert!(program.lives());
    let said = program.say(
        line,
        &json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)}),
    );
    assert_eq!(said["ok"], true, "{said}");
}
