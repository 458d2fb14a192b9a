//! What this node knows of the others, and what follows from the feed: facts for the step, and the nodes whose runs were lost.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::candidates::candidates;
use super::fitness::Unfit;
use super::local_job::LocalJob;
use soloist_config::Scheduled;
use soloist_domain::handover::{is_for_another, standing};
use soloist_domain::job::{JobRecord, Move, RunEnd};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::placement::courtesy;
use soloist_domain::supervise::Facts;
use soloist_domain::time::{Boot, StoreTime};
use soloist_process::clock;
use soloist_store::feed::{Feed, Seen};
use soloist_store::nodes::{ALIVE_FOR, NodeRecord};

/// The others, as this node sees them.
pub(super) struct ClusterView {
    pub(super) node: NodeName,
    pub(super) feed: Feed,
    draining: bool,
    /// This node is shutting down.
    pub(super) leaving: bool,
    /// What this machine cannot start now.
    pub(super) unfit: Arc<Unfit>,
    /// Nodes that lost a run, and when: dead, although their last report may still be fresh.
    lost: HashMap<NodeName, StoreTime>,
}

impl ClusterView {
    pub(super) fn new(node: NodeName, feed: Feed, unfit: Arc<Unfit>) -> Self {
        Self { node, feed, draining: false, leaving: false, unfit, lost: HashMap::new() }
    }

    /// Looks whether this node is to be emptied.
    pub(super) fn look_at_nodes(&mut self) {
        let me = &self.node;
        let draining = self.feed.nodes().iter().any(|n| &n.beat.node == me && n.draining);
        if std::mem::replace(&mut self.draining, draining) != draining {
            tracing::info!(draining, "this node's drain mark changed");
        }
    }

    /// Notes the node whose run was lost.
    pub(super) fn note_loss(&mut self, seen: &Seen) {
        if let Some(last) = seen.record.last_exit.as_ref().filter(|l| l.end == RunEnd::Lost) {
            let now = seen.store_now(clock::boot());
            self.lost.retain(|_, &mut at| now.since(at) < ALIVE_FOR);
            let at = self.lost.entry(last.node.clone()).or_default();
            *at = last.at.max(*at);
        }
    }

    /// What the feed says of a job, for this node.
    pub(super) fn facts(&self, job: &LocalJob, seen: &Seen) -> Facts {
        let record = &seen.record;
        let me = &self.node;
        let by_this_clock = |at: StoreTime| seen.confirmed + at.since(seen.at);
        let moving = self.standing(seen);
        let mine = record.lease.as_ref().is_some_and(|lease| lease.owner == job.owner);
        let wanted_here = moving.is_some_and(|m| m.to.as_ref() == Some(me));
        // What the machine lacks keeps a run from starting, and stops none.
        let fit = job.is_held() || !self.unfit.contains_key(&job.config.name);
        let stays = !self.draining && !self.leaving;
        Facts {
            wanted: if job.newest().schedule.is_some() { record.wanted() } else { record.is_on() }
                && !record.given_up
                && (record.lease.is_some() || has_ticks(record, job)),
            eligible: job.newest().runs_on(me) && !job.removed && stays && fit,
            reserved_until: moving
                .filter(|moving| is_for_another(moving, me))
                .map(|moving| by_this_clock(moving.until)),
            not_before: match &job.newest().schedule {
                Some(scheduled) => not_before(record, scheduled, seen).map(by_this_clock),
                None => record.next.map(|next| by_this_clock(next.at)),
            },
            held_until: record
                .lease
                .as_ref()
                .filter(|_| !mine)
                .map(|lease| seen.confirmed + lease.expires_in),
            courtesy: if wanted_here || !record.wanted() {
                Duration::ZERO
            } else {
                let now = seen.store_now(clock::boot());
                let nodes = self.feed.nodes();
                let loads = self.feed.loads();
                let candidates = candidates(record, now, &nodes, &loads, &self.lost);
                courtesy(&job.config.name, me, &candidates)
            },
        }
    }

    /// Whether a move is noted for the job that counts no more.
    pub(super) fn has_void_move(&self, job: &JobName) -> bool {
        let seen = self.feed.job(job).filter(|seen| seen.record.moving.is_some());
        seen.is_some_and(|seen| self.standing(&seen).is_none())
    }

    /// The move of a job that still counts. A node whose guards said that it is dead takes nothing, however fresh its report.
    fn standing<'a>(&self, seen: &'a Seen) -> Option<&'a Move> {
        let record = &seen.record;
        record.moving.as_ref()?;
        let now = seen.store_now(clock::boot());
        let nodes = self.feed.nodes();
        let lives = |node: &&NodeRecord| {
            let lost = self.lost.get(&node.beat.node);
            lost.is_none_or(|&at| now.since(at) >= ALIVE_FOR)
        };
        let takers: Vec<_> =
            nodes.iter().filter(lives).map(|node| node.taker(&record.name)).collect();
        standing(record, &takers, now)
    }

    /// When the lease of another node ended whose run was lost: released by its guard, or expired. Only for a loss that
    /// this node has been waiting for; a node that comes later, or wants the job only now, takes nothing over.
    pub(super) fn vacant_since(&self, job: &LocalJob) -> Option<Boot> {
        let seen = self.feed.job(&job.config.name)?;
        let (record, me) = (&seen.record, &self.node);
        let since = match (&record.run, &record.last_exit) {
            // No node has closed it yet: its lease ran out.
            (Some(run), _) => job.anothers_until.filter(|_| &run.node != me)?,
            (None, Some(last)) if last.end == RunEnd::Lost && &last.node != me => {
                seen.confirmed - seen.at.since(last.at)
            }
            _ => return None,
        };
        job.willing_since.filter(|willing| *willing <= since).map(|_| since)
    }
}

/// When a job with a schedule may be granted next, by the store's clock.
fn not_before(record: &JobRecord, scheduled: &Scheduled, seen: &Seen) -> Option<StoreTime> {
    // One that the store does not know yet is made known by the first request.
    record.clock.as_ref()?.next_grant(&scheduled.law, seen.at)
}

/// Whether a tick comes at all: of a job whose last one is over there is nothing to ask for.
fn has_ticks(record: &JobRecord, job: &LocalJob) -> bool {
    let Some(scheduled) = &job.newest().schedule else { return true };
    let Some(clock) = &record.clock else { return true };
    clock.next_grant(&scheduled.law, clock.accounted).is_some()
}
