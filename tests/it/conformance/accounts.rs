//! Laws of accounts.

use std::time::Duration;

use soloist::domain::time::StoreTime;
use soloist::store::StoreError;
use soloist::store::accounts::{Accounts, Role, User};
use soloist::store::credentials::{ApiToken, Credentials, Session};

use super::*;

fn account(name: &str, role: Role) -> User {
    User {
        name: user(name),
        role,
        password: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA".to_owned(),
        created: StoreTime(0),
        language: None,
        theme: None,
    }
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
    for only_if_first in [false, true] {
        let again = store.add_user(&account("li", Role::Admin), only_if_first).await;
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

pub(super) async fn an_account_is_updated_and_keeps_its_birthday(fresh: Fresh) {
    let store = fresh.connect().await;
    store.add_user(&account("li", Role::Viewer), false).await.expect("added");
    let before = store.user(&user("li")).await.expect("answered").expect("an account");
    let newer = User {
        role: Role::Admin,
        password: "other".to_owned(),
        created: StoreTime(5),
        language: Some("zh".to_owned()),
        theme: Some("dark".to_owned()),
        ..before.clone()
    };
    store.update_user(&newer).await.expect("updated");
    let after = store.user(&user("li")).await.expect("answered").expect("an account");
    assert_eq!(after, User { created: before.created, ..newer });
    let plain = User { language: None, theme: None, ..after };
    store.update_user(&plain).await.expect("updated");
    assert_eq!(store.user(&user("li")).await.expect("answered"), Some(plain));
}

pub(super) async fn a_removed_account_takes_its_sessions_and_tokens_along(fresh: Fresh) {
    let store = fresh.connect().await;
    for name in ["li", "wang"] {
        store.add_user(&account(name, Role::Operator), false).await.expect("added");
        let session = Session {
            user: user(name),
            csrf: "secret".to_owned(),
            created: StoreTime(0),
            expires: StoreTime(0),
        };
        let hash = format!("session-{name}");
        store.open_session(&hash, &session, LONG).await.expect("opened");
        let token = ApiToken {
            id: format!("id-{name}"),
            user: user(name),
            name: "ci".to_owned(),
            created: StoreTime(0),
            expires: None,
            collector: None,
            sources: Vec::new(),
        };
        store.add_token(&format!("token-{name}"), &token, None).await.expect("added");
    }
    store.remove_user(&user("li")).await.expect("removed");
    assert_eq!(store.user(&user("li")).await.expect("answered"), None);
    let idle = Duration::from_secs(600);
    assert_eq!(store.session("session-li", idle).await.expect("answered"), None);
    assert_eq!(store.token("token-li").await.expect("answered"), None);
    assert!(store.session("session-wang", idle).await.expect("answered").is_some());
    assert!(store.token("token-wang").await.expect("answered").is_some());
    assert_eq!(store.tokens().await.expect("tokens").len(), 1);
    let again = store.remove_user(&user("li")).await;
    assert!(matches!(again, Err(StoreError::NotFound(_))), "{again:?}");
}

pub(super) async fn an_unknown_account_is_not_found(fresh: Fresh) {
    let store = fresh.connect().await;
    let update = store.update_user(&account("li", Role::Admin)).await;
    assert!(matches!(update, Err(StoreError::NotFound(_))), "{update:?}");
    assert_eq!(store.users().await.expect("users"), [], "and is not made by it");
    let remove = store.remove_user(&user("li")).await;
    assert!(matches!(remove, Err(StoreError::NotFound(_))), "{remove:?}");
}
