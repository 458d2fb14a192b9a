//! Reasons and names in the letters that people write, at every door; the law itself is tested where it stands (`domain::line`).

use serde_json::json;

use crate::support::node::Ground;

const WRITTEN: [&str; 8] = [
    "می\u{200c}خواهم اجرا شود",
    "ශ්\u{200d}රී ලංකා",
    "क्\u{200d}ष test",
    "അവന്\u{200d}",
    "👩\u{200d}💻 takes over",
    "👨\u{200d}👩\u{200d}👧 day off",
    "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} office",
    "❤\u{fe0f} fine",
];
const UNSEEN: [&str; 6] = [
    "ad\u{200b}min",
    "ad\u{200d}min",
    "\u{202e}nimda",
    "a\u{e0041}",
    "\u{200d}👧",
    "a\u{200d}\u{200d}b",
];

#[tokio::test(flavor = "multi_thread")]
async fn letters_of_every_script_pass_by_every_door_and_are_shown_as_they_were_written() {
    let job = "[[job]]\nname = \"beat\"\ncommand = [\"sleep\", \"1000\"]\n";
    let ground = Ground::new("sqlite:soloist.db", job);
    ground.add_user("li", "admin");
    let token = ground.token("li");
    let node = ground.start("node-a");
    let api = node.api(&token);
    let (on, me) = ("/api/v1/jobs/beat/participation", "/api/v1/users/li");
    for text in WRITTEN {
        ground.must(&["on", "beat", "--user", "li", "--reason", text]);
        ground.must(&["off", "beat", "--user", "li", "--reason", text]);
        let audit = ground.must(&["audit"]);
        assert!(audit.contains(text), "{text} is not shown as it is: {audit}");
        let body = json!({"on": true, "reason": text});
        let (status, answer) = api.call(reqwest::Method::PUT, on, Some(body)).await;
        assert!(status.is_success(), "{text}: {answer}");
        let body = json!({"display_name": text});
        let (status, answer) = api.call(reqwest::Method::PATCH, me, Some(body)).await;
        assert!(status.is_success() && answer["display_name"] == text, "{text}: {answer}");
    }
    for text in UNSEEN {
        let refused = ground.run(&["on", "beat", "--user", "li", "--reason", text]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("invisible"), "{text:?}: {said}");
    }
}
