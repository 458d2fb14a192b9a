//! Nothing tells what is hidden from what never was: every address with a name in it, each role, well and badly formed bodies; and the past
//! of a hidden job stays hidden when the job is in no configuration any more.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use soloist::config::{Alerting, Config};
use soloist::domain::alert::{Rule, Subject, When};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, NodeName, Owner, RotationName};
use soloist::domain::time::StoreTime;
use soloist::store::accounts::Role;
use soloist::store::alerts::{Alerts as _, Incident, Noted, Told};
use soloist::store::hidden::HiddenNames as _;
use soloist::store::journal::{AuditFilter, Journal as _};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _};
use soloist::web::named::{Named, of};
use soloist::web::routes::ROUTES;

use super::live::{connect, hear_type, say};
use super::{On, Server, job};
use crate::support::wait::until_async;

const JOB: &str = "vault-secret";
/// The job takes its turns here.
const OWN: &str = "treasury";
/// A type of this one has the job's name; the job does not know of it.
const NAMED: &str = "side-entrance";
const ALERT: &str = "vault-alarm";
/// A rotation and a lease of programs, which are for all.
const OPEN: &str = "open-road";

fn hiding(config: &mut Config) {
    let mut hidden = job(JOB);
    hidden.viewers = vec!["li".to_owned()];
    hidden.title.en = JOB.to_owned();
    hidden.rotation = Some(RotationName::new(OWN).unwrap());
    config.jobs.push(hidden);
    let rule = |name: &str, jobs: &[&str]| Rule {
        name: name.to_owned(),
        when: When::GivenUp,
        lasting: Duration::from_secs(30),
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
        to: Vec::new(),
    };
    let rules = vec![rule(ALERT, &[JOB]), rule("everything", &["*"])];
    config.alerting = Arc::new(Alerting { rules, ..Alerting::default() });
}

/// The same without the job and the alert about it.
fn hiding_no_more(config: &mut Config) {
    hiding(config);
    config.jobs.retain(|job| job.name.as_str() != JOB);
    let rules = config.alerting.rules.iter().filter(|rule| rule.name != ALERT);
    let rules = rules.cloned().collect();
    config.alerting = Arc::new(Alerting { rules, ..Alerting::default() });
}

/// A server with all of that, and somebody who has the turn.
async fn server(on: On) -> (Server, String) {
    let server = Server::on_with(on, hiding).await;
    let admin = server.token("ada", Role::Admin).await;
    for rotation in [OWN, NAMED] {
        let path = format!("/api/v1/rotations/{rotation}");
        let types = json!({"types": [{"name": JOB}, {"name": "orders"}], "lease_ms": 3_600_000});
        let put = server.ask("PUT", &path).bearer_auth(&admin).json(&types);
        assert_eq!(put.send().await.unwrap().status(), 200);
        let ask = json!({"type": "orders", "worker": "w", "request_id": "r"});
        let take = server.ask("POST", &format!("{path}/turns")).bearer_auth(&admin).json(&ask);
        assert_eq!(take.send().await.unwrap().status(), 200);
    }
    (server, admin)
}

/// Everything that could have been changed.
async fn all_of_it(server: &Server, admin: &str) -> String {
    let mut whole = String::new();
    for path in [
        format!("/api/v1/jobs/{JOB}"),
        format!("/api/v1/rotations/{OWN}"),
        format!("/api/v1/rotations/{NAMED}"),
        "/api/v1/alerts".to_owned(),
    ] {
        let response = server.get(&path, admin).await;
        assert_eq!(response.status(), 200, "{path}");
        let mut seen: Value = response.json().await.unwrap();
        for clock in ["now", "earliest_at", "why"] {
            seen.as_object_mut().unwrap().remove(clock);
        }
        let types = seen["types"].as_array_mut().into_iter().flatten();
        types.for_each(|kind| drop(kind.as_object_mut().unwrap().remove("earliest_at")));
        whole += &format!("{path}: {seen}\n");
    }
    whole
}

/// An answer without what differs between any two: figures, and the name that was asked for.
fn plain(text: &str, name: &str) -> String {
    let text = text.replace(name, "NAME");
    text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
}

/// Bodies for any address: none, bad ones, and ones that fit some.
fn bodies(page: bool) -> Vec<(&'static str, String)> {
    let form = "application/x-www-form-urlencoded";
    if page {
        let types = "type-0=orders&min-gap=1s&turn-lease=30s";
        let said = "on=true&reason=x&lasting=1h&to=node-a";
        return vec![(form, format!("confirm=yes&{said}&{types}")), (form, String::new())];
    }
    let fitting = [
        json!({"on": true}),
        json!({"reason": "x"}),
        json!({"for_ms": 60_000}),
        json!({"type": JOB, "worker": "w", "request_id": "r"}),
        json!({"type": "nosuchtype", "worker": "w", "request_id": "r"}),
        json!({"token": 1, "outcome": "done"}),
        json!({"secret": "1.5000.p.5f2a90c3d1e84b7796d03ac8e1f7b264"}),
        json!({}),
    ];
    let texts = fitting.iter().map(Value::to_string).chain([String::new(), "{".to_owned()]);
    texts.map(|text| ("application/json", text)).collect()
}

/// Asks at every address that names a job, a rotation, an alert or a lease, each of `callers`: what is hidden answers as what never was.
/// `hidden` says the names that are hidden, by what the place names. Returns how many answers were compared.
async fn walk(
    server: &Server,
    callers: &[String],
    hidden: impl Fn(Named) -> &'static [&'static str],
) -> usize {
    let mut compared = 0;
    for route in ROUTES {
        let Some((place, named)) = of(route.path).find(|(_, named)| {
            matches!(named, Some(Named::Job | Named::Rotation | Named::Alert | Named::Lease) | None)
        }) else {
            continue;
        };
        let never = match named {
            Some(Named::Job | Named::Lease) => "nothing-here",
            Some(Named::Alert) => "never-alarm",
            Some(Named::Rotation) => "never-was",
            other => panic!("{}: {other:?}", route.path),
        };
        let hidden = named.map(&hidden).unwrap_or_default();
        let at = |name: &str| {
            let path = route.path.replace(&format!("{{{place}}}"), name);
            path.replace("{turn}", "1.5f2a90c3d1e84b7796d03ac8e1f7b264")
        };
        let page = !route.path.starts_with("/api/");
        let bodies = match route.method == "GET" {
            true => vec![("application/json", String::new())],
            false => bodies(page),
        };
        // A lease of a name that never was can be had, that of a hidden job cannot; docs/security.md says what the answers tell.
        let grants = route.path.starts_with("/api/v1/leases/{name}");
        // To put a rotation that never was is to make it.
        let makes = route.method == "PUT" && matches!(named, Some(Named::Rotation));
        for (nth, token) in callers.iter().enumerate() {
            for (kind, body) in &bodies {
                let ask = async |name: &str| {
                    let request = server.ask(route.method.as_str(), &at(name)).bearer_auth(token);
                    let request = request.header("content-type", *kind).body(body.clone());
                    let response = request.send().await.unwrap();
                    let status = response.status().as_u16();
                    (status, plain(&response.text().await.unwrap(), name))
                };
                for name in hidden {
                    let line = format!("{} {} {body} as {nth}", route.method, at(name));
                    let of_hidden = ask(name).await;
                    if grants || makes {
                        assert!([400, 403, 404].contains(&of_hidden.0), "{line}: {of_hidden:?}");
                        continue;
                    }
                    assert_eq!(of_hidden, ask(never).await, "{line}");
                    compared += 1;
                }
            }
        }
    }
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn at_every_address_each_role_gets_for_what_is_hidden_the_answer_of_a_name_that_never_was() {
    let (server, admin) = server(On::Redis).await;
    let before = all_of_it(&server, &admin).await;
    let callers = [
        server.token("olga", Role::Operator).await,
        server.token("carl", Role::Collector).await,
        server.token("vera", Role::Viewer).await,
    ];
    let compared = walk(&server, &callers, |named| match named {
        Named::Rotation => &[OWN, NAMED],
        Named::Alert => &[ALERT],
        _ => &[JOB],
    })
    .await;
    assert!(compared > 300, "only {compared} were compared");
    // Another spelling of the name is the same name.
    let spelled = async |name: &str, path: &str| {
        let response = server.ask("DELETE", path).bearer_auth(&callers[0]).send().await.unwrap();
        let status = response.status().as_u16();
        (status, plain(&response.text().await.unwrap(), name))
    };
    let of_hidden = spelled(OWN, "/api/v1/rotations/tre%61sury?force=true").await;
    assert_eq!(of_hidden.0, 404);
    assert_eq!(of_hidden, spelled("never-was", "/api/v1/rotations/never%2Dwas?force=true").await);
    // What forms name in their bodies.
    for (path, form) in [
        ("/rotations/remove", "name=NAME&confirm=yes"),
        ("/rotations/remove", "name=NAME"),
        ("/bulk", "act=off&job=NAME&confirm=yes"),
    ] {
        for (name, never) in [(OWN, "never-was"), (NAMED, "never-was"), (JOB, "never-was")] {
            let ask = async |name: &str| {
                let form = form.replace("NAME", name);
                let request = server.ask("POST", path).bearer_auth(&callers[0]);
                let request = request.header("content-type", "application/x-www-form-urlencoded");
                let response = request.body(form).send().await.unwrap();
                let status = response.status().as_u16();
                (status, plain(&response.text().await.unwrap(), name))
            };
            let of_hidden = ask(name).await;
            assert_eq!(of_hidden, ask(never).await, "{path} {name}");
            assert_eq!(of_hidden.0, 404, "{path} {name}");
        }
    }
    for path in ["/api/v1/rotations", "/rotations", "/alerts", "/api/v1/alerts", "/api/v1/audit"] {
        for token in [&callers[0], &callers[2]] {
            let text = server.get(path, token).await.text().await.unwrap();
            for name in [JOB, OWN, NAMED, ALERT] {
                assert!(!text.contains(name), "{path}: {text}");
            }
        }
    }
    assert_eq!(all_of_it(&server, &admin).await, before, "nothing was changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_puts_or_removes_a_rotation_operates_the_jobs_that_take_turns_in_it() {
    let server = Server::with(|config| {
        // All may see it, li operates it.
        config.jobs[1].rotation = Some(RotationName::new("supplier").unwrap());
        hiding(config);
    })
    .await;
    let ask = async |token: &str, method: &str, rotation: &str, kind: &str| {
        let path = format!("/api/v1/rotations/{rotation}");
        let request = server.ask(method, &path).bearer_auth(token);
        let response = request.json(&json!({"types": [{"name": kind}]})).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    };
    let olga = server.token("olga", Role::Operator).await;
    let li = server.token("li", Role::Operator).await;
    assert_eq!(ask(&olga, "PUT", "supplier", "inbound").await.0, 403);
    assert_eq!(ask(&li, "PUT", "supplier", "inbound").await.0, 200);
    let (status, why) = ask(&olga, "DELETE", "supplier", "inbound").await;
    assert!(status == 403 && why.contains("not among the operators of inbound"), "{why}");
    assert_eq!(server.get("/api/v1/rotations/supplier", &olga).await.status(), 200);
    assert_eq!(ask(&li, "DELETE", "supplier", "inbound").await.0, 200);
    // No jobs are members of this one; but no type of it may have the name of what olga may not see.
    assert_eq!(ask(&olga, "PUT", "free", JOB).await.0, 403);
    assert_eq!(ask(&olga, "PUT", "free", "orders").await.0, 200);
    assert_eq!(ask(&olga, "DELETE", "free", "orders").await.0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_past_of_a_hidden_job_stays_hidden_when_no_configuration_has_the_job_any_more() {
    let (before, admin) = server(On::Redis).await;
    let put = async |path: String, body: Value| {
        let request = before.ask("PUT", &path).bearer_auth(&admin).json(&body);
        assert_eq!(request.send().await.unwrap().status(), 200, "{path}");
    };
    put(format!("/api/v1/jobs/{JOB}/participation"), json!({"on": true})).await;
    put(format!("/api/v1/jobs/{JOB}/hold"), json!({"reason": "Hush"})).await;
    put("/api/v1/jobs/outbound/hold".to_owned(), json!({"reason": "Loud"})).await;
    put(format!("/api/v1/alerts/{ALERT}/mute"), json!({"for_ms": 60_000})).await;
    for rotation in [OWN, NAMED] {
        let path = format!("/api/v1/rotations/{rotation}?force=true");
        let removed = before.ask("DELETE", &path).bearer_auth(&admin).send().await.unwrap();
        assert_eq!(removed.status(), 200);
    }
    let told = |about: &str| Told {
        id: format!("msg_{about}"),
        at: StoreTime(1_777_852_800_000),
        en: format!("{about} gave up"),
        zh: format!("{about} 放弃了"),
    };
    let incident = |about: &str, over: bool| Incident {
        id: format!("{about}-{over}"),
        alert: "everything".to_owned(),
        when: When::GivenUp,
        subject: Subject { job: Some(JobName::new(about).unwrap()), ..Subject::default() },
        since: StoreTime(1_777_852_800_000),
        print: String::new(),
        url: String::new(),
        to: Vec::new(),
        begin: told(about),
        end: over.then(|| told(about)),
        sent: BTreeMap::new(),
    };
    let sender = NodeName::new("node-a").unwrap();
    let store = before.store();
    assert!(store.keep_sending(&sender, "boot", Duration::from_secs(600)).await.unwrap());
    let incidents = vec![incident(JOB, false), incident("outbound", false)];
    let noted = Noted { incidents, past: vec![incident(JOB, true)], ..Noted::default() };
    assert!(store.note_alerts(&sender, "boot", &noted).await.unwrap());

    // A node that starts now has never known the job.
    let server = before.beside_with(hiding_no_more).await;
    let readers =
        [server.token("olga", Role::Operator).await, server.token("vera", Role::Viewer).await];
    let mut looked = 0;
    for route in ROUTES.iter().filter(|route| route.method == "GET") {
        if ["/live", "/api/v1/live"].contains(&route.path) || route.path.contains("{path") {
            continue;
        }
        for token in &readers {
            let path = super::access::concrete(route.path);
            let text = server.get(&path, token).await.text().await.unwrap();
            for name in [JOB, OWN, NAMED, ALERT, "Hush"] {
                assert!(!text.contains(name), "{path} names {name}: {text}");
            }
            looked += 1;
        }
    }
    assert!(looked > 60, "only {looked}");
    for path in [format!("target={JOB}"), "act=rotation.*".to_owned(), "format=ndjson".to_owned()] {
        for token in &readers {
            let text =
                server.get(&format!("/api/v1/audit?{path}"), token).await.text().await.unwrap();
            assert!(!text.contains(JOB) && !text.contains(OWN), "{path}: {text}");
        }
    }
    // What is for all is still for all, and admins see the rest.
    let seen = server.get("/api/v1/audit", &readers[1]).await.text().await.unwrap();
    assert!(seen.contains("Loud") && seen.contains("outbound"), "{seen}");
    let seen = server.get("/api/v1/alerts", &readers[1]).await.text().await.unwrap();
    assert!(seen.contains("\"job\":\"outbound\""), "{seen}");
    let whole = server.get("/api/v1/audit", &admin).await.text().await.unwrap();
    for name in [JOB, OWN, NAMED, ALERT, "Hush"] {
        assert!(whole.contains(name), "{name}: {whole}");
    }
    let alerts = server.get("/api/v1/alerts", &admin).await.text().await.unwrap();
    assert!(alerts.contains(&format!("{JOB} gave up")), "{alerts}");
    let all = server.store().audit_page(&AuditFilter::default(), None, 500).await.unwrap();
    assert!(all.entries.len() > 5);
}

on_every_store! {
    what_is_named_after_a_hidden_job_stays_hidden_when_no_configuration_has_the_job_any_more
}

async fn what_is_named_after_a_hidden_job_stays_hidden_when_no_configuration_has_the_job_any_more(
    on: On,
) {
    let (before, admin) = server(on).await;
    let put = async |server: &Server, token: &str, rotation: &str, kind: &str| {
        let request = server.ask("PUT", &format!("/api/v1/rotations/{rotation}"));
        let types = json!({"types": [{"name": kind}, {"name": "orders"}]});
        request.bearer_auth(token).json(&types).send().await.unwrap().status().as_u16()
    };
    assert_eq!(put(&before, &admin, OPEN, "stock").await, 200);
    // The program of an external job holds its lease when the node ends, and another program has one of its own.
    for name in [JOB, OPEN] {
        let ask = Acquire {
            job: JobName::new(name).unwrap(),
            owner: Owner(format!("{}{name}", Owner::OF_PROGRAMS)),
            node: NodeName::new("shop").unwrap(),
            ttl: Duration::from_secs(600),
            condition: Condition::None,
            seen: Token(0),
        };
        let acquired = before.store().acquire(&ask).await.unwrap();
        assert!(matches!(acquired, Acquired::Granted { .. }), "{acquired:?}");
    }
    until_async("all nodes remember the name", async || {
        let names = before.store().hidden_names().await.unwrap();
        (names == [JOB.to_owned()].into()).then_some(())
    })
    .await;

    // A node that starts now has never known the job. Programs of an admin take turns there.
    let server = before.beside_with(hiding_no_more).await;
    for rotation in [OWN, NAMED, OPEN] {
        let turns = format!("/api/v1/rotations/{rotation}/turns");
        let ask = json!({"type": "orders", "worker": "w", "request_id": "r"});
        let take = server.ask("POST", &turns).bearer_auth(&admin).json(&ask).send().await.unwrap();
        let turn: Value = take.json().await.unwrap();
        let path = format!("{turns}/{}/pass", turn["turn"].as_str().unwrap());
        let end = json!({"token": turn["token"], "outcome": "done"});
        let pass = server.ask("POST", &path).bearer_auth(&admin).json(&end).send().await.unwrap();
        assert_eq!(pass.status(), 200, "{rotation}");
    }
    let callers = [
        server.token("olga", Role::Operator).await,
        server.token("carl", Role::Collector).await,
        server.token("vera", Role::Viewer).await,
    ];
    let compared = walk(&server, &callers, |named| match named {
        Named::Rotation => &[OWN, NAMED],
        Named::Job => &[JOB],
        Named::Alert => &[ALERT],
        _ => &[],
    })
    .await;
    assert!(compared > 200, "only {compared} were compared");
    assert_eq!(put(&server, &callers[0], "new-one", JOB).await, 403, "as while the job was there");

    let lists =
        ["format=csv", "format=ndjson", "act=rotation.*"].map(|of| format!("/api/v1/audit?{of}"));
    let routes = ROUTES.iter().filter(|route| {
        let endless = ["/live", "/api/v1/live"].contains(&route.path);
        route.method == "GET" && !endless && !route.path.contains("{path")
    });
    let mut paths: Vec<String> = routes.map(|route| super::access::concrete(route.path)).collect();
    paths.extend(lists.clone());
    for token in [&callers[0], &callers[2]] {
        for path in &paths {
            let text = server.get(path, token).await.text().await.unwrap();
            for name in [JOB, OWN, NAMED] {
                assert!(!text.contains(name), "{path} names {name}: {text}");
            }
        }
        let told = rotations_told(&server, token).await;
        assert!(told.contains(OPEN), "{told}");
        assert!(!told.contains(JOB) && !told.contains(OWN) && !told.contains(NAMED), "{told}");
    }
    let local = server.ask("GET", "/metrics").send().await.unwrap().text().await.unwrap();
    assert!(local.contains(OPEN) && !local.contains(OWN) && !local.contains(NAMED), "{local}");
    // What is for all is still for all, and admins see the rest.
    let pages = ["/rotations", "/audit?act=rotation.*", "/nodes"];
    let others = ["/api/v1/rotations", "/metrics", "/api/v1/leases"];
    for path in pages.into_iter().chain(others).chain(lists.iter().map(String::as_str)) {
        for token in [&callers[0], &callers[2], &admin] {
            let text = server.get(path, token).await.text().await.unwrap();
            assert!(text.contains(OPEN), "{path}: {text}");
        }
        let text = server.get(path, &admin).await.text().await.unwrap();
        let names: &[&str] = match path {
            "/api/v1/leases" | "/nodes" => &[JOB],
            _ => &[OWN, NAMED],
        };
        assert!(names.iter().all(|name| text.contains(name)), "{path}: {text}");
    }
    for rotation in [OWN, NAMED] {
        let path = format!("/api/v1/rotations/{rotation}");
        assert_eq!(server.get(&path, &admin).await.status(), 200, "{rotation}");
        let path = format!("/rotations/ring/{rotation}");
        assert_eq!(server.get(&path, &admin).await.status(), 200, "{rotation}");
    }
    assert!(rotations_told(&server, &admin).await.contains(OWN));
    // Without the type, it is a rotation as any other.
    assert_eq!(put(&server, &admin, NAMED, "stock").await, 200);
    let path = format!("/api/v1/rotations/{NAMED}");
    assert_eq!(server.get(&path, &callers[2]).await.status(), 200);
}

/// The first frame about rotations on a socket.
async fn rotations_told(server: &Server, token: &str) -> String {
    let mut socket = connect(server, token).await;
    say(&mut socket, json!({"type": "follow", "rotations": true})).await;
    hear_type(&mut socket, "rotations").await.to_string()
}
