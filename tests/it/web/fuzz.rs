//! Every operation of the OpenAPI document, asked with thousands of right, wrong and hostile values made from its own
//! schemas: nothing breaks, every status is one that the document names, every error is a problem with a detail.
//!
//! The seed is printed; `FUZZ_SEED=... FUZZ_ROUNDS=...` repeats a run or makes it longer.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use serde_json::{Map, Value, json};
use soloist::store::accounts::Role;

use super::Server;
use super::dispatch::{claim, define, ok, put};
use super::openapi::Answers;
use super::rotations::{SUPPLIER, granted as a_turn, three};
use crate::support::api::Api;

/// Of each operation.
const ROUNDS: usize = 100;
/// Longer waits are cut to this: they would only take time.
const WAIT_MS: u64 = 20;

struct Fuzz {
    random: StdRng,
    document: Value,
    /// Values that mean something, by the name of their field; one of several, if it is an array.
    known: Map<String, Value>,
}

impl Fuzz {
    fn chance(&mut self, percent: u32) -> bool {
        self.random.random_ratio(percent, 100)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.random.random_range(0..from.len())]
    }

    /// What no schema asks for.
    fn junk(&mut self) -> Value {
        let deep =
            (0..self.random.random_range(2..100)).fold(json!(null), |inner, _| json!([inner]));
        let all = [
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(1),
            json!(0.5),
            json!(1e308),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(9_007_199_254_740_993_u64),
            json!(4_294_967_296_u64),
            json!(""),
            json!(" "),
            json!("shop"),
            json!("\u{0}\u{7f}\n"),
            json!("汉字😀\u{202e}"),
            json!("../../etc/passwd"),
            json!("x".repeat(3_000)),
            json!("2026-05-04T01:02:03.004Z"),
            json!("-009999-01-01T00:00:00Z"),
            json!([]),
            json!({}),
            json!({"a": {"b": [1]}}),
            deep,
        ];
        self.pick(&all).clone()
    }

    fn resolve(&self, schema: &Value) -> Value {
        match schema["$ref"].as_str() {
            Some(to) => self.document.pointer(&to[1..]).expect("a schema").clone(),
            None => schema.clone(),
        }
    }

    fn known(&mut self, name: &str) -> Option<Value> {
        match self.known.get(name).cloned()? {
            Value::Array(several) => Some(self.pick(&several).clone()),
            one => Some(one),
        }
    }

    /// What the schema asks for, most of the time; `wrong` percent of all parts are something else.
    fn value(&mut self, name: &str, schema: &Value, wrong: u32) -> Value {
        let schema = self.resolve(schema);
        if self.chance(wrong) {
            return self.junk();
        }
        for several in ["oneOf", "anyOf"] {
            if let Some(options) = schema[several].as_array() {
                let option = self.pick(options).clone();
                return self.value(name, &option, wrong);
            }
        }
        if let Some(known) = self.known(name)
            && self.chance(60)
        {
            return known;
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            kind => vec![kind.clone()],
        };
        let kind = self.pick(&kinds).as_str().unwrap_or_default().to_owned();
        match kind.as_str() {
            "object" => self.object(&schema, wrong),
            "array" => {
                let count = *self.pick(&[0, 1, 1, 2, 3, 101]);
                let wrong = if count > 10 { 0 } else { wrong };
                (0..count).map(|_| self.value(name, &schema["items"], wrong)).collect()
            }
            "boolean" => json!(self.chance(50)),
            "null" => json!(null),
            "integer" | "number" => {
                let least = schema["minimum"].as_i64().unwrap_or(0);
                let most = schema["maximum"].as_i64().unwrap_or(100_000);
                let inside = self.random.random_range(least..=most);
                json!(*self.pick(&[least, most, inside, least - 1, most.saturating_add(1), 1]))
            }
            "string" => match schema["enum"].as_array() {
                Some(words) => self.pick(words).clone(),
                None => json!(*self.pick(&["a", "shop", "k-1", "x.y", "2026-05-04T01:02:03Z"])),
            },
            _ => self.junk(),
        }
    }

    fn object(&mut self, schema: &Value, wrong: u32) -> Value {
        let mut made = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            let needed = required.iter().any(|one| one == name);
            if self.chance(if needed { 97 } else { 50 }) {
                let mut value = self.value(name, part, wrong);
                if name == "wait_ms"
                    && value.as_u64().is_some_and(|ms| (WAIT_MS..=30_000).contains(&ms))
                {
                    value = json!(WAIT_MS);
                }
                made.insert(name.clone(), value);
            }
        }
        if self.chance(4) {
            made.insert("surplus".to_owned(), self.junk());
        }
        Value::Object(made)
    }

    /// A body as bytes: sometimes not even JSON.
    fn body(&mut self, schema: &Value) -> Vec<u8> {
        let wrong = *self.pick(&[0, 0, 5, 30]);
        let text = self.value("", schema, wrong).to_string();
        match self.random.random_range(0..30) {
            0 => text.as_bytes()[..text.len() / 2].to_vec(),
            1 => [text.as_bytes(), b"}"].concat(),
            2 => [b"\xff\xfe", text.as_bytes()].concat(),
            3 => "[".repeat(60_000).into_bytes(),
            4 => r#"{"a":"#.repeat(10_000).into_bytes(),
            5 => text.replacen("1", "1e99999", 1).into_bytes(),
            6 => text.replacen('"', "\"\\ud800", 1).into_bytes(),
            7 => vec![b' '; 70_000],
            8 => [text.as_bytes(), &vec![b' '; 1_100_000][..]].concat(),
            9 => Vec::new(),
            10 => text.replacen('{', "{\"paused\":true,\"paused\":true,", 1).into_bytes(),
            _ => text.into_bytes(),
        }
    }

    fn text(&mut self, name: &str) -> String {
        match self.known(name) {
            Some(known) if self.chance(60) => known.as_str().unwrap_or_default().to_owned(),
            _ => match self.junk() {
                Value::String(text) => text.chars().take(400).collect(),
                other => other.to_string().chars().take(400).collect(),
            },
        }
    }
}

/// Everything but the plainest characters as `%XX`.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var_os(name)?.to_str()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_input_breaks_an_operation_or_gets_an_answer_that_is_not_documented() {
    let seed = from_environment("FUZZ_SEED").unwrap_or_else(rand::random);
    let rounds = from_environment("FUZZ_ROUNDS").map_or(ROUNDS, |n| usize::try_from(n).unwrap());
    println!("FUZZ_SEED={seed} FUZZ_ROUNDS={rounds}");
    let server = Server::start().await;
    let token = server.token("ada", Role::Admin).await;
    // The accounts that are changed and removed; whoever asks stays.
    for name in ["eve", "li"] {
        server.user(name, Role::Operator).await;
    }
    let api = Api::new(&server.url(""), &token);
    define(&api, "shop", json!({})).await;
    let id = put(&api, &["a", "b", "c"]).await["tasks"][0]["id"].clone();
    let granted = claim(&api, "r0", json!({})).await;
    ok(&api, Method::PUT, SUPPLIER, three(json!({}))).await;
    let turn = a_turn(&api, "a", "r0", json!({})).await;
    let document: Value = api.get("/api/v1/openapi.json").await;
    let known = json!({"source": "shop", "job": "outbound", "node": "node-a", "id": id,
        "claim": granted["claim"], "token": [granted["tasks"][0]["token"], turn["token"]],
        "rotation": "supplier", "turn": turn["turn"], "type": ["a", "b"], "next": ["a", "c"],
        "worker": "w-a", "request_id": ["r0", "r1"], "user": ["eve", "li", "wang"],
        "password": "amber ferry under 9 moons",
        "collector": "c1", "limit": "5"});
    let known = known.as_object().unwrap().clone();
    let mut fuzz = Fuzz { random: StdRng::seed_from_u64(seed), document: document.clone(), known };
    let answers = Answers::new(&document);
    let client = crate::support::http::client().timeout(Duration::from_secs(30)).build().unwrap();

    let mut asked = 0;
    let mut seen = std::collections::BTreeMap::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for _ in 0..rounds {
                asked += 1;
                let call = request(&mut fuzz, path, operation);
                let verb = method;
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let mut request = client.request(method.clone(), server.url(&call.path));
                if !fuzz.chance(3) {
                    request = request.bearer_auth(&token);
                }
                if let Some(kind) = call.kind {
                    request = request.header("content-type", kind);
                }
                let shown =
                    String::from_utf8_lossy(&call.body).chars().take(2_000).collect::<String>();
                let line = format!("seed {seed}: {method} {} {shown}", call.path);
                let answer = request.body(call.body).send().await;
                let answer = answer.unwrap_or_else(|error| panic!("{line}: {error}"));
                let status = answer.status().as_u16();
                *seen.entry(status).or_insert(0) += 1;
                let kind = answer.headers().get("content-type").cloned();
                // A stream has no end, and is held to its own document (`asyncapi.rs`).
                let text = match kind.as_ref().is_some_and(|kind| kind == "text/event-stream") {
                    true => String::new(),
                    false => answer.text().await.unwrap(),
                };
                let line =
                    format!("{line}\n{status} {}", text.chars().take(500).collect::<String>());
                assert!(status < 500, "{line}");
                let documented = operation["responses"].get(status.to_string()).is_some();
                assert!(documented, "a status that is not documented: {line}");
                if let Ok(answer) = serde_json::from_str::<Value>(&text) {
                    let problem = answers.problem(verb, path, status, &answer);
                    assert!(problem.is_none(), "not as documented: {line}\n{}", problem.unwrap());
                }
                if status >= 400 {
                    assert_eq!(kind.unwrap(), "application/problem+json", "{line}");
                    let problem: Value = serde_json::from_str(&text).expect(&line);
                    assert!(!problem["detail"].as_str().expect(&line).is_empty(), "{line}");
                    assert_eq!(problem["status"], status, "{line}");
                }
            }
        }
    }
    println!("{asked} requests: {seen:?}");
    assert!(asked >= 36 * rounds && seen.contains_key(&200) && seen.contains_key(&400), "{seen:?}");
}

struct Call {
    path: String,
    kind: Option<&'static str>,
    body: Vec<u8>,
}

fn request(fuzz: &mut Fuzz, path: &str, operation: &Value) -> Call {
    let mut path = path.to_owned();
    let mut query = Vec::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        let text = fuzz.text(name);
        if parameter["in"] == "path" {
            // An empty part would be another address.
            let text = if text.is_empty() { "-".to_owned() } else { encoded(&text) };
            path = path.replace(&format!("{{{name}}}"), &text);
        } else if fuzz.chance(50) {
            query.push(format!("{name}={}", encoded(&text)));
        }
    }
    if fuzz.chance(3) {
        query.push("surplus=1".to_owned());
    }
    let takes_query = operation["parameters"].as_array().into_iter().flatten();
    if takes_query.clone().any(|one| one["in"] == "query") && !query.is_empty() {
        path = format!("{path}?{}", query.join("&"));
    }
    let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
    let body = if schema.is_null() { Vec::new() } else { fuzz.body(schema) };
    let kinds = [Some("application/json"), Some("application/json"), Some("text/plain"), None];
    Call { path, kind: *fuzz.pick(&kinds), body }
}
