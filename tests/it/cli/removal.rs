//! Removing from a shell: what is asked, what is refused without a terminal; and tokens that are bound to names.

use crate::support::node::Ground;

fn code_and_errors(ground: &Ground, args: &[&str]) -> (Option<i32>, String) {
    let output = ground.run(args);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn without_a_terminal_nothing_is_removed_that_was_not_confirmed() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.must(&["source", "set", "shop"]);
    ground.must(&["task", "put", "--source", "shop", "--key", "a"]);
    ground.must(&["task", "put", "--source", "shop", "--key", "b"]);
    ground.must(&["rotation", "set", "api", "--type", "a"]);
    let list = ground.must(&["task", "list", "--source", "shop", "--state", "ready", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let id = list["tasks"][0]["id"].as_str().expect("an id");
    assert_eq!(list["tasks"].as_array().expect("a list").len(), 2);
    assert!(ground.must(&["task", "show", id]).contains("state    ready"));
    for (what, says) in [
        (["source", "remove", "shop"], "2 tasks, 0 of them in flight, would be lost"),
        (["rotation", "remove", "api"], "nobody has the turn, 0 wait"),
        (["task", "remove", id], "would be lost with its history"),
    ] {
        let (code, said) = code_and_errors(&ground, &what);
        assert_eq!(code, Some(4), "{what:?}: {said}");
        assert!(said.contains(says) && said.contains("--yes"), "{what:?}: {said}");
    }
    ground.must(&["source", "pause", "shop"]);
    assert!(ground.must(&["source", "list"]).contains("paused"));
    ground.must(&["source", "resume", "shop"]);
    for what in
        [["task", "remove", id], ["source", "remove", "shop"], ["rotation", "remove", "api"]]
    {
        let sure = [&what[..], &["--yes"]].concat();
        ground.must(&sure);
        assert_eq!(code_and_errors(&ground, &sure).0, Some(3), "{what:?} is gone");
    }
}

#[test]
fn a_token_is_bound_to_names_of_every_kind() {
    let ground = Ground::new("sqlite:soloist.db", "");
    ground.add_user("li", "operator");
    let bounds = ["--lease", "pump", "--job", "outbound", "--source", "shop", "--rotation", "api"];
    ground.must(&[&["token", "new", "--user", "li"][..], &bounds].concat());
    let list = ground.must(&["token", "list"]);
    assert!(list.contains("source shop, rotation api, lease pump, job outbound"), "{list}");
    let list = ground.must(&["token", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list["tokens"][0]["leases"], serde_json::json!(["pump"]));
}
