//! A process that is stopped in every state of a call: after each text that it says to its server, and in the middle of each.

use std::time::Duration;

use soloist::clock;
use soloist::domain::dispatch::Rules;
use soloist::domain::lease::Token;
use soloist::domain::name::{
    JobName, RequestId, RotationName, SourceName, TypeName, UserName, WorkerName,
};
use soloist::domain::rotation::{Rules as Turns, Skip, TypeRules};
use soloist::domain::time::Began;
use soloist::store::dispatch::{Dispatch as _, NewTask, Sources as _};
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::{Acquire, Leases as _, Renewal};
use soloist::store::rotation::{Rotations as _, TurnAsk};
use soloist::store::{Options, Store, StoreError};

use super::old::exchange;
use crate::postgres::{LONG, ask, granted, job, options};
use crate::support::machine::within;
use crate::support::relay::Relay;
use crate::support::wait::until_async;

/// A second at the server, and what the machine needs to do the rest.
const BOUND: Duration = Duration::from_millis(1_500);
/// As nodes have it at most: so long the server waits for the rest of a statement.
const TIMEOUT: Duration = Duration::from_secs(1);
/// No call says so much.
const MOST_TEXTS: usize = 40;

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Acquire,
    Renew,
    Switch,
    Define,
    Exchange,
    Turn,
}

impl Call {
    const ALL: [Self; 6] =
        [Self::Acquire, Self::Renew, Self::Switch, Self::Define, Self::Exchange, Self::Turn];

    /// As the process calls that is stopped. Each outcome but an error is right.
    async fn by_the_stopped(
        self,
        store: &Store,
        token: Token,
        nth: usize,
    ) -> Result<(), StoreError> {
        if self != Self::Renew {
            return self.by(store, STOPPED, nth, nth.is_multiple_of(2)).await;
        }
        let Acquire { job, owner, node, ttl, .. } = ask(HOLDER, LONG);
        let since = Began::at_boot(clock::boot());
        let renewal = Renewal { job, owner, node, token, ttl, since, run: None };
        store.renew(&[renewal]).await.map(drop)
    }

    /// As `who` calls; what a renewal locks, another one changes.
    async fn by(self, store: &Store, who: &str, nth: usize, on: bool) -> Result<(), StoreError> {
        match self {
            Self::Acquire => {
                // A free one each time: who finds it held writes nothing.
                let job = JobName::new(&format!("job-{nth}")).expect("a good name");
                store.acquire(&Acquire { job, ..ask(who, LONG) }).await.map(drop)
            }
            Self::Switch | Self::Renew => {
                let user = UserName::new(who).expect("a good name");
                store.participate(&job(), &user, on, None).await.map(drop)
            }
            Self::Define => store.put_source(&source(), &Rules::default()).await.map(drop),
            Self::Exchange => store.exchange(&exchange(&[])).await.map(drop),
            Self::Turn => store.take_turn(&turn()).await.map(drop),
        }
    }
}

const STOPPED: &str = "stopped";
const HOLDER: &str = "holder";

fn source() -> SourceName {
    SourceName::new("mail").expect("a good name")
}

fn turn() -> TurnAsk {
    TurnAsk {
        rotation: RotationName::new("round").expect("a good name"),
        kind: TypeName::new("order").expect("a good name"),
        worker: WorkerName::new("w").expect("a good label"),
        request: RequestId::new(&format!("{:032x}", rand::random::<u128>())).expect("a label"),
        wait: None,
    }
}

async fn furnish(store: &Store) -> Token {
    store.put_source(&source(), &Rules::default()).await.expect("a source");
    let one = |nth| NewTask {
        key: format!("task {nth}"),
        source: source(),
        payload: "{}".to_owned(),
        priority: 0,
        at: None,
        every: None,
    };
    store.put_tasks(&(0..900).map(one).collect::<Vec<_>>()).await.expect("tasks are put");
    let order = TypeRules { name: turn().kind, gap: Duration::ZERO, quota: None };
    // Turns run out, so that there is always something to write.
    let lease = Duration::from_millis(100);
    let rules = Turns { types: vec![order], min_gap: Duration::ZERO, lease, skip: Skip::Absent };
    let round = RotationName::new("round").expect("a good name");
    store.put_rotation(&round, &rules).await.expect("a rotation");
    granted(store, &ask(HOLDER, LONG)).await
}

/// Whatever a process says before it is stopped, another one is answered within a second. `database` makes a URL of its own for each call.
pub(crate) async fn nobody_waits_for_long(port: u16, database: impl Fn() -> String) {
    let calls = Call::ALL.map(|call| stopped_everywhere(call, port, database()));
    let states = futures_util::future::join_all(calls).await;
    eprintln!("stopped in {states:?} states of {:?}", Call::ALL);
    assert!(states.iter().all(|count| *count >= 2), "{states:?}");
}

/// In how many states.
async fn stopped_everywhere(call: Call, port: u16, url: String) -> usize {
    let other = soloist::stores::connect(&url, &options()).await.expect("it opens");
    let token = furnish(&other).await;
    for nth in 0..2 * MOST_TEXTS {
        let relay = Relay::before(port);
        let as_a_node = Options { timeout: TIMEOUT, ..options() };
        let stopped =
            soloist::stores::connect(&relay.url_of(&url), &as_a_node).await.expect("it opens");
        // What only the first call says is said before.
        call.by_the_stopped(&stopped, token, 1_001 + nth).await.expect("an answer");
        relay.stop_after(nth / 2, nth.is_multiple_of(2));
        let mut calling = Box::pin(call.by_the_stopped(&stopped, token, nth));
        let reached = until_async("it is stopped", async || relay.has_stopped().then_some(()));
        tokio::select! {
            biased;
            () = reached => {}
            done = &mut calling => {
                done.expect("an answer");
                return nth;
            }
        }
        // Twice: what the server does with the last text takes a moment.
        for on in [true, false] {
            let begun = clock::boot();
            call.by(&other, "other", nth, on).await.expect("an answer");
            let waited = clock::boot().since(begun);
            within(waited, BOUND, &format!("{call:?}, stopped in state {nth}: another one waited"));
        }
        drop(calling);
    }
    panic!("{call:?} says too much");
}
