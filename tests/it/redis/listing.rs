//! What is held, among many keys and beside those of others: found by SCAN, never by KEYS.

use soloist::domain::name::JobName;
use soloist::store::leases::{Acquire, Leases as _};
use soloist::store::{Options, Store};

use super::{TTL, ask, granted};
use crate::support::redis::RedisServer;

fn ask_for(name: &str) -> Acquire {
    Acquire { job: JobName::new(name).expect("a good name"), ..ask("node-a", TTL * 100) }
}

async fn listed(store: &Store) -> Vec<String> {
    let held = store.held().await.expect("an answer");
    held.into_iter().map(|held| held.name.to_string()).collect()
}

#[tokio::test]
async fn among_many_keys_every_lease_of_the_own_prefix_is_found_and_no_other() {
    let server = RedisServer::start(&[]);
    let with = |prefix: &str| Options { prefix: prefix.to_owned(), ..Options::default() };
    let (ours, hostile) = (with("soloist:"), with("soloist:[ab]*:"));
    let [ours, hostile] = [
        soloist::stores::connect(&server.url(), &ours).await.expect("it connects"),
        soloist::stores::connect(&server.url(), &hostile).await.expect("it connects"),
    ];
    let fill = "for i = 1, 5000 do redis.call('SET', 'soloist:{job-' .. i .. '}:record', i) end";
    server.run::<()>(&["EVAL", fill, "0"]);
    for name in ["outbound", "deploy", "a.b_c-9"] {
        granted(&ours, &ask_for(name)).await;
    }
    // The second grants nothing for a while: its epoch is new on a server that is used.
    let lease = r#"{"token":7,"run":null,"owner":"o","node":"n","ttl":9000,"since":1}"#;
    server.run::<()>(&["SET", "soloist:[ab]*:{hidden}:lease", lease]);
    for other in
        ["soloist:{Not A Name}:lease", "soloist:{x}:y:lease", "soloist:lease", "a:{x}:lease"]
    {
        server.run::<()>(&["SET", other, "of somebody else"]);
    }
    assert_eq!(listed(&ours).await, ["a.b_c-9", "deploy", "outbound"]);
    assert_eq!(listed(&hostile).await, ["hidden"], "its prefix is no pattern");
    let counted: String = server.run(&["INFO", "commandstats"]);
    assert!(counted.contains("cmdstat_scan:") && !counted.contains("cmdstat_keys:"), "{counted}");
}
