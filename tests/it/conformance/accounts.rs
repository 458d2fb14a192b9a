//! Laws of accounts.

use std::time::Duration;

use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::accounts::{Accounts, Changes, External, Role, User};
use soloist::store::credentials::{ApiToken, Credentials, Link, Session};
use soloist::store::journal::{AuditEntry, Journal};

use super::*;

fn account(name: &str, role: Role) -> User {
    let password = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA";
    User::new(user(name), role, password.to_owned())
}

fn at_provider(subject: &str) -> External {
    External { issuer: "https://login.example.org".to_owned(), subject: subject.to_owned() }
}

fn session(name: &str) -> Session {
    Session::new(user(name), "secret".to_owned(), String::new(), None)
}

pub(super) async fn an_account_is_kept_as_given(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(store.users().await.expect("users"), []);
    assert_eq!(store.user(&user("li")).await.expect("answered"), None);
    for (name, role) in [("wang", Role::Admin), ("li", Role::Operator), ("bot", Role::Collector)] {
        store.add_user(&account(name, role), false).await.expect("added");
    }
    let li = store.user(&user("li")).await.expect("answered").expect("an account");
    assert!(li.created.0 > 1_600_000_000_000, "set by the store: {:?}", li.created);
    assert_eq!(User { created: StoreTime(0), ..li.clone() }, account("li", Role::Operator));
    let users = store.users().await.expect("users");
    let names: Vec<_> = users.iter().map(|user| user.name.as_str()).collect();
    assert_eq!(names, ["bot", "li", "wang"]);
    assert_eq!(users[1], li);
}

pub(super) async fn a_name_is_taken_once(fresh: Fresh) {
    let store = fresh.connect().await;
    store.add_user(&account("li", Role::Viewer), false).await.expect("added");
    for only_if_no_admin in [false, true] {
        let again = store.add_user(&account("li", Role::Admin), only_if_no_admin).await;
        assert!(matches!(again, Err(StoreError::Exists(_))), "{again:?}");
    }
    let li = store.user(&user("li")).await.expect("answered").expect("an account");
    assert_eq!(li.role, Role::Viewer, "not replaced");
}

pub(super) async fn of_many_first_accounts_one_is_made(fresh: Fresh) {
    let store = fresh.connect().await;
    let other = fresh.connect().await;
    let tasks: Vec<_> = (0..12)
        .map(|i| {
            let store = if i % 2 == 0 { store.clone() } else { other.clone() };
            let first = account(&format!("admin-{i}"), Role::Admin);
            tokio::spawn(async move { store.add_user(&first, true).await })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(()) => made += 1,
            Err(StoreError::Exists(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((made, store.users().await.expect("users").len()), (1, 1));
    store.add_user(&account("li", Role::Viewer), false).await.expect("the second is not the first");
}

pub(super) async fn the_first_admin_may_come_after_other_accounts(fresh: Fresh) {
    let store = fresh.connect().await;
    for (name, role) in [("shop", Role::Collector), ("li", Role::Operator), ("wang", Role::Viewer)]
    {
        store.add_user(&account(name, role), false).await.expect("added");
    }
    store.add_user(&account("ada", Role::Admin), true).await.expect("the first admin");
    let second = store.add_user(&account("bob", Role::Admin), true).await;
    assert!(matches!(second, Err(StoreError::Exists(_))), "{second:?}");
    assert_eq!(store.users().await.expect("users").len(), 4);
}

pub(super) async fn an_account_is_updated_and_keeps_its_birthday(fresh: Fresh) {
    let store = fresh.connect().await;
    store.add_user(&account("li", Role::Viewer), false).await.expect("added");
    let before = store.user(&user("li")).await.expect("answered").expect("an account");
    let all = Changes {
        role: Some(Role::Admin),
        password: Some("other".to_owned()),
        language: Some("zh".to_owned()),
        theme: Some(Some("dark".to_owned())),
        time_zone: Some(Some("Asia/Shanghai".to_owned())),
        display_name: Some(Some("李伟".to_owned())),
        external: Some(Some(at_provider("s-1"))),
        groups: Some(vec!["staff".to_owned()]),
        keep: None,
        end_tokens: true,
    };
    let after = store.change_user(&user("li"), &all).await.expect("changed");
    let newer = User {
        role: Role::Admin,
        password: "other".to_owned(),
        language: Some("zh".to_owned()),
        theme: Some("dark".to_owned()),
        time_zone: Some("Asia/Shanghai".to_owned()),
        display_name: Some("李伟".to_owned()),
        external: Some(at_provider("s-1")),
        groups: vec!["staff".to_owned()],
        ..before
    };
    assert_eq!(after, newer);
    assert_eq!(store.user(&user("li")).await.expect("answered"), Some(after));
    let plain = Changes { theme: Some(None), time_zone: Some(None), ..Changes::default() };
    let plain = store.change_user(&user("li"), &plain).await.expect("changed");
    assert_eq!(plain, User { theme: None, time_zone: None, ..newer });
    assert_eq!(store.user(&user("li")).await.expect("answered"), Some(plain));
}

pub(super) async fn of_two_who_change_different_things_none_undoes_what_the_other_did(
    fresh: Fresh,
) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    store.add_user(&account("wang", Role::Admin), false).await.expect("added");
    store.add_user(&account("li", Role::Admin), false).await.expect("added");
    let preferences = tokio::spawn(async move {
        for theme in ["dark", "light"].into_iter().cycle().take(60) {
            let theme = Some(Some(theme.to_owned()));
            let changes = Changes { theme, ..Changes::default() };
            other.change_user(&user("li"), &changes).await.expect("changed");
        }
    });
    let demoted = Changes {
        role: Some(Role::Viewer),
        password: Some("another".to_owned()),
        ..Changes::default()
    };
    store.change_user(&user("li"), &demoted).await.expect("changed");
    preferences.await.expect("no panic");
    let li = store.user(&user("li")).await.expect("answered").expect("an account");
    assert_eq!((li.role, li.password.as_str()), (Role::Viewer, "another"));
    assert_eq!(li.theme.as_deref(), Some("light"));
}

pub(super) async fn another_role_or_password_ends_all_sessions_of_that_account(fresh: Fresh) {
    let store = fresh.connect().await;
    let idle = Duration::from_secs(600);
    for name in ["li", "wang"] {
        store.add_user(&account(name, Role::Operator), false).await.expect("added");
    }
    let role = Changes { role: Some(Role::Viewer), ..Changes::default() };
    let password = Changes { password: Some("another".to_owned()), ..Changes::default() };
    let theme = Changes { theme: Some(None), ..Changes::default() };
    for (changes, ends) in [(theme, false), (role, true), (password, true)] {
        for name in ["li", "wang"] {
            store.open_session(name, &session(name), LONG).await.expect("opened");
        }
        store.change_user(&user("li"), &changes).await.expect("changed");
        let stays = |found: Result<Option<Session>, _>| found.expect("answered").is_some();
        assert_eq!(stays(store.session("li", idle).await), !ends, "{changes:?}");
        assert!(stays(store.session("wang", idle).await));
    }
}

pub(super) async fn whoever_changes_their_own_password_stays_and_a_reset_ends_tokens(fresh: Fresh) {
    let store = fresh.connect().await;
    let idle = Duration::from_secs(600);
    store.add_user(&account("li", Role::Operator), false).await.expect("added");
    for hash in ["here", "there"] {
        store.open_session(hash, &session("li"), LONG).await.expect("opened");
    }
    let token = ApiToken { id: "id".to_owned(), ..ApiToken::new(user("li"), "ci".to_owned()) };
    store.add_token("token", &token, None).await.expect("added");
    let own = Changes {
        password: Some("own".to_owned()),
        keep: Some("here".to_owned()),
        ..Changes::default()
    };
    store.change_user(&user("li"), &own).await.expect("changed");
    assert!(store.session("here", idle).await.expect("answered").is_some());
    assert_eq!(store.session("there", idle).await.expect("answered"), None);
    assert!(store.token("token").await.expect("answered").is_some());
    let reset =
        Changes { password: Some("reset".to_owned()), end_tokens: true, ..Changes::default() };
    store.change_user(&user("li"), &reset).await.expect("changed");
    assert_eq!(store.session("here", idle).await.expect("answered"), None);
    assert_eq!(store.token("token").await.expect("answered"), None);
}

pub(super) async fn the_last_admin_stays_also_when_two_admins_go_at_once(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let demoted = Changes { role: Some(Role::Viewer), ..Changes::default() };
    for round in 0..10 {
        let names = [format!("a-{round}"), format!("b-{round}")].map(|name| user(&name));
        for name in &names {
            store.add_user(&account(name.as_str(), Role::Admin), false).await.expect("added");
        }
        if round > 0 {
            // The one who stayed in the round before.
            let admins = store.users().await.expect("users");
            let old =
                admins.iter().find(|one| one.role == Role::Admin && !names.contains(&one.name));
            store.remove_user(&old.expect("one stayed").name).await.expect("two are left");
        }
        let (one, two) =
            tokio::join!(store.change_user(&names[0], &demoted), other.remove_user(&names[1]),);
        let refused = |why: &StoreError| matches!(why, StoreError::LastAdmin(_));
        let failed = [one.err(), two.err()];
        assert_eq!(failed.iter().flatten().filter(|why| refused(why)).count(), 1, "{failed:?}");
        let admins = store.users().await.expect("users");
        assert_eq!(admins.iter().filter(|one| one.role == Role::Admin).count(), 1);
    }
}

pub(super) async fn an_act_and_its_entry_in_the_audit_are_one_step(fresh: Fresh) {
    let store = fresh.connect().await;
    let entry = |act: &str| AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "wang".to_owned(),
        from: "127.0.0.1".to_owned(),
        act: act.to_owned(),
        target: "li".to_owned(),
        reason: None,
        kind: soloist::store::journal::Kind::Person,
        count: 1,
        until: None,
    };
    let noting = |act: &str| store.noting(entry(act));
    noting("user.add").add_user(&account("li", Role::Admin), false).await.expect("added");
    // What is refused leaves no entry.
    let taken = noting("refused").add_user(&account("li", Role::Viewer), false).await;
    assert!(matches!(taken, Err(StoreError::Exists(_))), "{taken:?}");
    let last = noting("refused").remove_user(&user("li")).await;
    assert!(matches!(last, Err(StoreError::LastAdmin(_))), "{last:?}");
    let password = Changes { password: Some("another".to_owned()), ..Changes::default() };
    noting("user.passwd").change_user(&user("li"), &password).await.expect("changed");
    let acts = store.audits(None, None, 10).await.expect("audits");
    let acts: Vec<_> = acts.iter().map(|one| (one.id, one.act.as_str())).collect();
    assert_eq!(acts, [(2, "user.passwd"), (1, "user.add")]);
}

pub(super) async fn a_removed_account_takes_its_sessions_and_tokens_along(fresh: Fresh) {
    let store = fresh.connect().await;
    for name in ["li", "wang"] {
        store.add_user(&account(name, Role::Operator), false).await.expect("added");
        let hash = format!("session-{name}");
        store.open_session(&hash, &session(name), LONG).await.expect("opened");
        let token =
            ApiToken { id: format!("id-{name}"), ..ApiToken::new(user(name), "ci".to_owned()) };
        store.add_token(&format!("token-{name}"), &token, None).await.expect("added");
        let link = Link { user: Some(user(name)), sets_password: false };
        store.add_link(&format!("link-{name}"), &link, LONG).await.expect("added");
    }
    store.remove_user(&user("li")).await.expect("removed");
    assert_eq!(store.user(&user("li")).await.expect("answered"), None);
    let idle = Duration::from_secs(600);
    assert_eq!(store.session("session-li", idle).await.expect("answered"), None);
    assert_eq!(store.token("token-li").await.expect("answered"), None);
    // Else it would sign in whoever is given that name next.
    assert_eq!(store.link("link-li", false).await.expect("answered"), None);
    assert!(store.link("link-wang", false).await.expect("answered").is_some());
    assert!(store.session("session-wang", idle).await.expect("answered").is_some());
    assert!(store.token("token-wang").await.expect("answered").is_some());
    assert_eq!(store.tokens().await.expect("tokens").len(), 1);
    let again = store.remove_user(&user("li")).await;
    assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
}

pub(super) async fn an_unknown_account_is_not_found(fresh: Fresh) {
    let store = fresh.connect().await;
    let changes = Changes { role: Some(Role::Admin), ..Changes::default() };
    let update = store.change_user(&user("li"), &changes).await;
    assert!(matches!(update, Err(StoreError::NotFound(_))), "{update:?}");
    assert_eq!(store.users().await.expect("users"), [], "and is not made by it");
    let remove = store.remove_user(&user("li")).await;
    assert!(matches!(remove, Err(StoreError::NotFound(_))), "{remove:?}");
}

pub(super) async fn the_last_admin_with_a_password_stays(fresh: Fresh) {
    let store = fresh.connect().await;
    let by_provider = User {
        password: String::new(),
        external: Some(at_provider("s-1")),
        ..account("wang", Role::Admin)
    };
    store.add_user(&account("ada", Role::Admin), false).await.expect("added");
    store.add_user(&by_provider, false).await.expect("added");
    let viewer = Changes { role: Some(Role::Viewer), ..Changes::default() };
    let last = store.change_user(&user("ada"), &viewer).await;
    assert!(matches!(last, Err(StoreError::LastAdmin(_))), "{last:?}");
    let last = store.remove_user(&user("ada")).await;
    assert!(matches!(last, Err(StoreError::LastAdmin(_))), "{last:?}");
    store.change_user(&user("wang"), &viewer).await.expect("there is ada");
    store.add_user(&account("eve", Role::Admin), false).await.expect("added");
    store.remove_user(&user("ada")).await.expect("there is eve");
}
