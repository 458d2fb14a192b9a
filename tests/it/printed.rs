//! Every block of commands that a page prints is run as it stands, or stands in one of the lists below with what runs it instead.
//!
//! A reader's own files (`urls.txt`, `fetch.sh`) are made, and the examples' addresses, dates and tokens become those of the node that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::node::{Ground, Node};
use crate::support::redis::RedisServer;

/// Pages whose blocks other tests run as they stand: `docs.rs`, `live_examples.rs`, `clients/embedding.rs`.
const RUN_ELSEWHERE: [(&str, &[usize]); 4] = [
    ("docs/dispatch.md", &[1]),
    ("docs/live.md", &[0, 1]),
    ("docs/embedding.md", &[0]),
    ("docs/embedding.zh.md", &[0]),
];

/// Blocks that no test runs, and why.
const NOT_RUN: [(&str, usize, &str); 9] = [
    ("README.md", 0, "it is how these tests are run"),
    ("docs/cluster.md", 0, "needs a container engine: tests/image runs it from the text"),
    ("docs/faults.md", 0, "these tests themselves"),
    ("docs/kubernetes.md", 0, "needs Kubernetes; tests/it/kubernetes holds the objects to rules"),
    ("docs/kubernetes.md", 1, "needs Kubernetes"),
    ("docs/operations.md", 0, "needs systemd: tests/package runs it from the text"),
    ("docs/operations.md", 1, "needs systemd: tests/package runs it from the text"),
    ("CONTRIBUTING.md", 0, "these tests themselves"),
    ("CONTRIBUTING.md", 1, "these tests themselves"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every block of commands, by page and number.
fn blocks() -> BTreeMap<(String, usize), String> {
    let mut pages = vec!["README.md".to_owned(), "README.zh.md".into(), "CONTRIBUTING.md".into()];
    for entry in std::fs::read_dir(root().join("docs")).expect("pages").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().extension().is_some_and(|end| end == "md") {
            pages.push(format!("docs/{name}"));
        }
    }
    let mut all = BTreeMap::new();
    for page in pages {
        let text = std::fs::read_to_string(root().join(&page)).expect("a page");
        let found = text.split("\n```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
        for (number, block) in found.enumerate() {
            all.insert((page.clone(), number), block.to_owned());
        }
    }
    all
}

/// What a reader has, besides the program.
const PRELUDE: &str = r#"set -eu
# `soloist collect` has no end of its own: it is told to end when all three tasks were fetched.
collected() {
    "$@" & pid=$!
    looks=0
    while [ "$(wc -l <fetched)" -lt "$fetched" ]; do
        looks=$((looks + 1)); [ "$looks" -lt 600 ] || exit 9
        kill -0 "$pid"; sleep 0.05
    done
    # One that has only just begun ends by the signal itself.
    kill -TERM "$pid"; wait "$pid" || [ $? -eq 143 ]
}
"#;

/// A node with the job `outbound`, accounts, and a reader's files.
struct Reader {
    ground: Ground,
    node: Node,
    token: String,
}

impl Reader {
    fn new() -> Self {
        let job = "\
            [channel.ops]\nkind = \"slack\"\nurl = \"http://127.0.0.1:9/\"\n\
            [[alert]]\nname = \"given_up\"\nwhen = \"given_up\"\nto = [\"ops\"]\n\
            [[alert]]\nname = \"node_lost\"\nwhen = \"node_lost\"\nto = [\"ops\"]\n\
            [[job]]\nname = \"outbound\"\ncommand = [\"sleep\", \"600\"]\n";
        let ground = Ground::new("sqlite:soloist.db", job);
        for (file, text) in [
            ("urls.txt", "https://example.org/1\nhttps://example.org/2\nhttps://example.org/3\n"),
            ("fetch.sh", "#!/bin/sh\necho \"$SOLOIST_TASK_KEY\" >>\"${0%/*}/fetched\"\n"),
            ("fetch-orders.sh", "#!/bin/sh\necho orders\n"),
            ("backup.sh", "#!/bin/sh\necho backup \"$1\"\n"),
            ("append.sh", "echo \"$1\" >>appended\n"),
            ("fetched", ""),
        ] {
            std::fs::write(ground.path(file), text).expect("a file");
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(ground.path(file), mode).expect("a mode");
        }
        std::fs::create_dir(ground.path("state")).expect("a directory");
        let mut copy = Command::new("cp");
        copy.arg("-r").arg(root().join("examples")).arg(ground.path(""));
        assert!(copy.status().expect("cp").success());
        ground.add_user("li", "admin");
        let (node, token) = (ground.start("node-a"), ground.token("li"));
        Self { ground, node, token }
    }

    /// The words of the examples become those of this node.
    fn here(&self, printed: &str) -> String {
        let tomorrow = Command::new("date").args(["-d", "tomorrow", "+%F"]).output().expect("date");
        let tomorrow = String::from_utf8(tomorrow.stdout).expect("a date");
        let later = format!("{}T18", tomorrow.trim());
        let etc = self.ground.path("etc");
        std::fs::create_dir_all(&etc).expect("a directory");
        [
            ("http://127.0.0.1:8080", self.node.url.as_str()),
            ("https://node-a:8080,https://node-b:8080", &self.node.url),
            ("https://soloist.example", &self.node.url),
            ("sol_...", &self.token),
            ("/etc/soloist", etc.to_str().expect("a path")),
            ("/etc/bash_completion.d", etc.to_str().expect("a path")),
            ("/usr/share/zsh/vendor-completions", etc.to_str().expect("a path")),
            ("~/.config/fish/completions", etc.to_str().expect("a path")),
            ("/usr/local/share/man/man1", etc.to_str().expect("a path")),
            ("2026-05-04T18", &later),
            ("audit-2026-05-04", "audit-$(date +%F)"),
            ("soloist why JOB", "soloist why outbound"),
            ("soloist collect", "collected soloist collect"),
            (
                "soloist --server \"$SOLOIST_SERVER\"",
                "collected soloist --server \"$SOLOIST_SERVER\"",
            ),
        ]
        .iter()
        .fold(printed.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours))
    }

    /// Runs a block; gives what it printed. `fetched`: how many tasks must have been fetched before a collector is told to end.
    fn run(&self, printed: &str, fetched: usize) -> String {
        let script = format!("{PRELUDE}fetched={fetched}\n{}", self.here(printed));
        let mut sh = Command::new("sh");
        let program = Path::new(crate::support::node::SOLOIST).parent().expect("a directory");
        let path = std::env::var_os("PATH").unwrap_or_default();
        sh.args(["-c", &script]).current_dir(self.ground.path("")).stdin(Stdio::null());
        sh.env("PATH", format!("{}:{}", program.display(), path.display()));
        sh.env("SOLOIST_CONFIG", self.ground.path("soloist.toml"));
        sh.env("TOKEN", &self.token).env("PASSWORD", "quiet-violet-harbour").env("record", "one");
        sh.env("SOLOIST_TOKEN", "7").env("HOME", self.ground.path(""));
        let output = sh.output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {script}\n{said}\n{errors}", output.status);
        said
    }
}

/// Takes a block out, so that at the end every one was looked at.
fn take(all: &mut BTreeMap<(String, usize), String>, page: &str, number: usize) -> String {
    let key = (page.to_owned(), number);
    all.remove(&key).unwrap_or_else(|| panic!("{page} has no block of commands number {number}"))
}

fn fetched(reader: &Reader) -> usize {
    std::fs::read_to_string(reader.ground.path("fetched")).expect("a file").lines().count()
}

#[test]
fn what_pages_print_for_a_terminal_works_as_it_stands() {
    let mut all = blocks();
    for (page, number, _) in NOT_RUN {
        take(&mut all, page, number);
    }
    for (page, numbers) in RUN_ELSEWHERE {
        numbers.iter().for_each(|number| drop(take(&mut all, page, *number)));
    }
    // The Chinese page prints the same commands; only what is said about them differs.
    let commands = |block: &str| -> Vec<String> {
        block.lines().map(|line| line.split(" #").next().unwrap_or("").trim_end().into()).collect()
    };
    let english = blocks();
    for number in 0..english.keys().filter(|(page, _)| page == "README.md").count() {
        let chinese = take(&mut all, "README.zh.md", number);
        let key = ("README.md".to_owned(), number);
        assert_eq!(commands(&chinese), commands(&english[&key]), "README.zh.md, block {number}");
    }

    let reader = Reader::new();
    let mut run = |page: &str, number: usize| {
        let block = take(&mut all, page, number);
        let before = fetched(&reader);
        // A page that puts tasks again puts none that are there.
        let new = if block.contains("collect") && before == 0 { 3 } else { 0 };
        reader.run(&block, before + new)
    };
    run("README.md", 1);
    assert_eq!(
        std::fs::read_dir(reader.ground.path("examples/outbound/state/inbox")).expect("it").count(),
        5
    );
    for (page, number) in [("README.md", 2), ("docs/behaviour.md", 0)] {
        run(page, number);
    }
    let appended = std::fs::read_to_string(reader.ground.path("appended")).expect("a file");
    assert_eq!(appended, "one\none\n");
    run("README.md", 3);
    assert_eq!(fetched(&reader), 3);
    assert!(run("README.md", 4).contains("orders"));
    assert!(run("README.md", 5).contains("backup --full"));
    assert!(run("README.md", 6).contains("backup --full"), "once a day");
    assert!(run("docs/http.md", 0).contains("\"name\":\"outbound\""));
    run("docs/http.md", 1);
    assert!(run("docs/dispatch.md", 0).contains("shop"));
    assert!(run("docs/rotations.md", 0).contains("supplier-api"));
    run("docs/commands.md", 0);
    assert!(
        reader.ground.path("etc/soloist.1").exists() && reader.ground.path("etc/_soloist").exists()
    );
    run("docs/runbook.md", 0);
    assert!(run("docs/operations.md", 2).contains("chain unbroken"));
    assert!(run("docs/operations.md", 3).contains("outbound"));
    run("docs/operations.md", 5);
    // The page exports it a section before.
    let robot = take(&mut all, "docs/operations.md", 4);
    let exported = format!("export SOLOIST_SERVER={} SOLOIST_API_TOKEN=$TOKEN", reader.node.url);
    reader.run(&format!("{exported}\n{robot}"), 0);

    // `alert test` says with its exit code that nobody is at the channel: all before it must succeed.
    let alerts = take(&mut all, "docs/alerts.md", 0);
    let (before, test) = alerts.split_at(alerts.find("soloist alert test").expect("a test"));
    reader.run(before, 0);
    assert_eq!(
        reader
            .run(
                &format!(
                    "{} || echo \"code $?\"",
                    test.lines().next().expect("it").split('#').next().expect("it")
                ),
                0
            )
            .trim(),
        "code 1"
    );

    // The answer's turn and token stand in the calls after it.
    let turns = take(&mut all, "docs/rotations.md", 1);
    let asked = turns.find("# {\"turn\"").expect("the printed answer");
    let said = reader.run(&turns[..asked], 0);
    let answer: serde_json::Value = said
        .lines()
        .last()
        .and_then(|line| serde_json::from_str(&line[line.rfind("{\"turn\"")?..]).ok())
        .unwrap_or_else(|| panic!("no turn: {said}"));
    let (turn, token) = (answer["turn"].as_str().expect("a turn"), answer["token"].to_string());
    let printed = "1835019492704256.5f2a90c3d1e84b7796d03ac8e1f7b264";
    let rest = turns[asked..].replace(printed, turn).replace("1835019492704256", &token);
    let said = reader.run(&format!("{}\n{rest}", &turns[..turns.find("\n\n").expect("a line")]), 0);
    assert!(said.contains("lease_until") && !said.contains("\"status\":4"), "{said}");

    let rights = take(&mut all, "docs/stores.md", 0);
    let directory = tempfile::TempDir::new().expect("a directory");
    let file = directory.path().join("users.acl");
    std::fs::write(&file, "").expect("a file");
    let redis = RedisServer::start(&["--aclfile", file.to_str().expect("a path")]);
    let port = redis.port().to_string();
    let cli = format!("redis-cli -p {port}");
    // The server of the tests is stopped by its first user.
    let rights: String = rights
        .lines()
        .filter(|line| !line.contains("default off"))
        .map(|line| {
            line.replace("redis-cli", &cli).replace("HOST:6379", &format!("127.0.0.1:{port}"))
                + "\n"
        })
        .collect();
    let rights = rights.replace("deploy/", &format!("{}/deploy/", root().display()));
    let said = reader.run(&rights.replace("soloist doctor", "soloist doctor || [ $? -eq 1 ]"), 0);
    assert!(said.contains("OK") && said.to_lowercase().contains("redis"), "{said}");

    let left: BTreeSet<_> = all.into_keys().collect();
    assert!(left.is_empty(), "nothing runs these blocks of commands: {left:?}");
}
