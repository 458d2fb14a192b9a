//! The audit on a terminal: listed, filtered, exported, and a file that was changed is found out.

use soloist::domain::time::StoreTime;
use soloist::store::journal::{AuditEntry, Journal, Kind};

use super::Place;

#[tokio::test]
async fn the_audit_is_listed_exported_and_verified() {
    let place = Place::with_accounts().await;
    place.run(&["on", "outbound", "--user", "li", "--reason", "orders"]).ok();
    place.run(&["hold", "outbound", "--user", "wang", "--reason", "stock"]).ok();
    let hostile = AuditEntry {
        id: 0,
        at: StoreTime(0),
        who: "carl".to_owned(),
        from: "10.0.0.7".to_owned(),
        act: "source.block".to_owned(),
        target: "\u{202e}pohs".to_owned(),
        reason: Some("\u{1b}]0;owned\u{7}\u{9b}31m".to_owned()),
        kind: Kind::Program,
        count: 1,
        until: None,
    };
    place.store().await.audit(&hostile).await.expect("noted");
    let listed = place.run(&["audit"]).ok();
    assert!(listed.contains("cli:wang") && listed.contains("carl (program)"), "{listed}");
    assert!(listed.contains("<U+202E>pohs"), "{listed}");
    assert!(!listed.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{listed:?}");
    let held = place.run(&["audit", "--act", "job.*", "--target", "outbound", "--json"]).json();
    assert_eq!(held["entries"].as_array().expect("entries").len(), 1);
    assert_eq!(held["entries"][0]["reason"], "stock");
    let none = place.run(&["audit", "--who", "nobody"]).ok();
    assert!(none.contains("Nothing of that kind"), "{none}");
    assert_eq!(place.run(&["audit", "--from", "yesterday"]).code, 2);
    assert_eq!(place.run(&["audit", "--kind", "god"]).code, 2);

    let file = place.dir.path().join("audit.ndjson");
    let name = file.to_str().expect("a path");
    place.run(&["audit", "--export", name]).ok();
    let verified = place.run(&["audit", "--verify", name]).ok();
    let text = std::fs::read_to_string(&file).expect("written");
    let number = text.lines().count() - 2;
    assert!(verified.starts_with(&format!("{number} entries, chain unbroken")), "{verified}");
    assert!(verified.contains("asked for at the store with the eyes of admin: everything up to"));
    let alike = place.run(&["audit", "--export", "-"]).ok();
    assert_eq!(alike, text);
    // Of what was asked for, and of the export that it follows, the file says the truth.
    let other = place.dir.path().join("some.ndjson");
    let other = other.to_str().expect("a path");
    let last = verified.split("the last hash is ").nth(1).and_then(|rest| rest.lines().next());
    let last = last.expect("a hash");
    let some = ["audit", "--export", other, "--to", "2000-01-01T00:00:00Z", "--since-hash", last];
    place.run(&some).ok();
    let said = place.run(&["audit", "--verify", other, "--since-hash", last]).ok();
    assert!(said.starts_with("0 entries") && said.contains("only to=2000-01-01"), "{said}");
    assert!(said.contains(&format!("follows the export that ended with {last}")), "{said}");
    let foreign = place.run(&["audit", "--verify", name, "--since-hash", last]).fails(1);
    assert!(foreign.contains("follows no other export"), "{foreign}");
    assert_eq!(place.run(&["audit", "--export", other, "--since-hash", "0"]).code, 2);
    let broken = |lines: Vec<&str>| {
        std::fs::write(&file, lines.join("\n") + "\n").expect("written");
        place.run(&["audit", "--verify", name]).fails(1)
    };
    let lines: Vec<&str> = text.lines().collect();
    let mut removed = lines.clone();
    removed.remove(1);
    assert!(broken(removed).contains("at line 2:"));
    let cut = broken(lines[..=number].to_vec());
    assert!(cut.contains(&format!("at line {}: the end is missing", number + 2)), "{cut}");
    let changed: Vec<String> = lines.iter().map(|line| line.replace("stock", "stick")).collect();
    let changed = broken(changed.iter().map(String::as_str).collect());
    assert!(changed.contains("it was changed"), "{changed}");
    place.run(&["audit", "--verify", "nowhere.ndjson"]).fails(3);
}
