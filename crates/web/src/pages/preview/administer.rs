//! The pages on which operators and admins administer, with made-up data.

use super::super::account::{SessionRow, TokenRow};
use super::super::audit::Entry;
use super::super::form::{Refused, RulesPage, Typed, Wrong};
use super::super::job::configuration::{ConfigurationPage, Node, keys};
use super::super::job::past::PastPage;
use super::super::job::tabs::Tabs;
use super::super::people::PersonRow;
use super::super::person::PersonPage;
use super::super::ring::{self, RingPage};
use super::super::source::{SourcePage, TaskRow, put_fields, tabs};
use super::super::source_rules;
use super::super::tasks::{TasksPage, What, line, means};
use super::dispatch::{collectors, task};
use super::{frame, whole};
use crate::parts::day::Day;
use crate::parts::dispatch::{Collectors, Extent, SourceRow};
use crate::parts::rotation::RotationRow;
use soloist_config::JobConfig;
use soloist_domain::dispatch::{Rules, TaskState};
use soloist_domain::name::{SourceName, UserName};
use soloist_domain::time::StoreTime;
use soloist_store::accounts::{NO_PASSWORD, Role, User};
use soloist_store::credentials::{ApiToken, OpenSession, Session};
use soloist_store::dispatch::SourceView;
use soloist_store::journal::{AuditEntry, Kind};
use soloist_view::DriftView;
use soloist_view::day::Step;
use soloist_view::fixtures::rotation::every_state as rotations;
use soloist_view::fixtures::source::{NOW, every_state as sources};
use soloist_view::fixtures::{before, config};
use soloist_view::words::{Language, day_clock, say};

const STATES: [TaskState; 5] =
    [TaskState::Ready, TaskState::Due, TaskState::Leased, TaskState::Dead, TaskState::Done];

fn source_page(view: &SourceView, full: bool, lang: Language, theme: &str) -> String {
    let steps: Vec<Step> = (0..70_i64)
        .map(|nth| Step {
            from: StoreTime(NOW.floor().0 - NOW.floor().0 % 900_000 - (69 - nth) * 900_000),
            finished: ((nth * 37) % 90).unsigned_abs(),
            failed: ((nth * 7) % 11).unsigned_abs(),
        })
        .collect();
    let wrong = Wrong("payload".to_owned());
    let mut typed = Typed::default();
    typed.set("payload", "{<b>");
    let around = frame(lang, theme, "dispatch", view.name.as_str());
    let tasks = STATES.map(|state| TaskRow::of(task(state), NOW.floor(), lang));
    whole(&SourcePage {
        name: view.name.to_string(),
        said: full.then(|| say(lang, "rules-saved", &[])),
        error: full.then(|| say(lang, "task-there", &[])),
        row: SourceRow::new(view, None, lang, false),
        day: full.then(|| Day::of(&steps, NOW.floor(), lang)).flatten(),
        tabs: tabs(view, full.then_some(TaskState::Dead), lang),
        tasks: if full { tasks.into() } else { Vec::new() },
        older: full.then(|| "/".to_owned()),
        newest: full.then(|| "/".to_owned()),
        collectors: Collectors::new(
            &collectors()[..if full { 7 } else { 0 }],
            NOW,
            lang,
            Extent::Some,
        ),
        idle: !full,
        operator: true,
        paused: view.rules.paused,
        blocked: !full,
        put: put_fields(&typed, full.then_some(&wrong), &around),
        frame: around,
        open: full,
        begin: !full,
        url: "http://127.0.0.1:8080".to_owned(),
        user: "li".to_owned(),
    })
}

fn rules_page(lang: Language, theme: &str, rotation: bool) -> RulesPage {
    let refused = Refused::Field(Wrong("quota-span-1".to_owned()));
    let around = |title: &str| frame(lang, theme, "dispatch", &say(lang, title, &[]));
    if rotation {
        let view = rotations().remove(0);
        let typed = ring::typed(&view.rules);
        return ring::form(around("rotation-new"), Some(&view.name), &typed, Some(&refused));
    }
    let refused = Refused::Field(Wrong("name".to_owned()));
    let typed = source_rules::typed(&Rules::default());
    source_rules::form(around("source-new"), None, &typed, Some(&refused))
}

fn person_page(lang: Language, theme: &str, full: bool) -> String {
    let name: UserName = "wang".parse().expect("a valid name");
    let user = User {
        display_name: full.then(|| "王芳".to_owned()),
        created: before(900_000),
        ..User::new(name.clone(), Role::Operator, if full { "x" } else { NO_PASSWORD }.to_owned())
    };
    let session = || OpenSession {
        hash: "a".to_owned(),
        session: Session::new(name.clone(), String::new(), "192.0.2.7".to_owned(), None),
        used: before(300),
    };
    let token =
        ApiToken { id: "5f0c9d2e11aa".to_owned(), ..ApiToken::new(name.clone(), "ci".to_owned()) };
    let jobs = [("outbound", true), ("labels", false)];
    let jobs = jobs.map(|(job, last)| (job.to_owned(), "Outbound shipping".to_owned(), last));
    whole(&PersonPage {
        frame: frame(lang, theme, "people", "wang"),
        row: PersonRow::of(user, "li"),
        role: say(lang, "role-operator", &[]),
        groups: if full { "shop, 仓库".to_owned() } else { String::new() },
        seen: full.then(|| vec![day_clock(before(300))]),
        said: None,
        error: full.then(|| say(lang, "error-title-bad-request", &[])),
        display_name: "王芳".to_owned(),
        sessions: if full { vec![SessionRow::of(session(), "b", lang)] } else { Vec::new() },
        tokens: if full { vec![TokenRow::of(token, lang)] } else { Vec::new() },
        jobs: if full { jobs.into() } else { Vec::new() },
    })
}

fn job_pages(lang: Language, theme: &str) -> Vec<(&'static str, String)> {
    let job = JobConfig {
        env: [("ORDERS".to_owned(), "swordfish".to_owned())].into(),
        secrets: [("DB".to_owned(), "/run/db".into())].into(),
        ..config("outbound", "Outbound shipping", "出库任务")
    };
    let title = "Outbound shipping";
    let drift = [DriftView { node: "node-c".to_owned(), differs: vec!["command".to_owned()] }];
    let node = |name: &str, differs: bool| Node {
        name: name.to_owned(),
        containment: "cgroup".to_owned(),
        said: say(lang, if differs { "config-missing" } else { "config-agrees" }, &[]),
        differs,
    };
    let entry = AuditEntry {
        id: 1,
        at: before(100),
        who: "wang".to_owned(),
        from: "127.0.0.1".to_owned(),
        act: "participation.off".to_owned(),
        target: "outbound".to_owned(),
        reason: Some("<b>quarter closed".to_owned()),
        kind: Kind::Person,
        count: 1,
        until: None,
    };
    let past = |entries: Vec<Entry>| {
        whole(&PastPage {
            frame: frame(lang, theme, "jobs", title),
            tabs: Tabs::of("outbound", title, "audit", lang),
            unread: false,
            paged: !entries.is_empty(),
            entries,
            older: Some("/".to_owned()),
            csv: "/api/v1/audit?format=csv".to_owned(),
        })
    };
    let configuration = whole(&ConfigurationPage {
        frame: frame(lang, theme, "jobs", title),
        tabs: Tabs::of("outbound", title, "configuration", lang),
        elsewhere: false,
        keys: keys(&job, &drift, true, lang),
        nodes: vec![node("node-a", false), node("node-c", true)],
    });
    vec![
        ("job-configuration", configuration),
        ("job-audit", past(vec![Entry::of(entry, Some(title), lang)])),
        ("job-audit-empty", past(Vec::new())),
    ]
}

pub(super) fn pages(lang: Language, theme: &str) -> Vec<(&'static str, String)> {
    let all = sources();
    let empty = &all[1];
    let ring = |full: bool| {
        let view = rotations().remove(0);
        whole(&RingPage {
            frame: frame(lang, theme, "rotations", view.name.as_str()),
            name: view.name.to_string(),
            said: full.then(|| say(lang, "rules-saved", &[])),
            row: RotationRow::new(&view, lang),
            operator: true,
            begin: !full,
            kind: "orders".to_owned(),
        })
    };
    let tasks = |what: What, asks: bool| {
        let lines = STATES.map(|state| {
            let task = task(state);
            line(&task, means(what, &task, lang))
        });
        let title = say(lang, "tasks-done-title", &[]);
        let frame = frame(lang, theme, "dispatch", &title);
        whole(&TasksPage { frame, what, asks, lines: lines.into(), back: "/".to_owned() })
    };
    let mut pages = vec![
        ("source", source_page(&all[0], true, lang, theme)),
        ("source-empty", source_page(empty, false, lang, theme)),
        ("source-rules", whole(&rules_page(lang, theme, false))),
        ("rotation-rules", whole(&rules_page(lang, theme, true))),
        ("ring", ring(true)),
        ("ring-begin", ring(false)),
        ("tasks-remove", tasks(What::Remove, true)),
        ("tasks-revived", tasks(What::Revive, false)),
        ("person", person_page(lang, theme, true)),
        ("person-invited", person_page(lang, theme, false)),
    ];
    pages.extend(job_pages(lang, theme));
    pages
}

#[test]
fn what_is_secret_of_a_job_is_on_no_page() {
    for (name, html) in job_pages(Language::En, "light") {
        assert!(!html.contains("swordfish") && !html.contains("/run/db"), "{name}");
    }
    let job = config("outbound", "Outbound shipping", "出库任务");
    let text = |sees: bool| {
        let keys = keys(&job, &[], sees, Language::En);
        keys.into_iter().find(|key| key.name == "command").expect("a command").value.join(" ")
    };
    assert_eq!(text(true), job.command.join(" "));
    assert_eq!(text(false), "shown to operators of the job");
}

#[test]
fn a_source_of_a_wrong_name_is_no_source() {
    let html = whole(&rules_page(Language::En, "light", false));
    assert!(html.contains("Name is wrong: 1 to 64") && html.contains("aria-invalid"), "{html}");
    assert!(SourceName::new("").is_err());
}
