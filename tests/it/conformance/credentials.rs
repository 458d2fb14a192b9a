//! Laws of sessions, API tokens, one-time links and the login throttle.

use std::time::Duration;

use soloist::domain::name::{CollectorName, SourceName};
use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::credentials::{ApiToken, Count, Credentials, Link, Session};

use super::*;

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3_600);

fn session(name: &str) -> Session {
    Session { user: user(name), csrf: unique("csrf"), created: StoreTime(0), expires: StoreTime(0) }
}

fn api_token(name: &str) -> ApiToken {
    ApiToken {
        id: unique("id"),
        user: user(name),
        name: "nightly \"build\"".to_owned(),
        created: StoreTime(0),
        expires: None,
        collector: None,
        sources: Vec::new(),
        rotations: Vec::new(),
        leases: Vec::new(),
        jobs: Vec::new(),
    }
}

pub(super) async fn a_session_ends_at_its_absolute_end(fresh: Fresh) {
    let store = fresh.connect().await;
    let given = session("li");
    store.open_session("long", &given, HOUR).await.expect("opened");
    let kept = store.session("long", HOUR).await.expect("answered").expect("a session");
    assert_eq!((&kept.user, &kept.csrf), (&given.user, &given.csrf));
    assert_eq!(kept.expires.since(kept.created), HOUR, "both set by the store");
    assert!(kept.created.0 > 1_600_000_000_000);
    store.open_session("short", &session("li"), SHORT).await.expect("opened");
    eventually("the session ends although it is used", async || {
        store.session("short", HOUR).await.expect("answered").is_none().then_some(())
    })
    .await;
    assert_eq!(store.session("never", HOUR).await.expect("answered"), None);
    assert!(store.session("long", HOUR).await.expect("answered").is_some());
}

pub(super) async fn an_idle_session_ends_and_a_used_one_does_not(fresh: Fresh) {
    let store = fresh.connect().await;
    let idle = Duration::from_secs(2);
    for hash in ["used", "idle"] {
        store.open_session(hash, &session("li"), HOUR).await.expect("opened");
        assert!(store.session(hash, idle).await.expect("answered").is_some());
    }
    for _ in 0..6 {
        pass(&store, Duration::from_millis(400)).await;
        assert!(store.session("used", idle).await.expect("answered").is_some());
    }
    assert_eq!(store.session("idle", idle).await.expect("answered"), None);
    assert_eq!(store.session("idle", idle).await.expect("answered"), None, "and stays gone");
}

pub(super) async fn sessions_are_closed_one_by_one_or_all_of_a_user(fresh: Fresh) {
    let store = fresh.connect().await;
    for hash in ["a", "b", "c"] {
        store.open_session(hash, &session("li"), HOUR).await.expect("opened");
    }
    store.open_session("w", &session("wang"), HOUR).await.expect("opened");
    let open = async |hash: &str| store.session(hash, HOUR).await.expect("answered").is_some();
    store.close_sessions(&user("li"), Some("b")).await.expect("closed");
    assert!(open("a").await && !open("b").await && open("c").await && open("w").await);
    store.close_sessions(&user("li"), Some("never")).await.expect("harmless");
    store.close_sessions(&user("li"), None).await.expect("closed");
    assert!(!open("a").await && !open("c").await && open("w").await);
}

pub(super) async fn a_token_is_read_listed_and_revoked(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(store.tokens().await.expect("tokens"), []);
    let (first, mut second) = (api_token("li"), api_token("wang"));
    second.collector = Some(CollectorName::new("shop-1").expect("a label"));
    second.sources = ["mail", "shop"].map(|name| SourceName::new(name).expect("a name")).to_vec();
    store.add_token("hash-1", &first, None).await.expect("added");
    pass(&store, Duration::from_millis(2)).await;
    store.add_token("hash-2", &second, Some(HOUR)).await.expect("added");
    let kept = store.token("hash-1").await.expect("answered").expect("a token");
    assert_eq!(ApiToken { created: StoreTime(0), ..kept.clone() }, first);
    let other = store.token("hash-2").await.expect("answered").expect("a token");
    assert_eq!((&other.collector, &other.sources), (&second.collector, &second.sources));
    assert_eq!(other.expires.map(|end| end.since(other.created)), Some(HOUR));
    assert_eq!(store.token("hash-3").await.expect("answered"), None);
    assert_eq!(store.tokens().await.expect("tokens"), [kept, other.clone()], "oldest first");

    store.revoke_token(&first.id).await.expect("revoked");
    assert_eq!(store.token("hash-1").await.expect("answered"), None);
    assert_eq!(store.tokens().await.expect("tokens"), [other]);
    let again = store.revoke_token(&first.id).await;
    assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
}

pub(super) async fn an_expired_token_is_gone(fresh: Fresh) {
    let store = fresh.connect().await;
    let token = api_token("li");
    store.add_token("hash", &token, Some(SHORT)).await.expect("added");
    eventually("the token expires", async || {
        store.token("hash").await.expect("answered").is_none().then_some(())
    })
    .await;
    assert_eq!(store.tokens().await.expect("tokens"), []);
}

pub(super) async fn a_link_is_taken_once(fresh: Fresh) {
    let store = fresh.connect().await;
    let other = fresh.connect().await;
    let links = [Link { user: None }, Link { user: Some(user("li")) }];
    for (i, link) in links.iter().enumerate() {
        let hash = format!("link-{i}");
        store.add_link(&hash, link, HOUR).await.expect("added");
        let look = store.link(&hash, false).await.expect("answered");
        assert_eq!(look.as_ref(), Some(link), "looking does not use it up");
        let takers: Vec<_> = [&store, &other, &store, &other]
            .map(|store| {
                let (store, hash) = (store.clone(), hash.clone());
                tokio::spawn(async move { store.link(&hash, true).await.expect("answered") })
            })
            .into();
        let mut taken = Vec::new();
        for taker in takers {
            taken.extend(taker.await.expect("no panic"));
        }
        assert_eq!(taken.iter().collect::<Vec<_>>(), [link]);
        assert_eq!(store.link(&hash, false).await.expect("answered"), None);
    }
}

pub(super) async fn an_expired_link_is_gone(fresh: Fresh) {
    let store = fresh.connect().await;
    store.add_link("link", &Link { user: None }, SHORT).await.expect("added");
    eventually("the link expires", async || {
        store.link("link", false).await.expect("answered").is_none().then_some(())
    })
    .await;
    assert_eq!(store.link("link", true).await.expect("answered"), None);
    assert_eq!(store.link("never", true).await.expect("answered"), None);
}

pub(super) async fn failures_are_counted_within_the_window(fresh: Fresh) {
    let store = fresh.connect().await;
    let count = async |key: &str, step: Count, window: Duration| {
        store.failures(key, step, window).await.expect("counted")
    };
    let key = "login:li 'x' {y}\n";
    assert_eq!(count(key, Count::Look, HOUR).await, 0);
    for n in 1..=5 {
        assert_eq!(count(key, Count::Add, HOUR).await, n, "each counts, also within one instant");
    }
    assert_eq!(count(key, Count::Look, HOUR).await, 5);
    assert_eq!(count("other", Count::Add, HOUR).await, 1);
    assert_eq!(count(key, Count::Clear, HOUR).await, 0);
    assert_eq!(count(key, Count::Look, HOUR).await, 0);
    assert_eq!(count("other", Count::Look, HOUR).await, 1);

    let window = Duration::from_secs(1);
    assert_eq!(count("slides", Count::Add, window).await, 1);
    eventually("it leaves the window", async || {
        (count("slides", Count::Look, window).await == 0).then_some(())
    })
    .await;
    assert_eq!(count("slides", Count::Add, window).await, 1);
}
