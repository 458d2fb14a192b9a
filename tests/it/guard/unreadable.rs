//! What a script can read of the processes that hold the store's password: nothing, whoever its user is.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use nix::unistd::{Pid, Uid};

use crate::support::guarded::Guarded;
use crate::support::nobody;
use crate::support::node::{Ground, Node};
use crate::support::wait::until;

const JOB: &str = "peeping";
/// Stands in the environment of the node.
const SECRET: &str = "s3cret-of-the-environment";

/// Tries everything on its guard and its node. First on a child of its own, where all of it works: else nothing would be
/// tried at all.
const PEEPING: &str = r#"
case $(uname -m) in x86_64) ptrace=101;; *) ptrace=117;; esac
open() {
    for file in environ mem maps auxv; do
        (: < /proc/$1/$file) 2> /dev/null && echo "$2: $file is open"
    done
    readlink /proc/$1/fd/0 > /dev/null && echo "$2: fd is open"
    readlink /proc/$1/exe > /dev/null && echo "$2: exe is open"
    perl -e 'exit(syscall($ARGV[0] + 0, 16, $ARGV[1] + 0, 0, 0) == 0 ? 0 : 1)' $ptrace $1 && echo "$2: can be traced"
}
sleep 300 &
open $! child
guard=$PPID
node=$(sed 's/.*) //' /proc/$guard/stat | cut -d ' ' -f 2)
nursery=$(grep -l 'soloist nursery' /proc/[0-9]*/cmdline 2> /dev/null | cut -d / -f 3)
open $guard guard
open $node node
for other in $nursery; do
    # Other tests have nodes of this user, too, which may be starting at this moment.
    [ "$(sed 's/.*) //' /proc/$other/stat | cut -d ' ' -f 2)" = "$node" ] || continue
    echo "looked at the nursery"
    open $other nursery
done
grep -E '^Cap(Eff|Bnd)' /proc/self/status
echo checked
sleep 300
"#;

/// What the script says, with `soloist` in `$PATH` started by a node of this ground.
fn peep(ground: &Ground) -> (Node, Vec<String>) {
    fs::write(ground.path("peep.sh"), PEEPING).expect("written");
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    ground.must(&["on", JOB, "--user", "li"]);
    let said = until("the script has tried everything", || {
        let log = ground.must(&["logs", JOB]);
        log.contains("checked").then_some(log)
    });
    (node, said.lines().map(str::to_owned).collect())
}

fn job(more: &str) -> String {
    format!("{more}\n[[job]]\nname = \"{JOB}\"\ncommand = [\"sh\", \"peep.sh\"]\n")
}

fn check(said: &[String]) {
    let open: Vec<&String> =
        said.iter().filter(|line| line.contains(" is open") || line.contains("traced")).collect();
    let own = open.iter().filter(|line| line.contains("child: ")).count();
    // A machine may forbid some of it (kernel.yama.ptrace_scope), never all.
    assert!(own >= 4, "a script may look at its own children: {said:#?}");
    assert_eq!(open.len(), own, "and at nobody else: {said:#?}");
    assert!(said.iter().any(|line| line.contains("looked at the nursery")), "{said:#?}");
}

#[test]
fn a_script_of_the_same_user_reads_nothing_of_guard_nursery_and_node() {
    let Some(ground) = nobody::ground("sqlite:soloist.db", &job("")) else { return };
    let (_node, said) = peep(&ground);
    check(&said);
}

#[test]
fn a_script_of_root_reads_nothing_either_and_keeps_few_capabilities() {
    if !Uid::effective().is_root() {
        writeln!(std::io::stderr(), "NOT TESTED HERE: a node that is root").ok();
        return;
    }
    // In a pid namespace it would not even see them.
    let ground = Ground::new("sqlite:soloist.db", &job("containment = \"subreaper\""));
    let (_node, said) = peep(&ground);
    check(&said);
    let capabilities = |of: &str| {
        let line = said.iter().find_map(|line| line.split_once(of)).expect("the kernel tells");
        u64::from_str_radix(line.1.trim(), 16).expect("a number")
    };
    // DAC_READ_SEARCH, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, SYS_BOOT, MAC_OVERRIDE, MAC_ADMIN, and from PERFMON on.
    let gone =
        [2, 16, 17, 19, 21, 22, 32, 33, 38, 39, 40].iter().fold(0, |all, bit| all | 1u64 << bit);
    // CHOWN, DAC_OVERRIDE, FOWNER, KILL, SETGID, SETUID, NET_BIND_SERVICE: as far as this machine gives them.
    let kept = [0, 1, 3, 5, 6, 7, 10].iter().fold(0, |all, bit| all | 1u64 << bit);
    let own = fs::read_to_string("/proc/self/status").expect("our own");
    let own = own.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("the kernel tells");
    let own = u64::from_str_radix(own.trim(), 16).expect("a number");
    for which in ["CapEff:", "CapBnd:"] {
        assert_eq!(capabilities(which) & gone, 0, "{which} {:x}", capabilities(which));
        assert_eq!(capabilities(which) & kept, kept & own, "{which} {:x}", capabilities(which));
    }
}

#[test]
fn what_configures_a_node_is_not_in_its_environment_any_more() {
    let ground = Ground::new("sqlite:unused.db", &job(""));
    let store = format!("sqlite:{}", ground.path("soloist.db").display());
    fs::write(ground.path("peep.sh"), "sleep 300").expect("written");
    let text = fs::read_to_string(ground.path("soloist.toml")).expect("ours");
    let text = text.replace("store = ", "# store = ");
    fs::write(ground.path("soloist.toml"), format!("lease_ttl = \"9s\"\n{text}")).expect("ours");
    let wrapper = ground.path("with-secrets");
    let exec = format!(
        "#!/bin/sh\nexport SOLOIST_STORE='{store}' SOLOIST_API_TOKEN={SECRET} KEPT=yes\nexec {} \"$@\"\n",
        crate::support::node::SOLOIST
    );
    fs::write(&wrapper, exec).expect("written");
    fs::set_permissions(&wrapper, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("ours");
    let ground = ground.with_program(&wrapper);
    let node = ground.start("node-a");
    assert!(ground.path("soloist.db").exists(), "it has read its variables");
    let shown = |pid: Pid| {
        let bytes = fs::read(format!("/proc/{pid}/environ")).expect("ours, or we are root");
        String::from_utf8_lossy(&bytes).into_owned()
    };
    if !Uid::effective().is_root() {
        assert!(fs::read(format!("/proc/{}/environ", node.pid())).is_err());
        return;
    }
    let environ = shown(node.pid());
    assert!(environ.contains("KEPT=yes"), "{environ:?}");
    assert!(!environ.contains(SECRET) && !environ.contains("soloist.db"), "{environ:?}");
    // A newer configuration is still read with them: else its store would be another one.
    fs::write(ground.path("soloist.toml"), "lease_ttl = \"8s\"\nno_jobs = true\n").expect("ours");
    node.signal(nix::sys::signal::Signal::SIGHUP);
    until("the node has read it again", || {
        let listed: serde_json::Value =
            serde_json::from_str(&ground.must(&["nodes", "--json"])).expect("JSON");
        (listed["nodes"][0]["jobs"] == serde_json::json!({})).then_some(())
    });
}

#[tokio::test]
async fn a_guard_dumps_no_core_and_its_script_may() {
    // What a guard inherits from this process.
    let own = std::process::id().to_string();
    let limited = Command::new("prlimit").args(["--pid", &own, "--core=4096:"]).status();
    assert!(limited.is_ok_and(|status| status.success()), "prlimit");
    let mut guarded = Guarded::start("echo ready; exec sleep 300");
    guarded.until_line("ready").await;
    let soft = |pid: u32| {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits")).expect("world-readable");
        let line = limits.lines().find(|line| line.starts_with("Max core file size"));
        line.expect("a limit").split_whitespace().nth(4).expect("a number").to_owned()
    };
    assert_eq!(soft(guarded.child.guard_pid()), "0");
    let script = u32::try_from(guarded.pid()).expect("a number");
    assert_eq!(soft(script), "4096", "as whoever started the guard");
    guarded.child.kill();
    guarded.until_gone().await;
}
