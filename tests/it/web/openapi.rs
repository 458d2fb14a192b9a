//! The OpenAPI document: it says the same as the URL table, both ways; it is valid; and what it says of requests and
//! answers is so (`fuzz.rs` holds every answer to it).

use std::collections::{BTreeMap, BTreeSet};

use boon::{Compiler, Draft, SchemaIndex, Schemas};
use serde_json::{Value, json};
use soloist::store::accounts::Role;
use soloist::web::openapi::describe;
use soloist::web::routes::ROUTES;

use super::Server;

#[tokio::test(flavor = "multi_thread")]
async fn the_document_describes_every_call_and_no_other() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let document: Value = server.get("/api/v1/openapi.json", &token).await.json().await.unwrap();
    let machine = |path: &str| {
        path.starts_with("/api/") || ["/healthz", "/readyz", "/metrics"].contains(&path)
    };
    let table: BTreeSet<String> = ROUTES
        .iter()
        .filter(|route| machine(route.path))
        .map(|route| {
            let path = route.path.replace(":.*}", "}");
            format!("{} {path}", route.method.as_str().to_lowercase())
        })
        .collect();
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, call) in item.as_object().unwrap() {
            described.insert(format!("{method} {path}"));
            let responses = call["responses"].as_object().unwrap();
            for (status, response) in
                responses.iter().filter(|(status, _)| *status >= &"400".to_owned())
            {
                assert!(
                    response["content"]["application/problem+json"].is_object(),
                    "{method} {path} {status}"
                );
            }
        }
    }
    assert_eq!(table, described);
    let schemes = document["components"]["securitySchemes"].as_object().unwrap();
    assert_eq!(schemes.keys().collect::<Vec<_>>(), ["csrf", "session", "token"]);
}

/// The schema of OpenAPI 3.1 itself, and all rules of JSON Schema for what the document says of bodies.
#[test]
fn the_document_is_what_openapi_asks_for() {
    let document = describe();
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    let of_openapi = include_str!("../schemas/openapi-3.1.json");
    compiler.add_resource(OPENAPI, serde_json::from_str(of_openapi).unwrap()).unwrap();
    let mut schemas = Schemas::new();
    let whole = compiler.compile(OPENAPI, &mut schemas).unwrap();
    if let Err(error) = schemas.validate(&document, whole) {
        panic!("{error}");
    }
    let checked = Answers::new(&document);
    assert!(checked.by_name.len() > 30, "schemas were compiled: {}", checked.by_name.len());
    // Two types of one name would have one schema.
    let hold =
        "/paths/~1api~1v1~1jobs~1{job}~1hold/put/requestBody/content/application~1json/schema";
    let body = document.pointer(hold).and_then(|body| body["$ref"].as_str()).unwrap();
    assert_eq!(document.pointer(&body[1..]).unwrap()["required"], json!(["reason"]), "{body}");
    // It would notice: each of these is against a rule.
    for (pointer, wrong) in [
        ("/info", json!({"title": "no version"})),
        ("/paths/~1healthz/get", json!({"responses": {"200": {}}})),
        ("/components/securitySchemes/token", json!({"type": "bearer"})),
    ] {
        let mut broken = document.clone();
        *broken.pointer_mut(pointer).unwrap() = wrong;
        assert!(schemas.validate(&broken, whole).is_err(), "{pointer}");
    }
}

/// Generated clients call their functions so.
#[test]
fn every_operation_has_its_own_name() {
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&describe()) {
        let name = operation["operationId"].as_str().unwrap_or_default().to_owned();
        let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(plain && !name.is_empty(), "{method} {path}: {name:?}");
        assert!(names.insert(name.clone()), "two operations are called {name}");
    }
    assert!(names.len() >= 36, "{names:?}");
}

#[test]
fn what_is_sent_has_its_limits_in_the_document() {
    let document = describe();
    let mut sent: Vec<(String, Value)> = Vec::new();
    for (path, method, operation) in operations(&document) {
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = format!("{method} {path} {}", parameter["name"]);
            if parameter["in"] == "path" {
                assert!(parameter["schema"]["pattern"].is_string(), "{name} has no pattern");
            }
            sent.push((name, parameter["schema"].clone()));
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        if !body.is_null() {
            sent.push((format!("{method} {path}"), body.clone()));
        }
    }
    let mut integers = 0;
    while let Some((name, schema)) = sent.pop() {
        assert!(name.len() < 500, "it ends: {name}");
        if let Some(to) = schema["$ref"].as_str() {
            let schema = document.pointer(&to[1..]).expect(to).clone();
            sent.push((name, schema));
            continue;
        }
        for many in ["oneOf", "anyOf", "allOf"] {
            for one in schema[many].as_array().into_iter().flatten() {
                sent.push((name.clone(), one.clone()));
            }
        }
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            sent.push((format!("{name}.{field}"), schema.clone()));
        }
        if schema["items"].is_object() {
            sent.push((format!("{name}[]"), schema["items"].clone()));
        }
        let is = |kind: &str| schema["type"] == kind || schema["type"].to_string().contains(kind);
        if is("integer") {
            integers += 1;
            assert!(schema["minimum"].is_i64() && schema["maximum"].is_u64(), "{name}: {schema}");
        }
        let last = name.rsplit('.').next().unwrap_or_default();
        if ["source", "type", "next", "to", "user", "sources[]", "collector", "worker"]
            .contains(&last)
        {
            assert!(schema["pattern"].is_string(), "{name}: {schema}");
        }
    }
    assert!(integers > 20, "{integers}");
}

/// JSON Schema calls 837.0 an integer, and a PUT whose body was lost must not reset anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_written_with_a_point_is_taken_and_a_lost_body_is_not() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let put = async |body: &'static str| {
        let put = server.ask("PUT", "/api/v1/sources/shop").bearer_auth(&token).body(body);
        let answer = put.send().await.unwrap();
        (answer.status().as_u16(), answer.json::<Value>().await.unwrap())
    };
    let (status, source) = put(r#"{"gap_ms": 837.0, "cap": 3.0, "lease_ms": 6e4}"#).await;
    assert_eq!(status, 200, "{source}");
    let rules = |source: &Value| {
        ["gap_ms", "cap", "lease_ms"].map(|name| source[name].as_u64().unwrap_or_default())
    };
    assert_eq!(rules(&source), [837, 3, 60_000]);
    for lost in ["", " \n"] {
        let (status, problem) = put(lost).await;
        assert_eq!(status, 400, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("line 1") && detail.contains("{}"), "{detail}");
    }
    let (status, problem) = put(r#"{"gap_ms": 837.5}"#).await;
    assert_eq!(status, 400, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("gap_ms"), "{problem}");
    let source = server.get("/api/v1/sources/shop", &token).await.json().await.unwrap();
    assert_eq!(rules(&source), [837, 3, 60_000], "the rules are as they were");
}

const OPENAPI: &str = "http://schemas.invalid/openapi-3.1.json";
const DOCUMENT: &str = "http://schemas.invalid/soloist.json";

/// All operations of the document, as path, method and description.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths
        .flat_map(|(path, item)| {
            let of = item.as_object().unwrap().iter();
            of.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .collect()
}

/// What the document says of answers, to hold them to it.
pub(super) struct Answers {
    schemas: Schemas,
    by_name: BTreeMap<String, SchemaIndex>,
}

impl Answers {
    /// Compiles every schema of `document`, which finds those that are none and references that lead nowhere.
    pub(super) fn new(document: &Value) -> Self {
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.enable_format_assertions();
        compiler.add_resource(DOCUMENT, document.clone()).unwrap();
        let mut answers = Self { schemas: Schemas::new(), by_name: BTreeMap::new() };
        let mut add = |name: String, pointer: &str| {
            let place = format!("{DOCUMENT}#{}", pointer.replace('{', "%7B").replace('}', "%7D"));
            let compiled = compiler.compile(&place, &mut answers.schemas);
            answers.by_name.insert(name, compiled.unwrap_or_else(|error| panic!("{error:#}")));
        };
        for (path, method, operation) in operations(document) {
            let place = format!("/paths/{}/{method}", path.replace('/', "~1"));
            let bodies = &operation["requestBody"]["content"];
            for kind in bodies.as_object().into_iter().flat_map(|all| all.keys()) {
                let kind = kind.replace('/', "~1");
                add(
                    format!("{method} {path} body"),
                    &format!("{place}/requestBody/content/{kind}/schema"),
                );
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                // Of several kinds it is JSON that has a schema worth the name.
                let kinds = response["content"].as_object().into_iter().flat_map(|all| all.keys());
                for kind in kinds.filter(|kind| kind.ends_with("json") && !kind.contains("ndjson"))
                {
                    let kind = kind.replace('/', "~1");
                    let pointer = format!("{place}/responses/{status}/content/{kind}/schema");
                    add(format!("{method} {path} {status}"), &pointer);
                }
            }
        }
        answers
    }

    /// Why `answer` is not what the document says.
    pub(super) fn problem(
        &self,
        method: &str,
        path: &str,
        status: u16,
        answer: &Value,
    ) -> Option<String> {
        let schema = self.by_name.get(&format!("{method} {path} {status}"))?;
        self.schemas.validate(answer, *schema).err().map(|error| format!("{error:#}"))
    }
}
