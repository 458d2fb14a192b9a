//! Laws of the order of runs: by the store's clock, whatever the clocks of nodes say.
//!
//! A run id carries the wall clock of the node that made it; that clock may be hours off.

use soloist::domain::name::RunId;
use soloist::store::journal::{Journal, RUNS_KEPT, RunEntry, Then};

use super::*;

/// Nodes, and how many minutes their clocks are ahead.
const NODES: [(&str, i64); 3] = [("node-a", 0), ("node-ahead", 60), ("node-behind", -120)];

/// A run id as `node-a` and the others would make it while the store's clock shows `now_ms`.
fn minted(nth: usize, now_ms: i64) -> RunId {
    let ahead = NODES[nth % NODES.len()].1;
    let at = u64::try_from(now_ms + ahead * 60_000).expect("after 1970");
    RunId(ulid::Ulid::from_parts(at, u128::try_from(nth).expect("small")).to_string())
}

fn ids(page: &[RunEntry]) -> Vec<RunId> {
    page.iter().map(|run| run.id.clone()).collect()
}

pub(super) async fn runs_are_in_the_order_of_the_store_whatever_the_clocks_of_nodes_say(
    fresh: Fresh,
) {
    let store = fresh.connect().await;
    let mut newest_first = Vec::new();
    for nth in 0..13 {
        let ask = ask("outbound", NODES[nth % NODES.len()].0);
        let token = granted(&store, &ask).await;
        let now = store.snapshot(&[]).await.expect("a snapshot").at;
        let run = Started { run: minted(nth, now.0), ..started(&store, &ask, token) };
        // Some starts are never reported, and the last run goes on.
        if nth % 4 != 1 {
            store.record_started(&run).await.expect("started");
        }
        if nth < 12 {
            let end = ended(&ask, token, &run.run, Then::Nothing);
            store.record_ended(&end).await.expect("ended");
            store.record_ended(&end).await.expect("the same end again is harmless");
        }
        newest_first.insert(0, run.run);
    }
    assert!(!newest_first.is_sorted_by(|newer, older| newer > older), "ids that tell the order");

    let all = store.runs(&job("outbound"), None, 100).await.expect("runs");
    assert_eq!(ids(&all), newest_first);
    assert!(all.is_sorted_by(|newer, older| newer.started >= older.started), "{all:?}");
    for size in [1, 4, 5] {
        let mut paged = store.runs(&job("outbound"), None, size).await.expect("runs");
        loop {
            let before = paged.last().map(|run| run.id.clone());
            let page = store.runs(&job("outbound"), before.as_ref(), size).await.expect("runs");
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        assert_eq!(ids(&paged), newest_first, "in pages of {size}");
    }
    let unknown = RunId(unique("nobody"));
    assert_eq!(store.runs(&job("outbound"), Some(&unknown), 9).await.expect("runs"), []);
}

pub(super) async fn the_runs_that_the_store_saw_first_are_forgotten_first(fresh: Fresh) {
    let store = fresh.connect().await;
    let ask = ask("outbound", "node-a");
    let (first, surplus) = (granted(&store, &ask).await, 20);
    let mut newest_first = Vec::new();
    for nth in 0..RUNS_KEPT + surplus {
        // An end without a reported start is enough for the history; each has a newer token.
        let token = Token(first.0 + u64::try_from(nth).expect("small"));
        let run = minted(nth, 1_800_000_000_000 + i64::try_from(nth).expect("small") * 5_000);
        let end = ended(&ask, token, &run, Then::Nothing);
        store.record_ended(&end).await.expect("ended");
        newest_first.insert(0, run);
    }
    newest_first.truncate(RUNS_KEPT);
    let mut kept = ids(&store.runs(&ask.job, None, RUNS_KEPT * 2).await.expect("runs"));
    kept.truncate(RUNS_KEPT);
    let lost: Vec<_> = newest_first.iter().filter(|id| !kept.contains(id)).collect();
    assert!(lost.is_empty(), "{} newer ones went before older ones: {lost:?}", lost.len());
    assert_eq!(kept, newest_first);
}
