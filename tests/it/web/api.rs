//! The calls about jobs, nodes and the audit: who may what, and what is said when it is not so.

use reqwest::Response;
use serde_json::{Value, json};
use soloist::store::accounts::Role;

use super::{Server, problem};

async fn put(server: &Server, path: &str, token: &str, body: &str) -> Response {
    server.ask("PUT", path).bearer_auth(token).body(body.to_owned()).send().await.unwrap()
}

const SWITCH: &str = "/api/v1/jobs/outbound/participation";

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_is_answered_with_the_job_as_it_is_then() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    for on in [true, false, true] {
        let body = json!({"on": on, "reason": "stock has arrived"}).to_string();
        let response = put(&server, SWITCH, &token, &body).await;
        assert_eq!(response.status(), 200);
        let job: Value = response.json().await.unwrap();
        assert_eq!((&job["name"], &job["wanted"]), (&json!("outbound"), &json!(on)));
        assert_eq!(job["participants"].as_array().unwrap().len(), usize::from(on));
    }
    let audit: Value = server.get("/api/v1/audit?limit=2", &token).await.json().await.unwrap();
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["who"], "li");
    assert_eq!(entries[0]["act"], "participation.on");
    assert_eq!(entries[0]["target"], "outbound");
    assert_eq!(entries[0]["reason"], "stock has arrived");
    assert_eq!(entries[0]["from"], "127.0.0.1");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operators_of_a_job_switch_it_and_only_admins_for_others() {
    let server = Server::start().await;
    let viewer = server.token("vera", Role::Viewer).await;
    let other = server.token("wang", Role::Operator).await;
    let admin = server.token("ada", Role::Admin).await;
    server.user("li", Role::Operator).await;
    let inbound = "/api/v1/jobs/inbound/participation";
    let on = r#"{"on":true}"#;
    assert_eq!(problem(put(&server, SWITCH, &viewer, on).await).await.0, 403);
    let (status, detail) = problem(put(&server, inbound, &other, on).await).await;
    assert_eq!(status, 403);
    assert!(detail.contains("not among the operators of inbound"), "{detail}");
    let for_li = r#"{"on":true,"user":"li"}"#;
    assert_eq!(problem(put(&server, SWITCH, &other, for_li).await).await.0, 403);
    let job: Value = put(&server, inbound, &admin, for_li).await.json().await.unwrap();
    assert_eq!(job["participants"][0]["user"], "li");
    let nobody = put(&server, SWITCH, &admin, r#"{"on":true,"user":"nobody"}"#).await;
    assert_eq!(problem(nobody).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_refused_with_the_place_and_harms_nothing() {
    let server = Server::start().await;
    let token = server.token("li", Role::Admin).await;
    for (body, status, says) in [
        ("", 400, "the body is empty"),
        ("{}", 400, "missing field `on`"),
        ("{", 400, "line 1, column 1"),
        ("nonsense", 400, "line 1"),
        (r#"{"on":"yes"}"#, 400, "field on"),
        (r#"{"on":1}"#, 400, "field on"),
        (r#"{"on":true,"colour":"red"}"#, 400, "unknown field `colour`"),
        (r#"{"on":true,"user":"../etc"}"#, 400, "not a valid name"),
        (r#"[true]"#, 400, "line 1"),
        ("\u{feff}{}", 400, "line 1"),
    ] {
        let (got, detail) = problem(put(&server, SWITCH, &token, body).await).await;
        assert_eq!(got, status, "{body}: {detail}");
        assert!(detail.contains(says), "{body}: {detail}");
    }
    let long = json!({"on": true, "reason": "x".repeat(501)}).to_string();
    assert_eq!(problem(put(&server, SWITCH, &token, &long).await).await.0, 400);
    let huge = json!({"on": true, "reason": "x".repeat(70_000)}).to_string();
    assert_eq!(problem(put(&server, SWITCH, &token, &huge).await).await.0, 413);
    let hold = "/api/v1/jobs/outbound/hold";
    assert_eq!(problem(put(&server, hold, &token, r#"{"reason":"  "}"#).await).await.0, 400);
    for path in [
        "/api/v1/jobs/nowhere",
        "/api/v1/jobs/nowhere/runs",
        "/api/v1/jobs/..%2foutbound",
        "/api/v1/jobs/OUTBOUND",
    ] {
        assert_eq!(problem(server.get(path, &token).await).await.0, 404, "{path}");
    }
    for path in [
        "/api/v1/jobs/outbound/runs?limit=many",
        "/api/v1/jobs/outbound/runs?colour=red",
        "/api/v1/jobs/outbound/log?after=-1",
        "/api/v1/jobs/outbound/timeline?from=yesterday",
        "/api/v1/audit?before=x",
    ] {
        assert_eq!(problem(server.get(path, &token).await).await.0, 400, "{path}");
    }
    let job: Value = server.get("/api/v1/jobs/outbound", &token).await.json().await.unwrap();
    assert_eq!((&job["wanted"], &job["version"]), (&json!(false), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_and_its_end_are_written_and_audited_and_a_move_that_cannot_be_is_refused() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let hold = "/api/v1/jobs/outbound/hold";
    let held = put(&server, hold, &token, r#"{"reason":"stock-taking"}"#).await;
    let job: Value = held.json().await.unwrap();
    assert_eq!(job["state"], "held");
    let resumed = server.ask("DELETE", hold).bearer_auth(&token).send().await.unwrap();
    assert_eq!(resumed.json::<Value>().await.unwrap()["state"], "off");
    let moved = "/api/v1/jobs/outbound/move";
    let response = server.ask("POST", moved).bearer_auth(&token).send().await.unwrap();
    let refused = problem(response).await;
    assert_eq!(refused.0, 409, "a job that nobody wants cannot be moved: {refused:?}");
    let nowhere = server.ask("POST", moved).bearer_auth(&token).body(r#"{"to":"node-z"}"#);
    assert_eq!(problem(nowhere.send().await.unwrap()).await.0, 400);
    let nodes = server.ask("PUT", "/api/v1/nodes/node-z/drain").bearer_auth(&token);
    assert_eq!(problem(nodes.send().await.unwrap()).await.0, 404);
    let audit: Value =
        server.get("/api/v1/audit?target=outbound", &token).await.json().await.unwrap();
    let acts: Vec<&str> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["act"].as_str().unwrap())
        .collect();
    assert_eq!(acts, ["job.resume", "job.hold"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn titles_follow_the_language_asked_for() {
    let server = Server::start().await;
    let token = server.token("li", Role::Viewer).await;
    for (asked, title) in [("zh-CN,zh;q=0.9,en;q=0.8", "出库任务"), ("de", "Outbound shipping")]
    {
        let request = server.ask("GET", "/api/v1/jobs").bearer_auth(&token);
        let answer: Value =
            request.header("accept-language", asked).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["jobs"][0]["title"], title);
        assert_eq!(answer["jobs"].as_array().unwrap().len(), 2);
    }
    for path in ["runs", "log", "timeline"] {
        let path = format!("/api/v1/jobs/outbound/{path}");
        assert_eq!(server.get(&path, &token).await.status(), 200, "{path}");
    }
}
