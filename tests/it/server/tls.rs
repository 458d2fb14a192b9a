//! `--server https://...`: a node that serves TLS itself, with a certificate of an authority of one's own.

use super::{Away, JOB, accounts};
use crate::doors::{Secure, TLS, certify};
use crate::support::certificate;
use crate::support::node::Ground;

#[test]
fn a_node_is_trusted_by_an_own_authority_that_is_named_and_by_nothing_else() {
    let ground = Ground::new("sqlite:soloist.db", &format!("{TLS}{JOB}"));
    certificate::sign(&ground.path(""));
    accounts(&ground);
    let node = Secure::start(&ground);
    let away = Away::at(&format!("https://{}", node.address), &ground.token("li"));
    let said = away.fails(&["status"], 1);
    for part in ["not accepted", "UnknownIssuer", "PEM file", "$SOLOIST_SERVER_CA"] {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    let with = |ca: &str, words: &[&str]| {
        let mut command = away.command(words);
        let output = command.env("SOLOIST_SERVER_CA", ground.path(ca)).output();
        output.expect("soloist starts")
    };
    let listed = with("ca.pem", &["status"]);
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(listed.status.success(), "{said}");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("outbound"));
    assert!(with("ca.pem", &["on", "outbound"]).status.success());
    // Another authority is as good as none, and a key is no certificate.
    certify(&ground.path(""));
    let other = String::from_utf8(with("cert.pem", &["status"]).stderr).expect("UTF-8");
    assert!(other.contains("UnknownIssuer"), "{other}");
    let none = String::from_utf8(with("key.pem", &["status"]).stderr).expect("UTF-8");
    assert!(none.contains("has no certificate in it"), "{none}");
}

#[test]
fn a_node_whose_certificate_is_an_authority_is_named_with_what_to_do() {
    let ground = Ground::new("sqlite:soloist.db", &format!("{TLS}{JOB}"));
    certify(&ground.path(""));
    accounts(&ground);
    let node = Secure::start(&ground);
    let away = Away::at(&format!("https://{}", node.address), &ground.token("li"));
    let output =
        away.command(&["status"]).env("SOLOIST_SERVER_CA", ground.path("cert.pem")).output();
    let said = String::from_utf8(output.expect("soloist starts").stderr).expect("UTF-8");
    assert!(said.contains("CA:FALSE"), "{said}");
}
