//! `soloist store copy`: everything that the API shows is the same in the target, in the same order; what is granted there goes on from
//! there; and what would break that is refused.

mod filled;
mod killed;
mod leaving;
mod places;
mod refusals;

use std::collections::BTreeMap;

use soloist::domain::time::{Stamp, StoreTime};
use soloist::store::accounts::Accounts as _;
use soloist::store::alerts::{Alerts as _, PAST_KEPT};
use soloist::store::copy::{Copied, CopyError, How, Tally, copy};
use soloist::store::credentials::Credentials as _;
use soloist::store::dispatch::{Dispatch as _, Sources as _, TaskFilter};
use soloist::store::hidden::HiddenNames as _;
use soloist::store::jobs::Jobs as _;
use soloist::store::journal::{AuditEntry, AuditFilter, Journal as _, Kind};
use soloist::store::rotation::{Rotations as _, TURNS_KEPT};
use soloist::store::spent::SpentTicks as _;
use soloist::store::timeline::{SPANS_KEPT, Timelines as _};
use soloist::store::{Options, Store};

use self::filled::{JOBS, TICKS, claimed, fill, granted, job, turn};
use self::places::{
    Place, beside_zookeeper, cluster, mariadb, postgres, redis, sqlite, wide_redis,
};

fn note() -> AuditEntry {
    AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "cli:ada".to_owned(),
        from: "terminal".to_owned(),
        act: "store.copy".to_owned(),
        target: "the source".to_owned(),
        reason: None,
        kind: Kind::Person,
        count: 1,
        until: None,
    }
}

async fn copied(from: &str, to: &str, options: &Options) -> Result<Copied, CopyError> {
    let how =
        How { named: soloist::stores::named, dry: false, note: note(), progress: &mut |_| {} };
    copy(from, to, options, how).await
}

/// Everything that the API shows, but for the instants of the readings.
async fn shown(store: &Store) -> BTreeMap<&'static str, Vec<String>> {
    fn lines(all: &[impl std::fmt::Debug]) -> Vec<String> {
        all.iter().map(|one| format!("{one:?}")).collect()
    }
    let mut shown = BTreeMap::new();
    let hidden = store.hidden_names().await.expect("an answer");
    shown.insert("hidden names", vec![format!("{hidden:?}")]);
    shown.insert("users", lines(&store.users().await.expect("an answer")));
    shown.insert("tokens", lines(&store.tokens().await.expect("an answer")));
    let week = std::time::Duration::from_secs(7 * 86_400);
    shown.insert("sessions", lines(&store.sessions(None, week).await.expect("an answer")));
    let book = store.alert_book().await.expect("an answer");
    shown.insert("mutes", vec![format!("{:?}", book.muted)]);
    shown.insert("past alerts", lines(&store.past_alerts(PAST_KEPT).await.expect("an answer")));
    let mut audit =
        store.audit_page(&AuditFilter::default(), None, 500).await.expect("an answer").entries;
    audit.retain(|entry| entry.act != "store.copy");
    shown.insert("audit", lines(&audit));
    let jobs = JOBS.map(job);
    shown.insert("jobs", lines(&store.snapshot(&jobs).await.expect("an answer").jobs));
    let (mut runs, mut log, mut timelines) = (Vec::new(), Vec::new(), Vec::new());
    for job in &jobs {
        runs.extend(store.runs(job, None, 500).await.expect("an answer"));
        log.extend(store.log(job, Some(0), 1_000).await.expect("an answer"));
        timelines.push(store.timeline(job, SPANS_KEPT).await.expect("an answer").line);
    }
    shown.insert("runs", lines(&runs));
    shown.insert("log", lines(&log));
    shown.insert("timelines", lines(&timelines));
    let mut ticks = Vec::new();
    for tick in TICKS {
        let tick = tick.parse().expect("a good tick");
        ticks.push(store.spent(&job("nightly"), &tick).await.expect("an answer").expect("spent"));
    }
    shown.insert("ticks", lines(&ticks));
    let mut sources = store.sources(None).await.expect("an answer");
    sources.iter_mut().for_each(|view| view.now = Stamp(0));
    shown.insert("sources", lines(&sources));
    let tasks = store.tasks(&TaskFilter::default(), None, 1_000).await.expect("an answer");
    shown.insert("tasks", lines(&tasks));
    shown.insert("dead tasks", lines(&store.dead(None, 0, 100).await.expect("an answer")));
    shown.insert("collectors", lines(&store.collectors().await.expect("an answer")));
    let mut rotations = store.rotations(None, TURNS_KEPT).await.expect("an answer");
    for view in &mut rotations {
        // Until when a store holds turns back is its own.
        (view.now, view.ring.recovered_at) = (Stamp(0), Stamp(0));
    }
    shown.insert("rotations", lines(&rotations));
    shown
}

/// Fills the source, copies it into each target, and compares: what is shown, what is granted, and what is claimed.
async fn goes(source: Place, targets: Vec<Place>) {
    let mut options = source.options.clone();
    let store = source.open().await;
    fill(&store).await;
    let ahead = source.tokens_run_ahead();
    let before = shown(&store).await;
    let mut stores = Vec::new();
    for target in &targets {
        options.prefix.clone_from(&target.options.prefix);
        let done = copied(&source.url, &target.url, &options).await.expect("an answer");
        assert!(!done.again);
        let Tally { jobs, tasks, audit, lines, .. } = done.tally;
        assert_eq!((jobs, tasks, audit, lines), (3, 43, 40, 303), "{:?}", done.tally);
        let copy = target.open().await;
        let after = shown(&copy).await;
        for (what, lines) in &before {
            assert_eq!(lines, &after[what], "{what}, from {} to {}", source.url, target.url);
        }
        stores.push(copy);
    }
    // In the source they are claimed as they would have been without a copy.
    let expected: Vec<(String, String)> = claimed(&store).await.0;
    assert!(expected.len() > 20, "{expected:?}");
    for (copy, target) in stores.iter().zip(&targets) {
        let (order, token) = claimed(copy).await;
        assert_eq!(order, expected, "from {} to {}", source.url, target.url);
        assert!(token.0 > ahead, "{token:?} was handed out before: {ahead}");
        for (name, record) in
            JOBS.iter().zip(store.snapshot(&JOBS.map(job)).await.expect("an answer").jobs)
        {
            let token = granted(copy, name, 0).await;
            assert!(token > record.token, "{name}: {token:?} after {:?}", record.token);
        }
        let newest = store.rotations(None, 0).await.expect("an answer").remove(0).ring.token;
        assert!(turn(copy, "orders").await > newest, "a turn after {newest:?}");
    }
}

fn every_other() -> Vec<Place> {
    vec![sqlite(), redis(), postgres(), mariadb()]
}

#[tokio::test]
async fn everything_goes_from_sqlite_into_every_store() {
    goes(sqlite(), every_other()).await;
}

#[tokio::test]
async fn everything_goes_from_redis_into_every_store() {
    goes(redis(), every_other()).await;
}

#[tokio::test]
async fn everything_goes_from_postgres_into_every_store() {
    goes(postgres(), every_other()).await;
}

#[tokio::test]
async fn everything_goes_from_mariadb_into_every_store() {
    goes(mariadb(), every_other()).await;
}

#[tokio::test]
async fn everything_goes_from_a_store_beside_zookeeper_into_every_store() {
    goes(beside_zookeeper(postgres()), every_other()).await;
}

#[tokio::test]
async fn everything_goes_from_a_file_into_a_cluster() {
    let cluster = cluster();
    // One prefix is for both, and a file has none.
    let source = sqlite().with(&cluster.options);
    goes(source, vec![cluster]).await;
}

#[tokio::test]
async fn everything_goes_from_a_cluster_into_a_file_and_one_redis() {
    let cluster = cluster();
    let options = cluster.options.clone();
    let targets = [sqlite(), wide_redis()].map(|place| place.with(&options));
    goes(cluster, targets.into()).await;
}

#[tokio::test]
async fn a_dry_run_counts_the_same_and_makes_no_store() {
    let (source, target) = (sqlite(), sqlite());
    let store = source.open().await;
    fill(&store).await;
    let mut portions = 0;
    let progress = &mut |_: &Tally| portions += 1;
    let how = How { named: soloist::stores::named, dry: true, note: note(), progress };
    let dry = copy(&source.url, &target.url, &source.options, how).await.expect("an answer");
    assert!(portions > 5, "{portions}");
    let file = target.url.strip_prefix("sqlite:").expect("an answer");
    assert!(!std::path::Path::new(file).exists(), "{file}");
    let done = copied(&source.url, &target.url, &source.options).await.expect("an answer");
    assert_eq!(dry.tally, done.tally);
    let rows = done.tally.rows();
    assert!(rows.iter().all(|(_, many)| *many > 0), "something of everything: {rows:?}");
}
