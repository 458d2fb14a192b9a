//! What every page must say before anything else: the store is out of reach, a node is lost and who took its jobs, a node has
//! another configuration.
//!
//! A node that died says nothing itself. That it is silent stands in the store; who took its jobs is remembered here
//! as the records of those jobs pass by, until the node is back or forgotten.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::Hub;
use soloist_domain::definition::Definitions;
use soloist_domain::job::{JobRecord, RunEnd};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;

use crate::auth::Caller;
use crate::frames;
use crate::parts::truth::{self, Bar, Fact, Taken};
use soloist_store::nodes::{BEAT_EVERY, NodeRecord};
use soloist_view::DriftView;
use soloist_view::words::{At, Language, Piece};

/// For how long a lost node stands in the bar. Its own page says it for as long as the store knows the node.
const LOST_FOR: Duration = Duration::from_secs(3_600);

/// What is known, and what was told last.
#[derive(Default)]
pub(super) struct Truth {
    lost: Mutex<HashMap<NodeName, Loss>>,
    told: Mutex<Arc<Vec<Fact>>>,
    /// Who defines jobs otherwise, and what was compared for it.
    drift: Mutex<(Told, Arc<Vec<Fact>>)>,
    /// When the store became reachable for the last time; `None` when it always was.
    back: Mutex<Option<Boot>>,
}

/// Which jobs there are, and what each node tells of them.
type Told = Vec<(NodeName, bool, Arc<Definitions>)>;

/// The runs of one node that were found dead, and who went on.
#[derive(Default)]
struct Loss {
    /// When the node was found silent: said once, or the text would move with every reading.
    at: Option<StoreTime>,
    jobs: BTreeMap<JobName, Handed>,
}

struct Handed {
    /// When the run was recorded as lost.
    ended: StoreTime,
    by: NodeName,
    since: StoreTime,
}

impl Hub {
    /// Remembers who went on with a run that was lost.
    pub(super) fn note_loss(&self, record: &JobRecord) {
        let (Some(last), Some(lease)) = (&record.last_exit, &record.lease) else { return };
        if last.end != RunEnd::Lost || last.node == lease.node || lease.since < last.at {
            return;
        }
        let handed = Handed { ended: last.at, by: lease.node.clone(), since: lease.since };
        self.truth
            .lost
            .lock()
            .entry(last.node.clone())
            .or_default()
            .jobs
            .insert(record.name.clone(), handed);
    }

    /// Everything that is true now.
    fn gather_truth(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        if let Some(outage) = self.feed.outage() {
            let since = self.store_time(outage.since);
            facts.push(Fact::StoreAway { since, detail: outage.detail });
        }
        let now = self.store_time(clock::boot());
        let nodes = self.feed.nodes();
        let mut lost = self.truth.lost.lock();
        for node in nodes.iter().filter(|node| node.is_alive()) {
            // It counts as alive for some time after its end; only one that reports after its losses is back.
            let (Some(loss), Some(heard)) = (lost.get_mut(&node.beat.node), self.feed.heard(node))
            else {
                continue;
            };
            loss.at = None;
            loss.jobs.retain(|_, handed| handed.ended + BEAT_EVERY * 2 >= heard);
        }
        for node in nodes.iter().filter(|node| !node.is_alive()) {
            let Some(heard) = self.feed.heard(node) else { continue };
            let loss = lost.entry(node.beat.node.clone()).or_default();
            let heard = *loss.at.get_or_insert(heard);
            if now.since(heard) > LOST_FOR {
                continue;
            }
            let (at, taken) = loss.story(heard);
            facts.push(Fact::NodeLost { node: node.beat.node.clone(), at, taken });
        }
        facts.extend(self.drift(&nodes).iter().cloned());
        facts
    }

    /// Which living nodes define jobs otherwise than most; compared only when they tell something else.
    fn drift(&self, nodes: &[NodeRecord]) -> Arc<Vec<Fact>> {
        let tell =
            |node: &NodeRecord| (node.beat.node.clone(), node.is_alive(), Arc::clone(&node.told));
        let now: Told = nodes.iter().map(tell).collect();
        let mut known = self.truth.drift.lock();
        if known.0 != now {
            let jobs: BTreeSet<&JobName> = now.iter().flat_map(|(.., told)| told.keys()).collect();
            let mut by_node: BTreeMap<String, Vec<(JobName, Vec<String>)>> = BTreeMap::new();
            for job in jobs {
                for DriftView { node, differs } in DriftView::of(job, nodes) {
                    by_node.entry(node).or_default().push((job.clone(), differs));
                }
            }
            let facts = by_node.into_iter().map(|(node, jobs)| Fact::Drift { node, jobs });
            let facts = Arc::new(facts.collect());
            *known = (now, facts);
        }
        Arc::clone(&known.1)
    }

    /// Gathers anew; whether it is another truth than was told last.
    pub(super) fn truth_changed(&self) -> bool {
        let facts = self.gather_truth();
        let mut told = self.truth.told.lock();
        let changed = **told != facts;
        if changed {
            *told = Arc::new(facts);
        }
        changed
    }

    pub(super) fn note_reachable(&self, reachable: bool) {
        if reachable {
            *self.truth.back.lock() = Some(clock::boot());
        }
    }

    /// What is told of a lost node.
    #[must_use]
    pub fn story(&self, node: &str, lang: Language) -> Option<Vec<Piece>> {
        let now = self.store_time(clock::boot());
        let of_it = |fact: &Fact| matches!(fact, Fact::NodeLost { node: lost, .. } if lost.as_str() == node);
        let fact = self.gather_truth().into_iter().find(of_it)?;
        Some(truth::words(&fact, lang, now))
    }

    /// The jobs of a node that were found dead: each with when its run was recorded as lost, and who went on.
    #[must_use]
    pub fn lost_jobs(&self, node: &str) -> Vec<(JobName, StoreTime, NodeName)> {
        let lost = self.truth.lost.lock();
        let loss = lost.iter().find(|(lost, _)| lost.as_str() == node).map(|(_, loss)| loss);
        let jobs = loss.into_iter().flat_map(|loss| &loss.jobs);
        jobs.map(|(job, handed)| (job.clone(), handed.ended, handed.by.clone())).collect()
    }

    /// The jobs that a living node defines otherwise than most, each with the keys that differ.
    #[must_use]
    pub fn drift_of(&self, node: &str) -> Vec<(JobName, Vec<String>)> {
        let facts = self.drift(&self.feed.nodes());
        let of_it = facts.iter().find_map(|fact| match fact {
            Fact::Drift { node: other, jobs } if other == node => Some(jobs.clone()),
            _ => None,
        });
        of_it.unwrap_or_default()
    }

    /// The bar of a page, for a caller who is signed in: without jobs that they may not see.
    #[must_use]
    pub fn bar(&self, caller: &Caller) -> Bar {
        let mut facts = self.gather_truth();
        let hidden = self.hidden_from(Some(caller));
        for fact in &mut facts {
            if let Fact::Drift { jobs, .. } = fact {
                jobs.retain(|(job, _)| !hidden.has_job(job.as_str()));
            }
        }
        facts.retain(|fact| !matches!(fact, Fact::Drift { jobs, .. } if jobs.is_empty()));
        Bar::new(&facts, caller.language, self.store_time(clock::boot()))
    }

    /// The bar of a page for a reader who is not signed in.
    #[must_use]
    pub fn bar_for_strangers(&self, lang: Language) -> Bar {
        Bar::for_strangers(&self.gather_truth(), lang, self.store_time(clock::boot()))
    }

    pub(super) fn truth_frame(&self, caller: &Caller) -> String {
        frames::truth_frame(&self.bar(caller))
    }

    /// `{"type":"store",...}` as it stands now.
    pub(super) fn store_frame(&self) -> String {
        match self.feed.outage() {
            Some(outage) => {
                let since = At(self.store_time(outage.since));
                frames::store_frame(false, since, Some(&outage.detail))
            }
            None => {
                let back = self.truth.back.lock().unwrap_or_else(clock::boot);
                frames::store_frame(true, At(self.store_time(back)), None)
            }
        }
    }

    /// The store's clock, or this machine's where the store was never read.
    pub(super) fn store_time(&self, at: Boot) -> StoreTime {
        self.feed.store_time(at).unwrap_or_else(|| {
            let ago = clock::boot().since(at);
            StoreTime(jiff::Timestamp::now().as_millisecond()) - ago
        })
    }
}

impl Loss {
    /// When it began, and who took over, for a node that was renewed at `heard` for the last time.
    fn story(&self, heard: StoreTime) -> (StoreTime, Option<Taken>) {
        // What was lost long before the node fell silent is another story.
        let of_this = || self.jobs.values().filter(|handed| handed.ended + BEAT_EVERY >= heard);
        let at = of_this().map(|handed| handed.ended).min().unwrap_or(heard);
        let by: BTreeSet<&NodeName> = of_this().map(|handed| &handed.by).collect();
        let within = |handed: &Handed| {
            let took = handed.since.since(handed.ended);
            let silence = handed.since.since(heard);
            // No node reported the end: the next holder closed the run in the step that gave it the lease.
            let unreported = took.is_zero() && silence > BEAT_EVERY * 2;
            if unreported { silence } else { took.max(Duration::from_millis(1)) }
        };
        let taken = of_this().map(within).max().map(|within| Taken {
            by: by.into_iter().cloned().collect(),
            jobs: of_this().count(),
            within,
        });
        (at, taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(ended: i64, by: &str, since: i64) -> Handed {
        let by = NodeName::new(by).expect("a valid name");
        Handed { ended: StoreTime(ended), by, since: StoreTime(since) }
    }

    #[test]
    fn the_longest_of_all_take_overs_is_told_and_an_old_loss_is_not() {
        let mut loss = Loss::default();
        let job = |name: &str| JobName::new(name).expect("a valid name");
        assert_eq!(loss.story(StoreTime(1_000)), (StoreTime(1_000), None));
        loss.jobs.insert(job("old"), handed(-500, "node-c", -498));
        loss.jobs.insert(job("one"), handed(1_400, "node-a", 1_402));
        loss.jobs.insert(job("two"), handed(1_401, "node-a", 1_405));
        let (at, taken) = loss.story(StoreTime(1_000));
        let taken = taken.expect("jobs were taken over");
        assert_eq!((at, taken.jobs, taken.by.len()), (StoreTime(1_400), 2, 1));
        assert_eq!(taken.within, Duration::from_millis(4));
        // Its guard died too: the lease had to run out.
        loss.jobs.insert(job("three"), handed(6_000, "node-b", 6_000));
        let taken = loss.story(StoreTime(1_000)).1.expect("jobs were taken over");
        assert_eq!((taken.jobs, taken.within), (3, Duration::from_secs(5)));
    }
}
