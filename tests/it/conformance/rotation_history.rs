//! The law of laws: whatever happens, a store's rotation is where the rules of the domain say it is.

use soloist::domain::dispatch::Window;
use soloist::domain::rotation::{Choice, Reason, Ring, Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::store::rotation::{Kept, Pass, Rotations, Taken};

use super::Fresh;
use super::rotation::*;

/// A small generator of its own, so that a failure can be repeated from the seed it prints.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(sides)).expect("small")
    }

    fn rules(&mut self) -> Rules {
        let names = ["a", "b", "c", "d"];
        let first = self.roll(4) as usize;
        let types = (0..=self.roll(4) as usize).map(|nth| TypeRules {
            gap: MS * [0, 0, 3, 9][self.roll(4) as usize],
            quota: (self.roll(3) == 0)
                .then(|| Window { count: 1 + self.roll(3), span: MS * (1 + self.roll(15)) }),
            ..of(names[(first + nth) % 4])
        });
        Rules {
            types: types.take(4).collect(),
            min_gap: MS * [0, 0, 1, 4][self.roll(4) as usize],
            // Ends in the course of the test by itself, and is not so short as to make it a matter of luck.
            lease: MS * 400,
            skip: if self.roll(6) == 0 { Skip::Never } else { Skip::Absent },
        }
    }

    fn kind(&mut self, rules: &Rules) -> soloist::domain::name::TypeName {
        let count = u32::try_from(rules.types.len()).expect("few");
        rules.types[self.roll(count) as usize].name.clone()
    }
}

/// What the store must show.
struct Expected {
    rules: Rules,
    ring: Ring,
    held: Option<Turn>,
}

pub(super) async fn every_history_leads_where_the_rules_say(fresh: Fresh) {
    let seed = 0x0501_0158;
    println!("seed {seed}");
    let mut dice = Dice(seed);
    let rules = dice.rules();
    let store = ready(&fresh, &rules).await;
    let mut is = Expected { rules, ring: Ring::default(), held: None };
    let mut had = 0;
    for step in 0..400 {
        let before = view(&store).await;
        match dice.roll(12) {
            0..=4 => {
                let kind = dice.kind(&is.rules);
                let ask = request(kind.as_str());
                let taken = take(&store, &ask).await;
                let lost = before.ring.turn.as_ref().map(|turn| turn.until);
                match taken {
                    Taken::Granted(turn) => {
                        had += 1;
                        is.ring.expire(turn.since);
                        let choice = is.ring.choose(&is.rules, |of| *of == kind, turn.since);
                        assert_eq!(choice, Choice::Now(kind.clone()), "step {step}: {:?}", is.ring);
                        let rules = is.rules.clone();
                        is.ring.start(&rules, &kind, &ask.worker, &ask.request, turn.since);
                        assert_eq!(is.ring.turn.as_ref(), Some(&turn), "step {step}");
                        is.held = Some(turn);
                    }
                    Taken::Waiting { holder, earliest_at, ahead, reason } => {
                        let now = view(&store).await.now;
                        if holder.is_none() && lost.is_some_and(|until| until <= now) {
                            is.ring.expire(now);
                        }
                        assert_eq!((&holder, ahead), (&is.ring.turn, 0), "step {step}");
                        let of = is.rules.of(&kind).expect("known");
                        let soonest = is.ring.earliest(&is.rules, of, before.now);
                        match reason {
                            Reason::Gap | Reason::Quota | Reason::NotBefore => {
                                assert_eq!((earliest_at, reason), soonest, "step {step}");
                            }
                            Reason::Held => assert!(holder.is_some() && earliest_at >= soonest.0),
                            Reason::Absent => assert_eq!(is.rules.skip, Skip::Never),
                            other => panic!("step {step}: nobody else waits, but {other:?}"),
                        }
                    }
                    Taken::Over(token) => panic!("step {step}: {token} was a new request"),
                }
            }
            5..=7 => {
                let Some(turn) = is.held.take() else { continue };
                let outcome = [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed]
                    [dice.roll(3) as usize];
                let next = (dice.roll(3) == 0).then(|| dice.kind(&is.rules));
                let wait = MS * (1 + dice.roll(6));
                let not_before = (dice.roll(4) == 0).then(|| before.now + wait);
                let pass = Pass { outcome, next: next.clone(), not_before, ..done(&turn) };
                match say(&store, &pass).await {
                    Kept::Yes(_) => drop(is.ring.pass(next, not_before)),
                    Kept::Stale { .. } => {
                        let now = view(&store).await.now;
                        assert!(is.ring.expire(now).is_some(), "step {step}");
                    }
                }
            }
            8 => {
                let Some(turn) = is.held.clone() else { continue };
                let kept = store.extend_turn(&api(), turn.token, None).await.expect("answered");
                let now = view(&store).await.now;
                match kept {
                    Kept::Yes(longer) => {
                        assert!(longer.until > turn.until && longer.until <= now + turn.lease);
                        is.ring.turn = Some(longer.clone());
                        is.held = Some(longer);
                    }
                    Kept::Stale { .. } => assert!(is.ring.expire(now).is_some(), "step {step}"),
                }
            }
            9 => {
                let now = store.pump_turns(LIFE).await.expect("pumped").now;
                is.ring.expire(now);
            }
            10 if dice.roll(3) == 0 => {
                let rules = dice.rules();
                define(&store, &rules).await;
                is.ring.adapt(&is.rules, &rules);
                is.rules = rules;
            }
            _ => reach(&store, before.now + MS * (1 + dice.roll(4))).await,
        }
        let after = view(&store).await;
        if after.ring.turn.is_none() {
            is.ring.expire(after.now);
        }
        assert_eq!(after.ring, is.ring, "step {step}");
        assert_eq!(after.rules, is.rules, "step {step}");
    }
    assert!(had > 30, "only {had} turns");
}
