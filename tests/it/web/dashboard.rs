//! The dashboard: what it shows is in its address, without scripts and on its socket alike.

use serde_json::Value;
use soloist::domain::name::JobName;
use soloist::store::accounts::Role;
use soloist::store::jobs::Jobs as _;

use super::live::{hear_type, heard_nothing, socket_of_a_page};
use super::{Server, job};

/// Three jobs, one of which is wanted and can run nowhere: there is no node in these tests.
async fn server() -> (Server, String) {
    let server = Server::with(|config| {
        let named = |name: &str, title: &str, group: Option<&str>| {
            let mut job = job(name);
            job.title.en = title.to_owned();
            job.group = group.map(str::to_owned);
            job
        };
        config.jobs = vec![
            named("invoices", "Zebra invoices", Some("Books & more")),
            named("stock", "Stock <b>count", Some("Books & more")),
            named("outbound", "Outbound shipping", None),
        ];
    })
    .await;
    let li = server.user("li", Role::Operator).await;
    let (cookie, _) = server.session(&li).await;
    (server, cookie)
}

async fn page(server: &Server, path: &str, cookie: &str) -> String {
    let answer = server.ask("GET", path).header("cookie", cookie).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

fn rows(page: &str) -> Vec<&str> {
    page.split(" id=\"job-").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_shown_stands_in_the_address_and_needs_no_script() {
    let (server, cookie) = server().await;
    let li = "li".parse().unwrap();
    let outbound = JobName::new("outbound").unwrap();
    server.store().participate(&outbound, &li, true, None).await.unwrap();
    let needs = async || {
        let page = page(&server, "/", &cookie).await;
        (rows(&page)[0] == "outbound").then_some(page)
    };
    let whole = crate::support::wait::until_async("it needs somebody", needs).await;
    assert_eq!(rows(&whole), ["outbound", "invoices", "stock"]);
    let headings: Vec<&str> = whole
        .split("class=\"group\">")
        .skip(1)
        .map(|rest| rest.split('<').next().unwrap())
        .collect();
    assert_eq!(headings, ["Needs you", "Books &#38; more"]);
    assert!(whole.contains("<a href=\"/?state=trouble\"><strong>1</strong> needs you"), "{whole}");
    for (query, shown) in [
        ("state=trouble", &["outbound"][..]),
        ("state=off", &["invoices", "stock"]),
        ("state=off&q=zebra", &["invoices"]),
        ("q=LI+outbound", &["outbound"]),
        ("group=Books+%26+more", &["invoices", "stock"]),
        ("sort=name", &["outbound", "stock", "invoices"]),
        ("sort=state", &["outbound", "invoices", "stock"]),
        ("state=given_up", &[]),
        ("state=%00&sort=x&q=", &["outbound", "invoices", "stock"]),
    ] {
        let page = page(&server, &format!("/?{query}"), &cookie).await;
        assert_eq!(rows(&page), shown, "{query}");
    }
    let hostile = page(&server, "/?q=%22%3E%3Cscript%3E&state=off", &cookie).await;
    assert!(!hostile.contains("\"><script>") && rows(&hostile).is_empty());
    assert!(hostile.contains("<a href=\"/?state=trouble&#38;q=%22%3E%3Cscript%3E\">"), "{hostile}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_of_a_page_tells_only_what_the_page_shows() {
    let (server, cookie) = server().await;
    let li = "li".parse().unwrap();
    let (stock, invoices) = (JobName::new("stock").unwrap(), JobName::new("invoices").unwrap());
    let shown = page(&server, "/?state=off&q=books", &cookie).await;
    let path = shown.split("data-live=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(path.starts_with("/live?state=off&#38;q=books&#38;have="), "{path}");
    let mut socket = socket_of_a_page(&server, &path.replace("&#38;", "&"), &cookie).await;
    let snapshot = hear_type(&mut socket, "snapshot").await;
    let order = [Value::from("invoices"), Value::from("stock")];
    assert_eq!(snapshot["order"], Value::from(order.to_vec()));

    // It does not fit any more: it leaves.
    server.store().participate(&stock, &li, true, None).await.unwrap();
    assert_eq!(hear_type(&mut socket, "gone").await["job"], "stock");
    let counted = hear_type(&mut socket, "summary").await["html"].as_str().unwrap().to_owned();
    assert!(counted.contains("aria-current=\"true\"><strong>2</strong> off"), "{counted}");
    // What never fitted is not told.
    let outbound = JobName::new("outbound").unwrap();
    server.store().participate(&outbound, &li, true, None).await.unwrap();
    hear_type(&mut socket, "summary").await;
    heard_nothing(&mut socket, "row").await;
    // It fits again: it comes, and says where it stands.
    server.store().participate(&stock, &li, false, None).await.unwrap();
    let row = hear_type(&mut socket, "row").await;
    assert_eq!((&row["job"], &row["under"]), (&"stock".into(), &"Books & more".into()));
    server.store().participate(&invoices, &li, true, None).await.unwrap();
    assert_eq!(hear_type(&mut socket, "gone").await["job"], "invoices");
    assert!(row["key"].as_str().unwrap() > "1-00000");
}
