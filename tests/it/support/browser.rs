//! Debian's Chromium, driven through its ChromeDriver on a free port; every window has a profile of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::node::{Node, password_of};
use super::wait::PATIENCE;

/// A running ChromeDriver; it ends its browsers with it.
pub(crate) struct Driver {
    process: Child,
    url: String,
    profiles: TempDir,
}

impl Driver {
    /// Starts it on a free port.
    ///
    /// ChromeDriver takes a free port of IPv6, then the same port of IPv4. If another test has that one, ChromeDriver ends,
    /// and is started again.
    ///
    /// # Panics
    /// When it is not installed or does not say that it runs.
    #[must_use]
    pub(crate) fn start() -> Self {
        let mut said = String::new();
        for _ in 0..20 {
            match Self::on_some_port() {
                Ok(driver) => return driver,
                Err(words) => said = words,
            }
            if !said.contains("port not available") {
                break;
            }
        }
        panic!("chromedriver did not start: {said}")
    }

    /// Starts it once, or returns what it said before it ended.
    fn on_some_port() -> Result<Self, String> {
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("chromedriver cannot be started ({error}): use tests/run, or `apt-get install chromium chromium-driver`")
            });
        let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let (heard, words) = mpsc::channel();
        std::thread::spawn(move || {
            // The pipe is read to its end: a full one would stop ChromeDriver.
            for line in lines.map_while(Result::ok) {
                heard.send(line).ok();
            }
        });
        let mut said = Vec::new();
        while let Ok(line) = words.recv_timeout(PATIENCE) {
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                return Ok(Self {
                    process,
                    url: format!("http://127.0.0.1:{}", port.trim_end_matches('.')),
                    profiles: TempDir::new().expect("a directory"),
                });
            }
            said.push(line);
        }
        process.kill().ok();
        process.wait().ok();
        Err(said.join("\n"))
    }

    /// Opens a window with an empty profile; `name` is the profile's.
    ///
    /// # Panics
    /// When the browser does not start.
    pub(crate) async fn window(&self, name: &str) -> Window {
        let profile = self.profiles.path().join(name);
        let arguments = json!([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-breakpad",
            "--lang=en-US",
            "--window-size=1280,900",
            format!("--user-data-dir={}", profile.display()),
        ]);
        let mut wanted = Capabilities::new();
        wanted.insert("goog:chromeOptions".to_owned(), json!({ "args": arguments }));
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(wanted)
            .connect(&self.url)
            .await
            .expect("Chromium starts");
        Window { client }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // On TERM it closes its browsers; its own death would leave them behind.
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(0));
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).ok();
        self.process.wait().ok();
    }
}

/// A command of ChromeDriver that WebDriver does not know.
#[derive(Debug)]
struct DevTools(Value);

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(
        &self,
        base: &Url,
        session: Option<&str>,
    ) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.0.to_string()))
    }
}

/// A browser window.
pub(crate) struct Window {
    /// To do with what fantoccini can.
    pub client: Client,
}

impl Window {
    /// Signs in at `node` as an account that `Ground::add_user` made, and arrives at the dashboard.
    ///
    /// # Panics
    /// When that does not work.
    pub(crate) async fn sign_in(&self, node: &Node, user: &str) {
        self.enter(node, user).await;
        self.element("[data-job]").await;
    }

    /// Signs in where there may be no job.
    ///
    /// # Panics
    /// When that does not work.
    pub(crate) async fn enter(&self, node: &Node, user: &str) {
        self.client.goto(&format!("{}/login", node.url)).await.expect("the page opens");
        self.element("input[name=name]").await.send_keys(user).await.expect("typed");
        let password = self.element("input[name=password]").await;
        password.send_keys(&password_of(user)).await.expect("typed");
        self.element("form[action='/login'] button").await.click().await.expect("clicked");
        self.element("[data-menu]").await;
    }

    /// Asks Chromium in its own protocol (DevTools).
    ///
    /// # Panics
    /// When it refuses.
    pub(crate) async fn devtools(&self, command: &str, params: Value) -> Value {
        let asked = DevTools(json!({"cmd": command, "params": params}));
        let answer = self.client.issue_cmd(asked).await;
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// Makes the window's inside so large, in the page's own pixels; a window has a least width, this has none.
    pub(crate) async fn resize(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// What a script says about the page.
    ///
    /// # Panics
    /// When it fails.
    pub(crate) async fn told(&self, script: &str) -> Value {
        self.client
            .execute(script, vec![])
            .await
            .unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The first element of that CSS selector, once it is there.
    ///
    /// # Panics
    /// When it does not come; shows the page.
    pub(crate) async fn element(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        match found {
            Ok(element) => element,
            Err(error) => {
                let page = self.client.source().await.unwrap_or_default();
                panic!("no {css} on the page ({error}):\n{page}")
            }
        }
    }

    /// Closes the browser.
    ///
    /// # Panics
    /// When it does not answer within a few seconds.
    pub(crate) async fn close(self) {
        let closing = tokio::time::timeout(Duration::from_secs(10), self.client.close());
        closing.await.expect("the browser closes in time").expect("the browser closes");
    }
}
