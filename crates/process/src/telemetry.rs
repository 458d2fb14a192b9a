//! For operators: the log and the Prometheus metrics.
//!
//! Knows names and buckets and nothing of its callers; the composition root gives a [`Metrics`] to every room.

use std::collections::HashSet;
use std::hash::Hash;
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use prometheus::{
    Encoder, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec,
    Opts, Registry, TextEncoder,
};

use crate::outlet;
use soloist_domain::job::State;
use soloist_domain::name::{JobName, RotationName, SourceName, TypeName};
use soloist_domain::rotation::Ending;
use soloist_domain::tick::Outcome;
use soloist_domain::time::StoreTime;

/// What is logged unless it is asked otherwise. What the framework says of requests that it cannot read is left out: a stranger would
/// write our log. So is what it says of its own start: it listens before this node does, in nearly the same words.
const USUAL: &str =
    "info,actix_http::h1::dispatcher=off,actix_http::h1::decoder=off,actix_server=warn";

/// Begins to log to standard error: one line a record, JSON if asked for. Nobody who logs waits for a reader.
///
/// `filter` is in the syntax of `RUST_LOG` (`info,soloist=debug`); without one, or with a wrong one, what is usual is logged. A second call does nothing.
pub fn log_to_stderr(filter: Option<&str>, json: bool) {
    use tracing_subscriber::EnvFilter;
    let filter = filter
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(USUAL));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Whoever logs may hold leases: it does not wait for who reads.
        .with_writer(|| &outlet::STDERR)
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(true);
    let begun = if json { lines.json().try_init() } else { lines.try_init() };
    if begun.is_err() {
        tracing::debug!("the log has begun already");
    }
}

/// Every metric of this process.
pub struct Metrics {
    registry: Registry,
    job_state: GaugeVec,
    wanted_not_running: GaugeVec,
    lease_margin: Histogram,
    takeover: Histogram,
    lease_lost: IntCounter,
    tokens_went_back: IntCounter,
    run_crashes: IntCounterVec,
    run_timed_out: IntCounterVec,
    live_connections: Gauge,
    live_push: Histogram,
    live_resyncs: IntCounter,
    store_call: HistogramVec,
    dispatch_claims: IntCounterVec,
    sources_named: Mutex<HashSet<SourceName>>,
    rotation_turns: IntCounterVec,
    types_named: Mutex<HashSet<(RotationName, TypeName)>>,
    schedule_ticks: IntCounterVec,
    schedule_lateness: Histogram,
    schedule_next: GaugeVec,
    last_success: GaugeVec,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

const MILLISECONDS: [f64; 14] =
    [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// What a claim can come to; each is a label.
const CLAIM_RESULTS: [&str; 6] = ["granted", "empty", "gap", "cap", "paused", "blocked"];
/// So many sources are counted by name, the others together: each name is a handful of series for ever.
const SOURCES_NAMED: usize = 1_000;
/// The same of the types of all rotations.
const TYPES_NAMED: usize = 1_000;

/// Half a second is usual; a tick of the night may come in the morning.
const LATENESS: [f64; 13] =
    [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3_600.0];

const SECONDS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 30.0, 60.0];

impl Metrics {
    /// A registry of its own with every metric in it.
    ///
    /// # Panics
    /// Never: names and labels are constants, and a test makes one.
    #[must_use]
    #[expect(clippy::expect_used, reason = "constant names and labels; a test makes a registry")]
    pub fn new() -> Self {
        let registry = Registry::new();
        let gauges = |name: &str, help: &str, labels: &[&str]| {
            let made = GaugeVec::new(Opts::new(name, help), labels).expect("a valid metric");
            registry.register(Box::new(made.clone())).expect("registered once");
            made
        };
        let counter = |name: &str, help: &str| {
            let made = IntCounter::new(name, help).expect("a valid metric");
            registry.register(Box::new(made.clone())).expect("registered once");
            made
        };
        let histogram = |name: &str, help: &str, buckets: &[f64]| {
            let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
            let made = Histogram::with_opts(options).expect("a valid metric");
            registry.register(Box::new(made.clone())).expect("registered once");
            made
        };
        let run_crashes = IntCounterVec::new(
            Opts::new("soloist_run_crashes_total", "Runs that ended in a crash."),
            &["job"],
        )
        .expect("a valid metric");
        registry.register(Box::new(run_crashes.clone())).expect("registered once");
        let run_timed_out = IntCounterVec::new(
            Opts::new(
                "soloist_run_timed_out_total",
                "Crashes that were runs stopped for max_runtime or max_silence.",
            ),
            &["job"],
        )
        .expect("a valid metric");
        registry.register(Box::new(run_timed_out.clone())).expect("registered once");
        let dispatch_claims = IntCounterVec::new(
            Opts::new(
                "soloist_dispatch_claims_total",
                "Claims answered, by what came of them; granted ones for each source that was served, \
                 the others under * unless one source was asked for.",
            ),
            &["source", "result"],
        )
        .expect("a valid metric");
        registry.register(Box::new(dispatch_claims.clone())).expect("registered once");
        for result in CLAIM_RESULTS {
            dispatch_claims.with_label_values(&["*", result]).inc_by(0);
        }
        let rotation_turns = IntCounterVec::new(
            Opts::new(
                "soloist_rotation_turns_total",
                "Turns that ended, by how: done, empty or failed as their holder said at this node, lost when their lease ran out or nobody received them.",
            ),
            &["rotation", "type", "outcome"],
        )
        .expect("a valid metric");
        registry.register(Box::new(rotation_turns.clone())).expect("registered once");
        let schedule_ticks = IntCounterVec::new(
            Opts::new(
                "soloist_schedule_ticks_total",
                "Ticks by what became of them, as seen from this node since it started: every node that follows the job counts them.",
            ),
            &["job", "outcome"],
        )
        .expect("a valid metric");
        registry.register(Box::new(schedule_ticks.clone())).expect("registered once");
        let live_connections =
            Gauge::new("soloist_live_connections", "Open live sockets.").expect("a valid metric");
        registry.register(Box::new(live_connections.clone())).expect("registered once");
        let calls = HistogramOpts::new("soloist_store_call_seconds", "Duration of store calls.")
            .buckets(MILLISECONDS.to_vec());
        let store_call = HistogramVec::new(calls, &["call"]).expect("a valid metric");
        registry.register(Box::new(store_call.clone())).expect("registered once");
        Self {
            job_state: gauges(
                "soloist_job_state",
                "1 for the state a job is in as seen from this node, 0 for the others.",
                &["job", "state"],
            ),
            wanted_not_running: gauges(
                "soloist_job_wanted_not_running_seconds",
                "For how long a job has been wanted without running.",
                &["job"],
            ),
            lease_margin: histogram(
                "soloist_lease_margin_seconds",
                "Time left of a lease at each renewal.",
                &SECONDS,
            ),
            takeover: histogram(
                "soloist_takeover_seconds",
                "From the end of a lost holder's lease (given back by its guard, or run out) to the start of the next run here.",
                &MILLISECONDS,
            ),
            lease_lost: counter("soloist_lease_lost_total", "Leases this node lost."),
            tokens_went_back: counter(
                "soloist_token_regressions_total",
                "Times that the store showed or granted an older token than before; always 0 in a healthy cluster.",
            ),
            live_push: histogram(
                "soloist_live_push_seconds",
                "From a store event to the write to a live socket.",
                &MILLISECONDS,
            ),
            live_resyncs: counter(
                "soloist_live_resyncs_total",
                "Times that live sockets were sent a whole snapshot again.",
            ),
            run_crashes,
            run_timed_out,
            live_connections,
            store_call,
            dispatch_claims,
            sources_named: Mutex::default(),
            rotation_turns,
            types_named: Mutex::default(),
            schedule_ticks,
            schedule_lateness: histogram(
                "soloist_schedule_lateness_seconds",
                "From the start of a tick to its first grant, as seen from this node.",
                &LATENESS,
            ),
            schedule_next: gauges(
                "soloist_schedule_next_timestamp_seconds",
                "When the next tick of a wanted job starts; in the past while it waits.",
                &["job"],
            ),
            last_success: gauges(
                "soloist_job_last_success_timestamp_seconds",
                "When a run of a job ended well for the last time.",
                &["job"],
            ),
            registry,
        }
    }

    /// The metrics of this process, made at the first call.
    #[must_use]
    pub fn global() -> Arc<Self> {
        static GLOBAL: OnceLock<Arc<Metrics>> = OnceLock::new();
        Arc::clone(GLOBAL.get_or_init(|| Arc::new(Metrics::new())))
    }

    /// Counts a job's crashes from zero, so that the first one is seen as a rise.
    pub fn know(&self, job: &JobName) {
        self.run_crashes.with_label_values(&[job.as_str()]).inc_by(0);
        self.run_timed_out.with_label_values(&[job.as_str()]).inc_by(0);
    }

    /// The same of the ticks of a job with a schedule.
    pub fn know_ticks(&self, job: &JobName) {
        for outcome in Outcome::ALL.into_iter().filter(|outcome| *outcome != Outcome::Running) {
            self.schedule_ticks.with_label_values(&[job.as_str(), outcome.as_str()]).inc_by(0);
        }
    }

    /// So many ticks of a job came to this end.
    pub fn ticks_ended(&self, job: &JobName, outcome: Outcome, count: u32) {
        let labels = [job.as_str(), outcome.as_str()];
        self.schedule_ticks.with_label_values(&labels).inc_by(count.into());
    }

    /// A tick was granted for the first time, so long after its start.
    pub fn tick_granted(&self, late: Duration) {
        self.schedule_lateness.observe(late.as_secs_f64());
    }

    /// When the next tick of a job starts; `None`: none comes, or nobody wants the job.
    pub fn next_tick(&self, job: &JobName, at: Option<StoreTime>) {
        set_instant(&self.schedule_next, job, at);
    }

    /// When a run of a job ended well for the last time; `None`: never, as far as is known.
    pub fn last_success(&self, job: &JobName, at: Option<StoreTime>) {
        set_instant(&self.last_success, job, at);
    }

    /// Shows the state of a job no more that is not there any more.
    pub fn forget(&self, job: &JobName) {
        for state in State::ALL {
            self.job_state.remove_label_values(&[job.as_str(), state.as_str()]).ok();
        }
        self.wanted_not_running.remove_label_values(&[job.as_str()]).ok();
        self.next_tick(job, None);
        self.last_success(job, None);
    }

    /// A renewal found this much of the lease left.
    pub fn observe_margin(&self, left: Duration) {
        self.lease_margin.observe(left.as_secs_f64());
    }

    /// A job was taken over from a lost holder in this time.
    pub fn takeover(&self, took: Duration) {
        self.takeover.observe(took.as_secs_f64());
    }

    /// Counts a token that went back.
    pub fn token_went_back(&self) {
        self.tokens_went_back.inc();
    }

    /// A lease was lost.
    pub fn lease_lost(&self) {
        self.lease_lost.inc();
    }

    /// A run crashed.
    pub fn run_crashed(&self, job: &JobName) {
        self.run_crashes.with_label_values(&[job.as_str()]).inc();
    }

    /// A run was stopped for `max_runtime` or `max_silence`, which is a crash, too.
    pub fn run_timed_out(&self, job: &JobName) {
        self.run_crashed(job);
        self.run_timed_out.with_label_values(&[job.as_str()]).inc();
    }

    /// A store call took this long.
    pub fn store_call(&self, call: &'static str, took: Duration) {
        self.store_call.with_label_values(&[call]).observe(took.as_secs_f64());
    }

    /// A claim was answered: `granted`, or why nothing was; `None` when no single source can be named.
    pub fn claimed(&self, source: Option<&SourceName>, result: &'static str) {
        let named = source.filter(|one| is_named(&self.sources_named, one, SOURCES_NAMED));
        let label = named.map_or("*", SourceName::as_str);
        self.dispatch_claims.with_label_values(&[label, result]).inc();
    }

    /// A turn ended.
    pub fn turn_ended(&self, rotation: &RotationName, kind: &TypeName, how: Ending) {
        let one = (rotation.clone(), kind.clone());
        let named = is_named(&self.types_named, &one, TYPES_NAMED);
        let (rotation, kind) = if named { (rotation.as_str(), kind.as_str()) } else { ("*", "*") };
        self.rotation_turns.with_label_values(&[rotation, kind, how.as_str()]).inc();
    }

    /// Whether a turn of a rotation that has a name here was counted.
    #[must_use]
    pub fn counts_turns(&self) -> bool {
        !self.types_named.lock().is_empty()
    }

    /// A job is in `state` now.
    pub fn job_state(&self, job: &JobName, state: State) {
        for each in State::ALL {
            let value = if each == state { 1.0 } else { 0.0 };
            self.job_state.with_label_values(&[job.as_str(), each.as_str()]).set(value);
        }
    }

    /// A job has been wanted without running for this long; zero when it runs or is not wanted.
    pub fn wanted_not_running(&self, job: &JobName, since: Duration) {
        self.wanted_not_running.with_label_values(&[job.as_str()]).set(since.as_secs_f64());
    }

    /// A live socket opened.
    pub fn live_opened(&self) {
        self.live_connections.inc();
    }

    /// A live socket closed.
    pub fn live_closed(&self) {
        self.live_connections.dec();
    }

    /// A change reached a socket this long after the store told it.
    pub fn live_pushed(&self, took: Duration) {
        self.live_push.observe(took.as_secs_f64());
    }

    /// Live sockets are sent a whole snapshot again.
    pub fn live_resynced(&self) {
        self.live_resyncs.inc();
    }

    /// Everything in the Prometheus text format, version 0.0.4, but series of which a label (name and value) is hidden.
    #[must_use]
    pub fn render(&self, hidden: impl Fn(&str, &str) -> bool) -> String {
        let mut families = self.registry.gather();
        for family in &mut families {
            let series = family.mut_metric();
            series.retain(|one| {
                !one.get_label().iter().any(|label| hidden(label.name(), label.value()))
            });
        }
        families.retain(|family| !family.get_metric().is_empty());
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&families, &mut out) {
            tracing::error!(%error, "metrics could not be written");
        }
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Shows an instant in seconds since 1970, or nothing.
fn set_instant(gauges: &GaugeVec, job: &JobName, at: Option<StoreTime>) {
    match at {
        #[expect(clippy::cast_precision_loss, reason = "milliseconds of this century are exact")]
        Some(at) => gauges.with_label_values(&[job.as_str()]).set(at.0 as f64 / 1_000.0),
        None => drop(gauges.remove_label_values(&[job.as_str()])),
    }
}

/// Fits the store's `Options::observe`: adds a call to the metrics of this process.
pub fn observe_store_call(call: &'static str, took: Duration) {
    static GLOBAL: OnceLock<Arc<Metrics>> = OnceLock::new();
    GLOBAL.get_or_init(Metrics::global).store_call(call, took);
}

/// Whether this one is among the first `most` that were asked for.
fn is_named<T: Clone + Eq + Hash>(named: &Mutex<HashSet<T>>, one: &T, most: usize) -> bool {
    let mut named = named.lock();
    if !named.contains(one) && named.len() < most {
        named.insert(one.clone());
    }
    named.contains(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_promised_metric_is_written() {
        let metrics = Metrics::new();
        let job = JobName::new("outbound").unwrap();
        metrics.job_state(&job, State::Running);
        metrics.wanted_not_running(&job, Duration::ZERO);
        metrics.run_crashed(&job);
        metrics.store_call("renew", Duration::from_millis(3));
        metrics.observe_margin(Duration::from_secs(4));
        metrics.claimed(Some(&SourceName::new("shop").unwrap()), "granted");
        metrics.know_ticks(&job);
        metrics.ticks_ended(&job, Outcome::Missed, 3);
        metrics.tick_granted(Duration::from_millis(20));
        metrics.next_tick(&job, Some(StoreTime(1_800_000_000_500)));
        metrics.last_success(&job, Some(StoreTime(1_700_000_000_000)));
        let text = metrics.render(|_, _| false);
        for name in [
            "soloist_job_state{job=\"outbound\",state=\"running\"} 1",
            "soloist_job_state{job=\"outbound\",state=\"off\"} 0",
            "soloist_job_wanted_not_running_seconds{job=\"outbound\"} 0",
            "soloist_lease_margin_seconds_bucket",
            "soloist_takeover_seconds_count 0",
            "soloist_lease_lost_total 0",
            "soloist_token_regressions_total 0",
            "soloist_run_crashes_total{job=\"outbound\"} 1",
            "soloist_live_connections 0",
            "soloist_live_push_seconds_count 0",
            "soloist_live_resyncs_total 0",
            "soloist_store_call_seconds_count{call=\"renew\"} 1",
            "soloist_dispatch_claims_total{result=\"granted\",source=\"shop\"} 1",
            "soloist_dispatch_claims_total{result=\"gap\",source=\"*\"} 0",
            "soloist_schedule_ticks_total{job=\"outbound\",outcome=\"missed\"} 3",
            "soloist_schedule_ticks_total{job=\"outbound\",outcome=\"done\"} 0",
            "soloist_schedule_lateness_seconds_count 1",
            "soloist_schedule_next_timestamp_seconds{job=\"outbound\"} 1800000000.5",
            "soloist_job_last_success_timestamp_seconds{job=\"outbound\"} 1700000000",
        ] {
            assert!(text.contains(name), "{name} is missing in:\n{text}");
        }
        metrics.forget(&job);
        let text = metrics.render(|_, _| false);
        assert!(!text.contains("timestamp_seconds{"), "of a job that is gone: {text}");
    }

    #[test]
    fn beyond_a_thousand_sources_the_others_are_counted_together() {
        let metrics = Metrics::new();
        for nth in 0..SOURCES_NAMED + 5 {
            metrics.claimed(Some(&SourceName::new(&format!("s{nth}")).unwrap()), "empty");
        }
        let text = metrics.render(|_, _| false);
        assert!(text.contains("{result=\"empty\",source=\"*\"} 5"), "{text}");
        assert!(text.contains("{result=\"empty\",source=\"s999\"} 1"));
    }

    #[test]
    fn beyond_a_thousand_types_of_rotations_the_others_are_counted_together() {
        let metrics = Metrics::new();
        for nth in 0..TYPES_NAMED + 5 {
            let rotation = RotationName::new(&format!("r{}", nth / 2)).unwrap();
            let kind = TypeName::new(&format!("t{}", nth % 2)).unwrap();
            metrics.turn_ended(&rotation, &kind, Ending::Done);
        }
        let text = metrics.render(|_, _| false);
        assert!(text.contains("{outcome=\"done\",rotation=\"*\",type=\"*\"} 5"), "{text}");
        assert!(text.contains("{outcome=\"done\",rotation=\"r499\",type=\"t1\"} 1"));
    }
}
