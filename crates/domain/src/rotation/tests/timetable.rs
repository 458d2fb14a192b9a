//! Timetables: hours of gaps, quotas and leases, and days of holders who die, in microseconds of the test's time.
//!
//! A line is when (since the beginning), what, and after `|` what comes of it. `a1` is the worker of that name with
//! the type `a`; it waits at the node incarnation `n`, `a1@m` at `m`; `a1#2` is its second request. Of the answer
//! stand: the word, why it waits, when its type could start; then who is woken, and when the clock alone changes
//! something.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::dispatch::Window;
use crate::lease::Token;
use crate::rotation::in_memory::{Store, ask};
use crate::rotation::{Kept, Memory, Pass, Reason, Rules, Skip, Taken, TurnOutcome, TypeRules};
use crate::time::Stamp;

const BEGIN: Stamp = Stamp(1_700_000_000_000_000);
const UNITS: [(&str, i64); 5] =
    [("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// `1h30m`.
fn span(text: &str) -> Duration {
    let (mut sum, mut rest) = (0, text);
    while !rest.is_empty() {
        let at = rest.find(|c: char| !c.is_ascii_digit()).expect("a unit");
        let end = rest[at..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |n| at + n);
        let unit = UNITS.iter().find(|(unit, _)| *unit == &rest[at..end]).expect("a known unit");
        sum += rest[..at].parse::<i64>().expect("a number") * unit.1;
        rest = &rest[end..];
    }
    Duration::from_micros(u64::try_from(sum).expect("positive"))
}

fn clock(at: Stamp) -> String {
    let mut left = at.0 - BEGIN.0;
    let mut text = String::new();
    for (unit, length) in UNITS {
        if left >= length {
            text += &format!("{}{unit}", left / length);
            left %= length;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// `a gap=5h`, `b quota=2/24h`.
fn of(text: &str) -> TypeRules {
    let (name, limits) = text.split_once(' ').unwrap_or((text, ""));
    let mut rules =
        TypeRules { name: name.parse().expect("a name"), gap: Duration::ZERO, quota: None };
    for limit in limits.split_whitespace() {
        match limit.split_once('=').expect("a limit") {
            ("gap", gap) => rules.gap = span(gap),
            (_, quota) => {
                let (count, per) = quota.split_once('/').expect("a quota");
                let count = count.parse().expect("a count");
                rules.quota = Some(Window { count, span: span(per) });
            }
        }
    }
    rules
}

fn rules(types: &[&str], min_gap: &str, lease: &str) -> Rules {
    let types = types.iter().map(|text| of(text)).collect();
    Rules { types, min_gap: span(min_gap), lease: span(lease), skip: Skip::Absent }
}

struct Day {
    store: Store,
    turns: BTreeMap<String, Token>,
}

impl Day {
    fn new(rules: &Rules) -> Self {
        let memory = Memory { server: "first".to_owned(), forgot: None };
        Self { store: Store::new(rules, memory), turns: BTreeMap::new() }
    }

    fn play(&mut self, table: &str) {
        for line in table.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (what, expected) = line.split_once('|').expect("a line with an answer");
            let words: Vec<&str> = what.split_whitespace().collect();
            let now = BEGIN + span(words[0]);
            let said = self.act(&words[1..], now);
            assert_eq!(said, expected.trim(), "{line}\n{:#?}", self.store.rotation);
        }
    }

    fn act(&mut self, words: &[&str], now: Stamp) -> String {
        let (verb, name) = (words[0], words.get(1).copied().unwrap_or(""));
        let more: BTreeMap<&str, &str> =
            words.iter().skip(2).map(|word| word.split_once('=').expect("name=value")).collect();
        let (who, _) = name.split_once('#').unwrap_or((name, ""));
        let (worker, node) = who.split_once('@').unwrap_or((who, "n"));
        let waiter = format!("{node}/x/{worker}");
        let turn = self.turns.get(name).copied().unwrap_or_default();
        let mut said = match verb {
            "take" | "ask" => {
                let patience =
                    more.get("for").map_or(Duration::from_secs(900_000), |text| span(text));
                let wait = (verb == "take").then_some((waiter.as_str(), patience));
                let kind = more.get("as").copied().unwrap_or(&worker[..1]);
                match self.store.take(&ask(kind, worker, name, wait), now) {
                    Ok(Taken::Granted(turn)) => {
                        self.turns.insert(name.to_owned(), turn.token);
                        "granted".to_owned()
                    }
                    Ok(Taken::Over(_)) => "over".to_owned(),
                    Ok(Taken::Waiting { earliest_at, reason, ahead, .. }) => {
                        let word = format!("{reason:?}").to_lowercase();
                        let at = match reason {
                            Reason::Held | Reason::Order | Reason::Absent => String::new(),
                            _ => format!(" {}", clock(earliest_at)),
                        };
                        format!("{word}{at} behind {ahead}")
                    }
                    Err(error) => error.to_string(),
                }
            }
            "pass" => {
                let pass = Pass {
                    rotation: "supplier".parse().expect("a name"),
                    turn,
                    only: None,
                    outcome: TurnOutcome::Done,
                    next: more.get("next").map(|kind| kind.parse().expect("a name")),
                    not_before: more.get("after").map(|text| BEGIN + span(text)),
                };
                self.store.pass(&pass, now).map_or_else(|error| error.to_string(), kept)
            }
            "extend" => kept(self.store.extend(turn, None, now)),
            "back" => self.store.give_back(turn, now).to_string(),
            "leave" => {
                self.store.leave(&crate::name::Waiter(waiter), now);
                "left".to_owned()
            }
            "pump" => {
                self.store.pump(&format!("{name}/x"), now);
                let lost = self.store.lost.drain(..).map(|turn| format!(" lost {}", turn.request));
                "pumped".to_owned() + &lost.collect::<String>()
            }
            "types" => {
                let mut rules = self.store.rotation.rules.clone();
                rules.types = name
                    .split(',')
                    .map(|kind| {
                        let old = rules.types.iter().find(|one| one.name.as_str() == kind);
                        old.cloned().unwrap_or_else(|| of(kind))
                    })
                    .collect();
                self.store.define(&rules, now);
                "defined".to_owned()
            }
            "restart" => {
                self.store.memory.server = name.to_owned();
                "restarted".to_owned()
            }
            other => panic!("{other}?"),
        };
        for waiter in self.store.woken.drain(..) {
            said += " wakes ";
            said += waiter.0.rsplit('/').next().unwrap_or_default();
        }
        if let Some(due) = self.store.rotation.due {
            said += &format!(", due {}", clock(due));
        }
        said
    }
}

fn kept(kept: Kept) -> String {
    match kept {
        Kept::Yes(_) => "yes".to_owned(),
        Kept::Stale { past: None, .. } => "stale".to_owned(),
        Kept::Stale { past: Some(past), .. } => format!("stale, was {}", past.ending.as_str()),
    }
}

#[test]
fn hours_of_gaps_are_kept_to_the_microsecond() {
    Day::new(&rules(&["a gap=5h", "b", "c"], "1h", "30m")).play(
        "0s           take a1    | granted, due 30m
         1m           take b1    | held behind 0, due 30m
         2m           take c1    | held behind 1, due 30m
         20m          pass a1    | yes, due 1h
         59m59s       pump n     | pumped, due 1h
         1h           pump n     | pumped wakes b1, due 1h100ms
         1h50ms       take c1    | order behind 1, due 1h100ms
         1h50ms       take b1    | granted, due 1h30m50ms
         1h20m        pass b1    | yes, due 2h50ms
         1h30m        take a1#2  | gap 5h behind 1, due 2h50ms
         2h49ms       take c1    | gap 2h50ms behind 0, due 2h50ms
         2h50ms       take c1    | granted, due 2h30m50ms
         2h10m        pass c1    | yes, due 5h
         4h59m59s999ms999us take a1#2 | gap 5h behind 0, due 5h
         5h           take a1#2  | granted, due 5h30m",
    );
}

#[test]
fn a_quota_slides_over_the_day() {
    Day::new(&rules(&["a quota=2/24h"], "0s", "1h")).play(
        "0s       ask a1   | granted, due 1h
         10m      pass a1  | yes
         6h       ask a2   | granted, due 7h
         6h10m    pass a2  | yes
         7h       take a3  | quota 24h behind 0, due 24h
         23h      ask a4   | quota 24h behind 1, due 24h
         24h      pump n   | pumped wakes a3, due 24h100ms
         24h1ms   take a3  | granted, due 25h1ms
         24h2ms   pass a3  | yes
         24h3ms   ask a5   | quota 30h behind 0
         30h      ask a5   | granted, due 31h",
    );
}

#[test]
fn a_dead_holders_turn_ends_with_its_lease_and_is_reported_once() {
    Day::new(&rules(&["a", "b"], "0s", "2h")).play(
        "0s        take a1    | granted, due 2h
         1h        extend a1  | yes, due 3h
         1h30m     take b1    | held behind 0, due 3h
         2h59m     take a2    | held behind 1, due 3h
         3h        extend a1  | stale, was lost wakes b1, due 3h100ms
         3h1ms     take a1    | over, due 3h100ms
         3h2ms     pass a1    | stale, was lost, due 3h100ms
         3h3ms     pump n     | pumped lost a1, due 3h100ms
         3h4ms     take b1    | granted, due 5h4ms
         3h5ms     pump n     | pumped, due 5h4ms
         3h6ms     take b1    | granted, due 5h4ms
         3h7ms     back b1    | false, due 5h4ms
         3h8ms     pass b1    | yes wakes a2, due 3h108ms
         3h9ms     take b1    | over, due 3h108ms
         4h8m      take a2    | granted, due 6h8m
         6h9m      take a1    | granted, due 8h9m",
    );
}

#[test]
fn a_turn_that_nobody_received_goes_back_and_its_request_is_new() {
    Day::new(&rules(&["a", "b"], "0s", "1h")).play(
        "0s     take a1  | granted, due 1h
         1s     take b1  | held behind 0, due 1h
         2s     back a1  | true wakes b1, due 2s100ms
         2s1ms  back a1  | false, due 2s100ms
         2s2ms  take a1  | order behind 1, due 2s100ms
         2s3ms  take b1  | granted, due 1h2s3ms
         2s4ms  pass b1  | yes wakes a1, due 2s104ms
         2s5ms  take a1  | granted, due 1h2s5ms
         1h2s6ms back a1 | true",
    );
}

#[test]
fn a_node_that_lets_a_promise_lapse_is_passed_over_until_it_is_heard_of() {
    Day::new(&rules(&["a", "b"], "0s", "1h")).play(
        "0s       take a0     | granted, due 1h
         1s       take b1@m   | held behind 0, due 1h
         2s       take b2@m   | held behind 1, due 1h
         3s       take b3     | held behind 2, due 1h
         4s       take a4@m   | held behind 1, due 1h
         5s       pass a0     | yes wakes b1, due 5s100ms
         5s99ms   take b3     | order behind 3, due 5s100ms
         5s100ms  pump n      | pumped wakes b3, due 5s200ms
         5s101ms  take b3     | granted, due 1h5s101ms
         6s       pass b3     | yes
         7s       pump n      | pumped
         8s       take b5     | granted, due 1h8s
         9s       pass b5     | yes
         40s200ms take b7     | order behind 2 wakes a4, due 40s300ms
         40s250ms take a4@m   | granted, due 1h40s250ms
         40s300ms pass a4@m   | yes wakes b2, due 40s400ms
         40s400ms pump m      | pumped wakes b7, due 40s500ms
         41s      take b7     | granted, due 1h41s",
    );
}

#[test]
fn whoever_comes_late_for_its_own_promise_has_it_and_is_not_silent() {
    Day::new(&rules(&["a"], "0s", "1h")).play(
        "0s     take a0      | granted, due 1h
         1s     take a1@m    | held behind 0, due 1h
         2s     take a2@m    | held behind 1, due 1h
         3s     pass a0      | yes wakes a1, due 3s100ms
         9s     take a1@m    | granted, due 1h9s
         10s    pass a1@m    | yes wakes a2, due 10s100ms
         11s    leave a2@m   | left
         12s    take a3@m for=1s | granted, due 1h12s",
    );
}

#[test]
fn where_two_leave_at_once_the_third_is_promised_the_turn() {
    Day::new(&rules(&["a", "b"], "0s", "1h")).play(
        "0s    take b2@m#1  | granted, due 1h
         1s    take b1@m    | held behind 0, due 1h
         2s    take b2@m    | held behind 1, due 1h
         3s    take b3@m    | held behind 2, due 1h
         4s    pass b2@m#1  | yes wakes b1, due 4s100ms
         5s    take b2@m#1  | over wakes b3, due 5s100ms",
    );
}

#[test]
fn who_waits_no_more_is_not_promised_anything() {
    Day::new(&rules(&["a"], "0s", "1h")).play(
        "0s     take a0          | granted, due 1h
         1s     take a1 for=20ms | held behind 0, due 1h
         2s     take a2          | held behind 1, due 1h
         3s     take a3          | held behind 2, due 1h
         4s     leave a2         | left, due 1h
         5s     pass a0          | yes wakes a3, due 5s100ms
         5s1ms  leave a3         | left
         5s2ms  take a1          | granted, due 1h5s2ms",
    );
}

#[test]
fn the_word_of_whoever_passed_counts_once() {
    Day::new(&rules(&["a", "b", "c"], "0s", "1h")).play(
        "0s      take a0                  | granted, due 1h
         1s      take b1                  | held behind 0, due 1h
         2s      take c1                  | held behind 1, due 1h
         3s      pass a0 next=d           | no type d, due 1h
         10s     pass a0 next=c after=2h  | yes, due 2h
         1h      take c1                  | notbefore 2h behind 0, due 2h
         2h      pump n                   | pumped wakes c1, due 2h100ms
         2h1ms   take c1                  | granted, due 3h1ms
         2h2ms   pass c1                  | yes wakes b1, due 2h102ms",
    );
}

#[test]
fn new_rules_wake_who_waits_for_what_is_gone_and_end_a_promise() {
    Day::new(&rules(&["a", "b", "c"], "0s", "1h")).play(
        "0s      take a0    | granted, due 1h
         1s      take b1    | held behind 0, due 1h
         2s      take b2    | held behind 1, due 1h
         3s      take c1    | held behind 1, due 1h
         4s      pass a0    | yes wakes b1, due 4s100ms
         4s10ms  types a,c  | defined wakes b1 wakes b2 wakes c1, due 4s110ms
         4s11ms  take b1    | no type b, due 4s110ms
         4s20ms  take c1    | granted, due 1h4s20ms
         2h      types a,c  | defined
         2h1s    pump n     | pumped lost c1",
    );
}

#[test]
fn in_doubt_nobody_begins_for_the_longest_that_a_turn_may_last() {
    let mut day = Day::new(&rules(&["a", "b"], "0s", "1h"));
    day.play(
        "0s      take a0         | granted, due 1h
         10m     types a,b       | defined, due 1h
         20m     take b1         | held behind 0, due 1h
         30m     pass a0         | yes wakes b1, due 30m100ms
         30m50ms restart second  | restarted, due 30m100ms
         30m60ms take b1         | recovery 1h30m60ms behind 0, due 1h30m60ms
         1h      ask a1          | recovery 1h30m60ms behind 1, due 1h30m60ms
         1h30m60ms pump n        | pumped wakes b1, due 1h30m160ms
         1h30m70ms take b1       | granted, due 2h30m70ms",
    );
    // What was forgotten at an instant that another found out counts from then; and for who is new, too.
    day.store.memory.forgot = Some(BEGIN + span("2h"));
    day.play(
        "2h10m   extend b1  | yes, due 3h10m
         2h11m   pass b1    | yes
         2h12m   take a1    | recovery 3h behind 0, due 3h
         3h      take a1    | granted, due 4h",
    );
    day.store = Store::new(&rules(&["a"], "0s", "2h"), day.store.memory.clone());
    day.play("3h30m ask a9 | recovery 4h behind 0");
}

#[test]
fn nobody_is_passed_over_where_none_is_skipped() {
    let strict = Rules { skip: Skip::Never, ..rules(&["a", "b"], "0s", "1h") };
    Day::new(&strict).play(
        "0s     take b1    | absent behind 0
         1s     take a1    | granted, due 1h1s
         2s     pass a1    | yes wakes b1, due 2s100ms
         3s     pump m     | pumped
         4s     take a2    | absent behind 0
         5s     ask b2     | granted, due 1h5s",
    );
}

#[test]
fn a_clock_that_was_set_back_holds_up_nobody_without_gaps() {
    Day::new(&rules(&["a", "b gap=1h"], "0s", "1m")).play(
        "9h     ask a1   | granted, due 9h1m
         9h     pass a1  | yes
         1h     ask a2   | granted, due 1h1m
         1h     pass a2  | yes
         9h     ask b1   | granted, due 9h1m
         9h     pass b1  | yes
         1h     ask b2   | gap 10h behind 0",
    );
}
