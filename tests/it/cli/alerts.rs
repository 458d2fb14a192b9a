//! Alerts on a terminal: listed, muted, tested.

use super::Place;

const ALERTS: &str = r#"
[[job]]
name = "outbound"
command = ["true"]
[[alert]]
when = "given_up"
to = ["ops"]
[channel.ops]
kind = "slack"
url = "http://127.0.0.1:9/hook?key=sesame"
"#;

#[tokio::test]
async fn an_alert_is_listed_muted_and_let_speak_and_a_channel_that_fails_says_so() {
    let place = Place::with_accounts().await;
    let none = place.run(&["alert", "list"]).ok();
    assert!(none.contains("[[alert]]") && none.contains("[channel.ops]"), "{none}");
    std::fs::write(place.dir.path().join("soloist.toml"), ALERTS).expect("written");
    let listed = place.run(&["alert", "list"]).ok();
    assert!(listed.contains("Nothing is on.") && listed.contains("given_up"), "{listed}");
    assert!(listed.contains("none yet") && !listed.contains("sesame"), "{listed}");

    let mute = ["alert", "mute", "given_up", "--for", "2h", "--reason", "moving", "--user", "li"];
    let muted = place.run(&mute).ok();
    assert!(muted.starts_with("given_up is mute until "), "{muted}");
    let all = place.run(&["alert", "list", "--json"]).json();
    assert!(all["alerts"][0]["muted_until"].is_string(), "{all}");
    let audit = place.run(&["audit", "--act", "alert.mute", "--json"]).json();
    assert_eq!(audit["entries"][0]["reason"], "moving");
    let speaks = place.run(&["alert", "unmute", "given_up", "--user", "li"]).ok();
    assert_eq!(speaks, "given_up speaks again.\n");
    let until = ["alert", "mute", "given_up", "--until", "2100-01-01T00:00:00Z", "--user", "li"];
    assert!(place.run(&until).ok().contains("2100-01-01"));

    let missing = place.run(&["alert", "mute", "rain", "--for", "1h", "--user", "li"]).fails(3);
    assert!(missing.contains("the configuration has: given_up"), "{missing}");
    assert_eq!(place.run(&["alert", "mute", "given_up", "--user", "li"]).code, 2, "how long?");
    assert_eq!(place.run(&["alert", "mute", "given_up", "--for", "1ms", "--user", "li"]).code, 2);
    place.run(&["alert", "mute", "given_up", "--for", "1h", "--user", "eve"]).fails(4);
    place.run(&["alert", "test", "ops", "--user", "li"]).fails(4);
    let failed = place.run(&["alert", "test", "ops", "--user", "ada"]).fails(1);
    assert!(failed.contains("ops did not take the test") && !failed.contains("sesame"), "{failed}");
    place.run(&["alert", "test", "pigeon", "--user", "ada"]).fails(3);
}
