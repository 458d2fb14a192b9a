//! A file that the version before wrote becomes one of this version when the first node opens it, with nothing lost.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::Connection;
use soloist::domain::job::{NextWhat, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist::domain::time::{Began, StoreTime};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Ended, Journal, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases, Renewal, Renewed};
use soloist::store::{Options, Store, StoreError};
use tempfile::TempDir;

const WRITTEN: &str = include_str!("../stores/sqlite-schema-7.sql");
const TTL: Duration = Duration::from_secs(30);
const TOKEN: Token = Token(1_838_462_806_867_968);
const RUN: &str = "01M81QMQ2XM1FJQ77QMS5DNT3Z";
/// What the fixture's leases have left when it is loaded.
const LEFT: Duration = Duration::from_secs(20);

/// A file with what the version before wrote.
struct Before {
    dir: TempDir,
}

impl Before {
    fn new() -> Self {
        let before = Self { dir: tempfile::tempdir().expect("a directory") };
        let left = i64::try_from(LEFT.as_millis()).expect("short");
        let ends = jiff::Timestamp::now().as_millisecond() + left;
        let db = before.open();
        db.execute_batch(WRITTEN).expect("it is what sqlite3 wrote");
        db.execute_batch(&format!(
            "UPDATE jobs SET lease_expires = {ends} WHERE name IN ('outbound', 'nightly')"
        ))
        .expect("moved");
        drop(db);
        before
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("soloist.db")
    }

    fn url(&self) -> String {
        format!("sqlite:{}", self.file().display())
    }

    fn open(&self) -> Connection {
        Connection::open(self.file()).expect("it opens")
    }

    async fn connect(&self) -> Store {
        Store::connect(&self.url(), &Options::default()).await.expect("it is converted")
    }

    async fn refusal(&self, options: &Options) -> StoreError {
        Store::connect(&self.url(), options).await.err().expect("refused")
    }

    fn is_as_it_was(&self) {
        let db = self.open();
        let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0));
        assert_eq!(number("PRAGMA user_version").expect("a number"), 7);
        assert_eq!(number("SELECT count(*) FROM jobs").expect("a number"), 7);
        assert!(number("SELECT count(*) FROM records").is_err());
    }
}

fn job(name: &str) -> JobName {
    JobName::new(name).expect("a good name")
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).expect("a good name")
}

fn the_holder() -> Renewal {
    Renewal {
        job: job("outbound"),
        owner: Owner("a6ceb3583567237cfbc921392335d8d0/6".to_owned()),
        node: node("node-a"),
        token: TOKEN,
        ttl: TTL,
        since: Began { boot: soloist::clock::boot(), at: Some(StoreTime(1_795_373_834_832)) },
        run: Some(RunId(RUN.to_owned())),
    }
}

fn ask(name: &str) -> Acquire {
    Acquire {
        job: job(name),
        owner: Owner("another".to_owned()),
        node: node("node-b"),
        ttl: TTL,
        condition: Condition::None,
        seen: Token(0),
    }
}

#[tokio::test]
async fn every_job_is_as_it_was() {
    let before = Before::new();
    let store = before.connect().await;
    let jobs = ["outbound", "settlement", "collector", "held", "silent", "forgotten"].map(job);
    let snapshot = store.snapshot(&jobs).await.expect("a snapshot");
    assert_eq!(snapshot.epoch, "250ecd70e4a5ff90e7005f33f8055650", "the file is the same");
    let [outbound, settlement, collector, held, silent, forgotten] = &snapshot.jobs[..] else {
        panic!("six")
    };

    let lease = outbound.lease.as_ref().expect("it runs");
    assert_eq!((lease.token, lease.ttl), (TOKEN, TTL));
    assert!(lease.expires_in > LEFT / 2 && lease.expires_in <= LEFT, "{:?}", lease.expires_in);
    let run = outbound.run.as_ref().expect("it runs");
    assert_eq!((run.id.as_str(), run.pid), (RUN, 30_217));
    assert_eq!(run.progress.as_ref().map(|progress| progress.done), Some(3));
    assert_eq!((outbound.version, outbound.log_seq, outbound.participants.len()), (7, 1, 2));
    let switch = outbound.last_switch.as_ref().expect("it was switched");
    assert_eq!((switch.user.as_str(), switch.on), ("wang", true));
    let moving = outbound.moving.as_ref().expect("it moves");
    assert_eq!((&moving.from, &moving.to), (&Some(node("node-a")), &Some(node("node-b"))));
    assert_eq!(moving.until, StoreTime(1_795_373_894_833));
    let drill = outbound.drill.as_ref().expect("it was ordered");
    assert_eq!((drill.token, &drill.to), (TOKEN, &None));

    assert!(settlement.given_up && settlement.crashes == 2 && settlement.lease.is_none());
    assert_eq!(settlement.last_exit.as_ref().map(|last| last.end), Some(RunEnd::Crashed));
    assert_eq!(settlement.last_line.as_deref(), Some("\\ \u{7}"));
    assert_eq!(collector.next.map(|next| next.what), Some(NextWhat::Repeat));
    assert_eq!(held.hold.as_ref().map(|hold| hold.reason.as_str()), Some("stocktaking"));
    assert!(held.participants.is_empty() && held.version == 3);
    assert!(silent.run.is_some() && silent.lease.is_none());
    assert_eq!((forgotten.version, forgotten.token), (1, Token(1_838_462_806_871_045)));

    let held = store.held().await.expect("leases");
    let names: Vec<&str> = held.iter().map(|held| held.name.as_str()).collect();
    assert_eq!(names, ["nightly", "outbound"]);
    assert_eq!(store.audits(None, None, 9).await.expect("acts").len(), 1);
    drop(store);
    before.connect().await;
}

#[tokio::test]
async fn history_and_output_are_as_they_were() {
    let before = Before::new();
    let store = before.connect().await;
    let runs = |name: &str| {
        let (store, name) = (store.clone(), job(name));
        async move { store.runs(&name, None, 9).await.expect("runs") }
    };
    let collected = runs("collector").await;
    let folded: Vec<u32> = collected.iter().map(|run| run.folded).collect();
    assert_eq!(folded, [3, 0, 2], "newest first");
    assert!(collected[0].token > collected[1].token);
    let older = store.runs(&job("collector"), Some(&collected[1].id), 9).await.expect("runs");
    assert_eq!(older, collected[2..]);
    let settled = runs("settlement").await;
    assert_eq!(settled.iter().map(|run| run.end).collect::<Vec<_>>(), [Some(RunEnd::Crashed); 2]);
    assert_eq!(settled[0].exit.code, Some(3));
    let present = runs("outbound").await;
    assert_eq!((present.len(), present[0].id.as_str(), present[0].ended), (1, RUN, None));

    let lines = store.log(&job("settlement"), None, 9).await.expect("lines");
    let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["no \"luck\" today: 汇率", "\\ \u{7}"].repeat(2));
    assert_eq!(lines.iter().map(|line| line.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let one = store.log(&job("collector"), Some(0), 9).await.expect("lines");
    assert_eq!((one.len(), one[0].run.as_str()), (1, "01M81QMQ7X9446YSHACBFYEAM3"));
}

#[tokio::test]
async fn a_run_goes_on_and_ends_and_tokens_go_on_growing() {
    let before = Before::new();
    let store = before.connect().await;
    let renewed = store.renew(&[the_holder()]).await.expect("an answer");
    assert!(matches!(renewed[..], [Renewed::Kept { forgot: false, .. }]), "{renewed:?}");
    let busy = store.acquire(&ask("outbound")).await.expect("an answer");
    assert!(matches!(busy, Acquired::Busy { .. }), "{busy:?}");
    let holder = the_holder();
    let ended = Ended {
        job: holder.job.clone(),
        owner: holder.owner.clone(),
        token: TOKEN,
        run: RunId(RUN.to_owned()),
        exit: soloist::domain::job::Exit { code: Some(0), signal: None },
        end: RunEnd::Exited,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    store.record_ended(&ended).await.expect("ended");
    assert_eq!(store.renew(&[holder]).await.expect("an answer"), [Renewed::Lost]);
    // One whose lease ran out is closed as lost; one that the file had forgotten is not taken for one that was given back.
    let known = ["outbound", "silent", "settlement"].map(job);
    let tokens = store.snapshot(&known).await.expect("a snapshot").jobs;
    for old in tokens {
        let granted = store.acquire(&ask(old.name.as_str())).await.expect("an answer");
        assert!(
            matches!(granted, Acquired::Granted { token, .. } if token > old.token),
            "{granted:?}"
        );
    }
    let lost = store.runs(&job("silent"), None, 9).await.expect("runs");
    assert_eq!(lost.iter().map(|run| run.end).collect::<Vec<_>>(), [Some(RunEnd::Lost)]);
    let forgotten = Renewal {
        job: job("forgotten"),
        owner: Owner("its holder".to_owned()),
        token: Token(1_838_462_806_871_045),
        run: Some(RunId("01M81QMQ9X9446YSHACBFYEAM1".to_owned())),
        ..the_holder()
    };
    let kept = Renewed::Kept { margin: Duration::ZERO, forgot: false };
    assert_eq!(store.renew(&[forgotten]).await.expect("an answer"), [kept]);
    let li = UserName::new("li").expect("a good name");
    assert!(!store.participate(&job("settlement"), &li, true, None).await.expect("an answer"));
}

#[tokio::test]
async fn who_only_looks_converts_nothing_and_hears_what_to_do() {
    let before = Before::new();
    let looking = Options { make: false, ..Options::default() };
    let StoreError::Unsupported(why) = before.refusal(&looking).await else { panic!("opened") };
    assert!(why.contains("soloist serve"), "{why}");
    before.is_as_it_was();
    before.connect().await;
    Store::connect(&before.url(), &looking).await.expect("it is converted");
}

#[tokio::test]
async fn what_cannot_be_converted_is_named_and_left_as_it_was() {
    let before = Before::new();
    let broken = |hold: &str| {
        let sql = format!("UPDATE jobs SET hold = '{hold}' WHERE name = 'settlement'");
        before.open().execute_batch(&sql).expect("written");
    };
    broken("{\"by\":");
    let refused = before.refusal(&Options::default()).await.to_string();
    assert!(refused.contains("job settlement, hold"), "{refused}");
    before.is_as_it_was();
    broken("{\"by\":\"li\",\"reason\":\"x\",\"since\":1}");
    before.connect().await;
}

/// Run by the test below in a process of its own, in the directory of the store.
#[test]
#[ignore = "the other half of a_file_is_not_converted_while_another_process_has_it_open"]
fn the_version_before_has_it_open() {
    if !std::path::Path::new("soloist.db").exists() {
        return;
    }
    let db = Connection::open("soloist.db").expect("it opens");
    let mode: String =
        db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).expect("a mode");
    assert_eq!(mode, "wal");
    db.query_row("SELECT count(*) FROM jobs", [], |row| row.get::<_, i64>(0)).expect("a number");
    println!("\nopen");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("an end");
}

#[tokio::test]
async fn a_file_is_not_converted_while_another_process_has_it_open() {
    let before = Before::new();
    let mut other = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "sqlite::converted::the_version_before_has_it_open"])
        .args(["--ignored", "--nocapture"])
        .current_dir(before.dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said =
        BufReader::new(other.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "open"), "it did not open it");
    let StoreError::Unsupported(why) = before.refusal(&Options::default()).await else {
        panic!("converted under its feet")
    };
    assert!(why.contains("stop every node of that version"), "{why}");
    before.is_as_it_was();
    drop(other.stdin.take());
    // It may say how it went.
    said.for_each(drop);
    assert!(other.wait().expect("it ends").success());
    before.connect().await;
}
