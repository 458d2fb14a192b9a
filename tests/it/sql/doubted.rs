//! Another process has noticed that the store may have forgotten leases, and wrote that down. A process that knows the job has not heard of it.

use soloist::store::leases::{Acquired, Leases as _};

use crate::postgres::{LONG, ask, granted, options};

/// `doubt` does, in the store at `url`, what the other process did.
pub(crate) async fn nothing_is_granted(url: &str, doubt: impl FnOnce()) {
    let store = soloist::stores::connect(url, &options()).await.expect("it opens");
    let mine = ask("node-a", LONG);
    granted(&store, &mine).await;
    store.release(&mine.job, &mine.owner).await.expect("an answer");
    doubt();
    let answer = store.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
}
