//! Pages of schedules: what a job's page says of its ticks, runs that people ask for by a form, the day of all jobs.

use reqwest::Response;
use soloist::config::{JobConfig, Overrides, load};
use soloist::store::accounts::Role;

use super::Server;

const JOBS: &str = r#"
[[job]]
name = "settle"
title = { en = "Settlement", zh = "结算" }
command = ["true"]
zone = "Asia/Shanghai"
schedule = "30 2 * * *"
operators = ["li"]
params = { day = { type = "date", default = "yesterday" }, mode = { type = "choice", of = ["fast", "full"], default = "fast" }, n = { type = "int", min = 0, max = 9 }, note = { type = "text", pattern = "[a-z ]*", default = "" } }
[[job]]
name = "pull"
command = ["true"]
every = "5s"
[[job]]
name = "vault"
command = ["true"]
every = "1h"
viewers = ["ada"]
[[job]]
name = "endless"
command = ["true"]
"#;

fn jobs() -> Vec<JobConfig> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("soloist.toml");
    std::fs::write(&file, JOBS).unwrap();
    let env = |key: &str| (key == "PATH").then(|| "/usr/bin:/bin".to_owned());
    load(Some(&file), Overrides::default(), &env).unwrap().jobs
}

async fn server() -> Server {
    Server::with(|config| config.jobs = jobs()).await
}

/// Sends a form of a session; follows nothing.
async fn send(
    server: &Server,
    (cookie, csrf): &(String, String),
    path: &str,
    fields: &[(&str, &str)],
) -> Response {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.append_pair("csrf", csrf).extend_pairs(fields);
    server
        .ask("POST", path)
        .header("cookie", cookie)
        .header("origin", server.url(""))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body.finish())
        .send()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_job_says_its_schedule_in_both_languages_and_the_act_to_those_who_have_it() {
    let server = server().await;
    let li = server.token("li", Role::Operator).await;
    let vera = server.token("vera", Role::Viewer).await;
    let en = server.page("/jobs/settle", &li, "en").await;
    for said in [
        "02:30 every day",
        "Asia/Shanghai",
        " 02:30 +08:00",
        "No tick was due yet",
        "/jobs/settle/run",
    ] {
        assert!(en.contains(said), "{said}: {en}");
    }
    let zh = server.page("/jobs/settle", &li, "zh").await;
    for said in ["每天 02:30", "现在运行", "接下来", "周"] {
        assert!(zh.contains(said), "{said}: {zh}");
    }
    let seen = server.page("/jobs/settle", &vera, "en").await;
    assert!(seen.contains("02:30 +08:00") && !seen.contains("/jobs/settle/run"), "{seen}");
    let side = server.page("/jobs/settle?part=side", &vera, "en").await;
    assert!(side.contains("id=\"ticks\""), "a page that lives fetches it again");
    let endless = server.page("/jobs/endless", &li, "en").await;
    assert!(!endless.contains("id=\"ticks\""));
    assert_eq!(server.get("/jobs/endless/run", &li).await.status(), 409, "it has no schedule");
    let wang = server.token("wang", Role::Operator).await;
    assert_eq!(
        server.get("/jobs/settle/run", &wang).await.status(),
        403,
        "not among its operators"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_asked_for_by_a_form_with_parameters_and_taken_back() {
    let server = server().await;
    let li = server.user("li", Role::Operator).await;
    let session = server.session(&li).await;
    let get = async |path: &str| {
        let request = server.ask("GET", path).header("cookie", &session.0);
        request.send().await.unwrap().text().await.unwrap()
    };
    let form = get("/jobs/settle/run").await;
    for part in [
        "type=\"date\"",
        "min=\"0\" max=\"9\"",
        "pattern=\"[a-z ]*\"",
        "<option selected>fast",
        "required",
    ] {
        assert!(form.contains(part), "{part}: {form}");
    }
    let filled = |n| [("p-day", "2026-11-27"), ("p-mode", "full"), ("p-n", n), ("request", "one")];
    let refused = send(&server, &session, "/jobs/settle/run", &filled("12")).await;
    assert_eq!(refused.status(), 400);
    let refused = refused.text().await.unwrap();
    assert!(
        refused.contains("n: 12 is more than 9") && refused.contains("value=\"12\""),
        "{refused}"
    );
    assert!(refused.contains("<option selected>full"), "what was chosen stays");
    for (name, value, said) in [
        ("p-n", "12", "n：12 大于最大值 9。"),
        ("p-n", "x", "n：“x”不是整数。"),
        ("p-n", "", "必须填写 n"),
        ("p-day", "1.3.", "day：“1.3.”不是日期"),
        ("p-note", "A", "note：“A”与 [a-z ]* 不匹配。"),
        ("p-mode", "slow", "mode：“slow”不在可选值之内，请从中选一个：fast, full。"),
        ("tick", "settle@2026-11-27T02:31+08:00[Asia/Shanghai]", "此任务没有 settle@2026"),
        ("tick", "settle@2100-11-27T02:30+08:00[Asia/Shanghai]", "排期仍可能运行它"),
    ] {
        let mut fields = vec![("p-n", "7"), ("lang", "zh")];
        fields.retain(|(field, _)| *field != name);
        fields.push((name, value));
        let session = (format!("{}; soloist-language=zh", session.0), session.1.clone());
        let page = send(&server, &session, "/jobs/settle/run", &fields).await;
        let page = page.text().await.unwrap();
        assert!(page.contains(said), "{said}: {page}");
        let error = page.split_once("role=\"alert\"").expect(&page).1.split("</p>").next().unwrap();
        for english in [" is ", " no ", " or "] {
            assert!(!error.contains(english), "{english:?}: {error}");
        }
    }

    let done = send(&server, &session, "/jobs/settle/run", &filled("7")).await;
    assert_eq!(done.status(), 303);
    let to = done.headers()["location"].to_str().unwrap().to_owned();
    assert!(to.starts_with("/jobs/settle?asked=settle%40hand%3A"), "{to}");
    let twice = send(&server, &session, "/jobs/settle/run", &filled("7")).await;
    assert_eq!(twice.headers()["location"], to.as_str(), "two clicks are one run");
    let page = get(to.split('#').next().unwrap()).await;
    assert!(page.contains("Asked for: by hand. It starts as soon as a node takes it."), "{page}");
    assert!(page.contains("day=2026-11-27 mode=full n=7"), "{page}");

    let (_, tick) = page.split_once("name=\"tick\" value=\"").expect(&page);
    let tick = tick.split('"').next().unwrap();
    let back = send(&server, &session, "/jobs/settle/take-back", &[("tick", tick)]).await;
    assert_eq!(back.status(), 303);
    let job = server.ask("GET", "/api/v1/jobs/settle").header("cookie", &session.0);
    let job: serde_json::Value = job.send().await.unwrap().json().await.unwrap();
    assert!(job["schedule"]["asked"].is_null(), "{job}");
    let gone = send(&server, &session, "/jobs/settle/take-back", &[("tick", tick)]).await;
    assert_eq!(gone.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_day_shows_what_is_due_and_what_its_reader_may_see() {
    let server = server().await;
    let vera = server.token("vera", Role::Viewer).await;
    let page = server.page("/schedule", &vera, "en").await;
    for said in [
        "Settlement",
        " 02:30 +08:00",
        "every 5 s",
        "more than 500 times",
        "· its ticks pass: Off",
        "1 run<",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains("vault") && !page.contains("endless"), "{page}");
    let day = server.page("/schedule?from=2027-01-01", &vera, "zh").await;
    assert!(day.contains("from=2026-12-31") && day.contains("from=2027-01-02"), "{day}");
    assert!(day.contains("结算"), "{day}");
    assert_eq!(server.get("/schedule?from=soon", &vera).await.status(), 400);
    let none = Server::start().await;
    let vera = none.token("vera", Role::Viewer).await;
    assert!(none.page("/schedule", &vera, "en").await.contains("docs/schedules.md"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_says_the_next_tick_and_the_head_how_many_are_due_soon() {
    let server = server().await;
    let li = server.token("li", Role::Operator).await;
    for job in ["settle", "pull"] {
        let path = format!("/api/v1/jobs/{job}/participation");
        let on = server.ask("PUT", &path).bearer_auth(&li).json(&serde_json::json!({"on": true}));
        assert_eq!(on.send().await.unwrap().status(), 200);
    }
    let row = crate::support::wait::until_async("the row says it", async || {
        let page = server.page("/", &li, "en").await;
        let row = super::article(&page, "job-settle").to_owned();
        (row.contains("02:30 +08:00, in ") && page.contains("due in the next hour")).then_some(row)
    })
    .await;
    assert!(row.contains("next ") && row.contains("data-state=\"scheduled\""), "{row}");
}

/// The answer of the API to `li`: its status, and its text.
async fn told(server: &Server, token: &str, path: &str, body: Option<&str>) -> (u16, String) {
    let request = match body {
        Some(body) => server.ask("POST", path).body(body.to_owned()),
        None => server.ask("GET", path),
    };
    let request = request.bearer_auth(token).header("content-type", "application/json");
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_schedule_can_answer_is_refused_in_words_that_fit() {
    let server = server().await;
    let li = server.token("li", Role::Operator).await;
    for from in ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "2500-01-01T00:00:00Z"] {
        let path = format!("/api/v1/jobs/settle/next?from={from}");
        let (status, said) = told(&server, &li, &path, None).await;
        assert!(status == 400 && said.contains("years 1900 to 2399"), "{from}: {status} {said}");
    }
    for (from, first) in
        [("1900-01-02T00:00:00Z", "@1900-01-0"), ("2399-12-30T00:00:00Z", "@2399-12-")]
    {
        let path = format!("/api/v1/jobs/settle/next?from={from}&count=1");
        let (status, said) = told(&server, &li, &path, None).await;
        assert!(status == 200 && said.contains(first), "{from}: {status} {said}");
    }
    let ticks = "/api/v1/jobs/settle/ticks?before=";
    for unknown in ["x", "settle@2026-11-27T02:31%2B08:00[Asia/Shanghai]"] {
        let (status, said) = told(&server, &li, &format!("{ticks}{unknown}"), None).await;
        assert!(status == 400 && said.contains("parameter before"), "{status} {said}");
    }
    let known = format!("{ticks}settle@2026-11-27T02:30+08:00[Asia/Shanghai]");
    assert_eq!(told(&server, &li, &known, None).await.0, 200, "it is of the schedule");

    let runs = "/api/v1/jobs/settle/runs";
    for (body, said) in [
        (r#"{"params":{"n":12}}"#, "12 is more than 9"),
        (r#"{"params":{"n":[3]}}"#, "values are texts: write"),
        (r#"{"params":{"n":"3"},"bogus":1}"#, "not as expected (line 1, column "),
        (r#"{"params":{"n":3},"tick":" far@x"}"#, r#""detail":"far@x is no tick of settle"#),
    ] {
        let (status, text) = told(&server, &li, runs, Some(body)).await;
        assert!((status == 400 || status == 404) && text.contains(said), "{body}: {text}");
    }
    let (status, text) = told(&server, &li, runs, Some(r#"{"params":{"n":3}}"#)).await;
    assert!(status == 202 && text.contains("settle@hand:"), "{status} {text}");
}
