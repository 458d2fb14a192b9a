//! A store is upgraded to a later schema by steps: each once, whole or not at all, and refused in words while it may not be.
//!
//! This program knows schema 1. The later version is this program with a made-up step after its own (`Options::steps`).

use std::any::Any;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use soloist::domain::name::{JobName, UserName};
use soloist::store::jobs::Jobs as _;
use soloist::store::{For, Options, Store, StoreError};

use crate::lifecycle::JOB;
use crate::sql::name_of;
use crate::support::cluster::RedisCluster;
use crate::support::mariadb::MariaServer;
use crate::support::node::Ground;
use crate::support::postgres::PostgresServer;
use crate::support::redis::RedisServer;
use crate::support::wait::{until, until_async};
use crate::support::witness::{self, Witness};

/// A kind of store.
#[derive(Clone, Copy)]
enum Kind {
    Sqlite,
    Redis,
    Postgres,
    Mariadb,
}

impl Kind {
    fn of(url: &str) -> Self {
        match url.split([':', '+']).next() {
            Some("sqlite") => Self::Sqlite,
            Some("redis") => Self::Redis,
            Some("postgres") => Self::Postgres,
            _ => Self::Mariadb,
        }
    }

    /// The step of the later version: whoever applies it twice is found out.
    fn step(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => {
                &["CREATE TABLE made_up (n INTEGER, text BLOB); INSERT INTO made_up VALUES (1, '')"]
            }
            Self::Redis => &["redis.call('INCR', base .. 'made_up')"],
            Self::Postgres => &["CREATE TABLE made_up (n BIGINT); INSERT INTO made_up VALUES (1)"],
            Self::Mariadb => &["-- A comment; and what is carried out again does no harm.\n\
                 CREATE TABLE IF NOT EXISTS made_up (n BIGINT) {table};\n\
                 INSERT INTO made_up VALUES (1);\n"],
        }
    }

    /// The same step, which is under way for so long that it is killed meanwhile.
    fn slow(self) -> &'static [&'static str] {
        match self {
            Self::Sqlite => &["CREATE TABLE made_up (n INTEGER, text BLOB); \
                 WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted LIMIT 400000) \
                 INSERT INTO made_up SELECT n, randomblob(1000) FROM counted"],
            Self::Redis => &["redis.call('INCR', base .. 'made_up')\nfor _ = 1, 1e11 do end"],
            Self::Postgres => &["CREATE TABLE made_up (n BIGINT); SELECT pg_sleep(2)"],
            Self::Mariadb => &["CREATE TABLE IF NOT EXISTS made_up (n BIGINT) {table};\n\
                 SELECT SLEEP(2);\n\
                 INSERT INTO made_up VALUES (1);\n"],
        }
    }
}

/// A store of this version, in which a job is switched on.
struct Made {
    url: String,
    prefix: String,
    /// How often the step was applied; `None`: nothing of it is there.
    applied: Box<dyn Fn() -> Option<i64>>,
    _guard: Box<dyn Any>,
}

fn job() -> JobName {
    JobName::new("outbound").expect("a good name")
}

impl Made {
    fn new(
        url: String,
        prefix: &str,
        guard: impl Any,
        applied: impl Fn() -> Option<i64> + 'static,
    ) -> Self {
        let (applied, guard) = (Box::new(applied), Box::new(guard));
        let made = Self { url, prefix: prefix.to_owned(), applied, _guard: guard };
        // With its end nobody uses the store.
        assert!(made.another_process("now").wait().expect("it ends").success());
        made
    }

    fn sqlite() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("soloist.db");
        let url = format!("sqlite:{}", file.display());
        Self::new(url, "", dir, move || {
            let db = rusqlite::Connection::open(&file).expect("it opens");
            db.query_row("SELECT count(*) FROM made_up", [], |row| row.get(0)).ok()
        })
    }

    fn redis() -> Self {
        let server = RedisServer::start_narrow();
        let (url, plain) = (server.narrow_url(), server.url());
        Self::new(url, "soloist:", server, move || {
            crate::support::redis::ask(&plain, &["GET", "soloist:made_up"]).expect("an answer")
        })
    }

    fn cluster() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let cluster = RedisCluster::shared();
        let prefix = format!("step-{}:", NEXT.fetch_add(1, Ordering::Relaxed));
        let key = format!("{prefix}{{~}}:made_up");
        Self::new(cluster.url(), &prefix, (), move || {
            cluster.members[cluster.master_of(&key, 0)].run(&["GET", &key])
        })
    }

    fn postgres() -> Self {
        let server = PostgresServer::shared();
        let url = server.database();
        let name = name_of(&url).to_owned();
        Self::new(url, "", (), move || {
            let there = "SELECT count(*) FROM pg_tables WHERE tablename = 'made_up'";
            let rows = || server.psql(&name, "SELECT count(*) FROM soloist.made_up");
            (server.psql(&name, there) != "0").then(|| rows().parse().expect("a number"))
        })
    }

    fn mariadb() -> Self {
        let server = MariaServer::shared();
        let url = server.database();
        let name = name_of(&url).to_owned();
        Self::new(url, "", (), move || {
            let there = "SELECT count(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'made_up' AND TABLE_SCHEMA";
            let rows = || server.sql(&format!("SELECT count(*) FROM {name}.made_up"));
            let there = server.sql(&format!("{there} = '{name}'"));
            (there != "0").then(|| rows().parse().expect("a number"))
        })
    }

    fn options(&self) -> Options {
        let prefix = if self.prefix.is_empty() { "soloist:" } else { &self.prefix };
        let timeout = Duration::from_secs(2);
        Options { timeout, prefix: prefix.to_owned(), ..Options::default() }
    }

    /// Opened by this version.
    async fn now(&self) -> Result<Store, StoreError> {
        soloist::stores::connect(&self.url, &self.options()).await
    }

    /// Opened by the later one.
    async fn later(&self) -> Result<Store, StoreError> {
        let steps = Kind::of(&self.url).step();
        soloist::stores::connect(&self.url, &Options { steps, ..self.options() }).await
    }

    /// A process that opens it: this version, which switches the job on (`now`), or the later one (`later`, `slow`).
    fn another_process(&self, how: &str) -> Child {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "steps::another_process", "--ignored"])
            .env("STEPS_URL", &self.url)
            .env("STEPS_PREFIX", self.options().prefix)
            .env("STEPS_HOW", how)
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts")
    }

    async fn is_kept(&self, store: &Store) {
        let jobs = store.snapshot(&[job()]).await.expect("an answer").jobs;
        assert_eq!(jobs[0].participants.len(), 1, "{}", self.url);
    }
}

/// Opens the store that its environment names.
#[tokio::test]
#[ignore = "the other half of the tests here"]
async fn another_process() {
    let said = |name: &str| std::env::var_os(name)?.into_string().ok();
    let (Some(url), Some(prefix)) = (said("STEPS_URL"), said("STEPS_PREFIX")) else { return };
    let kind = Kind::of(&url);
    let how = said("STEPS_HOW").unwrap_or_default();
    let steps = match how.as_str() {
        "now" => &[],
        "slow" => kind.slow(),
        _ => kind.step(),
    };
    let options = Options { timeout: Duration::from_secs(10), prefix, steps, ..Options::default() };
    let store = soloist::stores::connect(&url, &options).await.expect("it opens");
    if how == "now" {
        let li = UserName::new("li").expect("a good name");
        store.participate(&job(), &li, true, None).await.expect("switched");
    }
}

/// Both ways: what is said, and that nothing happens to the store.
async fn is_refused_both_ways(made: Made) {
    let store = made.now().await.expect("it opens");
    store.be_ready(For::TakingOver).await.expect("as a node is");
    // Who only looks.
    let steps = Kind::of(&made.url).step();
    let looking = Options { make: false, steps, ..made.options() };
    let why = match soloist::stores::connect(&made.url, &looking).await {
        Err(StoreError::Unsupported(why)) => why,
        other => panic!("{:?}", other.err()),
    };
    assert!(why.contains("schema 1") && why.contains("soloist serve"), "{why}");
    // While a process of the version before uses it.
    let why = match made.later().await {
        Err(StoreError::Unsupported(why)) => why,
        other => panic!("upgraded under its feet: {:?}", other.err()),
    };
    assert!(why.contains("stop every node of that version") && why.contains("schema 2"), "{why}");
    assert_eq!((made.applied)(), None);
    made.is_kept(&store).await;
    made.is_kept(&made.now().await.expect("it is as it was")).await;
    drop(store);
    let store = until_async("the later version opens it", async || made.later().await.ok()).await;
    assert_eq!((made.applied)(), Some(1));
    made.is_kept(&store).await;
    // The version before.
    for options in [made.options(), Options { make: false, ..made.options() }] {
        let refused = soloist::stores::connect(&made.url, &options).await.err();
        let is_newer = matches!(refused, Some(StoreError::NewerSchema { found: 2, known: 1 }));
        assert!(is_newer, "{refused:?}");
    }
    assert_eq!((made.applied)(), Some(1));
    made.is_kept(&soloist::stores::connect(&made.url, &looking).await.expect("it is upgraded"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_refused_in_words_both_ways_on_sqlite() {
    is_refused_both_ways(Made::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_refused_in_words_both_ways_on_redis() {
    is_refused_both_ways(Made::redis()).await;
    is_refused_both_ways(Made::cluster()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_refused_in_words_both_ways_on_postgres() {
    is_refused_both_ways(Made::postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_refused_in_words_both_ways_on_mariadb() {
    is_refused_both_ways(Made::mariadb()).await;
}

async fn is_applied_once(made: Made) {
    let mut all: Vec<Child> = (0..4).map(|_| made.another_process("later")).collect();
    for one in &mut all {
        assert!(one.wait().expect("it ends").success(), "{}", made.url);
    }
    assert_eq!((made.applied)(), Some(1), "{}", made.url);
    made.is_kept(&made.later().await.expect("it opens")).await;
    assert_eq!((made.applied)(), Some(1), "{}", made.url);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_step_is_applied_once_though_processes_open_the_store_at_once() {
    is_applied_once(Made::sqlite()).await;
    is_applied_once(Made::redis()).await;
    is_applied_once(Made::cluster()).await;
    is_applied_once(Made::postgres()).await;
    is_applied_once(Made::mariadb()).await;
}

/// A new store is made with all steps.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_store_of_a_later_version_is_one_that_the_version_before_refuses() {
    let dir = tempfile::tempdir().expect("a directory");
    let urls = [
        format!("sqlite:{}", dir.path().join("soloist.db").display()),
        PostgresServer::shared().database(),
        MariaServer::shared().database(),
    ];
    for url in urls {
        let now = Options { timeout: Duration::from_secs(10), ..Options::default() };
        let options = Options { steps: Kind::of(&url).step(), ..now.clone() };
        soloist::stores::connect(&url, &options).await.expect("it is made");
        let refused = soloist::stores::connect(&url, &now).await.err();
        let is_newer = matches!(refused, Some(StoreError::NewerSchema { found: 2, known: 1 }));
        assert!(is_newer, "{url}: {refused:?}");
    }
}

/// Starts a process that applies the slow step, and kills it once `under_way`.
fn killed(made: &Made, what: &str, under_way: impl FnMut() -> Option<()>) {
    let mut process = made.another_process("slow");
    until(what, under_way);
    process.kill().expect("our own child");
    process.wait().expect("it ends");
}

/// After that it is what it was, and the step is applied as if nothing had been.
async fn is_the_old_one(made: Made) {
    let store = until_async("this version opens it", async || made.now().await.ok()).await;
    assert_eq!((made.applied)(), None, "half a step");
    made.is_kept(&store).await;
    drop(store);
    let store = until_async("the later version opens it", async || made.later().await.ok()).await;
    assert_eq!((made.applied)(), Some(1));
    made.is_kept(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_step_was_killed_is_the_old_one() {
    let made = Made::sqlite();
    let file = made.url.trim_start_matches("sqlite:").to_owned();
    killed(&made, "it has written a lot", || {
        let size = std::fs::metadata(&file).map_or(0, |file| file.len());
        (size > 8 << 20).then_some(())
    });
    is_the_old_one(made).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_step_was_killed_are_the_old_ones_on_postgres() {
    let made = Made::postgres();
    let asleep = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE TABLE made_up%'";
    killed(&made, "it is in the step", || {
        (PostgresServer::shared().psql("postgres", asleep) != "0").then_some(())
    });
    is_the_old_one(made).await;
}

/// A server of this kind rolls back no table: what was begun is the later version's to finish, and nobody else's.
#[tokio::test(flavor = "multi_thread")]
async fn tables_whose_step_was_killed_are_only_for_who_finishes_it_on_mariadb() {
    let made = Made::mariadb();
    let asleep = "SELECT count(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SELECT SLEEP(2)%' AND ID <> CONNECTION_ID()";
    killed(&made, "it is in the step", || (MariaServer::shared().sql(asleep) != "0").then_some(()));
    until_async("it is refused", async || {
        let refused = made.now().await.err();
        matches!(refused, Some(StoreError::NewerSchema { found: 2, known: 1 })).then_some(())
    })
    .await;
    assert_eq!((made.applied)(), Some(0), "it was begun");
    let store = made.later().await.expect("it is finished");
    assert_eq!((made.applied)(), Some(1));
    made.is_kept(&store).await;
}

/// In Redis nothing ends a script but the end of the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_in_a_step_has_the_old_store() {
    let options = ["--appendonly", "yes", "--busy-reply-threshold", "100"];
    let mut server = RedisServer::start(&options);
    let url = server.url();
    let plain = url.clone();
    let made = Made::new(url, "", (), move || {
        crate::support::redis::ask(&plain, &["GET", "soloist:made_up"]).expect("an answer")
    });
    killed(&made, "it is in the script", || {
        let busy = server.try_run::<String>(&["PING"]).err()?;
        busy.to_string().to_lowercase().contains("busy").then_some(())
    });
    server.restart();
    is_the_old_one(made).await;
}

/// What builds before 1.0 made.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_a_development_version_is_refused_in_words_and_left_as_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("soloist.db");
    let db = rusqlite::Connection::open(&file).expect("it opens");
    db.execute_batch("CREATE TABLE jobs (name TEXT); PRAGMA application_id = 0x534f4c4f; PRAGMA user_version = 10")
        .expect("written");
    drop(db);
    let before = std::fs::read(&file).expect("readable");

    let redis = RedisServer::start(&[]);
    redis.run::<()>(&["SET", "soloist:schema", "3"]);
    let postgres = PostgresServer::shared().database();
    let tables = "CREATE TABLE soloist.soloist_schema (number BIGINT); INSERT INTO soloist.soloist_schema VALUES (2); \
         CREATE TABLE soloist.jobs (job TEXT)";
    PostgresServer::shared().psql(name_of(&postgres), tables);
    let mariadb = MariaServer::shared().database();
    let name = name_of(&mariadb);
    MariaServer::shared().sql(&format!(
        "CREATE TABLE {name}.soloist_schema (number BIGINT); INSERT INTO {name}.soloist_schema VALUES (4)"
    ));
    let urls = [format!("sqlite:{}", file.display()), redis.url(), postgres, mariadb.clone()];
    for url in urls {
        for make in [true, false] {
            let options = Options { make, ..Options::default() };
            let Err(StoreError::Unsupported(why)) = soloist::stores::connect(&url, &options).await
            else {
                panic!("{url}: it was opened")
            };
            assert!(why.contains("development version before 1.0"), "{why}");
            assert!(why.contains("name another"), "{why}");
        }
    }
    assert_eq!(std::fs::read(&file).expect("readable"), before);
    assert_eq!(redis.run::<String>(&["GET", "soloist:schema"]), "3");
}

/// A node that works, and what the later version and its own may do to its store (`docs/operations.md`, when the schema rises).
async fn goes_on_undisturbed(ground: Ground, made: impl Fn() -> Made) {
    witness::place(&ground);
    ground.add_user("li", "operator");
    let mut node = ground.start("node-a");
    ground.must(&["on", JOB, "--user", "li"]);
    let witness = Witness::of(&ground, JOB);
    let first = witness.until_started(1);
    let made = made();
    let Err(StoreError::Unsupported(why)) = made.later().await else {
        panic!("upgraded under its feet")
    };
    assert!(why.contains("stop every node of that version"), "{why}");
    witness.until_more(first.token, 5);
    assert_eq!(witness.starts(), 1, "the job was not disturbed");
    assert_eq!(node.terminate(), Some(0));
    drop(until_async("the later version opens it", async || made.later().await.ok()).await);
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["status"]] {
        let output = ground.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        let words = "the store has schema 2, this program knows 1";
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    }
    witness.check();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_runs_a_job_keeps_a_later_version_from_its_store() {
    let ground = Ground::new("sqlite:soloist.db", &witness::job(JOB, "beat", ""));
    let url = format!("sqlite:{}", ground.path("soloist.db").display());
    goes_on_undisturbed(ground, || Made::new(url.clone(), "", (), || None)).await;
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &witness::job(JOB, "beat", ""));
    goes_on_undisturbed(ground, || Made::new(redis.url(), "", (), || None)).await;
}
