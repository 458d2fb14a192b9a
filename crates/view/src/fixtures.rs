//! Made-up jobs in every state, for the tests here and for the previews of the pages; in no release.

pub mod rotation;
pub mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::words::Language;
use crate::*;
use soloist_config::{Repeat, Runner, Scheduled, Title};
use soloist_domain::backoff::Backoff;
use soloist_domain::job::{
    Exit, Hold, LastExit, LastSwitch, LeaseRecord, Next, Participant, Progress, RunEnd, RunPhase,
    RunRecord,
};
use soloist_domain::lease::{Timing, Token};
use soloist_domain::name::{JobName, Owner, RunId, UserName};
use soloist_domain::tick::{self, Clock, Rules};
use soloist_schedule::{Kind, Schedule, Spec};
use soloist_store::nodes::Beat;

/// 2026-05-04, a morning.
pub const NOW: StoreTime = StoreTime(1_777_891_267_000);
pub const SECOND: Duration = Duration::from_secs(1);
/// When the feed last confirmed the record; the pictures are made `age` later.
pub const CONFIRMED: Boot = Boot(1_000_000_000_000);

pub fn before(seconds: i64) -> StoreTime {
    StoreTime(NOW.0 - seconds * 1_000)
}

pub fn after(millis: i64) -> StoreTime {
    StoreTime(NOW.0 + millis)
}

pub fn user(name: &str) -> UserName {
    UserName::new(name).expect("a valid name")
}

pub fn node_name(name: &str) -> NodeName {
    NodeName::new(name).expect("a valid name")
}

/// A schedule of every minute, without parameters.
pub fn scheduled(job: &JobName) -> Scheduled {
    #[derive(Debug)]
    struct AsGiven;
    impl tick::Fill for AsGiven {
        fn fill(&self, _: &tick::Tick, given: &tick::Params) -> tick::Params {
            given.clone()
        }
    }
    let kind = Kind::Cron { lines: vec!["* * * * *".to_owned()], quartz: false };
    let zone = Some("Asia/Shanghai".to_owned());
    let spec = Spec { kind, zone, jitter: Duration::ZERO };
    let plan = Arc::new(Schedule::read(job, &spec).expect("a schedule"));
    let (ticks, text) = (plan.clone(), plan.text());
    let law = tick::Schedule {
        ticks,
        rules: Rules::default(),
        text,
        params: Arc::new(AsGiven),
        lacks: BTreeMap::new(),
    };
    Scheduled { plan, law, params: Vec::new() }
}

pub fn config(name: &str, en: &str, zh: &str) -> JobConfig {
    JobConfig {
        name: JobName::new(name).expect("a valid name"),
        title: Title { en: en.to_owned(), zh: zh.to_owned() },
        runner: Runner::Soloist,
        elsewhere: false,
        group: None,
        command: vec!["true".to_owned()],
        dir: "/".into(),
        env: BTreeMap::new(),
        timing: Timing::from_ttl(SECOND * 5).expect("safe"),
        stop_grace: SECOND * 2,
        schedule: None,
        repeat: Repeat::After(SECOND),
        backoff: Backoff {
            first: SECOND,
            max: SECOND * 60,
            give_up_after: 0,
            min_uptime: SECOND * 5,
        },
        max_runtime: None,
        max_silence: None,
        heartbeat_url: None,
        stuck_after: None,
        missing_after: None,
        nodes: vec!["*".to_owned()],
        operators: vec!["*".to_owned()],
        viewers: vec!["*".to_owned()],
        user: None,
        secrets: BTreeMap::new(),
        rotation: None,
    }
}

pub fn node(name: &str, age_ms: u64, jobs: &[&str], draining: bool) -> NodeRecord {
    let jobs: BTreeSet<_> = jobs.iter().map(|job| JobName::new(job).expect("a name")).collect();
    NodeRecord {
        beat: Beat {
            node: node_name(name),
            boot: "b".to_owned(),
            version: "0.1.0".to_owned(),
            started: before(9_000),
            containment: "subreaper".to_owned(),
            url: String::new(),
            digest: String::new(),
            holds: jobs.iter().take(1).cloned().collect(),
            jobs,
            unfit: Default::default(),
            vitals: None,
            watched: None,
        },
        age_ms,
        draining,
        told: Arc::default(),
    }
}

pub fn wanted(job: &JobConfig, users: &[&str]) -> JobRecord {
    let mut record = JobRecord::untouched(job.name.clone());
    record.version = 117;
    let joined = |(nth, name): (usize, &&str)| Participant {
        user: user(name),
        since: before(6_000 - 1_000 * i64::try_from(nth).expect("few")),
    };
    record.participants = users.iter().enumerate().map(joined).collect();
    record
}

/// `left_ms` of the lease were left when it was read.
pub fn at_work(record: &mut JobRecord, node: &str, seconds: i64, left_ms: u64) {
    let token = Token(1_792_011_223_344);
    record.token = token;
    record.lease = Some(LeaseRecord {
        node: node_name(node),
        owner: Owner("o".into()),
        token,
        since: before(seconds),
        expires_in: Duration::from_millis(left_ms),
        ttl: SECOND * 5,
    });
    record.run = Some(RunRecord {
        id: RunId("01JRUN".into()),
        token,
        node: node_name(node),
        pid: 4711,
        started: before(seconds),
        phase: RunPhase::Running,
        progress: None,
        last_output: Some(before(1)),
    });
}

pub fn crashed(record: &mut JobRecord, crashes: u32, retry_in: Option<i64>) {
    record.crashes = crashes;
    record.next = retry_in.map(|millis| Next { what: NextWhat::Retry, at: after(millis) });
    record.given_up = retry_in.is_none();
    record.last_exit = Some(LastExit {
        exit: Exit { code: Some(1), signal: None },
        end: RunEnd::Crashed,
        node: node_name("node-b"),
        at: before(20),
        early: false,
    });
}

pub fn look(
    record: JobRecord,
    job: &JobConfig,
    nodes: &[NodeRecord],
    lang: Language,
    age: Duration,
) -> JobView {
    look_among(record, job, nodes, None, lang, age)
}

pub fn look_among(
    record: JobRecord,
    job: &JobConfig,
    nodes: &[NodeRecord],
    rotations: Option<&[RotationView]>,
    lang: Language,
    age: Duration,
) -> JobView {
    let seen = Seen {
        record: Arc::new(record),
        at: NOW,
        confirmed: CONFIRMED,
        doubted_until: Boot(0),
        progressed: None,
        ended_here: None,
    };
    JobView::of(&seen, job, nodes, rotations, lang, CONFIRMED + age)
}

/// One job in every state, in the order of a dashboard, with a config each.
pub fn every_state(lang: Language) -> Vec<(JobConfig, JobView)> {
    let mut all = Vec::new();
    let nodes = |job: &JobConfig| {
        [
            node("node-a", 300, &[job.name.as_str()], false),
            node("node-b", 700, &[job.name.as_str()], false),
        ]
    };
    let mut add = |job: JobConfig, record: JobRecord, age: Duration| {
        let view = look(record, &job, &nodes(&job), lang, age);
        all.push((job, view));
    };

    let job = config("outbound", "Outbound shipping", "出库任务");
    let mut record = wanted(&job, &["li", "wang"]);
    at_work(&mut record, "node-a", 5_340, 4_600);
    if let Some(run) = &mut record.run {
        run.progress =
            Some(Progress { done: 508, total: 830, note: "shipping order 10756".into() });
    }
    record.last_line = Some("shipped 10752 to Save-a-lot Markets, Boise".into());
    add(job, record, Duration::ZERO);

    let job = config("prices", "Supplier price sync", "供应商价格同步");
    let mut record = wanted(&job, &["zhao"]);
    crashed(&mut record, 5, Some(40_000));
    record.last_line = Some("connection refused: supplier-api:443".into());
    add(job, record, Duration::ZERO);

    let job = config("customs", "Customs declarations", "报关申报");
    let mut record = wanted(&job, &["li"]);
    at_work(&mut record, "node-b", 4_000, 2_000);
    record.last_line = Some("declaration 5512 accepted".into());
    add(job, record, Duration::ZERO);

    let job = config("settlement", "Nightly settlement", "夜间结算");
    let mut record = wanted(&job, &[]);
    record.last_switch = Some(LastSwitch {
        user: user("wang"),
        on: false,
        at: before(16 * 3_600),
        reason: Some("quarter closed".into()),
    });
    add(job, record, Duration::ZERO);

    let job = config("labels", "Label printing", "标签打印");
    let mut record = wanted(&job, &["li"]);
    at_work(&mut record, "node-a", 2, 4_900);
    add(job, record, Duration::ZERO);

    let job = config("invoices", "Invoices", "开票");
    let mut record = wanted(&job, &["wang", "zhao"]);
    record.next = Some(Next { what: NextWhat::Repeat, at: after(12_000) });
    add(job, record, Duration::ZERO);

    let mut job = config("statements", "Statements", "对账单");
    job.schedule = Some(scheduled(&job.name));
    add(job.clone(), wanted(&job, &["li"]), Duration::ZERO);
    job.name = JobName::new("closing").expect("a valid name");
    let mut record = wanted(&job, &["li"]);
    record.clock = Some(Box::new(Clock::begin("", &record, before(65))));
    add(job, record, Duration::ZERO);

    let job = config("returns", "Returns", "退货");
    let mut record = wanted(&job, &[]);
    at_work(&mut record, "node-a", 900, 4_900);
    if let Some(run) = &mut record.run {
        run.phase = RunPhase::Stopping { kill_at: after(1_700) };
    }
    add(job, record, Duration::ZERO);

    let job = config("stock", "Stock levels", "库存水位");
    let mut record = wanted(&job, &["li"]);
    record.hold = Some(Hold {
        by: user("chen"),
        reason: "stocktaking until noon".into(),
        since: before(1_800),
    });
    add(job, record, Duration::ZERO);

    let job = config("tariffs", "Tariffs", "关税");
    let mut record = wanted(&job, &["wang"]);
    crashed(&mut record, 10, None);
    add(job, record, Duration::ZERO);

    let job = config("tracking", "Tracking", "物流跟踪");
    let mut record = wanted(&job, &["li"]);
    at_work(&mut record, "node-b", 4_000, 4_000);
    add(job, record, SECOND * 12);

    let job = config("manifests", "Manifests", "舱单");
    let record = wanted(&job, &["li"]);
    let drained = [node("node-a", 300, &["manifests"], true)];
    let view = look(record, &job, &drained, lang, Duration::ZERO);
    all.push((job, view));
    all
}

/// A run that told its progress for the last time `still` seconds ago, and wrote something longer ago.
pub fn standing_still(
    job: &JobConfig,
    progress: Option<(u64, u64)>,
    still: i64,
    lang: Language,
) -> JobView {
    let mut record = wanted(job, &["li"]);
    at_work(&mut record, "shop-7f", 3_600, 4_000);
    let run = record.run.as_mut().expect("a run");
    run.last_output = Some(before(3_000));
    run.progress = progress.map(|(done, total)| Progress { done, total, note: String::new() });
    let seen = Seen {
        record: Arc::new(record),
        at: NOW,
        confirmed: CONFIRMED,
        doubted_until: Boot(0),
        progressed: progress.map(|_| before(still)),
        ended_here: None,
    };
    let nodes = [node("node-a", 300, &[job.name.as_str()], false)];
    JobView::of(&seen, job, &nodes, None, lang, CONFIRMED)
}

/// One that is stuck, for the previews.
pub fn stuck(lang: Language) -> JobView {
    let job = config("parcels", "Parcel tracking", "包裹跟踪");
    standing_still(&job, Some((41, 120)), 2_000, lang)
}
