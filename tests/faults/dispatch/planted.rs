//! The judge, judged: a good ledger is found good, and each wrong that is planted into it is found.

use std::collections::BTreeMap;

use super::checks::judge;
use super::ledger::{Answer, Ask, Call, Granted, Handed, Sent};
use super::sources::{self, Source};

const SOURCE: Source = Source {
    name: "planted",
    tasks: 3,
    gap_ms: 10,
    window: Some((2, 25)),
    cap: Some(2),
    lease_ms: 100,
    max_attempts: 3,
};
/// What the store's clock says more than CLOCK_BOOTTIME.
const OFFSET: i64 = 1_000_000_000;

/// A ledger in the making; every instant on CLOCK_BOOTTIME and in milliseconds.
#[derive(Default)]
struct Story {
    calls: Vec<Call>,
}

impl Story {
    fn call(&mut self, sent: i64, ask: Ask, answer: Option<Answer>) {
        let answer = answer.map(|answer| (sent * 1_000 + 400, answer));
        self.calls.push(Call { by: "c1/1".to_owned(), sent: sent * 1_000, ask, answer });
    }

    /// The task `id` is granted under `token`, by the request of that number.
    fn grant(&mut self, at: i64, request: &str, id: &str, token: u64, attempt: u32) {
        let start = at * 1_000 + OFFSET;
        let handed =
            Handed { id: id.to_owned(), source: SOURCE.name.to_owned(), token, attempt, start };
        let granted = Granted {
            claim: format!("claim of {request}"),
            lease_until: start + SOURCE.lease_ms * 1_000,
            tasks: vec![handed],
        };
        self.call(
            at,
            Ask::Exchange { reports: Vec::new(), request: Some(request.to_owned()) },
            Some(Answer::Exchange { statuses: Vec::new(), granted: Some(granted) }),
        );
    }

    /// A result; no status is no answer.
    fn report(&mut self, at: i64, id: &str, token: u64, outcome: &str, status: Option<&str>) {
        let (id, outcome) = (id.to_owned(), outcome.to_owned());
        let ask = Ask::Exchange { reports: vec![Sent { id, token, outcome }], request: None };
        let answer = status
            .map(|status| Answer::Exchange { statuses: vec![status.to_owned()], granted: None });
        self.call(at, ask, answer);
    }

    /// One is retried, one runs out and is refused late, one is done at once.
    fn good() -> Self {
        let mut story = Self::default();
        story.grant(0, "r1", "a", 1, 1);
        story.grant(10, "r2", "b", 2, 1);
        story.report(20, "a", 1, "retry", Some("ok"));
        story.grant(30, "r3", "c", 3, 1);
        story.report(40, "c", 3, "done", Some("ok"));
        story.grant(50, "r4", "a", 4, 2);
        story.report(60, "a", 4, "done", None);
        story.grant(110, "r5", "b", 5, 2);
        story.report(112, "b", 2, "done", Some("stale"));
        story.report(115, "b", 5, "done", Some("ok"));
        story
    }

    /// Moves the grant of `request` by so many milliseconds on the store's clock and on ours.
    fn moved(mut self, request: &str, by: i64) -> Self {
        for call in &mut self.calls {
            let Ask::Exchange { request: Some(of), .. } = &call.ask else { continue };
            if of == request
                && let Some((at, Answer::Exchange { granted: Some(granted), .. })) =
                    &mut call.answer
            {
                call.sent += by * 1_000;
                *at += by * 1_000;
                granted.lease_until += by * 1_000;
                granted.tasks[0].start += by * 1_000;
            }
        }
        self
    }

    /// Changes the result of `id` under `token`.
    fn answered(mut self, of: (&str, u64), status: Option<&str>) -> Self {
        for call in &mut self.calls {
            let Ask::Exchange { reports, .. } = &call.ask else { continue };
            if reports.first().is_some_and(|sent| (sent.id.as_str(), sent.token) == of) {
                call.answer = status.map(|status| {
                    let statuses = vec![status.to_owned()];
                    (call.sent + 400, Answer::Exchange { statuses, granted: None })
                });
            }
        }
        self
    }

    fn with(mut self, add: impl FnOnce(&mut Self)) -> Self {
        add(&mut self);
        self
    }

    fn wrongs(mut self) -> Vec<String> {
        self.calls.sort_by_key(|call| call.sent);
        let tasks: BTreeMap<String, String> =
            ["a", "b", "c"].map(|id| (id.to_owned(), SOURCE.name.to_owned())).into();
        judge(&self.calls, &sources::by_name(&[SOURCE]), &tasks, 1_000).wrongs
    }
}

/// Without this the suite could be green because it is blind.
pub(crate) fn the_judge_finds_every_planted_wrong() {
    assert_eq!(Story::good().wrongs(), [""; 0], "a good ledger");
    let good = Story::good;
    let planted = [
        ("two live claims of task b", good().moved("r5", -20)),
        ("accepted although 5 was out already", good().answered(("b", 2), Some("ok"))),
        (
            "after the end of its lease",
            good().with(|story| {
                story.grant(300, "r6", "d", 6, 1);
                story.report(410, "d", 6, "done", Some("ok"));
            }),
        ),
        (
            "after the end of its lease",
            good().with(|story| {
                story.grant(300, "r6", "d", 6, 1);
                let kept = vec!["d".to_owned()];
                let extend = Ask::Extend { claim: "claim of r6".to_owned() };
                story.call(350, extend, Some(Answer::Extend { kept, lost: Vec::new() }));
                story.report(460, "d", 6, "done", Some("ok"));
            }),
        ),
        (
            "the first result under the current token 3 was refused",
            good().answered(("c", 3), Some("stale")),
        ),
        ("task c in planted was lost", good().answered(("c", 3), Some("stale"))),
        (
            "task c in planted was done 2 times",
            good().with(|story| {
                story.grant(150, "r6", "c", 6, 2);
                story.report(160, "c", 6, "done", Some("ok"));
            }),
        ),
        (
            "task c was handed out under 6 after it was done",
            good().with(|story| {
                story.grant(150, "r6", "c", 6, 2);
            }),
        ),
        (
            "task d was never put",
            good().with(|story| {
                story.grant(150, "r6", "d", 6, 1);
                story.report(160, "d", 6, "done", Some("ok"));
            }),
        ),
        ("gap of planted", good().moved("r2", -1)),
        ("window of planted", good().moved("r3", -6)),
        (
            "cap of planted: 3 in flight",
            good().with(|story| {
                story.grant(200, "r6", "d", 6, 1);
                story.grant(210, "r7", "e", 7, 1);
                story.grant(226, "r8", "f", 8, 1);
            }),
        ),
        ("was answered with", good().with(|story| story.grant(120, "r5", "b", 6, 3))),
        ("attempt 4 of task b", good().with(|story| story.grant(150, "r6", "b", 6, 4))),
        (
            "the grants are not of one clock",
            good().with(|story| {
                let Ask::Exchange { .. } = &story.calls[0].ask else { return };
                story.calls[0].sent -= 5_000;
                if let Some((at, _)) = &mut story.calls[0].answer {
                    *at -= 5_000;
                }
            }),
        ),
        (
            "was blocked from",
            good().with(|story| {
                let ask = Ask::Block { source: SOURCE.name.to_owned(), for_us: 30_000 };
                story.call(100, ask, Some(Answer::Block));
            }),
        ),
        (
            "not for",
            good().with(|story| {
                if let Some((_, Answer::Exchange { granted: Some(granted), .. })) =
                    &mut story.calls[0].answer
                {
                    granted.lease_until += 1_000;
                }
            }),
        ),
    ];
    for (expected, story) in planted {
        let wrongs = story.wrongs();
        assert!(
            wrongs.iter().any(|wrong| wrong.contains(expected)),
            "planted {expected:?}, found {wrongs:?}"
        );
    }
}
