//! The output of a job: a page of it, all of it, and as a page shows it without scripts.

use std::time::Duration;

use serde_json::{Value, json};
use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::lease::Token;
use soloist::domain::name::{JobName, Owner, RunId, UserName};
use soloist::store::credentials::ApiToken;
use soloist::store::journal::{Ended, Journal, Then};
use soloist::store::leases::{Acquire, Acquired, Condition, Leases};

use super::live::{print, run};
use super::{On, Role, Server, job, problem};

on_every_store! {
    lines_are_read_in_either_direction_and_found
    all_of_it_is_downloaded
    the_page_has_older_lines_a_search_and_links_to_lines_without_scripts
}

const LOG: &str = "/api/v1/jobs/outbound/log";

/// Lines 1 to `n` are printed; the third one in red.
async fn printed(server: &Server, n: usize) -> String {
    let token = server.token("li", Role::Operator).await;
    let going = run(server, &UserName::new("li").unwrap()).await;
    let texts = (1..=n).map(|n| match n {
        3 => "line 3 \u{1b}[1;31mFAI\u{1b}[0mLED <b>".to_owned(),
        n => format!("line {n}"),
    });
    let texts = texts.collect::<Vec<_>>();
    for part in texts.chunks(300) {
        print(server, &going, part.to_vec()).await;
    }
    token
}

fn seqs(log: &Value) -> Vec<u64> {
    log["lines"].as_array().unwrap().iter().map(|line| line["seq"].as_u64().unwrap()).collect()
}

async fn lines_are_read_in_either_direction_and_found(on: On) {
    let server = Server::on(on).await;
    let token = printed(&server, 20).await;
    let read = async |query: &str| -> Value {
        server.get(&format!("{LOG}?{query}"), &token).await.json().await.unwrap()
    };
    let newest = read("limit=5").await;
    assert_eq!((seqs(&newest), &newest["next_before"]), ((16..=20).collect(), &json!(16)));
    let older = read("limit=5&before=4").await;
    assert_eq!((seqs(&older), &older["next_before"]), (vec![1, 2, 3], &Value::Null));
    let on = read("after=17&limit=2").await;
    assert_eq!((seqs(&on), &on["next_after"]), (vec![18, 19], &json!(19)));
    assert!(read("after=19").await.get("next_after").is_none());
    assert_eq!(seqs(&read("grep=failed").await), [3]);
    assert_eq!(seqs(&read("grep=LINE%202&before=20").await), [2]);
    assert_eq!(seqs(&read("grep=&run=").await).len(), 20);
    assert_eq!(seqs(&read("run=01JTEST&limit=1").await), [20]);
    assert_eq!(seqs(&read("run=other").await), Vec::<u64>::new());
    let first = newest["lines"][0]["at"].as_str().unwrap();
    assert_eq!(seqs(&read(&format!("since={first}&until=2100-01-01T00:00:00Z")).await).len(), 20);
    assert_eq!(seqs(&read(&format!("until={first}")).await), Vec::<u64>::new());
    for bad in [
        "before=1&after=2",
        "since=yesterday",
        "since=2100-01-01T00:00:00Z&until=2000-01-01T00:00:00Z",
        "beforr=1",
        "before=-1",
    ] {
        assert_eq!(
            problem(server.get(&format!("{LOG}?{bad}"), &token).await).await.0,
            400,
            "{bad}"
        );
    }
}

async fn all_of_it_is_downloaded(on: On) {
    let server = Server::on(on).await;
    let token = printed(&server, 4_500).await;
    let whole = server.get(&format!("{LOG}.txt"), &token).await;
    assert_eq!(whole.headers()["content-type"], "text/plain; charset=utf-8");
    let name = whole.headers()["content-disposition"].to_str().unwrap();
    assert_eq!(name, "attachment; filename=\"outbound.log.txt\"");
    let whole = whole.text().await.unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4_501, "# run 01JTEST on node-a"));
    assert!(lines[1].ends_with("Z node-a stdout  line 1"), "{}", lines[1]);
    assert!(lines[3].ends_with(" line 3 FAILED <b>"), "{}", lines[3]);
    assert!(lines[4_500].ends_with(" line 4500"));
    let asked = server.ask("GET", &format!("{LOG}?grep=line%2042")).bearer_auth(&token);
    let found = asked.header("accept", "text/plain").send().await.unwrap();
    assert!(found.headers().get("content-disposition").is_none());
    // 42, 420 to 429, 4200 to 4299, and the run.
    assert_eq!(found.text().await.unwrap().lines().count(), 112);
}

/// The address of the link with this `rel`.
fn link(page: &str, rel: &str) -> Option<String> {
    let (_, rest) = page.split_once(&format!("rel=\"{rel}\" href=\""))?;
    Some(rest[..rest.find('"')?].replace("&#38;", "&").split('#').next()?.to_owned())
}

async fn the_page_has_older_lines_a_search_and_links_to_lines_without_scripts(on: On) {
    let server = Server::on(on).await;
    let token = printed(&server, 450).await;
    let page = async |path: &str| server.page(path, &token, "en").await;
    let shown = |page: &str| -> Vec<u64> {
        page.split("data-seq=\"")
            .skip(1)
            .map(|it| it[..it.find('"').unwrap()].parse().unwrap())
            .collect()
    };
    let newest = page("/jobs/outbound").await;
    assert_eq!(shown(&newest), (251..=450).collect::<Vec<_>>());
    assert!(newest.contains("data-log=\"outbound\" data-newest=\"450\""));
    assert!(newest.contains("href=\"/api/v1/jobs/outbound/log.txt\" download"));
    let older = page(&link(&newest, "prev").unwrap()).await;
    assert_eq!(shown(&older), (51..=250).collect::<Vec<_>>());
    assert!(!older.contains("data-log="), "what is chosen is not followed");
    let oldest = page(&link(&older, "prev").unwrap()).await;
    assert_eq!((shown(&oldest), link(&oldest, "prev")), ((1..=50).collect(), None));
    assert!(
        oldest.contains("line 3 <span class=\"f1 bold\">FAI</span>LED &#60;b&#62;"),
        "{oldest}"
    );
    assert!(!oldest.contains('\u{1b}'));
    let back = page(&link(&oldest, "next").unwrap()).await;
    assert_eq!(shown(&back), (51..=250).collect::<Vec<_>>());

    let linked = page("/jobs/outbound?line=30").await;
    assert_eq!(shown(&linked), (1..=200).collect::<Vec<_>>());
    assert_eq!(linked.matches(" data-sought").count(), 1);
    assert!(linked.contains("<li id=\"L30\"") && linked.contains("href=\"?line=30#L30\""));
    assert_eq!(shown(&page(&link(&linked, "next").unwrap()).await)[0], 201);

    let found = page("/jobs/outbound?grep=LINE+44&run=").await;
    assert_eq!(shown(&found), [vec![44], (440..=449).collect()].concat());
    assert!(
        found.contains("name=\"grep\" value=\"LINE 44\"")
            && found.contains("log.txt?grep=LINE%2044\"")
    );
    let nothing = page("/jobs/outbound?grep=%3Cscript%3E").await;
    assert!(
        nothing.contains("No kept line has that.") && !nothing.contains("<script>"),
        "{nothing}"
    );
    let other = page("/jobs/outbound?run=01JTEST&grep=450").await;
    assert!(other.contains("only run 01JTEST") && shown(&other) == [450]);
    for bad in ["line=x", "lines_before=-1", "since=soon"] {
        let response = server.get(&format!("/jobs/outbound?{bad}"), &token).await;
        assert_eq!(response.status(), 400, "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_for_those_who_may_see_the_job() {
    let server = Server::with(|config| {
        let mut hidden = job("vault");
        hidden.viewers = vec!["wang".to_owned()];
        config.jobs.push(hidden);
    })
    .await;
    let li = server.token("li", Role::Viewer).await;
    let wang = server.token("wang", Role::Viewer).await;
    for path in ["/api/v1/jobs/vault/log.txt", "/api/v1/jobs/vault/log?grep=x"] {
        assert_eq!(server.get(path, &li).await.status(), 404, "{path}");
        assert_eq!(server.get(path, &wang).await.status(), 200, "{path}");
    }
    let bind = |token: &mut ApiToken| token.jobs = vec![JobName::new("inbound").unwrap()];
    let bound = server.token_that("robot", Role::Operator, bind).await;
    for path in ["log", "log.txt", "log?grep=x"] {
        let path = |job: &str| format!("/api/v1/jobs/{job}/{path}");
        assert_eq!(
            server.get(&path("outbound"), &bound).await.status(),
            403,
            "{}",
            path("outbound")
        );
        assert_eq!(server.get(&path("inbound"), &bound).await.status(), 200, "{}", path("inbound"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_says_between_two_runs_how_the_first_one_ended() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let (first, run, node) = run(&server, &UserName::new("li").unwrap()).await;
    print(&server, &(first, run.clone(), node.clone()), vec!["one".to_owned()]).await;
    let page = server.page("/jobs/outbound", &token, "en").await;
    assert!(!page.contains("class=\"rule\""), "it goes on");
    let (job, owner) = (JobName::new("outbound").unwrap(), Owner("owner".to_owned()));
    let ended = Ended {
        job: job.clone(),
        owner,
        token: first,
        run,
        exit: Exit { code: Some(1), signal: None },
        end: RunEnd::Crashed,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    server.store().record_ended(&ended).await.unwrap();
    let ask = Acquire {
        job,
        owner: Owner("next".to_owned()),
        node: node.clone(),
        ttl: Duration::from_secs(60),
        condition: Condition::Wanted,
        seen: Token(0),
    };
    let acquired = server.store().acquire(&ask).await.unwrap();
    let Acquired::Granted { token: second, .. } = acquired else { panic!("{acquired:?}") };
    let next = RunId("01JNEXT".to_owned());
    print(&server, &(second, next, node), vec!["two".to_owned()]).await;
    let page = server.page("/jobs/outbound", &token, "en").await;
    let (_, rule) =
        page.split_once("<li class=\"rule\" data-before=\"01JNEXT\">exit 1 after ").unwrap();
    assert!(rule.split('<').next().unwrap().ends_with("s on node-a"), "{rule}");
    // Whoever chose a part of it is told how its last run ended.
    let chosen = server.page("/jobs/outbound?run=01JTEST", &token, "en").await;
    let (_, rule) = chosen.split_once("<li class=\"rule\">exit 1 after ").unwrap();
    assert!(rule.split("</li>").nth(1).unwrap().starts_with("</ol>"), "{rule}");
}
