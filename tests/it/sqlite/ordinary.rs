//! What people and SQLite do to the files of a store every day is never taken for a replacement (`replaced.rs`), and costs no wait.

use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use nix::unistd::Uid;

use crate::support::nobody;
use crate::support::node::{Ground, Node};
use crate::support::wait::within;
use crate::support::witness::{Witness, job, place};

const JOB: &str = "beat";

/// Nothing would be granted for a minute after a doubt, which no test waits for.
fn ground() -> Ground {
    let ground = Ground::new("sqlite:data/soloist.db", &job(JOB, "beat", "lease_ttl = \"60s\""));
    place(&ground);
    ground.add_user("li", "admin");
    ground.must(&["on", JOB, "--user", "li"]);
    ground
}

fn shell(ground: &Ground, sql: &str) {
    let database = ground.path("data/soloist.db");
    let done =
        Command::new("sqlite3").args(["-cmd", ".timeout 5000"]).arg(database).arg(sql).output();
    let done = done.expect("sqlite3 starts");
    assert!(done.status.success(), "{sql}: {}", String::from_utf8_lossy(&done.stderr));
}

async fn is_well(node: &Node, after: &str) {
    let answer =
        crate::support::http::get(format!("{}/readyz", node.url)).await.expect("an answer");
    let well = answer.status().is_success();
    assert!(well, "{}, after {after}: {}", node.name, answer.text().await.expect("words"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_to_a_store_every_day_stops_nothing() {
    let ground = ground();
    let witness = Witness::of(&ground, JOB);
    let mut a = ground.start("node-a");
    let first = witness.until_started(1);
    let backup = format!(".backup '{}'", ground.path("backup.db").display());
    for _ in 0..3 {
        for sql in [
            "PRAGMA wal_checkpoint(TRUNCATE)",
            "SELECT count(*) FROM records",
            "PRAGMA wal_checkpoint(RESTART)",
            &backup,
            "PRAGMA wal_checkpoint(PASSIVE)",
            "VACUUM",
            "PRAGMA wal_checkpoint(FULL)",
            "PRAGMA integrity_check",
        ] {
            shell(&ground, sql);
            witness.until_more(first.token, 3);
            is_well(&a, sql).await;
        }
        std::fs::set_permissions(ground.path("data/soloist.db"), Permissions::from_mode(0o640))
            .expect("ours");
        let mut b = ground.start("node-b");
        let looks: Vec<_> = (0..3)
            .map(|_| ground.command(&["status"]).stdout(Stdio::null()).spawn().expect("it starts"))
            .collect();
        for mut look in looks {
            assert!(look.wait().expect("it ends").success());
        }
        is_well(&b, "commands beside it").await;
        b.kill();
        let mut b = ground.start("node-b");
        is_well(&b, "a kill").await;
        assert_eq!(b.terminate(), Some(0));
        is_well(&a, "another node").await;
    }
    assert_eq!(witness.starts(), 1, "nothing was stopped");
    assert_eq!(a.terminate(), Some(0));
    // Alone again, and at once: after an end, and after a kill.
    let mut a = ground.start("node-a");
    drop(witness.until_started(2));
    is_well(&a, "a restart").await;
    let shell_that_stays = Command::new("sqlite3")
        .arg(ground.path("data/soloist.db"))
        .args(["-cmd", "SELECT count(*) FROM records"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn();
    let mut shell_that_stays = shell_that_stays.expect("sqlite3 starts");
    assert_eq!(a.terminate(), Some(0));
    let mut a = ground.start("node-a");
    drop(witness.until_started(3));
    is_well(&a, "a restart beside a shell").await;
    drop(shell_that_stays.stdin.take());
    assert!(shell_that_stays.wait().expect("it ends").success());
    is_well(&a, "the shell has ended").await;
    a.kill();
    let mut a = ground.start("node-a");
    drop(witness.until_started(4));
    assert_eq!(a.terminate(), Some(0));
    witness.check();
}

/// `sudo soloist user add`, typed before the service was started once.
#[test]
fn what_root_makes_first_belongs_to_the_owner_of_the_directory() {
    let jobs = "[[job]]\nname = \"beat\"\ncommand = [\"true\"]\n";
    let Some(ground) = nobody::ground("sqlite:data/soloist.db", jobs) else { return };
    assert!(Uid::effective().is_root());
    let root = Ground::new(&format!("sqlite:{}", ground.path("data/soloist.db").display()), jobs);
    root.add_user("li", "admin");
    for made in ["data", "data/soloist.db", "data/soloist.db-wake"] {
        let found = std::fs::metadata(ground.path(made)).expect("it was made");
        assert_eq!((found.uid(), found.gid()), (nobody::UID, nobody::UID), "{made}");
    }
    assert!(ground.must(&["user", "list"]).contains("li"), "the service reads it");
    ground.must(&["on", "beat", "--user", "li"]);
    // And the other way: root looks and writes while nobody else has it open.
    root.must(&["off", "beat", "--user", "li"]);
    ground.must(&["on", "beat", "--user", "li"]);
}

/// In a directory of root's own nothing changes hands.
#[test]
fn what_root_makes_in_its_own_directory_stays_its_own() {
    let ground = Ground::new("sqlite:data/soloist.db", "");
    if !Uid::effective().is_root() {
        return;
    }
    chown(ground.path(""), Some(0), Some(0)).expect("root may");
    ground.add_user("li", "admin");
    assert_eq!(std::fs::metadata(ground.path("data/soloist.db")).expect("made").uid(), 0);
}

/// What tells of removed files is a name that anybody on this machine may take.
#[test]
fn a_user_of_the_machine_who_says_to_use_the_store_keeps_nobody_out() {
    let ground = ground();
    let mut a = ground.start("node-a");
    let own = |line: &str| line.ends_with(&format!("/{}/0", a.pid()));
    let sockets = std::fs::read_to_string("/proc/net/unix").expect("the sockets");
    let line = sockets.lines().find(|line| own(line)).expect("the node says which files it uses");
    let name = line.split_once('@').expect("an abstract name").1;
    let parts: Vec<&str> = name.split('/').collect();
    // The main file of the store with a log and an index that are not there.
    let forged = format!("{}/{}/{}/1-1/1-1/1/0", parts[0], parts[1], parts[2]);
    let listens = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX)\n\
        s.bind('\\0' + sys.argv[1])\n\
        s.listen(128)\n\
        print('listens', flush=True)\n\
        sys.stdin.read()";
    let mut stranger = Command::new("python3");
    stranger.args(["-c", listens, &forged]).stdin(Stdio::piped()).stdout(Stdio::piped());
    if Uid::effective().is_root() {
        stranger.uid(nobody::UID).gid(nobody::UID);
    }
    let mut stranger = stranger.spawn().expect("python3 starts");
    let said = BufReader::new(stranger.stdout.take().expect("a pipe")).lines().next();
    assert_eq!(said.expect("a line").expect("readable"), "listens");
    let status = ground.run(&["status"]);
    // The node's own user is believed.
    assert_eq!(status.status.success(), Uid::effective().is_root(), "{status:?}");
    stranger.kill().expect("it lives");
    stranger.wait().expect("it ends");
    ground.must(&["status"]);
    assert_eq!(a.terminate(), Some(0));
}

#[test]
fn doctor_names_a_process_that_uses_removed_files() {
    let ground = ground();
    let witness = Witness::of(&ground, JOB);
    let a = ground.start("node-a");
    drop(witness.until_started(1));
    for side in ["-wal", "-shm"] {
        std::fs::remove_file(ground.path(&format!("data/soloist.db{side}"))).expect("removed");
    }
    let pid = format!("process {}", a.pid());
    let told = within(std::time::Duration::from_secs(20), || {
        let output = ground.run(&["doctor"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (!output.status.success() && text.contains(&pid)).then_some(text)
    });
    let told = told.expect("doctor names it");
    assert!(told.contains("removed or replaced") && told.contains("stop every node"), "{told}");
    let status = ground.run(&["status"]);
    let said = String::from_utf8_lossy(&status.stderr).into_owned();
    assert!(!status.status.success() && said.contains(&pid), "{said}");
}
