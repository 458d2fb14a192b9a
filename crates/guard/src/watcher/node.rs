//! Questions to the node (is this token valid, is this secret valid) and reports to it (who died, what is watched).

use std::time::Duration;

use nix::unistd::Uid;
use serde_json::{Value, json};

use super::line::{Role, Slot};
use super::said::{FromNode, ToNode, Watched};
use super::{About, DEATHS_KEPT, Death, NO_NODE, Question, Watcher, with_now};
use soloist_domain::time::Boot;
use soloist_process::clock;

/// Most names in a report to the node.
const MOST_TOLD: usize = 10_000;
/// Most questions of one connection, and deaths, that are at the node at once.
const ASKED_AT_ONCE: usize = 64;
const DEATHS_AT_ONCE: usize = 500;
/// A death is reported again when the node could not act on it.
const TELL_AGAIN: Duration = Duration::from_secs(1);
/// The node gets the list of watched programs at most this often.
const TELL_EVERY: Duration = Duration::from_millis(200);

impl Watcher {
    /// Asks the node; with `waits` the program is answered when the node has answered, or does not.
    pub(super) fn ask(&mut self, id: u64, about: About, waits: bool) {
        let number = self.number();
        let Some(line) = self.lines.get_mut(&id) else { return };
        let question = match &about {
            About::Token => {
                let Role::Program { token, .. } = &line.role else { return };
                ToNode::Token { id: number, token: token.clone() }
            }
            About::Holds { name, secret, .. } => {
                ToNode::Holds { id: number, name: name.clone(), secret: secret.clone() }
            }
        };
        if waits {
            line.answers.push_back(Slot::Asked(number));
        }
        let open = self.questions.values().filter(|question| question.line == id).count();
        if open >= ASKED_AT_ONCE {
            self.questions.insert(number, Question { asked: clock::boot(), line: id, about });
            self.answer(number, None, Some("the node has enough to answer".to_owned()), false);
            return;
        }
        self.questions.insert(number, Question { asked: clock::boot(), line: id, about });
        if !self.tell_node(&question) {
            self.answer(number, None, Some(NO_NODE.to_owned()), false);
        }
    }

    pub(super) fn is_waited_for(&self, question: u64, line: u64) -> bool {
        self.lines.get(&line).is_some_and(|line| line.answers.contains(&Slot::Asked(question)))
    }

    /// The node's answer to a question; `None`: it does not know, or, `still_asked`, has said nothing yet.
    pub(super) fn answer(
        &mut self,
        number: u64,
        holds: Option<bool>,
        detail: Option<String>,
        still_asked: bool,
    ) {
        let Some(question) = self.questions.remove(&number) else { return };
        let id = question.line;
        let answer = match &question.about {
            About::Token => {
                match (self.lines.get_mut(&id).map(|line| &mut line.role), holds) {
                    (Some(Role::Program { checked, .. }), Some(true)) => *checked = true,
                    (Some(line), Some(false)) => {
                        *line = Role::New;
                        let why =
                            detail.unwrap_or_else(|| "this token is not valid here".to_owned());
                        self.settle(number, id, json!({"ok": false, "detail": why}));
                        self.refused(id);
                        return;
                    }
                    _ => {}
                }
                let why = holds.is_none().then_some(detail).flatten();
                self.welcome(id, why.map(|why| format!("{why}: the token is not checked yet")))
            }
            About::Holds { pid, name, secret } => {
                if let (Some(program), Some(holds)) = (self.programs.get_mut(pid), holds) {
                    program.work.check(name, secret, holds);
                    self.changed = true;
                }
                match holds {
                    Some(false) => json!({"ok": false, "detail": detail.unwrap_or_else(|| {
                        "this is not the secret of its holder: the lease is over or another's".to_owned()
                    })}),
                    _ => self.armed(*pid, name, detail.map(|why| {
                        format!("{why}: the process is killed in time, and its lease is not given back before a node has checked it")
                    })),
                }
            }
        };
        self.settle(number, id, answer);
        if still_asked {
            // An answer that comes late counts, too.
            self.questions.insert(number, question);
        }
    }

    /// Replaces the waiting line by its answer.
    pub(super) fn settle(&mut self, number: u64, id: u64, answer: Value) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        if let Some(slot) = line.answers.iter_mut().find(|slot| **slot == Slot::Asked(number)) {
            *slot = Slot::Said(with_now(answer));
        }
    }

    pub(super) fn take_over(&mut self, id: u64, name: &str) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        let refused = if line.uid != Uid::effective().as_raw() && line.uid != 0 {
            Some(format!("user {} is not that of the watcher", line.uid))
        } else {
            self.node.and_then(|node| self.lines.get(&node)).map(|node| {
                format!("the watcher of this socket serves the node {} (process {}): give each node a socket of its own", node.called(), node.pid)
            })
        };
        let Some(line) = self.lines.get_mut(&id) else { return };
        if let Some(why) = refused {
            line.tell(&ToNode::Taken(Err(why)));
            self.refused(id);
            return;
        }
        line.role = Role::Node(name.to_owned());
        line.tell(&ToNode::Taken(Ok(())));
        self.node = Some(id);
        self.told = None;
        (self.changed, self.tell_at) = (true, clock::boot());
        for death in self.dead.values_mut() {
            death.tell_at = Some(clock::boot());
        }
        self.ask_again();
    }

    pub(super) fn tell_node(&mut self, what: &ToNode) -> bool {
        let node = self.node.and_then(|id| self.lines.get_mut(&id));
        node.is_some_and(|node| {
            node.tell(what);
            true
        })
    }

    pub(super) fn node_says(&mut self, text: &[u8]) {
        let Ok(FromNode { id, answer, detail }) = serde_json::from_slice(text) else { return };
        if let Some(death) = self.dead.get_mut(&id) {
            death.tell_at = Some(clock::boot() + TELL_AGAIN);
            if answer.is_some()
                && let Some(death) = self.dead.remove(&id)
            {
                self.gone.insert(death.secret, clock::boot() + DEATHS_KEPT);
            }
            return;
        }
        self.answer(id, answer, detail, false);
    }

    /// What no node has answered yet.
    pub(super) fn ask_again(&mut self) {
        if self.node.is_none() {
            return;
        }
        let (mut tokens, mut works) = (Vec::new(), Vec::new());
        for (id, line) in &self.lines {
            if let Role::Program { checked: false, release: true, .. } = line.role {
                tokens.push(*id);
            }
        }
        for (pid, program) in &self.programs {
            for (name, work) in program.work.works().filter(|(_, work)| !work.checked) {
                works.push((*pid, name.to_owned(), work.secret.clone()));
            }
        }
        let asked = |about: &About, line: u64| match about {
            About::Token => (line, None),
            About::Holds { secret, .. } => (0, Some(secret.clone())),
        };
        let asked: Vec<_> =
            self.questions.values().map(|one| asked(&one.about, one.line)).collect();
        for id in tokens.into_iter().filter(|id| !asked.contains(&(*id, None))) {
            self.ask(id, About::Token, false);
        }
        for (pid, name, secret) in works {
            if !asked.contains(&(0, Some(secret.clone()))) {
                let line = self.lines.iter().find(|(_, line)| line.pid == pid).map(|(id, _)| *id);
                self.ask(line.unwrap_or_default(), About::Holds { pid, name, secret }, false);
            }
        }
    }

    pub(super) fn tell_what_is_watched(&mut self, now: Boot) {
        (self.changed, self.tell_at) = (false, now + TELL_EVERY);
        let works = self.programs.values().flat_map(|program| program.work.works());
        let leases = works.filter(|(_, work)| work.checked && work.release);
        let watched = Watched {
            programs: u32::try_from(self.programs.len()).unwrap_or(u32::MAX),
            leases: leases
                .take(MOST_TOLD)
                .map(|(name, work)| (name.to_owned(), work.token()))
                .collect(),
        };
        if self.told.as_ref() != Some(&watched) && self.tell_node(&ToNode::Watched(watched.clone()))
        {
            self.told = Some(watched);
        }
    }

    /// Deaths that the node got and has not answered.
    pub(super) fn told_deaths(&self) -> usize {
        self.dead.values().filter(|death| death.tell_at.is_none()).count()
    }

    /// When a death is reported to the node.
    pub(super) fn next_death(&self) -> Option<Boot> {
        let room = self.told_deaths() < DEATHS_AT_ONCE && self.node.is_some();
        self.dead.values().filter(|_| room).filter_map(|death| death.tell_at).min()
    }

    /// Tells the node of deaths, a few at a time.
    pub(super) fn tell_of_deaths(&mut self, now: Boot) {
        let room = DEATHS_AT_ONCE.saturating_sub(self.told_deaths());
        let Some(node) = self.node.and_then(|id| self.lines.get_mut(&id)) else { return };
        let due = self.dead.iter_mut().filter(|(_, one)| one.tell_at.is_some_and(|at| at <= now));
        for (id, death) in due.take(room) {
            death.tell_at = None;
            node.tell(&dead(*id, death));
        }
    }
}

fn dead(id: u64, death: &Death) -> ToNode {
    let Death { name, secret, pid, killed, .. } = death;
    ToNode::Dead { id, name: name.clone(), secret: secret.clone(), pid: *pid, killed: *killed }
}
