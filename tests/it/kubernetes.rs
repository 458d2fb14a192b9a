//! The objects for Kubernetes, plain and by the chart: what refers to something finds it, what must be longer is longer, and
//! nobody has more rights than they need.

mod chart;
mod rules;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use self::chart::Chart;

/// By kind; there is one of each.
type Objects = BTreeMap<String, Value>;

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The files of a directory below `deploy/`, in order.
fn files(dir: &str, ending: &str) -> Vec<String> {
    let listed = std::fs::read_dir(path(dir)).expect("a directory").flatten();
    let names = listed.map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

fn add(objects: &mut Objects, object: Value) {
    let kind = object["kind"].as_str().expect("a kind").to_owned();
    assert!(objects.insert(kind.clone(), object).is_none(), "two of the kind {kind}");
}

/// Of `deploy/kubernetes`, as they stand there.
fn plain() -> Objects {
    let mut objects = Objects::new();
    for name in files("kubernetes", ".yaml") {
        if name != "kustomization.yaml" {
            add(&mut objects, yaml(&text(&format!("kubernetes/{name}"))));
        }
    }
    objects
}

#[test]
fn every_object_is_applied_but_the_one_that_needs_an_operator() {
    let kustomization = yaml(&text("kubernetes/kustomization.yaml"));
    let listed: Vec<&str> = kustomization["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for name in files("kubernetes", ".yaml") {
        let expected = !["kustomization.yaml", "servicemonitor.yaml"].contains(&name.as_str());
        assert_eq!(listed.contains(&name.as_str()), expected, "{name}");
    }
}

#[test]
fn the_plain_objects_keep_the_rules() {
    rules::all(&plain());
}

/// docs/lifeline.md: one pid namespace, one user, one directory for the socket.
#[test]
fn a_program_with_a_node_beside_it_is_watched() {
    let deployment = yaml(&text("kubernetes/examples/beside-a-program.yaml"));
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["shareProcessNamespace"], true);
    assert!(pod["securityContext"]["runAsUser"].is_u64());
    let containers = pod["containers"].as_array().expect("containers");
    assert_eq!(containers.len(), 2);
    for one in containers {
        assert!(one["securityContext"]["runAsUser"].is_null(), "{one}");
        let has =
            |list: &str, wanted: Value| one[list].as_array().expect("a list").contains(&wanted);
        let socket =
            serde_json::json!({"name": "SOLOIST_LIFELINE", "value": "/run/soloist/lifeline.sock"});
        let place = serde_json::json!({"name": "lifeline", "mountPath": "/run/soloist"});
        assert!(has("env", socket) && has("volumeMounts", place), "{one}");
    }
}

#[test]
fn the_chart_makes_the_plain_objects_from_its_own_values() {
    let chart = Chart::open();
    let mut made = chart.with("serviceMonitor.enabled", true.into()).objects("soloist");
    let annotations = made.get_mut("Deployment").expect("made")["spec"]["template"]["metadata"]
        .as_object_mut()
        .expect("an object")
        .remove("annotations");
    assert!(annotations.expect("there are some")["checksum/config"].is_string());
    let plain = plain();
    assert!(made.keys().eq(plain.keys()), "{:?}", made.keys());
    for (kind, object) in &plain {
        assert_eq!(&made[kind], object, "{kind}");
    }
}

#[test]
fn the_chart_keeps_the_rules_with_other_values() {
    let volume = serde_json::json!([{ "name": "state", "emptyDir": {} }]);
    let mount = serde_json::json!([{ "name": "state", "mountPath": "/var/lib/outbound" }]);
    let chart = Chart::open()
        .with("serviceMonitor.enabled", true.into())
        .with("replicas", 3.into())
        .with("extraEnv", serde_json::json!([{ "name": "TZ", "value": "Asia/Shanghai" }]))
        .with("extraVolumes", volume)
        .with("extraVolumeMounts", mount);
    let objects = chart.objects("night-shift");
    rules::all(&objects);
    assert_eq!(objects["Deployment"]["metadata"]["name"], "night-shift");
    let deployment = objects["Deployment"].to_string();
    assert!(deployment.contains("Asia/Shanghai") && deployment.contains("/var/lib/outbound"));
}

#[test]
fn a_secret_of_ones_own_and_what_is_switched_off_are_not_made() {
    let chart = Chart::open()
        .with("existingSecret", "vault".into())
        .with("ingress.enabled", false.into())
        .with("networkPolicy.enabled", false.into());
    let objects = chart.objects("soloist");
    let kinds: Vec<&str> = objects.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service"]);
    assert!(objects["Deployment"].to_string().contains("\"vault\""));
}

#[test]
fn another_configuration_starts_the_nodes_again() {
    let of = |chart: Chart| {
        let made = chart.objects("soloist");
        made["Deployment"]["spec"]["template"]["metadata"]["annotations"].clone()
    };
    let other = Chart::open().with("config", "lease_ttl = \"9s\"\n".into());
    assert_ne!(of(Chart::open()), of(other));
}

#[test]
fn every_value_is_used_and_every_value_that_is_used_exists() {
    Chart::open().check_values();
}

#[test]
fn the_chart_has_the_version_of_the_program() {
    let chart = yaml(&text("helm/soloist/Chart.yaml"));
    for key in ["version", "appVersion"] {
        assert_eq!(chart[key], env!("CARGO_PKG_VERSION"), "{key}");
    }
    let values = yaml(&text("helm/soloist/values.yaml"));
    assert_eq!(values["image"]["tag"], env!("CARGO_PKG_VERSION"));
}
