//! The page of rotations and the rings of members, asked from outside: what they say, to whom, and how often.

use std::time::Duration;

use serde_json::{Value, json};
use soloist::clock;
use soloist::domain::lease::Token;
use soloist::domain::name::{RequestId, RotationName, TypeName, WorkerName};
use soloist::domain::rotation::{Rules, Skip, Turn, TurnOutcome, TypeRules};
use soloist::domain::time::Stamp;
use soloist::store::accounts::Role;
use soloist::store::dispatch::Waiter;
use soloist::store::rotation::{Kept, Pass, RotationView, Rotations, Taken, TurnAsk};

use super::live::{Socket, connect, hear_type, heard_nothing, of_a_page, say};
use super::{Server, article};

const MINUTE: Duration = Duration::from_secs(60);

fn name(rotation: &str) -> RotationName {
    RotationName::new(rotation).unwrap()
}

fn kind(of: &str) -> TypeName {
    TypeName::new(of).unwrap()
}

/// Of `orders`, `stock` and `returns`, with a lease of a minute.
async fn define(server: &Server, rotation: &str, change: impl FnOnce(&mut Rules)) {
    let types = ["orders", "stock", "returns"];
    let rules = |name| TypeRules { name: kind(name), gap: Duration::ZERO, quota: None };
    let mut rules = Rules {
        types: types.map(rules).into(),
        min_gap: Duration::ZERO,
        lease: MINUTE,
        skip: Skip::Absent,
    };
    change(&mut rules);
    server.store().put_rotation(&name(rotation), &rules).await.unwrap();
}

async fn ask(server: &Server, rotation: &str, of: &str, worker: &str, waits: bool) -> Taken {
    let random = format!("{:032x}", rand::random::<u128>());
    let ask = TurnAsk {
        rotation: name(rotation),
        kind: kind(of),
        worker: WorkerName::new(worker).unwrap(),
        request: RequestId::new(&random).unwrap(),
        // A life that nobody speaks for: it is woken by nobody, and stays.
        wait: waits.then(|| (Waiter(format!("node-z/{random}/1")), MINUTE)),
    };
    server.store().take_turn(&ask).await.unwrap()
}

async fn take(server: &Server, rotation: &str, of: &str, worker: &str) -> Turn {
    match ask(server, rotation, of, worker, false).await {
        Taken::Granted(turn) => turn,
        other => panic!("{rotation}, {of}: {other:?}"),
    }
}

async fn wait(server: &Server, rotation: &str, of: &str, worker: &str) {
    let answer = ask(server, rotation, of, worker, true).await;
    assert!(matches!(answer, Taken::Waiting { .. }), "{rotation}, {of}: {answer:?}");
}

async fn pass(server: &Server, rotation: &str, turn: Token, outcome: TurnOutcome) {
    pass_until(server, rotation, turn, outcome, None).await;
}

async fn pass_until(
    server: &Server,
    rotation: &str,
    turn: Token,
    outcome: TurnOutcome,
    not_before: Option<Stamp>,
) {
    let rotation = name(rotation);
    let pass = Pass { rotation, turn, only: None, outcome, next: None, not_before };
    let kept = server.store().pass_turn(&pass).await.unwrap();
    assert!(matches!(kept, Kept::Yes(_)), "{kept:?}");
}

async fn view(server: &Server, rotation: &str) -> RotationView {
    server.store().rotations(Some(&name(rotation)), 100).await.unwrap().remove(0)
}

/// The card of a rotation, out of a page.
fn card<'a>(page: &'a str, rotation: &str) -> &'a str {
    article(page, &format!("rotation-{rotation}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_state_of_a_rotation_is_shown_in_words_in_both_languages() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    define(&server, "taken", |_| {}).await;
    take(&server, "taken", "orders", "w-1").await;
    wait(&server, "taken", "stock", "w-2").await;
    define(&server, "gap", |rules| rules.min_gap = MINUTE).await;
    let turn = take(&server, "gap", "orders", "w-1").await;
    pass(&server, "gap", turn.token, TurnOutcome::Done).await;
    wait(&server, "gap", "stock", "w-2").await;
    define(&server, "ordered", |_| {}).await;
    let turn = take(&server, "ordered", "orders", "w-1").await;
    let later = turn.since + MINUTE * 10;
    pass_until(&server, "ordered", turn.token, TurnOutcome::Done, Some(later)).await;
    wait(&server, "ordered", "returns", "w-2").await;
    define(&server, "absent", |rules| rules.skip = Skip::Never).await;
    wait(&server, "absent", "stock", "w-2").await;
    define(&server, "idle", |_| {}).await;
    let expected = [
        ("taken", "taken", "Taken", "has been running", "进行中", "若不续期，租约在"),
        ("gap", "pacing", "Pacing", "when the gap is over", "间隔中", "间隔结束后"),
        (
            "ordered",
            "pacing",
            "Pacing",
            "because the last holder asked for a pause",
            "间隔中",
            "按上一回合的要求",
        ),
        (
            "absent",
            "absent",
            "Held up",
            "but no worker is asking for it",
            "受阻",
            "没有工作者请求它",
        ),
        (
            "idle",
            "idle",
            "Idle",
            "the next one that asks gets the turn",
            "空闲",
            "下一个请求者即可开始",
        ),
    ];
    let english = server.page("/rotations", &token, "en").await;
    let chinese = server.page("/rotations", &token, "zh").await;
    for (rotation, state, word, why, zh_word, zh_why) in expected {
        for (page, word, why) in [(&english, word, why), (&chinese, zh_word, zh_why)] {
            let card = card(page, rotation);
            for part in [format!("data-state=\"{state}\"").as_str(), word, why] {
                assert!(card.contains(part), "{rotation}: no {part:?} in {card}");
            }
        }
    }
    for (rotation, means) in [
        ("taken", "another has the turn"),
        ("gap", "the gap: "),
        ("ordered", "told to wait: "),
        ("absent", "orders</strong> is next, but no worker is asking for it"),
    ] {
        assert!(card(&english, rotation).contains(means), "{rotation}: no {means:?}");
    }
    // What counts down counts to the store's instant.
    let taken = view(&server, "taken").await.ring.turn.unwrap();
    assert!(card(&english, "taken").contains(&format!("data-until=\"{}\"", taken.until.ceil().0)));
    assert!(card(&english, "ordered").contains(&format!("data-until=\"{}\"", later.ceil().0)));
    assert!(!card(&english, "idle").contains("data-until"), "nothing is waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ring_marks_whose_turn_it_is_who_comes_next_and_who_waits() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    define(&server, "api", |_| {}).await;
    take(&server, "api", "orders", "w-1").await;
    wait(&server, "api", "returns", "w-2").await;
    wait(&server, "api", "returns", "w-3").await;
    let html = server.page("/rotations", &token, "en").await;
    let ring = card(&html, "api").split("<ol class=\"ring\"").nth(1).unwrap();
    let links: Vec<&str> = ring.split("</ol>").next().unwrap().split("<li ").skip(1).collect();
    for (link, parts) in links.iter().zip([
        ["data-mark=\"now\" aria-current=\"step\"", "orders", "has the turn"],
        ["data-mark=\"idle\"", "stock", ""],
        ["data-mark=\"next\"", "returns", "2 wait"],
    ]) {
        assert!(parts.iter().all(|part| link.contains(part)), "no {parts:?} in {link}");
    }
    assert_eq!(links.len(), 3);
    assert!(card(&html, "api").contains("<td>w-3</td><td>returns</td>"), "who waits");
    assert!(card(&html, "api").contains("<td>node-z</td>"), "and at which node");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_empty_page_tells_how_to_begin_and_every_page_leads_there() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    for (language, words) in [("en", "No rotation yet"), ("zh", "还没有轮转")] {
        let empty = server.page("/rotations", &token, language).await;
        let begin = format!("curl -X PUT http://{}/api/v1/rotations/", server.address);
        for part in [words, "soloist rotation set supplier-api", begin.as_str()] {
            assert!(empty.contains(part), "{part}");
        }
        assert!(server.page("/", &token, language).await.contains("<a href=\"/rotations\""));
    }
    define(&server, "api", |_| {}).await;
    let first = server.page("/rotations", &token, "en").await;
    assert!(!first.contains("No rotation yet"));
    assert!(card(&first, "api").contains("No turn yet."));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_and_the_table_tell_the_same_turns() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    define(&server, "api", |rules| rules.lease = Duration::from_millis(100)).await;
    let lost = take(&server, "api", "orders", "w-lost").await;
    // The server's own pump ends it when its lease is over.
    let (mut socket, _) = follower(&server, "li", json!({"rotations": true})).await;
    while !hear_type(&mut socket, "rotations").await["rows"].to_string().contains("bar-lost") {}
    define(&server, "api", |_| {}).await;
    let mut tokens = vec![lost.token];
    let outcomes = [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed];
    for (nth, outcome) in (0..45).zip(outcomes.into_iter().cycle()) {
        let of = ["orders", "stock", "returns"][nth % 3];
        let turn = take(&server, "api", of, &format!("w-{nth}")).await;
        pass(&server, "api", turn.token, outcome).await;
        tokens.push(turn.token);
    }
    tokens.push(take(&server, "api", "stock", "w-now").await.token);
    // A type that is removed keeps the lane of the turns it had.
    define(&server, "api", |rules| drop(rules.types.pop())).await;
    let html = server.page("/rotations", &token, "en").await;
    let card = card(&html, "api");
    let of = |element: &str, value: &str| {
        let tags = card.split(element).skip(1).map(|rest| rest.split('>').next().unwrap());
        let mut values: Vec<String> = tags
            .filter(|tag| tag.contains("data-turn="))
            .filter_map(|tag| tag.split(&format!("{value}=\"")).nth(1)?.split('"').next())
            .map(str::to_owned)
            .collect();
        values.sort();
        values
    };
    // The present one, and the last forty before it.
    let mut expected: Vec<String> =
        tokens[tokens.len() - 41..].iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(of("<rect ", "data-turn"), expected);
    assert_eq!(of("<tr ", "data-turn"), expected);
    let outcomes: Vec<String> = of("<tr ", "data-outcome");
    let drawn: Vec<String> =
        of("<rect ", "class").into_iter().map(|class| class.replace("bar-", "")).collect();
    assert_eq!(drawn, outcomes);
    let count = |outcome: &str| outcomes.iter().filter(|one| *one == outcome).count();
    assert_eq!((count("now"), count("done"), count("empty"), count("failed")), (1, 13, 13, 14));
    let lanes: Vec<&str> = card
        .split("<text class=\"lane\"")
        .skip(1)
        .map(|rest| rest.split('>').nth(1).unwrap().split('<').next().unwrap())
        .collect();
    assert_eq!(lanes, ["orders", "stock", "returns"]);
    assert!(card.contains("<td data-count=\"lost\" data-some>1</td>"), "{card}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_workers_are_escaped_everywhere() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    define(&server, "api", |_| {}).await;
    let (mut socket, _) = follower(&server, "li", json!({"rotations": true})).await;
    let worker = "\"><img/src=x/onerror=alert(1)>{{7*7}}";
    let turn = take(&server, "api", "orders", worker).await;
    pass(&server, "api", turn.token, TurnOutcome::Done).await;
    take(&server, "api", "stock", "<b>holder</b>").await;
    wait(&server, "api", "orders", "<i>waiter</i>").await;
    let clean = |html: &str| {
        for raw in ["<img", "<b>", "<i>"] {
            assert!(!html.contains(raw), "{raw} in {html}");
        }
        for shown in ["&#60;b&#62;holder", "&#60;i&#62;waiter", "&#34;&#62;&#60;img/src=x"] {
            assert!(html.contains(shown), "no {shown} in {html}");
        }
    };
    for language in ["en", "zh"] {
        clean(card(&server.page("/rotations", &token, language).await, "api"));
    }
    loop {
        let frame = hear_type(&mut socket, "rotations").await;
        if let Some(html) =
            frame["rows"][0]["html"].as_str().filter(|html| html.contains("waiter&"))
        {
            break clean(html);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_for_whoever_may_look_and_offers_operators_to_remove_and_nothing_else() {
    let server = Server::start().await;
    define(&server, "api", |_| {}).await;
    take(&server, "api", "orders", "w-1").await;
    for (user, role) in [("vera", Role::Viewer), ("olga", Role::Operator), ("ada", Role::Admin)] {
        let token = server.token(user, role).await;
        let html = server.page("/rotations", &token, "en").await;
        let offered: Vec<&str> = html.split("action=\"/rotations").skip(1).collect();
        let removes = offered.len() == 1 && offered[0].starts_with("/remove\"");
        let none = offered.is_empty();
        assert!(if role == Role::Viewer { none } else { removes }, "{user}: {html}");
    }
    let collector = server.token("cora", Role::Collector).await;
    assert_eq!(server.get("/rotations", &collector).await.status(), 403);
    let stranger = server.ask("GET", "/rotations").send().await.unwrap();
    assert_eq!(stranger.status(), 303, "to the door");
}

/// A page's socket that follows `what`, and its session's cookie.
async fn follower(server: &Server, user: &str, what: Value) -> (Socket, String) {
    let (mut socket, cookie, _) = of_a_page(server, user, Role::Viewer).await;
    let mut follow = what;
    follow["type"] = json!("follow");
    say(&mut socket, follow).await;
    (socket, cookie)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_arrives_on_the_pages_socket_as_the_card_that_changed() {
    let server = Server::start().await;
    define(&server, "api", |_| {}).await;
    define(&server, "press", |_| {}).await;
    let (mut socket, _) = follower(&server, "li", json!({"rotations": true})).await;
    let whole = hear_type(&mut socket, "rotations").await;
    let names: Vec<_> =
        whole["rows"].as_array().unwrap().iter().map(|row| &row["rotation"]).collect();
    assert_eq!((&whole["whole"], names), (&json!(true), vec![&json!("api"), &json!("press")]));
    assert!(whole["totals"].as_str().unwrap().contains("rotations"));

    take(&server, "press", "orders", "w-1").await;
    let changed = hear_type(&mut socket, "rotations").await;
    let rows = changed["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["rotation"]), (1, &json!("press")), "only what changed");
    assert_eq!(changed["whole"], false);
    assert!(rows[0]["html"].as_str().unwrap().contains("has been running"));

    define(&server, "zebra", |_| {}).await;
    loop {
        let more = hear_type(&mut socket, "rotations").await;
        // The turn that is had goes on, and is told of meanwhile.
        if more["whole"] == true {
            break assert_eq!(more["rows"].as_array().unwrap().len(), 3);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_turns_make_few_frames_and_the_newest_arrives() {
    const TURNS: u32 = 300;
    let server = Server::start().await;
    define(&server, "api", |_| {}).await;
    let (mut socket, _) = follower(&server, "li", json!({"rotations": true})).await;
    hear_type(&mut socket, "rotations").await;
    let token = server.token("vera", Role::Viewer).await;
    let mut program = connect(&server, &token).await;
    say(&mut program, json!({"type": "follow", "id": 1, "rotations": true})).await;
    hear_type(&mut program, "reply").await;
    let first = hear_type(&mut program, "rotations").await;
    let asked: Value = server.get("/api/v1/rotations", &token).await.json().await.unwrap();
    assert_eq!(first["rotations"], asked["rotations"], "both doors show the same rotation");
    say(&mut program, json!({"type": "follow", "id": 2, "rings": true})).await;
    let refused = hear_type(&mut program, "reply").await;
    assert_eq!((&refused["ok"], &refused["error"]), (&json!(false), &json!("bad_request")));
    let begun = clock::boot();
    let changes = async {
        for nth in 0..TURNS {
            let turn = take(&server, "api", "orders", &format!("w-{nth}")).await;
            pass(&server, "api", turn.token, TurnOutcome::Done).await;
        }
    };
    let told = async {
        let mut frames = 0;
        loop {
            let frame = hear_type(&mut socket, "rotations").await;
            frames += 1;
            if frame["rows"].to_string().contains(&format!("<td>w-{}</td>", TURNS - 1)) {
                return frames;
            }
        }
    };
    let told_program = async {
        let mut frames = 0;
        loop {
            let frame = hear_type(&mut program, "rotations").await;
            frames += 1;
            if frame["rotations"][0]["types"][0]["done"] == TURNS {
                return frames;
            }
        }
    };
    let ((), told, told_program) = tokio::join!(changes, told, told_program);
    let seconds = u32::try_from(clock::boot().since(begun).as_secs()).unwrap() + 1;
    assert!(told <= 2 * seconds + 1, "{told} frames to the page in {seconds} s");
    assert!(told_program <= seconds + 1, "{told_program} frames to the program in {seconds} s");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_does_not_ask_hears_nothing_of_rotations() {
    let server = Server::start().await;
    define(&server, "api", |_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    let mut silent = connect(&server, &token).await;
    let (mut left, _) = follower(&server, "wang", json!({"rotations": true})).await;
    hear_type(&mut left, "rotations").await;
    say(&mut left, json!({"type": "unfollow", "id": 1, "rotations": true})).await;
    hear_type(&mut left, "reply").await;
    let (mut socket, _) = follower(&server, "li", json!({"rotations": true})).await;
    hear_type(&mut socket, "rotations").await;
    for nth in 0..3 {
        let turn = take(&server, "api", "orders", &format!("w-{nth}")).await;
        pass(&server, "api", turn.token, TurnOutcome::Done).await;
        let told = format!("<td>w-{nth}</td>");
        while !hear_type(&mut socket, "rotations").await["rows"].to_string().contains(&told) {}
    }
    for socket in [&mut silent, &mut left] {
        heard_nothing(socket, "rotations").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_shows_its_ring_on_the_dashboard_and_on_its_page_and_follows_it() {
    let server = Server::with(|config| {
        config.jobs[0].rotation = Some(name("api"));
        config.jobs[0].name = "orders".parse().unwrap();
        config.jobs[1].rotation = Some(name("nowhere"));
        let mut plain = super::job("plain");
        plain.rotation = None;
        config.jobs.push(plain);
    })
    .await;
    let token = server.token("vera", Role::Viewer).await;
    define(&server, "api", |_| {}).await;
    let turn = take(&server, "api", "stock", "w-1").await;
    wait(&server, "api", "orders", "job/orders").await;
    for path in ["/", "/jobs/orders"] {
        let html = server.page(path, &token, "en").await;
        let line = html.split("data-ring=\"api\"").nth(1).unwrap_or_else(|| panic!("{html}"));
        let line = line.split("</div>").next().unwrap();
        for part in [
            "href=\"/rotations#rotation-api\"",
            "data-mark=\"now\" aria-current=\"step\"><span class=\"type\">stock",
            "data-mark=\"next\" data-mine><span class=\"type\">orders",
            "one waits",
            &format!("data-until=\"{}\"", turn.until.ceil().0),
        ] {
            assert!(line.contains(part), "{path}: no {part:?} in {line}");
        }
    }
    let dashboard = server.page("/", &token, "zh").await;
    assert_eq!(dashboard.matches("data-ring=").count(), 2, "only members have one");
    assert!(dashboard.contains("此轮转尚未定义：soloist rotation set"), "{dashboard}");

    let (mut socket, _) = follower(&server, "li", json!({"rings": true})).await;
    let frame = hear_type(&mut socket, "rings").await;
    let jobs: Vec<_> = frame["rings"].as_array().unwrap().iter().map(|ring| &ring["job"]).collect();
    assert_eq!(jobs, [&json!("orders"), &json!("inbound")]);
    pass(&server, "api", turn.token, TurnOutcome::Done).await;
    loop {
        let frame = hear_type(&mut socket, "rings").await;
        let rings = frame["rings"].as_array().unwrap();
        assert!(rings.iter().all(|ring| ring["job"] == "orders"), "only what changed: {frame}");
        if rings[0]["html"].as_str().unwrap().contains("It is the turn of") {
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_store_the_page_shows_what_was_known_and_says_so() {
    let mut server = Server::start().await;
    define(&server, "api", |_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    let (mut socket, _) = follower(&server, "li", json!({"rotations": true})).await;
    hear_type(&mut socket, "rotations").await;
    server.page("/rotations", &token, "en").await;
    server.redis.stop();
    while hear_type(&mut socket, "rotations").await["trouble"] == "" {}
    let html = server.page("/rotations", &token, "en").await;
    assert!(html.contains("Trouble with the store"), "{html}");
    assert!(card(&html, "api").contains("the next one that asks gets the turn"));
    assert!(!html.contains("No rotation yet"));
}
