//! Rules and dashboard for Prometheus and Grafana ask for what a node really says, and every rule leads to a page that is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::support::node::{Ground, Node};
use crate::support::wait::{until, until_async};

fn text(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A query, and what it is for.
type Query = (String, String);

fn rules() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&text("deploy/prometheus-rules.yaml")).expect("YAML");
    let rules = file["groups"][0]["rules"].as_array().expect("rules").clone();
    assert!(rules.len() >= 10);
    rules
}

fn queries() -> Vec<Query> {
    let said = |value: &Value| value.as_str().expect("text").to_owned();
    let mut queries: Vec<Query> =
        rules().iter().map(|rule| (said(&rule["expr"]), said(&rule["alert"]))).collect();
    let board: Value = serde_json::from_str(&text("deploy/grafana-dashboard.json")).expect("JSON");
    for panel in board["panels"].as_array().expect("panels") {
        for target in panel["targets"].as_array().expect("targets") {
            queries.push((said(&target["expr"]), said(&panel["title"])));
        }
    }
    queries
}

/// Names of ours in a query, each with the labels that it is asked by.
fn metrics_of(query: &str) -> BTreeMap<String, BTreeSet<String>> {
    let of_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (at, _) in query.match_indices("soloist_") {
        let rest = &query[at..];
        let end = rest.find(|c| !of_name(c)).unwrap_or(rest.len());
        let labels = found.entry(rest[..end].to_owned()).or_default();
        if let Some((asked, _)) =
            rest[end..].strip_prefix('{').and_then(|rest| rest.split_once('}'))
        {
            labels.extend(
                asked
                    .split(',')
                    .map(|label| label[..label.find(['=', '!']).expect("asked")].to_owned()),
            );
        }
    }
    // What is grouped by, whichever metric it is of.
    for (at, _) in query.match_indices("by (") {
        let list = query[at + 4..].split(')').next().expect("closed");
        for labels in found.values_mut() {
            labels.extend(list.split(", ").map(str::to_owned));
        }
    }
    found
}

/// A node where every metric has been said once: those of rotations begin with the first turn.
fn a_node_with_everything(ground: &Ground) -> Node {
    ground.add_user("li", "operator");
    let token = ground.token("li");
    ground.must(&["rotation", "set", "r", "--type", "a", "--user", "li"]);
    let node = ground.start("node-a");
    ground.must(&["on", "t", "--user", "li"]);
    until("a tick went well", || {
        ground.must(&["ticks", "t", "--outcome", "done", "--json"]).contains("done").then_some(())
    });
    let turn = ground
        .command(&["--server", &node.url, "turn", "--rotation", "r", "--type", "a", "--", "true"])
        .env("SOLOIST_API_TOKEN", token)
        .output()
        .expect("it starts");
    assert!(turn.status.success(), "{}", String::from_utf8_lossy(&turn.stderr));
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_and_label_that_is_asked_for_is_said() {
    let jobs = "[[job]]\nname = \"o\"\ncommand = [\"true\"]\n[[job]]\nname = \"t\"\ncommand = [\"true\"]\nevery = \"1s\"\n";
    let ground = Ground::new("sqlite:soloist.db", jobs);
    let node = a_node_with_everything(&ground);
    let url = format!("{}/metrics", node.url);
    let said = until_async("the success is said", async || {
        let said = crate::support::http::get(url.clone()).await.expect("an answer");
        let said = said.text().await.expect("text");
        said.contains("soloist_job_last_success_timestamp_seconds{").then_some(said)
    })
    .await;
    let mut asked = BTreeSet::new();
    for (query, purpose) in queries() {
        for (name, labels) in metrics_of(&query) {
            let samples: Vec<&str> = said
                .lines()
                .filter(|line| {
                    line.strip_prefix(&*name).is_some_and(|rest| rest.starts_with(['{', ' ']))
                })
                .collect();
            // A histogram without a call yet, or a metric that does not exist.
            let known = said.contains(&format!("# TYPE {} ", name.trim_end_matches("_bucket")));
            assert!(known && !samples.is_empty(), "{purpose}: no metric {name}");
            for label in labels.iter().filter(|label| *label != "instance") {
                let label = format!("{label}=\"");
                assert!(
                    samples.iter().all(|line| line.contains(&label)),
                    "{purpose}: {name} has no {label}"
                );
            }
            asked.insert(name);
        }
    }
    assert!(asked.len() >= 12, "{asked:?}");
    let all = said.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    for name in all.filter(|name| name.starts_with("soloist_")) {
        let shown = asked.iter().any(|asked| asked.trim_end_matches("_bucket") == name);
        assert!(shown, "{name} stands in no rule and on no panel");
    }
}

#[test]
fn every_rule_says_how_bad_it_is_and_leads_to_what_to_do() {
    let page = text("docs/runbook.md");
    // As the anchors of Markdown are made.
    let anchors: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix('#')?.trim_start_matches('#').strip_prefix(' '))
        .map(|title| {
            let kept = title.chars().filter(|c| c.is_ascii_alphanumeric() || " -_".contains(*c));
            kept.collect::<String>().to_lowercase().replace(' ', "-")
        })
        .collect();
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = rule["alert"].as_str().expect("a name");
        assert!(names.insert(name.to_owned()), "{name} stands there twice");
        let severity = rule["labels"]["severity"].as_str().expect("a severity");
        assert!(["warning", "critical"].contains(&severity), "{name}");
        assert!(rule["annotations"]["summary"].as_str().is_some_and(|text| !text.is_empty()));
        let runbook = rule["annotations"]["runbook"].as_str().expect("a page");
        let anchor = runbook.strip_prefix("docs/runbook.md#").expect("a place on the page");
        assert!(anchors.contains(anchor), "{name}: no {anchor} on the page");
    }
}

/// What `doctor` may say and what a job may be: each has its place in the runbook.
#[test]
fn every_state_and_every_finding_has_its_place_in_the_runbook() {
    let page = text("docs/runbook.md");
    let titles: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### ")).map(str::trim).collect();
    for state in soloist::domain::job::State::ALL {
        assert!(titles.contains(state.as_str()), "no {}", state.as_str());
    }
    for check in findings() {
        assert!(titles.contains(check.as_str()), "no {check}: {titles:?}");
    }
}

/// The names of all findings, from the sources that make them.
fn findings() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in [
        "crates/cli/src/doctor.rs",
        "crates/cli/src/outside.rs",
        "crates/store/src/examine.rs",
        "crates/store-redis/src/examine.rs",
        "crates/store-sql/src/sqlite/examine.rs",
    ] {
        let source = text(file);
        for way in ["Finding::ok(", "Finding::warn(", "Finding::bad(", "let check = ", "check: "] {
            for (at, _) in source.match_indices(way) {
                let rest = source[at + way.len()..].trim_start();
                if let Some((name, _)) =
                    rest.strip_prefix('"').and_then(|rest| rest.split_once('"'))
                {
                    found.insert(name.to_owned());
                }
            }
        }
    }
    assert!(found.len() > 12, "{found:?}");
    found
}
