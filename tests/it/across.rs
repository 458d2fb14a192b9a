//! An upgrade across a change of the store's schema, as `docs/operations.md` tells it, over a running job: which program is refused
//! when, what is kept, and how long the job stands still.
//!
//! `SOLOIST_OLDER=PATH` is a program of an older schema (541e2c5 has 1 on Redis and 7 on SQLite). Without it nothing is shown. What
//! each value becomes is held in `redis/converted.rs` and `sqlite/converted.rs`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use soloist::clock;

use crate::lifecycle::JOB;
use crate::support::machine::{holds, judged, within};
use crate::support::node::{Ground, SOLOIST};
use crate::support::redis::RedisServer;
use crate::support::wait::until;
use crate::support::witness::{self, Act, Witness};

judged! {
    the_schema_of_redis_is_raised_in_one_step_and_the_job_stands_still_only_for_it
    the_schema_of_sqlite_is_raised_in_one_step_and_the_job_stands_still_only_for_it
}

/// Jobs besides the one that runs, each with a run in its history.
const OTHERS: usize = 200;
/// A program that has not ended by then was not refused.
const ENDS: Duration = Duration::from_secs(10);
/// From the moment that the first node of this version listens until the job's script begins.
const BEGINS: Duration = Duration::from_secs(1);

async fn the_schema_of_redis_is_raised_in_one_step_and_the_job_stands_still_only_for_it() {
    let redis = RedisServer::start(&[]);
    upgrade(&redis.url()).await;
}

async fn the_schema_of_sqlite_is_raised_in_one_step_and_the_job_stands_still_only_for_it() {
    upgrade("sqlite:soloist.db").await;
}

/// Runs a command that must be refused; gives what it said.
fn refused(ground: &Ground, args: &[&str]) -> String {
    let mut command = ground.command(args);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let begun = clock::boot();
    let status = until("it ends or goes on", || match child.try_wait().expect("our own child") {
        Some(status) => Some(Some(status)),
        None => (clock::boot().since(begun) > ENDS).then_some(None),
    });
    child.kill().ok();
    let output = child.wait_with_output().expect("our own child");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(status.is_some_and(|status| !status.success()), "{args:?} was not refused: {said}");
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    said
}

const SERVE: [&str; 5] = ["serve", "--node", "node-c", "--listen", "127.0.0.1:0"];

async fn upgrade(store: &str) {
    let Some(old) = std::env::var_os("SOLOIST_OLDER").map(PathBuf::from) else {
        let says = "NOT SHOWN HERE: an upgrade across a schema: it needs SOLOIST_OLDER=PATH";
        // Past what keeps back the output of a test that passes.
        writeln!(std::io::stderr(), "{says}").ok();
        return;
    };
    let mut jobs = witness::job(JOB, "beat", "");
    for nth in 0..OTHERS {
        write!(jobs, "{}", witness::job(&format!("other-{nth}"), "once", "repeat = \"1h\""))
            .expect("a text");
    }
    let mut ground = Ground::new(store, &jobs).with_program(&old);
    witness::place(&ground);
    ground.add_user("li", "operator");
    ground.add_user("wang", "admin");
    let mut nodes = vec![ground.start("node-a"), ground.start("node-b")];
    ground.must(&["on", JOB, "--user", "li"]);
    ground.must(&["on", JOB, "--user", "wang"]);
    for nth in 0..OTHERS {
        ground.must(&["on", &format!("other-{nth}"), "--user", "li"]);
    }
    let witness = Witness::of(&ground, JOB);
    let before = witness.until_started(1);
    for nth in 0..OTHERS {
        let other = Witness::of(&ground, &format!("other-{nth}"));
        until("every job has run", || {
            other.acts().iter().any(|act| act.word == "end").then_some(())
        });
    }

    // The new program beside the old ones changes nothing.
    ground.change_program(SOLOIST.as_ref());
    let said = refused(&ground, &SERVE);
    assert!(said.contains("stop every node of that version"), "{said}");
    let said = refused(&ground, &["status"]);
    assert!(said.contains("start a node of this version"), "{said}");
    witness.until_more(before.token, 5);
    assert_eq!(witness.starts(), 1, "the job was not disturbed");

    // The one step: every old node ends, the one that runs the job last; then a new one starts.
    nodes.sort_by_key(|node| node.name == before.node);
    for node in &mut nodes {
        assert_eq!(node.terminate(), Some(0));
    }
    let stopped = clock::boot();
    let first = ground.start("node-a");
    let listens = clock::boot();
    let after = witness.until_started(2);
    let last: Act = witness
        .acts()
        .into_iter()
        .rfind(|act| act.token == before.token)
        .expect("the run before acted");
    let second = ground.start("node-b");
    let still = Duration::from_secs_f64((after.at - last.at).max(0.0));
    println!(
        "{}: {OTHERS} jobs more; the first node listens after {:?}; the job stood still for {still:?}",
        store.split(':').next().unwrap_or_default(),
        listens.since(stopped),
    );
    within(still, listens.since(stopped) + BEGINS, "the job begins when the first node is there");
    holds(after.token > before.token, || format!("{after:?} after {before:?}"));

    // Everything is kept.
    let api = first.api(&ground.token("wang"));
    let job = api.get(&format!("/api/v1/jobs/{JOB}")).await;
    let users = job["participants"].as_array().expect("users");
    for name in ["li", "wang"] {
        holds(users.iter().any(|one| one["user"] == name), || format!("lost {name}: {job}"));
    }
    let runs = api.runs(JOB).await;
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(!api.runs("other-7").await.is_empty(), "the history of a job that rests");

    // The old program beside the new ones changes nothing, either.
    ground.change_program(&old);
    for args in [&SERVE[..], &["status"]] {
        let said = refused(&ground, args);
        assert!(said.contains("schema"), "{said}");
    }
    witness.until_more(after.token, 5);
    assert_eq!(witness.starts(), 2, "the job was not disturbed");
    ground.change_program(SOLOIST.as_ref());
    drop((first, second));
    witness.check();
}
