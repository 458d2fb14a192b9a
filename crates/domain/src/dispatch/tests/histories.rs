//! Random histories of days: whatever happens, counts add up and nothing is lost.

use super::shop::*;
use crate::dispatch::in_memory::Store;
use crate::dispatch::{
    Answer, ClaimAsk, Exchange, NewTask, Rules, Task, TaskOutcome, TaskState, Window,
};
use crate::name::Waiter;

/// The constants of Knuth's MMIX generator: random enough, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from((self.0 >> 33) % sides as u64).unwrap()
    }
}

#[test]
fn whatever_happens_no_task_is_lost_and_none_is_in_two_hands() {
    for seed in 0..150 {
        // Shown when the law fails.
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let mut now = START;
        let window = Some(Window { count: 2, span: HOUR });
        let limits = [
            Rules { lease: HOUR / 2, max_attempts: 3, ..free() },
            Rules { gap: HOUR / 4, cap: Some(2), lease: HOUR, ..free() },
            Rules { window, lease: 2 * HOUR, ..free() },
        ];
        let names = ["a", "b", "c"];
        let mut store = Store::default();
        for (name, rules) in names.iter().zip(&limits) {
            store.define(&source(name), rules, now);
        }
        let mut claims: Vec<(ClaimAsk, Vec<Task>)> = Vec::new();
        let mut created = 0;
        for step in 0..250 {
            now = now + HOUR / 6 * u32::try_from(dice.roll(4)).unwrap() + US * 7;
            let name = names[dice.roll(3)];
            match dice.roll(9) {
                0 | 1 => {
                    let every = (dice.roll(4) == 0).then_some(HOUR);
                    let at = (dice.roll(3) == 0).then_some(now + HOUR);
                    let key = dice.roll(40).to_string();
                    let new = store.put(&[NewTask { every, at, ..task(name, &key) }], now).unwrap();
                    created += usize::from(new[0]);
                }
                2..=4 => {
                    let sources = if dice.roll(2) == 0 { vec![] } else { vec![name] };
                    let mut ask = ask(&step.to_string(), 1 + dice.roll(4) as u32, &sources);
                    if dice.roll(2) == 0 {
                        ask.wait = Some((Waiter(format!("w{}", dice.roll(5))), HOUR));
                    }
                    if let Answer::Granted { tasks, .. } = store.claim(&ask, now) {
                        claims.push((ask, tasks));
                    }
                }
                5 | 6 if !claims.is_empty() => {
                    let (_, tasks) = claims.swap_remove(dice.roll(claims.len()));
                    let outcome =
                        [TaskOutcome::Done, TaskOutcome::Retry, TaskOutcome::Dead][dice.roll(3)];
                    let reports = tasks.iter().map(|task| report(task, outcome)).collect();
                    let ask = Exchange { reports, ..Exchange::default() };
                    store.exchange(&ask, now).unwrap();
                }
                7 if !claims.is_empty() => {
                    let (ask, _) = &claims[dice.roll(claims.len())];
                    if dice.roll(2) == 0 {
                        store.give_back(&ask.id(), None, false, now);
                    } else {
                        store.extend(&ask.id(), None, now).ok();
                    }
                }
                _ => {
                    store.pump(now);
                    assert!(store.next().is_none_or(|next| next > now), "nothing due is left");
                    let dead = store.tasks.values().find(|task| task.state == TaskState::Dead);
                    if let Some(id) = dead.map(|task| task.id.clone()) {
                        store.revive(&id, now).unwrap();
                    }
                }
            }
            store.is_sound(now).unwrap();
            assert_eq!(store.tasks.len(), created, "no task is lost");
            assert!(store.sources[&source("b")].in_flight <= 2, "the cap");
        }
    }
}
