//! Several jobs at once, without a script: ticks, a question that lists them, an answer for each.

use reqwest::Response;
use soloist::domain::name::JobName;
use soloist::store::accounts::Role;
use soloist::store::jobs::Jobs as _;
use soloist::store::journal::Journal as _;

use super::{Server, job};

on_every_store! {
    ticked_jobs_are_switched_together_after_a_question_that_lists_them
}

async fn send(server: &Server, cookie: &str, csrf: &str, fields: &[(&str, &str)]) -> Response {
    let body = fields.iter().map(|(name, value)| format!("{name}={value}"));
    let body: Vec<String> = body.chain([format!("csrf={csrf}")]).collect();
    let form = ("content-type", "application/x-www-form-urlencoded");
    let ask = server.ask("POST", "/bulk").header("cookie", cookie).header(form.0, form.1);
    ask.body(body.join("&")).send().await.unwrap()
}

async fn ticked_jobs_are_switched_together_after_a_question_that_lists_them(on: super::On) {
    let server = Server::on_with(on, |config| {
        config.jobs = vec![job("outbound"), job("inbound"), job("ledger"), job("secret")];
        config.jobs[2].operators = vec!["ada".to_owned()];
        config.jobs[3].viewers = vec!["ada".to_owned()];
        config.jobs[3].operators = vec!["ada".to_owned()];
    })
    .await;
    let li = server.user("li", Role::Operator).await;
    let wang = server.user("wang", Role::Operator).await;
    let (cookie, csrf) = server.session(&li).await;
    let name = |name: &str| JobName::new(name).unwrap();
    server.store().participate(&name("outbound"), &li, true, None).await.unwrap();
    for user in [&li, &wang] {
        server.store().participate(&name("inbound"), user, true, None).await.unwrap();
    }
    let both = async || {
        let page = server.ask("GET", "/").header("cookie", &cookie).send().await.unwrap();
        let page = page.text().await.unwrap();
        (page.matches("aria-checked=\"true\"").count() == 2).then_some(page)
    };
    let page = crate::support::wait::until_async("the node knows", both).await;
    for job in ["outbound", "inbound"] {
        let tick = format!("form=\"bulk\" name=\"job\" value=\"{job}\"");
        assert!(page.contains(&tick), "{page}");
    }
    assert!(!page.contains("name=\"job\" value=\"ledger\""), "not theirs to switch");

    let off = [
        ("act", "off"),
        ("job", "outbound"),
        ("job", "inbound"),
        ("job", "ledger"),
        ("back", "/?q=bound"),
    ];
    let asked = send(&server, &cookie, &csrf, &off).await;
    assert_eq!(asked.status(), 200);
    let asked = asked.text().await.unwrap();
    for said in [
        "Switch off 3 jobs?",
        "Nobody else wants it: it stops.",
        "It continues for 1 other person.",
        "You do not want it on: nothing changes.",
        "name=\"job\" value=\"inbound\"",
        "href=\"/?q=bound\"",
    ] {
        assert!(asked.contains(said), "{said}: {asked}");
    }
    let snapshot = server.store().snapshot(&[name("outbound")]).await.unwrap();
    assert!(snapshot.jobs[0].wanted(), "nothing happened yet");

    let yes = [&off[..], &[("confirm", "yes"), ("reason", "quarter+closed")]].concat();
    let done = send(&server, &cookie, &csrf, &yes).await.text().await.unwrap();
    assert_eq!(done.matches("data-failed=\"false\"").count(), 2, "{done}");
    assert_eq!(
        done.matches("data-failed=\"true\"").count(),
        1,
        "one is refused, the others are done: {done}"
    );
    let snapshot = server.store().snapshot(&[name("outbound"), name("inbound")]).await.unwrap();
    assert!(!snapshot.jobs[0].wanted() && !snapshot.jobs[1].participates(&li));
    assert!(snapshot.jobs[1].participates(&wang));
    let audits = server.store().audits(Some("inbound"), None, 10).await.unwrap();
    assert!(
        audits.iter().any(|entry| entry.reason.as_deref() == Some("quarter closed")),
        "{audits:?}"
    );

    // A hold needs its reason, and each job says so.
    let hold = [("act", "hold"), ("job", "inbound"), ("confirm", "yes")];
    let refused = send(&server, &cookie, &csrf, &hold).await.text().await.unwrap();
    assert!(refused.contains("data-failed=\"true\""), "{refused}");
    let hold = [&hold[..], &[("reason", "audit")]].concat();
    send(&server, &cookie, &csrf, &hold).await;
    let snapshot = server.store().snapshot(&[name("inbound")]).await.unwrap();
    assert!(snapshot.jobs[0].hold.is_some());

    // What one may not see is none; nothing ticked is said; nonsense is refused; no foreign page can send it.
    let hidden = [("act", "off"), ("job", "secret")];
    assert_eq!(send(&server, &cookie, &csrf, &hidden).await.status(), 404);
    let none = send(&server, &cookie, &csrf, &[("act", "on")]).await.text().await.unwrap();
    assert!(none.contains("No job is ticked"), "{none}");
    assert_eq!(send(&server, &cookie, &csrf, &[("act", "burn")]).await.status(), 400);
    assert_eq!(send(&server, &cookie, "0", &off).await.status(), 403);
    let vera = server.user("vera", Role::Viewer).await;
    let (cookie, csrf) = server.session(&vera).await;
    assert_eq!(send(&server, &cookie, &csrf, &yes).await.status(), 403);
    let page = server.ask("GET", "/").header("cookie", &cookie).send().await.unwrap();
    let page = page.text().await.unwrap();
    assert!(!page.contains("action=\"/bulk\"") && !page.contains("name=\"job\""), "{page}");
}
