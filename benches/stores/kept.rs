//! Ten thousand leases of 30 s: what the renewals cost each server, all at the same time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use soloist::clock;
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, NodeName, Owner};
use soloist::domain::time::Began;
use soloist::runner::keeper::{Keeper, Kept};
use soloist::store::Store;
use soloist::store::leases::{Acquire, Acquired, Condition, Leases as _, Renewal};
use soloist::telemetry::Metrics;

use super::server::{Kind, Server};
use super::sheet::{Bound, Sheet};

const TTL: Duration = Duration::from_secs(30);
/// How many are asked for at the same time in the beginning.
const AT_ONCE: usize = 64;
/// The first rounds spread what was taken in one burst.
const SETTLING: u32 = 6;

pub(crate) async fn measure(kinds: &[Kind], leases: usize, seconds: u64, sheet: &mut Sheet) {
    let timing = Timing::from_ttl(TTL).expect("a safe lease");
    let servers: Vec<Server> = kinds.iter().map(|kind| Server::start(*kind)).collect();
    let mut holders = Vec::new();
    for server in &servers {
        let store = server.connect(timing.store_timeout).await;
        let keeper = Keeper::start(store.clone(), Arc::new(Metrics::new()));
        let begun = clock::boot();
        let asked = futures_util::stream::iter(0..leases)
            .map(|nth| take(store.clone(), keeper.clone(), timing, nth))
            .buffer_unordered(AT_ONCE);
        let kept: Vec<Kept> = asked.collect().await;
        let rate = leases as f64 / clock::boot().since(begun).as_secs_f64();
        holders.push((server, kept, rate));
    }
    tokio::time::sleep(timing.renew_every * SETTLING).await;
    let before: Vec<Duration> = servers.iter().map(Server::cpu).collect();
    let at = clock::boot();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let lasted = clock::boot().since(at).as_secs_f64();
    let shares = servers.iter().zip(before).map(|(server, before)| {
        (server.kind, (server.cpu() - before).as_secs_f64() / lasted * 100.0)
    });
    let what = format!("{leases} leases of 30 s, server, % of a core");
    sheet.row(&what, Bound::Most(10.0, 10.0), 1, shares.collect());
    let lost = holders.iter().map(|(server, kept, _)| {
        (server.kind, kept.iter().filter(|one| one.lease.is_lost()).count() as f64)
    });
    sheet.row(&format!("{leases} leases of 30 s, lost"), Bound::Most(0.0, 0.0), 0, lost.collect());
    let rates = holders.iter().map(|(server, _, rate)| (server.kind, *rate));
    sheet.row("leases taken, 64 at once, a second", Bound::None, 0, rates.collect());
}

async fn take(store: Store, keeper: Keeper, timing: Timing, nth: usize) -> Kept {
    let job = JobName::new(&format!("job-{nth}")).expect("a name");
    let node = NodeName::new("bench").expect("a name");
    let owner = Owner(format!("{:032x}/{nth}", rand::random::<u128>()));
    let ask = Acquire {
        job: job.clone(),
        owner: owner.clone(),
        node: node.clone(),
        ttl: timing.ttl,
        condition: Condition::None,
        seen: Token(0),
    };
    let sent = clock::boot();
    let Acquired::Granted { token, since } = store.acquire(&ask).await.expect("an answer") else {
        panic!("the lease {nth} is free");
    };
    let since = Began { boot: sent, at: Some(since) };
    keeper.keep(
        Renewal { job, owner, node, token, ttl: timing.ttl, since, run: None },
        timing,
        sent,
    )
}
