//! The live stream by the client libraries: what changes is seen, also after the node that told it is gone.

use super::driver::{Driver, Language};
use super::proxy::{Proxy, Way};
use super::witness::Acts;
use crate::support::machine::judged;
use crate::support::node::Ground;
use crate::support::redis::RedisServer;
use crate::support::witness::{job, place};

judged! {
    who_follows_sees_every_change_though_a_node_dies
    who_follows_goes_on_to_the_next_node_whatever_a_gateway_says
}

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

/// Lines, frames and errors without end. Two of three addresses are the gateway's, so that nearly all begin at it.
async fn who_follows_goes_on_to_the_next_node_whatever_a_gateway_says() {
    let redis = RedisServer::start(&[]);
    let ground = Ground::new(&redis.url(), &job(JOB, "beat", ""));
    place(&ground);
    ground.add_user("li", "operator");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let words: &str = "words ".repeat(10_000).leak();
    let line: &str = format!("data:{words}\n").leak();
    let ways = [
        Way::Pours("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata:", words, 0),
        Way::Pours("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", line, 0),
        Way::Pours("HTTP/1.1 503 No\r\nContent-Length: 100000000000\r\n\r\n", words, 0),
        Way::Pours("HTTP/1.1 503 No\r\nContent-Length: 100000\r\n\r\n", "x", 100),
    ];
    for (nth, way) in ways.into_iter().enumerate() {
        let gateway = Proxy::to(&node.url);
        gateway.set(way);
        let followers = Language::ALL.map(|language| {
            let seen = Acts::of(&ground, &format!("{}-{nth}", language.word()));
            let addresses = [&*gateway.url, &gateway.url, &node.url];
            (Driver::start(language, "follow", &addresses, &token, JOB, seen.file(), "ask"), seen)
        });
        for (mut follower, seen) in followers {
            let language = follower.language;
            seen.until(&format!("{language:?} sees it beside {nth}"), 0, |act| act.word == "off");
            let took = follower.peak();
            assert!(took < 400, "{language:?} took {took} MiB beside {nth}");
            follower.close();
        }
    }
}
