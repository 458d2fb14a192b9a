//! The whole zoo at once, on every level of containment, against every way in which a run can end.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::containment::Containment;
use soloist::domain::lease::Timing;
use soloist::domain::name::RunId;
use soloist::runner::child::Cause;
use soloist::runner::leftovers;
use tempfile::TempDir;

use super::node_death::{Node, word};
use crate::support::guarded::{
    Guarded, alive, contained_by, levels, much_later, number_in, outside, runs, until,
};

/// Everybody who tries to get away, together; `$1` is a program that is a subreaper itself.
const ZOO: &str = r#"
trap '' TERM
( setsid sh -c '( setsid sh -c "exec sleep 300" & )' <&- >&- 2>&- & )
nohup sleep 300 >/dev/null 2>&1 &
setsid sh -c 'kill -STOP $$; sleep 300' &
( exec <&- >&- 2>&-; exec sleep 300 ) &
SUBREAPER &
i=0
while [ $i -lt 300 ]; do i=$((i + 1)); sleep 300 & done
env -i sh -c 'echo $$ > nameless.new; mv nameless.new nameless.pid; exec sleep 300' &
comet() {
    [ "$1" -gt 0 ] || exit 0
    echo > comet.flies
    comet $(($1 - 1)) &
    exit 0
}
comet 20000 &
until [ -e comet.flies ] && [ -s nameless.pid ] && [ -e adopted ]; do :; done
touch ready
echo ready
while :; do sleep 0.05; done
"#;

/// Becomes a subreaper, lets a grandchild be orphaned, and so takes it away from everybody above.
const SUBREAPER: &str = r#"
    #include <fcntl.h>
    #include <sys/prctl.h>
    #include <unistd.h>
    int main(void) {
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        if (!fork()) {
            setsid();
            if (fork()) _exit(0);
            while (getppid() == 1) {}
            close(open("adopted", O_CREAT | O_WRONLY, 0600));
            for (;;) pause();
        }
        for (;;) pause();
    }
"#;

fn zoo(directory: &Path) -> String {
    let (source, binary) = (directory.join("subreaper.c"), directory.join("subreaper"));
    std::fs::write(&source, SUBREAPER).expect("a program");
    let built = Command::new("cc").arg(&source).arg("-o").arg(&binary).status();
    assert!(
        built.is_ok_and(|status| status.success()),
        "cc, which links Rust programs, builds this one"
    );
    ZOO.replace("SUBREAPER", &binary.display().to_string())
}

/// Who of the zoo lives, by our numbers; `nameless` is the one without a mark.
fn survivors(run: &RunId, nameless: i32) -> Vec<i32> {
    let mut all = alive(run);
    all.extend(Some(nameless).filter(|pid| runs(*pid)));
    all
}

async fn guarded_zoo(level: Containment, script: &str, deadline_ms: Option<u64>) -> (Guarded, i32) {
    let deadline = deadline_ms.map_or(much_later(), |ms| boot() + Duration::from_millis(ms));
    let mut guarded = Guarded::start_spec(deadline, script, |spec| {
        spec.program.containment = contained_by(level);
        // A kill time that fits what the zoo does to a small machine.
        spec.timing = Timing::from_ttl(Duration::from_secs(20)).expect("safe times");
    });
    guarded.until_line("ready").await;
    let nameless = guarded.pid_in("nameless.pid");
    assert!(runs(nameless) && alive(&guarded.run).len() > 300, "{level}: the zoo lives");
    (guarded, nameless)
}

#[tokio::test]
async fn nobody_escapes_the_stop_the_deadline_or_the_death_of_the_guard_on_any_level() {
    let tools = TempDir::new().unwrap();
    let script = zoo(tools.path());
    for level in levels() {
        for fault in ["stop", "deadline", "guard"] {
            // The deadline is moved near once the zoo lives: it never moves backwards, so it starts near.
            let deadline_ms = (fault == "deadline").then_some(8_000);
            let (mut guarded, nameless) = guarded_zoo(level, &script, deadline_ms).await;
            match fault {
                "stop" => guarded.child.stop(Duration::from_millis(100)),
                "guard" => guarded.signal_guard(Signal::SIGKILL),
                _ => {}
            }
            let gone = guarded.until_gone().await;
            let cause = match fault {
                "stop" => Cause::Stopped,
                "guard" => Cause::GuardLost,
                _ => Cause::Deadline,
            };
            assert_eq!(gone.cause, cause, "{level}, {fault}");
            assert_eq!(survivors(&guarded.run, nameless), [0; 0], "{level}, {fault}");
            println!("{level}, {fault}: {} killed, nobody lives", gone.processes_killed);
        }
    }
}

#[tokio::test]
async fn nobody_escapes_the_death_of_the_node_on_any_level() {
    let tools = TempDir::new().unwrap();
    let script = zoo(tools.path());
    for level in levels() {
        let node = Node::start(&script, &[("level", word(level))]).await;
        let (run, nameless) = (node.run(), node.process("nameless.pid"));
        assert!(runs(nameless) && alive(&run).len() > 300, "{level}: the zoo lives");
        node.signal(Signal::SIGKILL);
        until("the zoo is dead", || survivors(&run, nameless).is_empty()).await;
    }
}

#[tokio::test]
async fn what_outlives_node_and_guard_is_dead_after_the_next_start_and_in_a_namespace_at_once() {
    let tools = TempDir::new().unwrap();
    let script = zoo(tools.path());
    for level in levels() {
        let url = format!("nowhere://127.0.0.1:{}/{}", std::process::id(), word(level));
        let orders = [("level", word(level)), ("store", url.as_str())];
        let node = Node::start(&script, &orders).await;
        let (run, nameless) = (node.run(), node.process("nameless.pid"));
        assert!(runs(nameless), "{level}: the zoo lives");
        // Both at once: a node that is stopped cannot see that its guard dies.
        node.signal(Signal::SIGSTOP);
        kill(Pid::from_raw(node.number("guard")), Signal::SIGKILL).unwrap();
        node.signal(Signal::SIGKILL);
        until("node and guard are dead", || !runs(node.number("guard")) && !runs(node.pid())).await;
        let notes = leftovers::notes_of(&url, "soloist:");
        if level == Containment::PidNamespace {
            until("the kernel has killed all", || survivors(&run, nameless).is_empty()).await;
        } else {
            assert!(!survivors(&run, nameless).is_empty(), "{level}: some live on, as documented");
        }
        let swept = leftovers::sweep(&notes).unwrap();
        assert_eq!(survivors(&run, nameless), [0; 0], "{level}");
        if level == Containment::PidNamespace {
            // At most the namespace's own first process, which the kernel may be about to take away.
            assert!(swept.iter().all(|swept| swept.processes == 1), "{swept:?}");
        } else {
            assert_eq!(swept.len(), 1, "{level}");
        }
        assert!(leftovers::sweep(&notes).unwrap().is_empty(), "{level}: nothing is left to sweep");
        std::fs::remove_dir(&notes).ok();
        println!("{level}, node and guard: {swept:?}");
    }
}

#[tokio::test]
async fn a_run_of_a_living_node_is_never_swept() {
    let url = format!("nowhere://127.0.0.1:{}/living", std::process::id());
    let node = Node::start("touch ready; sleep 300", &[("store", url.as_str())]).await;
    let notes = leftovers::notes_of(&url, "soloist:");
    let note = notes.join(node.run().as_str());
    assert!(note.exists(), "the run is noted");
    assert!(leftovers::sweep(&notes).unwrap().is_empty());
    assert!(!alive(&node.run()).is_empty() && note.exists());
    let text = std::fs::read_to_string(&note).unwrap();
    node.signal(Signal::SIGKILL);
    until("the guard is gone", || alive(&node.run()).is_empty() && !note.exists()).await;
    // Nor is a stranger who got a number of it: the same note, of a process that began at another time.
    let mut stranger = Command::new("sleep").arg("300").spawn().unwrap();
    let mut forged: serde_json::Value = serde_json::from_str(&text).unwrap();
    forged["first"] = serde_json::json!({ "pid": stranger.id(), "began": 1 });
    // The guard takes the empty directory away at some moment.
    let write =
        || std::fs::create_dir_all(&notes).and_then(|()| std::fs::write(&note, forged.to_string()));
    until("the note is forged", || write().is_ok()).await;
    until("the guard is gone", || !runs(node.number("guard"))).await;
    assert!(leftovers::sweep(&notes).unwrap().is_empty());
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger lives");
    assert!(!note.exists());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    std::fs::remove_dir(&notes).ok();
    assert_eq!(number_in(&note), None);
    assert_eq!(outside(&node.run(), 1), i32::MAX, "and nothing of the run lives");
}
