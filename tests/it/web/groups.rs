//! Jobs of one group stand together, under its heading: on the page, in every answer, and for who listens.

use super::{Role, Server, job};

#[tokio::test(flavor = "multi_thread")]
async fn jobs_stand_under_the_heading_of_their_group_and_those_without_come_last() {
    let server = Server::with(|config| {
        let named = |name: &str, group: Option<&str>| {
            let group = group.map(str::to_owned);
            soloist::config::JobConfig { group, ..job(name) }
        };
        config.jobs = vec![
            named("outbound", None),
            named("invoices", Some("Books & more")),
            named("stock", Some("仓库")),
            named("settlement", Some("Books & more")),
        ];
    })
    .await;
    let token = server.token("li", Role::Operator).await;
    let order = ["invoices", "settlement", "stock", "outbound"];

    let jobs: serde_json::Value = server.get("/api/v1/jobs", &token).await.json().await.unwrap();
    let jobs = jobs["jobs"].as_array().unwrap();
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert_eq!(names, order);
    assert_eq!((&jobs[0]["group"], &jobs[3]["group"]), (&"Books & more".into(), &().into()));

    let page = server.get("/", &token).await.text().await.unwrap();
    let headings: Vec<&str> = page
        .split("<h2 class=\"group\">")
        .skip(1)
        .map(|rest| &rest[..rest.find('<').unwrap()])
        .collect();
    assert_eq!(headings, ["Books &#38; more", "仓库"]);
    let parts = [
        "<h2 class=\"group\">Books",
        "id=\"job-invoices\"",
        "id=\"job-settlement\"",
        "<h2 class=\"group\">仓库",
        "id=\"job-stock\"",
        "id=\"job-outbound\"",
    ];
    let places: Vec<usize> =
        parts.iter().map(|part| page.find(part).unwrap_or_else(|| panic!("{part}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    let row = |name: &str| {
        let from = page.find(&format!("id=\"job-{name}\"")).unwrap();
        page[from..from + page[from..].find('>').unwrap()].to_owned()
    };
    assert!(row("stock").contains("data-group=\"仓库\""), "a push carries it, too");
    assert!(!row("outbound").contains("data-group"));
}
