//! The turn of a run whose job is a member of a rotation: waited for under the job's lease, extended, and passed on.
//!
//! A job takes turns as the type of its own name and as one worker, `job/NAME`, because only the holder of its lease may. So a new holder
//! of that lease that finds an earlier turn of the job knows that its run is gone, and passes the turn at once. A turn is trusted as a
//! lease is: from before the request was sent, and for less than it lasts. An obstacle (no such rotation, a store that is away) is logged
//! once and checked again; this file never gives up.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::hold::{Hold, Renew, Renewed};
use soloist_config::JobConfig;
use soloist_desk::rotation::TurnDesk;
use soloist_desk::waiting::DeskError;
use soloist_domain::lease::{Timing, Token, UnsafeTiming};
use soloist_domain::name::{RequestId, RotationName, TypeName, WorkerName};
use soloist_domain::rotation::{Rules, Turn, TurnOutcome};
use soloist_domain::time::Boot;
use soloist_process::clock;
use soloist_store::StoreError;
use soloist_store::rotation::{Kept, Pass, RotationView, Rotations as _, Taken, TurnAsk};

/// How long one request for a turn waits.
const WAIT: Duration = Duration::from_secs(30);
/// An obstacle is checked again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A pass that is not answered by then is given up: the turn's lease ends it.
const PASS_WITHIN: Duration = Duration::from_secs(1);
/// With less trust left than this no script is started.
const LEAST_TRUST: Duration = Duration::from_millis(100);

/// A job as a member of its rotation; cheap to clone.
#[derive(Clone)]
pub(super) struct Member {
    desk: TurnDesk,
    rotation: RotationName,
    kind: TypeName,
    worker: WorkerName,
}

/// Why no turn can be granted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Obstacle {
    #[error(
        "rotation {0} is not defined: define it with `soloist rotation set {0}` or PUT /api/v1/rotations/{0}"
    )]
    Undefined(RotationName),
    #[error(
        "rotation {0} has no type {1}: add it with `soloist rotation set {0}` or PUT /api/v1/rotations/{0}"
    )]
    NoType(RotationName, TypeName),
    #[error(
        "a turn of rotation {0} is too short to kill a script in time ({1}): set its lease to 1s or more, with `soloist rotation set {0}` or PUT /api/v1/rotations/{0}"
    )]
    TooShort(RotationName, UnsafeTiming),
    #[error("{0}")]
    Desk(String),
}

impl Member {
    /// `None` for a job that takes no turns.
    #[must_use]
    pub(super) fn of(desk: &TurnDesk, job: &JobConfig) -> Option<Self> {
        Some(Self {
            desk: desk.clone(),
            rotation: job.rotation.clone()?,
            kind: TypeName::of(&job.name),
            worker: WorkerName::of(&job.name),
        })
    }

    /// Waits for the turn of a run, as long as it takes; the job holds its `lease` meanwhile. Dropped before its
    /// end, it leaves neither a waiter nor a turn behind.
    pub(super) async fn take(&self, lease: &Hold) -> OwnTurn {
        let mut said = None;
        loop {
            match self.ask(lease).await {
                Ok(Some(turn)) => return turn,
                Ok(None) => said = None,
                Err(obstacle) => {
                    if said.as_ref() != Some(&obstacle) {
                        tracing::warn!(worker = %self.worker, "waits for its turn: {obstacle}");
                        said = Some(obstacle);
                    }
                    sleep(LOOK_AGAIN).await;
                }
            }
        }
    }

    async fn ask(&self, lease: &Hold) -> Result<Option<OwnTurn>, Obstacle> {
        let view = self.view().await.map_err(|error| self.obstacle(error))?;
        self.check(&view.rules)?;
        if lease.trusted_until() <= clock::boot() {
            // Another node may hold the job now, and the turn may be its run's.
            sleep(LOOK_AGAIN).await;
            return Ok(None);
        }
        if let Some(left) = view.ring.turn.filter(|turn| turn.worker == self.worker) {
            tracing::info!(worker = %self.worker, turn = %left.token,
                "the turn of a run that is gone is passed on");
            self.pass(left.token, TurnOutcome::Failed).await;
        }
        let ask = TurnAsk {
            rotation: self.rotation.clone(),
            kind: self.kind.clone(),
            worker: self.worker.clone(),
            request: request(),
            wait: None,
        };
        let answer = self.desk.take(ask, WAIT).await.map_err(|error| self.obstacle(error))?;
        let (Taken::Granted(turn), Some(hand)) = (answer.taken, answer.hand) else {
            return Ok(None);
        };
        let timing = self.timing(turn.lease)?;
        let trusted_until = timing.trusted_until(answer.sent);
        if trusted_until.min(lease.trusted_until()).since(clock::boot()) < LEAST_TRUST {
            // The job's lease comes back or is lost by itself; the turn goes to a worker that can use it.
            drop(hand);
            sleep(LOOK_AGAIN).await;
            return Ok(None);
        }
        hand.delivered();
        Ok(Some(OwnTurn { member: self.clone(), turn, timing, sent: answer.sent }))
    }

    async fn view(&self) -> Result<RotationView, DeskError> {
        let views = self.desk.store()?.rotations(Some(&self.rotation), 0).await?;
        let missing = || StoreError::NotFound(format!("rotation {}", self.rotation));
        Ok(views.into_iter().next().ok_or_else(missing)?)
    }

    fn check(&self, rules: &Rules) -> Result<(), Obstacle> {
        if rules.of(&self.kind).is_none() {
            return Err(Obstacle::NoType(self.rotation.clone(), self.kind.clone()));
        }
        self.timing(rules.lease).map(drop)
    }

    fn timing(&self, lease: Duration) -> Result<Timing, Obstacle> {
        Timing::from_ttl(lease).map_err(|why| Obstacle::TooShort(self.rotation.clone(), why))
    }

    fn obstacle(&self, error: DeskError) -> Obstacle {
        match error {
            // The type, if it is that, is named at the next look.
            DeskError::Store(StoreError::NotFound(_)) => Obstacle::Undefined(self.rotation.clone()),
            error => Obstacle::Desk(error.to_string()),
        }
    }

    async fn pass(&self, turn: Token, outcome: TurnOutcome) {
        let pass = Pass {
            rotation: self.rotation.clone(),
            turn,
            only: Some(self.worker.clone()),
            outcome,
            next: None,
            not_before: None,
        };
        let why = match timeout(PASS_WITHIN, self.desk.pass(&pass)).await {
            Ok(Ok(Kept::Yes(_))) => return,
            Ok(Ok(Kept::Stale { .. })) => "it had ended before".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the store did not answer in time".to_owned(),
        };
        tracing::warn!(worker = %self.worker, %turn, "a turn was not passed on, it ends with its lease: {why}");
    }
}

/// A turn that a run has.
pub(super) struct OwnTurn {
    member: Member,
    turn: Turn,
    timing: Timing,
    /// When the request was sent that was answered with it.
    sent: Boot,
}

impl OwnTurn {
    /// What follows for a guard from its lease.
    pub(super) fn timing(&self) -> Timing {
        self.timing
    }

    /// Extends it from now on.
    pub(super) fn keep(self) -> KeptTurn {
        let Self { member, turn, timing, sent } = self;
        let extending = Extending { member: member.clone(), turn: turn.token, timing };
        let hold = Hold::renewed_by(extending, timing, sent);
        KeptTurn { member, token: turn.token, hold }
    }
}

/// The extension of a turn.
struct Extending {
    member: Member,
    turn: Token,
    timing: Timing,
}

impl Renew for Extending {
    async fn renew(&mut self) -> Renewed {
        let Self { member: Member { desk, rotation, worker, .. }, turn, timing } = self;
        match desk.extend(rotation, *turn, Some(worker)).await {
            Ok(Kept::Yes(_)) => Renewed::Kept(*timing),
            Ok(Kept::Stale { .. }) | Err(DeskError::Store(StoreError::NotFound(_))) => {
                tracing::error!(%worker, %turn, "the turn is lost: killing the script");
                Renewed::Lost
            }
            Err(error) => Renewed::Unknown(error.to_string()),
        }
    }

    fn complain(&self, why: &str) {
        let (worker, turn) = (&self.member.worker, self.turn);
        tracing::warn!(%worker, %turn, "a turn could not be extended; trying again: {why}");
    }
}

/// A turn that is extended until this is dropped or passed.
pub(super) struct KeptTurn {
    member: Member,
    token: Token,
    pub(super) hold: Hold,
}

impl KeptTurn {
    /// Ends it, unless it was lost.
    pub(super) async fn pass(self, outcome: TurnOutcome) {
        let Self { member, token, mut hold } = self;
        hold.end();
        if !hold.is_lost() {
            member.pass(token, outcome).await;
        }
    }
}

fn request() -> RequestId {
    let text = format!("{:032x}", rand::random::<u128>());
    #[expect(clippy::expect_used, reason = "32 hexadecimal digits are a label")]
    RequestId::new(&text).expect("a label")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::hold::Trusted;
    use super::*;
    use soloist_desk::waiting::WaitingRoom;
    use soloist_domain::name::NodeName;
    use soloist_domain::rotation::{Skip, TypeRules};
    use soloist_process::telemetry::Metrics;
    use soloist_store::feed::Feed;
    use soloist_store::{Options, Store};

    async fn member(store: &Store) -> Member {
        let rotation: RotationName = "supplier".parse().expect("a name");
        let kind: TypeName = "stock".parse().expect("a name");
        let types = vec![TypeRules { name: kind.clone(), gap: Duration::ZERO, quota: None }];
        let lease = Duration::from_secs(30);
        let rules = Rules { types, min_gap: Duration::ZERO, lease, skip: Skip::Absent };
        store.put_rotation(&rotation, &rules).await.expect("defined");
        let feed = Feed::start(store.clone(), Vec::new()).await;
        let node = NodeName::new("node-a").expect("a name");
        let room = WaitingRoom::open(store.clone(), &feed, &node);
        let desk = TurnDesk::start(room, Arc::new(Metrics::default()));
        let worker = WorkerName::new("job/stock").expect("a name");
        Member { desk, rotation, kind, worker }
    }

    /// The token of the turn that the job's worker has.
    async fn taken(member: &Member) -> Option<Token> {
        member.view().await.expect("there").ring.turn.map(|turn| turn.token)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn only_who_may_still_trust_its_lease_passes_on_the_turn_of_an_earlier_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
        let options = Options { make: true, ..Options::default() };
        let store = soloist_stores::connect(&url, &options).await.expect("a store");
        let member = member(&store).await;
        let timing = Timing::from_ttl(Duration::from_secs(5)).expect("safe");
        let (_kept, lease) = Trusted::since(clock::boot(), timing);
        let turn = member.ask(&lease).await.expect("no obstacle").expect("a turn");
        let first = turn.turn.token;
        assert_eq!(taken(&member).await, Some(first));

        // Of a node that was cut off for longer than its lease; another node has the job and this turn.
        let (_late, lapsed) = Trusted::since(Boot(0), timing);
        assert!(member.ask(&lapsed).await.expect("no obstacle").is_none());
        assert_eq!(taken(&member).await, Some(first), "it was not passed on");

        let (_next, lease) = Trusted::since(clock::boot(), timing);
        let turn = member.ask(&lease).await.expect("no obstacle").expect("a turn");
        assert!(turn.turn.token > first, "the one before was passed on at once");
    }
}
