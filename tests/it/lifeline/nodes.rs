//! The watcher outlives nodes, and nodes outlive it.

use nix::sys::signal::{Signal, kill};
use serde_json::json;

use super::program::{Program, Site, span};
use crate::support::wait::{until, until_async, within};

#[tokio::test(flavor = "multi_thread")]
async fn a_death_while_no_node_is_there_is_kept_for_the_next() {
    let mut site = Site::new("");
    let (mut program, line, ..) = site.worker("ship").await;
    let watcher = site.watcher();
    site.node.kill();
    // It still answers, and says what it cannot know.
    let (mut other, its) = {
        let mut program = Program::start();
        let line = program.connect(&site.socket());
        (program, line)
    };
    let said = other.say(its, &json!({"auth": site.token}));
    assert_eq!(said["ok"], true, "{said}");
    assert!(said["why"].as_str().expect("why").contains("no node is here now"), "{said}");
    assert_eq!(program.say(line, &json!({"end": "other"}))["ok"], true);
    program.kill();
    site.restart();
    assert_eq!(site.watcher(), watcher, "the next node has taken it over");
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_begins_while_no_node_is_there_is_killed_in_time_and_given_back_once_it_was_checked()
 {
    let mut site = Site::new("");
    let (mut program, line) = site.program();
    let grant = site.acquire("ship", "one").await;
    site.node.kill();
    let now = program.say(line, &json!({"end": "x"}))["now_ns"].as_u64().expect("a time");
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    let said = program.say(line, &under);
    assert_eq!((&said["ok"], &said["release"]), (&true.into(), &false.into()), "{said}");
    assert!(said["kill_ns"].is_u64() && said["why"].is_string(), "{said}");
    site.restart();
    until_async("it was checked", async || {
        (program.say(line, &under)["release"] == true).then_some(())
    })
    .await;
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_paused_costs_an_answer_less_than_a_second() {
    let site = Site::new("");
    let (mut program, line, grant, said) = site.worker("ship").await;
    site.node.signal(Signal::SIGSTOP);
    let mut other = Program::start();
    let its = other.connect(&site.socket());
    let begun = soloist::clock::boot();
    let answer = other.say(its, &json!({"auth": site.token}));
    let took = soloist::clock::boot().since(begun);
    crate::support::machine::in_time(took.as_millis() < 1_000, || format!("{took:?}"));
    assert!(answer["why"].as_str().expect("why").contains("does not answer"), "{answer}");
    // From memory, at once.
    let until = said["now_ns"].as_u64().expect("a time") + span(&grant);
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": until});
    assert_eq!(program.say(line, &under)["release"], true);
    program.kill();
    site.node.signal(Signal::SIGCONT);
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_watcher_is_replaced_and_a_removed_socket_comes_back() {
    let site = Site::new("");
    let (mut program, line, grant, _) = site.worker("ship").await;
    let watcher = site.watcher();
    kill(watcher, Signal::SIGKILL).expect("our own");
    assert_eq!(program.tell(&json!({"line": line, "read": true})), "end");
    until("another watcher is there", || site.listener().filter(|other| *other != watcher));
    site.until_watched();
    assert!(
        program.lives() && site.held("ship").await.is_some(),
        "a lost watch gives nothing back"
    );
    std::fs::remove_file(site.socket()).expect("it is there");
    site.until_watched();
    let line = program.connect(&site.socket());
    assert_eq!(program.say(line, &json!({"auth": site.token}))["ok"], true);
    let now = program.say(line, &json!({"end": "x"}))["now_ns"].as_u64().expect("a time");
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": now + span(&grant)});
    assert_eq!(program.say(line, &under)["release"], true);
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_nodes_with_one_socket_the_second_works_without() {
    let mut site = Site::new("");
    let second = site.ground.start("node-b");
    let api = second.api(&site.token);
    let watched = async |name: &str| {
        let nodes = api.get("/api/v1/nodes").await;
        let nodes = nodes["nodes"].as_array().expect("nodes").clone();
        nodes.into_iter().find(|node| node["name"] == name).map(|node| node["watched"].clone())
    };
    until_async("both are there", async || {
        (watched("node-a").await? == 0 && watched("node-b").await?.is_null()).then_some(())
    })
    .await;
    let (mut program, ..) = site.worker("ship").await;
    // The second takes it when the first is gone, with what the first knew.
    site.node.kill();
    until_async("the second has taken it", async || (watched("node-b").await? == 1).then_some(()))
        .await;
    program.kill();
    until_async("it is given back", async || {
        let list = api.get("/api/v1/leases").await;
        list["leases"].as_array().expect("leases").is_empty().then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_that_nobody_needs_ends_and_takes_its_file_along() {
    let mut site = Site::new("");
    let watcher = site.watcher();
    let (program, _) = site.program();
    assert_eq!(site.node.terminate(), Some(0));
    let gone = || (!std::path::Path::new(&format!("/proc/{watcher}")).exists()).then_some(());
    // The node was its parent, and reaps it no more: who is left is a zombie of this process's, or gone.
    let over = || gone().or_else(|| (!site.socket().exists()).then_some(()));
    assert!(within(std::time::Duration::from_secs(1), over).is_none(), "a program is there");
    drop(program);
    until("it ends", over);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_ends_in_order_leaves_its_programs_watched() {
    let mut site = Site::new("");
    let (mut program, line, grant, said) = site.worker("ship").await;
    assert_eq!(site.node.terminate(), Some(0));
    assert!(program.lives());
    let until = said["now_ns"].as_u64().expect("a time") + span(&grant);
    let under = json!({"under": "ship", "secret": grant["secret"], "until_ns": until});
    assert_eq!(program.say(line, &under)["release"], true);
    site.restart();
    assert!(site.held("ship").await.is_some());
    program.kill();
    site.until_free("ship").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_whether_a_program_is_watched() {
    let mut site = Site::new("");
    let doctor = |words: &[&str]| {
        let output = site.ground.run(&[&["doctor"], words].concat());
        (output.status.success(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let path = site.socket();
    let here = path.to_str().expect("UTF-8");
    let (good, said) = doctor(&["--lifeline", here]);
    assert!(good && said.contains("a program of this user is watched"), "{said}");
    let (_, said) = doctor(&[]);
    assert!(said.contains("programs are watched at"), "{said}");
    let (good, said) = doctor(&["--lifeline", &format!("{here}.not")]);
    assert!(
        !good && said.contains("is not watched") && said.contains("soloist-programs"),
        "{said}"
    );
    // As a program's user, who can read no configuration.
    let output = std::process::Command::new(crate::support::node::SOLOIST)
        .args(["doctor", "--lifeline", here])
        .current_dir("/")
        .env_clear()
        .output()
        .expect("soloist starts");
    assert!(output.status.success(), "{output:?}");
    let (mut program, _) = site.program();
    site.node.kill();
    let said = site.ground.run(&["doctor", "--lifeline", here]).stdout;
    assert!(String::from_utf8_lossy(&said).contains("no node is there now"));
    let said = site.ground.run(&["doctor"]).stdout;
    assert!(String::from_utf8_lossy(&said).contains("waits for a node"));
    program.kill();
    site.restart();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watcher_whose_place_is_anothers_lets_its_programs_go_there() {
    let site = Site::new("");
    let (mut program, line, ..) = site.worker("ship").await;
    std::fs::remove_file(site.socket()).expect("it is there");
    let other = std::os::unix::net::UnixListener::bind(site.socket()).expect("its place is free");
    assert_eq!(program.tell(&json!({"line": line, "read": true})), "end");
    assert!(program.lives(), "a lost watch kills nobody");
    drop(other);
    // Nobody listens behind the file any more: the node's next watcher takes the place.
    site.until_watched();
}
