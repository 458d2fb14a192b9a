//! Scripts that run as another user, and scripts that are given secrets: what they get, and what others get to see.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use nix::unistd::{Uid, User};
use reqwest::Method;
use serde_json::json;

use crate::support::nobody;
use crate::support::node::Ground;
use crate::support::wait::{until, until_async};

const JOB: &str = "outbound";
const SECRET: &str = "correct-horse-battery";

fn job(more: &str) -> String {
    format!("[[job]]\nname = \"{JOB}\"\ncommand = [\"sh\", \"ship.sh\"]\n{more}\n")
}

fn write(ground: &Ground, name: &str, text: &str, mode: u32) {
    fs::write(ground.path(name), text).expect("written");
    fs::set_permissions(ground.path(name), Permissions::from_mode(mode)).expect("ours");
}

/// A ground that everybody may enter.
fn open_ground(jobs: &str, script: &str) -> Ground {
    let ground = Ground::new("sqlite:soloist.db", jobs);
    write(&ground, "ship.sh", script, 0o755);
    fs::set_permissions(ground.path(""), Permissions::from_mode(0o755)).expect("ours");
    ground
}

fn until_said(ground: &Ground, word: &str) -> String {
    until(&format!("the log says {word}"), || {
        let log = ground.must(&["logs", JOB]);
        log.contains(word).then_some(log)
    })
}

/// As `Ground::must`, for a command that names no configuration.
fn must_by(ground: &Ground, words: &[&str]) {
    let output = ground.run(words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn runs(pid: &str) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok()
}

/// The name of the user that is nobody on this machine; `None` where root is not to be had, and says so.
fn another_user() -> Option<String> {
    let user = User::from_uid(nobody::UID.into()).ok().flatten().map(|user| user.name);
    if !Uid::effective().is_root() || user.is_none() {
        writeln!(std::io::stderr(), "NOT TESTED HERE: a script of another user: it needs root")
            .ok();
        return None;
    }
    user
}

#[test]
fn a_script_of_another_user_is_that_user_and_nothing_of_it_survives_its_job() {
    let Some(user) = another_user() else { return };
    for containment in ["auto", "subreaper"] {
        let script = "echo \"id $(id -u):$(id -g):$(id -G)\"; echo \"who $USER $LOGNAME $HOME\"\n\
                      grep -E '^(NoNewPrivs|CapEff|CapPrm|CapBnd|CapAmb):' /proc/self/status\n\
                      echo again > /dev/stderr && echo 'its output opens again'\n\
                      (: > /etc/soloist-was-here) 2> /dev/null || echo 'no write to etc'\n\
                      setsid sh -c 'exec setsid sleep 1234' & echo ready; sleep 1234";
        let jobs = format!("containment = \"{containment}\"\n{}", job(&format!("user = {user:?}")));
        let ground = open_ground(&jobs, script);
        ground.add_user("li", "operator");
        let _node = ground.start("node-a");
        ground.must(&["on", JOB, "--user", "li"]);
        let said = until_said(&ground, "ready");
        let found = User::from_name(&user).unwrap().unwrap();
        let groups =
            nix::unistd::getgrouplist(&std::ffi::CString::new(user.clone()).unwrap(), found.gid)
                .unwrap();
        let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
        let id = format!("id {}:{}:{}", found.uid, found.gid, groups.join(" "));
        assert!(said.contains(&id), "{id}: {said}");
        assert!(said.contains(&format!("who {user} {user} {}", found.dir.display())), "{said}");
        assert!(said.contains("NoNewPrivs:\t1") && said.contains("no write to etc"), "{said}");
        assert!(said.contains("its output opens again"), "{said}");
        for none in
            ["CapEff:\t0000000000000000", "CapPrm:\t0000000000000000", "CapAmb:\t0000000000000000"]
        {
            assert!(said.contains(none), "{none}: {said}");
        }
        let sleeping = || -> Vec<String> {
            let all = fs::read_dir("/proc").unwrap().flatten();
            let names = all.filter_map(|entry| entry.file_name().into_string().ok());
            names
                .filter(|pid| {
                    let mark = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                    let text = String::from_utf8_lossy(&mark).into_owned();
                    let here = format!(
                        "PWD={}",
                        ground.path("").display().to_string().trim_end_matches('/')
                    );
                    text.contains("SOLOIST_RUN=") && text.contains(&here)
                })
                .collect()
        };
        let before = until("both of them sleep", || Some(sleeping()).filter(|all| all.len() >= 2));
        ground.must(&["off", JOB, "--user", "li"]);
        until("the job is off", || ground.must(&["status"]).contains("off").then_some(()));
        until("none of them lives", || before.iter().all(|pid| !runs(pid)).then_some(()));
    }
}

#[test]
fn a_user_who_may_not_enter_the_directory_or_is_unknown_by_now_starts_nothing_and_it_is_said() {
    let Some(user) = another_user() else { return };
    let ground = open_ground(&job(&format!("user = {user:?}\ndir = \"closed\"")), "");
    fs::create_dir(ground.path("closed")).expect("made");
    fs::set_permissions(ground.path("closed"), Permissions::from_mode(0o700)).expect("ours");
    let check = ground.run(&["check"]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned()
        + &String::from_utf8_lossy(&check.stdout);
    assert!(check.status.success(), "an access list might allow it: {said}");
    assert!(said.contains("may not enter") && said.contains("closed"), "{said}");
    ground.add_user("li", "operator");
    let _node = ground.start("node-a");
    ground.must(&["on", JOB, "--user", "li"]);
    let log = until_said(&ground, "was not started");
    assert!(log.contains(&user) && log.contains("may not enter"), "{log}");
}

#[test]
fn a_node_that_is_not_root_runs_scripts_as_itself_only() {
    let Some(ground) = nobody::ground("sqlite:soloist.db", &job("user = \"root\"")) else { return };
    write(&ground, "ship.sh", "", 0o755);
    let check = ground.run(&["check"]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(0), "a fault of the machine, not of the file: {said}");
    assert!(said.contains("job.outbound.user: only a node that is root"), "{said}");
    // Whoever only looks or switches need not be able to run it.
    ground.add_user("li", "operator");
    let Some(own) = User::from_uid(nobody::UID.into()).ok().flatten() else { return };
    let script = "echo \"who $USER $(id -u)\"; grep NoNewPrivs /proc/self/status; cat /proc/self/oom_score_adj; echo ready; sleep 300";
    let Some(ground) = nobody::ground("sqlite:soloist.db", &job(&format!("user = {:?}", own.name)))
    else {
        return;
    };
    write(&ground, "ship.sh", script, 0o755);
    ground.add_user("li", "operator");
    let _node = ground.start("node-a");
    ground.must(&["on", JOB, "--user", "li"]);
    let log = until_said(&ground, "ready");
    assert!(log.contains(&format!("who {} {}", own.name, own.uid)), "{log}");
    assert!(log.contains("NoNewPrivs:\t1") && log.contains("300"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_reaches_the_script_and_nobody_who_looks() {
    let script = "echo \"it is $DB_PASSWORD.\"; echo \"::progress 1/2 with $DB_PASSWORD\"\n\
                  printf '%s' \"${DB_PASSWORD%battery}\" >&2; sleep 0.2; echo battery >&2\n\
                  [ \"$DB_PASSWORD\" = correct-horse-battery ] && [ \"$PIN\" = 1234 ] && echo it-is-right\n\
                  echo ready; sleep 300";
    let secrets = "secrets = { DB_PASSWORD = \"secrets/db\", PIN = \"secrets/pin\" }";
    let ground = open_ground(&job(secrets), script);
    fs::create_dir(ground.path("secrets")).expect("made");
    write(&ground, "secrets/db", &format!("{SECRET}\n"), 0o600);
    write(&ground, "secrets/pin", "1234", 0o400);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    ground.must(&["on", JOB, "--user", "li"]);
    let log = until_said(&ground, "ready");
    assert!(log.contains("it is ***.") && log.contains("it-is-right"), "{log}");
    let api = node.api(&token);
    let seen = until_async("the progress is shown", async || {
        let job = api.get(&format!("/api/v1/jobs/{JOB}")).await;
        (job["run"]["progress"]["note"] == "with ***").then_some(job)
    })
    .await;
    let mut all = vec![log, seen.to_string()];
    for path in ["log", "runs"] {
        all.push(api.get(&format!("/api/v1/jobs/{JOB}/{path}")).await.to_string());
    }
    all.push(api.get("/api/v1/nodes").await.to_string());
    all.push(ground.must(&["logs", JOB]));
    for text in all {
        assert!(!text.contains(SECRET) && !text.contains("horse"), "{text}");
    }
    let stored = fs::read(ground.path("soloist.db")).expect("the store");
    let beside = fs::read(ground.path("soloist.db-wal")).unwrap_or_default();
    for bytes in [stored, beside] {
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    }

    // Read at each start: the next run has the newer one.
    write(&ground, "secrets/db", "another-one-entirely", 0o600);
    write(
        &ground,
        "ship.sh",
        "[ \"$DB_PASSWORD\" = another-one-entirely ] && echo it-is-newer; sleep 300",
        0o755,
    );
    for on in [false, true] {
        let path = format!("/api/v1/jobs/{JOB}/participation");
        api.call(Method::PUT, &path, Some(json!({"on": on}))).await;
        if !on {
            api.live().await.until_state(JOB, "off").await;
        }
    }
    until_said(&ground, "it-is-newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_is_missing_or_open_to_others_is_a_failed_start_and_never_a_start_without_it()
{
    let settings = "secrets = { DB_PASSWORD = \"secrets/db\" }\nbackoff = { first = \"100ms\", max = \"200ms\" }";
    let ground =
        open_ground(&job(settings), "echo \"started with $DB_PASSWORD\"; touch started; sleep 300");
    fs::create_dir(ground.path("secrets")).expect("made");
    let check = |code| {
        let output = ground.run(&["check"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    let said = check(0);
    assert!(said.contains("secrets.DB_PASSWORD") && said.contains("there is no file"), "{said}");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let api = node.api(&token);
    api.switch(JOB, true).await;
    let mut live = api.live().await;
    live.until_state(JOB, "backing_off").await;
    let log = until_said(&ground, "there is no file");
    assert!(log.contains("secrets.DB_PASSWORD") && log.contains("chmod 600"), "{log}");
    let runs = api.runs(JOB).await;
    assert!(runs.iter().all(|run| run["end"].is_null() || run["end"] == "crashed"), "{runs:?}");

    write(&ground, "secrets/db", SECRET, 0o644);
    let log = until_said(&ground, "others may read");
    assert!(log.contains("chmod 600") && !log.contains(SECRET), "{log}");
    let said = check(0);
    assert!(said.contains("job.outbound.secrets.DB_PASSWORD: others may read"), "{said}");
    assert!(!ground.path("started").exists());

    write(&ground, "secrets/db", SECRET, 0o600);
    let log = until_said(&ground, "started with");
    assert!(log.contains("started with ***"), "{log}");
    check(0);
}

/// Files of a Secret as the kubelet makes them: of root and `fsGroup`, 0440, behind a link to a directory of one version; another
/// version is another directory, and the link is swapped.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_as_kubernetes_makes_it_is_read_and_the_next_run_has_the_next_version() {
    let more = "secrets = { DB_PASSWORD = \"vol/db\" }";
    let Some(ground) = nobody::ground("sqlite:soloist.db", &job(more)) else { return };
    write(&ground, "ship.sh", "echo \"it has ${DB_PASSWORD#correct-}\"; sleep 300", 0o755);
    nobody::publish(&ground.path("vol"), "1", &[("db", SECRET), ("token", "x")]);
    let check = ground.run(&["check"]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(check.status.success() && said.is_empty(), "{said}");
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    // A token's file is one of the same kind.
    nobody::publish(&ground.path("vol"), "2", &[("db", SECRET), ("token", &format!("{token}\n"))]);
    let file = ground.path("vol/token").display().to_string();
    let by = ["--server", &node.url, "--token-file", &file];
    must_by(&ground, &[&by[..], &["on", JOB]].concat());
    until_said(&ground, "it has horse-battery");
    nobody::publish(
        &ground.path("vol"),
        "3",
        &[("db", "correct-donkey-stable"), ("token", &token)],
    );
    must_by(&ground, &[&by[..], &["off", JOB]].concat());
    until("it has ended", || ground.must(&["status"]).contains("off").then_some(()));
    must_by(&ground, &[&by[..], &["on", JOB]].concat());
    until_said(&ground, "it has donkey-stable");
}

#[test]
fn user_and_secrets_are_part_of_a_jobs_definition_and_values_are_not() {
    use soloist::config::{Overrides, examine};
    let ground = open_ground("", "");
    let own = User::from_uid(Uid::effective()).unwrap().unwrap().name;
    fs::create_dir(ground.path("secrets")).expect("made");
    write(&ground, "secrets/db", SECRET, 0o600);
    let told = |more: &str| {
        fs::write(ground.path("soloist.toml"), job(more)).expect("ours");
        let examined = examine(Some(&ground.path("soloist.toml")), Overrides::default(), &|_| None);
        examined
            .config
            .unwrap()
            .definitions(soloist::domain::time::StoreTime(0))
            .into_values()
            .next()
            .unwrap()
    };
    let plain = told("");
    let user = told(&format!("user = {own:?}"));
    assert_ne!((&plain.keys["user"], &plain.hash), (&user.keys["user"], &user.hash));
    let one = told("secrets = { DB_PASSWORD = \"secrets/db\" }");
    assert_ne!(plain.keys["secrets"], one.keys["secrets"]);
    write(&ground, "secrets/db", "quite-another-value", 0o600);
    assert_eq!(
        one,
        told("secrets = { DB_PASSWORD = \"secrets/db\" }"),
        "of another value nobody learns"
    );
}
