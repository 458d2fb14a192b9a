//! The same against a provider that others wrote: `oidc-provider-mock`, which `tests/run` installs from PyPI. It signs with RSA.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use soloist::store::accounts::Role;

use super::{Browser, account, location, with};
use crate::web::Server;

/// A running provider; it ends with the test.
struct Mock {
    process: Child,
    url: String,
}

impl Mock {
    /// `None`: it is not installed here.
    fn start(person: &str) -> Option<Self> {
        let program = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("target/oidc-provider/bin/oidc-provider-mock");
        let mut process = Command::new(program)
            .args(["--port", "0", "--require-nonce", "true", "--user-claims", person])
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let lines = BufReader::new(process.stderr.take().expect("a pipe")).lines();
        let (found, address) = mpsc::channel();
        // It goes on reading: a full pipe would hold the provider up.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some((_, rest)) = line.split_once("running on ") {
                    found.send(rest.split_whitespace().next().unwrap_or_default().to_owned()).ok();
                }
            }
        });
        let url = address.recv_timeout(Duration::from_secs(60)).expect("it says where it is");
        Some(Self { process, url })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_others_wrote_is_understood() {
    let person =
        r#"{"sub": "s-7", "preferred_username": "Wang", "name": "王伟", "groups": ["everybody"]}"#;
    let mock = Mock::start(person);
    let mock = mock.expect("tests/run installs oidc-provider-mock from PyPI: run that first");
    // The groups are in no scope that it knows, but in its user info.
    let server = Server::with(with(|_| {}, &mock.url)).await;
    server.user("ada", Role::Admin).await;
    let browser = Browser::new();
    let begun = browser.get(&server.url("/login/oidc?next=/nodes")).await;
    assert_eq!(begun.status(), 303);
    let form = browser.get(&location(&begun)).await;
    assert_eq!(form.status(), 200, "{}", form.text().await.unwrap());
    let sent = browser
        .0
        .post(location(&begun))
        .header("content-type", "application/x-www-form-urlencoded");
    let sent = sent.body("sub=s-7").send().await.unwrap();
    assert_eq!(sent.status(), 302, "{}", sent.text().await.unwrap());
    let entered = browser.get(&location(&sent)).await;
    let status = entered.status().as_u16();
    assert_eq!(status, 303, "{}", entered.text().await.unwrap());
    assert!(browser.is_signed_in(&server).await);
    let users = soloist::store::accounts::Accounts::users(server.store()).await.unwrap();
    let wang = account(&server, "wang").await.unwrap_or_else(|| panic!("{users:?}"));
    assert_eq!((wang.role, wang.display_name.as_deref()), (Role::Viewer, Some("王伟")));
    assert_eq!(wang.external.unwrap().subject, "s-7");
}
