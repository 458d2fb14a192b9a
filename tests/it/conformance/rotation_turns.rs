//! Laws of one turn: how it is had, kept, lost, passed and remembered.

use std::collections::BTreeMap;
use std::time::Duration;

use soloist::domain::lease::Token;
use soloist::domain::rotation::{Ending, Reason, Rules, Turn, TurnOutcome};
use soloist::store::rotation::{Kept, PROMISE, Pass, Rotations, TURNS_KEPT, Taken, TurnAsk};
use soloist::store::{Store, StoreError};

use super::rotation::*;
use super::{Fresh, LONG, SHORT};

pub(super) async fn a_free_turn_is_had_at_once(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b", "c"])).await;
    let before = view(&store).await;
    assert_eq!((before.ring.token, before.ring.turn), (Token(0), None));
    // Nobody waits for `a`, which comes first.
    let turn = granted(&store, &request("b")).await;
    assert!(turn.since >= before.now);
    assert_eq!(turn.until, turn.since + LONG);
    let clock = u64::try_from(turn.since.0).expect("after 1970") * 1_024 / 1_000;
    assert_eq!(turn.token, Token(clock), "of the store's clock");
    let after = view(&store).await;
    assert_eq!((after.ring.token, after.ring.turn), (turn.token, Some(turn)));
}

pub(super) async fn the_same_request_has_the_same_turn(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let other = fresh.connect().await;
    let ask = request("a");
    let turn = granted(&store, &ask).await;
    for store in [&store, &other] {
        assert_eq!(take(store, &ask).await, Taken::Granted(turn.clone()));
    }
    let holder = Some(turn.clone());
    for another in [
        TurnAsk { kind: kind("b"), ..ask.clone() },
        TurnAsk { worker: worker("another"), ..ask.clone() },
        request("a"),
    ] {
        assert_eq!(refused(&store, &another).await.holder, holder, "{another:?}");
    }
    finish(&store, &turn).await;
    for _ in 0..2 {
        assert_eq!(take(&other, &ask).await, Taken::Over(turn.token));
    }
    assert_eq!(view(&store).await.ring.turn, None);
    let newer = granted(&store, &TurnAsk { worker: worker("another"), ..ask.clone() }).await;
    assert!(newer.token > turn.token);
    assert_eq!(take(&store, &ask).await, Taken::Over(turn.token), "although it is had again");
}

pub(super) async fn a_request_whose_turn_was_lost_is_told_so(fresh: Fresh) {
    let store = ready(&fresh, &Rules { lease: SHORT, ..free(&["a"]) }).await;
    let ask = waiting("a", "w1");
    let turn = granted(&store, &ask).await;
    reach(&store, turn.until).await;
    assert_eq!(take(&store, &ask).await, Taken::Over(turn.token));
    assert_eq!(view(&store).await.waiters, [], "whoever has a final answer waits no more");
}

/// Takes and passes turns until there were `most`.
async fn takes_turns(store: &Store, name: &str, type_: &str, most: usize) {
    for _ in 0..20_000 {
        let ask = TurnAsk { worker: worker(name), ..request(type_) };
        match take(store, &ask).await {
            Taken::Granted(turn) => {
                let now = view(store).await;
                assert_eq!(now.ring.turn.as_ref(), Some(&turn), "nobody else has it");
                finish(store, &turn).await;
                if now.past.len() >= most {
                    return;
                }
            }
            Taken::Waiting { .. } => tokio::task::yield_now().await,
            Taken::Over(token) => panic!("{token} was a new request"),
        }
        if view(store).await.past.len() >= most {
            return;
        }
    }
    panic!("never were there {most} turns");
}

pub(super) async fn one_has_the_turn_whoever_asks(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b", "c"])).await;
    let asking: Vec<_> = (0..6)
        .map(|n| {
            let (store, type_) = (store.clone(), ["a", "b", "c"][n % 3]);
            tokio::spawn(async move { takes_turns(&store, &format!("w{n}"), type_, 40).await })
        })
        .collect();
    for one in asking {
        one.await.expect("no panic");
    }
    let past = view(&store).await.past;
    assert!(past.len() >= 40);
    for two in past.windows(2) {
        assert!(two[1].ended <= two[0].since, "{two:?} overlap");
        assert!(two[1].token < two[0].token, "{two:?}");
    }
}

pub(super) async fn an_extended_turn_lasts_for_another_lease(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let ask = request("a");
    let turn = granted(&store, &ask).await;
    for mine in [None, Some(worker("w"))] {
        let before = view(&store).await.now;
        let kept = store.extend_turn(&api(), turn.token, mine.as_ref()).await.expect("answered");
        let Kept::Yes(longer) = kept else { panic!("{kept:?}") };
        assert!(before + LONG <= longer.until && longer.until <= view(&store).await.now + LONG);
        assert_eq!(longer, Turn { until: longer.until, ..turn.clone() });
        assert_eq!(take(&store, &ask).await, Taken::Granted(longer));
    }
}

/// Whoever has it kills its script in time by the lease that it knows of.
pub(super) async fn a_turn_keeps_the_lease_that_it_began_with(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a"])).await;
    let turn = granted(&store, &request("a")).await;
    assert_eq!((turn.lease, turn.until), (LONG, turn.since + LONG));
    let short = Rules { lease: SHORT, ..free(&["a"]) };
    store.put_rotation(&api(), &short).await.expect("it is put");
    let before = view(&store).await;
    assert_eq!(before.ring.turn, Some(turn.clone()));
    let kept = store.extend_turn(&api(), turn.token, None).await.expect("answered");
    let Kept::Yes(longer) = kept else { panic!("{kept:?}") };
    assert!(before.now + LONG <= longer.until, "{longer:?}");
    finish(&store, &longer).await;
    assert_eq!(granted(&store, &request("a")).await.lease, SHORT, "the next one");
}

pub(super) async fn a_stale_word_changes_nothing(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let first = granted(&store, &request("a")).await;
    finish(&store, &first).await;
    let turn = granted(&store, &request("b")).await;
    let before = view(&store).await;
    let holder = Some(turn.clone());
    let (a, stranger) = (Some(kind("a")), Some(worker("stranger")));
    let word = Pass { next: a, not_before: Some(before.now + LONG), ..done(&turn) };
    for (token, only, known) in [
        (turn.token, stranger, false),
        (first.token, None, true),
        (first.token, Some(worker("w")), true),
        (Token(turn.token.0 + 1), None, false),
        (Token(0), None, false),
        (Token(u64::MAX / 2), None, false),
    ] {
        let pass = Pass { turn: token, only: only.clone(), ..word.clone() };
        let passed = stale(say(&store, &pass).await);
        let extended = store.extend_turn(&api(), token, only.as_ref()).await.expect("answered");
        assert_eq!(stale(extended), passed);
        assert_eq!(passed.0.as_ref(), known.then(|| &before.past[0]), "{pass:?}");
        assert_eq!(passed.1, holder, "{pass:?}");
        if token != turn.token {
            assert!(!store.give_back_unseen_turn(&api(), token).await.expect("answered"));
        }
    }
    let after = view(&store).await;
    assert_eq!((after.ring, after.past), (before.ring, before.past));
}

pub(super) async fn a_pass_counts_once(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    let before = view(&store).await.now;
    let empty = Pass { outcome: TurnOutcome::Empty, only: Some(worker("w")), ..done(&turn) };
    assert_eq!(say(&store, &empty).await, Kept::Yes(turn.clone()));
    let (past, holder) = stale(say(&store, &done(&turn)).await);
    let past = past.expect("remembered");
    assert_eq!((past.token, past.ending, holder), (turn.token, Ending::Empty, None));
    assert_eq!((&past.kind, &past.worker, past.since), (&turn.kind, &turn.worker, turn.since));
    assert!(before <= past.ended && past.ended <= view(&store).await.now);
    let next = granted(&store, &request("b")).await;
    let (again, holder) = stale(say(&store, &done(&turn)).await);
    assert_eq!((again, holder), (Some(past), Some(next)));
}

pub(super) async fn a_pass_says_when_something_is_due_next(fresh: Fresh) {
    let (most, gap) = (Duration::from_secs(1), MS * 900);
    let rules = free(&["a"]);
    let store = ready(&fresh, &rules).await;
    for (min_gap, waits, due) in [
        (Duration::ZERO, false, most..=most),
        // A promise is due when it lapses.
        (Duration::ZERO, true, PROMISE..=PROMISE),
        (gap, true, MS..=gap),
    ] {
        store.remove_rotation(&api(), true).await.expect("removed");
        define(&store, &Rules { min_gap, ..rules.clone() }).await;
        let turn = granted(&store, &request("a")).await;
        if waits {
            refused(&store, &waiting("a", "w1")).await;
        }
        let passed = store.pass_on(&done(&turn)).await.expect("an answer");
        assert!(matches!(passed.kept, Kept::Yes(_)), "{passed:?}");
        let next_in = passed.next_in.expect("it is said");
        assert!(due.contains(&next_in), "{next_in:?}");
        let again = store.pass_on(&done(&turn)).await.expect("an answer");
        assert!(matches!(again.kept, Kept::Stale { .. }), "{again:?}");
        assert_eq!(again.next_in, None, "nothing was changed");
    }
}

pub(super) async fn a_turn_ends_with_its_lease_whoever_notices(fresh: Fresh) {
    let store = ready(&fresh, &Rules { lease: SHORT, ..free(&["a"]) }).await;
    for noticed_by in ["extend", "pass", "pump", "take"] {
        let turn = granted(&store, &request("a")).await;
        let pumped = store.pump_turns(LIFE).await.expect("pumped");
        if pumped.lost.is_empty() {
            assert!(pumped.next.is_some_and(|next| next <= turn.until), "{pumped:?}");
        }
        reach(&store, turn.until).await;
        match noticed_by {
            "extend" => {
                let kept = store.extend_turn(&api(), turn.token, None).await.expect("answered");
                assert_eq!(stale(kept).0.map(|past| past.ending), Some(Ending::Lost));
            }
            "pass" => {
                let (past, holder) = stale(say(&store, &done(&turn)).await);
                assert_eq!((past.map(|past| past.ending), holder), (Some(Ending::Lost), None));
            }
            "take" => {
                let next = granted(&store, &request("a")).await;
                assert!(next.token > turn.token && next.since >= turn.until);
                say(&store, &done(&next)).await;
            }
            _ => {}
        }
        // A pump names it, whoever noticed, and only once.
        let mut lost = pumped.lost;
        for _ in 0..2 {
            lost.extend(store.pump_turns(LIFE).await.expect("pumped").lost);
        }
        lost.retain(|(_, one)| one.token == turn.token);
        assert_eq!(lost, [(api(), turn.clone())], "{noticed_by}");
        let past = view(&store).await.past;
        let past = past.iter().find(|past| past.token == turn.token).expect("remembered");
        assert_eq!((past.ending, past.ended), (Ending::Lost, turn.until), "{noticed_by}");
    }
    assert!(view(&store).await.types[0].lost >= 4);
}

pub(super) async fn a_turn_that_nobody_received_goes_back(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let ask = request("a");
    let unseen = granted(&store, &ask).await;
    assert!(
        !store.give_back_unseen_turn(&api(), Token(unseen.token.0 - 1)).await.expect("answered")
    );
    assert!(store.give_back_unseen_turn(&api(), unseen.token).await.expect("given back"));
    assert!(!store.give_back_unseen_turn(&api(), unseen.token).await.expect("answered"));
    let after = view(&store).await;
    assert_eq!((after.ring.turn, after.types[0].lost), (None, 1));
    assert_eq!(after.past[0].ending, Ending::Lost);
    // Nobody heard of that turn, so the request is a new one.
    let turn = granted(&store, &ask).await;
    assert!(turn.token > unseen.token);
    // Once it was answered again, a worker may know of it.
    assert_eq!(granted(&store, &ask).await, turn);
    assert!(!store.give_back_unseen_turn(&api(), turn.token).await.expect("answered"));
    assert_eq!(view(&store).await.ring.turn, Some(turn.clone()));
    finish(&store, &turn).await;
    let next = granted(&store, &request("b")).await;
    assert!(
        store.give_back_unseen_turn(&api(), next.token).await.expect("it is another, and unseen")
    );
}

pub(super) async fn ends_are_counted_and_the_newest_remembered(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    let outcomes = [TurnOutcome::Done, TurnOutcome::Empty, TurnOutcome::Failed];
    let mut tokens = Vec::new();
    for nth in 0..TURNS_KEPT + 4 {
        let type_ = if nth % 5 == 0 { "b" } else { "a" };
        let turn = granted(&store, &request(type_)).await;
        tokens.push(turn.token);
        say_well(&store, &Pass { outcome: outcomes[nth % 3], ..done(&turn) }).await;
    }
    assert!(tokens.is_sorted() && tokens.windows(2).all(|two| two[0] != two[1]), "{tokens:?}");
    tokens.reverse();
    let all = view(&store).await;
    let kept: Vec<_> = all.past.iter().map(|past| past.token).collect();
    assert_eq!(kept, tokens[..TURNS_KEPT]);
    let expected: Vec<Ending> =
        (4..TURNS_KEPT + 4).rev().map(|nth| outcomes[nth % 3].into()).collect();
    assert_eq!(all.past.iter().map(|past| past.ending).collect::<Vec<_>>(), expected);
    let counts: BTreeMap<_, _> =
        all.types.iter().map(|t| (t.kind.as_str(), [t.done, t.empty, t.failed, t.lost])).collect();
    let mut counted = BTreeMap::from([("a", [0; 4]), ("b", [0; 4])]);
    for nth in 0..TURNS_KEPT + 4 {
        counted.get_mut(if nth % 5 == 0 { "b" } else { "a" }).expect("known")[nth % 3] += 1;
    }
    assert_eq!(counts, counted);
    for (most, there) in [(0, 0), (1, 1), (7, 7)] {
        let views = store.rotations(Some(&api()), most).await.expect("read");
        assert_eq!(views[0].past, all.past[..there]);
    }
    let forgotten =
        Pass { turn: tokens[TURNS_KEPT], ..done(&granted(&store, &request("a")).await) };
    assert_eq!(stale(say(&store, &forgotten).await).0, None);
}

pub(super) async fn rotations_do_not_touch_each_other(fresh: Fresh) {
    let store = ready(&fresh, &Rules { min_gap: LONG, ..free(&["a", "b"]) }).await;
    let names = ["a-first", "supplier-api", "supplier-api2", "z"];
    for name in names.into_iter().filter(|name| *name != api().as_str()) {
        store.put_rotation(&rotation(name), &free(&["a", "b"])).await.expect("defined");
    }
    let views = store.rotations(None, 9).await.expect("read");
    assert_eq!(views.iter().map(|view| view.name.as_str()).collect::<Vec<_>>(), names);
    let asks: Vec<_> =
        names.map(|name| TurnAsk { rotation: rotation(name), ..waiting("a", "w1") }).into();
    let request = asks[0].request.clone();
    let mut turns = Vec::new();
    for ask in &asks {
        // The same request of another rotation is another one.
        turns.push(granted(&store, &TurnAsk { request: request.clone(), ..ask.clone() }).await);
    }
    let elsewhere = Pass { rotation: rotation("z"), ..done(&turns[1]) };
    if turns[1].token != turns[3].token {
        assert_eq!(stale(say(&store, &elsewhere).await), (None, Some(turns[3].clone())));
    }
    refused(&store, &TurnAsk { rotation: rotation("z"), ..waiting("b", "w2") }).await;
    finish(&store, &turns[1]).await;
    assert_eq!(refused(&store, &waiting("b", "w3")).await.reason, Reason::Gap);
    for view in store.rotations(None, 9).await.expect("read") {
        let at = names.iter().position(|name| view.name == rotation(name)).expect("known");
        let waiting: Vec<_> = view.waiters.iter().map(|one| one.worker.as_str()).collect();
        match names[at] {
            "supplier-api" => {
                assert_eq!((view.past.len(), view.ring.turn), (1, None));
                assert_eq!(waiting, ["w3"]);
            }
            name => {
                assert_eq!((view.past.len(), view.ring.turn), (0, Some(turns[at].clone())));
                assert_eq!(waiting.len(), usize::from(name == "z"), "{waiting:?}");
            }
        }
    }
}

pub(super) async fn what_is_unknown_leaves_nothing_behind(fresh: Fresh) {
    let store = fresh.connect().await;
    let not_found = |what: &str, error: StoreError| {
        assert!(matches!(error, StoreError::NotFound(_)), "{what}: {error:?}");
    };
    for ask in [request("a"), waiting("a", "w1")] {
        not_found("take", store.take_turn(&ask).await.expect_err("unknown"));
    }
    let extended = store.extend_turn(&api(), Token(1), None).await;
    not_found("extend", extended.expect_err("unknown"));
    not_found("look", store.rotations(Some(&api()), 1).await.expect_err("unknown"));
    assert_eq!(store.rotations(None, 1).await.expect("read"), []);
    store.leave_queue(&api(), &waiter(LIFE, "w1")).await.expect("harmless");
    assert_eq!(store.pump_turns(LIFE).await.expect("pumped").next, None);
    define(&store, &free(&["a", "b"])).await;
    let turn = granted(&store, &request("a")).await;
    not_found("type", store.take_turn(&waiting("c", "w1")).await.expect_err("unknown"));
    let pass = Pass { next: Some(kind("c")), ..done(&turn) };
    not_found("next", store.pass_turn(&pass).await.expect_err("unknown"));
    let pass = Pass { rotation: rotation("another"), ..done(&turn) };
    not_found("pass", store.pass_turn(&pass).await.expect_err("unknown"));
    let view = view(&store).await;
    assert_eq!((view.ring.turn, view.past, view.waiters), (Some(turn), vec![], vec![]));
}

pub(super) async fn a_reading_names_the_first_who_wait(fresh: Fresh) {
    let store = ready(&fresh, &free(&["a", "b"])).await;
    granted(&store, &request("a")).await;
    let most = soloist::store::rotation::WAITERS_NAMED + 3;
    let begun = view(&store).await.now;
    let names: Vec<String> = (0..most).map(|nth| format!("w{nth}")).collect();
    for (nth, name) in names.iter().enumerate() {
        let incarnation = ["node-a/x", "node-b/y"][nth % 2];
        refused(&store, &waiting_at(incarnation, ["a", "b", "b"][nth % 3], name)).await;
    }
    let view = view(&store).await;
    let counts: Vec<_> = view.types.iter().map(|one| one.waiting).collect();
    let first = most.div_ceil(3) as u64;
    assert_eq!(counts, [first, most as u64 - first], "all are counted");
    assert_eq!(view.waiters.len(), most - 3);
    let mut since = begun;
    for (nth, one) in view.waiters.iter().enumerate() {
        assert_eq!(one.worker.as_str(), names[nth], "in the order in which they came");
        assert_eq!(one.kind, kind(["a", "b", "b"][nth % 3]));
        assert_eq!(one.node.as_str(), ["node-a", "node-b"][nth % 2]);
        assert!(since <= one.since && one.since <= view.now);
        since = one.since;
    }
}
