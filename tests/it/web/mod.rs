//! The web room, asked from outside: a server in this process on a free port, with a fresh store.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// Each law as a test on every store: it is an `async fn(on: On)`.
macro_rules! on_every_store {
    ($($law:ident)*) => {
        mod on_redis {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                let law = async || super::$law(crate::web::On::Redis).await;
                crate::support::machine::judge(law).await;
            })*
        }
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $law() {
                let law = async || super::$law(crate::web::On::Sqlite).await;
                crate::support::machine::judge(law).await;
            })*
        }
    };
}

mod access;
mod accounts;
mod administer;
mod alerts;
mod api;
mod asyncapi;
mod audit;
mod away;
mod bounds;
mod bulk;
mod comfort;
mod dashboard;
mod dispatch;
mod dispatch_page;
mod dispatch_waiting;
mod forged;
mod front_ends;
mod fuzz;
mod groups;
mod guessing;
mod hidden;
mod last_day;
mod leases;
mod leasing;
mod live;
mod login;
mod odd;
mod oidc;
mod openapi;
mod output;
mod reasons;
mod refusals;
mod removal;
mod rights;
mod rotation_page;
mod rotation_waiting;
mod rotations;
mod schedule;
mod sse;
mod storm;
mod strangers;
mod stuck;
mod timeline;
mod truth;
mod weight;
mod zone;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response};
use soloist::config::{Config, Current, JobConfig, LiveLimits, Repeat, Runner, Title};
use soloist::domain::backoff::Backoff;
use soloist::domain::lease::Timing;
use soloist::domain::name::{JobName, NodeName, UserName};
use soloist::feed::{Feed, Followed};
use soloist::secrets;
use soloist::store::accounts::{Accounts, Role, User};
use soloist::store::credentials::{ApiToken, Credentials};
use soloist::store::{Options, Store};
use soloist::telemetry::Metrics;
use soloist::waiting::WaitingRoom;
use soloist::web::auth;
use soloist::web::{Desks, Drain, Web, serve};

use crate::support::redis::RedisServer;

/// A password of every account that signs in by one.
pub(crate) const PASSWORD: &str = "violet harbour 47 lanterns";

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) web: Web,
    pub(crate) drain: Option<Drain>,
    pub(crate) redis: OwnRedis,
    /// Of the store's file; removed with the server.
    dir: Option<tempfile::TempDir>,
}

/// On which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum On {
    Redis,
    Sqlite,
}

pub(crate) fn job(name: &str) -> JobConfig {
    let timing = Timing::from_ttl(Duration::from_secs(5)).unwrap();
    let second = Duration::from_secs(1);
    JobConfig {
        schedule: None,
        name: JobName::new(name).unwrap(),
        title: Title { en: "Outbound shipping".to_owned(), zh: "出库任务".to_owned() },
        runner: Runner::Soloist,
        elsewhere: false,
        group: None,
        command: vec!["true".to_owned()],
        dir: PathBuf::from("/"),
        env: BTreeMap::new(),
        timing,
        stop_grace: second,
        repeat: Repeat::Never,
        backoff: Backoff { first: second, max: second, give_up_after: 0, min_uptime: second },
        max_runtime: None,
        max_silence: None,
        heartbeat_url: None,
        stuck_after: None,
        missing_after: None,
        nodes: vec!["*".to_owned()],
        operators: vec!["*".to_owned()],
        viewers: vec!["*".to_owned()],
        user: None,
        secrets: BTreeMap::new(),
        rotation: None,
    }
}

/// An `<article>`, out of a page.
fn article<'a>(page: &'a str, id: &str) -> &'a str {
    let from = page.find(&format!("id=\"{id}\"")).unwrap_or_else(|| panic!("{page}"));
    let length = page[from..].find("</article>").unwrap();
    &page[from..from + length]
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::at(OwnRedis::start(), change).await
    }

    /// A page, to whoever has that token.
    async fn page(&self, path: &str, token: &str, language: &str) -> String {
        let request = self.ask("GET", path).bearer_auth(token).header("accept-language", language);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.unwrap()
    }

    /// On a store of this kind.
    pub(crate) async fn on(on: On) -> Self {
        Self::on_with(on, |_| {}).await
    }

    /// The same, with another configuration.
    pub(crate) async fn on_with(on: On, change: impl FnOnce(&mut Config)) -> Self {
        if on == On::Redis {
            return Self::with(change).await;
        }
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", dir.path().join("soloist.db").display());
        let mut server = Self::at(OwnRedis { server: None, url }, change).await;
        server.dir = Some(dir);
        server
    }

    /// Another node on the same store.
    pub(crate) async fn beside(&self) -> Self {
        self.beside_with(|_| {}).await
    }

    /// The same, with another configuration.
    pub(crate) async fn beside_with(&self, change: impl FnOnce(&mut Config)) -> Self {
        let redis = OwnRedis { server: None, url: self.redis.url.clone() };
        let change = |config: &mut Config| {
            change(config);
            config.node = NodeName::new("node-b").unwrap();
        };
        Self::at(redis, change).await
    }

    async fn at(redis: OwnRedis, change: impl FnOnce(&mut Config)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut config = Config {
            lifeline: None,
            file: None,
            store: redis.url.clone(),
            coordination: None,
            prefix: "soloist:".to_owned(),
            listen: address,
            public_url: format!("http://{address}"),
            node: NodeName::new("node-a").unwrap(),
            timing: Timing::from_ttl(Duration::from_secs(5)).unwrap(),
            lease_ttl_max: Duration::from_secs(600),
            history: Duration::from_secs(30 * 24 * 3_600),
            containment: None,
            live: LiveLimits {
                sockets_per_node: 1_000,
                sockets_per_user: 200,
                sockets_per_address: 200,
            },
            log: soloist::domain::log::LogBounds::default(),
            doors: soloist::config::Doors::default(),
            oidc: None,
            alerting: Arc::default(),
            heartbeat_url: None,
            jobs: [job("outbound"), job("inbound")].into(),
        };
        config.jobs[1].operators = vec!["li".to_owned()];
        change(&mut config);
        let store = soloist::stores::connect(&config.store, &Options::default()).await.unwrap();
        let followed = config
            .jobs
            .iter()
            .map(|job| Followed {
                job: job.name.clone(),
                timing: job.timing,
                min_uptime: job.backoff.min_uptime,
                takes_turns: job.rotation.is_some(),
                external: job.is_external(),
                schedule: job.schedule.as_ref().map(|scheduled| scheduled.law.clone()),
            })
            .collect();
        let feed = Feed::start(store.clone(), followed).await;
        let metrics = Arc::new(Metrics::new());
        let room = WaitingRoom::open(store.clone(), &feed, &config.node);
        let work = soloist::dispatch::ClaimDesk::start(room.clone(), Arc::clone(&metrics));
        let turns = soloist::rotation::TurnDesk::start(room.clone(), Arc::clone(&metrics));
        let web = Web::new(store, feed, Current::new(config), metrics, Desks { room, work, turns });
        let (server, drain) = serve(web.clone(), listener).unwrap();
        tokio::spawn(server);
        Self { address, web, drain: Some(drain), redis, dir: None }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.web.store
    }

    /// An account that cannot sign in by password.
    pub(crate) async fn user(&self, name: &str, role: Role) -> UserName {
        self.account(name, role, "unusable".to_owned()).await
    }

    pub(crate) async fn account(&self, name: &str, role: Role, password: String) -> UserName {
        let name = UserName::new(name).unwrap();
        let user = User::new(name.clone(), role, password);
        self.store().add_user(&user, false).await.unwrap();
        name
    }

    /// A new account with an API token.
    pub(crate) async fn token(&self, name: &str, role: Role) -> String {
        self.bound_token(name, role, None, &[]).await
    }

    /// A new account with an API token that is bound in dispatch.
    pub(crate) async fn bound_token(
        &self,
        name: &str,
        role: Role,
        collector: Option<&str>,
        sources: &[&str],
    ) -> String {
        self.token_that(name, role, |token| {
            token.collector = collector.map(|name| name.parse().unwrap());
            token.sources = sources.iter().map(|name| name.parse().unwrap()).collect();
        })
        .await
    }

    /// A new account with an API token that is bound as `more` says.
    pub(crate) async fn token_that(
        &self,
        name: &str,
        role: Role,
        more: impl FnOnce(&mut ApiToken),
    ) -> String {
        let user = self.user(name, role).await;
        let (secret, hash, id) = secrets::new_api_token();
        let mut token = ApiToken { id, ..ApiToken::new(user, "test".to_owned()) };
        more(&mut token);
        self.store().add_token(&hash, &token, None).await.unwrap();
        secret
    }

    /// A session for an account that exists: the cookie header and the CSRF secret.
    pub(crate) async fn session(&self, user: &UserName) -> (String, String) {
        let by = auth::Browser { from: "127.0.0.1".to_owned(), user_agent: None };
        let (store, config) = (self.store(), self.web.config());
        let cookie = auth::open_session(store, &config, user, &by).await.unwrap();
        let hash = secrets::sha256_hex(cookie.value());
        let session = self.store().session(&hash, auth::SESSION_IDLE).await.unwrap().unwrap();
        (format!("{}={}", cookie.name(), cookie.value()), session.csrf)
    }

    /// A request that follows no redirects.
    pub(crate) fn ask(&self, method: &str, path: &str) -> RequestBuilder {
        let client = crate::support::http::client().redirect(Policy::none()).build().unwrap();
        client.request(Method::from_bytes(method.as_bytes()).unwrap(), self.url(path))
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Response {
        self.ask("GET", path).bearer_auth(token).send().await.unwrap()
    }
}

/// The status and the `detail` of a problem; fails when it is none.
pub(crate) async fn problem(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    assert_eq!(kind, "application/problem+json");
    let body: serde_json::Value = response.json().await.unwrap();
    assert_eq!(body["status"], status);
    assert_eq!(body["type"], "about:blank");
    assert!(body["title"].is_string());
    (status, body["detail"].as_str().unwrap().to_owned())
}

/// A store of this test's own: a Redis server, or with none of those the file that the address names.
pub(crate) struct OwnRedis {
    server: Option<RedisServer>,
    url: String,
}

impl OwnRedis {
    fn start() -> Self {
        let server = RedisServer::start(&[]);
        let url = server.url();
        Self { server: Some(server), url }
    }

    pub(crate) fn stop(&mut self) {
        self.server.as_mut().unwrap().kill();
    }

    /// It answers nobody, and loses nothing.
    pub(crate) fn pause(&self) {
        self.server.as_ref().unwrap().pause();
    }

    pub(crate) fn resume(&self) {
        self.server.as_ref().unwrap().resume();
    }

    /// Runs one command at the server.
    pub(crate) fn run(&self, words: &[&str]) {
        self.server.as_ref().unwrap().run::<::redis::Value>(words);
    }
}
