//! The lines of programs, and the answer to each.

use serde_json::{Value, json};

use super::line::{Connection, Heard, Role};
use super::said::Line;
use super::{About, Program, Watcher};
use crate::kernel;
use nix::unistd::Uid;
use soloist_domain::lifeline::Process;
use soloist_domain::time::Boot;
use soloist_process::clock;

const FOREIGN: &str = "this process is in another pid namespace than the watcher: share it (shareProcessNamespace), or go on without a life line";
/// Longest name and secret, and token, in bytes.
const LONGEST_NAME: usize = 256;
const LONGEST_TOKEN: usize = 512;
/// Most names of a process whose token no node has checked.
const MOST_UNCHECKED: usize = 64;

impl Watcher {
    /// Reads what arrived, and carries it out.
    pub(super) fn hear(&mut self, id: u64) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        let all = line.read();
        for heard in all {
            let Some(line) = self.lines.get(&id) else { return };
            if line.closing {
                break;
            }
            match heard {
                Heard::Line(text) if Some(id) == self.node => self.node_says(&text),
                Heard::Line(text) => self.program_writes(id, &text),
                Heard::Foreign(pid) => self.say(
                    id,
                    json!({"ok": false, "detail": format!(
                        "process {pid} wrote this line, and the connection is another's: after a fork, connect anew"
                    )}),
                ),
                Heard::TooLong => self.refuse(id, "a line has at most 16384 bytes"),
                // What it said before is answered.
                Heard::End => self.refused(id),
            }
        }
    }

    pub(super) fn program_writes(&mut self, id: u64, text: &[u8]) {
        let object = match serde_json::from_slice(text) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return self.refuse(id, "this line is no JSON object"),
            Err(error) => return self.refuse(id, &format!("this line is no JSON: {error}")),
        };
        match serde_json::from_value(Value::Object(object)) {
            Ok(said) => self.program_says(id, said),
            Err(error) => {
                let why =
                    format!("this line says something in a way that is not understood: {error}");
                match self.lines.get(&id).map(|line| &line.role) {
                    Some(Role::Program { .. }) => self.say(id, json!({"ok": false, "detail": why})),
                    _ => self.refuse(id, &why),
                }
            }
        }
    }

    pub(super) fn program_says(&mut self, id: u64, said: Line) {
        let Some(line) = self.lines.get(&id) else { return };
        let knows = matches!(line.role, Role::Program { .. });
        if let Some(node) = said.node {
            self.take_over(id, &node);
        } else if said.doctor {
            let spared = match self.lines.get_mut(&id).map(|line| (line.pid, line.find_process())) {
                Some((0, _)) => Some(FOREIGN.to_owned()),
                Some((_, Err(why))) => Some(why.to_owned()),
                _ => self.lines.get(&id).and_then(spared),
            };
            let node = self.node.and_then(|node| self.lines.get(&node)).map(Connection::called);
            self.say(
                id,
                json!({"ok": true, "kill": spared.is_none(), "why": spared, "node": node}),
            );
            self.refused(id);
        } else if let Some(token) = said.auth {
            self.authenticate(id, token, said.overrun.as_deref() == Some("leave"));
        } else if !knows {
            self.refuse(id, "say {\"auth\":TOKEN} first");
        } else if let Some(text) = said.again {
            self.again(id, &text);
        } else if let Some(name) = said.under {
            let release = said.release.unwrap_or(true);
            self.under(id, name, said.secret.unwrap_or_default(), said.until_ns, release);
        } else if let Some(name) = said.end {
            if let Some(program) = self.programs.get_mut(&line.pid) {
                program.work.end(&name);
                self.changed = true;
            }
            self.say(id, json!({"ok": true}));
        } else {
            self.say(id, json!({"ok": false, "detail": "say \"under\", \"end\" or \"auth\""}));
        }
    }

    pub(super) fn authenticate(&mut self, id: u64, token: String, leave: bool) {
        if token.len() > LONGEST_TOKEN {
            self.refuse(id, "auth: this is no API token");
            return;
        }
        let Some(line) = self.lines.get_mut(&id) else { return };
        if line.pid == 0 {
            line.role = Role::Program { token: token.clone(), checked: false, release: false };
            self.say(id, json!({"ok": true, "kill": false, "release": false, "why": FOREIGN}));
            return;
        }
        if let Err(why) = line.find_process() {
            self.refuse(id, why);
            return;
        }
        line.role =
            Role::Program { token: token.clone(), checked: false, release: !line.must_say_again() };
        let Some(process) = line.process() else { return };
        let spared = if leave { Some("overrun = leave".to_owned()) } else { spared(line) };
        let Ok(process) = process.try_clone() else {
            self.refuse(id, "the watcher has no file descriptor left");
            return;
        };
        let (pid, work) = (line.pid, Process::default());
        // The number may have been that of another process, whose death is not reported yet.
        if self.programs.get(&pid).is_some_and(|before| kernel::is_dead(&before.process)) {
            self.bury(pid);
        }
        let program = self.programs.entry(pid).or_insert(Program {
            process,
            spared: None,
            work,
            killed: None,
        });
        program.spared = spared;
        self.changed = true;
        self.ask(id, About::Token, true);
    }

    /// What `auth` and `again` are answered with.
    pub(super) fn welcome(&self, id: u64, why: Option<String>) -> Value {
        let Some(line) = self.lines.get(&id) else { return Value::Null };
        let spared = self.programs.get(&line.pid).and_then(|program| program.spared.clone());
        if line.must_say_again() {
            return json!({"ok": true, "kill": false, "release": false, "again": line.again,
                "why": "this kernel does not say who connected: repeat `again`"});
        }
        let mut answer = json!({"ok": true, "kill": spared.is_none(), "release": true});
        if let Some(why) = why.or(spared) {
            answer["why"] = why.into();
        }
        answer
    }

    /// On a kernel without SO_PEERPIDFD: the process that wrote this lives, so the handle is its own.
    pub(super) fn again(&mut self, id: u64, text: &str) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        if !line.lives_again(text) {
            self.refuse(id, "again: this is not what the watcher said, or the process is dead");
            return;
        }
        if let Role::Program { release, .. } = &mut line.role {
            *release = true;
        }
        let answer = self.welcome(id, None);
        self.say(id, answer);
    }

    pub(super) fn under(
        &mut self,
        id: u64,
        name: String,
        secret: String,
        until: Option<u64>,
        release: bool,
    ) {
        let no = |why: String| json!({"ok": false, "detail": why});
        let Some(line) = self.lines.get(&id) else { return };
        let Role::Program { release: sees, checked, .. } = &line.role else { return };
        let (sees, checked, pid) = (*sees, *checked, line.pid);
        if !sees {
            self.say(
                id,
                no("this process is not watched: see `why` of the answer to auth".to_owned()),
            );
            return;
        }
        let Some(until) = until else {
            self.say(
                id,
                no("until_ns is missing: the instant by which the work must be over, by `now_ns`"
                    .to_owned()),
            );
            return;
        };
        if name.len().max(secret.len()) > LONGEST_NAME {
            self.say(id, no("no lease has so long a name or secret".to_owned()));
            return;
        }
        let own = self.programs.get(&pid);
        let is_own = own.and_then(|own| own.work.under_name(&name));
        let is_own = is_own.is_some_and(|work| work.secret == secret);
        let others = self.programs.iter().filter(|(other, _)| **other != pid);
        // Also one that is dead: its secret goes with it.
        let of_another = || {
            others.into_iter().any(|(_, program)| program.work.has(&secret))
                || self.gone.contains_key(&secret)
        };
        if !is_own && of_another() {
            self.say(id, no("another process works under this lease: a program acquires a lease of its own, after a fork, too".to_owned()));
            return;
        }
        let Some(program) = self.programs.get_mut(&pid) else {
            self.refuse(id, "this process is not watched any more: connect anew");
            return;
        };
        if program.killed.is_some() {
            self.say(id, no("this process is killed: its work was not over in time".to_owned()));
            return;
        }
        if !checked && !is_own && program.work.works().count() >= MOST_UNCHECKED {
            self.say(
                id,
                no("no node has checked the token yet: so many names must wait for that"
                    .to_owned()),
            );
            return;
        }
        match program.work.under(&name, &secret, Boot(until), release, clock::boot()) {
            Err(why) => self.say(id, no(why.to_string())),
            Ok(under) if under.is_new => self.ask(id, About::Holds { pid, name, secret }, true),
            Ok(_) => {
                let answer = self.armed(pid, &name, None);
                self.say(id, answer);
            }
        }
    }

    /// What `under` is answered with.
    pub(super) fn armed(&self, pid: i32, name: &str, why: Option<String>) -> Value {
        let program = self.programs.get(&pid);
        let work = program.and_then(|one| one.work.under_name(name));
        let Some((program, work)) = program.zip(work) else {
            return json!({"ok": false, "detail": "its work has ended meanwhile"});
        };
        let kills = program.spared.is_none();
        let mut answer = json!({"ok": true, "kill_ns": kills.then_some(work.kill_at().0), "release": work.checked && work.release});
        if let Some(why) = why.or_else(|| program.spared.clone()) {
            answer["why"] = why.into();
        }
        answer
    }
}

/// Why the process of this connection cannot be killed; `None`: it can.
fn spared(line: &Connection) -> Option<String> {
    let error = kernel::may_signal(line.process()?).err()?;
    let (pid, uid, own) = (line.pid, line.uid, Uid::effective());
    Some(format!(
        "process {pid} of user {uid} cannot be signalled by the watcher, user {own} ({error}): let both be of one user, or give the node CAP_KILL"
    ))
}
