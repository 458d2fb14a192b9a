//! Signing in by single sign-on, with a provider in this process and with one from outside.

mod mock;
mod provider;

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Response};
use serde_json::json;
use soloist::config::{Config, Oidc, RolesOfGroups, Secret, Title};
use soloist::domain::name::{NodeName, UserName};
use soloist::ops::{Signature, external};
use soloist::secrets;
use soloist::store::accounts::{Accounts, External, Role, User};
use soloist::store::credentials::{ApiToken, Credentials as _};
use soloist::store::journal::{AuditEntry, Journal, Kind};
use tokio::io::AsyncReadExt as _;
use url::Url;

use self::provider::{CLIENT, Fault, Provider, SECRET};
use super::{OwnRedis, PASSWORD, Server};
use crate::support::browser::Driver;
use crate::support::wait::until_async;

fn rules(issuer: &str) -> Oidc {
    let groups = |name: &str| vec![name.to_owned()];
    Oidc {
        issuer: issuer.to_owned(),
        client_id: CLIENT.to_owned(),
        client_secret: Some(Secret::new(SECRET)),
        scopes: vec!["openid".to_owned(), "profile".to_owned()],
        groups_claim: "groups".to_owned(),
        name_claim: "preferred_username".to_owned(),
        roles: RolesOfGroups {
            admin: groups("soloist-admins"),
            operator: groups("shift"),
            viewer: groups("everybody"),
            otherwise: None,
        },
        create_accounts: true,
        ca: None,
        button: Title { en: "Company login".to_owned(), zh: "公司登录".to_owned() },
    }
}

fn with(change: impl FnOnce(&mut Oidc), issuer: &str) -> impl FnOnce(&mut Config) {
    let mut rules = rules(issuer);
    change(&mut rules);
    move |config| config.oidc = Some(Arc::new(rules))
}

/// A server with a local admin, and its provider.
async fn begin(change: impl FnOnce(&mut Oidc)) -> (Server, Provider) {
    let provider = Provider::start();
    let server = Server::with(with(change, &provider.url)).await;
    server.user("ada", Role::Admin).await;
    provider.person("s-1", "Li", &["shift", "other"]);
    (server, provider)
}

/// A browser: it keeps cookies and follows no redirect by itself.
struct Browser(Client);

impl Browser {
    fn new() -> Self {
        let client = crate::support::http::client().redirect(Policy::none()).cookie_store(true);
        Self(client.timeout(Duration::from_secs(60)).build().unwrap())
    }

    async fn get(&self, url: &str) -> Response {
        self.0.get(url).header("accept-language", "en").send().await.unwrap()
    }

    /// Follows the button to the provider, who answers at once; the address that the browser is sent back to.
    async fn to_provider_and_back(&self, server: &Server, next: &str) -> String {
        let begun = self.get(&server.url(&format!("/login/oidc?next={next}"))).await;
        assert_eq!(begun.status(), 303);
        let answered = self.get(&location(&begun)).await;
        assert_eq!(answered.status(), 302);
        location(&answered)
    }

    async fn sign_in(&self, server: &Server) -> Response {
        let back = self.to_provider_and_back(server, "/jobs/outbound").await;
        self.get(&back).await
    }

    /// Whom the server sees.
    async fn is_signed_in(&self, server: &Server) -> bool {
        self.get(&server.url("/api/v1/jobs")).await.status() == 200
    }
}

fn location(response: &Response) -> String {
    response.headers()["location"].to_str().unwrap().to_owned()
}

fn sets_a_session(response: &Response) -> bool {
    let set = response.headers().get_all("set-cookie");
    set.iter().any(|value| value.to_str().unwrap().starts_with("soloist="))
}

async fn account(server: &Server, name: &str) -> Option<User> {
    server.store().user(&UserName::new(name).unwrap()).await.unwrap()
}

async fn acts(server: &Server) -> Vec<String> {
    let audits = server.store().audits(None, None, 50).await.unwrap();
    audits.into_iter().map(|entry| format!("{} {}", entry.who, entry.act)).collect()
}

/// Refused with this sentence, and nobody is signed in.
async fn refused(browser: &Browser, server: &Server, response: Response, sentence: &str) {
    assert_eq!(response.status(), 403, "{sentence}");
    assert!(!sets_a_session(&response), "{sentence}");
    let page = response.text().await.unwrap();
    assert!(page.contains(sentence), "{page}\nlacks {sentence}");
    assert!(!browser.is_signed_in(server).await, "{sentence}");
}

const OLD: &str = "This sign-in is no longer valid";
const UNPROVED: &str = "could not be verified";

#[tokio::test(flavor = "multi_thread")]
async fn a_first_sign_in_makes_an_account_with_the_role_of_its_groups() {
    let (server, provider) = begin(|_| {}).await;
    let browser = Browser::new();
    let page = browser.get(&server.url("/login?next=/jobs/outbound")).await.text().await.unwrap();
    assert!(
        page.contains("href=\"/login/oidc?next=%2Fjobs%2Foutbound\">Company login</a>"),
        "{page}"
    );
    let entered = browser.sign_in(&server).await;
    assert_eq!((entered.status().as_u16(), location(&entered).as_str()), (303, "/jobs/outbound"));
    assert!(browser.is_signed_in(&server).await);
    assert_eq!(provider.state().complaints, [""; 0], "the provider has nothing to complain of");
    let li = account(&server, "li").await.unwrap();
    assert_eq!((li.role, li.is_local()), (Role::Operator, false));
    let external = External { issuer: provider.url.clone(), subject: "s-1".to_owned() };
    assert_eq!(li.external, Some(external));
    assert_eq!(acts(&server).await, ["li login", "oidc:li user.add"]);

    // The second time it is the same account, whatever the person is called by then.
    provider.person("s-1", "someone.else", &["shift"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    assert_eq!(server.store().users().await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_before_ends_whoever_it_was() {
    let (server, _provider) = begin(|_| {}).await;
    let begun = server.ask("GET", "/login/oidc").send().await.unwrap();
    let way = begun.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let answered = Browser::new().get(&location(&begun)).await;
    let path = location(&answered).strip_prefix(&server.url("")).unwrap().to_owned();
    // Meanwhile somebody signs in by password in another window.
    let (before, _) = server.session(&UserName::new("ada").unwrap()).await;
    let look = || server.ask("GET", "/api/v1/jobs").header("cookie", &before).send();
    assert_eq!(look().await.unwrap().status(), 200);
    let both = format!("{before}; {way}");
    let entered = server.ask("GET", &path).header("cookie", both).send().await.unwrap();
    assert_eq!(entered.status(), 303);
    assert!(sets_a_session(&entered));
    assert_eq!(look().await.unwrap().status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_single_sign_on_has_no_password() {
    let (server, _provider) = begin(|_| {}).await;
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    for password in ["", "+", "$argon2id$", "anything+at+all"] {
        let sent = server
            .ask("POST", "/login")
            .header("origin", server.url(""))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("name=li&password={password}"));
        let answer = sent.send().await.unwrap();
        assert_eq!(answer.status(), 401, "{password:?}");
        assert!(!sets_a_session(&answer));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_proved_signs_nobody_in() {
    let (server, provider) = begin(|_| {}).await;
    for fault in [
        Fault::Nonce,
        Fault::NoNonce,
        Fault::Expired,
        Fault::Audience,
        Fault::SecondAudience,
        Fault::NoAudience,
        Fault::Issuer,
        Fault::Unsigned,
        Fault::ForeignKey,
        Fault::ChangedAfterSigning,
        Fault::SignedWithTheSecret,
        Fault::AccessTokenOfAnother,
        Fault::NoIdToken,
        Fault::NoSubject,
    ] {
        provider.state().fault = fault;
        let browser = Browser::new();
        let before = provider.state().exchanges;
        let answer = browser.sign_in(&server).await;
        assert_eq!(provider.state().exchanges, before + 1, "{fault:?} was never answered");
        let status = answer.status();
        assert_eq!(status, 403, "{fault:?}");
        refused(&browser, &server, answer, UNPROVED).await;
    }
    assert_eq!(server.store().users().await.unwrap().len(), 1, "no account was made");
    // A node writes so many refusals a second; those that are alike are one entry.
    until_async("all of them are in the audit", async || {
        let audits = server.store().audits(None, None, 50).await.unwrap();
        let failed = |one: &AuditEntry| one.who == "oidc:unknown" && one.act == "login.failed";
        assert!(audits.iter().all(failed), "{audits:?}");
        (audits.iter().map(|one| one.count).sum::<u64>() == 14).then_some(())
    })
    .await;
    // The same way without a fault is open, so it was the faults.
    provider.state().fault = Fault::None;
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_good_once_and_only_where_it_was_asked_for() {
    let (server, provider) = begin(|_| {}).await;
    let li = Browser::new();
    let back = li.to_provider_and_back(&server, "/").await;
    // Somebody else's browser, which is to be signed in as li.
    let other = Browser::new();
    let answer = other.get(&back).await;
    refused(&other, &server, answer, OLD).await;
    other.to_provider_and_back(&server, "/").await;
    let answer = other.get(&back).await;
    refused(&other, &server, answer, OLD).await;
    assert_eq!(provider.state().exchanges, 0, "the provider was not even asked");
    // Another state.
    let mut changed = Url::parse(&back).unwrap();
    changed
        .query_pairs_mut()
        .clear()
        .append_pair("code", "x")
        .append_pair("state", &"0".repeat(64));
    let twin = Browser::new();
    twin.to_provider_and_back(&server, "/").await;
    let answer = twin.get(changed.as_str()).await;
    refused(&twin, &server, answer, OLD).await;
    // Another issuer says that it answers (RFC 9207).
    let back_again = twin.to_provider_and_back(&server, "/").await;
    let answer = twin.get(&format!("{back_again}&iss=https%3A%2F%2Fother.example.org")).await;
    refused(&twin, &server, answer, UNPROVED).await;
    assert_eq!(provider.state().exchanges, 0);

    // Kept by whoever reads the browser's disk: the cookie and the address, after they were used.
    let begun = server.ask("GET", "/login/oidc").send().await.unwrap();
    let cookie =
        begun.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let answered = Browser::new().get(&location(&begun)).await;
    let path = location(&answered).strip_prefix(&server.url("")).unwrap().to_owned();
    let ask = || {
        server.ask("GET", &path).header("cookie", &cookie).header("accept-language", "en").send()
    };
    let first = ask().await.unwrap();
    assert_eq!(first.status(), 303);
    assert!(sets_a_session(&first));
    let gone = first.headers().get_all("set-cookie").iter().any(|value| {
        let value = value.to_str().unwrap();
        value.starts_with("soloist-oidc=;") && value.contains("Max-Age=0")
    });
    assert!(gone, "the browser forgets the sign-in: {:?}", first.headers());
    let second = ask().await.unwrap();
    assert_eq!(second.status(), 403);
    assert!(!sets_a_session(&second));
    assert!(second.text().await.unwrap().contains("no such code"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_of_another_client_is_refused() {
    let (server, provider) = begin(|_| {}).await;
    provider.state().client = "another".to_owned();
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    refused(&browser, &server, answer, "the code is another client").await;
    // A code of ours that somebody else began: PKCE binds it to that browser.
    provider.state().client = CLIENT.to_owned();
    let (thief, li) = (Browser::new(), Browser::new());
    let stolen = Url::parse(&li.to_provider_and_back(&server, "/").await).unwrap();
    let own = Url::parse(&thief.to_provider_and_back(&server, "/").await).unwrap();
    let pick = |url: &Url, name: &str| {
        url.query_pairs().find(|(key, _)| key == name).unwrap().1.into_owned()
    };
    let mut mixed = own.clone();
    let (code, state) = (pick(&stolen, "code"), pick(&own, "state"));
    mixed.query_pairs_mut().clear().append_pair("code", &code).append_pair("state", &state);
    let answer = thief.get(mixed.as_str()).await;
    refused(&thief, &server, answer, "the code is another client").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_account_is_not_taken_over_until_an_admin_links_it() {
    let (server, provider) = begin(|_| {}).await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    let name = server.account("li", Role::Viewer, phc).await;
    let before = account(&server, "li").await;
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    refused(&browser, &server, answer, "soloist user link li --subject s-1").await;
    assert_eq!(account(&server, "li").await, before);
    assert_eq!(acts(&server).await, ["oidc:li login.failed"]);

    let by =
        Signature { who: "cli:root".to_owned(), from: "terminal".to_owned(), kind: Kind::Person };
    let person = External { issuer: provider.url.clone(), subject: "s-1".to_owned() };
    external::link(server.store(), &by, &name, Some(person.clone())).await.unwrap();
    let twice =
        external::link(server.store(), &by, &UserName::new("ada").unwrap(), Some(person)).await;
    assert!(twice.unwrap_err().to_string().contains("li is that person already"));
    assert_eq!(browser.sign_in(&server).await.status(), 303);
    let li = account(&server, "li").await.unwrap();
    assert_eq!(
        (li.role, li.is_local()),
        (Role::Operator, true),
        "as its groups say, with its password"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_say_the_role_at_every_sign_in() {
    let (server, provider) = begin(|_| {}).await;
    let first = Browser::new();
    assert_eq!(first.sign_in(&server).await.status(), 303);
    for (groups, role) in [
        (&["soloist-admins", "shift"][..], Role::Admin),
        (&["everybody"], Role::Viewer),
        (&["shift"], Role::Operator),
    ] {
        provider.person("s-1", "Li", groups);
        let next = Browser::new();
        assert_eq!(next.sign_in(&server).await.status(), 303);
        assert_eq!(account(&server, "li").await.unwrap().role, role);
        assert!(next.is_signed_in(&server).await);
        assert!(!first.is_signed_in(&server).await, "what it might before is over");
        assert_eq!(first.sign_in(&server).await.status(), 303);
    }
    // Thrown out of every group: the sessions end as well.
    provider.person("s-1", "Li", &["other"]);
    let last = Browser::new();
    let answer = last.sign_in(&server).await;
    refused(&last, &server, answer, "li is in no group that may use Soloist").await;
    assert!(!first.is_signed_in(&server).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_do_not_demote_the_last_admin_who_has_a_password() {
    let (server, provider) = begin(|_| {}).await;
    // Another admin, who has none.
    provider.person("s-2", "Wang", &["soloist-admins"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    let by =
        Signature { who: "cli:root".to_owned(), from: "terminal".to_owned(), kind: Kind::Person };
    let person = External { issuer: provider.url.clone(), subject: "s-1".to_owned() };
    let ada = UserName::new("ada").unwrap();
    external::link(server.store(), &by, &ada, Some(person)).await.unwrap();
    provider.person("s-1", "Ada", &["everybody"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    assert_eq!(account(&server, "ada").await.unwrap().role, Role::Admin);
    server.user("eve", Role::Admin).await;
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    assert_eq!(account(&server, "ada").await.unwrap().role, Role::Viewer, "eve can, from now on");
    // Who has no password may always go.
    provider.person("s-2", "Wang", &["everybody"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    assert_eq!(account(&server, "wang").await.unwrap().role, Role::Viewer);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_an_account_where_that_is_not_allowed() {
    let (server, _provider) = begin(|rules| rules.create_accounts = false).await;
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    refused(&browser, &server, answer, "There is no account for li yet").await;
    assert_eq!(server.store().users().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_with_a_password_comes_first() {
    let provider = Provider::start();
    let server = Server::with(with(|_| {}, &provider.url)).await;
    provider.person("s-1", "Li", &["soloist-admins"]);
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    refused(&browser, &server, answer, "No admin with a password exists yet").await;
    assert_eq!(server.store().users().await.unwrap(), []);
    server.user("ada", Role::Admin).await;
    assert_eq!(browser.sign_in(&server).await.status(), 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_a_program_is_nobodys() {
    let (server, provider) = begin(|_| {}).await;
    let bot = server.user("bot", Role::Collector).await;
    let by =
        Signature { who: "cli:root".to_owned(), from: "terminal".to_owned(), kind: Kind::Person };
    let person = External { issuer: provider.url.clone(), subject: "s-1".to_owned() };
    external::link(server.store(), &by, &bot, Some(person)).await.unwrap();
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    refused(&browser, &server, answer, "bot is a collector").await;
    assert_eq!(account(&server, "bot").await.unwrap().role, Role::Collector);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_finishes_what_one_began() {
    let (server, provider) = begin(|_| {}).await;
    let redis = OwnRedis { server: None, url: server.redis.url.clone() };
    let public = server.url("");
    let beside = Server::at(redis, |config| {
        config.node = NodeName::new("node-b").unwrap();
        config.public_url = public;
        with(|_| {}, &provider.url)(config);
    })
    .await;
    let begun = server.ask("GET", "/login/oidc?next=/nodes").send().await.unwrap();
    let cookie = begun.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Lax")
            && cookie.contains("Max-Age=600"),
        "{cookie}"
    );
    let answered = Browser::new().get(&location(&begun)).await;
    let path = location(&answered).strip_prefix(&server.url("")).unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    let entered = beside.ask("GET", &path).header("cookie", cookie).send().await.unwrap();
    assert_eq!((entered.status().as_u16(), location(&entered).as_str()), (303, "/nodes"));
    assert!(sets_a_session(&entered));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_elsewhere_by_single_sign_on() {
    let (server, _provider) = begin(|_| {}).await;
    for next in
        ["//evil.example", "https://evil.example", "/\\evil.example", "/%0d%0aX:1", "/logout", ""]
    {
        let browser = Browser::new();
        let back = browser.to_provider_and_back(&server, next).await;
        let entered = browser.get(&back).await;
        assert_eq!((entered.status().as_u16(), location(&entered).as_str()), (303, "/"), "{next}");
        let again = browser.get(&server.url(&format!("/login/oidc?next={next}"))).await;
        assert_eq!(location(&again), "/", "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_costs_nobody_the_password() {
    let provider = Provider::start();
    // It takes connections and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", silent.local_addr().unwrap());
    let (asked, mut was_asked) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut connection, _) = silent.accept().await.unwrap();
            connection.read_u8().await.ok();
            open.push(connection);
            asked.try_send(()).ok();
        }
    });
    let server = Server::with(with(|_| {}, &issuer)).await;
    let phc = secrets::hash_password(PASSWORD).unwrap();
    server.account("ada", Role::Admin, phc).await;
    let url = server.url("/login/oidc");
    let waiting = tokio::spawn(async move { Browser::new().get(&url).await });
    was_asked.recv().await.unwrap();
    let page = Browser::new().get(&server.url("/login")).await.text().await.unwrap();
    assert!(page.contains("Company login"), "{page}");
    let sent = server
        .ask("POST", "/login")
        .header("origin", server.url(""))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("name=ada&password={}", PASSWORD.replace(' ', "+")));
    assert_eq!(sent.send().await.unwrap().status(), 303);
    assert!(!waiting.is_finished(), "that sign-in waited for nobody");
    let answer = waiting.await.unwrap();
    assert_eq!(answer.status(), 503);
    let page = answer.text().await.unwrap();
    assert!(page.contains("cannot be reached") && page.contains("name=\"password\""), "{page}");
    let chinese =
        server.ask("GET", "/login/oidc").header("accept-language", "zh").send().await.unwrap();
    assert_eq!(chinese.status(), 503);
    assert!(chinese.text().await.unwrap().contains("连不上单点登录服务"));
    drop(provider);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_discovery_document_is_not_taken() {
    for fault in [Fault::Huge, Fault::Moved, Fault::OtherName] {
        let (server, provider) = begin(|_| {}).await;
        provider.state().fault = fault;
        let answer = Browser::new().get(&server.url("/login/oidc")).await;
        assert_eq!(answer.status(), 503, "{fault:?}");
        assert!(answer.headers().get("location").is_none());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_provider_says_is_shown_as_text_and_cut() {
    let (server, provider) = begin(|_| {}).await;
    provider.state().fault = Fault::Says(5_000);
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    assert_eq!(answer.status(), 403);
    let page = answer.text().await.unwrap();
    assert!(page.contains("access_denied") && page.contains("&#60;b&#62;never"), "{page}");
    assert!(
        !page.contains("<b>never")
            && !page.contains('\u{202e}')
            && !page.contains(&"x".repeat(200))
    );

    // Or in the address, and only for who asked.
    let back = Url::parse(&browser.to_provider_and_back(&server, "/").await).unwrap();
    let state = back.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
    let mut said = back.clone();
    said.query_pairs_mut().clear().append_pair("error", "<i>no").append_pair("state", &state);
    let stranger = Browser::new().get(said.as_str()).await.text().await.unwrap();
    assert!(!stranger.contains("no</i>") && stranger.contains(OLD), "{stranger}");
    let page = browser.get(said.as_str()).await.text().await.unwrap();
    assert!(page.contains("&#60;i&#62;no") && !page.contains("<i>no"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_change_its_key() {
    let (server, provider) = begin(|_| {}).await;
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    provider.rotate();
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_that_only_the_user_info_tells_count_as_well() {
    let (server, provider) = begin(|_| {}).await;
    provider.state().person = json!({ "sub": "s-1", "preferred_username": "Li" });
    provider.state().told = json!({ "groups": ["soloist-admins"], "preferred_username": "ada" });
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    let li = account(&server, "li").await.expect("what was signed counts more");
    assert_eq!(li.role, Role::Admin);
    // It speaks of somebody else.
    provider.state().person = json!({ "sub": "s-2", "preferred_username": "Wang" });
    provider.state().told = json!({ "groups": ["soloist-admins"], "sub": "s-1" });
    let browser = Browser::new();
    let answer = browser.sign_in(&server).await;
    refused(&browser, &server, answer, UNPROVED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_signs_out_ends_the_session_at_the_provider_too() {
    let (server, provider) = begin(|_| {}).await;
    let browser = Browser::new();
    assert_eq!(browser.sign_in(&server).await.status(), 303);
    let page = browser.get(&server.url("/nodes")).await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains(&format!("form-action 'self' {};", provider.url)), "{policy}");
    assert!(policy.contains("default-src 'none'; script-src 'self';"), "{policy}");
    let page = page.text().await.unwrap();
    let csrf = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let out = browser.0.post(server.url("/logout")).header("x-csrf-token", csrf).send();
    let out = out.await.unwrap();
    assert_eq!(out.status(), 303);
    let end = Url::parse(&location(&out)).unwrap();
    assert!(end.as_str().starts_with(&format!("{}/end?", provider.url)), "{end}");
    let said: Vec<(String, String)> = end.query_pairs().into_owned().collect();
    assert!(said.contains(&("client_id".to_owned(), CLIENT.to_owned())), "{said:?}");
    assert!(
        said.contains(&("post_logout_redirect_uri".to_owned(), server.url("/login"))),
        "{said:?}"
    );
    assert!(!said.iter().any(|(name, _)| name == "id_token_hint"), "{said:?}");
    assert!(!browser.is_signed_in(&server).await);

    // Whoever came by password has nothing to end there, in the same browser, too.
    let ada = UserName::new("ada").unwrap();
    let (cookie, csrf) = server.session(&ada).await;
    let marked = format!("{cookie}; soloist-sso={}", "0".repeat(64));
    let out = server.ask("POST", "/logout").header("cookie", marked).header("x-csrf-token", csrf);
    assert_eq!(location(&out.send().await.unwrap()), "/login");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_cannot_make_us_call_the_provider_for_ever() {
    let (server, provider) = begin(|_| {}).await;
    provider.state().fault = Fault::Nonce;
    let mut statuses = Vec::new();
    for _ in 0..60 {
        statuses.push(Browser::new().sign_in(&server).await.status().as_u16());
    }
    let free = statuses.iter().filter(|status| **status == 403).count();
    assert!((50..60).contains(&free), "{statuses:?}");
    assert_eq!(*statuses.last().unwrap(), 429, "{statuses:?}");
    assert_eq!(provider.state().exchanges, free);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_there_is_no_button_and_no_way() {
    let server = Server::start().await;
    let page = server.ask("GET", "/login").send().await.unwrap().text().await.unwrap();
    assert!(!page.contains("/login/oidc"), "{page}");
    for path in ["/login/oidc", "/login/oidc/callback?code=a&state=b"] {
        assert_eq!(server.ask("GET", path).send().await.unwrap().status(), 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_the_cookies_are_bound_to_this_host() {
    let provider = Provider::start();
    let server = Server::with(|config| {
        config.public_url = "https://soloist.example".to_owned();
        with(|_| {}, &provider.url)(config);
    })
    .await;
    let begun = server.ask("GET", "/login/oidc").send().await.unwrap();
    let cookie = begun.headers()["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-soloist-oidc=") && cookie.contains("; Secure"), "{cookie}");
    let sent_to = Url::parse(&location(&begun)).unwrap();
    let back =
        sent_to.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
    assert_eq!(back, "https://soloist.example/login/oidc/callback");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_goes_in_and_out_through_the_provider() {
    let (server, provider) = begin(|_| {}).await;
    let driver = Driver::start();
    let window = driver.window("li").await;
    window.client.goto(&server.url("/login")).await.unwrap();
    window.element("a[href^='/login/oidc']").await.click().await.unwrap();
    window.element("[data-job='outbound']").await;
    // Chromium holds `form-action` against every address that a form ends at.
    let script = "document.querySelector(\"form[action='/logout']\").requestSubmit()";
    window.client.execute(script, vec![]).await.unwrap();
    until_async("the browser is at the provider", async || {
        let url = window.client.current_url().await.ok()?;
        url.as_str().starts_with(&format!("{}/end?", provider.url)).then_some(())
    })
    .await;
    window.client.goto(&server.url("/")).await.unwrap();
    window.element("input[name=password]").await;
    window.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_loses_every_group_keeps_no_session_no_token_no_role_and_no_group() {
    let (server, provider) = begin(|_| {}).await;
    provider.person("s-1", "Li", &["shift", "staff"]);
    let before = Browser::new();
    assert_eq!(before.sign_in(&server).await.status(), 303);
    let li = UserName::new("li").unwrap();
    let token = async |name: &str| {
        let (secret, hash, id) = secrets::new_api_token();
        let token = ApiToken { id, ..ApiToken::new(li.clone(), name.to_owned()) };
        server.store().add_token(&hash, &token, None).await.unwrap();
        secret
    };
    let switch = async |secret: &str| {
        let path = "/api/v1/jobs/outbound/participation";
        let request = server.ask("PUT", path).bearer_auth(secret).body(r#"{"on":true}"#);
        request.send().await.unwrap().status().as_u16()
    };
    let old = token("made as an operator").await;
    assert_eq!(switch(&old).await, 200);
    // Demoted: the token can do no more than the account.
    provider.person("s-1", "Li", &["everybody"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    assert_eq!(switch(&old).await, 403);
    assert_eq!(server.get("/api/v1/jobs", &old).await.status(), 200);
    assert!(!before.is_signed_in(&server).await);
    provider.person("s-1", "Li", &["shift", "staff"]);
    let again = Browser::new();
    assert_eq!(again.sign_in(&server).await.status(), 303);
    let second = token("made again").await;
    assert_eq!([switch(&old).await, switch(&second).await], [200, 200]);

    provider.person("s-1", "Li", &["other"]);
    let last = Browser::new();
    let answer = last.sign_in(&server).await;
    refused(&last, &server, answer, "li is in no group that may use Soloist").await;
    assert_eq!([switch(&old).await, switch(&second).await], [401, 401], "tokens end, too");
    assert!(!again.is_signed_in(&server).await);
    let left = account(&server, "li").await.unwrap();
    assert_eq!((left.role, left.groups.len()), (Role::Viewer, 0), "{left:?}");
    let acts = acts(&server).await;
    let revoked = acts.iter().filter(|act| *act == "oidc:li token.revoke").count();
    assert_eq!(revoked, 2, "{acts:?}");

    // A group gives back the role, and no token.
    provider.person("s-1", "Li", &["shift"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
    assert_eq!(account(&server, "li").await.unwrap().role, Role::Operator);
    assert_eq!(switch(&old).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_signed_in_from_an_address_is_not_kept_out_by_strangers_there() {
    let (server, provider) = begin(|_| {}).await;
    let li = Browser::new();
    assert_eq!(li.sign_in(&server).await.status(), 303);
    server.store().close_sessions(&UserName::new("li").unwrap(), None).await.unwrap();
    provider.state().fault = Fault::Nonce;
    let mut last = 0;
    for _ in 0..60 {
        last = Browser::new().sign_in(&server).await.status().as_u16();
    }
    assert_eq!(last, 429, "strangers wait");
    provider.state().fault = Fault::None;
    assert_eq!(Browser::new().sign_in(&server).await.status(), 429, "also one who would be let in");
    assert_eq!(li.sign_in(&server).await.status(), 303, "but not who is known here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_by_which_nobody_can_be_known_again_gets_no_account() {
    let (server, provider) = begin(|_| {}).await;
    for subject in ["x".repeat(256), "a\u{7}b".to_owned()] {
        provider.person(&subject, "Li", &["shift"]);
        let browser = Browser::new();
        let answer = browser.sign_in(&server).await;
        refused(&browser, &server, answer, UNPROVED).await;
    }
    assert_eq!(server.store().users().await.unwrap().len(), 1, "no account was made");
    provider.person(&"x".repeat(255), "Li", &["shift"]);
    assert_eq!(Browser::new().sign_in(&server).await.status(), 303);
}
