//! Machines that lack what a job needs: a directory that is not mounted, a program, a user, a secret. That job does not start
//! there; every command and every other job goes on, another machine takes the job, and nothing needs a restart.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::reload::Logged;
use crate::support::api::Api;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};

const WELL: &str = "[[job]]\nname = \"well\"\ncommand = [\"sleep\", \"1000\"]\n";

fn lacking(name: &str, more: &str) -> String {
    format!("[[job]]\nname = {name:?}\n{more}\n")
}

/// A job for each thing that a machine may lack, what of it is said, and whether it is found before a start.
fn all() -> Vec<(&'static str, String, &'static str, bool)> {
    let here = "command = [\"sleep\", \"1000\"]";
    vec![
        ("unmounted", format!("{here}\ndir = \"volume\""), "volume", true),
        ("a-file", format!("{here}\ndir = \"soloist.toml\""), "is not a directory", true),
        ("no-program", "command = [\"no-such-program\"]".to_owned(), "no-such-program", true),
        ("no-script", "command = [\"./ship.sh\"]".to_owned(), "ship.sh", true),
        ("no-user", format!("{here}\nuser = \"no-such-user\""), "no-such-user", true),
        ("no-secret", format!("{here}\nsecrets = {{ A = \"gone\" }}"), "there is no file", false),
        ("open-secret", format!("{here}\nsecrets = {{ A = \"open\" }}"), "others may read", false),
    ]
}

/// What is said of `job`: by `why`, or in its log after a start that failed.
fn said(ground: &Ground, job: &str) -> String {
    ground.must(&["why", job]) + &ground.must(&["logs", job])
}

async fn state(api: &Api, job: &str) -> String {
    api.get(&format!("/api/v1/jobs/{job}")).await["state"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_machine_lacks_keeps_one_job_from_starting_and_no_command_and_no_other_job() {
    let jobs: String = all().iter().map(|(name, more, ..)| lacking(name, more)).collect();
    let ground = Ground::new("sqlite:soloist.db", &format!("{WELL}{jobs}"));
    fs::write(ground.path("open"), "sesame").expect("written");
    fs::set_permissions(ground.path("open"), fs::Permissions::from_mode(0o644)).expect("ours");
    let check = ground.run(&["check"]);
    let warned = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(check.status.success(), "the file is right: {warned}");
    for (name, _, part, _) in all() {
        let line = warned.lines().find(|line| line.contains(&format!("job.{name}.")));
        assert!(line.is_some_and(|line| line.contains(part)), "{name}: {warned}");
    }
    ground.add_user("li", "admin");
    let token = ground.token("li");
    let node = Logged::start(&ground);
    let api = Api::new(&node.url, &token);
    api.switch("well", true).await;
    for (name, ..) in all() {
        api.switch(name, true).await;
    }
    until_async("the other job runs", async || {
        let job = api.get("/api/v1/jobs/well").await;
        job["run"]["pid"].is_number().then_some(())
    })
    .await;
    for (name, _, part, before) in all() {
        until(&format!("it is said of {name}"), || {
            said(&ground, name).contains(part).then_some(())
        });
        if before {
            assert_eq!(state(&api, name).await, "waiting", "{name}");
            assert!(api.runs(name).await.is_empty(), "{name} was started");
        }
    }
    // Everything that can be done beside it is done.
    let commands: [&[&str]; 22] = [
        &["status"],
        &["why", "well"],
        &["off", "well", "--user", "li"],
        &["on", "well", "--user", "li"],
        &["hold", "well", "--user", "li", "--reason", "x"],
        &["resume", "well", "--user", "li"],
        &["off", "unmounted", "--user", "li"],
        &["on", "unmounted", "--user", "li"],
        &["logs", "well"],
        &["runs", "well"],
        &["nodes"],
        &["lease", "list"],
        &["drain", "node-a"],
        &["undrain", "node-a"],
        &["audit"],
        &["token", "list"],
        &["user", "list"],
        &["session", "list"],
        &["link"],
        &["source", "list"],
        &["rotation", "list"],
        &["run", "--name", "mine", "--", "true"],
    ];
    for words in commands {
        ground.must(words);
    }
    let doctor = ground.run(&["doctor"]);
    let found = String::from_utf8_lossy(&doctor.stdout).into_owned();
    for (name, _, part, _) in all() {
        assert!(found.contains(&format!("job.{name}.")) && found.contains(part), "{name}: {found}");
    }
    node.hang_up();
    node.until_said("the configuration is read again");

    // Mended, and it runs, without a reload.
    fs::create_dir(ground.path("volume")).expect("made");
    fs::write(ground.path("ship.sh"), "#!/bin/sh\nsleep 1000\n").expect("written");
    fs::set_permissions(ground.path("ship.sh"), fs::Permissions::from_mode(0o755)).expect("ours");
    for name in ["unmounted", "no-script"] {
        until_async(&format!("{name} runs"), async || {
            let job = api.get(&format!("/api/v1/jobs/{name}")).await;
            job["run"]["pid"].is_number().then_some(())
        })
        .await;
    }
    // A run goes on when its directory goes; the next one waits.
    fs::rename(ground.path("volume"), ground.path("away")).expect("moved");
    let log = node.until_said("the job is not started here until this is mended: dir:");
    assert!(log.contains("volume"), "{log}");
    assert!(state(&api, "unmounted").await.ends_with("ing"), "it was not stopped");
    assert!(api.get("/api/v1/jobs/unmounted").await["run"]["pid"].is_number());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_machine_runs_what_this_one_cannot_start_and_this_one_takes_it_once_it_can() {
    let redis = RedisServer::start(&[]);
    let job = lacking("scan", "command = [\"sleep\", \"1000\"]\ndir = \"volume\"");
    let (one, other) = (Ground::new(&redis.url(), &job), Ground::new(&redis.url(), &job));
    fs::create_dir(other.path("volume")).expect("made");
    one.add_user("li", "operator");
    let token = one.token("li");
    let first = one.start("node-a");
    let api = first.api(&token);
    api.switch("scan", true).await;
    let why = until("it is said what is missing, and where", || {
        let why = one.must(&["why", "scan"]);
        why.contains("volume").then_some(why)
    });
    assert!(why.contains("node-a: dir: ") && why.contains("automatically"), "{why}");
    let row = one.must(&["status", "scan"]);
    assert!(row.contains("waiting"), "{row}");
    let mut second = other.start("node-b");
    let holder = async |node: &str| {
        until_async(&format!("{node} has it"), async || {
            let job: Value = api.get("/api/v1/jobs/scan").await;
            (job["lease"]["node"] == node && job["run"]["pid"].is_number()).then_some(())
        })
        .await;
    };
    holder("node-b").await;
    fs::create_dir(one.path("volume")).expect("made");
    // It offers itself again: only then may the job be moved there.
    until("node-a may take it", || {
        one.run(&["move", "scan", "--to", "node-a", "--user", "li"]).status.success().then_some(())
    });
    holder("node-a").await;
    second.terminate();
}
