//! Inside a node: the desk that HTTP and jobs ask, without either.

use std::sync::Arc;
use std::time::Duration;

use soloist::domain::name::{NodeName, RotationName};
use soloist::domain::rotation::{Rules, Skip, TurnOutcome, TypeRules};
use soloist::feed::Feed;
use soloist::rotation::TurnDesk;
use soloist::store::Options;
use soloist::store::rotation::{Pass, Rotations as _, Taken, TurnAsk};
use soloist::telemetry::Metrics;
use soloist::waiting::WaitingRoom;

use super::TYPES;
use super::crowd::{Crowd, Figure};
use super::support::redis::RedisServer;

pub(crate) async fn measure(waiters: usize, turns: usize) -> Figure {
    let server = Arc::new(RedisServer::start(&[]));
    let store =
        soloist::stores::connect(&server.url(), &Options::default()).await.expect("the store");
    let feed = Feed::start(store.clone(), Vec::new()).await;
    let room = WaitingRoom::open(store, &feed, &NodeName::new("bench").expect("a name"));
    let desk = TurnDesk::start(room.clone(), Arc::new(Metrics::new()));
    let rotation: RotationName = "supplier".parse().expect("a name");
    let kind = |name: &&str| TypeRules {
        name: name.parse().expect("a name"),
        gap: Duration::ZERO,
        quota: None,
    };
    let rules = Rules {
        types: TYPES.iter().map(kind).collect(),
        min_gap: Duration::ZERO,
        lease: Duration::from_secs(30),
        skip: Skip::Absent,
    };
    let store = desk.store().expect("a store that is safe");
    store.put_rotation(&rotation, &rules).await.expect("it is put");
    desk.look();
    let crowd = Arc::new(Crowd::new(turns));
    // One has the turn while the others wait.
    let workers: Vec<_> = (0..=waiters)
        .map(|nth| {
            let (desk, crowd, server) = (desk.clone(), Arc::clone(&crowd), Arc::clone(&server));
            tokio::spawn(work(desk, rotation.clone(), nth, crowd, server))
        })
        .collect();
    let figure = crowd.figure(&server).await;
    for worker in &workers {
        worker.abort();
    }
    for worker in workers {
        // Aborted, as said.
        drop(worker.await);
    }
    room.close();
    figure
}

async fn work(
    desk: TurnDesk,
    rotation: RotationName,
    nth: usize,
    crowd: Arc<Crowd>,
    server: Arc<RedisServer>,
) {
    let mut count = 0;
    while !crowd.is_over() {
        count += 1;
        let ask = TurnAsk {
            rotation: rotation.clone(),
            kind: TYPES[nth % TYPES.len()].parse().expect("a name"),
            worker: format!("w{nth}").parse().expect("a label"),
            request: format!("w{nth}-{count}").parse().expect("a label"),
            wait: None,
        };
        let answer = desk.take(ask, Duration::from_secs(30)).await.expect("an answer");
        let (Taken::Granted(turn), Some(hand)) = (answer.taken, answer.hand) else { continue };
        hand.delivered();
        crowd.granted(&server);
        crowd.passing();
        let (outcome, turn) = (TurnOutcome::Done, turn.token);
        let rotation = rotation.clone();
        let pass = Pass { rotation, turn, only: None, outcome, next: None, not_before: None };
        desk.pass(&pass).await.expect("an answer");
    }
}
