//! The AsyncAPI document: every frame that a running node sends is in it and is as it says, and what it says that clients may
//! send is taken.

use std::collections::{BTreeMap, BTreeSet};

use boon::{Compiler, Draft, SchemaIndex, Schemas};
use serde_json::{Value, json};
use soloist::clock;
use soloist::domain::name::UserName;
use soloist::store::accounts::Role;
use soloist::web::asyncapi::describe;
use soloist::web::openapi;
use tokio_tungstenite::tungstenite::Message;

use super::Server;
use super::live::{connect, hear, print, run, say};
use super::sse::Events;
use crate::support::wait::PATIENCE;

const DOCUMENT: &str = "http://schemas.invalid/asyncapi.json";

/// The schema of each message.
struct Frames {
    document: Value,
    schemas: Schemas,
    by_type: BTreeMap<String, SchemaIndex>,
}

impl Frames {
    /// Compiles every schema, which finds those that are none and references that lead nowhere.
    fn of(document: Value) -> Self {
        let mut compiler = Compiler::new();
        // As AsyncAPI 3.0 has it.
        compiler.set_default_draft(Draft::V7);
        compiler.enable_format_assertions();
        compiler.add_resource(DOCUMENT, document.clone()).unwrap();
        let (mut schemas, mut by_type) = (Schemas::new(), BTreeMap::new());
        for kind in document["components"]["messages"].as_object().unwrap().keys() {
            let place = format!("{DOCUMENT}#/components/messages/{kind}/payload");
            let schema = compiler.compile(&place, &mut schemas);
            by_type.insert(kind.clone(), schema.unwrap_or_else(|error| panic!("{error:#}")));
        }
        Self { document, schemas, by_type }
    }

    /// Why a frame is not as the document says.
    fn problem(&self, frame: &Value) -> Option<String> {
        let kind = frame["type"].as_str().unwrap_or_default();
        let Some(schema) = self.by_type.get(kind) else {
            return Some(format!("no message of type {kind:?}"));
        };
        if let Err(error) = self.schemas.validate(frame, *schema) {
            return Some(format!("{error:#}"));
        }
        let payload = self.document["components"]["messages"][kind]["payload"]["$ref"].as_str()?;
        let described = &self.document.pointer(&payload[1..])?["properties"];
        let unknown = frame.as_object()?.keys().find(|name| described[name.as_str()].is_null());
        unknown.map(|name| format!("member {name:?} is not described"))
    }

    /// Holds a frame to it, and notes its type.
    fn hold(&self, frame: &Value, heard: &mut BTreeSet<String>) {
        if let Some(problem) = self.problem(frame) {
            panic!("not as documented: {frame}\n{problem}");
        }
        heard.insert(frame["type"].as_str().unwrap_or_default().to_owned());
    }

    /// The types of a channel's messages that go one way.
    fn types(&self, operations: &[&str]) -> BTreeSet<String> {
        let of =
            |name: &&str| self.document["operations"][*name]["messages"].as_array().unwrap().iter();
        let last = |to: &Value| to["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        operations.iter().flat_map(of).map(last).collect()
    }

    fn examples(&self) -> Vec<Value> {
        let messages = self.types(&["ask"]).into_iter();
        let of = |kind: String| {
            self.document["components"]["messages"][&kind]["examples"].as_array().unwrap().clone()
        };
        messages.flat_map(of).map(|example| example["payload"].clone()).collect()
    }
}

fn words(all: &[&str]) -> BTreeSet<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_frame_of_a_running_node_is_as_the_document_says() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let document = server.get("/api/v1/asyncapi.json", &token).await.json().await.unwrap();
    let frames = Frames::of(document);
    let put = async |path: &str, body: Value| {
        let put = server.ask("PUT", path).bearer_auth(&token).json(&body);
        assert_eq!(put.send().await.unwrap().status(), 200, "{path}");
    };
    put("/api/v1/sources/shop", json!({"gap_ms": 250})).await;
    put("/api/v1/rotations/supplier", json!({"types": [{"name": "a"}]})).await;
    let going = run(&server, &UserName::new("li").unwrap()).await;
    print(&server, &going, vec!["one".to_owned()]).await;
    let mut socket = connect(&server, &token).await;
    let mut events = Events::open(&server, "?follow=outbound", &token).await;

    // What clients may say is said as the document shows it, and taken.
    let mut open = BTreeSet::new();
    for example in frames.examples() {
        assert_eq!(frames.problem(&example), None, "{example}");
        if !example["id"].is_null() {
            open.insert(example["id"].to_string());
        }
        say(&mut socket, example).await;
    }
    assert!(open.len() >= 5, "{open:?}");
    // What the examples follow, they unfollow, perhaps before a line could be told.
    say(&mut socket, json!({"type": "follow", "id": 99, "job": "outbound"})).await;
    open.insert("99".to_owned());
    print(&server, &going, vec!["two".to_owned()]).await;
    let mut heard = BTreeSet::new();
    // A busy machine may keep the store from answering in time before it is paused: then it is said, too.
    let (mut reachable, mut paused, mut away) = (true, false, false);
    let told = frames.types(&["tell"]);
    let begun = clock::boot();
    loop {
        assert!(clock::boot().since(begun) < PATIENCE, "only {heard:?}, no reply to {open:?}");
        let Message::Text(text) = hear(&mut socket).await else { panic!("it was closed") };
        let frame: Value = serde_json::from_str(&text).unwrap();
        frames.hold(&frame, &mut heard);
        if frame["type"] == "reply" {
            // As above: the store may be late.
            assert!(frame["ok"] == true || frame["error"] == "unavailable", "{frame}");
            open.remove(&frame["id"].to_string());
        }
        if frame["type"] == "store" {
            reachable = frame["reachable"] == true;
        }
        if paused && !reachable {
            server.redis.resume();
            away = true;
        }
        if away && reachable {
            break;
        }
        let rest = told.difference(&heard).all(|kind| kind == "store");
        if !paused && reachable && open.is_empty() && rest {
            server.redis.pause();
            paused = true;
        }
    }
    assert_eq!(heard, told);
    // A refusal has more in it.
    say(&mut socket, json!({"type": "participation", "job": "inbound", "on": 1})).await;
    loop {
        let Message::Text(text) = hear(&mut socket).await else { panic!("it was closed") };
        let frame: Value = serde_json::from_str(&text).unwrap();
        frames.hold(&frame, &mut heard);
        if frame["ok"] == false {
            assert!(frame["detail"].is_string() && frame["id"].is_null(), "{frame}");
            break;
        }
    }

    let (mut heard, all) = (BTreeSet::new(), frames.types(&["stream"]));
    let begun = clock::boot();
    while heard != all {
        let event = events.next().await.expect("the stream goes on");
        if !event.data.is_null() {
            frames.hold(&event.data, &mut heard);
        }
        assert!(clock::boot().since(begun) < PATIENCE, "only {heard:?} of {all:?}");
    }
}

#[test]
fn the_document_names_every_frame_and_leads_nowhere_else() {
    let frames = Frames::of(describe());
    let stream = words(&["hello", "snapshot", "job", "nodes", "log", "store"]);
    assert_eq!(frames.types(&["stream"]), stream);
    let mut socket = stream.clone();
    socket.extend(words(&["reply", "dispatch", "rotations"]));
    assert_eq!(frames.types(&["tell"]), socket);
    assert_eq!(frames.types(&["ask"]), words(&["participation", "follow", "unfollow"]));
    let document = &frames.document;
    assert_eq!(document["asyncapi"], "3.0.0");
    // Every reference leads somewhere.
    let (mut open, mut references) = (vec![document], 0);
    while let Some(value) = open.pop() {
        match value {
            Value::Array(all) => open.extend(all),
            Value::Object(all) => {
                if let Some(to) = all.get("$ref").and_then(Value::as_str) {
                    references += 1;
                    assert!(document.pointer(&to[1..]).is_some(), "{to}");
                }
                open.extend(all.values());
            }
            _ => {}
        }
    }
    assert!(references > 40, "{references}");
    // A Job is the same here and in the other document.
    let other = openapi::describe();
    let ours = document["components"]["schemas"].as_object().unwrap();
    let shared = ours.iter().filter_map(|(name, schema)| {
        let theirs = &other["components"]["schemas"][name];
        (!theirs.is_null()).then(|| assert_eq!(theirs, schema, "{name}"))
    });
    assert!(shared.count() > 10, "{:?}", ours.keys());
}

#[test]
fn a_frame_that_is_otherwise_than_described_is_noticed() {
    let frames = Frames::of(describe());
    let good = json!({"type": "store", "reachable": true, "since": "2026-05-04T01:02:03.004Z", "detail": null});
    assert_eq!(frames.problem(&good), None);
    for (member, wrong) in [
        ("type", json!("dance")),
        ("type", json!("hello")),
        ("reachable", json!("yes")),
        ("since", json!("yesterday")),
        ("surplus", json!(1)),
    ] {
        let mut frame = good.clone();
        frame[member] = wrong;
        assert!(frames.problem(&frame).is_some(), "{frame}");
    }
}
