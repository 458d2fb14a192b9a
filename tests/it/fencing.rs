//! `examples/fencing`: every sink refuses the older token once it has seen the newer one, whenever the older run was
//! paused.

mod object_store;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::support::guarded::SOLOIST;
use crate::support::redis::RedisServer;
use object_store::ObjectStore;

/// Two tokens as they are minted, a second apart.
const OLD: u64 = 1_835_019_492_704_256;
const NEW: u64 = OLD + 1_024_000;

/// A sink, its example, and how a test looks into it.
struct Sink {
    directory: TempDir,
    script: &'static str,
    arguments: Vec<&'static str>,
    environment: Vec<(&'static str, String)>,
    look: Box<dyn Fn(&Path) -> String>,
}

impl Sink {
    fn command(&self, token: Option<u64>) -> Command {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fencing");
        let mut command = Command::new("sh");
        command.arg(example.join(self.script)).args(&self.arguments);
        command.current_dir(self.directory.path()).envs(self.environment.clone());
        command.env_remove("SOLOIST_TOKEN").envs(token.map(|t| ("SOLOIST_TOKEN", t.to_string())));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A run of the example that has its token and waits for what it shall write.
    fn begin(&self, token: u64) -> Child {
        self.command(Some(token)).spawn().expect("sh starts")
    }

    fn write(&self, token: u64, text: &str) -> Output {
        finish(self.begin(token), text)
    }

    /// What was written last.
    fn last(&self) -> String {
        (self.look)(self.directory.path())
    }
}

/// Lets a run that was begun go on.
fn finish(mut child: Child, text: &str) -> Output {
    let mut stdin = child.stdin.take().expect("a pipe");
    // A run that ends before it reads is judged by its exit code.
    writeln!(stdin, "{text}").ok();
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn written(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(output: &Output) {
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{words}");
    assert!(words.contains(&OLD.to_string()) && words.contains(&NEW.to_string()), "{words}");
}

fn said(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// What every sink must do.
fn an_older_token_is_refused_after_a_newer_was_seen(sink: &Sink) {
    written(&sink.write(OLD, "one"));
    written(&sink.write(OLD, "it's two"));
    assert_eq!(sink.last(), "it's two", "a run may write again under its own token");

    // Paused with everything decided and nothing written: only the sink itself can refuse it now.
    let paused = sink.begin(OLD);
    written(&sink.write(NEW, "three"));
    refused(&finish(paused, "late"));
    refused(&sink.write(OLD, "later still"));
    assert_eq!(sink.last(), "three");
    written(&sink.write(NEW, "four"));
    assert_eq!(sink.last(), "four");

    let without = sink.command(None).stdin(Stdio::null()).output().expect("sh starts");
    assert_eq!(without.status.code(), Some(2), "no token, no write");
    assert_eq!(sink.last(), "four");
}

fn sql() -> Sink {
    let look = |at: &Path| {
        let query = "SELECT note FROM shipments ORDER BY id DESC LIMIT 1";
        said(Command::new("sqlite3").arg(at.join("shipments.db")).arg(query))
    };
    Sink {
        directory: TempDir::new().expect("a directory"),
        script: "sql.sh",
        arguments: vec![],
        environment: vec![],
        look: Box::new(look),
    }
}

#[test]
fn a_database_refuses_the_older_token() {
    an_older_token_is_refused_after_a_newer_was_seen(&sql());
}

#[test]
fn runs_that_race_for_a_database_leave_their_rows_in_the_order_of_their_tokens() {
    let sink = sql();
    written(&sink.write(1, "first"));
    let runs: Vec<(u64, Child)> = (2..12).map(|token| (token, sink.begin(token))).collect();
    let writers: Vec<_> = runs
        .into_iter()
        .map(|(token, run)| std::thread::spawn(move || (token, finish(run, "x").status.code())))
        .collect();
    for writer in writers {
        let (token, code) = writer.join().expect("it ends");
        assert!(code == Some(0) || (code == Some(4) && token < 11), "{token}: {code:?}");
    }
    let rows = said(
        Command::new("sqlite3")
            .arg(sink.directory.path().join("shipments.db"))
            .arg("SELECT token FROM shipments ORDER BY id"),
    );
    let tokens: Vec<u64> = rows.lines().map(|row| row.parse().expect("a token")).collect();
    assert!(tokens.is_sorted(), "an older token wrote after a newer one: {tokens:?}");
    assert_eq!(tokens.last(), Some(&11));
}

#[test]
fn redis_refuses_the_older_token() {
    let server = RedisServer::start(&[]);
    let port = server.port().to_string();
    an_older_token_is_refused_after_a_newer_was_seen(&Sink {
        directory: TempDir::new().expect("a directory"),
        script: "redis.sh",
        arguments: vec!["last-shipped"],
        environment: vec![("REDIS_PORT", port)],
        look: Box::new(move |_| server.run(&["GET", "{last-shipped}"])),
    });
}

#[test]
fn a_file_refuses_the_older_token() {
    let look = |at: &Path| {
        let text = std::fs::read_to_string(at.join("shipped.log")).expect("the file");
        text.lines().last().unwrap_or_default().to_owned()
    };
    an_older_token_is_refused_after_a_newer_was_seen(&Sink {
        directory: TempDir::new().expect("a directory"),
        script: "file.sh",
        arguments: vec!["shipped.log"],
        environment: vec![("SOLOIST", PathBuf::from(SOLOIST).display().to_string())],
        look: Box::new(look),
    });
}

fn object(store: &ObjectStore) -> Sink {
    let there = store.clone();
    Sink {
        directory: TempDir::new().expect("a directory"),
        script: "object.sh",
        arguments: vec![],
        environment: vec![("OBJECT", store.url()), ("no_proxy", "*".to_owned())],
        look: Box::new(move |_| there.body().trim().to_owned()),
    }
}

#[test]
fn an_object_store_refuses_the_older_token() {
    an_older_token_is_refused_after_a_newer_was_seen(&object(&ObjectStore::start()));
}

#[test]
fn a_run_paused_between_reading_and_writing_an_object_does_not_overwrite_a_newer_one() {
    let store = ObjectStore::start();
    let sink = object(&store);
    for before in [false, true] {
        if before {
            store.clear();
            written(&sink.write(OLD, "one"));
        }
        let pause = store.hold_the_next_answer();
        let mut old = sink.begin(OLD);
        let mut stdin = old.stdin.take().expect("a pipe");
        writeln!(stdin, "late").expect("it reads");
        drop(stdin);
        // It has read the object, or that there is none; the answer is on its way.
        pause.reached();
        written(&sink.write(NEW, "two"));
        pause.end();
        refused(&old.wait_with_output().expect("it ends"));
        assert_eq!(sink.last(), "two");
    }
}
