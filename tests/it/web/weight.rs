//! How many bytes a page of many jobs costs, and its socket.

use serde_json::{Value, json};
use soloist::domain::job::Progress;
use soloist::domain::name::{JobName, NodeName, UserName};
use soloist::store::accounts::Role;
use soloist::store::jobs::Jobs as _;
use soloist::store::journal::{Journal as _, Output};
use tokio_tungstenite::tungstenite::Message;

use super::live::{Socket, begin, hear, heard_nothing, of_a_page, say, socket_of_a_page};
use super::{On, Server, job};

/// Jobs with names, titles and groups as people choose them.
fn many(n: usize) -> Vec<soloist::config::JobConfig> {
    let groups = ["Warehouse", "Books", "Shop", "Partners", "Night"];
    let one = |nth: usize| {
        let mut job = job(&format!("shipping-{}-{nth}", ["north", "south", "post"][nth % 3]));
        job.title.en = format!("Shipping of orders, part {nth}");
        job.title.zh = format!("订单出库 {nth}");
        job.group = Some(groups[nth * groups.len() / n].to_owned());
        job
    };
    (0..n).map(one).collect()
}

/// The next frame as it came.
async fn text(socket: &mut Socket) -> String {
    match hear(socket).await {
        Message::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

async fn text_of(socket: &mut Socket, kind: &str) -> String {
    loop {
        let text = text(socket).await;
        if serde_json::from_str::<Value>(&text).unwrap()["type"] == kind {
            return text;
        }
    }
}

/// Where a page says that its socket is.
fn socket_path(page: &str) -> String {
    let path = page.split("data-live=\"").nth(1).unwrap().split('"').next().unwrap();
    path.replace("&#38;", "&")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_thousand_jobs_is_small_on_the_wire_and_its_socket_repeats_nothing() {
    let server = Server::on_with(On::Sqlite, |config| config.jobs = many(1_000)).await;
    let li = server.user("li", Role::Operator).await;
    for nth in (0..1_000).step_by(9) {
        let name = many(1_000)[nth].name.clone();
        server.store().participate(&name, &li, true, None).await.unwrap();
    }
    let (cookie, _) = server.session(&li).await;
    let ask = async |accepts: &str| {
        let ask = server.ask("GET", "/").header("cookie", &cookie);
        let answer = ask.header("accept-encoding", accepts).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["vary"], "accept-encoding");
        let encoding = answer.headers().get("content-encoding");
        let encoding = encoding.map(|name| name.to_str().unwrap().to_owned());
        assert_eq!(encoding.as_deref(), Some(accepts).filter(|name| *name != "identity"));
        answer.bytes().await.unwrap()
    };
    let (plain, gzip, brotli) = (ask("identity").await, ask("gzip").await, ask("br").await);
    println!("bytes: plain {}, gzip {}, brotli {}", plain.len(), gzip.len(), brotli.len());
    assert!(brotli.len() < 150 * 1024 && gzip.len() < 150 * 1024);
    let mut page = Vec::new();
    brotli::BrotliDecompress(&mut &*brotli, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert_eq!(page.matches("<article class=\"row\"").count(), 1_000);

    // What the page shows is not sent again; what changed since is.
    let path = socket_path(&page);
    let name = many(1_000)[500].name.clone();
    server.store().participate(&name, &li, true, None).await.unwrap();
    let newest = async || {
        let job: Value = server
            .ask("GET", &format!("/api/v1/jobs/{name}"))
            .header("cookie", &cookie)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        (job["wanted"] == true).then_some(())
    };
    crate::support::wait::until_async("the node knows", newest).await;
    let mut socket = socket_of_a_page(&server, &path, &cookie).await;
    let snapshot = text_of(&mut socket, "snapshot").await;
    println!("bytes: snapshot {}", snapshot.len());
    let frame: Value = serde_json::from_str(&snapshot).unwrap();
    assert_eq!(frame["order"].as_array().unwrap().len(), 1_000);
    let rows: Vec<&Value> =
        frame["rows"].as_array().unwrap().iter().map(|row| &row["job"]).collect();
    assert!(rows.contains(&&json!(name.as_str())), "{rows:?}");
    assert!(rows.len() < 400 && snapshot.len() < 400 * 1024, "{} rows", rows.len());
    // A page that this node did not make gets everything.
    let mut socket = socket_of_a_page(&server, "/live?have=0-99999999", &cookie).await;
    let frame: Value = serde_json::from_str(&text_of(&mut socket, "snapshot").await).unwrap();
    assert_eq!(frame["rows"].as_array().unwrap().len(), 1_000);
    // A page without rows gets none.
    let mut socket = socket_of_a_page(&server, "/live?rows=none", &cookie).await;
    assert!(text_of(&mut socket, "snapshot").await.len() < 200);
    server.store().participate(&name, &li, false, None).await.unwrap();
    heard_nothing(&mut socket, "row").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_or_streamed_answer_is_left_as_it_is() {
    let server = Server::start().await;
    let token = server.token("li", Role::Operator).await;
    let ask = |path: &str| {
        server.ask("GET", path).bearer_auth(&token).header("accept-encoding", "br, gzip").send()
    };
    let small = ask("/api/v1/jobs/outbound").await.unwrap();
    assert!(small.headers().get("content-encoding").is_none());
    assert_eq!(small.json::<Value>().await.unwrap()["name"], "outbound");
    let large = ask("/api/v1/openapi.json").await.unwrap();
    assert_eq!(large.headers()["content-encoding"], "br");
    assert!(large.headers()["server-timing"].to_str().unwrap().starts_with("node;dur="));
    let events = ask("/api/v1/live").await.unwrap();
    assert!(events.headers().get("content-encoding").is_none());
    assert!(events.headers().get("vary").is_none());
    // Nor is one that brings a secret of its own.
    let form = server.ask("GET", "/login").header("accept-encoding", "br").send().await.unwrap();
    assert!(form.headers().contains_key("set-cookie"));
    assert!(form.headers().get("content-encoding").is_none());
    assert!(form.headers().get("server-timing").is_none());
}

/// How far each job is told to be, and how many bytes that took.
#[derive(Default)]
struct Heard {
    done: u64,
    frames: usize,
    largest: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn eleven_busy_jobs_cost_an_idle_page_less_than_two_kilobytes_a_second() {
    const LAST: u64 = 400;
    let server = Server::on_with(On::Sqlite, |config| config.jobs = many(11)).await;
    let (mut socket, _, _) = of_a_page(&server, "li", Role::Operator).await;
    let li = UserName::new("li").unwrap();
    let mut going = Vec::new();
    let mut row = 0;
    for job in many(11) {
        going.push((job.name.clone(), begin(&server, &job.name, &li).await));
    }
    let began = soloist::clock::boot();
    let print = async |name: &JobName, going: &super::live::Going, done: u64| {
        let (token, run, node) = going;
        let note = format!("shipping order {}", 10_248 + done);
        let progress = Some(Progress { done, total: LAST, note });
        let (job, token, run) = (name.clone(), *token, run.clone());
        let node: NodeName = node.clone();
        let output = Output { job, token, run, node, lines: Vec::new(), progress, heard: false };
        server.store().record_output(&output).await.unwrap();
    };
    for done in 1..=LAST {
        for (name, going) in &going {
            print(name, going, done).await;
        }
    }
    let mut heard: std::collections::BTreeMap<String, Heard> = std::collections::BTreeMap::new();
    while heard.len() < 11 || heard.values().any(|one| one.done < LAST) {
        let text = text(&mut socket).await;
        let frame: Value = serde_json::from_str(&text).unwrap();
        match frame["type"].as_str().unwrap() {
            "row" => {
                row = row.max(text.len());
                // A change of the state on the way tells the progress, too.
                if frame["now"].as_str().is_some_and(|now| now.contains(&format!("value='{LAST}'")))
                {
                    heard.entry(frame["job"].as_str().unwrap().to_owned()).or_default().done = LAST;
                }
            }
            "moved" => {
                let one = heard.entry(frame["job"].as_str().unwrap().to_owned()).or_default();
                one.done = frame["done"].as_u64().unwrap();
                one.frames += 1;
                one.largest = one.largest.max(text.len());
            }
            _ => {}
        }
    }
    let seconds = soloist::clock::boot().since(began).as_secs() + 2;
    let each_second: usize = heard.values().map(|one| one.largest).sum();
    println!("bytes: a row {row}, progress of eleven jobs {each_second}, {seconds} s");
    assert!(row > 0 && row <= 1_024, "{row}");
    assert!(each_second < 2_000, "{each_second}");
    for (name, one) in &heard {
        assert!(one.frames as u64 <= seconds, "{name}: {} frames in {seconds} s", one.frames);
    }
    say(&mut socket, json!({"type": "unfollow", "id": 1, "job": "-"})).await;
}
