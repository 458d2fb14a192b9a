//! What the ledger must never show. It knows nothing of how dispatch is built: only rules, answers and two clocks.
//!
//! An answer that never came makes a check weaker and never wrong: whatever may have happened is allowed, whatever
//! surely did is judged. The store's clock is tied to this machine's by the grants themselves: each lies between a
//! question and its answer, so all of them together leave the difference of the clocks a room of about a millisecond.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::{Answer, Ask, Call};
use super::sources::Source;

/// A lease of one task, as its collector was told.
struct Grant {
    id: String,
    source: String,
    token: u64,
    claim: String,
    by: String,
    start: i64,
    /// By the store's clock, at least and at most: when it was extended is known as exactly as its call was long.
    end: i64,
    latest_end: i64,
    /// On CLOCK_BOOTTIME: the answer that showed it first.
    seen: i64,
    /// On CLOCK_BOOTTIME: when its result was first sent.
    reported: Option<i64>,
}

/// What a ledger came to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) wrongs: Vec<String>,
    /// Leases that somebody saw, by source.
    pub(crate) grants: BTreeMap<String, u64>,
    pub(crate) accepted: usize,
    pub(crate) stale: usize,
    pub(crate) unanswered: usize,
    /// How exactly the clocks are tied.
    pub(crate) clock_room: i64,
}

struct Judge<'a> {
    calls: &'a [Call],
    sources: &'a BTreeMap<String, Source>,
    /// Of the store's stamps: 1 or 1,000.
    grain: i64,
    grants: Vec<Grant>,
    /// By task and token.
    index: BTreeMap<(String, u64), usize>,
    /// Store's clock less CLOCK_BOOTTIME: at least and at most.
    offset: (i64, i64),
    verdict: Verdict,
}

/// Judges a ledger over `tasks` (id to source), all of which must be done. `grain` is the precision of the store's stamps
/// in microseconds.
pub(crate) fn judge(
    calls: &[Call],
    sources: &BTreeMap<String, Source>,
    tasks: &BTreeMap<String, String>,
    grain: i64,
) -> Verdict {
    let mut judge = Judge {
        calls,
        sources,
        grain,
        grants: Vec::new(),
        index: BTreeMap::new(),
        offset: (i64::MIN, i64::MAX),
        verdict: Verdict::default(),
    };
    judge.tie_clocks();
    judge.collect_grants();
    judge.collect_extensions();
    judge.collect_reports();
    judge.one_live_claim();
    judge.only_the_current_token();
    judge.all_done_once(tasks);
    for source in sources.values() {
        judge.starts(source);
        judge.in_flight(source);
    }
    judge.blocks();
    judge.verdict.unanswered = calls.iter().filter(|call| call.answer.is_none()).count();
    judge.verdict
}

impl Judge<'_> {
    fn wrong(&mut self, text: String) {
        self.verdict.wrongs.push(text);
    }

    /// Also: the same request has the same answer, and a lease ends `lease_ms` after the grant.
    fn collect_grants(&mut self) {
        let mut answered: BTreeMap<&str, (&str, i64, BTreeMap<&str, u64>)> = BTreeMap::new();
        let mut asked: BTreeMap<&str, usize> = BTreeMap::new();
        for call in self.calls {
            let Ask::Exchange { request: Some(request), .. } = &call.ask else { continue };
            let times = asked.entry(request).or_default();
            *times += 1;
            let first_time = *times == 1;
            let Some((received, Answer::Exchange { granted: Some(granted), .. })) = &call.answer
            else {
                continue;
            };
            let tokens: BTreeMap<&str, u64> =
                granted.tasks.iter().map(|task| (task.id.as_str(), task.token)).collect();
            if let Some((claim, until, before)) = answered.get(request.as_str()) {
                let same = tokens.iter().all(|(id, token)| before.get(id) == Some(token));
                if same && *claim == granted.claim {
                    continue;
                }
                // A request is remembered for as long as its claim's lease; asked later, it is a new one.
                if received + self.offset.1 < *until {
                    self.verdict.wrongs.push(format!(
                        "request {request} of {} was answered with {claim} {before:?}, then with {} {tokens:?}",
                        call.by, granted.claim
                    ));
                    continue;
                }
            }
            answered.insert(request, (&granted.claim, granted.lease_until, tokens));
            let shortest = granted.tasks.iter().map(|task| self.lease(&task.source)).min();
            for task in &granted.tasks {
                let source = &self.sources[&task.source];
                if source.max_attempts > 0 && task.attempt > source.max_attempts {
                    self.verdict.wrongs.push(format!(
                        "attempt {} of task {} in {}, which allows {}",
                        task.attempt, task.id, task.source, source.max_attempts
                    ));
                }
                // A claim that is shown late may have lost the task whose lease was the shortest.
                if first_time && Some(granted.lease_until - task.start) != shortest {
                    self.verdict.wrongs.push(format!(
                        "claim {}: task {} was granted at {} until {}, not for {shortest:?}",
                        granted.claim, task.id, task.start, granted.lease_until
                    ));
                }
                let key = (task.id.clone(), task.token);
                if let Some(&other) = self.index.get(&key) {
                    let other = &self.grants[other];
                    self.verdict.wrongs.push(format!(
                        "task {} was granted twice under token {}: to {} and to {}",
                        task.id, task.token, other.by, call.by
                    ));
                    continue;
                }
                self.index.insert(key, self.grants.len());
                *self.verdict.grants.entry(task.source.clone()).or_default() += 1;
                self.grants.push(Grant {
                    id: task.id.clone(),
                    source: task.source.clone(),
                    token: task.token,
                    claim: granted.claim.clone(),
                    by: call.by.clone(),
                    start: task.start,
                    end: task.start + self.lease(&task.source),
                    latest_end: task.start + self.grain + self.lease(&task.source),
                    seen: *received,
                    reported: None,
                });
            }
        }
    }

    fn lease(&self, source: &str) -> i64 {
        self.sources[source].lease_ms * 1_000
    }

    fn collect_extensions(&mut self) {
        for call in self.calls {
            let Ask::Extend { claim } = &call.ask else { continue };
            // A claim that was asked for again after its end may have its old name.
            let mut of_claim: BTreeMap<String, usize> = BTreeMap::new();
            for (n, grant) in self.grants.iter().enumerate() {
                if grant.claim == *claim && grant.seen <= call.sent {
                    let newest = of_claim.entry(grant.id.clone()).or_insert(n);
                    if self.grants[*newest].token < grant.token {
                        *newest = n;
                    }
                }
            }
            for (id, n) in of_claim {
                let lease = self.lease(&self.grants[n].source);
                let grant = &mut self.grants[n];
                match &call.answer {
                    Some((received, Answer::Extend { kept, .. })) if kept.contains(&id) => {
                        grant.end = grant.end.max(call.sent + self.offset.0 + lease);
                        let latest = received + self.offset.1 + lease;
                        grant.latest_end = grant.latest_end.max(latest);
                    }
                    None => grant.latest_end = i64::MAX,
                    Some(_) => {}
                }
            }
        }
    }

    fn collect_reports(&mut self) {
        for call in self.calls {
            let Ask::Exchange { reports, .. } = &call.ask else { continue };
            for report in reports {
                if let Some(&n) = self.index.get(&(report.id.clone(), report.token)) {
                    // Calls are in the order of their sending.
                    self.grants[n].reported.get_or_insert(call.sent);
                }
            }
        }
    }

    fn tie_clocks(&mut self) {
        let mut first_sent: BTreeMap<&str, i64> = BTreeMap::new();
        let (mut least, mut most) = (i64::MIN, i64::MAX);
        for call in self.calls {
            let Ask::Exchange { request: Some(request), .. } = &call.ask else { continue };
            let sent = *first_sent.entry(request).or_insert(call.sent);
            if let Some((received, Answer::Exchange { granted: Some(granted), .. })) = &call.answer
            {
                for task in &granted.tasks {
                    least = least.max(task.start - received);
                    most = most.min(task.start + self.grain - sent);
                }
            }
        }
        self.offset = (least, most);
        self.verdict.clock_room = most.saturating_sub(least);
        if least > most {
            self.wrong(format!(
                "the grants are not of one clock: some lie {} us outside of their calls",
                least - most
            ));
        }
    }

    fn one_live_claim(&mut self) {
        let mut of_task: BTreeMap<&str, Vec<&Grant>> = BTreeMap::new();
        for grant in &self.grants {
            of_task.entry(&grant.id).or_default().push(grant);
        }
        let mut wrongs = Vec::new();
        for grants in of_task.values_mut() {
            grants.sort_by_key(|grant| grant.token);
            for pair in grants.windows(2) {
                let [earlier, later] = pair else { unreachable!("pairs") };
                if later.start < earlier.start {
                    wrongs.push(format!(
                        "task {}: token {} is newer than {} and was granted before it",
                        later.id, later.token, earlier.token
                    ));
                }
                let maybe_freed = earlier.reported.is_some_and(|sent| sent < later.seen);
                if later.start < earlier.end && !maybe_freed {
                    wrongs.push(format!(
                        "two live claims of task {} in {}: {} holds it under {} until {}, {} got it under {} at {}",
                        later.id, later.source, earlier.by, earlier.token, earlier.end, later.by, later.token, later.start
                    ));
                }
            }
        }
        self.verdict.wrongs.extend(wrongs);
    }

    fn only_the_current_token(&mut self) {
        let mut seen: BTreeMap<&str, Vec<(u64, i64)>> = BTreeMap::new();
        for grant in &self.grants {
            seen.entry(&grant.id).or_default().push((grant.token, grant.seen));
        }
        let (mut wrongs, mut accepted, mut stale) = (Vec::new(), 0, 0);
        for call in self.calls {
            let Ask::Exchange { reports, .. } = &call.ask else { continue };
            let Some((received, Answer::Exchange { statuses, .. })) = &call.answer else {
                continue;
            };
            if statuses.len() != reports.len() {
                wrongs.push(format!("{} results, {} answers", reports.len(), statuses.len()));
            }
            for (report, status) in reports.iter().zip(statuses) {
                let (id, token) = (report.id.as_str(), report.token);
                let Some(&n) = self.index.get(&(id.to_owned(), token)) else {
                    wrongs.push(format!("a result of task {id} under {token}, never granted"));
                    continue;
                };
                let grant = &self.grants[n];
                let first_sent = grant.reported.unwrap_or(call.sent);
                match status.as_str() {
                    "ok" => {
                        accepted += 1;
                        let newer =
                            seen[id].iter().find(|(other, at)| *other > token && *at < first_sent);
                        if let Some((newer, _)) = newer {
                            wrongs.push(format!(
                                "task {id}: a result under {token} was accepted although {newer} was out already"
                            ));
                        }
                        let at_least = first_sent + self.offset.0;
                        if at_least > grant.latest_end {
                            wrongs.push(format!(
                                "task {id} in {}: a result under {token} was accepted {} us after the end of its lease",
                                grant.source,
                                at_least - grant.latest_end
                            ));
                        }
                    }
                    "stale" => {
                        stale += 1;
                        if received + self.offset.1 < grant.end && first_sent == call.sent {
                            wrongs.push(format!(
                                "task {id} in {}: the first result under the current token {token} was refused",
                                grant.source
                            ));
                        }
                    }
                    other => {
                        wrongs.push(format!("task {id}: a result was answered with {other:?}"))
                    }
                }
            }
        }
        self.verdict.wrongs.extend(wrongs);
        self.verdict.accepted = accepted;
        self.verdict.stale = stale;
    }

    fn all_done_once(&mut self, tasks: &BTreeMap<String, String>) {
        let mut done: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        let mut maybe: BTreeSet<&str> = BTreeSet::new();
        for call in self.calls {
            let Ask::Exchange { reports, .. } = &call.ask else { continue };
            for (nth, report) in reports.iter().enumerate().filter(|(_, r)| r.outcome == "done") {
                match &call.answer {
                    Some((_, Answer::Exchange { statuses, .. })) => {
                        if statuses.get(nth).is_some_and(|status| status == "ok") {
                            done.entry(&report.id).or_default().insert(report.token);
                        }
                    }
                    _ => {
                        maybe.insert(&report.id);
                    }
                }
            }
        }
        let mut wrongs = Vec::new();
        for (id, source) in tasks {
            match done.get(id.as_str()) {
                None if !maybe.contains(id.as_str()) => {
                    wrongs.push(format!(
                        "task {id} in {source} was lost: nobody was told that it is done"
                    ));
                }
                Some(tokens) if tokens.len() > 1 => {
                    wrongs.push(format!(
                        "task {id} in {source} was done {} times: {tokens:?}",
                        tokens.len()
                    ));
                }
                _ => {}
            }
        }
        for grant in &self.grants {
            let Some(tokens) = done.get(grant.id.as_str()) else { continue };
            if tokens.first().is_some_and(|done| grant.token > *done) {
                wrongs.push(format!(
                    "task {} was handed out under {} after it was done: {tokens:?}",
                    grant.id, grant.token
                ));
            }
            if !tasks.contains_key(&grant.id) {
                wrongs.push(format!("task {} was never put", grant.id));
            }
        }
        self.verdict.wrongs.extend(wrongs);
    }

    /// Gap and window: whole milliseconds of stamps that were cut to the grain differ by no less than the stamps did.
    fn starts(&mut self, source: &Source) {
        let of_source = self.grants.iter().filter(|grant| grant.source == source.name);
        let mut starts: Vec<i64> = of_source.map(|grant| grant.start).collect();
        starts.sort_unstable();
        let mut wrongs = Vec::new();
        let mut apart = |count: usize, least: i64, rule: &str| {
            for (first, last) in starts.iter().zip(starts.iter().skip(count)) {
                if last - first < least {
                    wrongs.push(format!(
                        "{rule} of {}: start {last} is {} us after {first}, {count} before it; {least} at least",
                        source.name,
                        last - first
                    ));
                }
            }
        };
        if source.gap_ms > 0 {
            apart(1, source.gap_ms * 1_000, "gap");
        }
        if let Some((count, ms)) = source.window {
            apart(count, ms * 1_000, "window");
        }
        self.verdict.wrongs.extend(wrongs);
    }

    /// Whoever was surely in flight together.
    fn in_flight(&mut self, source: &Source) {
        let Some(cap) = source.cap else { return };
        let mut changes: Vec<(i64, i8)> = Vec::new();
        for grant in self.grants.iter().filter(|grant| grant.source == source.name) {
            let reported = grant.reported.map_or(i64::MAX, |sent| sent + self.offset.0);
            let (from, to) = (grant.start + self.grain, grant.end.min(reported));
            if from < to {
                changes.push((from, 1));
                changes.push((to, -1));
            }
        }
        // At the same instant whoever leaves leaves first.
        changes.sort_unstable();
        let mut held = 0_usize;
        for (at, change) in changes {
            if change < 0 {
                held -= 1;
                continue;
            }
            held += 1;
            if held > cap {
                self.wrong(format!(
                    "cap of {}: {held} in flight at {at}, {cap} at most",
                    source.name
                ));
            }
        }
    }

    /// Between the answer that says blocked and the end of the block nobody is served.
    fn blocks(&mut self) {
        let mut wrongs = Vec::new();
        for call in self.calls {
            let Ask::Block { source, for_us } = &call.ask else { continue };
            let Some((received, Answer::Block)) = &call.answer else { continue };
            let (from, to) = (received + self.offset.1, call.sent + for_us + self.offset.0);
            let served = |grant: &&Grant| {
                grant.source == *source && from < grant.start && grant.start + self.grain < to
            };
            if let Some(grant) = self.grants.iter().find(served) {
                wrongs.push(format!(
                    "{source} was blocked from {from} to {to} and served task {} at {}",
                    grant.id, grant.start
                ));
            }
        }
        self.verdict.wrongs.extend(wrongs);
    }
}
