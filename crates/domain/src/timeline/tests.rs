//! The laws of folding on random histories, and what gaps and take-overs say.

use std::sync::Arc;
use std::time::Duration;

use super::fold::{Mark, fold, thin};
use super::tell::Why;
use super::*;
use crate::job::Exit;
use crate::journal::RunEntry;
use crate::name::{JobName, RunId};
use crate::tick::{Fill, Params, Rules, Tick, TickName, Ticks};

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }
}

fn run(token: u64, node: &str, from: i64, to: i64, end: RunEnd) -> RunEntry {
    RunEntry {
        id: RunId(format!("r{token}")),
        job: JobName::new("outbound").expect("a valid name"),
        node: NodeName::new(node).expect("a valid name"),
        token: Token(token),
        started: StoreTime(from),
        ended: Some(StoreTime(to)),
        exit: Exit::default(),
        end: Some(end),
        processes_killed: 0,
        folded: 0,
    }
}

const ENDS: [RunEnd; 6] = [
    RunEnd::Exited,
    RunEnd::Exited,
    RunEnd::Crashed,
    RunEnd::Stopped,
    RunEnd::Lost,
    RunEnd::TimedOut,
];

fn history(dice: &mut Dice, runs: u64) -> Vec<RunEntry> {
    let (mut now, mut kind) = (1_000_000, (0, 0));
    let mut all = Vec::new();
    for token in 1..=runs {
        if dice.below(8) == 0 {
            kind = (dice.below(3), dice.below(ENDS.len() as u64));
        }
        let from = now + i64::try_from(dice.below(5_000)).expect("small");
        let longest = if dice.below(20) == 0 { 600_000 } else { 2_000 };
        let to = from + i64::try_from(dice.below(longest)).expect("small");
        let end = ENDS[usize::try_from(kind.1).expect("small")];
        all.push(run(token, ["node-a", "node-b", "node-c"][kind.0 as usize], from, to, end));
        now = to;
    }
    all
}

fn total(runs: &[RunEntry]) -> u64 {
    let lasted = |run: &RunEntry| run.ended.map(|to| to.since(run.started).as_millis());
    runs.iter().filter_map(lasted).map(|ms| u64::try_from(ms).expect("small")).sum()
}

fn check(spans: &[Span], runs: &[RunEntry], seed: u64) {
    let held: u64 = spans.iter().map(|span| span.held_ms).sum();
    assert_eq!(held, total(runs), "seed {seed}: time is lost or made");
    let count: u32 = spans.iter().map(|span| span.runs).sum();
    assert_eq!(count as usize, runs.len(), "seed {seed}");
    let failed: u32 = spans.iter().map(|span| span.failed).sum();
    let failures = runs.iter().filter(|run| run.end.is_some_and(RunEnd::is_failure)).count();
    assert_eq!(failed as usize, failures, "seed {seed}");
    for pair in spans.windows(2) {
        assert!(pair[0].to <= pair[1].from, "seed {seed}: {pair:?} overlap");
        assert!(pair[0].token < pair[1].first, "seed {seed}: {pair:?} are not in order");
    }
    assert!(spans.iter().all(|span| span.from <= span.to && span.first <= span.token));
}

#[test]
fn folding_keeps_order_time_and_counts_and_overlaps_nothing() {
    for seed in 1..40 {
        let mut dice = Dice(seed * 7_919);
        let runs = history(&mut dice, 2_000);
        let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
        fold(&mut spans, &mut mark, &runs);
        check(&spans, &runs, seed);
        assert!(spans.len() < runs.len(), "seed {seed}: nothing was folded");
        let kept = spans.len() / 4 * 3;
        thin(&mut spans, kept);
        assert!(spans.len() <= kept, "seed {seed}");
        check(&spans, &runs, seed);
    }
}

#[test]
fn folding_in_parts_is_folding_at_once() {
    for seed in 1..20 {
        let mut dice = Dice(seed * 104_729);
        let runs = history(&mut dice, 500);
        let (mut whole, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
        fold(&mut whole, &mut mark, &runs);
        let (mut parts, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
        let mut done = 0;
        while done < runs.len() {
            // What was folded already comes again and changes nothing.
            let again = done.saturating_sub(dice.below(9) as usize);
            done = (done + 1 + dice.below(40) as usize).min(runs.len());
            fold(&mut parts, &mut mark, &runs[again..done]);
        }
        assert_eq!(whole, parts, "seed {seed}");
    }
}

#[test]
fn a_job_that_runs_each_second_for_thirty_days_stays_bounded() {
    let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
    for hour in 0..30 * 24_i64 {
        let runs: Vec<_> = (0..3_600_i64)
            .map(|second| {
                let nth = hour * 3_600 + second;
                let token = u64::try_from(nth + 1).expect("positive");
                run(token, "node-a", nth * 1_000, nth * 1_000 + 300, RunEnd::Exited)
            })
            .collect();
        fold(&mut spans, &mut mark, &runs);
        thin(&mut spans, SPANS_KEPT);
    }
    assert!((700..=740).contains(&spans.len()), "{}", spans.len());
    let runs: u32 = spans.iter().map(|span| span.runs).sum();
    assert_eq!(runs, 30 * 24 * 3_600);
    assert_eq!(spans.iter().map(|span| span.held_ms).sum::<u64>(), u64::from(runs) * 300);
}

#[test]
fn a_job_that_crashes_every_second_time_stays_bounded_and_its_crashes_are_counted() {
    let runs: Vec<_> = (0..20_000_i64)
        .map(|nth| {
            let end = if nth % 2 == 0 { RunEnd::Exited } else { RunEnd::Crashed };
            let token = u64::try_from(nth + 1).expect("positive");
            run(token, "node-a", nth * 1_000, nth * 1_000 + 300, end)
        })
        .collect();
    let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
    for part in runs.chunks(100) {
        fold(&mut spans, &mut mark, part);
        thin(&mut spans, SPANS_KEPT);
        assert!(spans.len() <= SPANS_KEPT);
    }
    check(&spans, &runs, 0);
}

#[test]
fn the_entry_of_idle_runs_is_counted_once_while_it_grows() {
    let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
    for (token, folded) in [(3, 3), (9, 9), (9, 9), (10, 10)] {
        let to = i64::try_from(token).expect("small") * 1_000;
        let entry = RunEntry { folded, ..run(token, "node-a", 500, to, RunEnd::Exited) };
        fold(&mut spans, &mut mark, &[entry]);
    }
    assert_eq!(spans.len(), 1);
    assert_eq!((spans[0].runs, spans[0].held_ms), (10, 9_500));
    assert_eq!((spans[0].from, spans[0].to), (StoreTime(500), StoreTime(10_000)));
}

#[test]
fn a_loss_is_never_folded_away() {
    let runs: Vec<_> = (1..5_i64)
        .map(|nth| run(nth as u64, "node-a", nth * 1_000, nth * 1_000 + 500, RunEnd::Lost))
        .collect();
    let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
    fold(&mut spans, &mut mark, &runs);
    assert_eq!(spans.len(), 4);
}

#[test]
fn a_clock_that_was_set_back_makes_no_overlap() {
    let runs = [
        run(1, "node-a", 50_000, 60_000, RunEnd::Exited),
        run(2, "node-b", 10_000, 20_000, RunEnd::Exited),
        run(3, "node-b", 61_000, 62_000, RunEnd::Exited),
    ];
    let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
    fold(&mut spans, &mut mark, &runs);
    for pair in spans.windows(2) {
        assert!(pair[0].to <= pair[1].from, "{pair:?}");
    }
}

fn want(kind: WantKind, from: i64, to: Option<i64>) -> Wanted {
    let who = UserName::new("li").expect("a valid name");
    Wanted { kind, who, from: StoreTime(from), to: to.map(StoreTime) }
}

fn timeline(runs: &[RunEntry], wants: Vec<Wanted>) -> Timeline {
    let (mut spans, mut mark) = (Vec::new(), Mark::new(StoreTime(0)));
    fold(&mut spans, &mut mark, runs);
    Timeline { since: Some(StoreTime(0)), spans, wants, ..Timeline::default() }
}

#[test]
fn a_gap_has_the_reason_of_whatever_barred_the_job_then() {
    let runs = [
        run(1, "node-a", 1_000, 2_000, RunEnd::Crashed),
        run(2, "node-a", 5_000, 6_000, RunEnd::Stopped),
        run(3, "node-b", 20_000, 30_000, RunEnd::Exited),
    ];
    let wants = vec![
        want(WantKind::Participation, 500, Some(6_000)),
        want(WantKind::Participation, 12_000, None),
        want(WantKind::Hold, 14_000, Some(19_000)),
    ];
    let line = timeline(&runs, wants);
    let gaps = line.gaps(StoreTime(0), StoreTime(31_000));
    let told: Vec<_> = gaps.iter().map(|gap| (gap.from.0, gap.to.0, gap.why)).collect();
    assert_eq!(
        told,
        [
            (0, 500, Why::Off),
            (500, 1_000, Why::Waiting),
            (2_000, 5_000, Why::BackingOff),
            (6_000, 12_000, Why::Off),
            (12_000, 14_000, Why::TakingOver),
            (14_000, 19_000, Why::Held),
            (19_000, 20_000, Why::TakingOver),
            (30_000, 31_000, Why::Resting),
        ]
    );
    let unknown = Timeline { since: Some(StoreTime(400)), ..line };
    assert_eq!(unknown.gaps(StoreTime(0), StoreTime(600))[0].why, Why::Unknown);
}

/// A tick each ten seconds.
#[derive(Debug)]
struct Tens;

impl Ticks for Tens {
    fn after(&self, instant: StoreTime) -> Option<Tick> {
        let starts = StoreTime((instant.0.div_euclid(10_000) + 1) * 10_000);
        Some(Tick { name: TickName(starts.0.to_string()), due: starts, starts, note: None })
    }

    fn until(&self, instant: StoreTime) -> Option<Tick> {
        self.after(StoreTime(instant.0 - 10_000))
    }

    fn former(&self, _: &str) -> Option<Arc<dyn Ticks>> {
        None
    }
}

impl Fill for Tens {
    fn fill(&self, _: &Tick, given: &Params) -> Params {
        given.clone()
    }
}

#[test]
fn between_its_ticks_a_job_waits_for_nobody_whatever_became_of_the_last_one() {
    let runs = [
        run(1, "node-a", 10_004, 11_000, RunEnd::Crashed),
        run(2, "node-b", 13_000, 14_000, RunEnd::Crashed),
        run(3, "node-b", 20_001, 21_000, RunEnd::Lost),
        run(4, "node-a", 30_002, 31_000, RunEnd::Exited),
        run(5, "node-a", 47_000, 48_000, RunEnd::Stopped),
    ];
    let line = timeline(&runs, vec![want(WantKind::Participation, 5_000, None)]);
    let (ticks, params) = (Arc::new(Tens), Arc::new(Tens));
    let (rules, text) = (Rules::default(), "tens".to_owned());
    let schedule = Some(Schedule { ticks, params, rules, text, lacks: Default::default() });
    let mut line = Timeline { schedule, ..line };
    let told = |line: &Timeline| -> Vec<_> {
        let gaps = line.gaps(StoreTime(5_000), StoreTime(49_000));
        gaps.iter().map(|gap| (gap.from.0, gap.to.0, gap.why)).collect()
    };
    let expected = [
        (5_000, 10_004, Why::Scheduled),
        (11_000, 13_000, Why::BackingOff),
        (14_000, 20_001, Why::Scheduled),
        (21_000, 30_002, Why::Scheduled),
        (31_000, 40_000, Why::Scheduled),
        (40_000, 47_000, Why::Waiting),
        (48_000, 49_000, Why::Scheduled),
    ];
    assert_eq!(told(&line), expected);
    assert!(line.takeovers().is_empty(), "another tick is no take-over");
    line.again = true;
    assert_eq!(told(&line)[6].2, Why::TakingOver, "the same tick is run again");
}

#[test]
fn a_take_over_is_told_with_its_milliseconds_and_switching_on_again_is_none() {
    let runs = [
        run(1, "node-a", 1_000, 9_000, RunEnd::Lost),
        run(2, "node-b", 9_004, 20_000, RunEnd::Stopped),
        run(3, "node-a", 20_030, 30_000, RunEnd::Stopped),
        run(4, "node-b", 40_000, 41_000, RunEnd::Exited),
    ];
    let wants = vec![
        want(WantKind::Participation, 0, Some(30_000)),
        want(WantKind::Participation, 39_990, None),
    ];
    let line = timeline(&runs, wants);
    let told: Vec<_> =
        line.takeovers().iter().map(|one| (one.token.0, one.took.as_millis())).collect();
    assert_eq!(told, [(2, 4), (3, 30)]);
    let present = Some(Present {
        node: NodeName::new("node-a").expect("a valid name"),
        token: Token(9),
        from: StoreTime(9_012),
    });
    let line = Timeline { spans: vec![line.spans[0].clone()], present, ..line };
    assert_eq!(line.takeovers()[0].took, Duration::from_millis(12));
}

#[test]
fn a_timeline_of_before_follows_the_newest_record() {
    use crate::job::{JobRecord, LastExit, LastSwitch, Participant, RunPhase, RunRecord};
    let name = |text: &str| NodeName::new(text).expect("a valid name");
    let mut record = JobRecord::untouched(JobName::new("outbound").expect("a valid name"));
    let li = UserName::new("li").expect("a valid name");
    record.participants = vec![Participant { user: li.clone(), since: StoreTime(1_000) }];
    let run = |token, node: &str, from| RunRecord {
        id: RunId("r".to_owned()),
        token: Token(token),
        node: name(node),
        pid: 1,
        started: StoreTime(from),
        phase: RunPhase::Running,
        progress: None,
        last_output: None,
    };
    record.run = Some(run(1, "node-a", 1_100));
    let mut line = Timeline { since: Some(StoreTime(0)), ..Timeline::default() };
    line.follow(&record, StoreTime(2_000));
    line.follow(&record, StoreTime(2_500));
    assert_eq!((line.spans.len(), line.wants.len()), (0, 1));
    let end = RunEnd::Lost;
    let (exit, node) = (Exit::default(), name("node-a"));
    record.last_exit = Some(LastExit { exit, end, node, at: StoreTime(3_000), early: false });
    record.run = Some(run(2, "node-b", 3_005));
    line.follow(&record, StoreTime(3_010));
    assert_eq!((line.spans[0].to, line.spans[0].end), (StoreTime(3_000), RunEnd::Lost));
    assert_eq!(line.takeovers()[0].took, Duration::from_millis(5));
    record.participants.clear();
    record.last_switch =
        Some(LastSwitch { user: li, on: false, at: StoreTime(4_000), reason: None });
    line.follow(&record, StoreTime(4_100));
    assert_eq!(line.wants[0].to, Some(StoreTime(4_000)));
}
