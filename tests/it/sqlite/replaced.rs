//! What is behind the path of a store is removed, moved or overwritten while a node runs a job, and another node starts there.
//!
//! Every combination of what and how, and the same three questions: does a second copy of the script ever act while the first one
//! does, does the first node say what happened, and does the job run again when its remedy was followed.

use std::fs::{copy, create_dir, read_dir, remove_dir_all, remove_file, rename, write};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::node::{Ground, Node};
use crate::support::postgres::descendants;
use crate::support::wait::{until, until_async};
use crate::support::witness::{Witness, job, place};

const JOB: &str = "beat";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Main,
    Log,
    Index,
    SideFiles,
    All,
    Directory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Removed,
    MovedAway,
    /// By `cp`, which keeps the inode.
    Overwritten,
    /// By `mv`, which gives another inode.
    Replaced,
    CutShort,
}

impl What {
    fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Main => &[""],
            Self::Log => &["-wal"],
            Self::Index => &["-shm"],
            Self::SideFiles => &["-wal", "-shm"],
            Self::All | Self::Directory => &["", "-wal", "-shm", "-wake"],
        }
    }
}

/// A node that runs the job, and older copies of all files of its store.
struct Scene {
    ground: Ground,
    witness: Witness,
    a: Node,
}

const DB: &str = "data/soloist.db";

impl Scene {
    async fn begin() -> Self {
        let toml = job(JOB, "beat", "lease_ttl = \"2s\"");
        let ground = Ground::new(&format!("sqlite:{DB}"), &toml);
        place(&ground);
        ground.add_user("li", "admin");
        ground.must(&["on", JOB, "--user", "li"]);
        create_dir(ground.path("older")).expect("made");
        // What a command wrote is in the log until somebody closes the store in order.
        let backup = format!(".backup {}", ground.path("older/soloist.db").display());
        let made = Command::new("sqlite3").arg(ground.path(DB)).arg(backup).status();
        assert!(made.is_ok_and(|status| status.success()), "a backup");
        let witness = Witness::of(&ground, JOB);
        let a = ground.start("node-a");
        let first = witness.until_started(1);
        ground.add_user("wang", "viewer");
        witness.until_more(first.token, 5);
        for side in ["-wal", "-shm", "-wake"] {
            let file = format!("soloist.db{side}");
            copy(ground.path(&format!("data/{file}")), ground.path(&format!("older/{file}")))
                .expect("a copy");
        }
        witness.until_more(first.token, 20);
        Self { ground, witness, a }
    }

    fn act(&self, what: What, how: How) {
        let data = |suffix: &str| self.ground.path(&format!("{DB}{suffix}"));
        let older = |suffix: &str| self.ground.path(&format!("older/soloist.db{suffix}"));
        if what == What::Directory {
            let (here, away) = (self.ground.path("data"), self.ground.path("away"));
            match how {
                How::Removed => remove_dir_all(here).expect("removed"),
                How::MovedAway => rename(here, away).expect("moved"),
                _ => {
                    rename(&here, away).expect("moved");
                    create_dir(here).expect("made anew");
                    copy(older(""), data("")).expect("put back");
                }
            }
            return;
        }
        for suffix in what.suffixes() {
            match how {
                How::Removed => remove_file(data(suffix)).expect("removed"),
                How::MovedAway => {
                    rename(data(suffix), self.ground.path(&format!("away{suffix}")))
                        .expect("moved");
                }
                How::Overwritten => {
                    copy(older(suffix), data(suffix)).expect("overwritten");
                }
                How::Replaced => rename(older(suffix), data(suffix)).expect("replaced"),
                How::CutShort => write(data(suffix), "").expect("cut"),
            }
        }
    }

    /// As somebody would who finds an empty store: makes it anew. Refused when the store is not empty.
    fn begin_anew(&self) {
        let mut add = self.ground.command(&["user", "add", "li", "--role", "admin"]);
        add.arg("--password-stdin");
        piped(add, "a password that is long enough\n");
        drop(self.ground.run(&["on", JOB, "--user", "li"]));
    }
}

fn piped(mut command: Command, text: &str) {
    use std::io::Write as _;
    use std::process::Stdio;
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("soloist starts");
    // One that refuses does not read it.
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).ok();
    child.wait().expect("it ends");
}

async fn ready(node: &Node) -> Option<(u16, String)> {
    let answer = crate::support::http::get(format!("{}/readyz", node.url)).await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

async fn is_replaced(what: What, how: How) {
    let about = format!("{what:?} {how:?}");
    let mut scene = Scene::begin().await;
    let first = scene.witness.acts()[0].clone();
    scene.act(what, how);
    scene.begin_anew();
    // A store that others use with other files is refused; what starts a node starts it again.
    let usable = scene.ground.run(&["status"]).status.success();
    let b = usable.then(|| scene.ground.start("node-b"));
    let named = ["removed or replaced", "overwritten", "cut short"];
    let mut made_anew = false;
    until_async(&format!("{about}: node-a says so"), async || {
        match ready(&scene.a).await {
            // Whoever came first made the index anew from the log before node-a looked: it is one store as before, and node-a hears.
            Some((200, said)) if usable && (what, how) == (What::Index, How::CutShort) => {
                made_anew |= scene.ground.run(&["off", JOB, "--user", "li"]).status.success();
                scene.witness.living_under(first.token).is_empty().then_some(said)
            }
            Some((status, said)) => {
                (status == 503 && named.iter().any(|words| said.contains(words))).then_some(said)
            }
            // The kernel ends a process whose memory is a file that is cut short under its hands; the script ends with it.
            None if what == What::Index => Some("cut short".to_owned()),
            None => panic!("{about}: node-a is gone"),
        }
    })
    .await;
    // Whether node-b may run it beside node-a, or has to wait for its end: never both.
    until(&format!("{about}: the script of node-a has ended"), || {
        scene.witness.living_under(first.token).is_empty().then_some(())
    });
    scene.witness.check();
    if what == What::Index {
        scene.a.kill();
        if made_anew {
            scene.ground.must(&["on", JOB, "--user", "li"]);
        }
    } else {
        assert_eq!(scene.a.terminate(), Some(0), "{about}");
    }
    if matches!(how, How::Overwritten | How::CutShort) && what != What::Index {
        // What is there is of two stores: nobody uses it before a backup is put back.
        assert!(b.is_none() && !scene.ground.run(&["status"]).status.success(), "{about}");
        for entry in read_dir(scene.ground.path("data")).expect("a directory").flatten() {
            remove_file(entry.path()).expect("removed");
        }
        copy(scene.ground.path("older/soloist.db"), scene.ground.path(DB)).expect("put back");
    }
    if how == How::Replaced && matches!(what, What::Main | What::Log | What::SideFiles) {
        // As the refusal says.
        for side in ["-wal", "-shm"] {
            remove_file(scene.ground.path(&format!("{DB}{side}"))).ok();
        }
    } else if what == What::Main && matches!(how, How::Removed | How::MovedAway) {
        scene.begin_anew();
    }
    let mut b = b.unwrap_or_else(|| {
        until(&format!("{about}: what gives node-a's lease back has given up"), || {
            scene.ground.run(&["status"]).status.success().then_some(())
        });
        scene.ground.start("node-b")
    });
    let second = scene.witness.until_started(2);
    assert_eq!(second.node, "node-b", "{about}");
    scene.witness.until_more(second.token, 3);
    scene.witness.check();
    if how != How::Overwritten
        && how != How::CutShort
        && matches!(what, What::Log | What::SideFiles)
    {
        let users = scene.ground.must(&["user", "list"]);
        assert!(
            users.contains("wang"),
            "{about}: node-a saved what nobody else could see: {users}"
        );
    }
    assert_eq!(b.terminate(), Some(0), "{about}");
    scene.witness.check();
}

fn shell(scene: &Scene, command: &str) -> String {
    let done = Command::new("sqlite3")
        .args(["-cmd", ".timeout 5000"])
        .arg(scene.ground.path(DB))
        .arg(command)
        .output()
        .expect("sqlite3 starts");
    assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// As somebody does who wants yesterday back and has not read that nodes are stopped before. SQLite writes it as one more transaction.
#[tokio::test(flavor = "multi_thread")]
async fn no_job_runs_twice_when_a_backup_is_restored_through_sqlite() {
    let mut scene = Scene::begin().await;
    let mut b = scene.ground.start("node-b");
    let older = format!(".restore {}", scene.ground.path("older/soloist.db").display());
    let now = scene.ground.path("now.db").display().to_string();
    for round in 0..6 {
        let before = scene.witness.acts().last().expect("it runs").token;
        const EPOCH: &str = "SELECT value FROM meta WHERE key = 'epoch'";
        let mut epochs = vec![shell(&scene, EPOCH)];
        if round % 2 == 0 {
            shell(&scene, &older);
            let older = Command::new("sqlite3")
                .arg(scene.ground.path("older/soloist.db"))
                .arg(EPOCH)
                .output();
            epochs
                .push(String::from_utf8_lossy(&older.expect("sqlite3 starts").stdout).into_owned());
        } else {
            shell(&scene, &format!(".backup {now}"));
            // Nothing happens meanwhile but that the lease is kept, for longer than it lasts.
            scene.witness.until_more(before, 60);
            shell(&scene, &format!(".restore {now}"));
        }
        until(&format!("round {round}: a node finds it"), || {
            (!epochs.contains(&shell(&scene, EPOCH))).then_some(())
        });
        // Whether the holder asserts its lease again or another one follows.
        let newest = scene.witness.acts().last().expect("it ran").token;
        scene.witness.until_more(newest, 5);
        scene.witness.check();
    }
    assert_eq!((scene.a.terminate(), b.terminate()), (Some(0), Some(0)));
    scene.witness.check();
}

/// Whether the process has not ended; one that nobody has waited for has.
fn is_living(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// SQLite would lay the log over the backup, and the store would be malformed.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_copied_over_the_main_file_of_killed_nodes_is_not_mixed_with_their_log() {
    let mut scene = Scene::begin().await;
    // Whoever ends in order writes the log back, as a guard does that gives the lease back. Stopped, the node starts no other guards in
    // place of those that are killed.
    scene.a.signal(Signal::SIGSTOP);
    let node = scene.a.pid().as_raw();
    let tree = descendants(node.cast_unsigned());
    for pid in &tree {
        // One that was in its namespace has ended with it.
        kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).ok();
    }
    scene.a.kill();
    until("they have ended", || tree.iter().all(|pid| !is_living(*pid)).then_some(()));
    copy(scene.ground.path("older/soloist.db"), scene.ground.path(DB)).expect("copied over it");
    let refused = until("whoever comes is refused", || {
        let said = scene.ground.run(&["status"]);
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        (!said.status.success() && !text.contains("in use, by")).then_some(text)
    });
    assert!(refused.contains("is not that of this main file"), "{refused}");
    for side in ["-wal", "-shm"] {
        remove_file(scene.ground.path(&format!("{DB}{side}"))).expect("as the refusal says");
    }
    let starts = scene.witness.starts();
    let mut a = scene.ground.start("node-a");
    drop(scene.witness.until_started(starts + 1));
    assert_eq!(shell(&scene, "PRAGMA quick_check"), "ok\n");
    assert_eq!(a.terminate(), Some(0));
    scene.witness.check();
}

macro_rules! replaced {
    ($(fn $law:ident() = $($what:ident $how:ident),+;)+) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $law() {
            $(is_replaced(What::$what, How::$how).await;)+
        })+
    };
}

replaced! {
    fn no_job_runs_twice_when_side_files_are_removed() =
        SideFiles Removed, Log Removed, Index Removed;
    fn no_job_runs_twice_when_side_files_are_moved() =
        SideFiles MovedAway, Log MovedAway, Index MovedAway;
    fn no_job_runs_twice_when_a_side_file_is_overwritten() =
        Log Overwritten, Index Overwritten, Log CutShort, Index CutShort;
    fn no_job_runs_twice_when_a_side_file_is_replaced() = Log Replaced, Index Replaced, SideFiles Replaced;
    fn no_job_runs_twice_when_the_main_file_goes() = Main Removed, Main MovedAway, Main Replaced;
    fn no_job_runs_twice_when_the_main_file_is_overwritten() = Main Overwritten, Main CutShort;
    fn no_job_runs_twice_when_all_files_go() = All Removed, All MovedAway, All Replaced;
    fn no_job_runs_twice_when_the_directory_goes() =
        Directory Removed, Directory MovedAway, Directory Replaced;
}
