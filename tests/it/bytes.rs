//! Words of the system that are not UTF-8: what Soloist reads itself is refused by name, what it only passes on arrives byte by byte.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::process::{Command, Output, Stdio};

use crate::support::node::{Ground, SOLOIST};
use crate::support::wait::until;

/// Every variable that any command reads, and one that a later version may read.
const VARIABLES: [&str; 20] = [
    "SOLOIST_STORE",
    "SOLOIST_LISTEN",
    "SOLOIST_CONFIG",
    "SOLOIST_USER",
    "SOLOIST_API_TOKEN",
    "SOLOIST_SERVER",
    "SOLOIST_SERVER_CA",
    "SOLOIST_NODE",
    "SOLOIST_PREFIX",
    "SOLOIST_COORDINATION",
    "SOLOIST_PUBLIC_URL",
    "SOLOIST_LEASE_TTL",
    "SOLOIST_HISTORY",
    "SOLOIST_CONTAINMENT",
    "SOLOIST_TRUSTED_PROXIES",
    "SOLOIST_LOG_FORMAT",
    "SOLOIST_OIDC",
    "SOLOIST_OIDC_CLIENT_SECRET",
    "SOLOIST_TLS",
    "SOLOIST_OF_TOMORROW",
];

/// Alone, inside, at the end; half a character; half a surrogate pair.
const UNREADABLE: [&[u8]; 5] =
    [b"\xff", b"redis://:p\xe4ss@127.0.0.1:1/0", b"caf\xe9", b"x\xe2\x82", b"\xed\xa0\x80"];

fn bytes(text: &[u8]) -> OsString {
    OsString::from_vec(text.to_vec())
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// A debug build with a slip of the fingers would pass for one that hides its bug.
#[test]
fn a_planted_bug_that_there_is_not_is_refused_with_the_names_of_all_and_nothing_is_begun() {
    let ground = Ground::new("sqlite:soloist.db", "");
    for words_of in [&["serve"][..], &["check"], &["fence", "f", "--", "touch", "ran"]] {
        let output = ground.command(words_of).env("SABOTAGE", "nonsense").output();
        let output = output.expect("it starts");
        let said = words(&output);
        assert_eq!(output.status.code(), Some(2), "{words_of:?}: {said}");
        assert!(said.contains("nonsense") && said.contains("fence_open"), "{said}");
    }
    assert!(!ground.path("soloist.db").exists() && !ground.path("ran").exists());
}

#[test]
fn a_variable_of_ours_that_is_not_utf_8_is_refused_by_name_and_nothing_is_begun() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let commands: [&[&str]; 7] = [
        &["check"],
        &["serve"],
        &[],
        &["status"],
        &["ping"],
        &["run", "--name", "x", "--", "touch", "ran"],
        &["fence", "f", "--", "touch", "ran"],
    ];
    for (nth, variable) in VARIABLES.iter().enumerate() {
        // Each variable meets a command and a value that its neighbours do not; `serve` meets the worst of all.
        let some = [commands[nth % commands.len()], &["serve"]];
        for words_of in some {
            let value = bytes(UNREADABLE[nth % UNREADABLE.len()]);
            let output = ground.command(words_of).env(variable, value).output().expect("it starts");
            let said = words(&output);
            assert_eq!(output.status.code(), Some(2), "{variable} {words_of:?}: {said}");
            assert!(said.contains(&format!("${variable}")) && said.contains("UTF-8"), "{said}");
        }
    }
    assert!(!ground.path("soloist.db").exists() && !ground.path("ran").exists());
    let mut both = ground.command(&["check"]);
    both.env("SOLOIST_B", bytes(b"\xff")).env("SOLOIST_A", bytes(b"\xff"));
    let said = words(&both.output().expect("it starts"));
    assert!(said.contains("$SOLOIST_A, $SOLOIST_B"), "all at once: {said}");
    // Others are not ours to judge.
    let foreign =
        ground.command(&["check"]).env("BAD", bytes(b"\xa3")).output().expect("it starts");
    assert!(foreign.status.success(), "{}", words(&foreign));
}

/// What a script of `sh` says of its words and its environment, in hexadecimal.
const HEX: &str = "printf %s \"$1\" | od -An -v -tx1 | tr -d ' \\n'; printf ' '; printf %s \"$BAD\" | od -An -v -tx1 | tr -d ' \\n'";

fn hex(text: &[u8]) -> String {
    text.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn arguments_and_variables_of_a_command_arrive_byte_by_byte() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.must(&["source", "set", "pages"]);
    // Every byte but NUL and line ends.
    let all: Vec<u8> = (1..=255).filter(|byte| !b"\r\n".contains(byte)).collect();
    for text in UNREADABLE.into_iter().chain([&all[..], "出库".as_bytes()]) {
        ground.must(&["task", "put", "--source", "pages", "--key", &hex(text)]);
        let heads: [&[&str]; 3] = [
            &["run", "--name", "x"],
            &["fence", "f"],
            &["collect", "--source", "pages", "--until-empty"],
        ];
        for head in heads {
            let mut command = ground.command(head);
            command.args(["--", "sh", "-c", HEX, "sh"]).arg(OsStr::from_bytes(text));
            let output =
                command.env("BAD", OsStr::from_bytes(text)).env("SOLOIST_TOKEN", "5").output();
            let output = output.expect("it starts");
            let expected = format!("{} {}", hex(text), hex(text));
            assert!(output.status.success(), "{head:?}: {}", words(&output));
            assert!(words(&output).contains(&expected), "{head:?}: {}", words(&output));
        }
    }
    fs::write(ground.path("").join(OsStr::from_bytes(b"caf\xe9.txt")), "x").expect("written");
    let mut list = ground.command(&["run", "--name", "x", "--", "ls"]);
    let listed = list.arg(OsStr::from_bytes(b"caf\xe9.txt")).output().expect("it starts");
    assert_eq!(listed.stdout, b"caf\xe9.txt\n", "{}", words(&listed));
    let mut missing = ground.command(&["run", "--name", "x", "--"]);
    let missing = missing.arg(OsStr::from_bytes(b"./no\xe9")).output().expect("it starts");
    assert!(!missing.status.success() && words(&missing).contains("no"), "{}", words(&missing));
}

#[test]
fn a_command_runs_in_a_directory_whose_name_is_not_utf_8_and_where_its_store_would_lie_is_said() {
    let ground = Ground::new("sqlite:soloist.db", "");
    let here = ground.path("").join(OsStr::from_bytes(b"d\xff"));
    fs::create_dir(&here).expect("made");
    let mut run = ground.command(&["run", "--name", "x", "--", "touch", "ran"]);
    let output = run.current_dir(&here).output().expect("it starts");
    assert!(output.status.success() && here.join("ran").exists(), "{}", words(&output));
    // Without a store the one of this directory is meant, whose path cannot be said.
    fs::write(here.join("soloist.toml"), "").expect("written");
    let mut check = Command::new(SOLOIST);
    let check = check.args(["check"]).current_dir(&here).stdin(Stdio::null());
    let output = check.env_remove("SOLOIST_CONFIG").env_remove("SOLOIST_STORE").output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", words(&output));
    assert!(words(&output).contains("store: ") && words(&output).contains("d\u{fffd}/data"));
    assert!(!ground.path("d\u{fffd}").exists(), "another directory was made");
}

#[test]
fn the_environment_that_a_script_inherits_from_its_node_arrives_byte_by_byte() {
    let script = "printf %s \"$LC_TEST\" | od -An -tx1 > new; echo \"$PATH\" | grep -c here >> new; mv new said; sleep 300";
    let job = format!("[[job]]\nname = \"tell\"\ncommand = [\"sh\", \"-c\", {script:?}]\n");
    let ground = Ground::new("sqlite:soloist.db", &job);
    ground.add_user("li", "operator");
    let mut path = bytes(b"/here/\xff:");
    path.push(std::env::var_os("PATH").expect("a PATH"));
    let mut node = ground
        .command(&["serve", "--node", "node-a"])
        .env("PATH", path)
        .env("LC_TEST", bytes(b"\xa3"))
        .env("HOME", bytes(b"/root/\xe9"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    ground.must(&["on", "tell", "--user", "li"]);
    let said = until("the script has said it", || fs::read_to_string(ground.path("said")).ok());
    node.kill().expect("our own child");
    node.wait().expect("and waited for");
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["a3", "1"]);
}
