//! What only this backend can do or suffer: files, schema, other processes, other boots. The rest of its law is
//! `tests/it/conformance`.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::*;
use crate::domain::job::Participant;
use crate::domain::lease::Token;
use crate::domain::name::{JobName, NodeName, Owner, RunId, UserName};
use crate::domain::time::{Began, StoreTime};
use crate::store::accounts::{Accounts, Role};
use crate::store::credentials::Credentials;
use crate::store::jobs::Jobs;
use crate::store::journal::{Journal, Started};
use crate::store::leases::{Acquire, Acquired, Condition, Leases, Renewal, Renewed};
use crate::store::nodes::Nodes;

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
    store.participate(&job(), &li(), true, None).await.unwrap();
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
    let epoch = open(&dir).await.snapshot(&[]).await.unwrap().epoch;
    let again = open(&dir).await.snapshot(&[]).await.unwrap().epoch;
    assert_eq!(epoch, again, "the epoch belongs to the file");
    raw(&dir).execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = refusal(&url(&dir)).await;
    assert!(
        matches!(refused, StoreError::NewerSchema { found: 99, known } if known == schema::KNOWN),
        "{refused}"
    );
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
        store.participate(&job(), &li(), true, None).await.unwrap();
    }
}

#[tokio::test]
async fn a_lease_of_another_boot_is_free_once_its_time_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let Acquired::Granted { token: old, .. } = store.acquire(&ask("before")).await.unwrap() else {
        panic!("a free lease is granted");
    };
    assert!(matches!(store.acquire(&ask("after")).await.unwrap(), Acquired::Busy { .. }));
    raw(&dir).execute("UPDATE leases SET boot = 'another'", []).unwrap();
    assert!(matches!(store.acquire(&ask("after")).await.unwrap(), Acquired::Busy { .. }));
    raw(&dir).execute("UPDATE leases SET expires = expires - 61000", []).unwrap();
    assert_eq!(store.snapshot(&[job()]).await.unwrap().jobs[0].lease, None);
    let granted = store.acquire(&ask("after")).await.unwrap();
    assert!(matches!(granted, Acquired::Granted { token, .. } if token > old), "{granted:?}");
}

/// An older file was put back: it knows neither the lease nor the run of a living holder, who reports before it renews.
#[tokio::test]
async fn a_report_under_a_token_that_the_file_forgot_does_not_end_its_lease() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let (token, ask) = (Token(4_000_000_000_000_000), ask("holder"));
    let began = Began::at_boot(crate::clock::boot());
    let run = RunId("run".to_owned());
    let (job, node) = (ask.job.clone(), ask.node.clone());
    let started = Started { job, token, run, node, pid: 1, began };
    store.record_started(&started).await.unwrap();
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
    assert_eq!(store.renew(std::slice::from_ref(&renewal)).await.unwrap(), [kept]);
    store.release(&renewal.job, &renewal.owner).await.unwrap();
    assert_eq!(store.renew(&[renewal]).await.unwrap(), [Renewed::Lost]);
}

#[tokio::test]
async fn a_locked_store_is_unavailable_for_writers_in_time_and_readable_all_along() {
    let dir = tempfile::tempdir().unwrap();
    let quick = Options { timeout: Duration::from_millis(100), ..Options::default() };
    let store = SqliteStore::connect(&url(&dir), &quick).await.unwrap();
    let stuck = raw(&dir);
    stuck.execute_batch("BEGIN IMMEDIATE").unwrap();
    let begun = crate::clock::boot();
    let refused = store.participate(&job(), &li(), true, None).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert!(crate::clock::boot().since(begun) < Duration::from_secs(5));
    store.snapshot(&[job()]).await.unwrap();
    stuck.execute_batch("ROLLBACK").unwrap();
    let mut tries = 0;
    while store.participate(&job(), &li(), true, None).await.is_err() {
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
    for refused in [
        store.acquire(&ask("x")).await.err(),
        store.snapshot(&[]).await.err(),
        store.describe().await.err(),
        store.subscribe(&[]).await.err(),
    ] {
        let text = refused.expect("refused").to_string();
        assert!(text.contains("was removed or replaced") && text.contains("deep/soloist.db"));
    }
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Interrupted));
    std::fs::rename(&away, file(&dir)).unwrap();
    store.acquire(&ask("x")).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    store.participate(&job(), &li(), true, None).await.unwrap();
    assert!(matches!(heard(&mut events).await, Some(StoreEvent::Job(_))));
}

#[tokio::test]
async fn an_unreadable_record_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    store.hold(&job(), &li(), "x").await.unwrap();
    raw(&dir).execute("UPDATE records SET body = '{\"hold\":'", []).unwrap();
    let text = store.snapshot(&[job()]).await.expect_err("refused").to_string();
    assert!(text.contains("job outbound, record"), "{text}");
}

#[tokio::test]
async fn a_full_disk_is_unavailable_and_nothing_is_half_done() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    store.participate(&job(), &li(), true, None).await.unwrap();
    // As a full disk: the file may not grow.
    let stop = store.inner.writer.call(|db, _| {
        let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok(db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    });
    stop.await.unwrap();
    let reason = "x".repeat(1_000_000);
    let refused = store.hold(&job(), &li(), &reason).await;
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("free some disk")),
        "{refused:?}"
    );
    let record = store.snapshot(&[job()]).await.unwrap().jobs.remove(0);
    assert_eq!((record.version, record.hold), (1, None));
}

#[tokio::test]
async fn the_last_clone_takes_its_threads_and_files_along() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let clone = store.clone();
    let mut events = store.subscribe(&[]).await.unwrap();
    drop(store);
    clone.participate(&job(), &li(), true, None).await.unwrap();
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
    store.participate(&job(), &li(), true, None).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    let left: i64 =
        raw(&dir).query_row("SELECT min(seq) FROM events", [], |row| row.get(0)).unwrap();
    assert!(left > 10_000, "{left}");
}

#[tokio::test]
async fn a_file_of_schema_7_keeps_accounts_credentials_drain_marks_and_the_audit() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("deep")).unwrap();
    let db = raw(&dir);
    for migration in &MIGRATIONS[..7] {
        db.execute_batch(migration).unwrap();
    }
    db.execute_batch(
        "PRAGMA application_id = 0x534f4c4f; PRAGMA user_version = 7;
         INSERT INTO users VALUES ('li', 'operator', 'hash', 5, 'zh', NULL), ('wang', 'admin', 'hash', 6, NULL, 'dark');
         INSERT INTO sessions VALUES ('s', 'li', 'secret', 7, 4102444800000, 8);
         INSERT INTO tokens VALUES ('t', 'id-t', 'li', 'ci', 9, NULL, 'robot', 'shop web'), ('u', 'id-u', 'wang', '', 3, 4102444800000, NULL, '');
         INSERT INTO links VALUES ('l', NULL, 4102444800000);
         INSERT INTO nodes VALUES ('node-a', NULL, 1, 1, 1, 'boot', NULL, NULL);
         INSERT INTO audit VALUES (41, 1, 'li', 'terminal', 'user.add', 'wang', 'a \"quoted\" reason'), (42, 2, 'li', 'terminal', 'login', 'li', NULL);",
    )
    .unwrap();
    drop(db);
    let store = open(&dir).await;
    let [li, wang] = &store.users().await.unwrap()[..] else { panic!("two") };
    assert_eq!(
        (li.role, li.created, li.language.as_deref()),
        (Role::Operator, StoreTime(5), Some("zh"))
    );
    assert_eq!((wang.role, wang.theme.as_deref()), (Role::Admin, Some("dark")));
    let years = Duration::from_secs(100 * 366 * 24 * 3_600);
    assert_eq!(store.session("s", years).await.unwrap().unwrap().csrf, "secret");
    let [u, t] = &store.tokens().await.unwrap()[..] else { panic!("two") };
    assert_eq!(
        (u.id.as_str(), u.expires, u.sources.len()),
        ("id-u", Some(StoreTime(4_102_444_800_000)), 0)
    );
    assert_eq!(
        (t.collector.as_ref().unwrap().as_str(), t.sources.len(), t.expires),
        ("robot", 2, None)
    );
    assert_eq!(store.token("t").await.unwrap().as_ref(), Some(t));
    assert_eq!(store.link("l", true).await.unwrap().unwrap().user, None);
    store.drain(&NodeName::new("node-a").unwrap(), false).await.expect("its mark was kept");
    let entries = store.audits(None, None, 9).await.unwrap();
    assert_eq!(entries.iter().map(|one| one.id).collect::<Vec<_>>(), [42, 41]);
    assert_eq!(entries[1].reason.as_deref(), Some("a \"quoted\" reason"));
    store.audit(&entries[0]).await.unwrap();
    assert_eq!(store.audits(None, None, 1).await.unwrap()[0].id, 43);
}

fn json_of(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap()
}

#[tokio::test]
async fn a_file_of_schema_9_keeps_rotations_their_turns_and_what_ended() {
    use crate::domain::lease::Token;
    use crate::domain::rotation::{Ending, PastTurn, Ring, Rules, Skip, Turn, TypeRules};
    use crate::domain::time::Stamp;
    use crate::store::rotation::{Kept, Rotations as _, Taken, TurnAsk};
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("deep")).unwrap();
    let db = raw(&dir);
    for migration in &MIGRATIONS[..9] {
        db.execute_batch(migration).unwrap();
    }
    let kind =
        |name: &str| TypeRules { name: name.parse().unwrap(), gap: Duration::ZERO, quota: None };
    let (types, lease) = (vec![kind("a"), kind("b")], Duration::from_secs(3_600));
    let rules = Rules { types, min_gap: Duration::ZERO, lease, skip: Skip::Absent };
    let mut ring = Ring::default();
    // The clock of a file never goes back.
    let now = Stamp(4_102_444_800_000_000);
    let (worker, request) = ("w".parse().unwrap(), "r".parse().unwrap());
    let turn: Turn = ring.start(&rules, &rules.types[0].name, &worker, &request, now).clone();
    let Turn { kind, worker, since, .. } = turn.clone();
    let past = |token, ending| PastTurn {
        token: Token(token),
        kind: kind.clone(),
        worker: worker.clone(),
        since,
        ended: since,
        ending,
    };
    db.execute_batch(&format!(
        "PRAGMA application_id = 0x534f4c4f; PRAGMA user_version = 9;
         UPDATE dispatch SET newest = {now};
         INSERT INTO rotations VALUES ('api', '{rules}', '{ring}', NULL, NULL, 0, 1, {until}),
             ('other', '{rules}', '{empty}', 'node-a/x/1', 'a', 5, 0, 5);
         INSERT INTO queue (rotation, kind, waiter, life, worker, since, until) VALUES ('other', 'a', 'node-a/x/1', 'node-a/x', 'w', 1, {until});
         INSERT INTO turn_requests VALUES ('api', 'a', 'w', 'r', {token}, {until});
         INSERT INTO past_turns (rotation, token, turn) VALUES ('api', 5, '{done}'), ('api', 7, '{lost}');
         INSERT INTO lost_turns VALUES (1, 'api', '{turn}');
         INSERT INTO turn_counts VALUES ('api', 'a', 'done', 41), ('api', 'a', 'lost', 1), ('api', 'b', 'empty', 2);",
        now = now.0,
        rules = json_of(&rules),
        ring = json_of(&ring),
        empty = json_of(&Ring::default()),
        until = turn.until.0,
        token = turn.token.0,
        done = json_of(&past(5, Ending::Done)),
        lost = json_of(&past(7, Ending::Lost)),
        turn = json_of(&turn),
    ))
    .unwrap();
    drop(db);
    let store = open(&dir).await;
    let [api, other] = &store.rotations(None, 9).await.unwrap()[..] else { panic!("two") };
    assert_eq!((&api.rules, &api.ring), (&rules, &ring));
    let counts = |nth: usize| (api.types[nth].done, api.types[nth].empty, api.types[nth].lost);
    assert_eq!((counts(0), counts(1)), ((41, 0, 1), (0, 2, 0)));
    assert_eq!(api.past, [past(7, Ending::Lost), past(5, Ending::Done)]);
    assert_eq!((other.waiters.len(), other.types[0].waiting), (0, 0));
    let pumped = store.pump_turns("node-a/x").await.unwrap();
    assert_eq!(pumped.lost, [(api.name.clone(), turn.clone())]);
    let ask = TurnAsk {
        rotation: api.name.clone(),
        kind: turn.kind.clone(),
        worker: turn.worker.clone(),
        request: turn.request.clone(),
        wait: None,
    };
    assert_eq!(store.take_turn(&ask).await.unwrap(), Taken::Granted(turn.clone()));
    let kept = store.extend_turn(&api.name, Token(7), None).await.unwrap();
    assert!(matches!(kept, Kept::Stale { past: Some(_), holder: Some(_) }), "{kept:?}");
}

/// Run by [`another_process_is_heard`] in a process of its own, in the directory of the store.
#[tokio::test]
#[ignore = "the other half of another_process_is_heard"]
async fn the_other_process() {
    if !std::path::Path::new("soloist.db").exists() {
        return;
    }
    let store = SqliteStore::connect("sqlite:soloist.db", &options()).await.unwrap();
    store.participate(&job(), &li(), true, Some("from elsewhere")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_is_heard() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir).await;
    let mut events = store.subscribe(&[]).await.unwrap();
    assert_eq!(heard(&mut events).await, Some(StoreEvent::Subscribed));
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::sqlite::tests::the_other_process", "--ignored"])
        .current_dir(dir.path().join("deep"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let first = heard(&mut events).await;
    assert!(other.wait().unwrap().success());
    assert!(matches!(first, Some(StoreEvent::Job(event)) if event.version == 1));
    let record = store.snapshot(&[job()]).await.unwrap().jobs.remove(0);
    let since = record.participants[0].since;
    assert_eq!(record.participants, [Participant { user: li(), since }]);
}
