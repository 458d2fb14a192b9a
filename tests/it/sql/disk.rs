//! A server whose disk is full.

use soloist::domain::dispatch::Rules;
use soloist::domain::name::SourceName;
use soloist::store::StoreError;
use soloist::store::dispatch::{Dispatch as _, NewTask, Sources as _};
use soloist::store::leases::{Acquired, Leases as _, Renewed};

use crate::postgres::{LONG, ask, granted, options, renew};
use crate::support::small_disk::SmallDisk;
use crate::support::wait::until_async;

/// Of each step so many, of which all or none are there.
const AT_ONCE: usize = 20;

/// Steps fail in words and are done wholly or not at all; with room again, after `mend`, everything goes on, and the lease is still held.
pub(crate) async fn a_full_disk_fails_in_words(url: &str, disk: &SmallDisk, mend: impl FnOnce()) {
    let store = soloist::stores::connect(url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    let token = granted(&store, &mine).await;
    let source = SourceName::new("mail").expect("a good name");
    store.put_source(&source, &Rules::default()).await.expect("a source");
    disk.fill();
    let mut done = 0;
    let failed = loop {
        match store.put_tasks(&tasks(&source, done)).await {
            Ok(_) => done += 1,
            Err(error) => break error,
        }
        assert!(done < 200, "the disk is not full");
    };
    assert!(matches!(failed, StoreError::Unavailable(_)), "{failed:?}");
    eprintln!("after {done} steps: {failed}");
    disk.make_room();
    mend();
    let kept = until_async("a renewal", async || {
        let kept = renew(&store, &mine, token).await;
        matches!(kept, Renewed::Kept { .. }).then_some(())
    });
    kept.await;
    let other = soloist::stores::connect(url, &options()).await.expect("it opens");
    let answer = other.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    let views = other.sources(Some(&source)).await.expect("an answer");
    let there = usize::try_from(views[0].ready).expect("few");
    // Whether the one that failed was done is not known.
    let steps = [done, done + 1].map(|steps| steps * AT_ONCE);
    assert!(steps.contains(&there), "{there} tasks of {done} steps that were answered");
    store.put_tasks(&tasks(&source, done + 1)).await.expect("it goes on");
}

fn tasks(source: &SourceName, step: usize) -> Vec<NewTask> {
    let one = |nth| NewTask {
        key: format!("task {step} {nth}"),
        source: source.clone(),
        // What cannot be pressed.
        payload: (0..1_000).map(|_| format!("{:032x}", rand::random::<u128>())).collect(),
        priority: 0,
        at: None,
        every: None,
    };
    (0..AT_ONCE).map(one).collect()
}
