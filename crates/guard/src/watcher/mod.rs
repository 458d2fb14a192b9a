//! The watcher: what a guard is for a script, it is for programs on this machine (contract 15).
//!
//! A program connects to the socket file and says under which leases it works, and until when its work must be over. The watcher kills it
//! by then. When the kernel says that it is dead, the node gives its leases back. One process for each socket file, without a runtime,
//! that outlives its node: the next node takes it over.
//!
//! | file | what |
//! | --- | --- |
//! | `said` | the lines |
//! | `line` | one connection: bytes, lines, answers in order, and who wrote them |
//! | `mod` | the loop: accepts, hears, kills in time, sees the dead, asks the node |
//! | `file` | the socket file |
//!
//! The law, what is armed and what a death gives back, is `domain/lifeline.rs`. Who is dead the kernel says by a pidfd, and nothing else does.
//! Nothing here waits: not for a program, nor for the node.

mod file;
mod line;
pub mod said;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::Uid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::file::{Place, SocketFile};
use self::line::{Connection, Heard, Role, Slot};
use self::said::{FromNode, Line, ToNode, Watched};
use super::kernel;
use super::message::LARGEST_ORDER;
use super::socket::{self, receive};
use super::title::Title;
use super::watch::NotStarted;
use soloist_domain::lifeline::Process;
use soloist_domain::time::Boot;
use soloist_process::clock;

pub use self::file::{GROUP, alone, connect};

/// Marks the process among those that this program starts.
pub const WATCHER: &str = "watcher";

/// A program takes an answer that comes later for none, after 1 s.
const NODE_PATIENCE: Duration = Duration::from_millis(700);
/// So long a connection may say nothing before it says who it is.
const FIRST_LINE: Duration = Duration::from_secs(5);
/// How often the socket file is looked for, and what the node did not know is asked again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The node is told so often at most what is watched.
const TELL_EVERY: Duration = Duration::from_millis(200);
/// Without a node and a program, the watcher ends.
const IDLE_FOR: Duration = Duration::from_secs(10);
/// A death is kept for a node so long beyond the instant by which the work had to be over.
const DEATHS_KEPT: Duration = Duration::from_secs(60);
/// When the kernel could not wait.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const FOREIGN: &str = "this process is in another pid namespace than the watcher: share it (shareProcessNamespace), or go on without a life line";
const NO_NODE: &str = "no node is here now";
/// Most names in what the node is told.
const MOST_TOLD: usize = 10_000;
/// Who connects is heard so many at a time: nothing comes before a kill.
const ACCEPTED_AT_ONCE: usize = 32;
/// Longest name and secret, and token, in bytes.
const LONGEST_NAME: usize = 256;
const LONGEST_TOKEN: usize = 512;
/// Most names of a process whose token no node has checked.
const MOST_UNCHECKED: usize = 64;
/// Most questions of one connection, and deaths, that are at the node at once.
const ASKED_AT_ONCE: usize = 64;
const DEATHS_AT_ONCE: usize = 500;
/// Most deaths that are kept.
const MOST_DEATHS: usize = 50_000;
/// A death is told again when the node could do nothing about it.
const TELL_AGAIN: Duration = Duration::from_secs(1);
/// Most connections. Who has not said who it is goes first.
const MOST_LINES: usize = 4_096;
/// Most connections of one process.
const MOST_OF_ONE: usize = 16;

/// What a watcher is told when it is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Watching {
    /// The socket file.
    pub path: PathBuf,
    /// Do as on a kernel before 6.5 (tests).
    pub old_kernel: bool,
}

/// Runs as a watcher until nobody needs it.
pub(super) fn run() -> Result<(), NotStarted> {
    let socket::Heard::Message(Watching { path, old_kernel }) = receive::<Watching>(LARGEST_ORDER)
    else {
        return Err(NotStarted::NoNode);
    };
    let made = SocketFile::make(path);
    let said = made.as_ref().map(|_| ()).map_err(Clone::clone);
    let text = serde_json::to_vec(&said).map_err(|_| Errno::EINVAL)?;
    let stdin = std::io::stdin();
    send(stdin.as_raw_fd(), &text, MsgFlags::MSG_NOSIGNAL)?;
    let Ok(file) = made else { return Ok(()) };
    if let Some(title) = Title::find() {
        title.say(&format!("soloist watcher of {}", file.path.display()));
    }
    nix::unistd::setsid().ok();
    super::descriptors::raise().ok();
    kernel::let_go_of_input()?;
    kernel::let_go_of_output()?;
    let mut term = SigSet::empty();
    term.add(Signal::SIGTERM);
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&term, flags)?;
    let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
    let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags)?;
    let now = clock::boot();
    let mut watcher = Watcher {
        file,
        old_kernel,
        lines: BTreeMap::new(),
        programs: BTreeMap::new(),
        node: None,
        questions: BTreeMap::new(),
        dead: BTreeMap::new(),
        gone: HashMap::new(),
        next: 1,
        told: None,
        changed: true,
        tell_at: now,
        look_at: now + LOOK_EVERY,
        full: false,
        lost: false,
        needed: now,
    };
    watcher.watch(&signals, &timer);
    watcher.file.remove();
    Ok(())
}

struct Watcher {
    file: SocketFile,
    old_kernel: bool,
    lines: BTreeMap<u64, Connection>,
    /// By their process ids, for as long as the kernel has not said that they are dead.
    programs: BTreeMap<i32, Program>,
    /// Whose line is the node's.
    node: Option<u64>,
    /// What the node was asked.
    questions: BTreeMap<u64, Question>,
    /// Deaths that no node has taken yet.
    dead: BTreeMap<u64, Death>,
    /// Secrets of processes that are dead: nobody else is watched under them.
    gone: HashMap<String, Boot>,
    next: u64,
    /// What the node was told last.
    told: Option<Watched>,
    /// What is watched may have changed since, and when the node may be told.
    changed: bool,
    tell_at: Boot,
    look_at: Boot,
    /// No descriptor was left for who connects.
    full: bool,
    /// Another watcher listens at the socket file.
    lost: bool,
    /// When somebody needed this process for the last time.
    needed: Boot,
}

/// A process that is watched.
struct Program {
    process: OwnedFd,
    /// Why it is not killed; `None`: it is.
    spared: Option<String>,
    work: Process,
    killed: Option<Boot>,
}

struct Question {
    asked: Boot,
    /// Which connection waits for the answer.
    line: u64,
    about: About,
}

enum About {
    Token,
    Holds { pid: i32, name: String, secret: String },
}

struct Death {
    name: String,
    secret: String,
    pid: i32,
    killed: bool,
    keep_until: Boot,
    /// When the node is told; `None`: it has been, and has not answered.
    tell_at: Option<Boot>,
}

impl Watcher {
    fn watch(&mut self, signals: &SignalFd, timer: &TimerFd) {
        loop {
            let now = clock::boot();
            // Nothing comes before this.
            self.kill_in_time(now);
            self.be_in_time(now);
            if self.lost || now >= self.needed + IDLE_FOR {
                return;
            }
            self.arm(timer, now);
            let (heard, ended, accepts, terminated) = self.wait(signals, timer);
            if terminated {
                return;
            }
            for pid in ended {
                self.bury(pid);
            }
            if accepts {
                self.accept();
            }
            for line in heard {
                self.hear(line);
            }
            self.speak();
        }
    }

    /// Waits until there is something to do: lines that can be read or written, processes that ended, whether somebody
    /// connects, and whether this process is to end.
    fn wait(&self, signals: &SignalFd, timer: &TimerFd) -> (Vec<u64>, Vec<i32>, bool, bool) {
        let mut fds = vec![
            PollFd::new(timer.as_fd(), PollFlags::POLLIN),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.file.listener.as_fd(), self.accepts()),
        ];
        let first = fds.len();
        fds.extend(
            self.programs.values().map(|one| PollFd::new(one.process.as_fd(), PollFlags::POLLIN)),
        );
        // One that only waits for the node's answer would be said to be closed again and again.
        let lines = self.lines.iter().filter(|(_, line)| !line.wants().is_empty());
        let lines: Vec<_> = lines.collect();
        fds.extend(lines.iter().map(|(_, line)| PollFd::new(line.socket.as_fd(), line.wants())));
        if poll(&mut fds, PollTimeout::NONE).is_err() {
            // Interrupted, or the kernel has no memory: kills are in time all the same.
            std::thread::sleep(LOOK_AGAIN);
            return (Vec::new(), Vec::new(), false, false);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or_default()).collect();
        let (programs, ready_lines) = ready[first..].split_at(self.programs.len());
        let ended = self.programs.keys().zip(programs).filter(|(_, ready)| **ready);
        let heard = lines.iter().zip(ready_lines).filter(|(_, ready)| **ready);
        let (ended, heard) = (ended.map(|(pid, _)| *pid), heard.map(|((line, _), _)| **line));
        (heard.collect(), ended.collect(), ready[2], ready[1])
    }

    /// Kills whose work is not over by the instant that was said.
    fn kill_in_time(&mut self, now: Boot) {
        for program in self.programs.values_mut() {
            let due = program.work.kill_at().is_some_and(|at| at <= now);
            if !due || program.killed.is_some() || program.spared.is_some() {
                continue;
            }
            match kernel::signal_pidfd(&program.process, Signal::SIGKILL) {
                // Dead already: the kernel says so in a moment.
                Ok(()) | Err(Errno::ESRCH) => program.killed = Some(now),
                Err(error) => program.spared = Some(format!("it cannot be killed: {error}")),
            }
        }
    }

    /// What must not be waited for any longer.
    fn be_in_time(&mut self, now: Boot) {
        let overdue = |question: &Question| question.asked + NODE_PATIENCE <= now;
        let late: Vec<u64> = self
            .questions
            .iter()
            .filter(|(id, question)| overdue(question) && self.is_waited_for(**id, question.line))
            .map(|(id, _)| *id)
            .collect();
        for id in late {
            self.answer(id, None, Some("the node does not answer".to_owned()), true);
        }
        let old = self.lines.iter().filter(|(_, line)| line.since + FIRST_LINE <= now);
        let old = old.filter(|(_, line)| line.closing || matches!(line.role, Role::New));
        let old: Vec<(u64, bool)> = old.map(|(id, line)| (*id, line.closing)).collect();
        for (id, closing) in old {
            match closing {
                // Who does not read what it is told keeps nothing open.
                true => self.close(id),
                false => self.refuse(id, "nothing was said for 5 s: say {\"auth\":TOKEN} first"),
            }
        }
        if self.node.is_some() || !self.programs.is_empty() || !self.dead.is_empty() {
            self.needed = now;
        }
        if now >= self.look_at {
            (self.look_at, self.full) = (now + LOOK_EVERY, false);
            if self.file.look() == Place::Another {
                // Who is watched there connects there.
                self.lost = true;
            }
            self.dead.retain(|_, death| now < death.keep_until);
            self.gone.retain(|_, until| now < *until);
            self.questions.retain(|_, question| now < question.asked + DEATHS_KEPT);
            self.ask_again();
        }
        if self.changed && now >= self.tell_at {
            self.tell_what_is_watched(now);
        }
        self.tell_of_deaths(now);
        self.speak();
    }

    fn arm(&self, timer: &TimerFd, now: Boot) {
        let kills =
            self.programs.values().filter(|one| one.killed.is_none() && one.spared.is_none());
        let kills = kills.filter_map(|one| one.work.kill_at());
        let answers = self
            .questions
            .iter()
            .filter(|(id, question)| self.is_waited_for(**id, question.line))
            .map(|(_, question)| question.asked + NODE_PATIENCE);
        let tells = self.changed.then_some(self.tell_at);
        let room = self.told_deaths() < DEATHS_AT_ONCE && self.node.is_some();
        let deaths = self.dead.values().filter(|_| room).filter_map(|death| death.tell_at);
        let next = kills
            .chain(answers)
            .chain(tells)
            .chain(deaths)
            .chain([self.look_at])
            .min()
            .unwrap_or(self.look_at);
        // The instant 0 would disarm it.
        let next = next.max(now + Duration::from_micros(1));
        let at = TimeSpec::from_duration(Duration::from_nanos(next.0));
        timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME).ok();
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED_AT_ONCE {
            let line = match Connection::accept(&self.file.listener, self.old_kernel) {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(_) => {
                    // No descriptor is left: who connects is heard when others have gone.
                    self.full = true;
                    return;
                }
            };
            if self.lines.len() >= MOST_LINES {
                let stranger = self.lines.iter().find(|(_, line)| matches!(line.role, Role::New));
                let Some((id, _)) = stranger.map(|(id, line)| (*id, line)) else { continue };
                self.lines.remove(&id);
            }
            let own = self.lines.iter().filter(|(_, other)| other.pid == line.pid);
            let own: Vec<u64> = own.map(|(id, _)| *id).collect();
            if own.len() >= MOST_OF_ONE && Some(own[0]) != self.node {
                self.close(own[0]);
            }
            let id = self.number();
            self.lines.insert(id, line);
        }
    }

    fn accepts(&self) -> PollFlags {
        if self.full { PollFlags::empty() } else { PollFlags::POLLIN }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Reads what came, and does what it says.
    fn hear(&mut self, id: u64) {
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

    fn program_writes(&mut self, id: u64, text: &[u8]) {
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

    fn program_says(&mut self, id: u64, said: Line) {
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

    fn authenticate(&mut self, id: u64, token: String, leave: bool) {
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
        // The number may have been that of another process, of whose death nobody has been told yet.
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
    fn welcome(&self, id: u64, why: Option<String>) -> Value {
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
    fn again(&mut self, id: u64, text: &str) {
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

    fn under(&mut self, id: u64, name: String, secret: String, until: Option<u64>, release: bool) {
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
    fn armed(&self, pid: i32, name: &str, why: Option<String>) -> Value {
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

    /// Asks the node; with `waits` the program is answered when the node has answered, or does not.
    fn ask(&mut self, id: u64, about: About, waits: bool) {
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

    fn is_waited_for(&self, question: u64, line: u64) -> bool {
        self.lines.get(&line).is_some_and(|line| line.answers.contains(&Slot::Asked(question)))
    }

    /// The node's answer to a question; `None`: it does not know, or, `still_asked`, has said nothing yet.
    fn answer(
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

    /// Puts the answer in the place of the line that waits for it.
    fn settle(&mut self, number: u64, id: u64, answer: Value) {
        let Some(line) = self.lines.get_mut(&id) else { return };
        if let Some(slot) = line.answers.iter_mut().find(|slot| **slot == Slot::Asked(number)) {
            *slot = Slot::Said(with_now(answer));
        }
    }

    fn say(&mut self, id: u64, answer: Value) {
        if let Some(line) = self.lines.get_mut(&id) {
            line.answers.push_back(Slot::Said(with_now(answer)));
        }
    }

    /// Says why, and ends the connection.
    fn refuse(&mut self, id: u64, why: &str) {
        self.say(id, json!({"ok": false, "detail": why}));
        self.refused(id);
    }

    fn refused(&mut self, id: u64) {
        if let Some(line) = self.lines.get_mut(&id).filter(|line| !line.closing) {
            (line.closing, line.since) = (true, clock::boot());
        }
    }

    fn take_over(&mut self, id: u64, name: &str) {
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

    fn tell_node(&mut self, what: &ToNode) -> bool {
        let node = self.node.and_then(|id| self.lines.get_mut(&id));
        node.is_some_and(|node| {
            node.tell(what);
            true
        })
    }

    fn node_says(&mut self, text: &[u8]) {
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
    fn ask_again(&mut self) {
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

    fn tell_what_is_watched(&mut self, now: Boot) {
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

    /// So many deaths the node has been told of and has not answered.
    fn told_deaths(&self) -> usize {
        self.dead.values().filter(|death| death.tell_at.is_none()).count()
    }

    /// Tells the node of deaths, a few at a time.
    fn tell_of_deaths(&mut self, now: Boot) {
        let room = DEATHS_AT_ONCE.saturating_sub(self.told_deaths());
        let Some(node) = self.node.and_then(|id| self.lines.get_mut(&id)) else { return };
        let due = self.dead.iter_mut().filter(|(_, one)| one.tell_at.is_some_and(|at| at <= now));
        for (id, death) in due.take(room) {
            death.tell_at = None;
            node.tell(&dead(*id, death));
        }
    }

    /// The kernel says that the process is dead.
    fn bury(&mut self, pid: i32) {
        let Some(program) = self.programs.remove(&pid) else { return };
        self.changed = true;
        for (name, work) in program.work.all().filter(|(_, work)| work.release) {
            if self.dead.len() >= MOST_DEATHS
                || (!work.checked && self.dead.len() >= MOST_DEATHS / 2)
            {
                continue;
            }
            self.gone.insert(work.secret.clone(), clock::boot() + DEATHS_KEPT);
            let number = self.number();
            let death = Death {
                name: name.to_owned(),
                secret: work.secret.clone(),
                pid,
                killed: program.killed.is_some_and(|at| work.kill_at() <= at),
                // Nobody knows whether what no node has checked was ever a lease.
                keep_until: match work.checked {
                    true => work.until + DEATHS_KEPT,
                    false => clock::boot() + DEATHS_KEPT * 10,
                },
                tell_at: Some(clock::boot()),
            };
            self.dead.insert(number, death);
        }
    }

    fn close(&mut self, id: u64) {
        let Some(line) = self.lines.remove(&id) else { return };
        if self.node == Some(id) {
            self.node = None;
            let asked: Vec<u64> = self.questions.keys().copied().collect();
            for number in asked {
                self.answer(number, None, Some(NO_NODE.to_owned()), false);
            }
        }
        let pid = line.pid;
        let idle = self.programs.get(&pid).is_some_and(|program| program.work.is_idle());
        if idle && !self.lines.values().any(|line| line.pid == pid) {
            self.programs.remove(&pid);
            self.changed = true;
        }
    }

    /// Writes what is to be written.
    fn speak(&mut self) {
        let over = |line: &mut Connection| line.write().is_err() || line.is_over();
        let over: Vec<u64> =
            self.lines.iter_mut().filter_map(|(id, line)| over(line).then_some(*id)).collect();
        for id in over {
            self.close(id);
        }
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

fn dead(id: u64, death: &Death) -> ToNode {
    let Death { name, secret, pid, killed, .. } = death;
    ToNode::Dead { id, name: name.clone(), secret: secret.clone(), pid: *pid, killed: *killed }
}

/// Every answer has the watcher's clock.
fn with_now(mut answer: Value) -> String {
    answer["now_ns"] = clock::boot().0.into();
    answer.to_string()
}
