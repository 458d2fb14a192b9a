//! What operators and admins administer from the page: forms without scripts, what they refuse and keep, and what is shown of it.

use serde_json::{Value, json};
use soloist::domain::name::UserName;
use soloist::store::accounts::{Accounts as _, Role};

use super::accounts::Browser;
use super::dispatch::{claim, put, shop_on};
use super::rotations::{granted, supplier, three};
use super::{On, Server};
use crate::support::api::Api;
use crate::support::wait::until_async;

on_every_store! {
    a_source_is_made_and_its_rules_are_changed_by_a_form
    a_source_is_paused_and_blocked_for_a_reason_and_its_page_comes_back
    tasks_are_listed_by_state_and_page_by_page
    tasks_are_put_by_a_form_that_keeps_what_was_typed
    several_tasks_are_revived_and_removed_and_one_in_hands_only_if_that_was_said
    a_rotation_is_made_and_its_rules_are_changed_by_a_form
    an_admin_sees_and_ends_what_an_account_has
    what_goes_with_an_account_is_said_before_it_is_removed
}

const SHOP: &str = "/dispatch/sources/shop";

async fn newest(api: &Api) -> Value {
    api.get("/api/v1/audit?limit=1").await["entries"][0].clone()
}

async fn a_source_is_made_and_its_rules_are_changed_by_a_form(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let olga = Browser::of(&server, "olga").await;
    let (status, page) =
        olga.form("/dispatch/sources", &[("name", "pages"), ("gap", "soon"), ("cap", "7")]).await;
    assert_eq!(status, 400);
    assert!(page.contains("Gap is wrong: Least time between two starts"), "{page}");
    assert!(page.contains("value=\"soon\"") && page.contains("value=\"7\""), "kept: {page}");
    assert_eq!(page.matches("aria-invalid").count(), 1, "{page}");
    let (status, page) = olga.form("/dispatch/sources", &[("name", "Pages")]).await;
    assert!(status == 400 && page.contains("Name is wrong"), "{page}");
    let fields = [("name", "pages"), ("gap", "1s 500ms"), ("cap", "7"), ("attempts", "0")];
    assert_eq!(
        olga.form("/dispatch/sources", &fields).await,
        (303, "/dispatch/sources/pages".to_owned())
    );
    let rules = api.get("/api/v1/sources/pages").await;
    assert_eq!((&rules["gap_ms"], &rules["cap"]), (&json!(1_500), &json!(7)));
    assert_eq!((&rules["max_attempts"], &rules["lease_ms"]), (&json!(0), &json!(60_000)));
    let (status, page) = olga.form("/dispatch/sources", &fields).await;
    assert!(status == 409 && page.contains("There is a source pages already"), "{page}");

    assert_eq!(olga.form("/dispatch/sources/pages/pause", &[("on", "true")]).await.0, 200);
    olga.form("/dispatch/sources/pages/pause", &[("on", "true"), ("confirm", "yes")]).await;
    let page = olga.page("/dispatch/sources/pages/rules", "en").await;
    assert!(page.contains("value=\"1s 500ms\"") && page.contains("value=\"7\""), "{page}");
    let change = [("window-count", "100"), ("window-span", "1m"), ("reason", "they asked")];
    let (status, to) = olga.form("/dispatch/sources/pages/rules", &change).await;
    assert_eq!((status, to.as_str()), (303, "/dispatch/sources/pages?said=rules"));
    let rules = api.get("/api/v1/sources/pages").await;
    assert_eq!(rules["window"], json!({"count": 100, "ms": 60_000}));
    assert_eq!(rules["cap"], Value::Null, "what is left empty has its default");
    assert_eq!(rules["paused"], true, "pausing is another form");
    let noted = newest(&api).await;
    assert_eq!((&noted["act"], &noted["reason"]), (&json!("source.put"), &json!("they asked")));
    let zh = server.page("/dispatch/sources/pages/rules", api.token(), "zh").await;
    assert!(zh.contains("两次开始之间的最短时间"), "{zh}");
    let viewer = server.token("vera", Role::Viewer).await;
    let page = server.page("/dispatch/sources/pages", &viewer, "en").await;
    assert!(!page.contains("/rules\"") && !page.contains("name=\"act\""), "only looks: {page}");
}

async fn a_source_is_paused_and_blocked_for_a_reason_and_its_page_comes_back(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let olga = Browser::of(&server, "olga").await;
    let pause = [("on", "true"), ("reason", "stocktaking"), ("back", SHOP)];
    let (_, asked) = olga.form(&format!("{SHOP}/pause"), &pause).await;
    assert!(asked.contains("value=\"stocktaking\"") && asked.contains("Pause shop?"), "{asked}");
    let sure = [pause.as_slice(), &[("confirm", "yes")]].concat();
    assert_eq!(olga.form(&format!("{SHOP}/pause"), &sure).await, (303, SHOP.to_owned()));
    let noted = newest(&api).await;
    assert_eq!((&noted["act"], &noted["reason"]), (&json!("source.pause"), &json!("stocktaking")));
    assert!(olga.page(SHOP, "en").await.contains("Resume shop"));
    let block = [("for", "10m"), ("reason", "HTTP 429"), ("back", SHOP), ("confirm", "yes")];
    assert_eq!(olga.form(&format!("{SHOP}/block"), &block).await, (303, SHOP.to_owned()));
    assert_eq!(newest(&api).await["reason"], "for 600000 ms: HTTP 429");
    assert!(olga.page("/audit", "en").await.contains("HTTP 429"));
    let (_, asked) = olga.form("/dispatch/remove", &[("name", "shop"), ("back", SHOP)]).await;
    assert!(asked.contains(&format!("href=\"{SHOP}\"")), "no leads back: {asked}");
}

fn ticked(page: &str) -> Vec<String> {
    let values = page.split("name=\"task\" value=\"").skip(1);
    values.map(|rest| rest[..32].to_owned()).collect()
}

async fn tasks_are_listed_by_state_and_page_by_page(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let olga = Browser::of(&server, "olga").await;
    let empty = olga.page(SHOP, "en").await;
    assert!(empty.contains("soloist collect --source shop") && ticked(&empty).is_empty());
    let keys: Vec<String> = (0..53).map(|n| format!("key-{n}")).collect();
    put(&api, &keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let held = claim(&api, "r1", json!({})).await["tasks"][0].clone();
    let first = olga.page(SHOP, "en").await;
    assert_eq!(ticked(&first).len(), 50);
    let next = first.split("rel=\"next\" href=\"").nth(1).unwrap().split('#').next().unwrap();
    let second = olga.page(next, "en").await;
    assert_eq!(ticked(&second).len(), 3);
    assert!(ticked(&second).iter().all(|id| !ticked(&first).contains(id)), "none twice");
    assert!(!second.contains("rel=\"next\""));
    let leased = olga.page(&format!("{SHOP}?state=leased"), "en").await;
    assert_eq!(ticked(&leased), [held["id"].as_str().unwrap()]);
    assert!(leased.contains("c1") && leased.contains("In flight 1"), "{leased}");
    assert!(ticked(&olga.page(&format!("{SHOP}?state=dead"), "en").await).is_empty());
    let wrong = server.get(&format!("{SHOP}?state=lost"), api.token()).await;
    assert_eq!(wrong.status(), 400);
}

async fn tasks_are_put_by_a_form_that_keeps_what_was_typed(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let olga = Browser::of(&server, "olga").await;
    let path = format!("{SHOP}/tasks");
    for (field, text, label) in [
        ("payload", "{no", "Payload is wrong"),
        ("priority", "10", "Priority is wrong"),
        ("at", "tomorrow", "Not before is wrong"),
        ("every", "0s", "Again every is wrong"),
        ("key", "", "Key is wrong"),
    ] {
        let (status, page) = olga.form(&path, &[("key", "kept"), (field, text)]).await;
        assert_eq!(status, 400, "{field}");
        assert!(page.contains(label), "{field}: {page}");
        assert!(field == "key" || page.contains("value=\"kept\""), "{field}: {page}");
    }
    let fields = [
        ("key", "https://example.org/1"),
        ("payload", "{\"depth\": 1}"),
        ("priority", "9"),
        ("every", "1d"),
    ];
    let (status, to) = olga.form(&path, &fields).await;
    assert_eq!((status, to.as_str()), (303, "/dispatch/sources/shop?said=put#tasks"));
    let task = api.get("/api/v1/tasks?source=shop").await["tasks"][0].clone();
    assert_eq!((&task["payload"], &task["priority"]), (&json!({"depth": 1}), &json!(9)));
    assert_eq!(task["every_ms"], 86_400_000);
    assert!(olga.form(&path, &fields).await.1.contains("said=there"), "the same is the same");
}

async fn several_tasks_are_revived_and_removed_and_one_in_hands_only_if_that_was_said(on: On) {
    let (server, api) = shop_on(on, json!({})).await;
    let olga = Browser::of(&server, "olga").await;
    let ids = put(&api, &["a", "b", "c"]).await["tasks"].clone();
    let dead = claim(&api, "r1", json!({})).await["tasks"][0].clone();
    let report = json!({"id": dead["id"], "token": dead["token"], "outcome": "dead", "error": "x"});
    super::dispatch::ok(
        &api,
        reqwest::Method::POST,
        "/api/v1/results",
        json!({"results": [report]}),
    )
    .await;
    let all: Vec<&str> =
        ids.as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
    let chosen: Vec<(&str, &str)> = all.iter().map(|id| ("task", *id)).collect();
    let with = |more: &[(&'static str, &'static str)]| [chosen.as_slice(), more].concat();
    let (_, asked) =
        olga.form("/dispatch/tasks", &with(&[("act", "revive"), ("back", SHOP)])).await;
    assert!(asked.contains("Revive 3 tasks?"), "{asked}");
    assert_eq!(asked.matches("is not dead and stays as it is").count(), 2, "{asked}");
    assert_eq!(api.get("/api/v1/dead").await["tasks"].as_array().unwrap().len(), 1, "only asked");
    let sure = with(&[("act", "revive"), ("confirm", "yes"), ("back", SHOP)]);
    let (_, done) = olga.form("/dispatch/tasks", &sure).await;
    assert_eq!(done.matches("is ready again").count(), 1, "{done}");
    assert_eq!(newest(&api).await["act"], "task.revive");

    let held = claim(&api, "r2", json!({})).await["tasks"][0]["id"].as_str().unwrap().to_owned();
    let sure = with(&[("act", "remove"), ("confirm", "yes"), ("back", SHOP)]);
    let (_, done) = olga.form("/dispatch/tasks", &sure).await;
    assert_eq!(done.matches("was removed").count(), 2, "{done}");
    assert!(done.contains("c1 is working on this task"), "it was not said: {done}");
    let left = api.get("/api/v1/tasks?source=shop").await["tasks"].clone();
    assert_eq!((left.as_array().unwrap().len(), &left[0]["id"]), (1, &json!(held)));
    let one = [("task", held.as_str()), ("act", "remove"), ("back", SHOP)];
    let own = olga.page(&format!("/dispatch/tasks/{held}"), "en").await;
    assert!(own.contains("Remove the task") && own.contains(&format!("value=\"{held}\"")), "{own}");
    let (_, asked) = olga.form("/dispatch/tasks", &one).await;
    assert!(asked.contains("is claimed by c1"), "{asked}");
    assert!(asked.contains(&format!("name=\"held\" value=\"{held}\"")), "{asked}");
    let sure = [one.as_slice(), &[("held", held.as_str()), ("confirm", "yes")]].concat();
    olga.form("/dispatch/tasks", &sure).await;
    assert_eq!(api.get("/api/v1/tasks?source=shop").await["tasks"], json!([]));
    let (_, none) = olga.form("/dispatch/tasks", &[("act", "remove")]).await;
    assert!(none.contains("No task is chosen"), "{none}");
}

async fn a_rotation_is_made_and_its_rules_are_changed_by_a_form(on: On) {
    let (server, api) = supplier(on, three(json!({}))).await;
    let olga = Browser::of(&server, "olga").await;
    let (status, page) = olga
        .form(
            "/rotations",
            &[("name", "dock"), ("type-0", "in"), ("type-2", "in"), ("min-gap", "2s")],
        )
        .await;
    assert_eq!(status, 400);
    assert!(page.contains("Type is wrong: A name that no other row has"), "{page}");
    assert!(page.contains("value=\"2s\"") && page.contains("id=\"f-type-2\""), "{page}");
    let fields = [
        ("name", "remove"),
        ("type-0", "in"),
        ("type-2", "out"),
        ("quota-count-2", "4"),
        ("quota-span-2", "1h"),
        ("min-gap", "2s"),
        ("skip", "never"),
    ];
    let (status, to) = olga.form("/rotations", &fields).await;
    assert_eq!((status, to.as_str()), (303, "/rotations/ring/remove"), "also of such a name");
    let made = api.get("/api/v1/rotations/remove").await;
    assert_eq!((&made["min_gap_ms"], &made["skip"]), (&json!(2_000), &json!("never")));
    assert_eq!(made["types"][1]["name"], "out");
    assert_eq!(made["types"][1]["quota"], json!({"count": 4, "ms": 3_600_000}));
    assert!(olga.page(&to, "en").await.contains("soloist turn --rotation remove --type in"));
    assert_eq!(olga.form("/rotations", &fields).await.0, 409);

    granted(&api, "a", "r1", json!({})).await;
    let page = olga.page("/rotations/ring/supplier", "zh").await;
    assert!(page.contains("w-a"), "who has the turn: {page}");
    let rules = olga.page("/rotations/ring/supplier/rules", "en").await;
    assert!(rules.contains("name=\"type-2\" value=\"c\""), "{rules}");
    let change = [("type-0", "b"), ("type-1", "a"), ("reason", "b first")];
    let (status, to) = olga.form("/rotations/ring/supplier/rules", &change).await;
    assert_eq!((status, to.as_str()), (303, "/rotations/ring/supplier?said=rules"));
    let now = api.get("/api/v1/rotations/supplier").await;
    let order: Vec<&str> = now["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["name"].as_str().unwrap())
        .collect();
    assert_eq!(order, ["b", "a"]);
    assert_eq!(now["holder"]["worker"], "w-a", "whoever has the turn keeps it");
    assert_eq!(newest(&api).await["reason"], "b first");
}

async fn an_admin_sees_and_ends_what_an_account_has(on: On) {
    let server = Server::on(on).await;
    server.user("ada", Role::Admin).await;
    let token = server.token("wang", Role::Operator).await;
    let (ada, wang) = (Browser::of(&server, "ada").await, Browser::of(&server, "wang").await);
    server.get("/api/v1/jobs", &token).await;
    let page = ada.page("/people/wang", "en").await;
    let id = page.split("/tokens/").nth(1).unwrap().split('/').next().unwrap();
    assert!(page.contains("/sessions/end") && !page.contains("not lately"), "{page}");
    assert!(ada.page("/people", "zh").await.contains("href=\"/people/wang\""));
    let revoke = |user: &str| format!("/people/{user}/tokens/{id}/revoke");
    assert_eq!(ada.form(&revoke("ada"), &[]).await.0, 404, "of another account");
    assert_eq!(server.get("/api/v1/jobs", &token).await.status(), 200);
    assert_eq!(ada.form(&revoke("wang"), &[]).await.0, 303);
    until_async("the token is worth nothing", async || {
        (server.get("/api/v1/jobs", &token).await.status() == 401).then_some(())
    })
    .await;
    let (_, asked) = ada.form("/people/wang/sessions/end", &[]).await;
    assert!(
        asked.contains("Sign wang out everywhere?") && asked.contains("One session"),
        "{asked}"
    );
    assert_eq!(wang.call("GET", "/api/v1/me", None).await.0, 200, "only asked");
    assert_eq!(ada.form("/people/wang/sessions/end", &[("confirm", "yes")]).await.0, 303);
    assert_eq!(wang.call("GET", "/api/v1/me", None).await.0, 401);
    assert!(ada.page("/audit", "en").await.contains("signed <strong>wang</strong> out everywhere"));
    let (status, page) = ada.form("/people/wang/name", &[("display_name", "a\u{200b}b")]).await;
    assert!(status == 400 && page.contains("value=\"a&#60;U+200B&#62;b\""), "{page}");
    assert_eq!(ada.form("/people/wang/name", &[("display_name", "王芳")]).await.0, 303);
    assert!(ada.page("/people/wang", "en").await.contains("王芳"));
    let vera = server.user("vera", Role::Viewer).await;
    let vera = Browser::of(&server, vera.as_str()).await;
    let shut = server.ask("GET", "/people/wang").header("cookie", &vera.cookie).send().await;
    assert_eq!(shut.unwrap().status(), 403);
}

async fn what_goes_with_an_account_is_said_before_it_is_removed(on: On) {
    let server = Server::on_with(on, |config| config.jobs.push(super::job("labels"))).await;
    server.user("ada", Role::Admin).await;
    server.user("wang", Role::Operator).await;
    let (ada, wang) = (Browser::of(&server, "ada").await, Browser::of(&server, "wang").await);
    let switch = Some(json!({"on": true}));
    for (who, job) in [(&wang, "outbound"), (&wang, "labels"), (&ada, "labels")] {
        who.call("PUT", &format!("/api/v1/jobs/{job}/participation"), switch.clone()).await;
    }
    let page = ada.page("/people/wang", "en").await;
    assert!(page.contains("/jobs/outbound") && page.contains("/jobs/labels"), "{page}");
    assert_eq!(page.matches("nobody else wants it").count(), 1, "{page}");
    let (_, asked) = ada.form("/people/wang/remove", &[]).await;
    for said in [
        "Sessions that end: 1. API tokens that end: 0.",
        "Stops, because nobody else wants it: outbound.",
        "Continues, because others want it too: labels.",
    ] {
        assert!(asked.contains(said), "{said}: {asked}");
    }
    let (_, made) = ada.form("/people", &[("name", "li"), ("role", "viewer")]).await;
    let link = made.split("/login?link=").nth(1).unwrap().split('<').next().unwrap().to_owned();
    let open = async || server.ask("GET", &format!("/login?link={link}")).send().await.unwrap();
    assert!(open().await.text().await.unwrap().contains("name=\"password\""), "it is open");
    assert_eq!(ada.form("/people/li/link/withdraw", &[]).await.0, 303);
    assert!(!open().await.text().await.unwrap().contains("autocomplete=\"new-password\""));
    assert_eq!(ada.form("/people/wang/link/withdraw", &[]).await.0, 409, "no invitation is open");
    let li = UserName::new("li").unwrap();

    assert!(server.store().user(&li).await.unwrap().is_some(), "the account stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_day_of_a_source_is_drawn_once_the_node_has_read_it() {
    let (server, api) = shop_on(On::Redis, json!({})).await;
    put(&api, &["a"]).await;
    until_async("the source was read", async || {
        let page = server.page(SHOP, api.token(), "en").await;
        page.contains("<svg class=\"day\"").then_some(())
    })
    .await;
    let done = claim(&api, "r1", json!({})).await["tasks"][0].clone();
    let report = json!({"id": done["id"], "token": done["token"], "outcome": "done"});
    let body = json!({"results": [report]});
    super::dispatch::ok(&api, reqwest::Method::POST, "/api/v1/results", body).await;
    until_async("what was done is in it", async || {
        let page = server.page(SHOP, api.token(), "zh").await;
        page.contains("完成 <strong>1</strong> 项").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_shows_its_configuration_and_what_was_done_to_it_and_nothing_secret() {
    let server = Server::with(|config| {
        let mut job = super::job("labels");
        job.command = vec!["print".to_owned(), "--labels".to_owned()];
        job.env = [("PIN".to_owned(), "swordfish".to_owned())].into();
        job.viewers = vec!["wang".to_owned(), "vera".to_owned()];
        config.jobs.push(job);
    })
    .await;
    let beside = server
        .beside_with(|config| {
            let mut job = super::job("labels");
            job.command = vec!["print".to_owned(), "--other".to_owned()];
            job.viewers = vec!["*".to_owned()];
            config.jobs.push(job);
        })
        .await;
    let (wang, vera) =
        (server.token("wang", Role::Operator).await, server.token("vera", Role::Viewer).await);
    let api = Api::new(&server.url(""), &wang);
    for job in ["labels", "outbound"] {
        api.switch(job, true).await;
    }
    let path = "/jobs/labels/configuration";
    let page = server.page(path, &wang, "en").await;
    assert!(page.contains("--labels") && page.contains("PIN = hidden"), "{page}");
    assert!(!page.contains("swordfish"), "{page}");
    let seen = server.page(path, &vera, "zh").await;
    assert!(!seen.contains("--labels") && seen.contains("仅向此任务的操作员显示"), "{seen}");
    let audit = server.page("/jobs/labels/audit", &vera, "en").await;
    assert_eq!(audit.matches("data-act=\"participation.on\"").count(), 1, "of this job: {audit}");
    assert!(audit.contains("aria-current=\"page\">Audit"), "{audit}");
    let other = server.token("carl", Role::Viewer).await;
    for tab in ["configuration", "audit"] {
        let hidden = server.get(&format!("/jobs/labels/{tab}"), &other).await;
        assert_eq!(hidden.status(), 404, "{tab}");
    }
    drop(beside);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_narrowed_by_two_instants_of_a_form() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let path = "/jobs/outbound?grep=&since=2026-05-04T08%3A00&until=2026-05-04T09%3A30";
    let page = server.page(path, &token, "en").await;
    assert!(
        page.contains("name=\"since\" type=\"datetime-local\" value=\"2026-05-04T08:00\""),
        "{page}"
    );
    assert!(page.contains("value=\"2026-05-04T09:30\"") && !page.contains("data-newest"), "{page}");
    let wrong = server.get("/jobs/outbound?since=soon", &token).await;
    assert_eq!(wrong.status(), 400);
}
