//! The pages of dispatch with made-up data.

use std::time::Duration;

use super::super::dead::{DeadPage, DeadRow};
use super::super::dispatch::DispatchPage;
use super::super::task::{TaskPage, TaskShown};
use super::{frame, whole};
use crate::parts::dispatch::{Collectors, Extent, SourceRow, Totals};
use soloist_domain::dispatch::TaskState;
use soloist_domain::lease::Token;
use soloist_domain::name::CollectorName;
use soloist_store::dispatch::{
    ClaimId, CollectorView, Past, PastEvent, SourceView, TaskId, TaskView,
};
use soloist_view::fixtures::source::{NOW, every_state};
use soloist_view::pace::Pace;
use soloist_view::words::{Language, say};

pub(super) fn task(state: TaskState) -> TaskView {
    let source = every_state().remove(0).name;
    let collector = CollectorName::new("crawler-<3").expect("a label");
    let past = |event, error: Option<&str>| Past {
        at: NOW,
        event,
        attempt: 1,
        collector: Some(collector.clone()),
        error: error.map(str::to_owned),
    };
    TaskView {
        id: TaskId::of(&source, "k"),
        key: format!("https://example.com/<b>/{}", "long/".repeat(40)),
        source,
        payload: format!(r#"{{"text":"{}"}}"#, "<b>x".repeat(5_000)),
        priority: 9,
        state,
        attempt: 5,
        token: Token(7),
        every: Some(Duration::from_secs(86_400)),
        created: NOW,
        changed: NOW,
        at: (state == TaskState::Due).then(|| NOW + Duration::from_secs(90)),
        held: (state == TaskState::Leased)
            .then(|| (collector.clone(), ClaimId("c".to_owned()), NOW + Duration::from_secs(30))),
        error: Some("<b>timeout</b>".to_owned()),
        history: vec![
            past(PastEvent::Retried, Some("HTTP 500")),
            past(PastEvent::Expired, None),
            past(PastEvent::Died, Some("<b>timeout</b>")),
            past(PastEvent::Revived, None),
        ],
    }
}

pub(super) fn collectors() -> Vec<CollectorView> {
    let view = |n: u32, held: u32| CollectorView {
        name: CollectorName::new(&format!("crawler-{n}")).expect("a label"),
        seen: NOW,
        holds: (0..held)
            .map(|nth| {
                let source = every_state().remove(0).name;
                let key = format!("<b>{nth}");
                (TaskId::of(&source, &key), key, source, NOW + Duration::from_secs(20))
            })
            .collect(),
        in_flight: held.into(),
    };
    (0..60).map(|n| view(n, n % 7)).collect()
}

pub(super) fn pages(lang: Language, theme: &str) -> Vec<(&'static str, String)> {
    let around = |id: &str| frame(lang, theme, "dispatch", &say(lang, id, &[]));
    let pace = Pace {
        finished: vec![1.0, 4.0, 2.0, 12.5],
        started: vec![2.0, 5.0, 2.0, 13.0],
        now: 12.5,
        span: Duration::from_secs(9),
    };
    let dispatch = |sources: &[SourceView], collectors: &[CollectorView], trouble: Option<&str>| {
        let views: Vec<&SourceView> = sources.iter().collect();
        let paces = [Some(&pace), None].into_iter().cycle();
        let rows = sources.iter().zip(paces);
        whole(&DispatchPage {
            frame: around("dispatch-title"),
            trouble: trouble.map(str::to_owned),
            totals: Totals::new(&views, lang),
            rows: rows.map(|(view, pace)| SourceRow::new(view, pace, lang, true)).collect(),
            more: None,
            extent: Extent::Some,
            cut: false,
            collectors: Collectors::new(collectors, NOW, lang, Extent::Some),
            unread: false,
            names: vec!["pages".to_owned()],
            removes: true,
            url: "http://127.0.0.1:8080".to_owned(),
            user: "li".to_owned(),
        })
    };
    let dead = |rows: Vec<DeadRow>| {
        whole(&DeadPage {
            frame: around("dead-title"),
            source: Some("pages".to_owned()),
            none: say(lang, "dead-none", &[]),
            rows,
            said: Some("Revived.".to_owned()),
            older: Some(50),
            paged: true,
            operator: true,
        })
    };
    let task_page = |state: TaskState| {
        whole(&TaskPage {
            frame: around("task-title"),
            task: TaskShown::of(&task(state), Some(5), NOW.floor(), lang),
            revivable: state == TaskState::Dead,
            operator: true,
            source: "/dispatch/sources/open".to_owned(),
        })
    };
    vec![
        ("dispatch", dispatch(&every_state(), &collectors(), None)),
        ("dispatch-empty", dispatch(&[], &[], Some("Trouble."))),
        ("dead", dead(vec![DeadRow::of(task(TaskState::Dead), lang)])),
        ("dead-none", dead(vec![])),
        ("task-ready", task_page(TaskState::Ready)),
        ("task-due", task_page(TaskState::Due)),
        ("task-leased", task_page(TaskState::Leased)),
        ("task-done", task_page(TaskState::Done)),
        ("task-dead", task_page(TaskState::Dead)),
    ]
}

#[test]
fn lists_are_cut_and_say_so() {
    let page = pages(Language::En, "light").remove(0).1;
    assert_eq!(page.matches("<tr><td><strong>crawler-").count(), 50);
    assert!(page.contains("10 more collectors were seen within a day."));
    assert!(page.contains("and 3 more"), "of what one collector holds");
    let task = pages(Language::En, "light").pop().expect("a page").1;
    assert!(task.contains("The first 16,384 of"), "a long payload is cut");
    assert!(task.len() < 80_000, "{}", task.len());
}
