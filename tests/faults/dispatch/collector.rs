//! A collector: this very program, started again, that asks the nodes for work over HTTP and behaves badly.
//!
//! It sends no instant, so its clock cannot matter; half of them believe theirs to be an hour ahead all the same. What
//! it does is chosen by dice of its own; what came of it stands in the ledger, each ask before it is sent.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use soloist::clock::boot;

use super::http::Client;
use super::ledger::{Act, Answer, Ask, Granted, Handed, Line, Sent};
use super::sources::{self, Source};
use crate::dice::Dice;

/// The first argument that makes this program a collector.
pub(crate) const WORD: &str = "collector";
/// Files of the directory that all share: where the nodes listen, the token, and the sign to end.
pub(crate) const ADDRESSES: &str = "addresses";
pub(crate) const TOKEN: &str = "collectors.token";
pub(crate) const OVER: &str = "over";
pub(crate) const LEDGER: &str = "ledger";

/// Of every block, so that a later one never ends before an earlier one.
const BLOCK: Duration = Duration::from_millis(120);

struct Collector {
    directory: PathBuf,
    /// As the store knows it.
    name: String,
    /// This process of it.
    by: String,
    calls: u64,
    ledger: File,
    dice: Dice,
    client: Client,
    held: Vec<Handed>,
    claim: Option<String>,
}

/// Acts as a collector if this process was started as one; never returns then.
pub(crate) fn entry() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [word, directory, name, seed] = arguments.as_slice() else { return };
    if word != WORD {
        return;
    }
    let directory = PathBuf::from(directory);
    let ledger = OpenOptions::new().create(true).append(true).open(directory.join(LEDGER));
    let token = std::fs::read_to_string(directory.join(TOKEN)).expect("a token");
    let mut collector = Collector {
        name: name.clone(),
        by: format!("{name}/{}", std::process::id()),
        calls: 0,
        ledger: ledger.expect("a ledger"),
        dice: Dice::new(seed.parse().expect("a seed")),
        client: Client::new(token.trim()),
        held: Vec::new(),
        claim: None,
        directory,
    };
    let parent = nix::unistd::getppid();
    while !collector.directory.join(OVER).exists() && nix::unistd::getppid() == parent {
        collector.turn();
    }
    std::process::exit(0);
}

/// Where the nodes listen now.
fn addresses(directory: &Path) -> Vec<SocketAddr> {
    let text = std::fs::read_to_string(directory.join(ADDRESSES)).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// RFC 3339 as microseconds.
fn instant(value: &Value) -> Option<i64> {
    value.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
}

/// CLOCK_BOOTTIME in microseconds.
fn now() -> i64 {
    i64::try_from(boot().0 / 1_000).expect("a machine that is not that old")
}

impl Collector {
    /// Works a while on what it holds, does one thing, and asks for more.
    fn turn(&mut self) {
        let work = self.dice.between(0, 6);
        thread::sleep(work);
        match self.dice.below(100) {
            // Vanishes with what it holds: the leases run out.
            0..2 => self.forget(),
            // Hangs up in the middle of a call and never asks what came of it.
            2..4 => {
                let (ask, body) = self.exchange();
                self.write_ask(&ask);
                if let Some(node) = self.node() {
                    self.client.hang_up(node, "POST", "/api/v1/results", &body);
                }
                self.forget();
            }
            // Hangs up, and asks again: a lost reply costs nothing.
            4..8 => {
                let (ask, body) = self.exchange();
                self.write_ask(&ask);
                if let Some(node) = self.node() {
                    self.client.hang_up(node, "POST", "/api/v1/results", &body);
                }
                self.carry_out(&ask, &body);
            }
            // Asks twice although it was answered.
            8..11 => {
                let (ask, body) = self.exchange();
                self.carry_out(&ask, &body);
                self.carry_out(&ask, &body);
            }
            // Sleeps longer than any lease lasts.
            11 => {
                thread::sleep(Duration::from_millis(850));
                let (ask, body) = self.exchange();
                self.carry_out(&ask, &body);
            }
            // Extends before it goes on, with some of it perhaps reported by then.
            12..22 if self.claim.is_some() => self.extend(),
            22 if self.dice.below(3) == 0 => self.block(),
            _ => {
                let (ask, body) = self.exchange();
                self.carry_out(&ask, &body);
            }
        }
    }

    fn forget(&mut self) {
        self.held.clear();
        self.claim = None;
    }

    /// Results of all it holds, or of half of it, and a claim.
    fn exchange(&mut self) -> (Ask, Value) {
        let all = self.dice.below(8) > 0;
        let mut reports = Vec::new();
        for task in &self.held {
            if all || self.dice.below(2) == 0 {
                let outcome = match self.dice.below(100) {
                    0..6 => "retry",
                    6 if task.source == "mortal" => "dead",
                    _ => "done",
                };
                let outcome = outcome.to_owned();
                reports.push(Sent { id: task.id.clone(), token: task.token, outcome });
            }
        }
        self.held.retain(|task| !reports.iter().any(|sent| sent.id == task.id));
        let request = format!("{}/{}", self.by, self.calls);
        let max = [1, 5, 20, 40][self.dice.index(4)];
        // Some care for one source only; most wait a little when there is nothing.
        let only: Vec<&str> = match self.dice.below(6) {
            0 => vec![sources::ALL[self.dice.index(sources::ALL.len())].name],
            _ => Vec::new(),
        };
        let wait_ms = self.dice.below(4) * 100;
        let results: Vec<Value> = reports
            .iter()
            .map(|sent| {
                let delay = (sent.outcome == "retry").then(|| self.dice.below(60));
                match delay {
                    Some(delay) if delay > 30 => json!({
                        "id": sent.id, "token": sent.token, "outcome": "retry",
                        "delay_ms": delay, "error": "once more"
                    }),
                    _ => json!({ "id": sent.id, "token": sent.token, "outcome": sent.outcome }),
                }
            })
            .collect();
        let body = json!({
            "results": results,
            "claim": {
                "collector": self.name, "request_id": request,
                "max": max, "sources": only, "wait_ms": wait_ms
            }
        });
        (Ask::Exchange { reports, request: Some(request) }, body)
    }

    /// Sends the same until it is answered, each time to whichever node the dice say.
    fn carry_out(&mut self, ask: &Ask, body: &Value) {
        loop {
            let call = self.write_ask(ask);
            let Some(node) = self.node() else { return };
            let answer = self.client.call(node, "POST", "/api/v1/results", body);
            match answer {
                Ok((200, answer)) => {
                    let answer = self.understand(&answer);
                    if let Answer::Exchange { granted, .. } = &answer {
                        // What a repeated answer does not show any more is lost, what it shows again is held already.
                        let granted = granted.clone();
                        self.write(call, Act::Answer(answer));
                        if let Some(granted) = granted {
                            self.held.retain(|old| !granted.tasks.contains(old));
                            self.held.extend(granted.tasks);
                            self.claim = Some(granted.claim);
                        }
                    }
                    return;
                }
                // The node could not reach its store, or dies: nobody knows what happened.
                Ok((503, _)) | Err(_) => thread::sleep(Duration::from_millis(20)),
                Ok((status, answer)) => {
                    self.write(call, Act::Answer(Answer::Refused(status)));
                    eprintln!("{}: {status} {answer}", self.by);
                    self.forget();
                    return;
                }
            }
        }
    }

    fn understand(&self, answer: &Value) -> Answer {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let statuses = list(&answer["results"]).iter().map(|one| text(&one["status"])).collect();
        let claim = &answer["claim"];
        let tasks = list(&claim["tasks"]).into_iter().map(|task| {
            let token = task["token"].as_u64().expect("a token is a number");
            Handed {
                id: text(&task["id"]),
                source: text(&task["source"]),
                token,
                attempt: u32::try_from(task["attempt"].as_u64().unwrap_or(0)).unwrap_or(u32::MAX),
                // Tokens are made of the store's clock; `lease_until` is held against it.
                start: i64::try_from(token >> 10).expect("an instant") * 1_000,
            }
        });
        let granted = instant(&claim["lease_until"]).map(|lease_until| Granted {
            claim: text(&claim["claim"]),
            lease_until,
            tasks: tasks.collect(),
        });
        Answer::Exchange { statuses, granted }
    }

    fn extend(&mut self) {
        let Some(claim) = self.claim.clone() else { return };
        let call = self.write_ask(&Ask::Extend { claim: claim.clone() });
        let Some(node) = self.node() else { return };
        let path = format!("/api/v1/claims/{claim}/extend");
        match self.client.call(node, "POST", &path, &json!({})) {
            Ok((200, answer)) => {
                let ids = |value: &Value| -> Vec<String> {
                    let list = value.as_array().into_iter().flatten();
                    list.filter_map(Value::as_str).map(str::to_owned).collect()
                };
                let (kept, lost) = (ids(&answer["kept"]), ids(&answer["lost"]));
                self.held.retain(|task| !lost.contains(&task.id));
                self.write(call, Act::Answer(Answer::Extend { kept, lost }));
            }
            Ok((503, _)) | Err(_) => {}
            Ok((status, _)) => self.write(call, Act::Answer(Answer::Refused(status))),
        }
    }

    fn block(&mut self) {
        let source: &Source = &sources::ALL[self.dice.index(sources::ALL.len())];
        let for_us = i64::try_from(BLOCK.as_micros()).expect("short");
        let call = self.write_ask(&Ask::Block { source: source.name.to_owned(), for_us });
        let Some(node) = self.node() else { return };
        let path = format!("/api/v1/sources/{}/block", source.name);
        let body = json!({ "for_ms": BLOCK.as_millis() });
        match self.client.call(node, "POST", &path, &body) {
            Ok((200, _)) => self.write(call, Act::Answer(Answer::Block)),
            Ok((503, _)) | Err(_) => {}
            Ok((status, _)) => self.write(call, Act::Answer(Answer::Refused(status))),
        }
    }

    fn write_ask(&mut self, ask: &Ask) -> u64 {
        self.calls += 1;
        self.write(self.calls, Act::Ask(ask.clone()));
        self.calls
    }

    fn write(&self, call: u64, act: Act) {
        let line = Line { call: (self.by.clone(), call), at: now(), act };
        let mut text = serde_json::to_string(&line).expect("JSON");
        text.push('\n');
        (&self.ledger).write_all(text.as_bytes()).expect("the ledger is written");
    }

    /// One that listens, once there is one; none when all is over.
    fn node(&mut self) -> Option<SocketAddr> {
        loop {
            let all = addresses(&self.directory);
            if !all.is_empty() {
                return Some(all[self.dice.index(all.len())]);
            }
            if self.directory.join(OVER).exists() {
                return None;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}
