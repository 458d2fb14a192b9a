//! Every page with made-up data: escaped, without inline code, in both languages. The test also writes them to
//! `target/preview/`, where a browser can look at them: `python3 -m http.server` there, then open `/en/`.

mod administer;
mod alerts;
mod dispatch;
mod history;
mod rotation;
mod schedule;

use std::path::Path;

use self::history::holding;
use super::account::{AccountPage, SessionRow, TokenRow};
use super::api::{ApiPage, CALLS};
use super::audit::{AuditPage, Choice, Entry};
use super::bulk::{BulkDone, Line as ChosenLine, Preview, What};
use super::confirm::Confirm;
use super::dashboard::{Choice as Pick, Dashboard, placed};
use super::failover::Failover;
use super::job::tabs::Tabs;
use super::job::{JobPage, Operate, Side};
use super::login::{LinkFor, LoginForm};
use super::nodes::{HeldRow, NodeRow, NodesPage};
use super::output::{Output, Wanted};
use super::people::{PeoplePage, PersonRow};
use super::wall::Wall;
use super::*;
use crate::csrf::tests::posting_forms;
use crate::error::WebError;
use crate::parts::endings::{Acts, Endings};
use crate::parts::holders::{Extent, Holders, Voice};
use crate::parts::runs::{RunRow, Runs, bars};
use crate::parts::strip::Strip;
use crate::parts::truth::{Fact, Taken};
use crate::parts::{Head, Row, Summary};
use crate::sieve::Sieve;
use soloist_domain::job::{Exit, LeaseRecord, RunEnd};
use soloist_domain::lease::Token;
use soloist_domain::name::{JobName, NodeName, Owner, RunId, UserName};
use soloist_store::accounts::{NO_PASSWORD, User};
use soloist_store::credentials::{ApiToken, OpenSession, Session};
use soloist_store::journal::{AuditEntry, LogLine, LogPage, RunEntry, Stream};
use soloist_store::leases::HeldLease;
use soloist_view::fixtures::{NOW, SECOND, before, every_state, node, stuck};
use soloist_view::{LeaseKind, NodeView};

fn frame(lang: Language, theme: &str, here: &'static str, title: &str) -> Frame {
    Frame {
        lang,
        title: title.to_owned(),
        here,
        path: "/".to_owned(),
        theme: Some(theme.to_owned()),
        time_zone: None,
        zone: Zone::here().clone(),
        csrf: "secret".to_owned(),
        person: Some(Person {
            name: "li".to_owned(),
            display_name: Some("李伟".to_owned()),
            role: "role-admin",
            admin: true,
        }),
        now: Some(NOW),
        live: true,
        rows: String::new(),
        truth: Bar::default(),
        refresh: None,
        alerts: 2,
        others: Vec::new(),
    }
}

fn viewer_of(view: &JobView) -> RowViewer {
    let mine = view.participants.iter().any(|p| p.user == "li");
    RowViewer { mine, last: mine && view.participants.len() == 1, may_switch: true }
}

fn line(seq: u64, node: &str, stream: Stream, text: &str) -> LogLine {
    LogLine {
        seq,
        at: before(20 - i64::try_from(seq).expect("small")),
        run: RunId("r".to_owned()),
        node: NodeName::new(node).expect("a valid name"),
        stream,
        text: text.to_owned(),
    }
}

fn run(began: i64, lasted: Option<i64>, node: &str, end: Option<RunEnd>, code: i32) -> RunEntry {
    RunEntry {
        id: RunId("r".to_owned()),
        job: JobName::new("outbound").expect("a valid name"),
        node: NodeName::new(node).expect("a valid name"),
        token: Token(7),
        started: before(began),
        ended: lasted.map(|lasted| before(began - lasted)),
        exit: Exit { code: Some(code), signal: None },
        end,
        processes_killed: u32::from(end == Some(RunEnd::Stopped)) * 2,
        folded: if end == Some(RunEnd::Exited) { 12 } else { 0 },
    }
}

fn pages(lang: Language, theme: &str) -> Vec<(&'static str, String)> {
    let jobs = every_state(lang);
    let views = jobs.iter().map(|(_, view)| view.clone());
    let views: Vec<JobView> = views.chain([stuck(lang)]).collect();
    let title = |id: &str| say(lang, id, &[]);
    let dashboard = |views: &[JobView], facts: &[Fact]| {
        let truth = Bar::new(facts, lang, NOW);
        whole(&Dashboard {
            frame: Frame { truth, ..frame(lang, theme, "jobs", &title("nav-jobs")) },
            needs: String::new(),
            epoch: "e".to_owned(),
            summary: Summary::new(views.iter(), &Sieve::default(), 0, lang),
            picks: Pick::all(&Sieve::default(), views.iter(), lang),
            operator: true,
            sieve: Sieve::default(),
            any: !views.is_empty(),
            rows: placed(views.iter().enumerate().map(|(nth, view)| {
                let place = Sieve::default().place(view, nth, lang);
                let strip = Strip::of(&holding(), NOW, lang);
                let row = Row::new(view, viewer_of(view), lang).with_strip(Some(strip));
                (place.clone(), row.at(place))
            })),
        })
    };
    let taken = Taken {
        by: vec![NodeName::new("node-a").expect("a valid name")],
        jobs: 3,
        within: std::time::Duration::from_millis(4),
    };
    let trouble = [
        Fact::StoreAway { since: before(13), detail: "connection refused".to_owned() },
        Fact::NodeLost {
            node: NodeName::new("node-b").expect("a valid name"),
            at: before(60),
            taken: Some(taken),
        },
    ];
    let trouble = [
        trouble[0].clone(),
        trouble[1].clone(),
        Fact::Drift {
            node: "node-c".to_owned(),
            jobs: vec![(
                JobName::new("outbound").expect("a valid name"),
                vec!["command".to_owned()],
            )],
        },
    ];
    let lines = [
        line(1, "node-b", Stream::Stdout, "shipped 10749 to Island Trading, Cowes"),
        line(2, "node-b", Stream::Stdout, "shipped 10750 to Wartian Herkku, Oulu"),
        line(3, "node-b", Stream::Stderr, "warning: carrier slow, waited 2 s"),
        line(4, "node-a", Stream::Stdout, "shipped 10751 to Richter Supermarkt, Genève"),
        line(5, "node-a", Stream::Soloist, "2 left-over processes were killed"),
        line(6, "node-a", Stream::Stdout, "shipping 10752 <b>to</b> North/South, London …"),
    ];
    let runs = [
        run(5_340, None, "node-a", None, 0),
        run(7_261, Some(1_860), "node-b", Some(RunEnd::Stopped), 0),
        run(9_000, Some(2_460), "node-a", Some(RunEnd::Lost), 0),
        run(12_000, Some(780), "node-a", Some(RunEnd::Exited), 0),
        run(90_000, Some(2), "node-a", Some(RunEnd::Crashed), 1),
    ];
    let moved = [AuditEntry {
        id: 2,
        at: before(5_401),
        who: "li".to_owned(),
        from: "127.0.0.1".to_owned(),
        act: "job.move".to_owned(),
        target: "outbound".to_owned(),
        reason: Some("to node-a".to_owned()),
        kind: soloist_store::journal::Kind::Person,
        count: 1,
        until: None,
    }];
    let outbound = JobName::new("outbound").expect("a valid name");
    let acts = Acts { entries: &moved, job: &outbound };
    let endings = Endings::new(&runs, acts, lang);
    let job = |view: &JobView, held: bool| {
        whole(&JobPage {
            frame: frame(lang, theme, "jobs", &view.title),
            epoch: "e".to_owned(),
            head: Head::new(view, viewer_of(view), lang),
            tabs: Tabs::of(&view.name, &view.title, "now", lang),
            output: {
                let asked =
                    Wanted::default().asked(Zone::here().clone()).expect("nothing is asked for");
                let page = LogPage { lines: lines.to_vec(), next: Some(1) };
                Output::new(&outbound, &asked, Some(&page).filter(|_| !held), &endings, lang).html()
            },
            side: Side {
                name: view.name.clone(),
                title: view.title.clone(),
                unread: held,
                ticks: (!held).then(|| schedule::ticks(&jobs, lang)),
                held: (!held).then(|| holders(lang)),
                runs: Runs {
                    lang,
                    rows: runs
                        .iter()
                        .map(|run| RunRow::of(run, acts, &endings, lang, Some(NOW)))
                        .collect(),
                    bars: bars(&runs, lang),
                    place: "runs-node",
                    unread: held,
                    older: Some("?before=r".to_owned()),
                    newer: None,
                    drilled: Some(vec![soloist_view::words::Piece::text("Drilled.")]),
                },
                operate: Some(Operate {
                    held,
                    takers: vec!["node-b".to_owned()],
                    external: view.shown.external,
                    stays: None,
                    drill: Some("A drill.".to_owned()),
                }),
            },
        })
    };
    let nodes = [
        node("node-a", 300, &["outbound", "labels"], false),
        node("node-b", 700, &["customs"], true),
        node("node-c", 9_000, &[], false),
    ];
    let held = [("outbound", "node-a"), ("customs", "node-b")];
    let held = held.map(|(job, node)| (job.parse().unwrap(), node.parse().unwrap()));
    let nodes = NodeView::list(&nodes, &held, Some(NOW));
    let nodes = nodes.into_iter().map(|node| NodeRow::of(node, lang, "node-a", Some(NOW), false));
    let entry = |who: &str, act: &str, reason: Option<&str>| AuditEntry {
        id: 1,
        at: before(100),
        who: who.to_owned(),
        from: "127.0.0.1".to_owned(),
        act: act.to_owned(),
        target: "outbound".to_owned(),
        reason: reason.map(str::to_owned),
        kind: soloist_store::journal::Kind::Person,
        count: 1,
        until: None,
    };
    let entries = [
        entry("li", "participation.on", None),
        entry("wang", "participation.off", Some("quarter closed")),
        entry(
            "li",
            "source.put",
            Some(
                r#"{"gap_ms":1000,"window":null,"cap":2,"lease_ms":30000,"max_attempts":5,"backoff":{"first_ms":1000,"max_ms":300000},"paused":false,"was":{"gap_ms":250,"window":null,"cap":2,"lease_ms":30000,"max_attempts":5,"backoff":{"first_ms":1000,"max_ms":300000},"paused":true}}"#,
            ),
        ),
        entry("chen", "job.hold", Some("stocktaking until noon")),
        entry("link", "login", None),
    ];
    let sign_in = |link_for: Option<LinkFor>, error: Option<WebError>| {
        let form = LoginForm {
            language: lang,
            csrf: "secret".to_owned(),
            next: "/".to_owned(),
            name: String::new(),
            link: link_for.is_some().then(|| "SECRET".to_owned()),
            link_for,
            nobody: false,
            sso: Some(("Company login".to_owned(), "/login/oidc?next=%2F".to_owned())),
            error,
        };
        whole(&login::of(&form, Some(theme.to_owned())))
    };
    vec![
        ("index", dashboard(&views[..4], &[])),
        ("all", dashboard(&views, &[])),
        ("trouble", dashboard(&views[9..], &trouble)),
        ("empty", dashboard(&[], &[])),
        ("job", job(&views[0], false)),
        ("held", job(&views[7], true)),
        (
            "nodes",
            whole(&NodesPage {
                frame: frame(lang, theme, "nodes", &title("nodes-title")),
                unread: false,
                nodes: nodes.collect(),
                held: Some(held_rows(lang)),
                more: None,
                operator: true,
                failover: Some(Failover {
                    several: false,
                    second: Some("soloist --config /etc/soloist/soloist.toml serve --node node-b --listen 127.0.0.1:8081".to_owned()),
                    drill: Some(
                        "soloist --config /etc/soloist/soloist.toml drill outbound".to_owned(),
                    ),
                }),
            }),
        ),
        (
            "api",
            whole(&ApiPage {
                frame: frame(lang, theme, "api", &title("api-title")),
                about: &CALLS.0,
                groups: &CALLS.1,
            }),
        ),
        ("wall", wall(&views, lang, theme)),
        (
            "audit",
            whole(&AuditPage {
                frame: frame(lang, theme, "audit", &title("audit-title")),
                entries: entries
                    .into_iter()
                    .map(|entry| {
                        let is_job = entry.act.starts_with("job.") || entry.act.starts_with("part");
                        let title =
                            if lang == Language::En { "Outbound shipping" } else { "出库任务" };
                        Entry::of(entry, is_job.then_some(title), lang)
                    })
                    .collect(),
                unread: false,
                older: Some("/audit?before=1".to_owned()),
                newer: None,
                paged: true,
                filtered: true,
                who: "li".to_owned(),
                target: String::new(),
                since_at: String::new(),
                until_at: String::new(),
                since: "2026-05-04T08:00".to_owned(),
                until: String::new(),
                acts: vec![Choice { value: "login", text: title("did-login"), chosen: true }],
                kinds: Vec::new(),
                csv: "/api/v1/audit?format=csv".to_owned(),
                ndjson: "/api/v1/audit?format=ndjson".to_owned(),
            }),
        ),
        ("alerts", alerts::page(lang, theme)),
        ("alerts-empty", alerts::empty(lang, theme)),
        ("run", schedule::run(lang, theme)),
        ("schedule", schedule::day(lang, theme)),
        ("account", account_page(lang, theme)),
        ("people", people_page(lang, theme)),
        ("invite", sign_in(Some(LinkFor::Password("li".to_owned())), None)),
        ("login", sign_in(None, Some(WebError::Unauthorized))),
        ("first", sign_in(Some(LinkFor::FirstAdmin), None)),
        ("link", sign_in(Some(LinkFor::User("li".to_owned())), None)),
        (
            "confirm",
            whole(&Confirm {
                frame: frame(lang, theme, "jobs", &title("last-title")),
                text: say(lang, "last-text", &[("title", Arg::from("Outbound"))]),
                action: "/jobs/outbound/participation".to_owned(),
                fields: vec![("on", "false".to_owned())],
                asks: false,
                yes: title("last-yes"),
                no: title("last-no"),
                back: "/".to_owned(),
            }),
        ),
        ("bulk", bulk_page(&views, lang, theme)),
        ("bulk-done", {
            let lines = views.iter().take(3).map(|view| line_of(view, title("bulk-done")));
            let frame = frame(lang, theme, "jobs", "Off");
            whole(&BulkDone { frame, lines: lines.collect(), back: "/".to_owned() })
        }),
        ("error", {
            let error = WebError::not_found("there is nothing at this address");
            let frame = frame(lang, theme, "", &title(error.heading()));
            whole(&error::of(frame, &error))
        }),
        ("away", {
            let mut frame = away::of(lang, Some(theme.to_owned()));
            frame.truth = Bar::for_strangers(&trouble, lang, NOW);
            whole(&away::Away { frame })
        }),
    ]
}

fn holders(lang: Language) -> Holders {
    let line = holding();
    let voice = Voice { lang, external: false, lease: SECOND * 5 };
    Holders::of("outbound", &line, Extent::Day, NOW, voice)
}

fn line_of(view: &JobView, text: String) -> ChosenLine {
    let (name, title) = (view.name.clone(), view.title.clone());
    ChosenLine { name, title, state: view.state.as_str(), failed: view.shown.needs, text }
}

fn bulk_page(views: &[JobView], lang: Language, theme: &str) -> String {
    let lines = views.iter().map(|view| line_of(view, say(lang, "bulk-stops", &[])));
    whole(&Preview {
        frame: frame(lang, theme, "jobs", "Switch off?"),
        what: What::Off,
        lines: lines.collect(),
        back: "/".to_owned(),
    })
}

fn account_page(lang: Language, theme: &str) -> String {
    let name = |text: &str| UserName::new(text).expect("a valid name");
    let session = |hash: &str, agent: Option<&str>, minutes: i64| OpenSession {
        hash: hash.to_owned(),
        session: Session {
            created: before(minutes * 60),
            ..Session::new(
                name("li"),
                String::new(),
                "192.0.2.7".to_owned(),
                agent.map(str::to_owned),
            )
        },
        used: before(minutes * 20),
    };
    let firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
    let sessions = [session("a", Some(firefox), 30), session("b", None, 4_000)];
    let token = |text: &str, used: Option<i64>| ApiToken {
        id: "5f0c9d2e11aa".to_owned(),
        created: before(90_000),
        expires: used.map(|_| before(-8_000_000)),
        last_used: used.map(before),
        ..ApiToken::new(name("li"), text.to_owned())
    };
    let tokens = [token("nightly build", Some(300)), token("仓库看板", None)];
    whole(&AccountPage {
        frame: frame(lang, theme, "account", &say(lang, "account-title", &[])),
        name: "li".to_owned(),
        role: say(lang, "role-operator", &[]),
        display_name: "李伟".to_owned(),
        zones: zone::choices(Some("Asia/Shanghai")),
        zone_rule: zone::rule(&frame(lang, theme, "account", "")),
        said: Some(say(lang, "account-token-made", &[])),
        error: Some(
            WebError::from(soloist_secrets::PasswordError::Weak(vec!["password-weak"]))
                .sentence(lang),
        ),
        secret: Some(format!("sol_{}", "4e".repeat(32))),
        minimum: 10,
        rule: say(lang, "password-rule", &[("n", Arg::from(10))]),
        sessions: sessions.map(|one| SessionRow::of(one, "a", lang)).into(),
        tokens: tokens.map(|one| TokenRow::of(one, lang)).into(),
        lifetimes: account::lifetimes(lang, true),
    })
}

fn held_rows(lang: Language) -> Vec<HeldRow> {
    let row = |name: &str, node: &str, kind| {
        let lease = LeaseRecord {
            node: node.parse().unwrap(),
            owner: Owner("program-7f".to_owned()),
            token: Token(1_835_019_492_704_256),
            since: NOW,
            expires_in: std::time::Duration::from_millis(4_100),
            ttl: std::time::Duration::from_secs(5),
        };
        let watched = kind == LeaseKind::Program;
        HeldRow::of(&HeldLease { name: name.parse().unwrap(), lease }, kind, watched, lang)
    };
    vec![
        row("outbound", "node-a", LeaseKind::Job),
        row("nightly-copy", "cron-1", LeaseKind::Command),
        row("stock-feed", "shop-7f", LeaseKind::Program),
    ]
}

fn people_page(lang: Language, theme: &str) -> String {
    let user = |name: &str, role, password: &str, shown: Option<&str>| User {
        display_name: shown.map(str::to_owned),
        created: before(900_000),
        ..User::new(UserName::new(name).expect("a valid name"), role, password.to_owned())
    };
    let all = [
        user("ada", Role::Admin, "x", None),
        user("li", Role::Admin, "x", Some("李伟")),
        user("scraper", Role::Collector, NO_PASSWORD, None),
        user("wang", Role::Operator, NO_PASSWORD, Some("王芳")),
    ];
    whole(&PeoplePage {
        frame: frame(lang, theme, "people", &say(lang, "people-title", &[])),
        people: all.map(|user| PersonRow::of(user, "li")).into(),
        roles: people::roles(lang),
        said: Some(say(lang, "people-added", &[("user", Arg::from("wang"))])),
        error: None,
        link: Some((
            "wang".to_owned(),
            format!("https://jobs.example.org/login?link={}", "4e".repeat(32)),
        )),
        typed: people::Typed::default(),
    })
}

fn wall(views: &[JobView], lang: Language, theme: &str) -> String {
    whole(&Wall {
        frame: frame(lang, theme, "wall", &say(lang, "wall-title", &[])),
        needs: String::new(),
        epoch: "e".to_owned(),
        summary: Summary::new(views.iter(), &Sieve::default(), 0, lang),
        any: true,
        rows: placed(views.iter().enumerate().map(|(nth, view)| {
            let place = Sieve::default().place(view, nth, lang);
            let strip = Strip::of(&holding(), NOW, lang);
            let row = Row::new(view, RowViewer::default(), lang).with_strip(Some(strip));
            (place.clone(), row.at(place))
        })),
    })
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a readable directory") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}

#[test]
fn every_page_renders_in_both_languages_without_inline_code_or_missing_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let preview = root.join("target/preview");
    copy(&root.join("static"), &preview.join("static").join(assets::hash()));
    for lang in Language::ALL {
        for theme in ["light", "dark"] {
            let dir = preview.join(format!("{}-{theme}", lang.as_str()));
            std::fs::create_dir_all(&dir).expect("a directory");
            for (name, html) in pages(lang, theme)
                .into_iter()
                .chain(dispatch::pages(lang, theme))
                .chain(rotation::pages(lang, theme))
                .chain(administer::pages(lang, theme))
            {
                assert!(html.ends_with("</html>"), "{name}");
                let secret = if name == "away" { "" } else { "secret" };
                assert!(posting_forms(&html, secret) >= 2, "{name}");
                for banned in [" style=", "<style", "onclick=", "<b>", "{{", "{%"] {
                    assert!(!html.contains(banned), "{name} has {banned}");
                }
                assert!(html.contains(&format!("<html lang=\"{}\"", lang.as_str())));
                // An id that no language has would be shown as it is.
                for id in ["nav-", "state-", "count-", "why-title", "act-", "audit-", "login-"] {
                    assert!(!html.contains(&format!(">{id}")), "{name} shows {id}");
                }
                std::fs::write(dir.join(format!("{name}.html")), html).expect("written");
            }
        }
    }
}

#[test]
fn a_form_leads_back_to_a_path_of_ours_only() {
    assert_eq!(local("/jobs/outbound?x=1"), "/jobs/outbound?x=1");
    for foreign in
        ["//evil.example", "https://evil.example", "", "/\\evil", "/a\r\nb", "javascript:1"]
    {
        assert_eq!(local(foreign), "/", "{foreign}");
    }
}
