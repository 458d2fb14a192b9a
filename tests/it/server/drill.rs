//! `drill JOB --server`: the node that is asked may be the one that dies.

use super::Away;
use crate::lifecycle::{JOB, Pair};
use crate::support::wait::{PATIENCE, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_by_nodes_kills_the_holder_and_prints_how_long_the_take_over_took() {
    // Far longer than any test: whoever waited for it would fail.
    let mut pair = Pair::start("beat", "lease_ttl = \"60s\"");
    pair.ground.add_user("ada", "admin");
    pair.li().switch(JOB, true).await;
    let first = pair.witness.until_started(1);
    let token = pair.ground.token("ada");
    // The holder is asked first: it dies of what it was asked for.
    let is_a = pair.a.name == first.node;
    let asked = if is_a { [&pair.a, &pair.b] } else { [&pair.b, &pair.a] };
    let ada = Away::new(&asked, &token);
    let output = until("it is there to be crashed", || {
        let output = ada.run(&["drill", JOB, "--reason", "exercise"]);
        (output.status.code() != Some(4)).then_some(output)
    });
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    let err = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(err.contains(&format!("the node process {} is killed with kill -9", first.node)));
    assert!(!err.contains(&token) && !out.contains(&token));
    let second = pair.witness.until_started(2);
    for step in [
        format!("ada ordered {} to die (token {})", first.node, first.token),
        format!("{} acquired the lease", second.node),
        format!("{} started the script", second.node),
    ] {
        assert!(out.contains(&step), "{step} is missing: {out}");
    }
    let took = out.lines().find_map(|line| line.strip_prefix("Taken over in "));
    let took = took.and_then(|rest| rest.split(' ').next()).expect("how long it took");
    let took: u128 = took.parse().expect("milliseconds");
    assert!(took > 0 && took < PATIENCE.as_millis(), "{out}");
    assert_ne!(first.node, second.node);
    let audit = pair.ground.must(&["audit", "--target", JOB, "--json"]);
    assert!(audit.contains(": exercise\""), "why it was ordered is in the audit: {audit}");
    let dead = if is_a { &mut pair.a } else { &mut pair.b };
    assert_eq!(dead.wait(), None, "killed by a signal, no exit code");
    pair.witness.check();
}
