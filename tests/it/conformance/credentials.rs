//! Laws of sessions, API tokens, one-time links and the login throttle.

use std::time::Duration;

use soloist::domain::name::{CollectorName, SourceName};
use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::accounts::{Accounts as _, Changes, Role, User};
use soloist::store::credentials::{ApiToken, Count, Credentials, Link, MOST_SESSIONS, Session};

use super::*;

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3_600);

fn session(name: &str) -> Session {
    Session::new(user(name), unique("csrf"), "127.0.0.1".to_owned(), Some("curl".to_owned()))
}

fn api_token(name: &str) -> ApiToken {
    let token = ApiToken::new(user(name), "nightly \"build\"".to_owned());
    ApiToken { id: unique("id"), ..token }
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
    eventually(&store, "the session ends although it is used", async || {
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

pub(super) async fn a_look_at_a_session_does_not_keep_it(fresh: Fresh) {
    let store = fresh.connect().await;
    let idle = Duration::from_millis(800);
    store.open_session("tab", &session("li"), HOUR).await.expect("opened");
    assert!(store.peek_session("tab", idle).await.expect("answered").is_some());
    eventually(&store, "it is idle although it is looked at", async || {
        store.peek_session("tab", idle).await.expect("answered").is_none().then_some(())
    })
    .await;
    assert_eq!(store.sessions(Some(&user("li")), idle).await.expect("answered"), []);
    assert_eq!(store.session("tab", idle).await.expect("answered"), None);
}

pub(super) async fn sessions_are_listed_and_the_oldest_of_too_many_ends(fresh: Fresh) {
    let store = fresh.connect().await;
    store.open_session("wang", &session("wang"), HOUR).await.expect("opened");
    for nth in 0..=MOST_SESSIONS {
        store.open_session(&format!("li-{nth:03}"), &session("li"), HOUR).await.expect("opened");
        pass(&store, Duration::from_millis(2)).await;
    }
    let open = store.sessions(Some(&user("li")), HOUR).await.expect("answered");
    assert_eq!(open.len(), MOST_SESSIONS);
    let last = format!("li-{MOST_SESSIONS:03}");
    assert_eq!((open[0].hash.as_str(), open[0].session.from.as_str()), (&*last, "127.0.0.1"));
    assert_eq!(store.peek_session("li-000", HOUR).await.expect("answered"), None, "the oldest");
    assert!(store.peek_session("li-001", HOUR).await.expect("answered").is_some());
    let all = store.sessions(None, HOUR).await.expect("answered");
    assert_eq!(all.len(), MOST_SESSIONS + 1, "of another one none ended");
}

pub(super) async fn the_use_of_a_token_is_noted_once_in_a_while(fresh: Fresh) {
    let store = fresh.connect().await;
    store.add_token("hash", &api_token("li"), None).await.expect("added");
    let last = async || store.token("hash").await.expect("answered").expect("a token").last_used;
    assert_eq!(last().await, None);
    store.use_token("hash", HOUR).await.expect("noted");
    let first = last().await.expect("noted");
    pass(&store, Duration::from_millis(2)).await;
    store.use_token("hash", HOUR).await.expect("noted");
    assert_eq!(last().await, Some(first), "not a write for every use");
    store.use_token("hash", Duration::from_millis(1)).await.expect("noted");
    assert!(last().await > Some(first));
    store.use_token("never", HOUR).await.expect("harmless");
}

pub(super) async fn a_link_is_for_the_account_that_had_the_name_then(fresh: Fresh) {
    let store = fresh.connect().await;
    let ada = User::new(user("ada"), Role::Admin, "unusable".to_owned());
    let link = |sets_password| Link { user: Some(user("ada")), sets_password };
    let none = store.add_link("early", &link(false), HOUR).await;
    assert!(matches!(none, Err(StoreError::NotFound(_))), "{none:?}");
    let bob = User::new(user("bob"), Role::Admin, "unusable".to_owned());
    for account in [&ada, &bob] {
        store.add_user(account, false).await.expect("added");
    }
    for hash in ["sign-in", "password"] {
        store.add_link(hash, &link(hash == "password"), HOUR).await.expect("added");
        assert!(store.link(hash, false).await.expect("answered").is_some());
    }
    store.remove_user(&user("ada")).await.expect("removed");
    pass(&store, Duration::from_millis(2)).await;
    store.add_user(&ada, false).await.expect("added again");
    for hash in ["sign-in", "password"] {
        assert_eq!(store.link(hash, false).await.expect("answered"), None, "{hash}");
        assert_eq!(store.link(hash, true).await.expect("answered"), None, "{hash}");
    }
}

pub(super) async fn of_links_that_set_a_password_the_newest_is_good_and_ends_with_another_password(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    for name in ["li", "wang"] {
        let account = User::new(user(name), Role::Operator, "unusable".to_owned());
        store.add_user(&account, false).await.expect("added");
    }
    let link = |name: &str| Link { user: Some(user(name)), sets_password: true };
    let good = async |hash: &str| store.link(hash, false).await.expect("answered").is_some();
    for (hash, name) in [("w", "wang"), ("first", "li"), ("second", "li")] {
        store.add_link(hash, &link(name), HOUR).await.expect("added");
    }
    assert!(!good("first").await && good("second").await && good("w").await);
    let changes = Changes { password: Some("another".to_owned()), ..Changes::default() };
    store.change_user(&user("li"), &changes).await.expect("changed");
    assert!(!good("second").await && good("w").await);
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
    eventually(&store, "the token expires", async || {
        store.token("hash").await.expect("answered").is_none().then_some(())
    })
    .await;
    assert_eq!(store.tokens().await.expect("tokens"), []);
}

pub(super) async fn a_link_is_taken_once(fresh: Fresh) {
    let store = fresh.connect().await;
    let other = fresh.connect().await;
    let li = User::new(user("li"), Role::Admin, "unusable".to_owned());
    store.add_user(&li, false).await.expect("added");
    let links = [None, Some(user("li"))].map(|user| Link { user, sets_password: false });
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
    store.add_link("link", &Link { user: None, sets_password: false }, SHORT).await.expect("added");
    eventually(&store, "the link expires", async || {
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
    eventually(&store, "it leaves the window", async || {
        (count("slides", Count::Look, window).await == 0).then_some(())
    })
    .await;
    assert_eq!(count("slides", Count::Add, window).await, 1);
}
