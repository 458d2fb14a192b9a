//! Laws of what all nodes remember of the last day of sources.

use std::collections::BTreeMap;

use soloist::domain::throughput::{Count, Counts, STEPS};
use soloist::store::throughput::{Past, Throughput};

use super::dispatch::source;
use super::*;

fn counts(finished: u64, failed: u64) -> Counts {
    [(source("shop"), Count { finished, failed })].into()
}

async fn past(store: &Store) -> Past {
    store.throughput().await.expect("an answer").expect("something was noted")
}

async fn note(store: &Store, step: i64, counted: &Counts) {
    store.note_throughput(step, counted).await.expect("the store answers");
}

pub(super) async fn a_quarter_that_is_over_is_written_once_by_whoever_is_first(fresh: Fresh) {
    let (store, other) = (fresh.connect().await, fresh.connect().await);
    assert_eq!(store.throughput().await.expect("an answer"), None);
    note(&store, 10, &counts(50, 2)).await;
    note(&other, 10, &counts(52, 2)).await;
    let first = past(&other).await;
    assert_eq!((first.mark.since, first.mark.until), (10, 10));
    assert_eq!((&first.mark.counted, &first.steps), (&counts(50, 2), &BTreeMap::new()));
    let (one, two) = (counts(53, 3), counts(54, 3));
    tokio::join!(note(&store, 11, &one), note(&other, 11, &two));
    let written = past(&store).await;
    assert_eq!((written.mark.since, written.mark.until), (10, 11));
    let added = written.mark.counted[&source("shop")].finished - 50;
    assert_eq!(written.steps, [(10, counts(added, 1))].into(), "one of both, whole");
    note(&other, 12, &written.mark.counted).await;
    assert_eq!(past(&store).await, written, "nothing was done, nothing is written");
}

pub(super) async fn a_day_of_quarters_is_kept(fresh: Fresh) {
    let store = fresh.connect().await;
    note(&store, 100, &counts(0, 0)).await;
    for nth in 1..=4_u64 {
        note(&store, 100 + i64::try_from(nth).expect("small"), &counts(nth, 0)).await;
    }
    assert_eq!(past(&store).await.steps.keys().copied().collect::<Vec<_>>(), [100, 101, 102, 103]);
    note(&store, 102 + STEPS, &counts(9, 0)).await;
    let kept = past(&store).await;
    assert_eq!(kept.steps.keys().copied().collect::<Vec<_>>(), [102, 103, 101 + STEPS]);
    assert_eq!(
        kept.steps[&(101 + STEPS)],
        counts(5, 0),
        "what nobody saw is told where it is seen"
    );
}
