//! Laws of the audit: what each kind of entry does to the others, and that an act and its entry are one step.

use std::time::Duration;

use soloist::domain::dispatch::Rules;
use soloist::domain::name::{RotationName, SourceName};
use soloist::store::dispatch::{Dispatch, NewTask, Sources, TaskId};
use soloist::store::journal::{AuditEntry, AuditFilter, AuditPage, Journal, Kind};
use soloist::store::rotation::{RotationView, Rotations};

use super::journal::act;
use super::rotation::free;
use super::*;

pub(super) async fn kinds_of_acts_are_kept_apart_and_read_as_one_list(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    let of = |kind: Kind, target: &str| AuditEntry { kind, ..act(target, "") };
    for nth in 0..4 {
        let store = if nth % 2 == 0 { &store } else { &other };
        store.audit(&of(Kind::Person, "outbound")).await.expect("kept");
        store.audit(&of(Kind::Program, "shop")).await.expect("kept");
        let refusal = AuditEntry { count: 5, ..of(Kind::Refusal, &format!("GET /{}", nth / 2)) };
        store.audit(&refusal).await.expect("kept");
    }
    let all = store.audits(None, None, 99).await.expect("acts");
    let seen: Vec<_> = all.iter().map(|one| (one.kind.as_str(), one.count)).collect();
    let person = ("person", 1);
    assert_eq!(
        seen,
        [person, ("refusal", 10), person, person, ("refusal", 10), ("program", 4), person]
    );
    assert!(all.is_sorted_by(|newer, older| newer.id > older.id));
    let program = &all[5];
    assert!(program.until.is_some_and(|until| until >= program.at), "{program:?}");

    // In pages of any size, either way, it is the same list.
    let every = AuditFilter::default();
    for limit in 1..8 {
        let (mut older, mut before) = (Vec::new(), None);
        loop {
            let page = store.audit_page(&every, before, limit).await.expect("a page");
            assert!(page.entries.len() <= limit);
            older.extend(page.entries);
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        assert_eq!(older, all, "by {limit}");
        let (mut newer, mut after) = (Vec::new(), Some(0));
        while let Some(from) = after {
            let page = other.audit_after(&every, from, limit).await.expect("a page");
            newer.extend(page.entries);
            after = page.next;
        }
        newer.reverse();
        assert_eq!(newer, all, "by {limit}");
    }
    let programs = AuditFilter { kinds: vec![Kind::Program], ..AuditFilter::default() };
    let page = store.audit_page(&programs, None, 9).await.expect("a page");
    assert_eq!(page.entries, std::slice::from_ref(program));
    let begins = AuditFilter { act: Some("particip*".to_owned()), ..AuditFilter::default() };
    assert_eq!(store.audit_page(&begins, None, 3).await.expect("a page").entries, all[..3]);
    let late = AuditFilter { from: Some(all[0].at + LONG), ..AuditFilter::default() };
    assert_eq!(store.audit_page(&late, None, 9).await.expect("a page"), AuditPage::default());
    let early = AuditFilter { to: Some(all[6].at), ..AuditFilter::default() };
    assert_eq!(store.audit_page(&early, None, 9).await.expect("a page").entries, []);
}

pub(super) async fn what_is_done_to_sources_tasks_and_rotations_and_its_entry_are_one_step(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    let shop = SourceName::new("shop").expect("a name");
    let noting = |word: &str| store.noting(AuditEntry { act: word.to_owned(), ..act("shop", "") });
    let (second, rules) = (Duration::from_secs(1), Rules::default());
    // What fails leaves no entry.
    noting("no").block_source(&shop, second).await.expect_err("no such source");
    noting("no").pause_source(&shop, true).await.expect_err("no such source");
    noting("no").revive(&TaskId("none".to_owned())).await.expect_err("no such task");
    noting("put").put_source(&shop, &rules).await.expect("put");
    noting("block").block_source(&shop, second).await.expect("blocked");
    noting("pause").pause_source(&shop, true).await.expect("paused");
    let task = NewTask {
        source: shop.clone(),
        key: "note:\u{1}".to_owned(),
        payload: "1".to_owned(),
        priority: 0,
        at: None,
        every: None,
    };
    store.put_tasks(std::slice::from_ref(&task)).await.expect("put");
    let id = TaskId::of(&shop, &task.key);
    noting("revive").revive(&id).await.expect("revived");
    store.block_source(&shop, Duration::ZERO).await.expect("without an entry");
    let rotation = RotationName::new("supplier").expect("a name");
    let rules = free(&["a"]);
    noting("rotation").put_rotation(&rotation, &rules).await.expect("put");
    store.put_rotation(&rotation, &free(&["b"])).await.expect("without an entry");
    let kinds = |view: RotationView| view.types.len();
    let read = store.rotations(Some(&rotation), 0).await.expect("read");
    assert_eq!(read.into_iter().map(kinds).collect::<Vec<_>>(), [1]);
    let acts = store.audits(None, None, 99).await.expect("acts");
    let acts: Vec<_> = acts.iter().rev().map(|one| one.act.as_str()).collect();
    assert_eq!(acts, ["put", "block", "pause", "revive", "rotation"]);
}
