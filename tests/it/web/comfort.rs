//! What makes it comfortable, asked from outside: the wall, the badge, the window of its own, the page of the API, the first run.

use serde_json::{Value, json};
use soloist::domain::name::UserName;
use soloist::store::accounts::Role;
use soloist::store::jobs::Jobs as _;
use soloist::web::headers::CONTENT_SECURITY_POLICY;

use super::live::{hear_type, heard_nothing, of_a_page, run, say};
use super::{On, Server, job, problem};

#[tokio::test(flavor = "multi_thread")]
async fn a_badge_is_for_those_who_may_see_the_job_and_says_its_word_in_their_language() {
    let server = Server::with(|config| {
        let mut hidden = job("hidden");
        hidden.viewers = vec!["li".to_owned()];
        config.jobs = vec![job("outbound"), hidden];
    })
    .await;
    let ask = async |path: &str, token: Option<&str>, language: &str| {
        let request = server.ask("GET", path).header("accept-language", language);
        let request = token.iter().fold(request, |request, token| request.bearer_auth(token));
        request.send().await.unwrap()
    };
    let vera = server.token("vera", Role::Viewer).await;
    let badge = ask("/badge/outbound.svg", Some(&vera), "en").await;
    assert_eq!(badge.status(), 200);
    assert_eq!(badge.headers()["content-type"], "image/svg+xml; charset=utf-8");
    assert_eq!(badge.headers()["cache-control"], "no-cache");
    let svg = badge.text().await.unwrap();
    assert!(svg.contains("Outbound shipping: Off"), "{svg}");
    let svg = ask("/badge/outbound.svg", Some(&vera), "zh").await.text().await.unwrap();
    assert!(svg.contains("出库任务"), "{svg}");

    assert_eq!(problem(ask("/badge/outbound.svg", None, "en").await).await.0, 401);
    let carl = server.token("carl", Role::Collector).await;
    assert_eq!(problem(ask("/badge/outbound.svg", Some(&carl), "en").await).await.0, 403);
    for none in ["/badge/hidden.svg", "/badge/nothing.svg", "/badge/outbound"] {
        assert_eq!(ask(none, Some(&vera), "en").await.status(), 404, "{none}");
    }
    let bind = |name: &'static str| {
        move |token: &mut soloist::store::credentials::ApiToken| {
            token.jobs = vec![name.parse().unwrap()];
        }
    };
    let own = server.token_that("own", Role::Viewer, bind("outbound")).await;
    assert_eq!(ask("/badge/outbound.svg", Some(&own), "en").await.status(), 200);
    let other = server.token_that("other", Role::Viewer, bind("hidden")).await;
    assert_eq!(ask("/badge/outbound.svg", Some(&other), "en").await.status(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wall_shows_what_its_reader_may_see_and_has_no_act_for_anybody() {
    let server = Server::with(|config| {
        let mut hidden = job("hidden");
        hidden.viewers = vec!["li".to_owned()];
        config.jobs = vec![job("outbound"), hidden];
    })
    .await;
    let li = server.user("li", Role::Operator).await;
    server.store().participate(&"outbound".parse().unwrap(), &li, true, None).await.unwrap();
    for (name, role) in [("vera", Role::Viewer), ("ada", Role::Admin)] {
        let token = server.token(name, role).await;
        let wall = server.page("/wall", &token, "en").await;
        let main = wall.split("<main").nth(1).unwrap();
        let (main, _) = main.split_once("</main>").unwrap();
        assert!(main.contains("id=\"job-outbound\"") && !main.contains("<form"), "{main}");
        assert_eq!(main.contains("job-hidden"), role == Role::Admin, "{main}");
        // A button of a row is of a form that this page has not.
        assert!(!wall.contains("id=\"acts\"") && !wall.contains("id=\"bulk\""));
        assert!(wall.contains("data-live=\"/live?have="), "{wall}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_asks_for_the_rules_of_robots_gets_rules_and_no_page() {
    let server = Server::start().await;
    let answer = server.ask("GET", "/robots.txt").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/plain; charset=utf-8");
    let text = answer.text().await.unwrap();
    for line in text.lines() {
        assert!(line.starts_with("# ") || line.contains(':'), "{line}");
    }
    assert!(text.contains("User-agent: *"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_can_be_a_window_of_its_own() {
    let server = Server::start().await;
    let page = server.ask("GET", "/login").send().await.unwrap().text().await.unwrap();
    let of = |before: &str| {
        let rest = page.split(before).nth(1).unwrap_or_else(|| panic!("no {before}: {page}"));
        rest.split('"').next().unwrap().to_owned()
    };
    let address = of("<link rel=\"manifest\" href=\"");
    let answer = server.ask("GET", &address).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "application/manifest+json");
    let manifest: Value = answer.json().await.unwrap();
    assert_eq!((&manifest["start_url"], &manifest["scope"]), (&"/".into(), &"/".into()));
    let (directory, _) = address.rsplit_once('/').unwrap();
    let mut sizes = Vec::new();
    for icon in manifest["icons"].as_array().unwrap() {
        let path = format!("{directory}/{}", icon["src"].as_str().unwrap());
        let found = server.ask("GET", &path).send().await.unwrap();
        assert_eq!(found.status(), 200, "{path}");
        assert_eq!(found.headers()["content-type"], icon["type"].as_str().unwrap());
        let bytes = found.bytes().await.unwrap();
        if icon["type"] == "image/png" {
            // Its width stands in the header of a PNG.
            let width = u32::from_be_bytes(bytes[16..20].try_into().unwrap());
            assert_eq!(icon["sizes"], format!("{width}x{width}"));
            sizes.push(width);
        }
    }
    assert!(sizes.contains(&192) && sizes.contains(&512), "{sizes:?}");
    assert!(CONTENT_SECURITY_POLICY.contains("manifest-src 'self'"));
    assert_eq!(page.matches("name=\"theme-color\"").count(), 2, "one for each theme of the system");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_address_of_the_api_is_explained_on_a_page_without_scripts_of_others() {
    let server = Server::start().await;
    let token = server.token("vera", Role::Viewer).await;
    let page = server.page("/api", &token, "zh").await;
    for route in soloist::web::routes::ROUTES.iter().filter(|one| one.path.starts_with("/api/")) {
        let line = format!(
            "<span class=\"method\">{}</span> <span class=\"code\">{}</span>",
            route.method, route.path
        );
        assert!(page.contains(&line), "{line}");
    }
    assert_eq!(page.matches("<script").count(), 1, "our own");
    assert!(
        page.contains("<html lang=\"zh\"") && page.contains("lang=\"en\""),
        "English in a Chinese page is marked"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_first_is_told_how_to_begin() {
    let server = Server::start().await;
    let ask = async |path: &str, language: &str| {
        let request = server.ask("GET", path).header("accept-language", language);
        request.send().await.unwrap()
    };
    let first = ask("/", "en").await;
    assert_eq!(first.status(), 303);
    let location = first.headers()["location"].to_str().unwrap().to_owned();
    let page = ask(&location, "en").await.text().await.unwrap();
    for said in ["printed a link", "soloist link", "a-z, 0-9", "no default password"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(!page.contains("name=\"password\""), "no password fits yet");
    assert!(ask(&location, "zh").await.text().await.unwrap().contains("没有默认密码"));
    let link = soloist::secrets::new_link(server.store(), None, "").await.unwrap();
    let page = ask(&link, "en").await.text().await.unwrap();
    assert!(page.contains("aria-describedby=\"name-rule\"") && page.contains("1 to 64 of a-z"));
}

/// `soloist drill` refuses a job that runs in a program.
#[tokio::test(flavor = "multi_thread")]
async fn where_only_programs_hold_jobs_the_card_of_a_fail_over_offers_no_drill() {
    let server = Server::with(|config| {
        for job in &mut config.jobs {
            (job.runner, job.command) = (soloist::config::Runner::External, Vec::new());
        }
    })
    .await;
    let ada = server.token("ada", Role::Admin).await;
    for (lang, words) in [("en", "kill -9 and the process id"), ("zh", "执行 kill -9 加进程号")]
    {
        let page = server.page("/nodes", &ada, lang).await;
        let card = page.split("id=\"failover\"").nth(1).expect("the card");
        assert!(card.contains(words) && !card.contains("drill"), "{card}");
    }
}

/// Beside a job of a program the example is one that a node runs.
#[tokio::test(flavor = "multi_thread")]
async fn the_card_of_a_fail_over_never_drills_a_program() {
    let server = Server::with(|config| {
        let mut thread = config.jobs[0].clone();
        thread.name = soloist::domain::name::JobName::new("a-thread").expect("a valid name");
        (thread.runner, thread.command) = (soloist::config::Runner::External, Vec::new());
        config.jobs.insert(0, thread);
    })
    .await;
    let ada = server.token("ada", Role::Admin).await;
    let page = server.page("/nodes", &ada, "en").await;
    assert!(page.contains("drill ") && !page.contains("drill a-thread"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_card_of_a_fail_over_has_commands_of_this_installation_and_is_for_admins() {
    use clap::Parser as _;
    let server =
        Server::with(|config| config.file = Some("/etc/soloist/so loist.toml".into())).await;
    let olga = server.token("olga", Role::Operator).await;
    let page = server.page("/nodes", &olga, "en").await;
    assert!(!page.contains("so loist.toml") && !page.contains("id=\"failover\""), "{page}");
    let ada = server.token("ada", Role::Admin).await;
    let page = server.page("/nodes", &ada, "en").await;
    let card = page.split("id=\"failover\"").nth(1).expect("the card");
    let commands: Vec<String> = card
        .split("<code>")
        .skip(1)
        .map(|part| part.split("</code>").next().unwrap().replace("&#39;", "'"))
        .collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for command in &commands {
        assert!(command.contains("--config '/etc/soloist/so loist.toml'"), "{command}");
        let words = command.replace("'/etc/soloist/so loist.toml'", "/etc/soloist/soloist.toml");
        soloist::cli::Cli::try_parse_from(words.split(' '))
            .unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(commands[0].contains("serve --node node-b --listen 127.0.0.1:"), "{commands:?}");
    assert!(commands[1].ends_with("drill outbound"), "{commands:?}");
}

/// What the head of a job says of its lease, in milliseconds.
fn lease_left(head: &str) -> Option<u64> {
    let bar = head.split("<p class=\"lease fine\">").nth(1)?;
    bar.split("value=\"").nth(1)?.split('"').next()?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bar_of_a_lease_moves_on_the_page_of_its_job_and_costs_the_dashboard_nothing() {
    let server = Server::on(On::Sqlite).await;
    let (mut page, _, _) = of_a_page(&server, "li", Role::Operator).await;
    let (mut dashboard, _, _) = of_a_page(&server, "vera", Role::Viewer).await;
    // Nobody renews it, and nothing else happens.
    run(&server, &UserName::new("li").unwrap()).await;
    say(&mut page, json!({"type": "follow", "id": 1, "job": "outbound"})).await;
    let mut told = Vec::new();
    let watch = async {
        while told.len() < 4 {
            let frame = hear_type(&mut page, "row").await;
            let Some((head, left)) =
                frame["head"].as_str().and_then(|head| Some((head, lease_left(head)?)))
            else {
                continue;
            };
            let word = head.split("data-state=\"").nth(1).and_then(|rest| rest.split('"').next());
            let same = (frame["version"].as_u64(), word.map(str::to_owned));
            // Another word, or another record, brings a frame by itself: only what comes without them counts.
            told.retain(|(_, before)| *before == same);
            told.push((left, same));
            told.dedup();
        }
    };
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, watch).await.expect("its page is told once a second");
    assert!(told.is_sorted_by(|one, next| one.0 > next.0), "it runs down: {told:?}");
    assert!(told[0].0 <= 60_000, "{told:?}");
    heard_nothing(&mut dashboard, "moved").await;
}
