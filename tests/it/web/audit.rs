//! The audit over HTTP: what a program or a stranger cannot do to it, who sees what, and that an export shows every change.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use soloist::ops::chain::verify;
use soloist::secrets;
use soloist::store::accounts::Role;
use soloist::store::journal::{AuditEntry, AuditFilter, Journal, Kind};

use super::dispatch::ok;
use super::{On, PASSWORD, Server, problem};
use crate::support::api::Api;
use crate::support::wait::until_async;

on_every_store! {
    what_a_collector_does_a_thousand_times_is_one_line_beside_what_people_did
    refusals_are_noted_without_what_was_typed
    a_flood_of_refusals_is_counted_and_written_slowly
    an_export_is_a_chain_of_all_that_was_done
    the_page_says_what_was_done_in_sentences_and_of_rules_what_changed
}

async fn entries(server: &Server, kind: Kind) -> Vec<AuditEntry> {
    let filter = AuditFilter { kinds: vec![kind], ..AuditFilter::default() };
    server.store().audit_page(&filter, None, 500).await.unwrap().entries
}

async fn someone(on: On) -> (Server, Api) {
    let server = Server::on(on).await;
    let api = Api::new(&server.url(""), &server.token("ada", Role::Admin).await);
    (server, api)
}

async fn what_a_collector_does_a_thousand_times_is_one_line_beside_what_people_did(on: On) {
    let (server, api) = someone(on).await;
    ok(&api, Method::PUT, "/api/v1/sources/shop", json!({})).await;
    let user = server.user("li", Role::Operator).await;
    let (cookie, csrf) = server.session(&user).await;
    let hold = server.ask("PUT", "/api/v1/jobs/outbound/hold").header("cookie", cookie);
    let hold = hold.header("x-csrf-token", csrf).json(&json!({"reason": "stock-taking"}));
    assert_eq!(hold.send().await.unwrap().status(), 200);
    let carl = Api::new(&server.url(""), &server.token("carl", Role::Collector).await);
    for nth in 0..200 {
        let body = json!({"for_ms": 1_000 + nth});
        ok(&carl, Method::POST, "/api/v1/sources/shop/block", body).await;
    }
    let acts = entries(&server, Kind::Program).await;
    let blocks: Vec<_> = acts.iter().filter(|one| one.act == "source.block").collect();
    assert!(blocks.len() <= 2, "a minute may end in between: {blocks:?}");
    assert_eq!(blocks.iter().map(|one| one.count).sum::<u64>(), 200);
    assert_eq!(blocks[0].reason.as_deref(), Some("for 1199 ms"), "what holds now");
    let people = entries(&server, Kind::Person).await;
    assert_eq!((people[0].who.as_str(), people[0].act.as_str()), ("li", "job.hold"));

    // One list, with who and what may be seen by whom.
    let list = api.get("/api/v1/audit?kind=program&act=source.*&who=carl").await;
    assert_eq!(list["entries"][0]["count"], blocks[0].count);
    assert_eq!(list["entries"][0]["kind"], "program");
    let vera = server.token("vera", Role::Viewer).await;
    let seen: Value = server.get("/api/v1/audit", &vera).await.json().await.unwrap();
    assert!(seen["entries"].as_array().unwrap().iter().all(|one| one["from"].is_null()), "{seen}");
    let olga = server.token("olga", Role::Operator).await;
    let seen: Value = server.get("/api/v1/audit?who=li", &olga).await.json().await.unwrap();
    assert_eq!(seen["entries"][0]["from"], "127.0.0.1");
    let none = problem(server.get("/api/v1/audit?kind=refusal", &olga).await).await;
    assert!(none.0 == 403 && none.1.contains("only admins"), "{none:?}");
    for (query, says) in [
        ("from=yesterday", "parameter from: \"yesterday\""),
        ("to=2026-13-01T00:00:00Z", "parameter to:"),
        ("from=2026-05-04T00:00:00Z&to=2026-05-03T00:00:00Z", "later than parameter to"),
        ("kind=gods", "parameter kind: use person"),
        ("format=xml", "parameter format"),
        ("before=1&after=1", "give one of them"),
    ] {
        let wrong = problem(server.get(&format!("/api/v1/audit?{query}"), &olga).await).await;
        assert!(wrong.0 == 400 && wrong.1.contains(says), "{query}: {wrong:?}");
    }
}

async fn refusals_are_noted_without_what_was_typed(on: On) {
    let server = Server::on(on).await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    let li = server.account("li", Role::Viewer, phc).await;
    let (cookie, csrf) = server.session(&li).await;
    let hold = || server.ask("PUT", "/api/v1/jobs/outbound/hold").header("cookie", &cookie);
    let send = async |request: reqwest::RequestBuilder| request.send().await.unwrap().status();
    let body = json!({"reason": "x"});
    let allowed = hold().header("x-csrf-token", &csrf).json(&body);
    assert_eq!(send(allowed).await, StatusCode::FORBIDDEN);
    let logout = || server.ask("POST", "/logout").header("cookie", &cookie);
    assert_eq!(send(logout()).await, StatusCode::FORBIDDEN);
    let foreign = logout().header("x-csrf-token", &csrf).header("origin", "http://evil.example");
    assert_eq!(send(foreign).await, StatusCode::FORBIDDEN);
    let bad = server.get("/api/v1/jobs?secret=1", "a-token-that-was-revoked").await;
    assert_eq!(bad.status(), StatusCode::UNAUTHORIZED);
    let typed = "my.password.typed.as.a.name";
    for name in ["li", typed] {
        let form =
            server.ask("POST", "/login").header("origin", server.web.config().public_url.clone());
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        let form = form.body(format!("name={name}&password=wrong+{name}"));
        assert_eq!(send(form).await, StatusCode::UNAUTHORIZED);
    }
    let noted = entries(&server, Kind::Refusal).await;
    let seen: Vec<_> =
        noted.iter().rev().map(|one| (&*one.who, &*one.act, &*one.target, one.count)).collect();
    assert_eq!(
        seen,
        [
            ("li", "refused.right", "PUT /api/v1/jobs/outbound/hold", 1),
            ("li", "refused.forgery", "POST /logout", 2),
            ("unknown", "refused.token", "GET /api/v1/jobs", 1),
            ("li", "login.failed", "li", 1),
            ("unknown", "login.failed", "unknown", 1),
        ]
    );
    assert!(noted.iter().all(|one| one.from == "127.0.0.1"));
    assert!(noted[4].reason.as_deref().unwrap().contains("may only look"), "{noted:?}");
    let all = format!("{noted:?}");
    assert!(!all.contains("wrong") && !all.contains(typed) && !all.contains("revoked"), "{all}");
    assert_eq!(entries(&server, Kind::Person).await, []);
}

async fn a_flood_of_refusals_is_counted_and_written_slowly(on: On) {
    let server = Server::on(on).await;
    let paths = ["/api/v1/jobs", "/api/v1/nodes", "/api/v1/leases"];
    let asked = (0..240).map(|nth| server.get(paths[nth % 3], "guessed"));
    for answer in futures_util::future::join_all(asked).await {
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    }
    // Each of the three is one entry, however often; what was not written at once follows.
    let noted = until_async("all are counted", async || {
        let noted = entries(&server, Kind::Refusal).await;
        (noted.iter().map(|one| one.count).sum::<u64>() == 240).then_some(noted)
    })
    .await;
    assert!(noted.len() <= 6, "three, or twice three when a minute ends in between: {noted:?}");
}

async fn an_export_is_a_chain_of_all_that_was_done(on: On) {
    let (server, api) = someone(on).await;
    ok(&api, Method::PUT, "/api/v1/sources/shop", json!({})).await;
    for nth in 0..1_203_u32 {
        let entry = AuditEntry {
            id: 0,
            at: soloist::domain::time::StoreTime(0),
            who: if nth % 2 == 0 { "li" } else { "=cmd|' /C calc'!A0" }.to_owned(),
            from: "terminal".to_owned(),
            act: "job.hold".to_owned(),
            target: "outbound".to_owned(),
            reason: Some(format!("quoted \"{nth}\",\u{202e} 出库")),
            kind: Kind::Person,
            count: 1,
            until: None,
        };
        server.store().audit(&entry).await.unwrap();
    }
    let token = server.token("root", Role::Admin).await;
    let stream = async |accept: &str, query: &str| {
        let ask = server.ask("GET", &format!("/api/v1/audit{query}")).bearer_auth(&token);
        let answer = ask.header("accept", accept).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.starts_with(accept), "{kind}");
        answer.text().await.unwrap()
    };
    let lines = stream("application/x-ndjson", "").await;
    let whole = verify(lines.lines().map(|line| Ok(line.to_owned()))).unwrap().unwrap();
    assert_eq!(whole.lines, 1_204);
    let head: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&head["by"], &head["role"], &head["asked"]),
        (&json!("root"), &json!("admin"), &json!({}))
    );
    let first: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&first["kind"], &first["act"]), (&json!("program"), &json!("source.put")));
    let li = stream("application/x-ndjson", "?who=li&limit=3").await;
    let only = verify(li.lines().map(|line| Ok(line.to_owned()))).unwrap().unwrap();
    assert_eq!((only.lines, only.since_hash.is_none()), (602, true));
    assert!(
        only.words().starts_with("asked for by root with the eyes of admin: only who=li up to ")
    );
    let query = format!("?since_hash={}", whole.hash);
    let next = stream("application/x-ndjson", &query).await;
    let next = verify(next.lines().map(|line| Ok(line.to_owned()))).unwrap().unwrap();
    assert_eq!(next.since_hash, Some(whole.hash));
    let wrong = server.get("/api/v1/audit?format=ndjson&since_hash=0", &token).await;
    assert_eq!(wrong.status(), 400);
    let csv = stream("text/csv", "?kind=person").await;
    assert!(csv.starts_with("id,at,kind,who,from,act,target,reason,count,until\r\n"), "{csv}");
    assert_eq!(csv.matches("\r\n").count(), 1_204);
    assert!(csv.contains(",'=cmd|' /C calc'!A0,terminal,job.hold,outbound,\"quoted \"\"1\"\","));

    // The page: in order, filtered, and with nothing that turns the text around it.
    let page = server.page("/audit?who=li&act=job.hold", &token, "en").await;
    assert_eq!(page.matches("data-kind=\"person\"").count(), 50);
    assert!(page.contains("&#60;U+202E&#62;") && !page.contains('\u{202e}'), "{page}");
    let chinese = server.page("/audit?who=li", &token, "zh").await;
    assert!(page.contains(">terminal</td>") && chinese.contains(">终端</td>"), "{chinese}");
    assert!(page.contains("name=\"who\" value=\"li\"") && page.contains("format=csv"), "{page}");
    let link = |page: &str, rel: &str| {
        let link = page.split(&format!("rel=\"{rel}\" href=\"")).nth(1)?.split('"').next()?;
        Some(link.replace("&#38;", "&").replace("&amp;", "&"))
    };
    let older = link(&page, "next").unwrap();
    assert!(older.starts_with("/audit?who=li&act=job.hold&before="), "{older}");
    let second = server.page(&older, &token, "en").await;
    let back = server.page(&link(&second, "prev").unwrap(), &token, "en").await;
    let rows = |page: &str| {
        page.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap().to_owned()
    };
    assert_eq!(rows(&back), rows(&page));
    assert_ne!(rows(&second), rows(&page));
    let nothing = server.page("/audit?who=nobody&kind=refusal", &token, "en").await;
    assert!(nothing.contains("Nothing of that kind"), "{nothing}");
}

async fn the_page_says_what_was_done_in_sentences_and_of_rules_what_changed(on: On) {
    let (server, api) = someone(on).await;
    ok(&api, Method::PUT, "/api/v1/sources/shop", json!({"gap_ms": 250})).await;
    ok(&api, Method::PUT, "/api/v1/sources/shop", json!({"gap_ms": 1_000})).await;
    let body = json!({"on": true, "reason": "quarter <b>closed</b>"});
    ok(&api, Method::PUT, "/api/v1/jobs/outbound/participation", body).await;
    let vera = server.token("vera", Role::Viewer).await;
    let english = server.page("/audit", &vera, "en").await;
    for part in [
        "<strong>ada</strong> switched <strong>Outbound shipping</strong> on</span>: “quarter &#60;b&#62;closed",
        "<span class=\"clause code\">outbound</span>",
        "<strong>ada</strong> defined the source <strong>shop</strong>",
        "now: one start per 1 s</span>",
        "before: one start per 250 ms</span>",
        "<a href=\"/audit\" aria-current=\"page\">Audit</a>",
    ] {
        assert!(english.contains(part), "{part}: {english}");
    }
    assert!(!english.contains("gap_ms"), "no rules as JSON: {english}");
    let chinese = server.page("/audit", &vera, "zh").await;
    assert!(chinese.contains("打开了 <strong>出库任务</strong>"), "{chinese}");
    // A form sends a time without a zone, an address may have an instant; what is found is saved with the same filter.
    let old = server
        .page("/audit?who=&act=&target=&kind=&from=&to=2001-05-04T08%3A00", &vera, "en")
        .await;
    assert!(old.contains("Nothing of that kind"), "{old}");
    assert!(
        old.contains("name=\"to\" type=\"datetime-local\" value=\"2001-05-04T08:00\""),
        "{old}"
    );
    assert!(old.contains("to=2001-05-0") && old.contains("format=csv"), "{old}");
    let new = server.page("/audit?from=2001-05-04T08%3A00%3A00Z", &vera, "en").await;
    assert!(new.contains("Outbound shipping"), "{new}");
    let wrong = server.get("/audit?from=soon", &vera).await;
    assert_eq!(wrong.status(), StatusCode::BAD_REQUEST);
    let noted = api.get("/api/v1/audit?act=source.put&limit=1").await;
    let rules: Value =
        serde_json::from_str(noted["entries"][0]["reason"].as_str().unwrap()).unwrap();
    assert_eq!((&rules["gap_ms"], &rules["was"]["gap_ms"]), (&json!(1_000), &json!(250)));
}
