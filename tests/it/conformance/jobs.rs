//! Laws of what people want: participations, holds, moves, snapshots.

use std::time::Duration;

use soloist::domain::job::{JobRecord, RunEnd};
use soloist::store::jobs::Jobs;
use soloist::store::journal::{Ended, Journal, Then};
use soloist::store::leases::Leases;

use super::*;

pub(super) async fn an_untouched_job_has_version_zero(fresh: Fresh) {
    let store = fresh.connect().await;
    assert_eq!(record(&store, "outbound").await, JobRecord::untouched(job("outbound")));
}

pub(super) async fn a_snapshot_keeps_the_order_and_the_epoch(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "b", "li", true).await;
    let names = [job("c"), job("b"), job("a"), job("b")];
    let first = store.snapshot(&names).await.expect("a snapshot");
    let order: Vec<_> = first.jobs.iter().map(|record| record.name.clone()).collect();
    assert_eq!(order, names);
    assert_eq!(first.jobs[1], first.jobs[3]);
    assert!(!first.epoch.is_empty());
    let other = fresh.connect().await.snapshot(&names).await.expect("a snapshot");
    assert_eq!((&other.epoch, &other.jobs), (&first.epoch, &first.jobs));
    assert!(other.at >= first.at && first.at.0 > 1_600_000_000_000);
    assert_eq!(store.snapshot(&[]).await.expect("a snapshot").jobs, []);
}

pub(super) async fn switching_tells_whether_anything_changed(fresh: Fresh) {
    let store = fresh.connect().await;
    let (outbound, li) = (job("outbound"), user("li"));
    assert!(!store.participate(&outbound, &li, false, Some("no")).await.expect("switched"));
    assert_eq!(version(&store, "outbound").await, 0);
    assert!(store.participate(&outbound, &li, true, Some("Monday")).await.expect("switched"));
    let on = record(&store, "outbound").await;
    assert!(on.wanted() && on.participates(&li) && !on.participates(&user("wang")));
    let switch = on.last_switch.clone().expect("who and why");
    assert_eq!((switch.user, switch.on), (li.clone(), true));
    assert_eq!(switch.reason.as_deref(), Some("Monday"));
    assert_eq!(switch.at, on.participants[0].since);
    assert!(!store.participate(&outbound, &li, true, None).await.expect("switched"));
    assert_eq!(version(&store, "outbound").await, on.version, "nothing changed");
    assert!(store.participate(&outbound, &li, false, None).await.expect("switched"));
    let off = record(&store, "outbound").await;
    assert!(!off.wanted());
    let switch = off.last_switch.expect("who and why");
    assert_eq!((switch.user, switch.on, switch.reason), (li, false, None));
}

pub(super) async fn participants_come_oldest_first(fresh: Fresh) {
    let store = fresh.connect().await;
    for who in ["wang", "li", "zhao"] {
        switch(&store, "outbound", who, true).await;
        pass(&store, Duration::from_millis(2)).await;
    }
    let users: Vec<_> =
        record(&store, "outbound").await.participants.into_iter().map(|p| p.user).collect();
    assert_eq!(users, [user("wang"), user("li"), user("zhao")]);
}

async fn end_with(store: &Store, name: &str, then: Then) {
    let ask = ask(name, "node-a");
    let token = granted(store, &ask).await;
    let run = started(store, &ask, token).run;
    store.record_ended(&ended(&ask, token, &run, then)).await.expect("ended");
}

fn forgiven(record: &JobRecord) -> bool {
    !record.given_up && record.crashes == 0 && record.next.is_none()
}

pub(super) async fn switching_on_again_forgives(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    for then in [Then::GiveUp { crashes: 3 }, Then::Retry { crashes: 1, wait: LONG }] {
        end_with(&store, "outbound", then).await;
        let before = record(&store, "outbound").await;
        assert!(!forgiven(&before));
        switch(&store, "outbound", "wang", false).await;
        assert!(!forgiven(&record(&store, "outbound").await), "switching off forgives nothing");
        assert!(!switch(&store, "outbound", "li", true).await, "was on already");
        let after = record(&store, "outbound").await;
        assert!(forgiven(&after) && after.version > before.version, "{after:?}");
    }
}

pub(super) async fn a_resume_forgives(fresh: Fresh) {
    let store = fresh.connect().await;
    end_with(&store, "outbound", Then::GiveUp { crashes: 3 }).await;
    store.resume(&job("outbound")).await.expect("resumed");
    assert!(forgiven(&record(&store, "outbound").await));
}

pub(super) async fn a_hold_is_kept_with_its_reason_until_the_resume(fresh: Fresh) {
    let store = fresh.connect().await;
    switch(&store, "outbound", "li", true).await;
    store.hold(&job("outbound"), &user("ops"), "stock-taking").await.expect("held");
    store.hold(&job("outbound"), &user("boss"), "until Monday").await.expect("held");
    let held = record(&store, "outbound").await;
    assert!(!held.wanted() && held.participants.len() == 1, "the switches stay");
    let hold = held.hold.expect("a hold");
    assert_eq!((hold.by, hold.reason.as_str()), (user("boss"), "until Monday"));
    store.resume(&job("outbound")).await.expect("resumed");
    let resumed = record(&store, "outbound").await;
    assert!(resumed.hold.is_none() && resumed.wanted());
}

pub(super) async fn a_move_names_the_present_holder_and_lapses(fresh: Fresh) {
    let store = fresh.connect().await;
    let outbound = job("outbound");
    store.request_move(&outbound, None, &user("ops"), SOON).await.expect("asked");
    assert_eq!(record(&store, "outbound").await.moving.expect("a move").from, None);
    let holder = ask("outbound", "node-a");
    granted(&store, &holder).await;
    let goal = node("node-b");
    store.request_move(&outbound, Some(&goal), &user("ops"), SOON).await.expect("asked");
    let now = store.snapshot(&[]).await.expect("a snapshot").at;
    let moving = record(&store, "outbound").await.moving.expect("a move");
    assert_eq!((moving.from, moving.to, moving.by), (Some(holder.node), Some(goal), user("ops")));
    let left = moving.until.since(now);
    assert!(left <= SOON && left > SOON / 2, "{left:?}");
}

pub(super) async fn a_drill_is_for_one_token_only(fresh: Fresh) {
    let store = fresh.connect().await;
    let (outbound, ada) = (job("outbound"), user("ada"));
    let order = async |token| store.request_drill(&outbound, token, &ada).await.expect("an answer");
    assert_eq!(order(Token(7)).await, None, "nobody holds it");
    let first = ask("outbound", "node-a");
    let token = granted(&store, &first).await;
    assert_eq!(order(Token(token.0 + 1)).await, None, "not the token that is out");
    assert_eq!(record(&store, "outbound").await.drill, None);
    let before = version(&store, "outbound").await;
    let at = order(token).await.expect("ordered");
    let after = record(&store, "outbound").await;
    assert!(after.version > before, "everybody hears it");
    let drill = after.drill.expect("a drill");
    assert_eq!((drill.token, &drill.by, drill.at), (token, &ada, at));
    assert_eq!((drill.to, drill.started), (None, None));
    assert_eq!(order(token).await, Some(at), "asked twice, ordered once");
    assert_eq!(version(&store, "outbound").await, after.version);
    store.release(&outbound, &first.owner).await.expect("released");
    assert_eq!(order(token).await, Some(at), "the first answer may have been lost");
    let second = granted(&store, &ask("outbound", "node-b")).await;
    assert_eq!(record(&store, "outbound").await.drill.map(|d| d.token), Some(token));
    let later = order(second).await.expect("ordered");
    let drill = record(&store, "outbound").await.drill.expect("a drill");
    assert_eq!((drill.token, drill.at), (second, later));
}

pub(super) async fn a_drill_ends_with_the_next_run(fresh: Fresh) {
    let store = fresh.connect().await;
    let (outbound, ada) = (job("outbound"), user("ada"));
    for end in [RunEnd::Lost, RunEnd::Stopped] {
        let first = ask("outbound", "node-a");
        let token = granted(&store, &first).await;
        let run = started(&store, &first, token);
        store.record_started(&run).await.expect("started");
        let at = store.request_drill(&outbound, token, &ada).await.expect("an answer");
        store.record_started(&run).await.expect("reported again");
        let drill = record(&store, "outbound").await.drill.expect("a drill");
        assert_eq!(drill.started, None, "its own start is no take-over");
        let over = Ended { end, ..ended(&first, token, &run.run, Then::Nothing) };
        store.record_ended(&over).await.expect("ended");
        let second = ask("outbound", "node-b");
        let token = granted(&store, &second).await;
        let run = started(&store, &second, token);
        store.record_started(&run).await.expect("started");
        let after = record(&store, "outbound").await;
        if end == RunEnd::Lost {
            let drill = after.drill.expect("a drill");
            assert_eq!(drill.to, Some(second.node.clone()));
            assert_eq!(drill.started, after.run.map(|run| run.started));
            assert!(drill.started >= at && drill.takeover().is_some());
        } else {
            assert_eq!(after.drill, None, "nobody crashed, so nothing was measured");
        }
        let over = ended(&second, token, &run.run, Then::Nothing);
        store.record_ended(&over).await.expect("ended");
    }
}

pub(super) async fn every_change_grows_the_version(fresh: Fresh) {
    let store = fresh.connect().await;
    let outbound = job("outbound");
    let mut newest = 0;
    for step in 0..9 {
        let ask = ask("outbound", "node-a");
        match step {
            0 => drop(switch(&store, "outbound", "li", true).await),
            1 => store.hold(&outbound, &user("ops"), "x").await.expect("held"),
            2 => store.resume(&outbound).await.expect("resumed"),
            3 => store.request_move(&outbound, None, &user("ops"), SOON).await.expect("asked"),
            4 => end_with(&store, "outbound", Then::Nothing).await,
            5 => drop(granted(&store, &ask).await),
            6 => {
                let lease = record(&store, "outbound").await.lease.expect("a lease");
                store.release(&outbound, &lease.owner).await.expect("released");
            }
            _ => drop(switch(&store, "outbound", "li", step == 8).await),
        }
        let now = version(&store, "outbound").await;
        assert!(now > newest, "step {step}: {now} after {newest}");
        newest = now;
    }
}

pub(super) async fn what_another_process_changed_meanwhile_is_kept(fresh: Fresh) {
    let processes = [fresh.connect().await, fresh.connect().await];
    for (nth, who) in ["li", "wang", "zhao", "chen", "liu", "yang"].iter().enumerate() {
        assert!(switch(&processes[nth % 2], "outbound", who, true).await, "{who}");
    }
    let record = record(&processes[0], "outbound").await;
    assert_eq!((record.version, record.participants.len()), (6, 6));
}
