//! Alerts from outside: a receiver in this process that checks signatures and shapes, real nodes that send, one of them killed between begin and
//! end, a receiver that is down for a while, muting and testing.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::support::api::Api;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::wait::until_async;

pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// One request that came.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) path: String,
    query: String,
    id: String,
    pub(crate) body: Value,
}

/// A receiver; it checks the signature of what comes to `/webhook`.
#[derive(Clone, Default)]
pub(crate) struct Receiver {
    came: Arc<Mutex<Vec<Came>>>,
    /// So many requests are answered with 503 yet.
    down: Arc<Mutex<usize>>,
    pub(crate) url: String,
}

fn mac(key: &[u8], text: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key");
    mac.update(text.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn header(request: &HttpRequest, name: &str) -> String {
    let value = request.headers().get(name).map(|value| value.to_str().expect("text").to_owned());
    value.unwrap_or_default()
}

async fn receive(request: HttpRequest, body: String, me: web::Data<Receiver>) -> HttpResponse {
    let path = request.path().to_owned();
    if path == "/webhook" {
        let (id, at) = (header(&request, "webhook-id"), header(&request, "webhook-timestamp"));
        let key = STANDARD.decode(&SECRET["whsec_".len()..]).expect("base64");
        let right = format!("v1,{}", mac(&key, &format!("{id}.{at}.{body}")));
        if header(&request, "webhook-signature") != right || at.parse::<i64>().is_err() {
            return HttpResponse::Unauthorized().finish();
        }
    }
    let id = header(&request, "webhook-id");
    let query = request.query_string().to_owned();
    // A heartbeat has none.
    let body = match request.method() {
        method if method.as_str() == "GET" => Value::Null,
        _ => serde_json::from_str(&body).expect("JSON"),
    };
    me.came.lock().expect("no panic").push(Came { path, query, id, body });
    let mut down = me.down.lock().expect("no panic");
    if *down > 0 {
        *down -= 1;
        return HttpResponse::ServiceUnavailable().body("not now");
    }
    HttpResponse::Ok().json(json!({"errcode": 0, "code": 0}))
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let receiver = Self { url, ..Self::default() };
        let data = web::Data::new(receiver.clone());
        let server = HttpServer::new(move || {
            App::new().app_data(data.clone()).default_service(web::to(receive))
        });
        let server = server.workers(1).disable_signals().listen(listener).expect("it listens");
        tokio::spawn(server.run());
        receiver
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().expect("no panic").clone()
    }

    async fn until(&self, what: &str, kind: &str) -> Came {
        until_async(what, async || self.came().into_iter().find(|came| came.body["type"] == kind))
            .await
    }

    fn count(&self, kind: &str) -> usize {
        self.came().iter().filter(|came| came.body["type"] == kind).count()
    }
}

/// A job that no node may run, and an alert about it.
fn missing(receiver: &Receiver) -> String {
    format!(
        "[[job]]\nname = \"outbound\"\ntitle = {{ en = \"Outbound shipping\", zh = \"出库任务\" }}\ncommand = [\"sleep\", \"600\"]\nnodes = [\"node-z\"]\n\
         [[alert]]\nwhen = \"wanted_not_running\"\nfor = \"500ms\"\nto = [\"ops\"]\n\
         [channel.ops]\nkind = \"webhook\"\nurl = \"{}/webhook\"\nsecret = \"{SECRET}\"\n",
        receiver.url
    )
}

async fn switch(api: &Api, on: bool) {
    let path = "/api/v1/jobs/outbound/participation";
    let (status, said) = api.call(Method::PUT, path, Some(json!({"on": on}))).await;
    assert_eq!(status, StatusCode::OK, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn begin_and_end_are_told_although_the_node_that_sends_is_killed_between() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    let ground = Ground::new(&redis.url(), &missing(&receiver));
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let mut a = ground.start("node-a");
    let at_a = a.api(&token);
    switch(&at_a, true).await;
    let begin = receiver.until("the begin is told", "alert.begin").await;
    assert_eq!(begin.body["alert"], "wanted_not_running");
    assert_eq!((&begin.body["job"], &begin.body["node"]), (&json!("outbound"), &Value::Null));
    let said = begin.body["text"]["en"].as_str().expect("text");
    assert!(said.contains("Outbound shipping") && said.contains("node-z"), "{said}");
    assert!(begin.body["text"]["zh"].as_str().expect("text").contains("出库任务"));
    assert!(begin.body["url"].as_str().expect("an address").ends_with("/jobs/outbound"));
    assert!(begin.id.starts_with("msg_"), "{}", begin.id);

    let b = ground.start("node-b");
    let at_b = b.api(&token);
    until_async("the API shows that it was sent", async || {
        let alerts = at_b.get("/api/v1/alerts").await;
        assert!(!alerts.to_string().contains("http") && !alerts.to_string().contains("whsec"));
        let on = &alerts["alerts"][0]["on"][0];
        (on["job"] == "outbound" && on["sent"][0]["begin"].is_string()).then_some(())
    })
    .await;
    a.kill();
    switch(&at_b, false).await;
    let end = receiver.until("the end is told by the other node", "alert.end").await;
    assert_eq!(end.body["job"], "outbound");
    assert_eq!(end.body["since"], begin.body["since"]);
    assert_ne!(end.id, begin.id);
    until_async("nothing is on", async || {
        let alerts = at_b.get("/api/v1/alerts").await;
        (alerts["alerts"][0]["on"] == json!([])).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_down_three_times_gets_the_same_message_again() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    *receiver.down.lock().expect("no panic") = 3;
    let ground = Ground::new(&redis.url(), &missing(&receiver));
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    switch(&api, true).await;
    until_async("it was sent four times", async || {
        (receiver.count("alert.begin") >= 4).then_some(())
    })
    .await;
    let came = receiver.came();
    assert!(came.iter().all(|one| one.id == came[0].id && one.body == came[0].body), "{came:?}");
    until_async("the channel is well", async || {
        let alerts = api.get("/api/v1/alerts").await;
        (alerts["channels"][0]["last"]["ok"] == true).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_muted_alert_is_told_when_it_may_speak_again() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    let ground = Ground::new(&redis.url(), &missing(&receiver));
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    let path = "/api/v1/alerts/wanted_not_running/mute";
    let (status, said) = api.call(Method::PUT, path, Some(json!({"for_ms": 600_000}))).await;
    assert_eq!(status, StatusCode::OK, "{said}");
    switch(&api, true).await;
    until_async("it is on and mute", async || {
        let alerts = api.get("/api/v1/alerts").await;
        (alerts["alerts"][0]["on"][0]["muted"] == true).then_some(())
    })
    .await;
    assert_eq!(receiver.count("alert.begin"), 0);
    let (status, said) = api.call(Method::PUT, path, Some(json!({"until": null}))).await;
    assert_eq!((status, &said["alerts"][0]["muted_until"]), (StatusCode::OK, &Value::Null));
    receiver.until("it is told now", "alert.begin").await;
    for wrong in [json!({}), json!({"until": "soon"}), json!({"for_ms": 1})] {
        let (status, said) = api.call(Method::PUT, path, Some(wrong)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{said}");
    }
    let (status, _) =
        api.call(Method::PUT, "/api/v1/alerts/no/mute", Some(json!({"until": null}))).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = api.call(Method::POST, "/api/v1/channels/ops/test", None).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "an operator");
}

/// A mail server that takes one mail and gives its text.
async fn take_mail(listener: tokio::net::TcpListener) -> String {
    let (socket, _) = listener.accept().await.expect("a client");
    let (read, mut write) = socket.into_split();
    let mut lines = BufReader::new(read).lines();
    write.write_all(b"220 here\r\n").await.expect("it listens");
    let (mut mail, mut in_mail) = (String::new(), false);
    while let Some(line) = lines.next_line().await.expect("lines") {
        let answer: &[u8] = match line.as_str() {
            "." if in_mail => {
                write.write_all(b"250 taken\r\n").await.expect("it listens");
                return mail;
            }
            _ if in_mail => {
                mail.push_str(&line);
                mail.push('\n');
                continue;
            }
            "DATA" => {
                in_mail = true;
                b"354 go on\r\n"
            }
            _ => b"250 well\r\n",
        };
        write.write_all(answer).await.expect("it listens");
    }
    panic!("no mail came")
}

#[tokio::test(flavor = "multi_thread")]
async fn each_channel_sends_what_its_service_documents() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    let mail = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = mail.local_addr().expect("an address");
    let url = &receiver.url;
    let ground = Ground::new(
        &redis.url(),
        &format!(
            "[channel.hook]\nkind = \"webhook\"\nurl = \"{url}/webhook\"\nsecret = \"{SECRET}\"\n\
             [channel.wecom]\nkind = \"wecom\"\nurl = \"{url}/wecom?key=k\"\n\
             [channel.ding]\nkind = \"dingtalk\"\nurl = \"{url}/ding?access_token=t\"\nsecret = \"SECone\"\n\
             [channel.feishu]\nkind = \"feishu\"\nurl = \"{url}/feishu\"\nsecret = \"two\"\n\
             [channel.slack]\nkind = \"slack\"\nurl = \"{url}/slack\"\n\
             [channel.mail]\nkind = \"mail\"\nurl = \"smtp://{at}\"\nfrom = \"soloist@example.org\"\nto = [\"ops@example.org\"]\n"
        ),
    );
    ground.add_user("ada", "admin");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("ada"));
    let mailed = tokio::spawn(take_mail(mail));
    for channel in ["hook", "wecom", "ding", "feishu", "slack", "mail"] {
        let path = format!("/api/v1/channels/{channel}/test");
        let (status, said) = api.call(Method::POST, &path, None).await;
        assert_eq!((status, &said["ok"]), (StatusCode::OK, &json!(true)), "{channel}: {said}");
    }
    let came = receiver.came();
    let at = |path: &str| came.iter().find(|one| one.path == path).expect(path);
    assert_eq!(at("/webhook").body["type"], "alert.test");
    assert_eq!(at("/wecom").query, "key=k");
    assert_eq!(at("/wecom").body["msgtype"], "text");
    assert!(at("/wecom").body["text"]["content"].as_str().expect("text").contains("ada"));
    let pairs = reqwest::Url::parse(&format!("http://h/?{}", at("/ding").query)).expect("a query");
    let pair = |name: &str| {
        let found = pairs.query_pairs().find(|(key, _)| key == name);
        found.map(|(_, value)| value.into_owned()).unwrap_or_default()
    };
    let (timestamp, sign) = (pair("timestamp"), pair("sign"));
    assert_eq!(timestamp.len(), 13, "milliseconds: {timestamp}");
    assert_eq!(sign, mac(b"SECone", &format!("{timestamp}\nSECone")));
    assert_eq!(
        (pair("access_token"), &at("/ding").body["msgtype"]),
        ("t".to_owned(), &json!("text"))
    );
    let feishu = &at("/feishu").body;
    let timestamp = feishu["timestamp"].as_str().expect("text");
    assert_eq!(timestamp.len(), 10, "seconds: {timestamp}");
    assert_eq!(feishu["sign"], mac(format!("{timestamp}\ntwo").as_bytes(), ""));
    assert_eq!(feishu["msg_type"], "text");
    assert!(feishu["content"]["text"].is_string());
    assert!(at("/slack").body["text"].is_string());
    let mail = mailed.await.expect("a mail");
    assert!(mail.contains("To: ops@example.org") && mail.contains("Subject: [Soloist"), "{mail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_is_remembered_and_a_channel_that_fails_keeps_no_other_waiting() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    // Nobody listens there.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let bad = closed.local_addr().expect("an address");
    drop(closed);
    let text = missing(&receiver).replace("to = [\"ops\"]", "to = [\"bad\", \"ops\"]");
    let bad = format!("[channel.bad]\nkind = \"slack\"\nurl = \"http://{bad}/\"\n");
    let ground = Ground::new(&redis.url(), &format!("{text}{bad}"));
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    switch(&api, true).await;
    receiver.until("the good channel is told", "alert.begin").await;
    let channel = |alerts: &Value, name: &str| {
        let all = alerts["channels"].as_array().expect("channels").iter();
        all.clone().find(|one| one["name"] == name).expect(name)["last"].clone()
    };
    until_async("the bad channel says what is in the way", async || {
        let alerts = api.get("/api/v1/alerts").await;
        let (bad, ops) = (channel(&alerts, "bad"), channel(&alerts, "ops"));
        (bad["ok"] == false && bad["error"].is_string() && ops["ok"] == true).then_some(())
    })
    .await;
    switch(&api, false).await;
    receiver.until("and the good one that it is over", "alert.end").await;
    assert_eq!((receiver.count("alert.begin"), receiver.count("alert.end")), (1, 1));
    until_async("it is shown as over", async || {
        let alerts = api.get("/api/v1/alerts").await;
        let past = &alerts["past"][0];
        (past["job"] == "outbound" && past["over"].as_str() > past["since"].as_str()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_stands_still_is_told_by_message_and_page_until_it_gets_on() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    let script = "echo '::progress 1/9 x'; until test -e go; do sleep 0.1; done; echo '::progress 2/9 y'; sleep 600";
    let job = format!(
        "[[job]]\nname = \"outbound\"\ncommand = [\"sh\", \"-c\", {script:?}]\nmin_uptime = \"100ms\"\n"
    );
    let missing = missing(&receiver);
    let rule = missing.split("[[alert]]").nth(1).expect("a rule");
    let rule = rule.replace("wanted_not_running", "stuck").replace("500ms", "2s");
    let ground = Ground::new(&redis.url(), &format!("{job}[[alert]]{rule}"));
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    switch(&api, true).await;
    let why = async || api.get("/api/v1/jobs/outbound").await["why"].clone();
    let begin = receiver.until("it is told that it is stuck", "alert.begin").await;
    let said = begin.body["text"]["en"].as_str().expect("text");
    assert!(said.contains("no output and no progress") && said.contains("hold it"), "{said}");
    assert!(why().await.as_str().is_some_and(|why| why.contains("is stuck")), "and shown");
    std::fs::write(ground.path("go"), "").expect("written");
    receiver.until("it gets on", "alert.end").await;
    // A run that tells nothing more is stuck again, but not yet.
    assert!(why().await.as_str().is_some_and(|why| !why.contains("is stuck")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hangup_reads_alerts_and_channels_anew() {
    let (redis, receiver) = (RedisServer::start(&[]), Receiver::start());
    let head = format!("store = {:?}\nlisten = \"127.0.0.1:0\"\n", redis.url());
    let whole = missing(&receiver);
    let job = whole.split("[[alert]]").next().expect("a job").to_owned();
    let ground = Ground::new(&redis.url(), &job);
    ground.add_user("li", "operator");
    let node = ground.start("node-a");
    let api = node.api(&ground.token("li"));
    switch(&api, true).await;
    assert_eq!(api.get("/api/v1/alerts").await["alerts"], json!([]));
    let read_anew = |text: &str| {
        std::fs::write(ground.path("soloist.toml"), format!("{head}{text}")).expect("written");
        node.signal(nix::sys::signal::Signal::SIGHUP);
    };
    read_anew(&whole);
    receiver.until("the new rule tells by the new channel", "alert.begin").await;
    // A rule that is gone has ended what it told, and another channel is told nothing of it.
    read_anew(&whole.replace("when = \"wanted_not_running\"", "when = \"given_up\""));
    receiver.until("a rule that is gone is over", "alert.end").await;
    let alerts = api.get("/api/v1/alerts").await;
    assert_eq!(alerts["alerts"][0]["name"], "given_up", "{alerts}");
    assert_eq!((receiver.count("alert.begin"), receiver.count("alert.end")), (1, 1));
}
