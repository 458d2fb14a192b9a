//! Who comes late: a writer whose lease was taken meanwhile, and a guard on a machine that slept.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use soloist::clock::boot;
use soloist::domain::lease::{Timing, Token};
use soloist::domain::name::{JobName, NodeName, Owner, RunId};
use soloist::domain::time::{Began, Boot};
use soloist::guard::choice::Choice;
use soloist::runner::child::{Child, ChildEvent, Spec, Streams, Work};
use soloist::runner::entrusted::Entrusted;
use soloist::runner::program::Program;
use soloist::store::journal::{Journal as _, NewLine, Output, Stream};
use soloist::store::leases::{Leases as _, Renewal, Renewed};
use soloist::store::{Options as StoreOptions, StoreError};

use super::Scenario;
use crate::cluster::{Cluster, Options};
use crate::machine::holds;
use crate::node::SOLOIST;
use crate::witness::Mode;

const JOB_NAME: &str = "outbound";

fn in_a_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(work)
}

/// What a run of `old` still has to say after a newer one began: the store must refuse all of it.
pub(super) fn nothing_of_it_is_believed(cluster: &Cluster, old: u64) {
    let url = cluster.redis().now().url();
    in_a_runtime(async {
        let store =
            soloist::stores::connect(&url, &StoreOptions::default()).await.expect("the store");
        let (job, node) = (JOB_NAME.parse::<JobName>(), "node-a".parse::<NodeName>());
        let (job, node) = (job.expect("a name"), node.expect("a name"));
        let (token, ttl) = (Token(old), Duration::from_secs(2));
        let owner = Owner("late".to_owned());
        let since = Began::at_boot(boot());
        let renewal =
            Renewal { job: job.clone(), owner, node: node.clone(), token, ttl, since, run: None };
        let renewed = store.renew(&[renewal]).await.expect("an answer");
        holds(renewed == [Renewed::Lost], || "a stale token was renewed".to_owned());
        let lines = vec![NewLine { stream: Stream::Stdout, text: "too late".to_owned() }];
        let run = RunId("late".to_owned());
        let output = Output { job, token, run, node, lines, progress: None, heard: false };
        let written = store.record_output(&output).await;
        holds(matches!(written, Err(StoreError::Stale { .. })), || {
            format!("a stale token wrote: {written:?}")
        });
    });
}

/// A machine that sleeps for an hour between the grant and the start: CLOCK_BOOTTIME has gone on, CLOCK_MONOTONIC has
/// not. A time namespace (time_namespaces(7)) makes one of the other.
pub(super) const SUSPENDED_MACHINE: Scenario = Scenario {
    name: "suspended_machine",
    options: |_| Options::one(Mode::Plain),
    act: |cluster| {
        let status = Command::new("unshare")
            .args(["--time", "--boottime", "3600", "--fork", "true"])
            .stderr(Stdio::null())
            .status();
        if !status.is_ok_and(|status| status.success()) {
            println!("suspended_machine: NOT SHOWN HERE, this machine allows no time namespace");
            return vec![];
        }
        let begun = boot();
        let slept =
            in_a_runtime(after_an_hour(&cluster.directory, begun + Duration::from_secs(60)));
        holds(matches!(slept, ChildEvent::Failed { .. }), || {
            format!("started after its lease: {slept:?}")
        });
        let later = begun + Duration::from_secs(3_660);
        let awake = in_a_runtime(after_an_hour(&cluster.directory, later));
        assert!(matches!(awake, ChildEvent::Started { .. }), "{awake:?}");
        vec![]
    },
    limit: false,
};

/// The first word of a guard that wakes after an hour of sleep.
async fn after_an_hour(directory: &Path, deadline: Boot) -> ChildEvent {
    let sleeper = directory.join("sleeper");
    let text =
        format!("#!/bin/sh\nexec unshare --time --boottime 3600 --fork {} \"$@\"\n", SOLOIST);
    std::fs::write(&sleeper, text).expect("written");
    std::fs::set_permissions(&sleeper, PermissionsExt::from_mode(0o755)).expect("executable");
    let name = |text: &str| text.parse().expect("a name");
    let spec = Spec {
        program: Program {
            argv: vec!["true".into()],
            dir: directory.to_owned(),
            env: BTreeMap::new(),
            stop_grace: Duration::from_secs(1),
            node: name("sleeper"),
            store_url: "nowhere://127.0.0.1:1".to_owned(),
            server: None,
            prefix: "soloist:".to_owned(),
            containment: Choice::default(),
            entrusted: Entrusted::default(),
        },
        job: "sleeper".parse().expect("a name"),
        run: RunId("sleeper".to_owned()),
        token: Token(1),
        owner: Owner("sleeper".to_owned()),
        timing: Timing::from_ttl(Duration::from_secs(5)).expect("safe"),
        streams: Streams::Read,
        work: Work::Run,
    };
    let (_child, mut events) = Child::spawn_with(&sleeper, spec, deadline).expect("a guard");
    let first = tokio::time::timeout(Duration::from_secs(20), events.recv()).await;
    first.expect("in time").expect("a word")
}
