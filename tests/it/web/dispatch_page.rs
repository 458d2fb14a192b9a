//! The pages of dispatch, asked from outside: what they say, to whom, and how little they say on live sockets.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};
use soloist::clock;
use soloist::domain::dispatch::{Rules, TaskOutcome, TaskState, Window};
use soloist::domain::name::{CollectorName, RequestId, SourceName};
use soloist::store::accounts::Role;
use soloist::store::dispatch::{
    ClaimAsk, ClaimOwner, Claimed, Dispatch, Exchange, Handed, NewTask, Report, Sources, TaskId,
};
use soloist::store::journal::Journal;

use super::live::{Socket, connect, hear_type, heard_nothing, of_a_page, say};
use super::{Server, article, problem};

fn name(source: &str) -> SourceName {
    SourceName::new(source).unwrap()
}

async fn define(server: &Server, source: &str, change: impl FnOnce(&mut Rules)) {
    let mut rules = Rules::default();
    change(&mut rules);
    server.store().put_source(&name(source), &rules).await.unwrap();
}

fn task(source: &str, key: &str) -> NewTask {
    NewTask {
        key: key.to_owned(),
        source: name(source),
        payload: r#"{"n":1}"#.to_owned(),
        priority: 0,
        at: None,
        every: None,
    }
}

async fn put(server: &Server, source: &str, keys: &[&str]) {
    let tasks: Vec<NewTask> = keys.iter().map(|key| task(source, key)).collect();
    server.store().put_tasks(&tasks).await.unwrap();
}

/// Takes up to `max` tasks of `source` in the name of `collector`.
async fn take(server: &Server, source: &str, collector: &str, max: u32) -> Vec<Handed> {
    let random = format!("{:032x}", rand::random::<u128>());
    let claim = ClaimAsk {
        owner: ClaimOwner::of("test"),
        collector: CollectorName::new(collector).unwrap(),
        request: RequestId::new(&random).unwrap(),
        max,
        sources: vec![name(source)],
        wait: None,
    };
    let ask = Exchange { claim: Some(claim), ..Exchange::default() };
    match server.store().exchange(&ask).await.unwrap().claimed {
        Some(Claimed::Granted { tasks, .. }) => tasks,
        other => panic!("{source}: {other:?}"),
    }
}

async fn report(server: &Server, task: &Handed, outcome: TaskOutcome, error: &str) {
    let error = Some(error.to_owned());
    let (id, token) = (task.id.clone(), task.token);
    let report = Report { id, token, outcome, delay: None, error };
    let ask = Exchange { reports: vec![report], ..Exchange::default() };
    server.store().exchange(&ask).await.unwrap();
}

/// Puts a task of `source` and has it given up.
async fn bury(server: &Server, source: &str, key: &str, error: &str) -> TaskId {
    put(server, source, &[key]).await;
    let taken = take(server, source, "undertaker", 1).await;
    report(server, &taken[0], TaskOutcome::Dead, error).await;
    TaskId::of(&name(source), key)
}

/// The row of a source, out of a page.
fn row<'a>(page: &'a str, source: &str) -> &'a str {
    article(page, &format!("source-{source}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_of_a_source_is_shown_in_words_in_both_languages() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let hour = Duration::from_secs(3_600);
    define(&server, "open", |_| {}).await;
    define(&server, "empty", |_| {}).await;
    define(&server, "later", |_| {}).await;
    define(&server, "hands", |_| {}).await;
    define(&server, "gap", |rules| rules.gap = hour).await;
    define(&server, "window", |rules| rules.window = Some(Window { count: 1, span: hour })).await;
    define(&server, "cap", |rules| rules.cap = Some(1)).await;
    define(&server, "paused", |rules| rules.paused = true).await;
    define(&server, "blocked", |_| {}).await;
    for source in ["open", "gap", "window", "cap", "paused", "blocked"] {
        put(&server, source, &["one", "two"]).await;
    }
    put(&server, "hands", &["one"]).await;
    for source in ["gap", "window", "cap", "hands"] {
        assert_eq!(take(&server, source, "c1", 1).await.len(), 1);
    }
    server.store().block_source(&name("blocked"), hour).await.unwrap();
    let now = server.store().sources(None).await.unwrap()[0].now;
    let later = NewTask { at: Some(now + hour), ..task("later", "one") };
    server.store().put_tasks(&[later]).await.unwrap();
    let expected = [
        ("open", "open", "Open", "2 are ready", "开放", "2 项就绪"),
        ("empty", "empty", "Empty", "It has no work.", "空闲", "没有工作项。"),
        ("later", "empty", "Empty", "due in", "空闲", "后就绪"),
        ("hands", "empty", "Empty", "one is claimed", "空闲", "1 项在采集器手中"),
        ("gap", "pacing", "Pacing", "One start every 1 h 0 min: the next in", "间隔中", "下一项在"),
        ("window", "pacing", "Pacing", "is used up: the next in", "间隔中", "已用完"),
        ("cap", "full", "At its cap", "or the end of its lease in", "已达上限", "有租约到期"),
        ("paused", "paused", "Paused", "until somebody resumes it", "已暂停", "在恢复之前"),
        (
            "blocked",
            "blocked",
            "Blocked",
            "No collector is served for",
            "已阻止",
            "内不向任何人派发",
        ),
    ];
    let english = server.page("/dispatch", &token, "en").await;
    let chinese = server.page("/dispatch", &token, "zh").await;
    for (source, state, word, why, zh_word, zh_why) in expected {
        for (page, word, why) in [(&english, word, why), (&chinese, zh_word, zh_why)] {
            let row = row(page, source);
            let state = format!("data-state=\"{state}\"");
            for part in [state.as_str(), word, why] {
                assert!(row.contains(part), "{source}: no {part:?} in {row}");
            }
        }
    }
    for (source, waits) in [("gap", true), ("blocked", true), ("cap", true), ("paused", false)] {
        assert_eq!(row(&english, source).contains("data-until="), waits, "{source}: a countdown");
    }
    assert!(row(&english, "cap").contains("1 <span class=\"cap\">of 1</span>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_empty_page_tells_how_to_begin_and_the_rate_says_when_it_is_not_known_yet() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let empty = server.page("/dispatch", &token, "en").await;
    for part in ["No source yet", "$URL/sources/pages", "soloist collect --source pages"] {
        assert!(empty.contains(part), "{part}");
    }
    assert!(empty.contains(&format!("URL=http://{}/api/v1", server.address)));
    define(&server, "pages", |_| {}).await;
    let first = server.page("/dispatch", &token, "en").await;
    assert!(!first.contains("No source yet"));
    assert!(row(&first, "pages").contains("measuring…"), "{first}");
    assert!(row(&first, "pages").contains("the rate is known after two readings"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_keys_payloads_errors_and_collectors_are_escaped_everywhere() {
    let server = Server::start().await;
    let token = server.token("olga", Role::Operator).await;
    define(&server, "pages", |_| {}).await;
    let key = "\"><img src=x onerror=alert(1)>{{7*7}}";
    let dead = bury(&server, "pages", key, "<b>&\"'</b>").await;
    let mut held = task("pages", "<u>held</u>");
    held.payload = r#"{"x":"</code><script>alert(1)</script>"}"#.to_owned();
    let held_id = TaskId::of(&held.source, &held.key);
    server.store().put_tasks(&[held]).await.unwrap();
    assert_eq!(take(&server, "pages", "<i>c</i>", 1).await.len(), 1);
    for path in [
        "/dispatch".to_owned(),
        "/dispatch/dead".to_owned(),
        "/dispatch/dead?source=pages".to_owned(),
        format!("/dispatch/tasks/{}", dead.0),
        format!("/dispatch/tasks/{}", held_id.0),
    ] {
        for language in ["en", "zh"] {
            let html = server.page(&path, &token, language).await;
            for raw in ["<img src=x", "<script>alert", "<b>", "<i>c", "<u>held"] {
                assert!(!html.contains(raw), "{path}: {raw}");
            }
        }
    }
    let html = server.page(&format!("/dispatch/tasks/{}", held_id.0), &token, "en").await;
    assert!(html.contains("&#60;script&#62;alert(1)"), "the payload is shown: {html}");
    let html = server.page("/dispatch/dead", &token, "en").await;
    assert!(html.contains("&#60;b&#62;&#38;"), "the error is shown: {html}");
    // The same on the socket.
    let (mut socket, _) = follower(&server, "li", Role::Operator).await;
    let frame = hear_type(&mut socket, "dispatch").await;
    let table = frame["collectors"].as_str().unwrap();
    assert!(table.contains("&#60;i&#62;c") && !table.contains("<i>c"), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_found_by_its_key_and_its_page_tells_its_history() {
    let server = Server::start().await;
    let token = server.token("olga", Role::Operator).await;
    define(&server, "pages", |rules| rules.max_attempts = 2).await;
    put(&server, "pages", &["a key & more"]).await;
    let taken = take(&server, "pages", "c1", 1).await;
    let id = taken[0].id.0.clone();
    let find = "/dispatch/tasks?source=pages&key=a%20key%20%26%20more";
    let found = server.get(find, &token).await;
    assert_eq!(found.status(), 303);
    assert_eq!(found.headers()["location"], format!("/dispatch/tasks/{id}").as_str());
    let path = format!("/dispatch/tasks/{id}");
    let html = server.page(&path, &token, "en").await;
    for part in
        ["In flight", "c1</strong> holds it", "1 of 2", "&#34;n&#34;: 1", "Nothing has gone wrong"]
    {
        assert!(html.contains(part), "no {part:?} in {html}");
    }
    assert!(!html.contains("/revive\""), "only a dead task can be revived");
    report(&server, &taken[0], TaskOutcome::Dead, "it smells").await;
    let html = server.page(&path, &token, "zh").await;
    for part in ["死信", "it smells", "放弃", "c1"] {
        assert!(html.contains(part), "no {part:?} in {html}");
    }
    assert!(html.contains(&format!("/dispatch/dead/{id}/revive")));
    for (path, words) in [
        ("/dispatch/tasks?source=pages&key=nothing", "There is no task with this key in pages"),
        ("/dispatch/tasks?source=nowhere&key=x", "nowhere"),
        ("/dispatch/tasks/00000000000000000000000000000000", "There is no such task"),
        ("/dispatch/dead?source=nowhere", "nowhere"),
    ] {
        let response = server.get(path, &token).await;
        assert_eq!(response.status(), 404, "{path}");
        assert!(response.text().await.unwrap().contains(words), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_everything_and_no_form_and_is_refused_every_act() {
    let server = Server::start().await;
    define(&server, "pages", |_| {}).await;
    let id = bury(&server, "pages", "one", "gone").await;
    let vera = server.user("vera", Role::Viewer).await;
    let (cookie, csrf) = server.session(&vera).await;
    for path in ["/dispatch", "/dispatch/dead?source=pages", &format!("/dispatch/tasks/{}", id.0)] {
        let response = server.ask("GET", path).header("cookie", &cookie).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let html = response.text().await.unwrap();
        assert!(!html.contains("method=\"post\" action=\"/dispatch"), "{path} has a form: {html}");
    }
    for path in [
        "/dispatch/sources/pages/pause",
        "/dispatch/sources/pages/block",
        "/dispatch/sources/pages/revive",
        &format!("/dispatch/dead/{}/revive", id.0),
    ] {
        let form = [("csrf", csrf.as_str()), ("on", "true"), ("for", "1m"), ("confirm", "yes")];
        assert_eq!(post(&server, path, &cookie, &form).await.status(), 403, "{path}");
    }
    let source = &server.store().sources(Some(&name("pages"))).await.unwrap()[0];
    assert!(!source.rules.paused && source.blocked_until <= source.now && source.dead == 1);
    assert!(server.store().audits(Some("pages"), None, 10).await.unwrap().is_empty());
}

async fn post(server: &Server, path: &str, cookie: &str, form: &[(&str, &str)]) -> Response {
    let body: Vec<String> = form.iter().map(|(name, value)| format!("{name}={value}")).collect();
    server
        .ask("POST", path)
        .header("cookie", cookie)
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.join("&"))
        .send()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stops_work_is_asked_back_and_every_act_is_audited() {
    let server = Server::start().await;
    define(&server, "pages", |rules| rules.gap = Duration::from_millis(1)).await;
    let olga = server.user("olga", Role::Operator).await;
    let (cookie, csrf) = server.session(&olga).await;
    let csrf = csrf.as_str();
    let source = async || server.store().sources(Some(&name("pages"))).await.unwrap().remove(0);
    let (pause, block) = ("/dispatch/sources/pages/pause", "/dispatch/sources/pages/block");

    let asked = post(&server, pause, &cookie, &[("csrf", csrf), ("on", "true")]).await;
    assert_eq!(asked.status(), 200);
    let html = asked.text().await.unwrap();
    assert!(html.contains("Pause pages?") && html.contains("name=\"confirm\""), "{html}");
    assert!(!source().await.rules.paused, "asking back changes nothing");
    let script = server
        .ask("POST", pause)
        .header("cookie", &cookie)
        .header("accept", "application/json")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("csrf={csrf}&on=true"));
    let asked = script.send().await.unwrap();
    assert_eq!(asked.status(), 409);
    let said: Value = asked.json().await.unwrap();
    assert_eq!((&said["title"], &said["yes"]), (&json!("Pause pages?"), &json!("Pause it")));

    let yes = ("confirm", "yes");
    assert_eq!(
        post(&server, pause, &cookie, &[("csrf", "0"), ("on", "true"), yes]).await.status(),
        403
    );
    let done = post(&server, pause, &cookie, &[("csrf", csrf), ("on", "true"), yes]).await;
    assert_eq!(
        (done.status().as_u16(), &done.headers()["location"]),
        (303, &"/dispatch".parse().unwrap())
    );
    let paused = source().await.rules;
    assert!(paused.paused && paused.gap == Duration::from_millis(1), "the other rules stay");
    post(&server, pause, &cookie, &[("csrf", csrf), ("on", "false")]).await;
    assert!(!source().await.rules.paused, "to resume needs no confirmation");

    let asked = post(&server, block, &cookie, &[("csrf", csrf), ("for", "10m")]).await;
    assert!(asked.text().await.unwrap().contains("Block pages for 10 min?"));
    post(&server, block, &cookie, &[("csrf", csrf), ("for", "10m"), yes]).await;
    let blocked = source().await;
    assert!(blocked.blocked_until > blocked.now + Duration::from_secs(590));
    post(&server, block, &cookie, &[("csrf", csrf), ("for", "0s")]).await;
    let lifted = source().await;
    assert!(lifted.blocked_until <= lifted.now);
    for wrong in ["forever", "", "-1s", "9000days"] {
        let answer = post(&server, block, &cookie, &[("csrf", csrf), ("for", wrong), yes]).await;
        assert_eq!(answer.status(), 400, "for={wrong}");
    }

    let id = bury(&server, "pages", "one", "gone").await;
    let revive = format!("/dispatch/dead/{}/revive", id.0);
    assert_eq!(post(&server, &revive, &cookie, &[("csrf", csrf)]).await.status(), 303);
    let state = server.store().task(&id).await.unwrap().unwrap().state;
    assert_eq!(state, TaskState::Ready);

    let mut acts: Vec<String> = Vec::new();
    for target in ["pages", &id.0] {
        let entries = server.store().audits(Some(target), None, 20).await.unwrap();
        assert!(entries.iter().all(|entry| entry.who == "olga" && entry.from == "127.0.0.1"));
        acts.extend(entries.into_iter().rev().map(|entry| entry.act));
    }
    let expected =
        ["source.pause", "source.resume", "source.block", "source.unblock", "task.revive"];
    assert_eq!(acts, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_dead_tasks_of_a_source_come_back_and_no_others() {
    let server = Server::start().await;
    define(&server, "pages", |_| {}).await;
    define(&server, "files", |_| {}).await;
    for n in 0..120 {
        bury(&server, "pages", &format!("key-{n}"), "gone").await;
    }
    bury(&server, "files", "one", "gone").await;
    let olga = server.user("olga", Role::Operator).await;
    let (cookie, csrf) = server.session(&olga).await;
    let csrf = ("csrf", csrf.as_str());
    let path = "/dispatch/sources/pages/revive";
    let asked = post(&server, path, &cookie, &[csrf]).await.text().await.unwrap();
    assert!(asked.contains("All 120 become ready again"), "{asked}");
    let done = post(&server, path, &cookie, &[csrf, ("confirm", "yes")]).await;
    assert_eq!(done.status(), 303);
    let back = done.headers()["location"].to_str().unwrap().to_owned();
    let html = server.ask("GET", &back).header("cookie", &cookie).send().await.unwrap();
    assert!(html.text().await.unwrap().contains("120 tasks were revived."));
    let sources = server.store().sources(None).await.unwrap();
    let counts: Vec<_> =
        sources.iter().map(|source| (source.name.as_str(), source.ready, source.dead)).collect();
    assert_eq!(counts, [("files", 0, 1), ("pages", 120, 0)]);
    let entry = server.store().audits(Some("pages"), None, 1).await.unwrap().remove(0);
    assert_eq!((entry.act.as_str(), entry.reason.as_deref()), ("source.revive", Some("120 tasks")));
}

/// A page's socket that follows dispatch, and its session's CSRF secret.
async fn follower(server: &Server, user: &str, role: Role) -> (Socket, String) {
    let (mut socket, _, csrf) = of_a_page(server, user, role).await;
    say(&mut socket, json!({"type": "follow", "dispatch": true})).await;
    (socket, csrf)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_arrives_on_the_pages_socket_as_the_row_that_changed() {
    let server = Server::start().await;
    define(&server, "files", |_| {}).await;
    define(&server, "pages", |_| {}).await;
    let (mut socket, csrf) = follower(&server, "olga", Role::Operator).await;
    let (mut looking, _) = follower(&server, "vera", Role::Viewer).await;
    let whole = hear_type(&mut socket, "dispatch").await;
    assert_eq!(whole["whole"], true);
    let names: Vec<_> =
        whole["rows"].as_array().unwrap().iter().map(|row| &row["source"]).collect();
    assert_eq!(names, [&json!("files"), &json!("pages")]);
    assert!(whole["rows"][0]["html"].as_str().unwrap().contains(&csrf), "its own secret");
    assert!(whole["totals"].is_string() && whole["collectors"].is_string());
    let seen = hear_type(&mut looking, "dispatch").await;
    assert!(!seen["rows"][0]["html"].as_str().unwrap().contains("<form"), "{seen}");

    put(&server, "pages", &["one"]).await;
    let changed = hear_type(&mut socket, "dispatch").await;
    assert_eq!(changed["whole"], false);
    let rows = changed["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["source"]), (1, &json!("pages")), "only what changed");
    assert!(rows[0]["html"].as_str().unwrap().contains("One is ready"));
    assert!(changed["collectors"].is_null(), "nothing happened there");

    define(&server, "zebra", |_| {}).await;
    let more = hear_type(&mut socket, "dispatch").await;
    assert_eq!((&more["whole"], more["rows"].as_array().unwrap().len()), (&json!(true), 3));
    take(&server, "pages", "c1", 1).await;
    let mut table = String::new();
    while !table.contains("c1") {
        let frame = hear_type(&mut socket, "dispatch").await;
        table = frame["collectors"].as_str().unwrap_or_default().to_owned();
    }
}

/// Reads frames of dispatch until `last` holds for one; how many there were.
async fn count_until(socket: &mut Socket, last: impl Fn(&Value) -> bool) -> u32 {
    let mut frames = 0;
    loop {
        let frame = hear_type(socket, "dispatch").await;
        frames += 1;
        if last(&frame) {
            return frames;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_changes_make_few_frames_and_the_newest_arrives() {
    let server = Server::start().await;
    define(&server, "pages", |_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    let (mut page, _) = follower(&server, "li", Role::Viewer).await;
    let mut program = connect(&server, &token).await;
    say(&mut program, json!({"type": "follow", "id": 1, "dispatch": true})).await;
    hear_type(&mut program, "reply").await;
    hear_type(&mut page, "dispatch").await;
    let first = hear_type(&mut program, "dispatch").await;
    let asked: Value = server.get("/api/v1/sources", &token).await.json().await.unwrap();
    assert_eq!(first["sources"], asked["sources"], "both doors show the same source");

    let begun = clock::boot();
    let changes = async {
        for n in 0..1_000 {
            put(&server, "pages", &[&format!("key-{n}")]).await;
        }
    };
    let told_page =
        count_until(&mut page, |frame| frame["rows"].to_string().contains("1,000 are ready"));
    let told_program = count_until(&mut program, |frame| frame["sources"][0]["ready"] == 1_000);
    let ((), told_page, told_program) = tokio::join!(changes, told_page, told_program);
    let seconds = u32::try_from(clock::boot().since(begun).as_secs()).unwrap() + 1;
    assert!(told_page <= 2 * seconds + 1, "{told_page} frames to the page in {seconds} s");
    assert!(told_program <= seconds + 1, "{told_program} frames to the program in {seconds} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_ask_hears_nothing_of_dispatch() {
    let server = Server::start().await;
    define(&server, "pages", |_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    let mut silent = connect(&server, &token).await;
    let mut left = connect(&server, &token).await;
    let (mut page, _) = follower(&server, "li", Role::Viewer).await;
    say(&mut left, json!({"type": "follow", "dispatch": true})).await;
    hear_type(&mut left, "dispatch").await;
    say(&mut left, json!({"type": "unfollow", "id": 1, "dispatch": true})).await;
    hear_type(&mut left, "reply").await;
    for n in 0..3 {
        put(&server, "pages", &[&format!("key-{n}")]).await;
        count_until(&mut page, |frame| !frame["rows"].as_array().unwrap().is_empty()).await;
    }
    for socket in [&mut silent, &mut left] {
        heard_nothing(socket, "dispatch").await;
    }
    // What a socket asked for without saying what is refused as before.
    say(&mut silent, json!({"type": "follow", "id": 8})).await;
    let reply = hear_type(&mut silent, "reply").await;
    assert_eq!((&reply["ok"], &reply["error"]), (&json!(false), &json!("bad_request")));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_the_page_shows_what_was_known_and_says_so() {
    let mut server = Server::start().await;
    define(&server, "pages", |_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    let (mut socket, _) = follower(&server, "li", Role::Viewer).await;
    hear_type(&mut socket, "dispatch").await;
    server.page("/dispatch", &token, "en").await;
    server.redis.stop();
    let told = count_until(&mut socket, |frame| {
        frame["trouble"].as_str().is_some_and(|trouble| trouble.contains("Trouble with the store"))
    });
    told.await;
    let html = server.page("/dispatch", &token, "en").await;
    assert!(html.contains("Trouble with the store"), "{html}");
    assert!(row(&html, "pages").contains("It has no work."));
    let dead = server.get("/dispatch/dead", &token).await;
    assert_eq!(dead.status(), 503);
    let api = server.get("/api/v1/sources", &token).await;
    assert_eq!(problem(api).await.0, 503);
}

/// The store's clock and no other decides what a page says of an instant.
#[tokio::test(flavor = "multi_thread")]
async fn countdowns_count_to_the_stores_instant() {
    let server = Server::start().await;
    define(&server, "pages", |_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    let view = server.store().block_source(&name("pages"), Duration::from_secs(600)).await.unwrap();
    let html = server.page("/dispatch", &token, "en").await;
    let until = format!("data-until=\"{}\"", view.blocked_until.ceil().0);
    assert!(row(&html, "pages").contains(&until), "{html}");
    let at = html.split("name=\"now\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    let at: i64 = at.parse().unwrap();
    assert!((view.now.floor().0..view.now.floor().0 + 60_000).contains(&at), "{at}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_is_cut_until_all_is_asked_for_on_the_page_and_on_its_socket() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let links =
        |html: &str| (html.contains("href=\"/dispatch?all=1\""), html.contains("Show fewer"));
    define(&server, "source-000", |_| {}).await;
    let short = server.page("/dispatch", &token, "en").await;
    assert_eq!(links(&short), (false, false), "nothing is left out");
    for n in 1..70 {
        define(&server, &format!("source-{n:03}"), |_| {}).await;
    }
    for (path, rows, expected) in
        [("/dispatch", 60, (true, false)), ("/dispatch?all=1", 70, (false, true))]
    {
        let html = server.page(path, &token, "en").await;
        assert_eq!(html.matches("id=\"source-source-").count(), rows, "{path}");
        assert_eq!(links(&html), expected, "{path}");
    }
    let (mut socket, _) = follower(&server, "li", Role::Viewer).await;
    let some = hear_type(&mut socket, "dispatch").await;
    assert_eq!(some["rows"].as_array().unwrap().len(), 60);
    assert!(some["more"].as_str().unwrap().starts_with("10 more sources"));
    say(&mut socket, json!({"type": "unfollow", "dispatch": true})).await;
    say(&mut socket, json!({"type": "follow", "dispatch": true, "all": true})).await;
    let all = hear_type(&mut socket, "dispatch").await;
    assert_eq!((all["rows"].as_array().unwrap().len(), &all["more"]), (70, &json!("")));
}
