//! As much of Helm's templates as the chart uses: values, a few functions, `if` and `if not`. Anything else is an error here, so that
//! the chart stays within what is tried.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::{Objects, add, files, text, yaml};

/// The chart with its values, some of them changed.
pub(super) struct Chart {
    values: Value,
}

/// A part of a template.
enum Part<'a> {
    Text(&'a str),
    /// What stands between the braces.
    Act(&'a str),
}

impl Chart {
    pub(super) fn open() -> Self {
        Self { values: yaml(&text("helm/soloist/values.yaml")) }
    }

    /// With another value at a path such as `ingress.enabled`, which must exist.
    pub(super) fn with(mut self, path: &str, value: Value) -> Self {
        let pointer = format!("/{}", path.replace('.', "/"));
        *self.values.pointer_mut(&pointer).unwrap_or_else(|| panic!("no value {path}")) = value;
        self
    }

    pub(super) fn objects(&self, release: &str) -> Objects {
        let root =
            json!({ "Values": self.values, "Release": { "Name": release, "Namespace": "jobs" } });
        let mut objects = Objects::new();
        for name in files("helm/soloist/templates", ".yaml") {
            let made = rendered(&text(&format!("helm/soloist/templates/{name}")), &root);
            if !made.trim().is_empty() {
                add(&mut objects, yaml(&made));
            }
        }
        assert!(!rendered(&text("helm/soloist/templates/NOTES.txt"), &root).contains("{{"));
        objects
    }

    pub(super) fn check_values(&self) {
        let all: String = files("helm/soloist/templates", "")
            .iter()
            .map(|name| text(&format!("helm/soloist/templates/{name}")))
            .collect();
        let mut used = BTreeSet::new();
        for part in parts(&all) {
            let Part::Act(act) = part else { continue };
            for path in act.split(' ').filter_map(|word| word.strip_prefix(".Values.")) {
                let pointer = format!("/{}", path.replace('.', "/"));
                assert!(self.values.pointer(&pointer).is_some(), "no value {path}");
                used.insert(path.to_owned());
            }
        }
        let mut unused = Vec::new();
        look(&self.values, "", &used, &mut unused);
        assert!(unused.is_empty() && used.len() > 20, "not used: {unused:?}");
    }
}

/// Values that are used neither themselves nor as a part of one that is.
fn look(value: &Value, path: &str, used: &BTreeSet<String>, unused: &mut Vec<String>) {
    if used.contains(path) {
        return;
    }
    match value.as_object() {
        Some(inner) if !inner.is_empty() => {
            for (key, value) in inner {
                let dot = if path.is_empty() { "" } else { "." };
                look(value, &format!("{path}{dot}{key}"), used, unused);
            }
        }
        _ => unused.push(path.to_owned()),
    }
}

/// Text and acts, with the blanks taken that `{{-` and `-}}` take.
fn parts(template: &str) -> Vec<Part<'_>> {
    let (mut parts, mut rest, mut trims) = (Vec::new(), template, false);
    while let Some((before, behind)) = rest.split_once("{{") {
        let before = if trims { before.trim_start() } else { before };
        let left = behind.starts_with('-');
        parts.push(Part::Text(if left { before.trim_end() } else { before }));
        let (act, after) = behind.split_once("}}").expect("closed braces");
        trims = act.ends_with('-');
        parts.push(Part::Act(act.trim_start_matches('-').trim_end_matches('-').trim()));
        rest = after;
    }
    parts.push(Part::Text(if trims { rest.trim_start() } else { rest }));
    parts
}

fn rendered(template: &str, root: &Value) -> String {
    let mut out = String::new();
    // One entry for each `if` that is open: whether what is in it counts.
    let mut open: Vec<bool> = Vec::new();
    for part in parts(template) {
        let counts = open.iter().all(|open| *open);
        match part {
            Part::Text(text) if counts => out.push_str(text),
            Part::Text(_) => {}
            Part::Act("end") => assert!(open.pop().is_some(), "an end too many"),
            Part::Act(act) => match act.strip_prefix("if ") {
                Some(asked) => open.push(match asked.strip_prefix("not ") {
                    Some(path) => !truth(found(path, root)),
                    None => truth(found(asked, root)),
                }),
                None if counts => out.push_str(&value(act, root)),
                None => {}
            },
        }
    }
    assert!(open.is_empty(), "an if without its end");
    out
}

fn found<'a>(path: &str, root: &'a Value) -> &'a Value {
    let pointer = path.replace('.', "/");
    root.pointer(&pointer).unwrap_or_else(|| panic!("{path} does not exist"))
}

/// What Go's templates take for true.
fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

/// A value, and the functions that it is given to one after the other.
fn value(act: &str, root: &Value) -> String {
    let mut steps = act.split(" | ");
    let first = steps.next().expect("a value");
    // JSON is YAML; a list has a line for each of its items, as it may go on one that stands before it.
    let mut said = match first.strip_prefix("toYaml ") {
        Some(path) => match found(path, root) {
            Value::Array(items) if !items.is_empty() => {
                items.iter().map(|item| format!("- {item}\n")).collect()
            }
            other => other.to_string(),
        },
        None => plain(found(first, root)),
    };
    for step in steps {
        said = match step.split_once(' ').unwrap_or((step, "")) {
            ("quote", "") => Value::from(said).to_string(),
            ("sha256sum", "") => {
                Sha256::digest(said).iter().fold(String::new(), |mut hex, byte| {
                    write!(hex, "{byte:02x}").expect("a string takes it");
                    hex
                })
            }
            ("nindent", wide) => {
                let indent = " ".repeat(wide.parse().expect("a number"));
                said.lines().fold(String::new(), |text, line| format!("{text}\n{indent}{line}"))
            }
            ("default", path) if said.is_empty() => plain(found(path, root)),
            ("default", _) => said,
            _ => panic!("{step} is not known here: {act}"),
        };
    }
    said
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
