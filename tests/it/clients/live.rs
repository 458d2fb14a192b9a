//! The live stream by the client libraries: what changes is seen, also after the node that told it is gone.

use super::driver::{Driver, Language};
use super::witness::Acts;
use crate::support::machine::judged;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::witness::{job, place};

judged! { who_follows_sees_every_change_though_a_node_dies }

const JOB: &str = "outbound";

async fn who_follows_sees_every_change_though_a_node_dies() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &job(JOB, "beat", ""));
    place(&ground);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let (mut a, b) = (ground.start("node-a"), ground.start("node-b"));
    let seen =
        Language::ALL.map(|language| Acts::of(&ground, &format!("seen-by-{}", language.word())));
    let mut followers = Vec::new();
    for (language, seen) in Language::ALL.into_iter().zip(&seen) {
        followers.push(Driver::start(
            language,
            "follow",
            &[&a.url, &b.url],
            &token,
            JOB,
            seen.file(),
            "ask",
        ));
    }
    let all_see = |state: &str, after: &[usize]| {
        for (acts, after) in seen.iter().zip(after) {
            acts.until(&format!("{state} is seen"), *after, |act| act.word == state);
        }
    };
    all_see("off", &[0; 3]);
    b.api(&token).switch(JOB, true).await;
    all_see("running", &[0; 3]);
    a.kill();
    let before: Vec<usize> = seen.iter().map(|acts| acts.all().len()).collect();
    b.api(&token).switch(JOB, false).await;
    all_see("off", &before);
    for follower in &mut followers {
        follower.close();
    }
}
