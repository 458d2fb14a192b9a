//! `GET /api`: the calls of the API for people, made of the same document that `/api/v1/openapi.json` is. The document is in
//! English.

use std::sync::LazyLock;

use actix_web::{HttpResponse, web};
use askama::Template;
use serde_json::Value;

use super::{Frame, html};
use crate::auth::Caller;
use crate::error::WebError;
use crate::{Web, openapi};
use soloist_view::words::say;

#[derive(Template)]
#[template(path = "pages/api.html")]
pub(super) struct ApiPage {
    pub(super) frame: Frame,
    pub(super) about: &'static str,
    pub(super) groups: &'static [Group],
}

/// The calls of one kind.
pub(super) struct Group {
    pub(super) name: String,
    about: String,
    pub(super) calls: Vec<Call>,
}

/// One call.
pub(super) struct Call {
    id: String,
    pub(super) method: String,
    pub(super) path: String,
    about: Vec<(bool, String)>,
    fields: Vec<Field>,
    /// Status and what it means.
    answers: Vec<(String, String)>,
}

/// What is sent: where it stands, how it is called, what it is.
struct Field {
    place: &'static str,
    name: String,
    kind: String,
    needed: bool,
    about: Vec<(bool, String)>,
}

/// The description of Soloist, and the calls by kind.
pub(super) static CALLS: LazyLock<(String, Vec<Group>)> = LazyLock::new(|| {
    let document = openapi::describe();
    let tags = document["tags"].as_array().into_iter().flatten();
    let groups = tags.map(|tag| Group {
        name: text(&tag["name"]),
        about: text(&tag["description"]),
        calls: calls(&document, &tag["name"]),
    });
    (text(&document["info"]["description"]), groups.collect())
});

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The calls with that tag, in the order of the document.
fn calls(document: &Value, tag: &Value) -> Vec<Call> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, methods)| {
        methods.as_object().into_iter().flatten().map(move |(method, call)| (path, method, call))
    });
    all.filter(|(_, _, call)| call["tags"][0] == *tag)
        .map(|(path, method, call)| Call {
            id: text(&call["operationId"]),
            method: method.to_uppercase(),
            path: path.clone(),
            about: marked(&whole(&text(&call["summary"]), &text(&call["description"]))),
            fields: fields(document, call),
            answers: call["responses"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(status, answer)| (status.clone(), text(&answer["description"])))
                .collect(),
        })
        .collect()
}

fn fields(document: &Value, call: &Value) -> Vec<Field> {
    let parameters = call["parameters"].as_array().into_iter().flatten().map(|one| Field {
        place: match one["in"].as_str() {
            Some("path") => "address",
            Some("query") => "query",
            _ => "header",
        },
        name: text(&one["name"]),
        kind: kind(&one["schema"]),
        needed: one["required"] == true,
        about: marked(&text(&one["description"])),
    });
    let body = resolved(document, &call["requestBody"]["content"]["application/json"]["schema"]);
    let needed = body["required"].as_array();
    let inside = body["properties"].as_object().into_iter().flatten().map(|(name, one)| Field {
        place: "body",
        name: name.clone(),
        kind: kind(one),
        needed: needed.is_some_and(|needed| needed.contains(&Value::from(name.as_str()))),
        about: marked(&text(&one["description"])),
    });
    parameters.chain(inside).collect()
}

/// Summary and description; a description that begins as the summary does says all of it.
fn whole(summary: &str, description: &str) -> String {
    match description.starts_with(summary.trim_end_matches('.')) {
        true => description.to_owned(),
        false => format!("{summary} {description}").trim_end().to_owned(),
    }
}

/// Parts of a text, and whether each stands between backticks: what a machine reads or writes.
fn marked(text: &str) -> Vec<(bool, String)> {
    let parts = text.split('`').enumerate();
    parts
        .map(|(nth, part)| (nth % 2 == 1, part.to_owned()))
        .filter(|(_, part)| !part.is_empty())
        .collect()
}

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let named = schema["$ref"].as_str().and_then(|name| name.strip_prefix('#'));
    named.and_then(|path| document.pointer(path)).unwrap_or(schema)
}

/// What a value is, in one or two words: its type, the words it may be, or the name of its schema.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        return name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    let words = |list: &Value| {
        let all = list.as_array().into_iter().flatten().filter_map(Value::as_str);
        all.collect::<Vec<_>>().join(", ")
    };
    match &schema["type"] {
        _ if schema["enum"].is_array() => words(&schema["enum"]),
        Value::String(kind) if kind == "array" => format!("{}[]", self::kind(&schema["items"])),
        Value::String(kind) => kind.clone(),
        several @ Value::Array(_) => words(several),
        _ => schema["oneOf"]
            .as_array()
            .map_or_else(String::new, |all| all.iter().map(kind).collect::<Vec<_>>().join(", ")),
    }
}

/// Shows the calls.
///
/// # Errors
/// None.
pub async fn page(web: web::Data<Web>, caller: Caller) -> Result<HttpResponse, WebError> {
    let title = say(caller.language, "api-title", &[]);
    let frame = Frame::of(&web, &caller, "api", "/api".to_owned(), title);
    let (about, groups) = &*CALLS;
    Ok(html(&ApiPage { frame, about, groups }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_the_document_stands_on_the_page_once() {
        let document = openapi::describe();
        let paths = document["paths"].as_object().unwrap();
        let there: usize = paths.values().map(|methods| methods.as_object().unwrap().len()).sum();
        let shown: Vec<&Call> = CALLS.1.iter().flat_map(|group| &group.calls).collect();
        assert_eq!(shown.len(), there);
        let put = shown.iter().find(|call| call.id == "switch_participation").unwrap();
        let on = put.fields.iter().find(|field| field.name == "on").unwrap();
        assert_eq!((on.place, on.kind.as_str(), on.needed), ("body", "boolean", true));
        assert!(put.answers.iter().any(|(status, _)| status == "200"));
    }
}
