//! The names of keys and channels (the table is in the page of [`super`]); nothing else writes one down.
//!
//! Everything of one job carries the hash tag `{job}`, so that a cluster keeps it on one server. What belongs to no
//! job has, on a cluster, the tag `{~}`, which no job can have: scripts may touch several of those keys.

use soloist_domain::name::JobName;

/// How the keys begin that belong to no job and that a copy writes.
const COPIED: [&str; 17] = [
    "users",
    "tokens",
    "sessions",
    "links",
    "failures",
    "failures_by_age",
    "homes",
    "draining",
    "alerts",
    "spans",
    "wants",
    "ticks",
    "audit",
    "audit_seq",
    "dispatch",
    "rotations",
    "turns",
];

/// Makes names under one prefix.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
    on_a_cluster: bool,
}

impl Keys {
    pub(super) fn new(prefix: &str, on_a_cluster: bool) -> Self {
        Self { prefix: prefix.to_owned(), on_a_cluster }
    }

    pub(super) fn on_a_cluster(&self) -> bool {
        self.on_a_cluster
    }

    /// A key that belongs to no job: `soloist:users`, on a cluster `soloist:{~}:users`.
    pub(super) fn global(&self, noun: &str) -> String {
        let tag = if self.on_a_cluster { "{~}:" } else { "" };
        format!("{}{tag}{noun}", self.prefix)
    }

    /// The record by which [`super`] believes or disbelieves the store; on a cluster each job has its own, because
    /// each of its masters may forget by itself.
    pub(super) fn epoch(&self, job: Option<&JobName>) -> String {
        match job.filter(|_| self.on_a_cluster) {
            Some(job) => self.job(job, "epoch"),
            None => self.global("epoch"),
        }
    }

    /// What connections that hold or ask for leases are called in `CLIENT LIST`, where names have no spaces.
    pub(super) fn client(&self) -> String {
        let name = self.global("leases");
        name.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
    }

    fn job(&self, job: &JobName, part: &str) -> String {
        format!("{}{{{job}}}:{part}", self.prefix)
    }

    pub(super) fn lease(&self, job: &JobName) -> String {
        self.job(job, "lease")
    }

    pub(super) fn record(&self, job: &JobName) -> String {
        self.job(job, "record")
    }

    pub(super) fn log(&self, job: &JobName) -> String {
        self.job(job, "log")
    }

    pub(super) fn runs(&self, job: &JobName) -> String {
        self.job(job, "runs")
    }

    /// Channel of one job's changes.
    pub(super) fn events(&self, job: &JobName) -> String {
        self.job(job, "events")
    }

    /// Channel of changes about nodes.
    pub(super) fn nodes_events(&self) -> String {
        self.global("nodes:events")
    }

    /// A key of dispatch; scripts make the others from [`Self::dispatch`] of nothing, which has their hash tag.
    pub(super) fn dispatch(&self, noun: &str) -> String {
        self.global(&format!("dispatch:{noun}"))
    }

    /// Glob that matches the channel of every job and nothing else.
    pub(super) fn events_pattern(&self) -> String {
        self.pattern("events")
    }

    /// Glob that matches every lease.
    pub(super) fn lease_pattern(&self) -> String {
        self.pattern("lease")
    }

    /// What the lease under `key` is of; `None` when it is none of ours.
    pub(super) fn leased(&self, key: &[u8]) -> Option<JobName> {
        self.of(key, "}:lease")
    }

    /// Glob that matches every record.
    pub(super) fn record_pattern(&self) -> String {
        self.pattern("record")
    }

    /// Which job has the record under `key`; `None` when it is none of ours.
    pub(super) fn recorded(&self, key: &[u8]) -> Option<JobName> {
        self.of(key, "}:record")
    }

    /// Glob that matches every key, of stores with a longer prefix as well.
    pub(super) fn every_pattern(&self) -> String {
        self.escaped() + "*"
    }

    /// The key, if a copy writes it (`store/copy`).
    pub(super) fn copied(&self, key: &[u8]) -> Option<String> {
        let whole = std::str::from_utf8(key).ok()?;
        let rest = whole.strip_prefix(&self.prefix)?;
        let parts = ["record", "lease", "log", "runs"];
        let of_a_job = |part: &str| self.of(key, &format!("}}:{part}")).is_some();
        let rest = if self.on_a_cluster { rest.strip_prefix("{~}:").unwrap_or("") } else { rest };
        let noun = rest.split(':').next().unwrap_or_default();
        let is_copied = COPIED.contains(&noun) || parts.into_iter().any(of_a_job);
        is_copied.then(|| whole.to_owned())
    }

    fn of(&self, key: &[u8], end: &str) -> Option<JobName> {
        let key = std::str::from_utf8(key).ok()?.strip_prefix(&self.prefix)?;
        key.strip_prefix('{')?.strip_suffix(end)?.parse().ok()
    }

    fn pattern(&self, part: &str) -> String {
        self.escaped() + "{*}:" + part
    }

    fn escaped(&self) -> String {
        let mut pattern = String::new();
        for c in self.prefix.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        pattern
    }
}
