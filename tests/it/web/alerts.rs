//! The page of alerts, asked from outside: what is on and what was, to whom it is shown, muting and testing without a script.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};
use soloist::config::{Alerting, Channel, Config, Secret, Way};
use soloist::domain::alert::{Rule, Subject, When};
use soloist::domain::name::NodeName;
use soloist::domain::time::StoreTime;
use soloist::store::accounts::Role;
use soloist::store::alerts::{Alerts as _, Incident, Noted, Sent, Told, Tried};
use soloist::store::journal::{AuditFilter, Journal as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{On, Server, job};
use crate::support::wait::until_async;

/// Answers every request with this, and then closes.
async fn answering(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4_096];
            let read = stream.read(&mut buffer).await.unwrap_or(0);
            if read > 0 && !answer.is_empty() {
                stream.write_all(answer.as_bytes()).await.ok();
                // Closed with something unread, the answer would be lost.
                stream.read_to_end(&mut Vec::new()).await.ok();
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn why_a_channel_did_not_take_a_message_is_told_in_the_readers_language_and_quoted() {
    let no = answering("HTTP/1.1 500 Oh\r\ncontent-length: 4\r\n\r\nbusy").await;
    let code = answering(
        "HTTP/1.1 200 OK\r\ncontent-length: 44\r\n\r\n{\"errcode\":310000,\"errmsg\":\"sign not match\"}",
    )
    .await;
    let gone = answering("").await;
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mailbox = || "soloist@example.org".to_owned();
    let mail = |server: SocketAddr| Way::Mail {
        url: Secret::new(format!("smtp://{server}")),
        from: mailbox(),
        to: vec![mailbox()],
    };
    let slack =
        |scheme: &str, server| Way::Slack { url: Secret::new(format!("{scheme}://{server}/")) };
    let rude = mailing("554 no mail here\r\n").await;
    let table = [
        ("refused", slack("http", closed), "refused the connection", "拒绝连接", "os error 111"),
        ("mail", mail(closed), "refused the connection", "拒绝连接", "os error 111"),
        ("rude", mail(rude), "own error code 554", "它自己的错误码 554", "no mail here"),
        ("status", slack("http", no), "HTTP status 500", "HTTP 状态码 500", "busy"),
        (
            "code",
            Way::Dingtalk { url: Secret::new(format!("http://{code}/")), secret: None },
            "own error code 310000",
            "它自己的错误码 310000",
            "sign not match",
        ),
        ("tls", slack("https", no), "No trusted TLS", "可信的 TLS 连接", "corrupt message"),
        ("gone", slack("http", gone), "broke the connection off", "中断了连接", "sending request"),
    ];
    let server = Server::with(|config| {
        let channels = table.iter().map(|(name, way, ..)| {
            let name = (*name).to_owned();
            (name.clone(), Channel { name, way: way.clone() })
        });
        config.alerting =
            Arc::new(Alerting { channels: channels.collect(), ..Alerting::default() });
    })
    .await;
    let ada = someone(&server, "ada", Role::Admin).await;
    for (name, _, en, zh, quoted) in &table {
        for (language, words) in [("en", en), ("zh", zh)] {
            let path = format!("/alerts/channels/{name}/test");
            let form = server.ask("POST", &path).header("cookie", &ada.0);
            let form = form.header("content-type", "application/x-www-form-urlencoded");
            let form = form.header("origin", server.url("")).header("accept-language", language);
            let body = format!("csrf={}&confirm=yes", ada.1);
            let page = form.body(body).send().await.unwrap().text().await.unwrap();
            let said = page.split("role=\"alert\"").nth(1).unwrap().split("</p>").next().unwrap();
            assert!(said.contains(words) && said.contains(quoted), "{name}: {said}");
            let quote = said.split('“').nth(1).unwrap();
            assert!(quote.contains(quoted), "what was said is a quote: {said}");
        }
    }
    // The newest attempt of the sender is told as well.
    let tried = |error: &str| Tried {
        at: StoreTime(5),
        ok: false,
        error: Some(error.to_owned()),
        ..Tried::default()
    };
    let failed = tried("no answer in time: operation timed out");
    let channels = BTreeMap::from([("refused".to_owned(), failed)]);
    note(&server, &Noted { channels, ..Noted::default() }).await;
    let token = server.token("vera", Role::Viewer).await;
    let page = server.page("/alerts", &token, "zh").await;
    assert!(page.contains("没有及时应答") && page.contains("“operation timed out”"), "{page}");
}

/// A mail server that greets everybody with this.
async fn mailing(greeting: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(greeting.as_bytes()).await.ok();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.ok();
        }
    });
    address
}

on_every_store! {
    what_is_on_and_what_was_is_told_in_the_readers_language
    whatever_has_an_alert_on_needs_somebody_on_every_page
    an_alert_is_muted_and_speaks_again_by_plain_forms
    alerts_of_a_hidden_job_are_nobodys_business
    a_test_is_asked_back_for_and_says_what_came_of_it
}

const HIDDEN: &str = "vault-secret";

fn rule(when: When, jobs: &[&str]) -> Rule {
    Rule {
        name: when.as_str().to_owned(),
        when,
        lasting: Duration::from_secs(30),
        jobs: jobs.iter().map(|job| (*job).to_owned()).collect(),
        to: vec!["ops".to_owned()],
    }
}

fn alerting(config: &mut Config) {
    let url = Secret::new("http://127.0.0.1:9/hook?key=sesame");
    let ops = Channel { name: "ops".to_owned(), way: Way::Slack { url } };
    config.alerting = Arc::new(Alerting {
        rules: [When::GivenUp, When::NodeLost, When::WantedNotRunning]
            .map(|when| rule(when, &["*"]))
            .into(),
        channels: BTreeMap::from([("ops".to_owned(), ops)]),
        zone: None,
    });
    let mut hidden = job(HIDDEN);
    hidden.viewers = vec!["li".to_owned()];
    config.jobs.push(hidden);
}

fn incident(id: &str, about: &str, said: &str) -> Incident {
    let told = |en: &str, zh: &str| Told {
        id: format!("msg_{id}"),
        at: StoreTime(1_777_852_800_000),
        en: en.to_owned(),
        zh: zh.to_owned(),
    };
    Incident {
        id: id.to_owned(),
        alert: "given_up".to_owned(),
        when: When::GivenUp,
        subject: Subject { job: Some(about.parse().unwrap()), ..Subject::default() },
        since: StoreTime(1_777_852_800_000),
        print: String::new(),
        url: String::new(),
        to: vec!["ops".to_owned()],
        begin: told(&format!("{said} <b>fell</b>."), &format!("{said} 放弃了。")),
        end: None,
        sent: BTreeMap::new(),
    }
}

/// Writes as the sender does.
async fn note(server: &Server, noted: &Noted) {
    let sender = NodeName::new("node-a").unwrap();
    let store = server.store();
    assert!(store.keep_sending(&sender, "boot", Duration::from_secs(600)).await.unwrap());
    assert!(store.note_alerts(&sender, "boot", noted).await.unwrap());
}

async fn server(on: On) -> Server {
    Server::on_with(on, alerting).await
}

/// Posts a form as a browser without scripts does.
async fn post(server: &Server, session: &(String, String), path: &str, body: &str) -> Response {
    let (cookie, csrf) = session;
    let form = server.ask("POST", path).header("cookie", cookie);
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let form = form.header("origin", server.url("")).header("accept-language", "en");
    form.body(format!("csrf={csrf}&{body}")).send().await.unwrap()
}

async fn someone(server: &Server, name: &str, role: Role) -> (String, String) {
    let user = server.user(name, role).await;
    server.session(&user).await
}

async fn muted(server: &Server) -> BTreeMap<String, StoreTime> {
    server.store().alert_book().await.unwrap().muted
}

#[tokio::test(flavor = "multi_thread")]
async fn what_to_write_first_is_explained_in_the_readers_language() {
    let server = Server::with(|_| {}).await;
    let token = server.token("vera", Role::Viewer).await;
    for (language, needs) in [("en", "# a webhook needs one"), ("zh", "# webhook 需要密钥")] {
        let page = server.page("/alerts", &token, language).await;
        let sample = page.split("class=\"sample\"").nth(1).unwrap().split("</pre>").next().unwrap();
        assert!(sample.contains("[[alert]]") && sample.contains(needs), "{sample}");
    }
}

async fn what_is_on_and_what_was_is_told_in_the_readers_language(on: On) {
    let server = server(on).await;
    let token = server.token("vera", Role::Viewer).await;
    let quiet = server.page("/alerts", &token, "en").await;
    assert!(quiet.contains("No alert is on.") && quiet.contains("no node sends them now"));
    assert!(quiet.contains("No alert was sent by it yet."), "{quiet}");
    assert!(quiet.contains("A job was given up, for 30 s."), "{quiet}");
    let mut told = incident("1", "outbound", "Outbound");
    told.sent
        .insert("ops".to_owned(), Sent { begin: Some(StoreTime(1_777_852_801_000)), end: None });
    let mut over = incident("0", "inbound", "Inbound");
    over.end = Some(Told { at: StoreTime(1_777_852_800_000 + 3_600_000), ..over.begin.clone() });
    let failed = Tried {
        at: StoreTime(5),
        ok: false,
        error: Some("503 <i>no</i>".to_owned()),
        ..Tried::default()
    };
    note(
        &server,
        &Noted {
            incidents: vec![told, incident("2", "inbound", "Other")],
            past: vec![over],
            channels: BTreeMap::from([("ops".to_owned(), failed)]),
        },
    )
    .await;
    let english = server.page("/alerts", &token, "en").await;
    for part in [
        "Outbound shipping (outbound) was given up. Off: nobody wants it.",
        "Inbound &#60;b&#62;fell&#60;/b&#62;.",
        "href=\"/jobs/outbound\"",
        "not yet",
        "sent by node-a",
        "503 &#60;i&#62;no&#60;/i&#62;",
        "data-past=\"given_up\"",
        "1 h 0 min",
        "aria-current=\"page\">Alerts",
    ] {
        assert!(english.contains(part), "{part}: {english}");
    }
    assert_eq!(english.matches("data-alert=\"given_up\"").count(), 2);
    assert!(!english.contains("sesame") && !english.contains("127.0.0.1:9"), "{english}");
    assert!(!english.contains("/mute\"") && !english.contains("/test\""), "a viewer only looks");
    let chinese = server.page("/alerts", &token, "zh").await;
    for part in [
        "“出库任务（outbound）”已放弃重试。",
        "Inbound 放弃了。",
        "任务已放弃重试，持续 30 秒后通知。",
        "尚未收到通知",
        "历史告警",
    ] {
        assert!(chinese.contains(part), "{part}: {chinese}");
    }
    // Without any, the page says how to begin.
    let empty = Server::on(on).await;
    let token = empty.token("vera", Role::Viewer).await;
    let page = empty.page("/alerts", &token, "en").await;
    assert!(page.contains("[[alert]]") && page.contains("[channel.ops]"), "{page}");
}

async fn an_alert_is_muted_and_speaks_again_by_plain_forms(on: On) {
    let server = server(on).await;
    let olga = someone(&server, "olga", Role::Operator).await;
    let page = server.ask("GET", "/alerts").header("cookie", &olga.0);
    let page = page.header("accept-language", "en").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("action=\"/alerts/given_up/mute\""), "{page}");
    assert!(!page.contains("/test\""), "an operator tests no channel");
    let before = server.store().alert_book().await.unwrap().now;
    let body = "lasting=8h&until=&reason=moving+the+rack";
    let done = post(&server, &olga, "/alerts/given_up/mute", body).await;
    assert_eq!(
        (done.status().as_u16(), &done.headers()["location"]),
        (303, &"/alerts".parse().unwrap())
    );
    let until = muted(&server).await["given_up"];
    assert!(until.since(before) >= Duration::from_secs(8 * 3_600), "{until:?}");
    let filter = AuditFilter { act: Some("alert.mute".to_owned()), ..AuditFilter::default() };
    let noted = server.store().audit_page(&filter, None, 9).await.unwrap().entries;
    let said = noted.iter().map(|one| (&*one.who, &*one.target, one.reason.as_deref()));
    assert_eq!(said.collect::<Vec<_>>(), [("olga", "given_up", Some("moving the rack"))]);
    let page = server.ask("GET", "/alerts").header("cookie", &olga.0);
    let page = page.header("accept-language", "en").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("Mute until") && page.contains("/alerts/given_up/unmute"), "{page}");
    assert_eq!(post(&server, &olga, "/alerts/given_up/unmute", "").await.status(), 303);
    assert_eq!(muted(&server).await, BTreeMap::new());

    for (path, body, status) in [
        ("/alerts/given_up/mute", "lasting=1h&until=1999-01-01T00%3A00", 400),
        ("/alerts/given_up/mute", "lasting=for+ever", 400),
        ("/alerts/nothing/mute", "lasting=1h", 404),
        ("/alerts/nothing/unmute", "", 404),
    ] {
        let answer = post(&server, &olga, path, body).await;
        assert_eq!(answer.status(), status, "{path} {body}");
        let page = answer.text().await.unwrap();
        assert!(page.contains("role=\"alert\"") || status == 404, "{page}");
    }
    let vera = someone(&server, "vera", Role::Viewer).await;
    assert_eq!(post(&server, &vera, "/alerts/given_up/mute", "lasting=1h").await.status(), 403);
    let stranger = (olga.0.clone(), "0".repeat(64));
    assert_eq!(post(&server, &stranger, "/alerts/given_up/mute", "lasting=1h").await.status(), 403);
    assert_eq!(muted(&server).await, BTreeMap::new());
    let instant = "lasting=1h&until=2100-01-01T08%3A00";
    assert_eq!(post(&server, &olga, "/alerts/given_up/mute", instant).await.status(), 303);
    assert!(muted(&server).await["given_up"].since(before) > Duration::from_secs(366 * 86_400));
}

async fn alerts_of_a_hidden_job_are_nobodys_business(on: On) {
    let server = server(on).await;
    let mut over = incident("0", HIDDEN, "Hush");
    over.end = Some(over.begin.clone());
    let incidents = vec![incident("1", HIDDEN, "Hush"), incident("2", "outbound", "Loud")];
    note(&server, &Noted { incidents, past: vec![over], ..Noted::default() }).await;
    let read = async |name: &str| -> (Value, String) {
        let token = server.token(name, Role::Operator).await;
        let answer = server.get("/api/v1/alerts", &token).await;
        assert_eq!(answer.status(), 200);
        (answer.json().await.unwrap(), server.page("/alerts", &token, "en").await)
    };
    let (seen, page) = read("li").await;
    assert_eq!(seen["alerts"][0]["on"].as_array().unwrap().len(), 2, "{seen}");
    assert_eq!(seen["past"][0]["job"], HIDDEN);
    assert!(page.contains("Hush"), "{page}");
    let (seen, page) = read("olga").await;
    assert_eq!(seen["alerts"][0]["on"][0]["job"], "outbound", "{seen}");
    assert_eq!((&seen["alerts"][0]["on"][1], &seen["past"]), (&Value::Null, &json!([])));
    for text in [seen.to_string(), page] {
        assert!(
            text.contains("(outbound) was given up")
                && !text.contains("Hush")
                && !text.contains(HIDDEN),
            "{text}"
        );
    }
}

async fn a_test_is_asked_back_for_and_says_what_came_of_it(on: On) {
    let server = server(on).await;
    let ada = someone(&server, "ada", Role::Admin).await;
    let path = "/alerts/channels/ops/test";
    let asked = post(&server, &ada, path, "").await;
    assert_eq!(asked.status(), 200);
    let page = asked.text().await.unwrap();
    assert!(page.contains("Send a test by ops?") && page.contains("slack"), "{page}");
    let noted = async || {
        let filter = AuditFilter { act: Some("channel.test".to_owned()), ..AuditFilter::default() };
        server.store().audit_page(&filter, None, 9).await.unwrap().entries.len()
    };
    assert_eq!(noted().await, 0, "it was only asked");
    // Nobody listens there.
    let tested = post(&server, &ada, path, "confirm=yes").await;
    assert_eq!(tested.status(), 200);
    let page = tested.text().await.unwrap();
    assert!(page.contains("ops did not accept the test"), "{page}");
    assert!(!page.contains("sesame"), "{page}");
    assert_eq!(noted().await, 1);
    assert_eq!(post(&server, &ada, "/alerts/channels/no/test", "").await.status(), 404);
    let olga = someone(&server, "olga", Role::Operator).await;
    assert_eq!(post(&server, &olga, path, "confirm=yes").await.status(), 403);
    assert_eq!(noted().await, 1);
}

/// What needs somebody by the dashboard: jobs, and what is no job.
fn needing(page: &str) -> (Vec<String>, Vec<String>) {
    let after = |mark: &str| -> Vec<String> {
        let all = page.split(mark).skip(1);
        all.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
    };
    let rows = page.split("<article class=\"row\"").skip(1);
    let needy = rows.filter(|row| row.split('>').next().unwrap().contains("data-needs"));
    let names = needy.map(|row| row.split("data-job=\"").nth(1).unwrap());
    let jobs = names.map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    (jobs, after("data-need=\""))
}

async fn whatever_has_an_alert_on_needs_somebody_on_every_page(on: On) {
    let server = server(on).await;
    let (li, vera) = ("li", "vera");
    let li = server.token(li, Role::Operator).await;
    let vera = server.token(vera, Role::Viewer).await;
    assert_eq!(needing(&server.page("/", &vera, "en").await), (vec![], vec![]));
    let about = |id: &str, alert: &str, when: When, subject: Subject| {
        let one = incident(id, "outbound", "Something");
        Incident { alert: alert.to_owned(), when, subject, ..one }
    };
    let node = Subject { node: NodeName::new("node-z").ok(), ..Subject::default() };
    let channel = Subject { channel: Some("ops".to_owned()), ..Subject::default() };
    let lost = about("c", "channel_lost", When::ChannelLost, channel);
    let tried = Tried {
        at: StoreTime(5),
        error: Some("connection refused: no".to_owned()),
        failing: Some(StoreTime(5)),
        lost: Some(Box::new(lost)),
        ..Tried::default()
    };
    let incidents = vec![
        incident("1", "outbound", "Outbound"),
        incident("2", HIDDEN, "Hidden"),
        about("3", "node_lost", When::NodeLost, node),
        // The same job by a second rule, which tells nobody: who would hear of it has heard.
        about(
            "4",
            "wanted_not_running",
            When::WantedNotRunning,
            incident("", "outbound", "").subject,
        ),
    ];
    let channels = BTreeMap::from([("ops".to_owned(), tried)]);
    note(&server, &Noted { incidents, past: Vec::new(), channels }).await;
    let seen = until_async("the dashboard knows of them", async || {
        let page = server.page("/", &vera, "en").await;
        (needing(&page).1.len() == 2).then_some(page)
    })
    .await;
    assert_eq!(needing(&seen), (vec!["outbound".to_owned()], vec!["3".to_owned(), "c".to_owned()]));
    assert!(seen.contains("Alert: given_up"), "the row says why it stands there: {seen}");
    assert!(seen.contains("<strong>3</strong> need"), "{seen}");
    let channel = "Channel ops has accepted no message since";
    assert!(seen.contains(channel) && seen.contains("refused the connection"), "{seen}");
    assert!(!seen.contains("data-ms=\"\""), "{seen}");
    let badge = |page: &str| {
        let rest = page.split("data-alerts-on").nth(1).unwrap().to_owned();
        rest.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned()
    };
    for path in ["/", "/alerts", "/nodes", "/jobs/outbound"] {
        assert_eq!(badge(&server.page(path, &vera, "en").await), "3", "{path}");
        assert_eq!(
            badge(&server.page(path, &li, "zh").await),
            "4",
            "{path}: what vera may not see"
        );
    }
    let alerts = server.page("/alerts", &vera, "zh").await;
    assert!(alerts.contains("通道 ops 自 <time "), "its instants are the reader's: {alerts}");
    assert!(alerts.contains("节点 node-z 自 <time "), "{alerts}");
    assert!(alerts.contains("已由 <strong>given_up</strong> 通知"), "{alerts}");
    let (page, _) = needing(&server.page("/?state=trouble", &vera, "en").await);
    assert_eq!(page, ["outbound"]);
    let api: Value = server.get("/api/v1/alerts", &vera).await.json().await.unwrap();
    assert!(api["channels"][0]["lost_since"].is_string(), "{api}");
    let text = api["alerts"][1]["on"][0]["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains("2026-05-04") && text.contains(" UTC"),
        "an instant says its zone: {text}"
    );
    assert_eq!(badge(&server.page("/", &vera, "en").await), "3");
}
