//! Two stores, one meaning: random histories of rotations end the same on Redis and on SQLite.

use std::fmt::Write as _;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use soloist::clock::boot;
use soloist::domain::lease::Token;
use soloist::domain::name::RotationName;
use soloist::domain::rotation::{Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::store::dispatch::Waiter;
use soloist::store::rotation::{Kept, PROMISE, Pass, PastTurn, Rotations, Taken, TurnAsk};
use soloist::store::{Options, Store, StoreError};

use super::{RedisServer, connect};

const HISTORIES: u64 = 40;
const STEPS: usize = 60;
const KINDS: [&str; 4] = ["apple", "berry", "cherry", "date"];

/// One thing that happens; turns are named by when they were granted.
#[derive(Debug, Clone)]
enum Act {
    Take { kind: usize, worker: usize, request: usize, waits: bool },
    Pass { turn: usize, only: bool, outcome: TurnOutcome, next: Option<usize> },
    Extend { turn: usize },
    GiveBack { turn: usize },
    Leave { worker: usize, kind: usize },
    Put { types: Vec<usize>, skip: Skip },
}

/// A store, and the tokens it gave in order.
struct Side {
    store: Store,
    tokens: Vec<Token>,
}

fn some_rotation() -> RotationName {
    "supplier".parse().expect("a name")
}

fn rules(types: &[usize], skip: Skip) -> Rules {
    let kind = |&nth: &usize| TypeRules {
        name: KINDS[nth].parse().expect("a name"),
        gap: Duration::ZERO,
        quota: None,
    };
    let lease = Duration::from_secs(3_600);
    Rules { types: types.iter().map(kind).collect(), min_gap: Duration::ZERO, lease, skip }
}

/// A request waits under a name of its own.
fn waiter(worker: usize, kind: usize) -> Waiter {
    Waiter(format!("node-{}/life/{worker}{kind}", worker % 2))
}

fn random(random: &mut StdRng) -> Act {
    let kind = random.random_range(0..KINDS.len());
    let turn = random.random_range(0..4);
    match random.random_range(0..20) {
        0..=8 => {
            let worker = random.random_range(0..6);
            // Most ask for the same thing again and again, as waiters do.
            let (kind, request) =
                if random.random_bool(0.8) { (worker % 4, worker) } else { (kind, turn + 10) };
            Act::Take { kind, worker, request, waits: random.random_bool(0.8) }
        }
        9..=14 => Act::Pass {
            turn: if random.random_bool(0.7) { 0 } else { turn },
            only: random.random_bool(0.1),
            outcome: [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed][turn % 3],
            next: random.random_bool(0.3).then_some(kind),
        },
        15 => Act::Extend { turn },
        16 => Act::GiveBack { turn: 0 },
        17 | 18 => {
            let worker = random.random_range(0..6);
            Act::Leave { worker, kind: worker % 4 }
        }
        _ => {
            let first = random.random_range(0..2);
            let types = (first..=first + random.random_range(0..3)).collect();
            let skip = if random.random_bool(0.3) { Skip::Never } else { Skip::Absent };
            Act::Put { types, skip }
        }
    }
}

impl Side {
    fn name(&self, token: Token) -> String {
        let nth = self.tokens.iter().position(|one| *one == token);
        nth.map_or("?".to_owned(), |nth| format!("#{nth}"))
    }

    /// Counted from the newest.
    fn token(&self, back: usize) -> Token {
        let at = self.tokens.len().checked_sub(back + 1);
        at.map_or(Token(7), |at| self.tokens[at])
    }

    fn turn(&self, turn: &Turn) -> String {
        let Turn { kind, worker, request, .. } = turn;
        format!("{} {kind} {worker} {request}", self.name(turn.token))
    }

    fn past(&self, past: &PastTurn) -> String {
        let PastTurn { kind, worker, ending, .. } = past;
        format!("{} {kind} {worker} {ending:?}", self.name(past.token))
    }

    fn kept(&self, kept: Result<Kept, StoreError>) -> String {
        match kept {
            Ok(Kept::Yes(turn)) => format!("yes {}", self.turn(&turn)),
            Ok(Kept::Stale { past, holder }) => {
                let past = past.map(|past| self.past(&past));
                format!("stale {past:?} {:?}", holder.map(|turn| self.turn(&turn)))
            }
            Err(error) => error.to_string(),
        }
    }

    /// Does it, and tells what came of it in words that both stores share.
    async fn act(&mut self, act: &Act) -> String {
        let rotation = some_rotation();
        match act {
            Act::Take { kind, worker, request, waits } => {
                let ask = TurnAsk {
                    rotation,
                    kind: KINDS[*kind].parse().expect("a name"),
                    worker: format!("w{worker}").parse().expect("a label"),
                    request: format!("r{request}").parse().expect("a label"),
                    wait: waits.then(|| (waiter(*worker, *kind), Duration::from_secs(30))),
                };
                match self.store.take_turn(&ask).await {
                    Ok(Taken::Granted(turn)) => {
                        if !self.tokens.contains(&turn.token) {
                            assert!(self.tokens.iter().all(|older| *older < turn.token));
                            self.tokens.push(turn.token);
                        }
                        format!("granted {}", self.turn(&turn))
                    }
                    Ok(Taken::Over(token)) => format!("over {}", self.name(token)),
                    Ok(Taken::Waiting { holder, ahead, reason, .. }) => {
                        let holder = holder.map(|turn| self.turn(&turn));
                        format!("waiting {holder:?} {ahead} {reason:?}")
                    }
                    Err(error) => error.to_string(),
                }
            }
            Act::Pass { turn, only, outcome, next } => {
                let pass = Pass {
                    rotation,
                    turn: self.token(*turn),
                    only: only.then(|| "w1".parse().expect("a label")),
                    outcome: *outcome,
                    next: next.map(|nth| KINDS[nth].parse().expect("a name")),
                    not_before: None,
                };
                let kept = self.store.pass_turn(&pass).await;
                self.kept(kept)
            }
            Act::Extend { turn } => {
                let kept = self.store.extend_turn(&rotation, self.token(*turn), None).await;
                self.kept(kept)
            }
            Act::GiveBack { turn } => {
                format!(
                    "{:?}",
                    self.store.give_back_unseen_turn(&rotation, self.token(*turn)).await.ok()
                )
            }
            Act::Leave { worker, kind } => {
                let waiter = waiter(*worker, *kind);
                format!("{:?}", self.store.leave_queue(&rotation, &waiter).await.ok())
            }
            Act::Put { types, skip } => {
                let view = self.store.put_rotation(&rotation, &rules(types, *skip)).await;
                format!("{}", view.expect("it is put").rules.types.len())
            }
        }
    }

    async fn picture(&self) -> String {
        let mut text = String::new();
        let view = self.store.rotations(Some(&some_rotation()), 50).await.expect("it exists");
        let view = view.into_iter().next().expect("it exists");
        let ring = &view.ring;
        let turn = ring.turn.as_ref().map(|turn| self.turn(turn));
        writeln!(text, "{:?}\n{:?}", view.rules, view.types).expect("memory");
        writeln!(text, "{turn:?} after {:?} next {:?}", ring.after, ring.next).expect("memory");
        for one in &view.waiters {
            writeln!(text, "{} {} {}", one.kind, one.worker, one.node).expect("memory");
        }
        for past in &view.past {
            writeln!(text, "{}", self.past(past)).expect("memory");
        }
        text
    }
}

#[tokio::test]
async fn redis_and_sqlite_agree_on_random_histories() {
    let server = RedisServer::start(&[]);
    let mut compared = 0;
    for seed in 0..HISTORIES {
        server.run::<()>(&["FLUSHALL"]);
        let directory = tempfile::tempdir().expect("a directory");
        let file = format!("sqlite:{}", directory.path().join("store.db").display());
        let file = soloist::stores::connect(&file, &Options::default()).await.expect("a store");
        let mut sides =
            [connect(&server).await, file].map(|store| Side { store, tokens: Vec::new() });
        compared += usize::from(agree(&mut sides, seed).await);
    }
    assert!(compared * 2 > HISTORIES as usize, "the machine is too slow to compare: {compared}");
}

/// Plays a history on both; `false` when a promise may have lapsed in one of them only.
async fn agree(sides: &mut [Side; 2], seed: u64) -> bool {
    let mut dice = StdRng::seed_from_u64(seed);
    let mut acts = vec![Act::Put { types: vec![0, 1, 2], skip: Skip::Absent }];
    acts.extend((0..STEPS).map(|_| random(&mut dice)));
    let begun = boot();
    for (nth, act) in acts.iter().enumerate() {
        let said = [sides[0].act(act).await, sides[1].act(act).await];
        let pictures = [sides[0].picture().await, sides[1].picture().await];
        if said[0] != said[1] || pictures[0] != pictures[1] {
            // After that a promise may have lapsed in one of them only.
            if boot().since(begun) >= PROMISE {
                return false;
            }
            panic!(
                "seed {seed}, step {nth}: {act:?}\nredis  {}\nsqlite {}\n{}\n{}\n{:#?}",
                said[0],
                said[1],
                pictures[0],
                pictures[1],
                &acts[..nth]
            );
        }
    }
    true
}

#[tokio::test]
async fn a_pass_says_in_its_answer_when_something_is_due_next() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    let name = some_rotation();
    let free = rules(&[0], Skip::Absent);
    let gap = Duration::from_millis(900);
    for (rules, waits, least, most) in [
        (&free, false, Duration::from_secs(1), Duration::from_secs(1)),
        // A promise is due when it lapses.
        (&free, true, PROMISE, PROMISE),
        (&Rules { min_gap: gap, ..free.clone() }, true, Duration::from_millis(1), gap),
    ] {
        store.remove_rotation(&name, true).await.ok();
        store.put_rotation(&name, rules).await.expect("it is put");
        let ask = |request: &str, wait: Option<Waiter>| TurnAsk {
            rotation: name.clone(),
            kind: KINDS[0].parse().expect("a name"),
            worker: request.parse().expect("a label"),
            request: request.parse().expect("a label"),
            wait: wait.map(|waiter| (waiter, Duration::from_secs(30))),
        };
        let request = format!("{waits}-{}", rules.min_gap.as_millis());
        let Ok(Taken::Granted(turn)) = store.take_turn(&ask(&request, None)).await else {
            panic!("the turn is free");
        };
        if waits {
            let waiting = store.take_turn(&ask("waits", Some(waiter(0, 0)))).await;
            assert!(matches!(waiting, Ok(Taken::Waiting { .. })), "{waiting:?}");
        }
        let pass = Pass {
            rotation: name.clone(),
            turn: turn.token,
            only: None,
            outcome: TurnOutcome::Done,
            next: None,
            not_before: None,
        };
        let passed = store.pass_on(&pass).await.expect("an answer");
        assert!(matches!(passed.kept, Kept::Yes(_)), "{passed:?}");
        let next_in = passed.next_in.expect("it is said");
        assert!((least..=most).contains(&next_in), "{next_in:?}");
        let again = store.pass_on(&pass).await.expect("an answer");
        assert!(matches!(again.kept, Kept::Stale { .. }), "{again:?}");
        assert_eq!(again.next_in, None, "nothing was changed");
    }
}
