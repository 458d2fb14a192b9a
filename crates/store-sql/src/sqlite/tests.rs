//! What only this backend can do or suffer: files, schema, other processes, other boots. The rest of its law is
//! `tests/it/conformance`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::same::CHECKED_FOR;
use super::*;
use soloist_domain::job::Participant;
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist_domain::time::Began;
use soloist_store::jobs::Jobs;
use soloist_store::journal::{Journal, Started};
use soloist_store::leases::{Acquire, Acquired, Condition, Leases, Renewal, Renewed};
use soloist_store::records::OfAnyKind as _;

fn url(dir: &TempDir) -> String {
    format!("sqlite:{}", file(dir).display())
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("deep").join("soloist.db")
}

fn options() -> Options {
    Options { timeout: Duration::from_secs(10), ..Options::default() }
}

async fn open(dir: &TempDir) -> SqliteStore {
    SqliteStore::connect(&url(dir), &options()).await.unwrap()
}

async fn refusal(url: &str) -> StoreError {
    SqliteStore::connect(url, &options()).await.err().expect("refused")
}

fn raw(dir: &TempDir) -> rusqlite::Connection {
    rusqlite::Connection::open(file(dir)).unwrap()
}

fn job() -> JobName {
    JobName::new("outbound").unwrap()
}

fn li() -> UserName {
    UserName::new("li").unwrap()
}

fn ask(owner: &str) -> Acquire {
    Acquire {
        job: job(),
        owner: Owner(owner.to_owned()),
        node: NodeName::new("node-a").unwrap(),
        ttl: Duration::from_secs(60),
        condition: Condition::None,
        seen: Token(0),
    }
}

/// The next event; records come beside them.
async fn heard(events: &mut mpsc::Receiver<StoreEvent>) -> Option<StoreEvent> {
    loop {
        let heard = tokio::time::timeout(Duration::from_secs(20), events.recv()).await;
        let heard = heard.expect("heard in time");
        if !matches!(heard, Some(StoreEvent::Record(_))) {
            return heard;
        }
    }
}

#[tokio::test]
async fn files_and_directory_are_made_for_their_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    store.law().participate(&job(), &li(), true, None).await.unwrap();
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(dir.path().join("deep")), 0o700);
    for suffix in ["", "-wal", "-shm", "-wake"] {
        let mut path = file(&dir).into_os_string();
        path.push(suffix);
        assert_eq!(mode(path.into()), 0o600, "{suffix}");
    }
    let described = store.describe().await.unwrap();
    assert!(described.what.starts_with("SQLite 3."), "{described:?}");
    assert!(described.what.ends_with("deep/soloist.db") && !described.shared);

    std::fs::set_permissions(file(&dir), std::fs::Permissions::from_mode(0o644)).unwrap();
    let warnings = store.describe().await.unwrap().warnings;
    assert!(warnings.iter().any(|warning| warning.contains("chmod 600")), "{warnings:?}");
}

#[tokio::test]
async fn what_cannot_be_a_store_is_refused_with_a_remedy() {
    for bad in ["sqlite:", "sqlite::memory:", "sqlite:dir/"] {
        let refused = refusal(bad).await;
        assert!(matches!(&refused, StoreError::Unsupported(why) if why.contains("sqlite:PATH")));
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("deep")).unwrap();
    std::fs::write(file(&dir), "not a database at all, but long enough to be read\n".repeat(99))
        .unwrap();
    let refused = refusal(&url(&dir)).await;
    assert!(
        matches!(&refused, StoreError::Unsupported(why) if why.contains("not a SQLite database")),
        "{refused}"
    );
    std::fs::remove_file(file(&dir)).unwrap();
    raw(&dir).execute_batch("CREATE TABLE theirs (x); PRAGMA user_version = 1").unwrap();
    let refused = refusal(&url(&dir)).await;
    assert!(
        matches!(&refused, StoreError::Unsupported(why) if why.contains("another program")),
        "{refused}"
    );
    assert!(matches!(refusal("sqlite:/proc/none/x.db").await, StoreError::Unavailable(_)));
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_the_own_one_kept() {
    let dir = tempfile::tempdir().unwrap();
    let epoch = open(&dir).await.law().snapshot(&[]).await.unwrap().epoch;
    let again = open(&dir).await.law().snapshot(&[]).await.unwrap().epoch;
    assert_eq!(epoch, again, "the epoch belongs to the file");
    raw(&dir).execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = refusal(&url(&dir)).await;
    assert!(matches!(refused, StoreError::NewerSchema { found: 99, known: 1 }), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_open_a_new_store_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let opening: Vec<_> = (0..8)
        .map(|_| {
            let url = url(&dir);
            tokio::spawn(async move { SqliteStore::connect(&url, &options()).await })
        })
        .collect();
    for one in opening {
        let store = one.await.unwrap().unwrap();
        store.law().participate(&job(), &li(), true, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_lease_of_another_boot_is_free_once_its_time_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let Acquired::Granted { token: old, .. } = store.law().acquire(&ask("before")).await.unwrap()
    else {
        panic!("a free lease is granted");
    };
    assert!(matches!(store.law().acquire(&ask("after")).await.unwrap(), Acquired::Busy { .. }));
    raw(&dir).execute("UPDATE leases SET boot = 'another'", []).unwrap();
    assert!(matches!(store.law().acquire(&ask("after")).await.unwrap(), Acquired::Busy { .. }));
    raw(&dir).execute("UPDATE leases SET expires = expires - 61000", []).unwrap();
    assert_eq!(store.law().snapshot(&[job()]).await.unwrap().jobs[0].lease, None);
    let granted = store.law().acquire(&ask("after")).await.unwrap();
    assert!(matches!(granted, Acquired::Granted { token, .. } if token > old), "{granted:?}");
}

/// An older file was put back: it knows neither the lease nor the run of a living holder, who reports before it renews.
#[tokio::test]
async fn a_report_under_a_token_that_the_file_forgot_does_not_end_its_lease() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let (token, ask) = (Token(4_000_000_000_000_000), ask("holder"));
    let began = Began::at_boot(soloist_process::clock::boot());
    let run = RunId("run".to_owned());
    let (job, node) = (ask.job.clone(), ask.node.clone());
    let started = Started { job, token, run, node, pid: 1, began };
    store.law().record_started(&started).await.unwrap();
    let renewal = Renewal {
        job: ask.job,
        owner: ask.owner,
        node: ask.node,
        token,
        ttl: ask.ttl,
        since: began,
        run: Some(started.run),
    };
    let kept = Renewed::Kept { margin: Duration::ZERO, forgot: false };
    assert_eq!(store.law().renew(std::slice::from_ref(&renewal)).await.unwrap(), [kept]);
    store.law().release(&renewal.job, &renewal.owner).await.unwrap();
    assert_eq!(store.law().renew(&[renewal]).await.unwrap(), [Renewed::Lost]);
}

#[tokio::test]
async fn a_locked_store_is_unavailable_for_writers_in_time_and_readable_all_along() {
    let dir = tempfile::tempdir().unwrap();
    let quick = Options { timeout: Duration::from_millis(100), ..Options::default() };
    let store = SqliteStore::connect(&url(&dir), &quick).await.unwrap();
    let stuck = raw(&dir);
    stuck.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = soloist_process::clock::boot();
    let refused = store.law().participate(&job(), &li(), true, None).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(soloist_process::clock::boot().since(begun) < Duration::from_secs(5));
    store.law().snapshot(&[job()]).await.unwrap();
    stuck.execute_batch("ROLLBACK").unwrap();
    let mut tries = 0;
    while store.law().participate(&job(), &li(), true, None).await.is_err() {
        tries += 1;
        assert!(tries < 100, "never recovered");
    }
}

#[tokio::test]
async fn a_removed_or_replaced_file_stops_every_call_until_it_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut events = store.subscribe(&[]).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    let away = dir.path().join("away.db");
    std::fs::rename(file(&dir), &away).unwrap();
    std::fs::write(file(&dir), "").unwrap();
    until_refused(&store, "a file is replaced").await;
    for refused in [
        store.law().acquire(&ask("x")).await.err(),
        store.law().snapshot(&[]).await.err(),
        store.describe().await.err(),
        store.subscribe(&[]).await.err(),
    ] {
        let text = refused.expect("refused").to_string();
        assert!(text.contains("was removed or replaced") && text.contains("deep/soloist.db"));
    }
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Interrupted));
    std::fs::rename(&away, file(&dir)).unwrap();
    store.law().acquire(&ask("x")).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    store.law().participate(&job(), &li(), true, None).await.unwrap();
    assert!(matches!(heard(&mut events).await, Some(StoreEvent::Job(_))));
}

/// The last look counts for a moment.
async fn until_refused(store: &SqliteStore, about: &str) {
    let begun = soloist_process::clock::boot();
    while store.law().snapshot(&[]).await.is_ok() {
        let goes_on = soloist_process::clock::boot().since(begun);
        assert!(goes_on < Duration::from_secs(5), "{about}: not noticed");
    }
}

/// By another process: closing a file of the store in this one gives up SQLite's locks.
fn sh(dir: &TempDir, script: &str) {
    let here = dir.path().join("deep");
    let done = Command::new("sh").args(["-ec", script]).current_dir(here).status().unwrap();
    assert!(done.success(), "{script}");
}

#[tokio::test]
async fn whatever_is_done_to_any_file_of_the_store_stops_every_call_and_is_named() {
    let acts = [
        ("rm FILE", "was removed or replaced"),
        ("mv FILE away", "was removed or replaced"),
        ("cp FILE new; mv new FILE", "was removed or replaced"),
        ("cat older/FILE >FILE", ""),
        ("truncate -s 0 FILE", ""),
    ];
    for name in ["soloist.db", "soloist.db-wal", "soloist.db-shm"] {
        for (act, said) in acts {
            let dir = tempfile::tempdir().unwrap();
            let store = open(&dir).await;
            store.law().participate(&job(), &li(), true, None).await.unwrap();
            sh(&dir, "mkdir older; cp soloist.db* older");
            for n in 0..3 {
                store.law().hold(&job(), &li(), &n.to_string()).await.unwrap();
            }
            sh(&dir, &act.replace("FILE", name));
            until_refused(&store, &format!("{act} {name}")).await;
            for refused in [
                store.law().acquire(&ask("x")).await.err(),
                store.law().snapshot(&[]).await.err(),
                store.describe().await.err(),
            ] {
                let about = format!("{act} {name}");
                let text = refused.unwrap_or_else(|| panic!("{about}: not noticed")).to_string();
                assert!(text.contains(said) && text.contains("soloist.db"), "{about}: {text}");
                let whole = [format!("{name} was"), format!("{name} cannot")];
                assert!(whole.iter().any(|whole| text.contains(whole)), "{about}: {text}");
            }
        }
    }
}

/// What was put back may not know who has a lease: nothing that it says makes a page say that nobody runs.
#[tokio::test]
async fn who_reads_an_older_copy_that_was_put_back_doubts_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    sh(&dir, "sqlite3 soloist.db '.backup older.db'");
    store.law().participate(&job(), &li(), true, None).await.unwrap();
    store.law().snapshot(&[]).await.unwrap();
    let doubt = || store.inner.place.quarantine(soloist_process::clock::boot());
    assert_eq!(doubt(), Duration::ZERO);
    sh(&dir, "sqlite3 soloist.db '.restore older.db'");
    store.law().snapshot(&[]).await.unwrap();
    assert!(doubt() > Duration::ZERO, "it believed what it read");
}

#[tokio::test]
async fn another_file_at_the_path_grants_nothing_for_one_lease_and_the_same_one_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let longest_lease = Duration::from_secs(2);
    let options = Options { longest_lease, ..options() };
    let connect = async || SqliteStore::connect(&url(&dir), &options).await.unwrap();
    // Two connections that close at one time may each take the other for the last one, and leave the log; the next one removes it.
    let closed = async || {
        while dir.path().join("deep/soloist.db-wal").exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
            drop(raw(&dir).query_row("SELECT count(*) FROM meta", [], |_| Ok(())));
        }
    };
    let release = async |store: &SqliteStore| {
        store.law().release(&job(), &Owner("x".to_owned())).await.unwrap();
    };
    for _ in 0..2 {
        let store = connect().await;
        assert!(matches!(store.law().acquire(&ask("x")).await.unwrap(), Acquired::Granted { .. }));
        release(&store).await;
        drop(store);
        tokio::time::timeout(Duration::from_secs(10), closed()).await.expect("it closes");
    }
    sh(&dir, "cp soloist.db backup; mv backup soloist.db");
    let begun = soloist_process::clock::boot();
    let first = connect().await;
    // Who comes later, and sees nothing odd, waits as well.
    let second = connect().await;
    for store in [&first, &second] {
        let asked = store.law().acquire(&ask("x")).await.unwrap();
        assert!(
            matches!(asked, Acquired::Quarantined { wait } if wait <= longest_lease + CHECKED_FOR)
        );
    }
    while !matches!(second.law().acquire(&ask("x")).await.unwrap(), Acquired::Granted { .. }) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(soloist_process::clock::boot().since(begun) >= longest_lease);
}

#[tokio::test]
async fn an_unreadable_record_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    store.law().hold(&job(), &li(), "x").await.unwrap();
    raw(&dir).execute("UPDATE records SET body = '{\"hold\":'", []).unwrap();
    let text = store.law().snapshot(&[job()]).await.expect_err("refused").to_string();
    assert!(text.contains("job outbound, record"), "{text}");
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_nothing_is_half_done() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    store.law().participate(&job(), &li(), true, None).await.unwrap();
    // As a full disk: the file may not grow.
    let stop = store.inner.writer.call(|db, _| {
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok(db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    });
    stop.await.unwrap();
    let reason = "x".repeat(1_000_000);
    let refused = store.law().hold(&job(), &li(), &reason).await;
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("free some disk")),
        "{refused:?}"
    );
    let record = store.law().snapshot(&[job()]).await.unwrap().jobs.remove(0);
    assert_eq!((record.version, record.hold), (1, None));
}

#[tokio::test]
async fn the_last_clone_takes_its_threads_and_files_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let clone = store.clone();
    let mut events = store.subscribe(&[]).await.unwrap();
    drop(store);
    clone.law().participate(&job(), &li(), true, None).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    assert!(matches!(heard(&mut events).await, Some(StoreEvent::Job(_))));
    drop(clone);
    assert_eq!(heard(&mut events).await, None, "the subscription has ended");
    // SQLite removes the log with the last connection.
    let log = dir.path().join("deep").join("soloist.db-wal");
    let closed = async {
        while log.exists() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), closed).await.expect("all connections close");
}

#[tokio::test]
async fn a_change_whose_bell_was_never_rung_is_heard_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut events = store.subscribe(&[]).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    raw(&dir)
        .execute("INSERT INTO events (job, version, kind) VALUES ('outbound', 7, 'held')", [])
        .unwrap();
    assert!(matches!(heard(&mut events).await, Some(StoreEvent::Job(event)) if event.version == 7));
}

#[tokio::test]
async fn events_are_trimmed_and_a_gap_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut events = store.subscribe(&[]).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    raw(&dir)
        .execute("INSERT INTO events (seq, job, version, kind) VALUES (20479, 'a', 7, 'held')", [])
        .unwrap();
    store.law().participate(&job(), &li(), true, None).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    let left: i64 =
        raw(&dir).query_row("SELECT min(seq) FROM events", [], |row| row.get(0)).unwrap();
    assert!(left > 10_000, "{left}");
}

/// Run by [`another_process_is_heard`] in a process of its own, in the directory of the store.
#[tokio::test]
#[ignore = "the other half of another_process_is_heard"]
async fn the_other_process() {
    if !std::path::Path::new("soloist.db").exists() {
        return;
    }
    let store = SqliteStore::connect("sqlite:soloist.db", &options()).await.unwrap();
    store.law().participate(&job(), &li(), true, Some("from elsewhere")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_heard() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut events = store.subscribe(&[]).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::tests::the_other_process", "--ignored"])
        .current_dir(dir.path().join("deep"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let first = heard(&mut events).await;
    assert!(other.wait().unwrap().success());
    assert!(matches!(first, Some(StoreEvent::Job(event)) if event.version == 1));
    let record = store.law().snapshot(&[job()]).await.unwrap().jobs.remove(0);
    let since = record.participants[0].since;
    assert_eq!(record.participants, [Participant { user: li(), since }]);
}
