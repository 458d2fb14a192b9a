//! A day of a job that went through much.

use soloist_domain::job::RunEnd;
use soloist_domain::lease::Token;
use soloist_domain::name::{NodeName, UserName};
use soloist_domain::time::StoreTime;
use soloist_domain::timeline::{Present, Span, Timeline, WantKind, Wanted};
use soloist_view::fixtures::before;

fn span(token: u64, node: &str, began: i64, lasted: i64, end: RunEnd, runs: u32) -> Span {
    Span {
        node: NodeName::new(node).expect("a valid name"),
        first: Token(token),
        token: Token(token),
        from: before(began),
        to: before(began - lasted),
        end,
        runs,
        failed: if end.is_failure() { runs } else { 0 },
        held_ms: u64::try_from(lasted).expect("positive") * 1_000,
    }
}

fn wanted(kind: WantKind, who: &str, began: i64, lasted: Option<i64>) -> Wanted {
    let who = UserName::new(who).expect("a valid name");
    Wanted { kind, who, from: before(began), to: lasted.map(|lasted| before(began - lasted)) }
}

pub(super) fn holding() -> Timeline {
    let lost = span(3, "node-b", 40_000, 15_000, RunEnd::Lost, 1);
    let taken = StoreTime(lost.to.0 + 4);
    let node = NodeName::new("node-a").expect("a valid name");
    Timeline {
        since: Some(before(80_000)),
        spans: vec![
            span(1, "node-a", 79_000, 9_000, RunEnd::Exited, 4_112),
            span(2, "node-c", 69_980, 9_980, RunEnd::Stopped, 1),
            lost,
            Span { from: taken, ..span(4, "node-a", 25_000, 10_000, RunEnd::Crashed, 1) },
            span(5, "node-a", 14_000, 9_500, RunEnd::TimedOut, 3),
            span(6, "node-b", 3_000, 900, RunEnd::Stopped, 1),
        ],
        present: Some(Present { node, token: Token(7), from: StoreTime(before(2_100).0 + 37) }),
        wants: vec![
            wanted(WantKind::Participation, "li", 79_500, Some(19_500)),
            wanted(WantKind::Participation, "wang", 60_000, None),
            wanted(WantKind::Participation, "li", 50_000, None),
            wanted(WantKind::Hold, "chen", 55_000, Some(15_000)),
        ],
        ..Timeline::default()
    }
}
