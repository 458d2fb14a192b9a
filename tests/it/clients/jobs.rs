//! Jobs that a program runs: switched from the page, with progress, output and history like any other.

use super::driver::{Driver, Language};
use super::witness::Acts;
use crate::support::api::{Api, Live};
use crate::support::machine::judged;
use crate::support::node::{Ground, Node};

judged! {
    a_job_runs_in_a_program_while_somebody_wants_it
    work_that_sleeps_is_woken_when_it_must_end
    work_that_ignores_the_switch_ends_its_process_before_the_job_is_off
}

const JOB: &str = "outbound";
const DEFINITION: &str = "[[job]]\nname = \"outbound\"\nrunner = \"external\"\nstop_grace = \"1s\"\nlease_ttl = \"2s\"\nmin_uptime = \"100ms\"\n";

/// A node, who watches the job there, and a program that asks for it.
struct Scene {
    client: Driver,
    live: Live,
    api: Api,
    acts: Acts,
    _node: Node,
    _ground: Ground,
}

impl Scene {
    async fn new(language: Language, mode: &str) -> Self {
        let ground = Ground::new("sqlite:soloist.db", DEFINITION);
        ground.add_user("li", "operator");
        let token = ground.token("li");
        let node = ground.start("node-a");
        let api = node.api(&token);
        let live = api.live().await;
        let acts = Acts::of(&ground, JOB);
        let client = Driver::start(language, "lease", &[&node.url], &token, JOB, acts.file(), mode);
        Self { client, live, api, acts, _node: node, _ground: ground }
    }
}

async fn a_job_runs_in_a_program_while_somebody_wants_it() {
    for language in Language::ALL {
        let Scene { client, live, api, acts, .. } = &mut Scene::new(language, "polite").await;
        api.switch(JOB, true).await;
        let start = acts.until_works(client.id());
        let far = live
            .until(JOB, "its progress is seen", |job| {
                job["run"]["progress"]["done"].as_u64() > Some(3)
            })
            .await;
        assert_eq!(far["lease"]["token"], start.token, "{far}");
        let holder = format!("{}-{}", language.word(), client.id());
        assert_eq!(far["lease"]["node"], holder, "{far}");
        api.switch(JOB, false).await;
        live.until_state(JOB, "off").await;
        let count = acts.all().len();
        let runs = api.runs(JOB).await;
        assert_eq!(
            (&runs[0]["token"], runs[0]["end"].as_str()),
            (&start.token.into(), Some("stopped")),
            "{runs:?}"
        );
        let log = api.get("/api/v1/jobs/outbound/log").await.to_string();
        assert!(log.contains("this is step 3"), "{language:?}: {log}");
        assert_eq!(acts.all().len(), count, "nothing is done once it is off");
        // On again: the same program, another run.
        api.switch(JOB, true).await;
        acts.until("it runs again", count, |act| act.token > start.token);
        let said = client.close();
        assert!(
            said.contains("ends: off") && said.contains("ends: closed"),
            "{language:?}: {said}"
        );
        acts.judge();
    }
}

/// Work that looks at nothing is told: by an interrupt in Java, an event in Python, a signal in Node.
async fn work_that_sleeps_is_woken_when_it_must_end() {
    for language in Language::ALL {
        let Scene { client, live, api, acts, .. } = &mut Scene::new(language, "asleep").await;
        api.switch(JOB, true).await;
        live.until_state(JOB, "running").await;
        acts.until_works(client.id());
        api.switch(JOB, false).await;
        live.until_state(JOB, "off").await;
        // Its process lives: else it is not closed, but has failed.
        let said = client.close();
        assert!(said.contains("ends: off"), "{language:?}: {said}");
    }
}

async fn work_that_ignores_the_switch_ends_its_process_before_the_job_is_off() {
    for language in Language::ALL {
        let Scene { client, live, api, acts, .. } = &mut Scene::new(language, "hog").await;
        api.switch(JOB, true).await;
        acts.until_works(client.id());
        api.switch(JOB, false).await;
        let (status, said) = client.wait();
        let count = acts.all().len();
        assert_eq!(status.code(), Some(76), "{language:?}: {said}");
        assert!(
            said.contains("): off, and the work has not ended in time"),
            "{language:?}: {said}"
        );
        live.until_state(JOB, "off").await;
        assert_eq!(acts.all().len(), count);
        let before_end: Vec<_> = live.seen.iter().filter(|(_, state)| state == "off").collect();
        assert!(!before_end.is_empty());
    }
}
