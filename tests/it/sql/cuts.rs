//! Connections that are cut between a process and its server: all of them, or the listener's alone.

use std::time::Duration;

use soloist::clock;
use soloist::domain::lease::Timing;
use soloist::domain::name::UserName;
use soloist::store::Options;
use soloist::store::events::{Events as _, StoreEvent};
use soloist::store::jobs::Jobs as _;
use soloist::store::leases::Renewed;
use tokio::sync::mpsc::Receiver;

use crate::postgres::{ask, granted, job, options, renew};
use crate::support::machine::within;
use crate::support::relay::{Cut, Relay};
use crate::support::wait::PATIENCE;

const LEASE: Duration = Duration::from_secs(6);

/// As a node asks whose lease is that long.
fn as_a_node() -> Options {
    let timing = Timing::from_ttl(LEASE).expect("a safe lease");
    Options { timeout: timing.store_timeout, ..Options::default() }
}

/// A lease is renewed by another connection within a third of it, however its connections were cut.
pub(crate) async fn a_lease_is_renewed_after_a_cut(port: u16, url: &str) {
    for how in [Cut::Silent, Cut::Reset] {
        let relay = Relay::before(port);
        let store =
            soloist::stores::connect(&relay.url_of(url), &as_a_node()).await.expect("it opens");
        let mut mine = ask("node-a", LEASE);
        mine.job = format!("job-{how:?}").to_lowercase().parse().expect("a good name");
        let token = granted(&store, &mine).await;
        assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
        assert!(relay.cut(how) >= 2, "those of grants and of leases");
        let begun = clock::boot();
        assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
        within(clock::boot().since(begun), LEASE / 3, &format!("a renewal after a cut: {how:?}"));
    }
}

async fn until_heard(events: &mut Receiver<StoreEvent>, wanted: fn(&StoreEvent) -> bool) {
    let hearing = async { while !wanted(&events.recv().await.expect("the subscription lives")) {} };
    tokio::time::timeout(PATIENCE, hearing).await.expect("it is heard");
}

/// The connection on which the process once said `word` is cut. A lease is renewed meanwhile, and the process hears changes again.
pub(crate) async fn a_listener_alone_is_cut(port: u16, url: &str, word: &str) {
    for how in [Cut::Silent, Cut::Reset] {
        let relay = Relay::before(port);
        let store =
            soloist::stores::connect(&relay.url_of(url), &as_a_node()).await.expect("it opens");
        let mut events = store.subscribe(&[job()]).await.expect("subscribed");
        until_heard(&mut events, |event| *event == StoreEvent::Subscribed).await;
        let mut mine = ask("node-a", LEASE);
        mine.job = format!("job-{how:?}").to_lowercase().parse().expect("a good name");
        let token = granted(&store, &mine).await;
        assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
        // A listener that polls says the word a moment after it has subscribed.
        crate::support::wait::until("it said so", || {
            (relay.cut_those_that_said(word, how) >= 1).then_some(())
        });
        let begun = clock::boot();
        assert!(matches!(renew(&store, &mine, token).await, Renewed::Kept { .. }));
        within(clock::boot().since(begun), as_a_node().timeout, "a renewal beside a cut");
        until_heard(&mut events, |event| *event == StoreEvent::Interrupted).await;
        until_heard(&mut events, |event| *event == StoreEvent::Subscribed).await;
        within(clock::boot().since(begun), LEASE, &format!("subscribed again: {how:?}"));
        let writer = soloist::stores::connect(url, &options()).await.expect("it opens");
        let li = UserName::new("li").expect("a good name");
        let on = how == Cut::Silent;
        assert!(writer.participate(&job(), &li, on, None).await.expect("an answer"));
        until_heard(&mut events, |event| matches!(event, StoreEvent::Job(_))).await;
    }
}
