//! The wall clock of the server jumps: never a second holder, and no lease that lasts for an hour.

use std::path::PathBuf;
use std::time::Duration;

use soloist::clock;
use soloist::domain::lease::{Timing, Token};
use soloist::domain::time::Began;
use soloist::feed::{Feed, Followed};
use soloist::store::Store;
use soloist::store::jobs::Jobs;
use soloist::store::leases::{Acquire, Acquired, Leases, Renewed};
use tempfile::TempDir;

use super::{TTL, ask, connect, granted, granted_in_the_end, job, renew_one, renewal};
use crate::support::machine::{holds, judged, within};
use crate::support::redis::RedisServer;

judged! {
    half_a_minute_ahead_takes_nothing_from_a_living_holder
    half_a_minute_ahead_gives_a_dead_holders_lease_to_nobody_before_its_time
    an_hour_back_takes_nothing_from_a_living_holder
    an_hour_back_does_not_keep_a_dead_holders_lease_for_an_hour
    tokens_grow_when_the_store_is_emptied_and_its_clock_set_back_at_once
    a_feed_goes_by_the_clock_that_was_set_back
}

/// A library that sets the clock of the server it is loaded into ahead by what a file says, in milliseconds.
const CLOCK_SHIM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>
int gettimeofday(struct timeval *tv, void *tz) {
    long long ahead = 0;
    FILE *file = fopen(getenv("CLOCK_AHEAD"), "r");
    if (file) { if (fscanf(file, "%lld", &ahead) != 1) ahead = 0; fclose(file); }
    syscall(SYS_gettimeofday, tv, tz);
    long long us = tv->tv_sec * 1000000LL + tv->tv_usec + ahead * 1000;
    tv->tv_sec = us / 1000000; tv->tv_usec = us % 1000000;
    return 0;
}
"#;

const AN_HOUR_BACK: i64 = -3_600_000;
const HALF_A_MINUTE: i64 = 30_000;

/// A server whose clock can be set, a holder, and another who has looked at the store.
struct Jumping {
    server: RedisServer,
    directory: TempDir,
    a: Store,
    b: Store,
    asked: Acquire,
    token: Token,
}

impl Jumping {
    async fn start() -> Self {
        let directory = TempDir::new().expect("a directory");
        let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
        std::fs::write(path("shim.c"), CLOCK_SHIM).expect("written");
        let built = std::process::Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o", &path("shim.so"), &path("shim.c")])
            .status()
            .expect("cc, which Rust itself links with");
        assert!(built.success());
        let environment = [("LD_PRELOAD", path("shim.so")), ("CLOCK_AHEAD", path("ahead"))];
        let environment = environment.each_ref().map(|(name, value)| (*name, value.as_str()));
        let server = RedisServer::start_in(&[], &environment);
        let (a, b) = (connect(&server).await, connect(&server).await);
        let asked = ask("node-a", TTL);
        let token = granted(&a, &asked).await;
        b.observe(&[job()]).await.expect("an answer");
        Self { server, directory, a, b, asked, token }
    }

    /// Sets the clock `ahead` milliseconds ahead of the true time.
    async fn jump(&self, ahead: i64) {
        let place: PathBuf = self.directory.path().join("ahead");
        let fresh = self.directory.path().join("ahead.new");
        std::fs::write(&fresh, ahead.to_string()).expect("written");
        std::fs::rename(fresh, place).expect("moved");
        // Who asks looks at the clock first, unless it has done so in the last 20 ms.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }

    /// The holder lives: it keeps its lease for two of them and more, and then hands it over under a greater token.
    async fn the_living_holder_goes_on(&self) {
        let (mine, other) = (renewal(&self.asked, self.token), ask("node-b", TTL));
        let begun = clock::boot();
        while clock::boot().since(begun) < TTL * 2 {
            assert!(matches!(renew_one(&self.a, &mine).await, Renewed::Kept { .. }));
            let answer = self.b.acquire(&other).await.expect("an answer");
            assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        self.a.release(&job(), &self.asked.owner).await.expect("given back");
        let (newer, _) = granted_in_the_end(&self.b, &other).await;
        holds(newer > self.token, || "a token is greater than every earlier one".to_owned());
    }

    /// The holder was silent from `since`: its lease is waited for, and not for much longer.
    async fn the_silent_holder_is_waited_for(&self, since: soloist::domain::time::Boot) {
        let (newer, _) = granted_in_the_end(&self.b, &ask("node-b", TTL)).await;
        let waited = clock::boot().since(since);
        holds(newer > self.token, || "a token is greater than every earlier one".to_owned());
        holds(waited >= TTL - Duration::from_millis(5), || format!("granted after {waited:?}"));
        within(waited, TTL * 3, "the next is granted the lease");
        assert_eq!(renew_one(&self.a, &renewal(&self.asked, self.token)).await, Renewed::Lost);
    }
}

async fn half_a_minute_ahead_takes_nothing_from_a_living_holder() {
    let world = Jumping::start().await;
    world.jump(HALF_A_MINUTE).await;
    let answer = world.b.acquire(&ask("node-b", TTL)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    assert_eq!(world.server.run::<u8>(&["EXISTS", "soloist:{outbound}:lease"]), 0);
    let mine = renewal(&world.asked, world.token);
    // It ran out, as the clock went; the store knows it still.
    let renewed = renew_one(&world.a, &mine).await;
    assert_eq!(renewed, Renewed::Kept { margin: Duration::ZERO, forgot: false });
    world.the_living_holder_goes_on().await;
}

async fn half_a_minute_ahead_gives_a_dead_holders_lease_to_nobody_before_its_time() {
    let world = Jumping::start().await;
    let mine = renewal(&world.asked, world.token);
    assert!(matches!(renew_one(&world.a, &mine).await, Renewed::Kept { .. }));
    let silent = clock::boot();
    world.jump(HALF_A_MINUTE).await;
    world.the_silent_holder_is_waited_for(silent).await;
}

async fn an_hour_back_takes_nothing_from_a_living_holder() {
    let world = Jumping::start().await;
    world.jump(AN_HOUR_BACK).await;
    world.the_living_holder_goes_on().await;
}

async fn an_hour_back_does_not_keep_a_dead_holders_lease_for_an_hour() {
    let world = Jumping::start().await;
    let mine = renewal(&world.asked, world.token);
    assert!(matches!(renew_one(&world.a, &mine).await, Renewed::Kept { .. }));
    let silent = clock::boot();
    world.jump(AN_HOUR_BACK).await;
    world.the_silent_holder_is_waited_for(silent).await;
}

async fn tokens_grow_when_the_store_is_emptied_and_its_clock_set_back_at_once() {
    let world = Jumping::start().await;
    world.server.run::<()>(&["FLUSHALL"]);
    world.jump(AN_HOUR_BACK).await;
    let mut other = ask("node-b", TTL);
    // As every node does that has read a record of the job.
    other.seen = world.token;
    let (newer, _) = granted_in_the_end(&world.b, &other).await;
    assert!(newer > world.token, "{newer} after {}", world.token);
}

/// Nobody writes the job, so nothing but the clock is news.
async fn a_feed_goes_by_the_clock_that_was_set_back() {
    let world = Jumping::start().await;
    let followed = Followed {
        job: job(),
        timing: Timing::from_ttl(Duration::from_secs(5)).expect("safe"),
        min_uptime: Duration::ZERO,
        takes_turns: false,
        external: false,
        schedule: None,
    };
    let feed = Feed::start(world.b.clone(), vec![followed]).await;
    world.jump(AN_HOUR_BACK).await;
    let now = async || world.a.snapshot(&[]).await.expect("an answer").at;
    crate::support::wait::until_async("the feed knows the clock", async || {
        let known = feed.job(&job())?.store_now(clock::boot());
        (known.apart(now().await) < Began::CLOCKS_AGREE).then_some(())
    })
    .await;
}
