//! Has the store write what time alone decides of ticks: a missed one, a lost holder, the end of a window.
//!
//! A store that forgot what this node saw gets that first. A request for a lease has it written, too; this is for jobs that nobody asks for:
//! held, without a living node, or over until tomorrow.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use soloist_config::{Current, JobConfig};
use soloist_domain::name::{JobName, NodeName};
use soloist_domain::tick::Schedule;
use soloist_domain::time::StoreTime;
use soloist_process::clock;
use soloist_store::Store;
use soloist_store::feed::{Feed, Seen};
use soloist_store::nodes::NodeRecord;
use soloist_store::ticks::TickBook as _;

/// How often it is looked what is due. An entry is written at most 5 s after it is certain.
const EVERY: Duration = Duration::from_secs(1);
/// Who is asked for a lease at that instant writes it anyway.
const LEAVE_IT: Duration = Duration::from_secs(1);
/// So many machines are named that cannot start a job.
const NAMED: usize = 5;

/// When a job is examined next.
struct Look {
    /// Of the record that it was made of.
    version: u64,
    text: String,
    at: Option<StoreTime>,
}

/// Looks until the runtime ends.
pub async fn settle(store: Store, feed: Feed, config: Current) {
    let mut looks: HashMap<JobName, Look> = HashMap::new();
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        if feed.trouble().is_some() {
            continue;
        }
        let config = config.get();
        looks.retain(|name, _| config.jobs.iter().any(|job| job.name == *name));
        for job in config.jobs.iter().filter(|job| job.schedule.is_some()) {
            let Some(seen) = feed.job(&job.name) else { continue };
            if let Err(error) = look(&store, &feed, &mut looks, job, &seen).await {
                tracing::debug!(job = %job.name, %error, "its ticks are not settled yet; it is tried again");
                break;
            }
        }
    }
}

async fn look(
    store: &Store,
    feed: &Feed,
    looks: &mut HashMap<JobName, Look>,
    job: &JobConfig,
    seen: &Seen,
) -> soloist_store::Result<()> {
    let Some(scheduled) = &job.schedule else { return Ok(()) };
    if let Some(sight) = feed.sight_before(&job.name) {
        // While the store is in doubt: nothing is granted before it knows what is known here.
        store.settle_ticks(&job.name, &scheduled.law, Some(&sight)).await?;
        feed.told_of_sight(&job.name, &sight);
    }
    if !seen.doubted_until.since(clock::boot()).is_zero() {
        // A lease that the store forgot may be living: nothing is lost yet. Only that ticks count from now on is written.
        if seen.record.clock.is_none() && !seen.record.participants.is_empty() {
            store.settle_ticks(&job.name, &scheduled.law, None).await?;
        }
        return Ok(());
    }
    let (record, law, now) = (&seen.record, &scheduled.law, seen.store_now(clock::boot()));
    let known = looks.get(&job.name);
    let known = known.filter(|look| look.version == record.version && look.text == law.text);
    let at = match (known, &record.clock) {
        (Some(look), _) => look.at,
        // From then on its ticks are counted, also if nobody wants it.
        (None, None) => Some(now - LEAVE_IT),
        // Nodes with other files do not change it to and fro.
        (None, Some(clock)) if !clock.knows(&law.text) => Some(now - LEAVE_IT),
        (None, Some(clock)) => {
            let lost = clock.lost_from(record).map(|_| now - LEAVE_IT);
            lost.or_else(|| clock.next_look(law, clock.accounted))
        }
    };
    let due = at.is_some_and(|at| at + LEAVE_IT <= now);
    let mut next = at;
    if due {
        let law = Schedule { lacks: lacks(&feed.nodes(), &job.name), ..law.clone() };
        store.settle_ticks(&job.name, &law, feed.sight(&job.name).as_ref()).await?;
        next = record.clock.as_ref().and_then(|clock| clock.next_look(&law, now));
    }
    let look = Look { version: record.version, text: law.text.clone(), at: next };
    looks.insert(job.name.clone(), look);
    Ok(())
}

/// What living machines lack that should start `job`; nothing when one of them can.
fn lacks(nodes: &[NodeRecord], job: &JobName) -> BTreeMap<NodeName, String> {
    let living = || nodes.iter().filter(|node| node.is_alive());
    if living().any(|node| node.beat.jobs.contains(job)) {
        return BTreeMap::new();
    }
    let lacks = living()
        .filter_map(|node| Some((node.beat.node.clone(), node.beat.unfit.get(job)?.clone())));
    lacks.take(NAMED).collect()
}
