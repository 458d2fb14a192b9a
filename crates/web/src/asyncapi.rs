//! `GET /api/v1/asyncapi.json`: the frames of `/live` and `/api/v1/live` described for machines (AsyncAPI 3.0).
//!
//! Schemas are those of the types, the same as in the OpenAPI document; here stands only which frame has which, who sends it
//! where, and an example of what clients send. Tests hold real frames to it.

use std::sync::LazyLock;

use actix_web::{HttpResponse, web};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use super::frames::JSON_PROTOCOL;
use super::wire::{Following, Hello, JobChange, NewLines, Reply, Snapshot, StoreReach, Switch};
use super::{Web, auth, openapi};
use soloist_view::json::{RotationList, SourceList};
use soloist_view::lists::Nodes;

#[derive(OpenApi)]
#[openapi(components(schemas(
    Hello,
    Snapshot,
    JobChange,
    Nodes,
    NewLines,
    StoreReach,
    Reply,
    SourceList,
    RotationList,
    Switch,
    Following
)))]
struct Frames;

/// A frame's `type`, the type of Rust that it is made of, and what it says.
type Frame = (&'static str, &'static str, &'static str);

/// What every stream carries.
const TOLD: [Frame; 6] = [
    ("hello", "Hello", "The first frame of every connection."),
    (
        "snapshot",
        "Snapshot",
        "Everything as it is now; replaces all that was said before. The second frame, and again whenever changes may have been missed.",
    ),
    (
        "job",
        "JobChange",
        "A job changed. Its version only grows; of several changes only the newest may be told.",
    ),
    (
        "nodes",
        "Nodes",
        "The nodes, after the snapshot and whenever one comes, goes, or holds something else.",
    ),
    ("log", "NewLines", "Output of a job that is followed."),
    ("store", "StoreReach", "The node cannot reach its store, or can again."),
];
/// What only a WebSocket carries.
const ASKED: [Frame; 3] = [
    (
        "reply",
        "Reply",
        "The answer to a frame of the client that had an id, and to every one that was refused.",
    ),
    ("dispatch", "SourceList", "Sources, for who follows dispatch; at most once a second."),
    ("rotations", "RotationList", "Rotations, for who follows them; at most once a second."),
];
/// What clients say.
const SAID: [Frame; 3] = [
    ("participation", "Switch", "Switches a job for the caller; an admin may name another user."),
    (
        "follow",
        "Following",
        "Begins to follow the output of a job, or dispatch, or rotations. At most 16 jobs.",
    ),
    ("unfollow", "Following", "Ends that."),
];

fn examples(kind: &str) -> Value {
    match kind {
        "participation" => json!([
            {"type": "participation", "id": 7, "job": "outbound", "on": true},
            {"type": "participation", "job": "outbound", "on": false, "reason": "stock-taking"},
        ]),
        "follow" => json!([
            {"type": "follow", "id": 8, "job": "outbound"},
            {"type": "follow", "job": "outbound", "after": 1200},
            {"type": "follow", "id": "d", "dispatch": true},
            {"type": "follow", "id": "r", "rotations": true},
        ]),
        "unfollow" => json!([{"type": "unfollow", "id": 9, "job": "outbound"}]),
        _ => Value::Null,
    }
}

/// The name of a frame's schema: `JobFrame`.
fn schema_name(kind: &str) -> String {
    let (first, rest) = kind.split_at(1);
    format!("{}{rest}Frame", first.to_uppercase())
}

/// The schema of a type as that of a frame: with its `type`, and what clients say with an `id`.
fn as_frame(mut schema: Value, kind: &str, said: bool) -> Value {
    schema["properties"]["type"] = json!({"type": "string", "const": kind});
    let mut required = vec![json!("type")];
    required.extend(schema["required"].as_array().cloned().unwrap_or_default());
    schema["required"] = required.into();
    if said {
        schema["properties"]["id"] = json!({"description": "Anything; the reply repeats it. Without one only a refusal is answered."});
    }
    schema
}

/// The document, without what only a running node knows.
#[must_use]
pub fn describe() -> Value {
    #[expect(clippy::expect_used, reason = "made of constants; every test of it would fail")]
    let mut described = serde_json::to_value(Frames::openapi()).expect("JSON");
    openapi::complete(&mut described);
    let mut schemas = match described["components"]["schemas"].take() {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    };
    let mut messages = Map::new();
    let mut frames = Map::new();
    let told = TOLD.iter().chain(&ASKED).map(|frame| (frame, false));
    for (&(kind, of, summary), said) in told.chain(SAID.iter().map(|frame| (frame, true))) {
        let name = schema_name(kind);
        let schema = schemas.get(of).cloned().unwrap_or_default();
        frames.insert(name.clone(), as_frame(schema, kind, said));
        let mut message = json!({"name": kind, "title": name, "summary": summary, "contentType": "application/json",
            "payload": {"$ref": format!("#/components/schemas/{name}")}});
        if let Value::Array(all) = examples(kind) {
            message["examples"] =
                all.into_iter().map(|payload| json!({"payload": payload})).collect();
        }
        messages.insert(kind.to_owned(), message);
    }
    for (_, of, _) in TOLD.iter().chain(&ASKED).chain(&SAID) {
        schemas.remove(*of);
    }
    schemas.append(&mut frames);
    let of = |channel: &str, frames: &[Frame]| -> Vec<Value> {
        let to = |kind: &str| json!({"$ref": format!("#/channels/{channel}/messages/{kind}")});
        frames.iter().map(|(kind, ..)| to(kind)).collect()
    };
    let all_of = |frames: &[&[Frame]]| -> Map<String, Value> {
        let to = |kind: &str| json!({"$ref": format!("#/components/messages/{kind}")});
        frames
            .iter()
            .flat_map(|some| *some)
            .map(|(kind, ..)| ((*kind).to_owned(), to(kind)))
            .collect()
    };
    let socket = json!({"$ref": "#/channels/socket"});
    let security = json!([{"$ref": "#/components/securitySchemes/token"}, {"$ref": "#/components/securitySchemes/session"}]);
    json!({
        "asyncapi": "3.0.0",
        "info": {
            "title": "Soloist, live",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Every change as it happens: over a WebSocket that takes frames too, or as Server-Sent Events. Both carry the same frames. Readers pass over types and members that they do not know.",
        },
        "defaultContentType": "application/json",
        "channels": {
            "socket": {
                "address": "/live",
                "title": "WebSocket",
                "description": format!("Subprotocol {JSON_PROTOCOL}. A page of an allowed origin offers its token as a second one: {}TOKEN. A frame of a client has at most 4 KiB; at most 50 come in a second.", auth::TOKEN_PROTOCOL),
                "messages": all_of(&[&TOLD, &ASKED, &SAID]),
                "bindings": {"ws": {"method": "GET", "bindingVersion": "0.1.0"}},
            },
            "events": {
                "address": "/api/v1/live",
                "title": "Server-Sent Events",
                "description": "Each event is one frame of JSON in `data`, with `id` EPOCH:NUMBER. A comment comes every 15 s.",
                "messages": all_of(&[&TOLD]),
            },
        },
        "operations": {
            "tell": {
                "action": "send", "channel": socket, "security": security,
                "summary": "What the node tells over a WebSocket: hello, a snapshot, then every change.",
                "messages": of("socket", &TOLD).into_iter().chain(of("socket", &ASKED)).collect::<Vec<_>>(),
            },
            "ask": {
                "action": "receive", "channel": socket, "security": security,
                "summary": "What a client may say over a WebSocket.",
                "messages": of("socket", &SAID),
                "reply": {"channel": socket, "messages": of("socket", &ASKED[..1])},
            },
            "stream": {
                "action": "send", "channel": {"$ref": "#/channels/events"}, "security": security,
                "summary": "What the node tells as Server-Sent Events.",
                "messages": of("events", &TOLD),
                "bindings": {"http": {
                    "method": "GET",
                    "query": {"type": "object", "properties": {"follow": {
                        "type": "string",
                        "description": "Jobs whose output is told too: with commas between, or repeated.",
                    }}},
                    "bindingVersion": "0.3.0",
                }},
            },
        },
        "components": {
            "messages": messages,
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "An API token (`soloist token new`)."},
                "session": {"type": "httpApiKey", "in": "cookie", "name": "soloist", "description": "The cookie of a browser that is signed in, on pages of the same origin."},
            },
        },
    })
}

/// The frames of `/live` and `/api/v1/live`.
#[utoipa::path(get, path = "/api/v1/asyncapi.json", tag = "live", operation_id = "describe_live",
    responses((status = 200, description = "The AsyncAPI document.", body = Value)))]
pub async fn document(web: web::Data<Web>) -> HttpResponse {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(describe);
    let config = web.config();
    let mut document = DOCUMENT.clone();
    let (scheme, host) = config.public_url.split_once("://").unwrap_or(("http", ""));
    let socket = if scheme == "https" { "wss" } else { "ws" };
    let server = |protocol: &str| json!({"host": host, "protocol": protocol});
    document["servers"] = json!({"socket": server(socket), "events": server(scheme)});
    for channel in ["socket", "events"] {
        document["channels"][channel]["servers"] =
            json!([{"$ref": format!("#/servers/{channel}")}]);
    }
    document["components"]["securitySchemes"]["session"]["name"] =
        auth::cookie_name(&config).into();
    HttpResponse::Ok().json(document)
}
