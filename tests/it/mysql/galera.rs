//! Nodes of a Galera cluster, two of them on this machine: one writer is a store, two are none.

use super::*;
use crate::sql::doctor::says;

#[tokio::test(flavor = "multi_thread")]
async fn of_two_galera_nodes_one_is_a_store_and_whoever_names_the_other_is_granted_nothing() {
    let (first, there) = MariaServer::start_in_galera(None);
    let (second, _) = MariaServer::start_in_galera(Some(there));
    assert_eq!(second.sql("SHOW STATUS LIKE 'wsrep_cluster_size'"), "wsrep_cluster_size\t2");
    let url = first.database();
    let (holder, beside) = (
        soloist::stores::connect(&url, &options()).await.expect("it opens"),
        soloist::stores::connect(&url, &options()).await.expect("it opens"),
    );
    let mine = ask("node-a", LONG);
    let token = granted(&holder, &mine).await;
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Kept { .. }));
    let answer = beside.acquire(&ask("node-b", LONG)).await.expect("an answer");
    assert!(matches!(answer, Acquired::Busy { .. }), "{answer:?}");
    says(&url, "warn", "all nodes of Soloist must name this one");
    let elsewhere = second.url_of(name_of(&url));
    let stranger = until_async("it is there, too", async || {
        soloist::stores::connect(&elsewhere, &options()).await.ok()
    })
    .await;
    let mut free = ask("node-c", LONG);
    free.job = "inbound".parse().expect("a good name");
    for other in [&free, &ask("node-c", LONG)] {
        let answer = stranger.acquire(other).await.expect("an answer");
        assert!(!matches!(answer, Acquired::Granted { .. }), "{answer:?}");
    }
    let doubted = format!(
        "SELECT count(*) FROM {}.epoch WHERE server LIKE '%:{}:%'",
        name_of(&url),
        second.port()
    );
    until_async("the first node has heard of it", async || {
        (first.sql(&doubted) == "1").then_some(())
    })
    .await;
    // It has doubted the store: now the first one does as well, and grants nothing new; who holds goes on.
    let answer = beside.acquire(&free).await.expect("an answer");
    assert!(matches!(answer, Acquired::Quarantined { .. }), "{answer:?}");
    assert!(matches!(renew(&holder, &mine, token).await, Renewed::Kept { .. }));
}
