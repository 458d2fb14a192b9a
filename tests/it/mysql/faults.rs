//! What stands between a node and its MariaDB, and what the server does to single transactions.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use soloist::clock;
use soloist::domain::dispatch::Rules;
use soloist::domain::name::SourceName;
use soloist::store::dispatch::Sources as _;

use super::*;
use crate::support::certificate;
use crate::support::wait::until;

#[tokio::test]
async fn a_server_without_room_for_a_connection_is_unavailable_with_a_remedy() {
    let server = MariaServer::start(&[]);
    let url = server.database();
    // From the beginning: the server counts no connection that was there before the limit. Four are what the holder needs: for
    // grants, for renewals, for the rest, and to ring.
    server.sql("ALTER USER soloist@'127.0.0.1' WITH MAX_USER_CONNECTIONS 4");
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
    let held = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE USER = 'soloist'";
    until("the holder has its four", || (server.sql(held) == "4").then_some(()));
    let room = soloist::stores::connect(&url, &options()).await.err();
    let Some(StoreError::Unavailable(why)) = room else { panic!("{room:?}") };
    assert!(why.contains("max_connections"), "{why}");
    server.sql("ALTER USER soloist@'127.0.0.1' WITH MAX_USER_CONNECTIONS 0");
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
}

#[tokio::test]
async fn a_server_that_takes_no_writes_is_unavailable_with_a_remedy() {
    let server = MariaServer::start(&[]);
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    server.sql("SET GLOBAL read_only = 1");
    let li = UserName::new("li").expect("a good name");
    for refused in [
        store.participate(&job(), &li, true, None).await.map(drop).err(),
        store.describe().await.map(drop).err(),
        soloist::stores::connect(&url, &options()).await.map(drop).err(),
    ] {
        let Some(StoreError::Unavailable(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("takes no writes") && why.contains("primary"), "{why}");
    }
    server.sql("SET GLOBAL read_only = 0");
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
    soloist::stores::connect(&url, &options()).await.expect("it opens");
}

/// Every third update of a job fails as `code`, and is tried again.
async fn every_third_fails(server: &MariaServer, code: u16) {
    let url = server.database();
    let name = name_of(&url);
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    // What this engine was told is not taken back by the failure.
    let tries = format!("tries_of_{name}");
    server.sql(&format!(
        "CREATE DATABASE {tries}; CREATE TABLE {tries}.tries (n BIGINT) ENGINE = MyISAM; \
         INSERT INTO {tries}.tries VALUES (0)"
    ));
    server.sql(&format!(
        "DELIMITER //\nCREATE TRIGGER {name}.fails BEFORE UPDATE ON {name}.jobs FOR EACH ROW BEGIN \
         UPDATE {tries}.tries SET n = n + 1; \
         IF (SELECT n FROM {tries}.tries) % 3 = 0 THEN \
         SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'in the way'; END IF; END//"
    ));
    let li = UserName::new("li").expect("a good name");
    for nth in 0..30_u32 {
        let changed = store.participate(&job(), &li, nth % 2 == 0, None).await;
        assert!(changed.expect("tried again"), "each is done once");
    }
    let tried: u32 = server.sql(&format!("SELECT n FROM {tries}.tries")).parse().expect("a number");
    assert!(tried >= 44, "the fault was met: {tried}");
    let record = store.snapshot(&[job()]).await.expect("a snapshot").jobs.remove(0);
    assert_eq!((record.version, record.participants.len()), (30, 0));
}

#[tokio::test]
async fn a_deadlock_and_a_conflict_are_tried_again_and_done_once() {
    // Else MySQL keeps no count that a failure does not take back.
    let server = MariaServer::start(&["loose-gtid-mode=OFF", "loose-enforce-gtid-consistency=OFF"]);
    for code in [1213, 1205, 1020] {
        every_third_fails(&server, code).await;
    }
}

#[tokio::test]
async fn a_lock_that_somebody_else_holds_for_seconds_is_waited_for() {
    let server = MariaServer::shared();
    let url = server.database();
    let store = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    let name = name_of(&url).to_owned();
    let holding = format!("{name} is held");
    let there = holding.clone();
    let holder = std::thread::spawn(move || {
        MariaServer::shared().sql(&format!(
            "BEGIN; SELECT job FROM {name}.jobs FOR UPDATE; SELECT SLEEP(2), '{there}'; COMMIT"
        ))
    });
    let held = format!(
        "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP%{holding}%'"
    );
    until_async("it is locked", async || (server.sql(&held) == "1").then_some(())).await;
    let answer = store.acquire(&ask("node-b", LONG)).await.expect("longer than the lock time-out");
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
    holder.join().expect("it let go");
}

/// Between a process and the server; what the process sends after it said `word` goes nowhere, as if it had been stopped there.
struct Gag {
    port: u16,
    gagged: Arc<AtomicBool>,
}

impl Gag {
    fn before(server: &MariaServer, word: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (gagged, there) = (Arc::new(AtomicBool::new(false)), server.port());
        let said = Arc::clone(&gagged);
        std::thread::spawn(move || {
            for from in listener.incoming().map_while(Result::ok) {
                let to = TcpStream::connect(("127.0.0.1", there)).expect("the server is there");
                let (back, home) = (to.try_clone(), from.try_clone());
                let (back, home) = (back.expect("another end"), home.expect("another end"));
                let said = Arc::clone(&said);
                std::thread::spawn(move || pass(&back, &home, |_| false));
                std::thread::spawn(move || {
                    pass(&from, &to, |bytes| {
                        let is_it = bytes.windows(word.len()).any(|some| some == word.as_bytes());
                        if is_it {
                            said.store(true, Ordering::SeqCst);
                        }
                        is_it
                    });
                });
            }
        });
        Self { port, gagged }
    }
}

/// Passes bytes on until either end closes; after some of which `last` says so, nothing more.
fn pass(mut from: &TcpStream, mut to: &TcpStream, last: impl Fn(&[u8]) -> bool) {
    let (mut bytes, mut over) = (vec![0; 65_536], false);
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if !over && to.write_all(&bytes[..count]).is_err() {
            break;
        }
        over |= last(&bytes[..count]);
    }
    if !over {
        to.shutdown(Shutdown::Both).ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_stopped_in_the_middle_of_dispatch_holds_nobody_up_for_longer_than_a_second()
 {
    let server = MariaServer::start(&[]);
    let url = server.database();
    let other = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let gag = Gag::before(&server, "FROM dispatch FOR UPDATE");
    let there = server.url_at(gag.port, name_of(&url));
    let stopped = soloist::stores::connect(&there, &options()).await.expect("it opens");
    let source = SourceName::new("mail").expect("a good name");
    let mute = tokio::spawn(async move {
        let source = SourceName::new("letters").expect("a good name");
        stopped.put_source(&source, &Rules::default()).await
    });
    until_async("the lock is held", async || gag.gagged.load(Ordering::SeqCst).then_some(())).await;
    // It has the lock as soon as it has the server's answer; the other one gets it when the server has rolled that back.
    let waits = "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_rows_locked > 0";
    until_async("the server has locked it", async || (server.sql(waits) != "0").then_some(()))
        .await;
    let begun = clock::boot();
    other.put_source(&source, &Rules::default()).await.expect("it is done");
    let waited = clock::boot().since(begun);
    assert!(waited < Duration::from_millis(2_500), "held up for {waited:?}");
    let listed = other.sources(None).await.expect("a list");
    let names: Vec<&str> = listed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["mail"], "what was not committed is not there");
    mute.abort();
}

#[tokio::test]
async fn a_server_with_a_certificate_is_reached_by_tls_and_by_nothing_else() {
    let (ours, strangers) = (certificate::signed_for("mysql"), certificate::signed_for("mysql"));
    let file = |directory: &tempfile::TempDir, name: &str| {
        directory.path().join(name).display().to_string()
    };
    let trusting = |ca: &str| format!("?sslmode=verify-full&sslrootcert={ca}");
    // MySQL makes itself a certificate that nobody has signed.
    let mute = MariaServer::start(if MAKE.is_mysql() { &["tls-version="] } else { &[] });
    let plain = mute.database();
    let why = refusal(&(plain + &trusting(&file(&ours, "ca.pem")))).await;
    assert!(why.contains("speaks no TLS") && why.contains("sslmode=disable"), "{why}");
    let server = MariaServer::start(&[
        &format!("ssl-ca={}", file(&ours, "ca.pem")),
        &format!("ssl-cert={}", file(&ours, "cert.pem")),
        &format!("ssl-key={}", file(&ours, "key.pem")),
    ]);
    // Whoever comes without is not let in, so what opens came by TLS.
    server.sql("ALTER USER soloist@'127.0.0.1' REQUIRE SSL");
    let url = server.database();
    let secure = url.clone() + &trusting(&file(&ours, "ca.pem"));
    let store = soloist::stores::connect(&secure, &options()).await.expect("it opens");
    granted(&store, &ask("node-a", LONG)).await;
    assert!(soloist::stores::connect(&url, &options()).await.is_err(), "it came without TLS");
    let stranger = url.clone() + &trusting(&file(&strangers, "ca.pem"));
    let why = soloist::stores::connect(&stranger, &options())
        .await
        .err()
        .expect("it is not trusted")
        .to_string();
    assert!(why.contains("certificate") && why.contains("sslrootcert=FILE"), "{why}");
    let elsewhere = secure.replace("127.0.0.1", "localhost");
    let why = soloist::stores::connect(&elsewhere, &options())
        .await
        .err()
        .expect("another name")
        .to_string();
    assert!(why.contains("certificate") && why.contains("sslrootcert=FILE"), "{why}");
}
