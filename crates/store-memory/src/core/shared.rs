//! What several processes do to the same rows at once, and what becomes of answers that are lost.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::MemoryRecords;
use soloist_domain::name::{NodeName, UserName};
use soloist_domain::time::StoreTime;
use soloist_store::accounts::{Accounts as _, Changes, Role, User};
use soloist_store::credentials::{Count, Credentials as _, Link, Session};
use soloist_store::journal::{AuditEntry, AuditFilter, Kind};
use soloist_store::nodes::{Beat, Heard, Nodes as _};
use soloist_store::records::{OfAnyKind as _, Plan, Records as _, Tell, Write};
use soloist_store::{StoreError, core};

const HOUR: Duration = Duration::from_secs(3_600);

fn name(text: &str) -> UserName {
    UserName::new(text).unwrap()
}

fn account(text: &str, role: Role) -> User {
    User::new(name(text), role, "first".to_owned())
}

fn session(user: &str) -> Session {
    Session::new(name(user), "secret".to_owned(), String::new(), None)
}

fn act(word: &str) -> AuditEntry {
    AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "wang".to_owned(),
        from: "terminal".to_owned(),
        act: word.to_owned(),
        target: "li".to_owned(),
        reason: None,
        kind: Kind::Person,
        count: 1,
        until: None,
    }
}

fn beat(node: &str, boot: &str) -> Beat {
    Beat {
        node: NodeName::new(node).unwrap(),
        boot: boot.to_owned(),
        version: "1".to_owned(),
        started: StoreTime(1),
        containment: String::new(),
        url: String::new(),
        jobs: BTreeSet::new(),
        digest: "d".to_owned(),
        holds: Vec::new(),
        unfit: Default::default(),
        vitals: None,
        watched: None,
    }
}

#[tokio::test]
async fn a_change_that_comes_between_is_kept_and_the_entry_is_written_once() {
    let store = MemoryRecords::new();
    store.rows().add_user(&account("li", Role::Operator), false).await.unwrap();
    let mut between = account("li", Role::Viewer);
    between.password = "reset by an admin".to_owned();
    let text = serde_json::to_string(&between).unwrap();
    store.interfere(Plan {
        writes: vec![Write::Set { table: "users".into(), row: "li".into(), text }],
        ..Plan::default()
    });
    let theme = Changes { theme: Some(Some("dark".to_owned())), ..Changes::default() };
    let li = store.noting(act("theme")).rows().change_user(&name("li"), &theme).await.unwrap();
    assert_eq!((li.role, li.password.as_str()), (Role::Viewer, "reset by an admin"));
    assert_eq!(li.theme.as_deref(), Some("dark"));
    assert_eq!(core::audit::newest(&store, None, None, 9).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_must_not_happen_twice_is_not_sent_again_when_its_answer_is_lost() {
    let store = MemoryRecords::new();
    store.lose_answers(1);
    let added = store.rows().add_user(&account("li", Role::Operator), false).await;
    assert!(matches!(added, Err(StoreError::Unavailable(_))), "unknown, not refused: {added:?}");
    store.rows().add_link("h", &Link { user: None, sets_password: false }, HOUR).await.unwrap();
    store.lose_answers(1);
    assert!(matches!(store.rows().link("h", true).await, Err(StoreError::Unavailable(_))));
    assert_eq!(store.rows().link("h", true).await.unwrap(), None, "it is used up");
    store.lose_answers(1);
    let noted = store.noting(act("drain")).rows().drain(&NodeName::new("n").unwrap(), true).await;
    assert!(matches!(noted, Err(StoreError::NotFound(_))), "{noted:?}");
    // What may happen twice is sent again, and done once.
    store.rows().open_session("s", &session("li"), HOUR).await.unwrap();
    assert!(store.rows().session("s", HOUR).await.unwrap().is_some());
}

#[tokio::test]
async fn sessions_end_by_their_own_end_or_when_idle_and_a_use_is_noted_seldom() {
    let store = MemoryRecords::new();
    store.rows().open_session("s", &session("li"), 10 * HOUR).await.unwrap();
    for _ in 0..9 {
        store.pass(HOUR - Duration::from_secs(1));
        assert!(store.rows().session("s", HOUR).await.unwrap().is_some(), "it is used");
    }
    store.pass(HOUR + Duration::from_secs(9));
    assert_eq!(store.rows().session("s", 2 * HOUR).await.unwrap(), None, "its end has come");
    store.rows().open_session("t", &session("li"), 10 * HOUR).await.unwrap();
    store.pass(HOUR);
    assert_eq!(store.rows().session("t", HOUR).await.unwrap(), None, "idle");
    assert_eq!(store.rows().session("t", 9 * HOUR).await.unwrap(), None, "gone for good");
}

#[tokio::test]
async fn failures_are_counted_in_the_window_and_old_counts_are_forgotten() {
    let store = MemoryRecords::new();
    for nth in 1..=3 {
        assert_eq!(store.rows().failures("a", Count::Add, HOUR).await.unwrap(), nth);
    }
    store.pass(HOUR);
    assert_eq!(store.rows().failures("a", Count::Look, HOUR).await.unwrap(), 0);
    store.pass(25 * HOUR);
    assert_eq!(store.rows().failures("b", Count::Add, HOUR).await.unwrap(), 1);
    let rows = store.look(&[soloist_store::records::Look::Rows("failures".into())]).await.unwrap();
    let soloist_store::records::Found::Rows(rows) = &rows.found[0] else { panic!("rows") };
    assert_eq!(rows.keys().collect::<Vec<_>>(), ["b"]);
}

#[tokio::test]
async fn of_thirty_failures_at_once_each_is_counted() {
    let store = MemoryRecords::new();
    let all = (0..30).map(|_| store.rows().failures("a", Count::Add, HOUR));
    let mut counts = futures_util::future::try_join_all(all).await.unwrap();
    counts.sort_unstable();
    assert_eq!(counts, (1..=30).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_beat_is_news_only_when_it_says_something_new_or_comes_after_silence() {
    let store = MemoryRecords::new();
    let welcome = |draining| Heard::Welcome { draining, told: false };
    assert_eq!(store.rows().beat(&beat("n", "b")).await.unwrap(), welcome(false));
    assert_eq!(store.told(), [Tell::Nodes]);
    store.pass(Duration::from_secs(1));
    assert_eq!(store.rows().beat(&beat("n", "b")).await.unwrap(), welcome(false));
    assert_eq!(store.told(), []);
    assert_eq!(store.rows().beat(&beat("n", "another")).await.unwrap(), Heard::Duplicate);
    store.pass(Duration::from_secs(4));
    assert_eq!(store.rows().beat(&beat("n", "another")).await.unwrap(), welcome(false));
    assert_eq!(store.told(), [Tell::Nodes]);
    // The night after, a node that is still silent is forgotten.
    store.rows().beat(&beat("old", "b")).await.unwrap();
    store.pass(25 * HOUR);
    store.rows().beat(&beat("n", "third")).await.unwrap();
    let nodes = store.rows().nodes().await.unwrap();
    assert_eq!(nodes.iter().map(|one| one.beat.node.as_str()).collect::<Vec<_>>(), ["n"]);
}

#[tokio::test]
async fn a_link_of_an_earlier_account_of_that_name_is_worth_nothing() {
    let store = MemoryRecords::new();
    store.rows().add_user(&account("ada", Role::Admin), false).await.unwrap();
    for (hash, sets_password) in [("sign-in", false), ("password", true)] {
        let link = Link { user: Some(name("ada")), sets_password };
        store.rows().add_link(hash, &link, HOUR).await.unwrap();
    }
    // Another process replaces the account, and leaves the links.
    let other = User { created: StoreTime(7), ..account("ada", Role::Admin) };
    let text = serde_json::to_string(&other).unwrap();
    let set = Write::Set { table: "users".into(), row: "ada".into(), text };
    store.change(&Plan { writes: vec![set], ..Plan::default() }).await.unwrap();
    for hash in ["sign-in", "password"] {
        assert_eq!(store.rows().link(hash, false).await.unwrap(), None);
        assert_eq!(store.rows().link(hash, true).await.unwrap(), None);
    }
}

fn of_kind(kind: Kind, who: &str, target: &str) -> AuditEntry {
    AuditEntry { kind, who: who.to_owned(), target: target.to_owned(), ..act("source.block") }
}

#[tokio::test]
async fn no_program_and_no_stranger_pushes_out_what_people_did() {
    let store = MemoryRecords::new();
    let add = async |entry: AuditEntry| core::audit::add(&store, &entry).await.unwrap();
    add(of_kind(Kind::Person, "li", "outbound")).await;
    for nth in 0..Kind::Refusal.kept() + 100 {
        add(of_kind(Kind::Refusal, "unknown", &nth.to_string())).await;
    }
    add(of_kind(Kind::Program, "carl", "shop")).await;
    let all = core::audit::newest(&store, None, None, usize::MAX - 1).await.unwrap();
    assert_eq!(all.len(), Kind::Refusal.kept() + 2);
    let ends = [&all[0], &all[1], &all[all.len() - 1]].map(|entry| (entry.kind, &*entry.target));
    let refusal = (Kind::Refusal.kept() + 99).to_string();
    assert_eq!(
        ends,
        [(Kind::Program, "shop"), (Kind::Refusal, &*refusal), (Kind::Person, "outbound")]
    );
    assert!(all.is_sorted_by(|newer, older| newer.id > older.id));
}

#[tokio::test]
async fn a_program_that_does_the_same_again_is_counted_for_a_minute_and_a_person_never() {
    let store = MemoryRecords::new();
    let add = async |entry: AuditEntry| core::audit::add(&store, &entry).await.unwrap();
    for _ in 0..3 {
        add(of_kind(Kind::Program, "carl", "shop")).await;
        add(of_kind(Kind::Program, "carl", "other")).await;
        add(of_kind(Kind::Person, "li", "shop")).await;
        store.pass(Duration::from_secs(25));
    }
    add(of_kind(Kind::Program, "carl", "shop")).await;
    let all = core::audit::newest(&store, Some("shop"), None, 99).await.unwrap();
    let seen: Vec<_> = all.iter().rev().map(|one| (&*one.who, one.count)).collect();
    assert_eq!(seen, [("carl", 3), ("li", 1), ("li", 1), ("li", 1), ("carl", 1)]);
    assert_eq!(all[4].until.unwrap().since(all[4].at), Duration::from_secs(50));
}

#[tokio::test]
async fn a_page_looks_at_so_many_entries_only_and_says_where_to_go_on() {
    let store = MemoryRecords::new();
    for nth in 0..25_000 {
        let who = if nth == 10 { "ada" } else { "li" };
        core::audit::add(&store, &of_kind(Kind::Person, who, "outbound")).await.unwrap();
    }
    let ada = AuditFilter { who: Some("ada".to_owned()), ..AuditFilter::default() };
    let back = core::audit::Way::Back(None);
    let first = core::audit::page(&store, &ada, back, 5).await.unwrap();
    assert!(first.entries.is_empty() && first.next.is_some());
    let back = core::audit::Way::Back(first.next);
    let second = core::audit::page(&store, &ada, back, 5).await.unwrap();
    assert_eq!((second.entries.len(), second.entries[0].id, second.next), (1, 11, None));
    let on = core::audit::page(&store, &ada, core::audit::Way::On(0), 5).await.unwrap();
    assert_eq!(on.entries, second.entries);
}

#[tokio::test]
async fn strangers_who_are_refused_for_ever_push_out_no_refusal_of_an_account() {
    let store = MemoryRecords::new();
    let refused = |who: &str, act: &str, from: String| AuditEntry {
        act: act.to_owned(),
        from,
        ..of_kind(Kind::Refusal, who, "GET /people")
    };
    let add = async |entry: AuditEntry| core::audit::add(&store, &entry).await.unwrap();
    add(refused("li", "refused.right", "10.0.0.7".to_owned())).await;
    for nth in 0..Kind::Refusal.kept() + 10 {
        // Guesses at the password of an account are a stranger's, too.
        let (who, act) = match nth % 3 {
            0 => ("unknown", "refused.token"),
            1 => ("li", "login.failed"),
            _ => ("unknown", "refused.forgery"),
        };
        add(refused(who, act, format!("2001:db8::{nth:x}"))).await;
    }
    let filter = AuditFilter { act: Some("refused.right".to_owned()), ..AuditFilter::default() };
    let on = core::audit::page(&store, &filter, core::audit::Way::On(0), 5).await.unwrap();
    let next = core::audit::page(&store, &filter, core::audit::Way::On(on.next.unwrap_or(0)), 5);
    let found = [on.entries, next.await.unwrap().entries].concat();
    assert!(found.iter().any(|entry| entry.who == "li"), "{found:?}");
}
