//! The leases of programs as this node saw them, for the case that the store forgets them: then their names are kept back.
//!
//! A store that forgot a lease cannot know who had it, and a program is not believed: its renewal is refused, and it works on until its own
//! clock ends that, or until it hears of the refusal. Meanwhile nobody else may have the name. So every node remembers each lease of a
//! program: what it granted and renewed itself, what it heard that others granted, and what was held when it began to listen. When the store
//! has forgotten something, the node holds each of these names itself, under an owner to which no secret leads
//! ([`Owner::kept_back`](soloist_domain::name::Owner::kept_back)). That is a lease like any other: all nodes see it, also new ones, and it
//! ends by itself. All other names wait only for the usual quarantine, which is longer than a node needs to notice.
//!
//! A name is kept back until the newest grant that was seen must be over. If this node could not reach the store for a while, and other nodes
//! could have granted the name meanwhile, it is kept back for `lease_ttl_max`, the longest lease that any program can have.
//!
//! On a Redis Cluster a node hears only of names that it follows; there it remembers what it granted or renewed itself, and what was held
//! when it subscribed.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{MissedTickBehavior, interval};

use super::{LeaseDesk, secret};
use soloist_domain::job::{JobRecord, LeaseRecord};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner};
use soloist_domain::time::{Began, Boot};
use soloist_process::clock;
use soloist_store::feed::{Change, HeardOfLease};
use soloist_store::jobs::Jobs as _;
use soloist_store::leases::{Leases as _, Renewal, Renewed};

/// How often a node compares what it remembers with the store. Every quarantine is longer.
const LOOK: Duration = Duration::from_millis(250);
/// Who saw the store so short a time ago has missed no grant that another node did not see.
const JUST_NOW: Duration = Duration::from_secs(2);
/// Names in one call.
const BATCH: usize = 200;
/// Leases that are remembered.
const MOST: usize = 100_000;

/// A lease of a program.
#[derive(Debug, Clone)]
struct Sighting {
    owner: Owner,
    holder: NodeName,
    token: Token,
    ttl: Duration,
    /// The version of the record that showed it; 0: this node granted or renewed it.
    version: u64,
    /// It lasts until then at least, unless it is given back.
    ends: Boot,
    /// The store forgot it.
    back: Option<Back>,
}

/// A name that is kept back.
#[derive(Debug, Clone, Copy)]
struct Back {
    until: Boot,
    /// The store knows.
    told: bool,
}

/// What a node remembers of leases of programs.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    by_name: HashMap<JobName, Sighting>,
}

impl Sightings {
    /// A lease that was granted, renewed or read just now. One under an older token is not the newest.
    pub(super) fn saw(&mut self, name: &JobName, lease: &LeaseRecord, version: u64, now: Boot) {
        if !lease.owner.is_program() || lease.owner.is_kept_back() {
            return;
        }
        let ends = now + lease.expires_in;
        if let Some(known) = self.by_name.get_mut(name) {
            if known.token > lease.token {
                return;
            }
            if known.token == lease.token && known.owner == lease.owner {
                (known.ends, known.ttl, known.back) = (known.ends.max(ends), lease.ttl, None);
                known.version = known.version.max(version);
                return;
            }
        }
        if self.by_name.len() >= MOST && !self.by_name.contains_key(name) {
            self.forget_the_oldest();
        }
        let LeaseRecord { owner, node, token, ttl, .. } = lease.clone();
        let seen = Sighting { owner, holder: node, token, ttl, version, ends, back: None };
        self.by_name.insert(name.clone(), seen);
    }

    fn forget_the_oldest(&mut self) {
        let oldest = self.by_name.iter().min_by_key(|(_, seen)| seen.ends);
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.by_name.remove(&name);
        }
    }

    /// Its holder gave it back at this node.
    pub(super) fn gave_back(&mut self, name: &JobName, token: Token) {
        if self.by_name.get(name).is_some_and(|seen| seen.token <= token) {
            self.by_name.remove(name);
        }
    }

    fn hear(&mut self, heard: HeardOfLease, now: Boot) {
        match heard {
            HeardOfLease::Held { name, version, lease } => self.saw(&name, &lease, version, now),
            HeardOfLease::GivenBack { name, version } => {
                let over = |seen: &Sighting| match seen.back {
                    None => seen.version < version,
                    // Its holder said that its work is over.
                    Some(back) => back.told,
                };
                if self.by_name.get(&name).is_some_and(over) {
                    self.by_name.remove(&name);
                }
            }
        }
    }

    /// How long `name` is kept back of which the store has not been told yet.
    pub(super) fn kept_back(&self, name: &JobName, now: Boot) -> Option<Duration> {
        let back = self.by_name.get(name)?.back.filter(|back| !back.told)?;
        Some(back.until.since(now)).filter(|left| !left.is_zero())
    }

    /// Whether `account` has `most` leases besides `name`.
    pub(super) fn has(&self, account: &str, most: usize, name: &JobName) -> bool {
        let own = |(of, seen): &(&JobName, &Sighting)| {
            *of != name && seen.back.is_none() && secret::is_of(&seen.owner, account)
        };
        self.by_name.len() >= most && self.by_name.iter().filter(own).count() >= most
    }

    /// Those that must be over, unless they were renewed elsewhere.
    fn due(&self, now: Boot) -> Vec<JobName> {
        let due = self.by_name.iter().filter(|(_, seen)| seen.back.is_none() && seen.ends <= now);
        due.take(BATCH).map(|(name, _)| name.clone()).collect()
    }

    /// What the store, which forgot nothing, says of one of those.
    fn found(&mut self, record: &JobRecord, now: Boot) {
        match &record.lease {
            Some(lease) if lease.owner.is_program() => {
                self.saw(&record.name, lease, record.version, now);
            }
            _ => drop(self.by_name.remove(&record.name)),
        }
    }

    /// The store may have forgotten all of them.
    fn forgotten(&mut self, loss: &Loss) {
        let Loss { now, away, alone, longest } = *loss;
        for seen in self.by_name.values_mut() {
            let until = match seen.back {
                Some(back) => back.until,
                None if alone => seen.ends,
                // It may have been renewed elsewhere at the last moment.
                None if away <= JUST_NOW || seen.ends > now => seen.ends.max(now + seen.ttl),
                None => now + longest.max(seen.ttl),
            };
            seen.back = Some(Back { until, told: false });
        }
        self.end_what_is_over(now);
    }

    fn end_what_is_over(&mut self, now: Boot) {
        self.by_name.retain(|_, seen| seen.back.is_none_or(|back| back.until > now));
    }

    /// What the store is to be told.
    fn owed(&self, now: Boot) -> Vec<Renewal> {
        let owed = self.by_name.iter().filter_map(|(name, seen)| {
            let back = seen.back.filter(|back| !back.told)?;
            Some(Renewal {
                job: name.clone(),
                owner: seen.owner.kept_back(),
                node: seen.holder.clone(),
                token: seen.token,
                ttl: back.until.since(now).max(Duration::from_millis(1)),
                since: Began::at_boot(now),
                run: None,
            })
        });
        owed.take(BATCH).collect()
    }

    /// What it answered. A lease that it has after all, or a newer one, is looked at again.
    fn answered(&mut self, told: &Renewal, answer: Renewed, now: Boot) {
        let Some(seen) = self.by_name.get_mut(&told.job) else { return };
        if seen.token != told.token {
            return;
        }
        match (answer, &mut seen.back) {
            (Renewed::Kept { .. }, Some(back)) => {
                back.told = true;
                tracing::warn!(lease = %told.job, holder = %told.node, left = ?told.ttl,
                    "the store forgot this lease of a program: its name is kept back until it must be over");
            }
            _ => (seen.back, seen.ends) = (None, now),
        }
    }
}

/// What is known when a store has forgotten.
#[derive(Debug, Clone, Copy)]
struct Loss {
    now: Boot,
    /// So long this node had not seen the store.
    away: Duration,
    /// No other node was there that could have granted or renewed anything.
    alone: bool,
    /// The longest lease that any program can have.
    longest: Duration,
}

/// What a node knew of the store when it looked last.
#[derive(Debug, Default)]
struct Looked {
    at: Boot,
    epoch: Option<String>,
    doubted: bool,
    alone: bool,
}

/// Remembers leases and keeps names back, until the room closes.
pub(super) async fn watch(desk: LeaseDesk) {
    let mut heard = desk.shared.feed.leases();
    let mut changes = desk.shared.feed.subscribe();
    let mut closing = desk.shared.room.closing();
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut looked = Looked::default();
    // Whether something may be held of which nothing was heard.
    let mut unread = true;
    let mut due = false;
    loop {
        tokio::select! {
            one = heard.recv() => match one {
                Ok(one) => desk.sightings().hear(one, clock::boot()),
                Err(RecvError::Lagged(_)) => unread = true,
                Err(RecvError::Closed) => return,
            },
            change = changes.recv() => match change {
                Ok(Change::Resynced) | Err(RecvError::Lagged(_)) => unread = true,
                Ok(_) => {}
                Err(RecvError::Closed) => return,
            },
            _ = ticks.tick() => due = true,
            _ = closing.wait_for(|closing| *closing) => return,
        }
        if !std::mem::take(&mut due) {
            continue;
        }
        if let Err(error) = looked.round(&desk, &mut unread).await {
            tracing::debug!(%error, "the leases of programs are not compared");
        }
    }
}

impl Looked {
    async fn round(
        &mut self,
        desk: &LeaseDesk,
        unread: &mut bool,
    ) -> Result<(), crate::waiting::DeskError> {
        let store = desk.store()?;
        let now = clock::boot();
        let due = desk.sightings().due(now);
        let snapshot = store.snapshot(&due).await?;
        let doubted = !snapshot.quarantine.is_zero();
        let replaced = self.epoch.as_ref().is_some_and(|known| *known != snapshot.epoch);
        if replaced || doubted && !self.doubted {
            let longest = desk.shared.config.get().lease_ttl_max;
            let loss = Loss { now, away: now.since(self.at), alone: self.alone, longest };
            desk.sightings().forgotten(&loss);
        } else if !doubted {
            snapshot.jobs.iter().for_each(|record| desk.sightings().found(record, now));
        }
        let alone = desk.is_alone();
        *self = Self { at: now, epoch: Some(snapshot.epoch), doubted, alone };
        desk.sightings().end_what_is_over(now);
        let owed = desk.sightings().owed(clock::boot());
        if !owed.is_empty() {
            let answers = store.renew(&owed).await?;
            for (told, answer) in owed.iter().zip(answers) {
                desk.sightings().answered(told, answer, clock::boot());
            }
        }
        if *unread {
            let now = clock::boot();
            let held = store.held().await?;
            *unread = false;
            held.iter().for_each(|held| desk.sightings().saw(&held.name, &held.lease, 0, now));
        }
        Ok(())
    }
}

impl LeaseDesk {
    /// Whether no other node lives, as far as is known.
    fn is_alone(&self) -> bool {
        let own = &self.shared.config.get().node;
        let nodes = self.shared.feed.nodes();
        !nodes.is_empty() && nodes.iter().all(|node| node.beat.node == *own || !node.is_alive())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);
    const LONGEST: Duration = Duration::from_secs(600);

    fn name(text: &str) -> JobName {
        text.parse().expect("a name")
    }

    fn boot(seconds: u64) -> Boot {
        Boot(seconds * 1_000_000_000)
    }

    fn lease(owner: &str, token: u64) -> LeaseRecord {
        LeaseRecord {
            node: "shop-a".parse().expect("a name"),
            owner: Owner(format!("{}{owner}", Owner::OF_PROGRAMS)),
            token: Token(token),
            since: soloist_domain::time::StoreTime(0),
            expires_in: TTL,
            ttl: TTL,
        }
    }

    fn loss(now: u64, away: u64, alone: bool) -> Loss {
        Loss { now: boot(now), away: Duration::from_secs(away), alone, longest: LONGEST }
    }

    /// For how long the name of a lease granted at 100 s is kept back after `loss`.
    fn kept(loss: &Loss) -> Option<Duration> {
        let mut seen = Sightings::default();
        seen.saw(&name("stock"), &lease("a", 7), 0, boot(100));
        seen.forgotten(loss);
        seen.kept_back(&name("stock"), loss.now)
    }

    #[test]
    fn a_name_is_kept_back_until_the_newest_grant_that_was_seen_must_be_over() {
        let seconds = |count| Some(Duration::from_secs(count));
        assert_eq!(kept(&loss(104, 0, true)), seconds(6), "nobody else could have renewed it");
        assert_eq!(kept(&loss(104, 0, false)), seconds(10), "it may have been renewed elsewhere");
        assert_eq!(kept(&loss(108, 7, false)), seconds(10), "nobody else was granted it meanwhile");
        assert_eq!(kept(&loss(130, 29, true)), None, "it is over");
        assert_eq!(kept(&loss(130, 29, false)), seconds(600), "others may have been granted it");
        assert_eq!(kept(&loss(130, 1, false)), seconds(10));
    }

    #[test]
    fn names_of_which_nothing_was_seen_are_not_kept_back_and_no_name_is_after_its_release() {
        let mut seen = Sightings::default();
        seen.saw(&name("stock"), &lease("a", 7), 3, boot(100));
        seen.saw(&name("other"), &lease("b", 8), 3, boot(100));
        seen.gave_back(&name("other"), Token(8));
        let older = HeardOfLease::GivenBack { name: name("stock"), version: 2 };
        seen.hear(older, boot(101));
        seen.forgotten(&loss(102, 0, true));
        let left = |of: &str| seen.kept_back(&name(of), boot(102));
        assert!(left("stock").is_some());
        assert_eq!((left("other"), left("never-seen")), (None, None));
        let mut seen = Sightings::default();
        seen.saw(&name("stock"), &lease("a", 7), 3, boot(100));
        seen.hear(HeardOfLease::GivenBack { name: name("stock"), version: 4 }, boot(101));
        seen.forgotten(&loss(102, 0, true));
        assert_eq!(seen.kept_back(&name("stock"), boot(102)), None);
    }

    #[test]
    fn what_is_told_to_the_store_leads_from_no_secret_and_is_told_again_when_that_is_forgotten_too()
    {
        let mut seen = Sightings::default();
        let granted = lease("a", 7);
        seen.saw(&name("stock"), &granted, 0, boot(100));
        seen.forgotten(&loss(102, 0, true));
        let owed = seen.owed(boot(102));
        let [told] = &owed[..] else { panic!("{owed:?}") };
        assert!(told.owner.is_kept_back() && told.owner != granted.owner);
        assert_eq!((told.token, told.ttl), (Token(7), Duration::from_secs(8)));
        seen.answered(told, Renewed::Kept { margin: Duration::ZERO, forgot: true }, boot(102));
        assert!(seen.owed(boot(103)).is_empty());
        seen.forgotten(&loss(104, 0, true));
        assert_eq!(seen.owed(boot(104))[0].ttl, Duration::from_secs(6));
        seen.end_what_is_over(boot(110));
        assert!(seen.owed(boot(110)).is_empty());
    }

    #[test]
    fn a_lease_that_the_store_has_after_all_is_not_kept_back() {
        let mut seen = Sightings::default();
        seen.saw(&name("stock"), &lease("a", 7), 0, boot(100));
        seen.forgotten(&loss(102, 0, true));
        let owed = seen.owed(boot(102));
        seen.answered(&owed[0], Renewed::Lost, boot(102));
        assert_eq!(seen.kept_back(&name("stock"), boot(102)), None);
        assert_eq!(seen.due(boot(102)), [name("stock")], "it is looked at again");
        let mut record = JobRecord::untouched(name("stock"));
        record.lease = Some(lease("a", 7));
        seen.found(&record, boot(103));
        assert!(seen.due(boot(112)).is_empty());
        record.lease = None;
        seen.found(&record, boot(113));
        assert!(seen.due(boot(999)).is_empty(), "it is over");
    }
}
