//! A request for a lease: one call to the store, or as many as it takes until the lease is granted or the time is over.
//!
//! A request that gets no lease now and may wait stands in the line, in the store: one entry, kept for a while when the connection is lost,
//! so that the same request finds its place again at any node. It sleeps until the [`usher`](super::usher) or the node that gave the
//! lease back calls it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::secret::{Secret, owner};
use super::usher::Seat;
use super::{LeaseDesk, Terms, end};
use crate::waiting::{Asking, DeskError, Errand, SHORTEST_WAIT, left};
use soloist_domain::handover::is_for_another;
use soloist_domain::job::{JobRecord, Move, NextWhat};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, Waiter};
use soloist_domain::tick::Granted;
use soloist_domain::time::{Began, StoreTime};
use soloist_process::clock;
use soloist_store::jobs::Jobs as _;
use soloist_store::journal::{Journal as _, Started};
use soloist_store::leases::{Acquire, Acquired, Condition, Leases as _};
use soloist_store::line::{Lines as _, Place};
use soloist_store::spent::{self, Once, Spent, SpentTicks as _, Standing};
use soloist_store::ticks::TickBook as _;
use soloist_store::{Result as Stored, Store};

/// A place is kept for so long after its program last asked.
pub(super) const PLACE_KEPT: Duration = Duration::from_secs(10);
/// A request that comes with many others is let in after so long at the latest.
const LET_IN_AFTER: Duration = Duration::from_secs(3);
/// A waiter asks again by itself this often, in case no call reached it.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// When asking again may help, if only people can change what is in the way.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How many of a line are looked at by who arrives.
const AHEAD: usize = 4;

/// A lease, until it is delivered.
pub(super) type Hand = crate::waiting::Hand<Wish>;

/// What a program asks for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Which lease.
    pub terms: Terms,
    /// The program's name.
    pub holder: NodeName,
    /// Made of the credential, the name and the request: 32 hexadecimal digits. The same one has the same lease.
    pub seal: String,
    /// The lease is for one run of this tick. Only of a name of its own.
    pub once: Option<Once>,
}

impl Ask {
    /// As whom the store knows who is granted this.
    fn owner(&self) -> Owner {
        owner(self.terms.timing.ttl, self.terms.kind(), &self.seal)
    }
}

/// A request for a lease.
#[derive(Clone)]
pub struct Wish {
    desk: LeaseDesk,
    ask: Arc<Ask>,
}

/// One call to the store.
#[derive(Clone)]
pub struct Step {
    desk: LeaseDesk,
    ask: Arc<Ask>,
    /// It was called from the line: no other waiter is before it.
    called: bool,
    /// Where it waits from now on if the lease is not granted, and for how long.
    waits: Option<(Waiter, Duration)>,
    /// It has a place in the line already.
    placed: bool,
}

/// What the store answered.
pub enum Said {
    /// The lease is granted; of a job with a schedule for this tick.
    Granted(Token, Option<Box<Granted>>),
    /// It is not.
    Refused {
        /// Another holder has it, or it cannot be granted.
        why: Acquired,
        /// Another waiter comes first.
        behind: bool,
    },
    /// The tick that it is for is spent.
    Spent(Box<Spent>, Standing),
}

/// Why a lease was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// `not_wanted`, `busy`, `not_due`, `resting`, `backing_off`, `given_up`, `held`, `reserved`, `recovery`, `spent`.
    pub reason: &'static str,
    /// Who has it.
    pub holder: Option<NodeName>,
    /// When asking again may help.
    pub retry_in: Duration,
    /// By whom the tick was spent, and how it stands with that.
    pub spent: Option<(Box<Spent>, Standing)>,
}

/// What [`LeaseDesk::take`] answers.
pub enum Answer {
    /// The lease is the caller's.
    Granted {
        /// To renew and to release it.
        secret: Secret,
        /// Of a job: the run that began.
        run: Option<RunId>,
        /// Of a job with a schedule: the tick.
        tick: Option<Box<Granted>>,
        /// Delivers it, or gives it back.
        hand: Hand,
    },
    /// It cannot be granted now.
    Refused(Refusal),
}

impl Errand for Wish {
    type Name = (JobName, Owner);
    type Call = Step;
    type Answer = Said;
    type Grant = Token;

    fn name(&self) -> Self::Name {
        (self.ask.terms.name.clone(), self.ask.owner())
    }

    async fn call(store: Store, call: Step) -> Stored<Said> {
        call.carry_out(&store).await
    }

    fn granted(answer: &Said) -> Option<Token> {
        if let Said::Granted(token, _) = answer { Some(*token) } else { None }
    }

    async fn give_back(&self, _: &Store, grant: &Token) -> Stored<()> {
        let terms = &self.ask.terms;
        let secret = Secret::new(*grant, terms.timing.ttl, terms.kind(), &self.ask.seal);
        end::give_back(&self.desk, terms, &secret).await
    }

    async fn leave_queues(&self, store: &Store, waiter: &Waiter) -> Stored<()> {
        let own = self.ask.owner();
        store.step_aside(&self.ask.terms.name, &own, waiter, PLACE_KEPT).await
    }
}

impl Step {
    async fn carry_out(self, store: &Store) -> Stored<Said> {
        let (terms, own) = (&self.ask.terms, self.ask.owner());
        let (why, tick) = match self.at_once(store, &own).await? {
            Some(why) => (why, None),
            None => self.in_order(store, &own).await?,
        };
        let why = match why {
            spent::Answer::Lease(why) => why,
            spent::Answer::Spent { spent, standing, .. } => {
                if self.placed {
                    store.leave_line(&terms.name, &own, None).await?;
                }
                return Ok(Said::Spent(spent, standing));
            }
        };
        let behind = matches!(&why, Acquired::Busy { remaining, .. } if remaining.is_zero());
        if let Acquired::Granted { token, since } = why {
            self.desk.saw(&terms.name, token);
            let lease = terms.lease(&own, &self.ask.holder, token);
            self.desk.sightings().saw(&terms.name, &lease, 0, clock::boot());
            let leaving = async {
                if self.placed { store.leave_line(&terms.name, &own, None).await } else { Ok(()) }
            };
            let (began, left) = futures_util::join!(self.begin(store, token, since), leaving);
            // A place that is left late is passed over; a run that could not be shown is shown by the same request.
            drop(left);
            began?;
            return Ok(Said::Granted(token, tick));
        }
        if let Some((waiter, lasting)) = &self.waits
            && !self.placed
        {
            let kept = *lasting + PLACE_KEPT;
            store.join_line(&terms.name, &own, &self.ask.holder, waiter, kept).await?;
        }
        Ok(Said::Refused { why, behind })
    }

    /// One call, where probably nobody waits; `None`: somebody may. What else may bar a job is said behind its line.
    async fn at_once(&self, store: &Store, own: &Owner) -> Stored<Option<spent::Answer>> {
        let Terms { name, job, .. } = &self.ask.terms;
        if job.is_some() || self.called || self.desk.shared.posts.lock().contains_key(name) {
            return Ok(None);
        }
        match self.kept_back() {
            Some(kept_back) => Ok(Some(spent::Answer::Lease(kept_back))),
            None => match &self.ask.once {
                Some(once) => store.acquire_once_if_no_line(&self.asked(own), once).await,
                None => {
                    let answer = store.acquire_if_no_line(&self.asked(own)).await?;
                    Ok(answer.map(spent::Answer::Lease))
                }
            },
        }
    }

    /// Behind those who wait.
    async fn in_order(
        &self,
        store: &Store,
        own: &Owner,
    ) -> Stored<(spent::Answer, Option<Box<Granted>>)> {
        let answered = |why| Ok((spent::Answer::Lease(why), None));
        let name = &self.ask.terms.name;
        let before = if self.called { None } else { self.before(store, own).await? };
        if let Some(first) = before {
            if let Some(spent) = self.spent_before(store).await? {
                return Ok((spent, None));
            }
            let seen = store.snapshot(std::slice::from_ref(name)).await?;
            match seen.jobs.into_iter().next().and_then(|record| record.lease) {
                // Its first answer was lost.
                Some(lease) if lease.owner == *own => {}
                Some(lease) => {
                    let why = Acquired::Busy { node: lease.node, remaining: lease.expires_in };
                    return answered(why);
                }
                None => {
                    let why = Acquired::Busy { node: first.holder, remaining: Duration::ZERO };
                    return answered(why);
                }
            }
        }
        if let Some(kept_back) = self.kept_back() {
            return answered(kept_back);
        }
        if let Some(once) = &self.ask.once {
            return Ok((store.acquire_once(&self.asked(own), once).await?, None));
        }
        let Terms { name, job, .. } = &self.ask.terms;
        let Some(scheduled) = job.as_ref().and_then(|job| job.schedule.as_ref()) else {
            return answered(store.acquire(&self.asked(own)).await?);
        };
        let seen = self.desk.shared.feed.sight(name);
        let asked = store.acquire_tick(&self.asked(own), &scheduled.law, seen.as_ref()).await?;
        if let Some(granted) = &asked.1 {
            self.desk.shared.feed.granted(name, granted.sight.clone());
        }
        Ok((spent::Answer::Lease(asked.0), asked.1.map(Box::new)))
    }

    /// Whether somebody else spent its tick, said to who waits: nobody waits for what is done.
    async fn spent_before(&self, store: &Store) -> Stored<Option<spent::Answer>> {
        let Ask { terms, once, .. } = &*self.ask;
        let Some(once) = once else { return Ok(None) };
        let known = store.spent(&terms.name, &once.tick).await?;
        Ok(known.filter(|(_, standing)| once.is_refused(*standing)).map(|(spent, standing)| {
            spent::Answer::Spent { spent: Box::new(spent), standing, own: false }
        }))
    }

    /// Who waits and comes before this one.
    async fn before(&self, store: &Store, own: &Owner) -> Stored<Option<Place>> {
        let name = &self.ask.terms.name;
        let line = store.line(name, AHEAD).await?;
        // Else nobody would be granted it at once.
        for lapsed in line.lapsed().filter(|place| place.owner != *own) {
            store.leave_line(name, &lapsed.owner, Some(lapsed.until)).await?;
        }
        let moving = self.desk.moving(name, line.now.floor());
        let first = line.kept().find(|place| {
            place.owner == *own || place.waiter.is_some() && may_take(moving.as_ref(), place)
        });
        Ok(first.filter(|place| place.owner != *own).cloned())
    }

    fn kept_back(&self) -> Option<Acquired> {
        let wait = self.desk.sightings().kept_back(&self.ask.terms.name, clock::boot())?;
        Some(Acquired::Quarantined { wait })
    }

    fn asked(&self, own: &Owner) -> Acquire {
        let Ask { terms, holder, .. } = &*self.ask;
        Acquire {
            job: terms.name.clone(),
            owner: own.clone(),
            node: holder.clone(),
            ttl: terms.timing.ttl,
            condition: if terms.job.is_some() { Condition::Wanted } else { Condition::None },
            seen: self.desk.highest(&terms.name),
        }
    }

    /// A grant of a job's lease is a run.
    async fn begin(&self, store: &Store, token: Token, since: StoreTime) -> Stored<()> {
        let Ask { terms, holder, seal, .. } = &*self.ask;
        if terms.job.is_none() {
            return Ok(());
        }
        let secret = Secret::new(token, terms.timing.ttl, terms.kind(), seal);
        let started = Started {
            job: terms.name.clone(),
            token,
            run: secret.run(&terms.name),
            node: holder.clone(),
            pid: 0,
            began: Began { boot: clock::boot(), at: Some(since) },
        };
        store.record_started(&started).await.map(drop)
    }
}

/// A move may keep the job for others.
pub(super) fn may_take(moving: Option<&Move>, place: &Place) -> bool {
    !moving.is_some_and(|moving| is_for_another(moving, &place.holder))
}

impl LeaseDesk {
    /// The move of a job that lasts at `now`.
    pub(super) fn moving(&self, name: &JobName, now: StoreTime) -> Option<Move> {
        let seen = self.seen(name)?;
        seen.record.moving.clone().filter(|moving| moving.until > now)
    }

    /// Asks for a lease, waiting for it up to `wait`. Dropped before its end, it leaves no lease behind; its place in the line is kept for
    /// a while.
    ///
    /// # Errors
    /// [`DeskError`].
    pub async fn take(&self, ask: Ask, wait: Duration) -> Result<Answer, DeskError> {
        let mut closing = self.shared.room.closing();
        let deadline = clock::boot() + wait;
        let ask = Arc::new(ask);
        let name = &ask.terms.name;
        let wish = Wish { desk: self.clone(), ask: Arc::clone(&ask) };
        let mut asking = Asking::new(&self.shared.room, &self.shared.newest, wish);
        // With a store that hangs no request is let in any more; then the crowd is not the obstacle.
        let arrival = timeout(LET_IN_AFTER.min(wait), self.shared.arrivals.acquire());
        let mut arrival = arrival.await.ok();
        let mut seat: Option<Seat> = None;
        let mut called = false;
        // Nobody calls those whose tick is spent.
        let again = if ask.once.is_some() { LOOK_AGAIN } else { ASK_AGAIN };
        loop {
            self.store()?;
            let patience = left(deadline);
            let waits = patience >= SHORTEST_WAIT && !*closing.borrow();
            let step = Step {
                desk: self.clone(),
                ask: Arc::clone(&ask),
                called,
                waits: waits.then(|| (asking.waiter(), patience)),
                placed: seat.is_some(),
            };
            let said = asking.call(step).await?;
            drop(arrival.take());
            let (why, behind) = match said {
                Said::Granted(token, tick) => {
                    let secret =
                        Secret::new(token, ask.terms.timing.ttl, ask.terms.kind(), &ask.seal);
                    let run = ask.terms.job.as_ref().map(|_| secret.run(name));
                    return Ok(Answer::Granted { secret, run, tick, hand: asking.into_hand() });
                }
                Said::Refused { why, behind } => (why, behind),
                Said::Spent(spent, standing) => {
                    return Ok(Answer::Refused(Refusal {
                        reason: "spent",
                        holder: Some(spent.by.clone()),
                        retry_in: LOOK_AGAIN,
                        spent: Some((spent, standing)),
                    }));
                }
            };
            if !waits {
                return Ok(Answer::Refused(self.refusal(&ask, &why, behind).await?));
            }
            let seat = seat.get_or_insert_with(|| self.sit(name));
            seat.refused(&why);
            called = tokio::select! {
                () = asking.woken() => true,
                () = sleep(again.min(left(deadline))) => false,
                _ = closing.wait_for(|closing| *closing) => false,
            };
        }
    }

    /// Why not, in words.
    async fn refusal(&self, ask: &Ask, why: &Acquired, behind: bool) -> Result<Refusal, DeskError> {
        let (reason, holder) = match why {
            Acquired::Busy { node, .. } => ("busy", (!behind).then(|| node.clone())),
            Acquired::Reserved { .. } => ("reserved", None),
            Acquired::Quarantined { .. } => ("recovery", None),
            Acquired::NotWanted
            | Acquired::NotYet { .. }
            | Acquired::Granted { .. }
            | Acquired::Exhausted => (barred(&self.record(&ask.terms.name).await?.0), None),
        };
        let retry_in = retry_in(why).max(Duration::from_millis(1));
        Ok(Refusal { reason, holder, retry_in, spent: None })
    }
}

/// Why no program may have a job that is free.
fn barred(record: &JobRecord) -> &'static str {
    if record.hold.is_some() {
        "held"
    } else if !record.wanted() {
        "not_wanted"
    } else if record.clock.is_some() {
        "not_due"
    } else if record.given_up {
        "given_up"
    } else if record.next.is_some_and(|next| next.what == NextWhat::Retry) {
        "backing_off"
    } else if record.next.is_some() {
        "resting"
    } else {
        // It has become free since.
        "busy"
    }
}

/// When asking again may help.
fn retry_in(why: &Acquired) -> Duration {
    match why {
        Acquired::Busy { remaining: wait, .. }
        | Acquired::NotYet { wait }
        | Acquired::Reserved { wait }
        | Acquired::Quarantined { wait } => *wait,
        Acquired::NotWanted | Acquired::Granted { .. } | Acquired::Exhausted => LOOK_AGAIN,
    }
}
