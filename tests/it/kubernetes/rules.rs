//! What must hold of the objects, whoever made them.

use std::time::Duration;

use serde_json::Value;
use soloist::config::{Overrides, examine};
use tempfile::TempDir;

use super::Objects;

/// The names of what stands in a list.
fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|item| item["name"].as_str()).collect()
}

pub(super) fn all(objects: &Objects) {
    for (kind, object) in objects {
        assert!(
            object["apiVersion"].is_string() && object["metadata"]["name"].is_string(),
            "{kind}"
        );
        let label = &object["metadata"]["labels"]["app.kubernetes.io/name"];
        assert_eq!(label, "soloist", "{kind}");
    }
    let deployment = &objects["Deployment"]["spec"];
    let pod = &deployment["template"]["spec"];
    who_is_meant(objects, &deployment["template"]["metadata"]["labels"]);
    time_to_end(objects, pod);
    no_more_rights_than_needed(pod);
    what_is_mounted_and_given(objects, pod);
    ways_in(objects, pod);
    two_machines(deployment, &objects["PodDisruptionBudget"]["spec"]);
}

fn who_is_meant(objects: &Objects, labels: &Value) {
    for (kind, selector) in [
        ("Deployment", "/spec/selector/matchLabels"),
        ("Service", "/spec/selector"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        (
            "Deployment",
            "/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/labelSelector/matchLabels",
        ),
    ] {
        let Some(object) = objects.get(kind) else { continue };
        assert_eq!(object.pointer(selector), Some(labels), "{kind}{selector}");
    }
    let service = &objects["Service"]["metadata"]["labels"];
    if let Some(monitor) = objects.get("ServiceMonitor") {
        assert_eq!(&monitor["spec"]["selector"]["matchLabels"], service);
    }
}

/// The configuration is right, and the pod lives longer than its longest stop and ten seconds.
fn time_to_end(objects: &Objects, pod: &Value) {
    let toml = objects["ConfigMap"]["data"]["soloist.toml"].as_str().expect("a configuration");
    let dir = TempDir::new().expect("a directory");
    let file = dir.path().join("soloist.toml");
    std::fs::write(&file, toml).expect("written");
    let over = Overrides { only_looks: true, ..Overrides::default() };
    let path = |name: &str| (name == "PATH").then(|| "/usr/bin:/bin".to_owned());
    let config = examine(Some(&file), over, &path).config;
    let config = config.unwrap_or_else(|problems| panic!("{problems}"));
    let longest = config.jobs.iter().map(|job| job.stop_grace).max().unwrap_or_default();
    let grace = pod["terminationGracePeriodSeconds"].as_u64().expect("seconds");
    assert!(Duration::from_secs(grace) >= longest + Duration::from_secs(10), "{grace} s");
}

fn no_more_rights_than_needed(pod: &Value) {
    assert_eq!(pod["automountServiceAccountToken"], false);
    let of_pod = &pod["securityContext"];
    assert_eq!(of_pod["runAsNonRoot"], true);
    let user = of_pod["runAsUser"].as_u64().expect("a number");
    let dockerfile = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/Dockerfile"));
    assert!(dockerfile.expect("a file").contains(&format!("\nUSER {user}:{user}\n")));
    assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    let own = &container["securityContext"];
    assert_eq!(own["allowPrivilegeEscalation"], false);
    assert_eq!(own["readOnlyRootFilesystem"], true);
    assert_eq!(own["capabilities"]["drop"][0], "ALL");
    let limits = &container["resources"]["limits"];
    assert!(limits["memory"].is_string() && limits["cpu"].is_null(), "throttled nodes lose leases");
    let image = container["image"].as_str().expect("an image");
    assert!(image.contains(':') && !image.ends_with(":latest"), "{image}");
}

fn what_is_mounted_and_given(objects: &Objects, pod: &Value) {
    let container = &pod["containers"][0];
    let (volumes, mounts) = (names(&pod["volumes"]), names(&container["volumeMounts"]));
    assert_eq!(volumes, mounts, "each is mounted once");
    let writable = container["volumeMounts"].as_array().expect("a list");
    assert!(writable.iter().any(|mount| mount["mountPath"] == "/tmp"), "notes of runs stand there");
    let config = &pod["volumes"][0]["configMap"]["name"];
    assert_eq!(config, &objects["ConfigMap"]["metadata"]["name"]);
    let env = names(&container["env"]);
    for needed in
        ["SOLOIST_CONFIG", "SOLOIST_STORE", "SOLOIST_NODE", "SOLOIST_LISTEN", "SOLOIST_PUBLIC_URL"]
    {
        assert!(env.contains(&needed), "{needed}");
    }
    let Some(secret) = objects.get("Secret") else { return };
    let mut asked = vec![];
    for variable in container["env"].as_array().expect("a list") {
        asked.extend(variable["valueFrom"].get("secretKeyRef"));
    }
    let monitor = objects.get("ServiceMonitor");
    asked.extend(monitor.map(|it| &it["spec"]["endpoints"][0]["authorization"]["credentials"]));
    assert!(!asked.is_empty());
    for asked in asked {
        assert_eq!(asked["name"], secret["metadata"]["name"]);
        let key = asked["key"].as_str().expect("a key");
        assert!(secret["stringData"][key].is_string(), "{key}");
    }
}

/// Every address that is asked is one of the program's, at a port that is there.
fn ways_in(objects: &Objects, pod: &Value) {
    let container = &pod["containers"][0];
    let port = &container["ports"][0];
    let env = container["env"].as_array().expect("a list");
    let listen = env.iter().find(|variable| variable["name"] == "SOLOIST_LISTEN").expect("given");
    let listen = listen["value"].as_str().expect("text");
    assert!(listen.ends_with(&format!(":{}", port["containerPort"])));
    for (probe, asked) in [
        ("startupProbe", "/readyz"),
        ("readinessProbe", "/readyz?for=reading"),
        ("livenessProbe", "/healthz"),
    ] {
        assert_eq!(container[probe]["httpGet"]["path"], asked, "{probe}");
        assert_eq!(container[probe]["httpGet"]["port"], port["name"], "{probe}");
    }
    let service = &objects["Service"];
    assert_eq!(service["spec"]["ports"][0]["targetPort"], port["name"]);
    if let Some(ingress) = objects.get("Ingress") {
        let rule = &ingress["spec"]["rules"][0];
        let backend = &rule["http"]["paths"][0]["backend"]["service"];
        assert_eq!(backend["name"], service["metadata"]["name"]);
        assert_eq!(backend["port"]["name"], service["spec"]["ports"][0]["name"]);
        assert_eq!(ingress["spec"]["tls"][0]["hosts"][0], rule["host"]);
        let public = format!("https://{}", rule["host"].as_str().expect("a host"));
        assert!(env.iter().any(|it| it["name"] == "SOLOIST_PUBLIC_URL" && it["value"] == public));
        let annotations = ingress["metadata"]["annotations"].as_object().expect("some");
        let longest = annotations.iter().find(|(key, _)| key.ends_with("/proxy-read-timeout"));
        let seconds =
            longest.expect("said").1.as_str().expect("text").parse::<u64>().expect("seconds");
        assert!(seconds > 60, "WebSockets live longer");
    }
    if let Some(policy) = objects.get("NetworkPolicy") {
        assert_eq!(policy["spec"]["ingress"][0]["ports"][0]["port"], port["name"]);
    }
    if let Some(monitor) = objects.get("ServiceMonitor") {
        let endpoint = &monitor["spec"]["endpoints"][0];
        assert_eq!(endpoint["path"], "/metrics");
        assert_eq!(endpoint["port"], service["spec"]["ports"][0]["name"]);
    }
}

/// A machine that dies, or is emptied, takes one node with it.
fn two_machines(deployment: &Value, budget: &Value) {
    let replicas = deployment["replicas"].as_u64().expect("a number");
    assert!(replicas >= 2, "nobody takes over from one");
    assert!(budget["maxUnavailable"].as_u64().expect("a number") < replicas);
    let apart = &deployment["template"]["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        [0];
    assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
    let rolling = &deployment["strategy"]["rollingUpdate"];
    assert_eq!((&rolling["maxSurge"], &rolling["maxUnavailable"]), (&0.into(), &1.into()));
}
