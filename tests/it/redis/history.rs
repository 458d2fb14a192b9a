//! A history that an earlier version wrote, ordered by run id, is read and goes on in the store's order.

use soloist::domain::job::{Exit, RunEnd};
use soloist::domain::name::RunId;
use soloist::store::Store;
use soloist::store::journal::{Ended, Journal, Then};

use super::{TTL, ask, connect, granted, job};
use crate::support::redis::RedisServer;

const RUNS: &str = "soloist:{outbound}:runs";

async fn a_run(store: &Store, id: &str) {
    let asked = ask("node-a", TTL);
    let token = granted(store, &asked).await;
    let end = Ended {
        job: job(),
        owner: asked.owner,
        token,
        run: RunId(id.to_owned()),
        exit: Exit { code: Some(0), signal: None },
        end: RunEnd::Exited,
        processes_killed: 0,
        then: Then::Nothing,
        began: None,
    };
    store.record_ended(&end).await.expect("ended");
}

async fn ids(store: &Store, before: Option<&str>, limit: usize) -> Vec<String> {
    let before = before.map(|id| RunId(id.to_owned()));
    let page = store.runs(&job(), before.as_ref(), limit).await.expect("runs");
    page.into_iter().map(|run| run.id.0).collect()
}

/// As version 541e2c5 wrote it: all scores are 0.
fn as_it_was(server: &RedisServer) {
    let members: Vec<String> = server.run(&["ZRANGE", RUNS, "0", "-1"]);
    for member in &members {
        server.run::<u64>(&["ZADD", RUNS, "XX", "CH", "0", member]);
    }
    let sorted: Vec<String> = server.run(&["ZRANGE", RUNS, "-inf", "(1", "BYSCORE"]);
    assert_eq!(sorted.len(), members.len());
}

#[tokio::test]
async fn runs_that_were_kept_by_id_are_put_into_the_stores_order_when_they_are_read() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    for id in ["05", "09", "01", "07"] {
        a_run(&store, id).await;
    }
    as_it_was(&server);
    assert_eq!(ids(&store, None, 2).await, ["07", "01"]);
    assert_eq!(ids(&store, Some("01"), 9).await, ["09", "05"]);
}

#[tokio::test]
async fn runs_that_were_kept_by_id_are_put_into_the_stores_order_by_the_next_end() {
    let server = RedisServer::start(&[]);
    let store = connect(&server).await;
    for id in ["05", "09", "01"] {
        a_run(&store, id).await;
    }
    as_it_was(&server);
    a_run(&store, "03").await;
    let scores: Vec<String> = server.run(&["ZRANGE", RUNS, "-inf", "(1", "BYSCORE"]);
    assert_eq!(scores, [""; 0]);
    assert_eq!(ids(&store, None, 9).await, ["03", "01", "09", "05"]);
    // A node of the earlier version ends one in between.
    as_it_was(&server);
    assert_eq!(ids(&store, Some("03"), 1).await, ["01"]);
}
