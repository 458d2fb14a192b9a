//! No act of a client makes a holder that the store did not grant: invented, old, foreign, cut and rewritten secrets of leases, turns, claims
//! and tasks, at every call that takes one, while what they name is free, held, lapsed and forgotten.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::config::{Config, JobConfig, Repeat, Runner};
use soloist::domain::lease::Timing;
use soloist::secrets::sha256_hex;
use soloist::store::accounts::{Accounts as _, Changes, Role};
use soloist::store::dispatch::ClaimOwner;
use soloist::store::rotation::Rotations as _;

use super::{On, Server, job};
use crate::support::api::Api;
use crate::support::wait::until_async;

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

fn external(name: &str) -> JobConfig {
    JobConfig {
        runner: Runner::External,
        command: Vec::new(),
        timing: Timing::from_ttl(Duration::from_secs(3)).unwrap(),
        repeat: Repeat::After(Duration::from_secs(3_600)),
        ..job(name)
    }
}

fn jobs(config: &mut Config) {
    let mut others = external("others");
    others.operators = vec!["ada".to_owned()];
    let mut vault = job("vault");
    (vault.operators, vault.viewers) = (vec!["ada".to_owned()], vec!["ada".to_owned()]);
    config.jobs.extend([external("thread"), others, vault]);
}

async fn post(api: &Api, path: &str, body: Value) -> (StatusCode, Value) {
    api.call(Method::POST, path, Some(body)).await
}

async fn act(api: &Api, name: &str, act: &str, secret: &str) -> (StatusCode, Value) {
    post(api, &format!("/api/v1/leases/{name}/{act}"), json!({ "secret": secret })).await
}

async fn take(api: &Api, name: &str, request: &str, ttl_ms: u64) -> Value {
    let body = json!({"holder": "shop-a", "request_id": request, "ttl_ms": ttl_ms});
    let (status, answer) = post(api, &format!("/api/v1/leases/{name}"), body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

fn secret(lease: &Value) -> String {
    lease["secret"].as_str().unwrap_or_else(|| panic!("{lease}")).to_owned()
}

/// Who holds what, under which token.
async fn held(api: &Api) -> Vec<[String; 3]> {
    let answer = api.get("/api/v1/leases").await;
    let leases = answer["leases"].as_array().unwrap().iter();
    leases.map(|one| ["name", "holder", "token"].map(|part| one[part].to_string())).collect()
}

/// A text like `like`, which is not it: digits and parts changed, cut, doubled, taken from `others`, and numbers made larger and smaller.
fn forge(dice: &mut Dice, like: &str, others: &[String]) -> String {
    let parts: Vec<&str> = like.split('.').collect();
    let with = |at: usize, part: String| {
        let mut new: Vec<String> = parts.iter().map(|&part| part.to_owned()).collect();
        new[at] = part;
        new.join(".")
    };
    let hex = |dice: &mut Dice| sha256_hex(&dice.roll(1 << 20).to_string())[..32].to_owned();
    let number: u64 = parts[0].parse().unwrap();
    match dice.roll(12) {
        0 => with(0, (number + 1 + dice.roll(5) as u64).to_string()),
        1 => with(0, (number - 1 - dice.roll(5) as u64).to_string()),
        2 => with(0, ((1 << 53) - 1 - dice.roll(9) as u64).to_string()),
        3 => with(parts.len() - 1, hex(dice)),
        4 => like[..1 + dice.roll(like.len() - 1)].to_owned(),
        5 => format!("{like}{}", ["0", ".", " ", ".p"][dice.roll(4)]),
        6 => {
            let at = dice.roll(like.len());
            let put = ["0", "7", "a", "f", ".", "p", "j"][dice.roll(7)];
            format!("{}{put}{}", &like[..at], &like[at + 1..])
        }
        7 => like.to_uppercase(),
        8 if parts.len() == 4 => {
            with(1, ["1000", "600000", "5000", "10000"][dice.roll(4)].to_owned())
        }
        9 if parts.len() == 4 => with(2, if parts[2] == "p" { "j" } else { "p" }.to_owned()),
        10 => {
            let other = &others[dice.roll(others.len())];
            with(parts.len() - 1, other.rsplit('.').next().unwrap().to_owned())
        }
        _ => others[dice.roll(others.len())].clone(),
    }
}

on_every_store! {
    an_invented_secret_makes_no_holder_of_any_name
    no_secret_but_the_granted_one_keeps_or_ends_a_lease
    a_renewal_asks_who_may_as_a_grant_does_and_a_release_asks_for_the_secret_alone
    a_turn_is_kept_and_passed_by_who_took_it_alone
    who_reads_the_store_keeps_and_ends_nothing_of_others
    a_claim_and_its_tasks_are_kept_and_ended_by_who_claimed_them_alone
    a_token_as_large_as_can_be_poisons_nothing
}

async fn an_invented_secret_makes_no_holder_of_any_name(on: On) {
    let server = Server::on_with(on, jobs).await;
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    let olga = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    let ada = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    for kind in ["p", "j"] {
        let invented = format!("9007199254740891.600000.{kind}.0123456789abcdef0123456789abcdef");
        // A command's, an external one that is off, others', a hidden one, and a name of nobody.
        for (name, of_carl, of_olga) in [
            ("outbound", 409, 409),
            ("thread", 409, 409),
            ("others", 409, 403),
            ("vault", 404, 404),
            ("stock", 409, 409),
        ] {
            for (api, expected) in [(&carl, of_carl), (&olga, of_olga)] {
                let (status, answer) = act(api, name, "renew", &invented).await;
                assert_eq!(status, expected, "{name}: {answer}");
                let asked = json!({"holder": "shop-a", "request_id": "1"});
                if !["thread", "stock", "others"].contains(&name) {
                    let (status, _) = post(api, &format!("/api/v1/leases/{name}"), asked).await;
                    assert_eq!(status, expected, "{name}: as a request for it");
                }
                let (status, answer) = act(api, name, "release", &invented).await;
                let changed = !["thread", "stock", "others"].contains(&name) && status == 200;
                assert!(!changed, "{name}: {answer}");
            }
        }
        assert_eq!(held(&ada).await, Vec::<[String; 3]>::new(), "nothing is held");
    }
    let runs = ada.get("/api/v1/jobs/thread/runs").await;
    assert_eq!(runs["runs"], json!([]));
    let lease = take(&carl, "stock", "1", 10_000).await;
    assert!(lease["token"].as_u64().unwrap() < 1 << 52, "{lease}");
}

async fn no_secret_but_the_granted_one_keeps_or_ends_a_lease(on: On) {
    const TRIES: usize = 120;
    let server = Server::on_with(on, jobs).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    let mallory = Api::new(&server.url(""), &server.token("mallory", Role::Collector).await);
    api.switch("thread", true).await;
    let mut dice = Dice(0x0dd_ba11);
    let mut others = vec![secret(&take(&mallory, "elsewhere", "1", 60_000).await)];
    for name in ["stock", "thread"] {
        let old = secret(&take(&api, name, "old", 3_000).await);
        let unused = json!({"secret": old, "end": "unused"});
        let path = format!("/api/v1/leases/{name}/release");
        assert_eq!(post(&api, &path, unused).await.0, 200);
        others.push(old);
        let lease = take(&api, name, "1", 3_000).await;
        let granted = secret(&lease);
        let renewing = async || {
            let (status, answer) = act(&api, name, "renew", &granted).await;
            assert_eq!(status, 200, "{name}: the true one keeps it: {answer}");
        };
        // Held.
        let before = held(&api).await;
        for nth in 0..TRIES {
            let forged = forge(&mut dice, &granted, &others);
            if forged == granted {
                continue;
            }
            let call = ["renew", "release"][nth % 2];
            let (status, answer) = act(&mallory, name, call, &forged).await;
            assert_eq!(status, 409, "{name}, {call} {forged}: {answer}");
            if nth % 5 == 0 {
                renewing().await;
            }
        }
        renewing().await;
        assert_eq!(held(&api).await, before, "{name}");
        // Lapsed: the true one is too late as well.
        until_async("it is over", async || (held(&api).await.len() == 1).then_some(())).await;
        let before = held(&api).await;
        for nth in 0..TRIES / 2 {
            let forged = forge(&mut dice, &granted, &others);
            let (status, answer) = act(&mallory, name, "renew", &forged).await;
            assert_eq!(status, 409, "{name}, {forged}: {answer}");
            if nth % 2 == 0 {
                act(&mallory, name, "release", &forged).await;
            }
        }
        assert_eq!(act(&api, name, "renew", &granted).await.0, 409, "it is over");
        assert_eq!(held(&api).await, before, "{name}: no holder appears");
        others.push(granted);
    }
    // Free, and never had.
    let before = held(&api).await;
    for _ in 0..TRIES / 2 {
        let like = others[dice.roll(others.len())].clone();
        let forged = forge(&mut dice, &like, &others);
        assert_eq!(act(&mallory, "virgin", "renew", &forged).await.0, 409, "{forged}");
        act(&mallory, "virgin", "release", &forged).await;
    }
    assert_eq!(held(&api).await, before);
}

async fn a_renewal_asks_who_may_as_a_grant_does_and_a_release_asks_for_the_secret_alone(on: On) {
    let server = Server::on_with(on, jobs).await;
    let olga = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    let ada = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    let bound = server
        .token_that("bob", Role::Collector, |token| token.leases = vec!["mine".parse().unwrap()])
        .await;
    let bound = Api::new(&server.url(""), &bound);
    olga.switch("thread", true).await;
    let (job, own) =
        (take(&olga, "thread", "1", 3_000).await, take(&olga, "stock", "1", 60_000).await);
    assert_eq!(act(&bound, "stock", "renew", &secret(&own)).await.0, 403, "not its name");
    // The role is lost while it works.
    let viewer = Changes { role: Some(Role::Viewer), ..Changes::default() };
    server.store().change_user(&"olga".parse().unwrap(), &viewer).await.unwrap();
    let renewed = until_async("the loss is known", async || {
        let (status, answer) = act(&olga, "stock", "renew", &secret(&own)).await;
        (status != 200).then_some((status, answer))
    })
    .await;
    assert_eq!(renewed.0, 403, "{}", renewed.1);
    let wrong = secret(&own).replace(".60000.", ".60001.");
    assert_eq!(act(&olga, "stock", "release", &wrong).await.0, 409);
    assert_eq!(act(&olga, "stock", "release", &secret(&own)).await.0, 200, "it gives back");
    assert_eq!(act(&olga, "thread", "release", &secret(&job)).await.0, 200);
    assert_eq!(held(&ada).await, Vec::<[String; 3]>::new());
}

async fn a_turn_is_kept_and_passed_by_who_took_it_alone(on: On) {
    const ROTATION: &str = "/api/v1/rotations/supplier";
    let server = Server::on_with(on, jobs).await;
    let ada = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    let text = server.token("mallory", Role::Collector).await;
    let mallory = Api::new(&server.url(""), &text);
    let other = server.beside_with(jobs).await;
    let there = mallory.at(&other.url(""));
    let rules = json!({"types": [{"name": "a"}], "lease_ms": 20_000});
    assert_eq!(ada.call(Method::PUT, ROTATION, Some(rules)).await.0, 200);
    let asked = json!({"type": "a", "worker": "w", "request_id": "1"});
    let (status, turn) = post(&carl, &format!("{ROTATION}/turns"), asked).await;
    assert_eq!(status, 200, "{turn}");
    let (granted, token) = (turn["turn"].as_str().unwrap(), turn["token"].as_u64().unwrap());
    // All that another client can make for its own token.
    let key = sha256_hex(&format!("seals\n{text}"));
    let own = |parts: &[&str]| sha256_hex(&format!("{key}\n{}", parts.join("\n")));
    let mut others =
        vec![format!("{token}.{}", &own(&["turn", "supplier", &token.to_string()])[..32])];
    for request in ["1", "w", ""] {
        let owner = ClaimOwner::of(&key);
        let request = format!("{}{}", owner.as_str(), &own(&["request", request])[..32]);
        let made = own(&["turn", "supplier", &token.to_string(), &request]);
        others.push(format!("{token}.{}", &made[..32]));
    }
    let mut dice = Dice(77);
    for nth in 0..80 {
        let forged = if nth < others.len() {
            others[nth].clone()
        } else {
            forge(&mut dice, granted, &others)
        };
        if forged == granted || forged.contains([' ', '/']) || forged.is_empty() {
            continue;
        }
        let api = if nth % 2 == 0 { &mallory } else { &there };
        let path = format!("{ROTATION}/turns/{forged}");
        let pass = json!({"token": forged.split('.').next().unwrap().parse().unwrap_or(token), "outcome": "done"});
        let answers = [
            post(api, &format!("{path}/extend"), json!({})).await,
            post(api, &format!("{path}/pass"), pass).await,
        ];
        for (status, answer) in answers {
            assert!([400, 404, 409].contains(&status.as_u16()), "{forged}: {status} {answer}");
        }
        let path = format!("{ROTATION}/turns/{granted}");
        for api in [&mallory, &there] {
            assert_eq!(
                post(api, &format!("{path}/extend"), json!({})).await.0,
                409,
                "of another token"
            );
        }
        let (status, kept) = post(&carl, &format!("{path}/extend"), json!({})).await;
        assert_eq!(status, 200, "{kept}");
    }
    let passed = json!({"token": token, "outcome": "done"});
    let at_the_other = carl.at(&other.url(""));
    let path = format!("{ROTATION}/turns/{granted}/pass");
    let (status, answer) = post(&at_the_other, &path, passed).await;
    assert_eq!(status, 200, "its holder passes it at any node: {answer}");
}

/// Hashes of credentials, owners, requests and ids stand in the store, and in each copy of it.
async fn who_reads_the_store_keeps_and_ends_nothing_of_others(on: On) {
    const ROTATION: &str = "/api/v1/rotations/supplier";
    let server = Server::on_with(on, jobs).await;
    let ada = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    let mallory = Api::new(&server.url(""), &server.token("mallory", Role::Collector).await);
    let rules = json!({"types": [{"name": "a"}], "lease_ms": 60_000});
    assert_eq!(ada.call(Method::PUT, ROTATION, Some(rules)).await.0, 200);
    let lease = take(&carl, "mine", "1", 60_000).await;
    let asked = json!({"type": "a", "worker": "w", "request_id": "1"});
    let (status, turn) = post(&carl, &format!("{ROTATION}/turns"), asked).await;
    assert_eq!(status, 200, "{turn}");
    let number = turn["token"].to_string();

    // What the store holds of carl's credential, what mallory knows of her own, and what the program makes of that.
    let known =
        |api: &Api| [sha256_hex(api.token()), sha256_hex(&format!("seals\n{}", api.token()))];
    let [stored, _] = known(&carl);
    let supplier = "supplier".parse().unwrap();
    let views = server.store().rotations(Some(&supplier), 0).await.unwrap();
    let request = views[0].ring.turn.as_ref().unwrap().request.to_string();
    let made = |key: &str, parts: &[&str]| {
        sha256_hex(&format!("{key}\n{}", parts.join("\n")))[..32].to_owned()
    };
    let account = sha256_hex("account\ncarl")[..8].to_owned();
    for key in known(&mallory).iter().chain([&stored, &sha256_hex(&format!("seals\n{stored}"))]) {
        let seal = format!("{account}{}", &made(key, &["lease", "mine", "1"])[..24]);
        let secret = format!("{}.60000.p.{seal}", lease["token"]);
        for what in ["renew", "release"] {
            let (status, answer) = act(&mallory, "mine", what, &secret).await;
            assert_eq!(status, StatusCode::CONFLICT, "{what}: {answer}");
        }
        let forged = format!("{number}.{}", made(key, &["turn", "supplier", &number, &request]));
        for (what, body) in
            [("extend", json!({})), ("pass", json!({"token": turn["token"], "outcome": "done"}))]
        {
            let path = format!("{ROTATION}/turns/{forged}/{what}");
            let (status, answer) = post(&mallory, &path, body).await;
            assert_eq!(status, StatusCode::CONFLICT, "{what}: {answer}");
        }
    }
    // The same request of the same token has the same lease and turn at each node.
    let other = server.beside_with(jobs).await;
    let there = carl.at(&other.url(""));
    assert_eq!(secret(&take(&there, "mine", "1", 60_000).await), secret(&lease));
    let path = format!("{ROTATION}/turns/{}/extend", turn["turn"].as_str().unwrap());
    let (status, kept) = post(&carl, &path, json!({})).await;
    assert_eq!(status, 200, "{kept}");
}

async fn a_claim_and_its_tasks_are_kept_and_ended_by_who_claimed_them_alone(on: On) {
    let server = Server::on_with(on, jobs).await;
    let ada = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    let mallory = Api::new(&server.url(""), &server.token("mallory", Role::Collector).await);
    let rules = json!({"lease_ms": 60_000});
    assert!(ada.call(Method::PUT, "/api/v1/sources/shop", Some(rules)).await.0.is_success());
    let tasks = json!({"tasks": [{"key": "one", "source": "shop", "payload": {}}, {"key": "two", "source": "shop", "payload": {}}]});
    assert!(post(&ada, "/api/v1/tasks", tasks).await.0.is_success());
    let ask = |request: &str| json!({"collector": "c", "request_id": request, "max": 1, "sources": ["shop"]});
    let (_, mine) = post(&mallory, "/api/v1/claims", ask("1")).await;
    let (_, theirs) = post(&carl, "/api/v1/claims", ask("1")).await;
    let (claim, own) = (theirs["claim"].as_str().unwrap(), mine["claim"].as_str().unwrap());
    assert_ne!(claim, own, "the same request of another token is another");
    let (id, token) = (&theirs["tasks"][0]["id"], theirs["tasks"][0]["token"].as_u64().unwrap());
    let state = async || ada.get(&format!("/api/v1/tasks/{}", id.as_str().unwrap())).await;
    let before = state().await;
    let mut dice = Dice(5);
    for _ in 0..60 {
        let mut forged = claim.to_owned();
        let (at, put) = (dice.roll(forged.len()), ["0", "a", "7", "-"][dice.roll(4)]);
        match dice.roll(3) {
            0 => forged.replace_range(at..=at, put),
            1 => forged.truncate(at.max(1)),
            _ => forged = format!("{}{}", &own[..own.len().min(32)], &claim[claim.len().min(32)..]),
        }
        // Made of two halves, it may be the own one.
        for text in [forged.as_str(), claim].into_iter().filter(|text| *text != own) {
            let (status, answer) =
                post(&mallory, &format!("/api/v1/claims/{text}/extend"), json!({})).await;
            let nothing = !status.is_success() || answer["kept"] == json!([]);
            assert!(nothing, "{text}: {answer}");
        }
        let number = [token, token + 1, token - 1, (1 << 53) - 1][dice.roll(4)];
        let outcome = ["done", "retry", "dead"][dice.roll(3)];
        let result = json!({"results": [{"id": id, "token": number, "outcome": outcome}]});
        let (status, answer) = post(&mallory, "/api/v1/results", result).await;
        assert!(status != 200 || answer["results"][0]["status"] != "ok", "{number}: {answer}");
    }
    assert_eq!(state().await, before, "nothing was changed");
    let (status, kept) = post(&carl, &format!("/api/v1/claims/{claim}/extend"), json!({})).await;
    assert_eq!((status, kept["kept"].as_array().unwrap().len()), (StatusCode::OK, 1), "{kept}");
    // As some languages write all their numbers.
    let text = format!(r#"{{"results": [{{"id": {id}, "token": {token}.0, "outcome": "done"}}]}}"#);
    let sent = server.ask("POST", "/api/v1/results").bearer_auth(carl.token()).body(text);
    let answer: Value = sent.send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["results"][0]["status"], "ok", "{answer}");
}

async fn a_token_as_large_as_can_be_poisons_nothing(on: On) {
    let server = Server::on_with(on, jobs).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    api.switch("thread", true).await;
    for name in ["thread", "stock"] {
        for back in 0..3 {
            let token = (1_u64 << 53) - 1 - back;
            let forged = format!("{token}.10000.p.{}", "0".repeat(32));
            assert_eq!(act(&api, name, "renew", &forged).await.0, 409);
            act(&api, name, "release", &forged).await;
            act(&api, name, "release", &forged.replace(".p.", ".j.")).await;
        }
        let lease = take(&api, name, "1", 5_000).await;
        assert!(lease["token"].as_u64().unwrap() < 1 << 52, "{lease}");
        assert_eq!(act(&api, name, "renew", &secret(&lease)).await.0, 200);
        assert_eq!(act(&api, name, "release", &secret(&lease)).await.0, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_store_forgot_a_name_is_kept_back_and_no_other_waits_for_it() {
    let server = Server::with(jobs).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    let other = server.beside_with(jobs).await;
    let there = api.at(&other.url(""));
    let grant = async |api: &Api, name: &str, request: &str| {
        until_async(&format!("{name} is granted"), async || {
            let answer = take(api, name, request, 20_000).await;
            answer["secret"].is_string().then_some(answer)
        })
        .await
    };
    let lease = grant(&api, "stock", "1").await;
    assert_eq!(act(&there, "stock", "renew", &secret(&lease)).await.0, 200);
    server.redis.run(&["DEL", "soloist:epoch", "soloist:{stock}:lease", "soloist:{stock}:record"]);
    for api in [&api, &there] {
        assert_eq!(act(api, "stock", "renew", &secret(&lease)).await.0, 409, "it asks anew");
    }
    // The usual quarantine of this store is one second; that of the name lasts until its newest grant must be over.
    grant(&there, "never-seen", "1").await;
    for (nth, api) in [&api, &there].into_iter().enumerate() {
        let refused = take(api, "stock", &format!("again-{nth}"), 5_000).await;
        assert_eq!(refused["reason"], "recovery", "{refused}");
        let retry = refused["retry_in_ms"].as_u64().unwrap();
        assert!((1..=20_000).contains(&retry), "{refused}");
        let changed = secret(&lease).replace(".20000.", ".20001.");
        assert_eq!(act(api, "stock", "renew", &secret(&lease)).await.0, 409);
        assert_eq!(act(api, "stock", "release", &changed).await.0, 409, "not by a guess");
    }
    assert_eq!(act(&there, "stock", "release", &secret(&lease)).await.0, 200, "its work is over");
    let next = take(&api, "stock", "next", 5_000).await;
    assert!(next["token"].as_u64() > lease["token"].as_u64(), "{next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_lease_of_one_name_lengthens_the_doubt_of_no_other() {
    let server = Server::with(jobs).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    let granted = async |name: &str, ttl_ms: u64| {
        until_async(&format!("{name} is granted"), async || {
            take(&api, name, "1", ttl_ms).await["secret"].is_string().then_some(())
        })
        .await;
    };
    // The store forgot just now: an ask for ten minutes must not make it doubt itself for so long.
    server.redis.run(&["DEL", "soloist:epoch"]);
    take(&api, "mine", "1", 600_000).await;
    granted("other", 5_000).await;
    granted("mine", 600_000).await;
    server.redis.run(&["DEL", "soloist:epoch"]);
    let refused = take(&api, "third", "1", 5_000).await;
    assert_eq!(refused["reason"], "recovery", "{refused}");
    assert!(refused["retry_in_ms"].as_u64().unwrap() <= 10_000, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_own_names_have_a_quota_and_the_list_has_pages() {
    let server = Server::with(|config| config.doors.leases_per_account = 3).await;
    let api = Api::new(&server.url(""), &server.token("olga", Role::Operator).await);
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    let granted = async |api: &Api, name: &str| {
        until_async(&format!("{name} is granted"), async || {
            let answer = take(api, name, "1", 60_000).await;
            answer["secret"].is_string().then_some(answer)
        })
        .await
    };
    let first = granted(&api, "a").await;
    granted(&api, "b").await;
    granted(&api, "c").await;
    let body = json!({"holder": "shop-a", "request_id": "1"});
    let (status, answer) = post(&api, "/api/v1/leases/d", body.clone()).await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("3 leases of olga"), "{answer}");
    assert_eq!(take(&api, "a", "1", 60_000).await["secret"], first["secret"], "the same again");
    granted(&carl, "d").await;
    assert_eq!(act(&api, "a", "release", &secret(&first)).await.0, 200);
    granted(&api, "e").await;
    let page = api.get("/api/v1/leases?limit=2").await;
    let names = |page: &Value| -> Vec<String> {
        page["leases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        (names(&page), &page["next_after"]),
        (vec!["b".to_owned(), "c".to_owned()], &json!("c"))
    );
    let rest = api.get("/api/v1/leases?limit=2&after=c").await;
    assert_eq!(
        (names(&rest), rest.get("next_after")),
        (vec!["d".to_owned(), "e".to_owned()], None)
    );
}
