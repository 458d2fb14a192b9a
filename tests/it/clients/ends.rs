//! The end of a program: what it holds is given back when its work has ended, and not before. No program here is on a life line, but for one.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use super::driver::{Driver, Language};
use super::witness::Acts;
use crate::support::machine::{holds, in_time, judged};
use crate::support::node::{Ground, Node};
use crate::support::wait::until;

judged! {
    a_program_that_is_told_to_end_gives_its_lease_back
    the_end_of_main_and_an_exit_within_the_work_give_the_lease_back
    work_that_does_not_end_keeps_its_lease_though_its_program_ends
    a_handler_of_the_program_is_called_as_before
    the_end_of_a_program_is_no_end_of_its_job
}

const TEN: (&str, &str) = ("DRIVER_TTL", "10");

struct Site {
    node: Node,
    token: String,
    ground: Ground,
}

impl Site {
    fn new() -> Self {
        Self::with("")
    }

    fn with(jobs: &str) -> Self {
        let config = format!("lifeline = \"line.sock\"\n{jobs}");
        let ground = Ground::new("sqlite:soloist.db", &config);
        ground.add_user("li", "operator");
        let token = ground.token("li");
        Self { node: ground.start("node-a"), token, ground }
    }

    fn start(
        &self,
        language: Language,
        what: &str,
        acts: &Acts,
        mode: &str,
        more: &[(&str, &str)],
    ) -> Driver {
        let addresses = [self.node.url.as_str()];
        let (name, file) = (acts.name(), acts.file());
        Driver::start_in((language, what), &addresses, &self.token, name, file, mode, more)
    }
}

/// The next of the three.
fn another(language: Language) -> Language {
    let at = Language::ALL.iter().position(|each| *each == language).expect("one of them");
    Language::ALL[(at + 1) % 3]
}

fn ended_by(status: ExitStatus, signal: Signal) -> bool {
    let number = signal as i32;
    status.signal() == Some(number) || status.code() == Some(128 + number)
}

/// Waits for the next holder; it begins within a second of the last act of the former one, whose lease lasts ten.
fn passes_on(first: Language, acts: &Acts, token: u64, second: &mut Driver) {
    let next = acts.until_works(second.id());
    let last = acts.all().into_iter().rfind(|act| act.token == token).expect("acts");
    in_time(next.at - last.at < 1.0, || format!("{first:?}: {last:?}, then {next:?}"));
    second.close();
    acts.judge();
}

/// A whole program: a loop, and nothing else. That it works at all is a law, too.
async fn a_program_that_is_told_to_end_gives_its_lease_back() {
    let site = Site::new();
    for language in Language::ALL {
        for signal in [Signal::SIGTERM, Signal::SIGINT] {
            let acts = Acts::of(&site.ground, &format!("{}-{}", language.word(), signal as i32));
            let mut first = site.start(language, "whole", &acts, "polite", &[TEN]);
            let start = acts.until_works(first.id());
            let mut second = site.start(another(language), "lease", &acts, "polite", &[TEN]);
            assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
            first.signal(signal);
            let (status, said) = first.wait();
            // In Python the end of the loop may be that of `main`, before the signal is.
            let ended =
                ended_by(status, signal) || status.success() && language == Language::Python;
            assert!(ended, "{language:?}, {signal}: {status} {said}");
            passes_on(language, &acts, start.token, &mut second);
        }
    }
}

/// Node goes on at the end of `main`, and sends nothing in `process.exit`: there only a watcher gives it back.
async fn the_end_of_main_and_an_exit_within_the_work_give_the_lease_back() {
    let site = Site::new();
    let socket = site.ground.path("line.sock");
    let watched = ("SOLOIST_LIFELINE", socket.to_str().expect("UTF-8"));
    until("somebody listens", || std::os::unix::net::UnixStream::connect(&socket).ok().map(drop));
    let ends = [
        (Language::Python, "leaves", 0, TEN),
        (Language::Java, "leaves", 0, TEN),
        (Language::Java, "exits", 7, TEN),
        (Language::Node, "exits", 7, watched),
    ];
    for (language, mode, code, more) in ends {
        let acts = Acts::of(&site.ground, &format!("{}-{mode}", language.word()));
        let mut first = site.start(language, "lease", &acts, mode, &[TEN, more]);
        let start = acts.until_works(first.id());
        let mut second = site.start(another(language), "lease", &acts, "polite", &[TEN]);
        let (status, said) = if mode == "leaves" {
            assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
            first.end()
        } else {
            first.wait()
        };
        assert_eq!(status.code(), Some(code), "{language:?}, {mode}: {said}");
        if mode == "exits" {
            // The second may have begun to wait later.
            acts.until_works(second.id());
            second.close();
            acts.judge();
        } else {
            passes_on(language, &acts, start.token, &mut second);
        }
    }
}

/// It is given its grace of a second; then its program ends, and the lease runs out by itself.
async fn work_that_does_not_end_keeps_its_lease_though_its_program_ends() {
    let site = Site::new();
    for language in Language::ALL {
        let acts = Acts::of(&site.ground, language.word());
        let mut first = site.start(language, "whole", &acts, "hog", &[]);
        let start = acts.until_works(first.id());
        let mut second = site.start(another(language), "lease", &acts, "polite", &[]);
        assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
        first.signal(Signal::SIGTERM);
        let (status, said) = first.wait();
        // 76: its deadline came first.
        let known = ended_by(status, Signal::SIGTERM) || status.code() == Some(76);
        assert!(known, "{language:?}: {status} {said}");
        let last = acts.all().pop().expect("acts");
        let next = acts.until_works(second.id());
        holds(next.token > last.token, || format!("{language:?}: {last:?}, then {next:?}"));
        in_time(next.at - last.at > 0.3, || {
            format!("{language:?}: it was given back: {last:?}, then {next:?}")
        });
        acts.judge();
        second.close();
    }
}

/// Java has no handlers of signals; its hooks run beside each other.
async fn a_handler_of_the_program_is_called_as_before() {
    let site = Site::new();
    for language in [Language::Python, Language::Node] {
        let acts = Acts::of(&site.ground, language.word());
        let own = ("DRIVER_HANDLER", "1");
        let mut first = site.start(language, "lease", &acts, "polite", &[TEN, own]);
        let start = acts.until_works(first.id());
        let mut second = site.start(another(language), "lease", &acts, "polite", &[TEN]);
        assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
        first.signal(Signal::SIGTERM);
        let (status, said) = first.wait();
        assert!(said.contains("its own handler"), "{language:?}: {said}");
        assert_eq!(status.code(), Some(5), "{language:?}: {said}");
        passes_on(language, &acts, start.token, &mut second);
    }
}

/// `repeat = "never"`: work that is done switches its job off. Work that its program asked to stop is not done.
async fn the_end_of_a_program_is_no_end_of_its_job() {
    let names = Language::ALL.map(|language| format!("job-{}", language.word()));
    let job = |name: &String| {
        format!(
            "[[job]]\nname = {name:?}\nrunner = \"external\"\nlease_ttl = \"10s\"\nrepeat = \"never\"\n"
        )
    };
    let site = Site::with(&names.iter().map(job).collect::<String>());
    for (language, name) in Language::ALL.into_iter().zip(&names) {
        site.ground.must(&["on", name, "--user", "li"]);
        let acts = Acts::of(&site.ground, name);
        let mut first = site.start(language, "whole", &acts, "polite", &[]);
        let start = acts.until_works(first.id());
        let mut second = site.start(another(language), "lease", &acts, "polite", &[]);
        assert!(acts.goes_on(start.token, 25), "{language:?}: it is the only one");
        first.signal(Signal::SIGTERM);
        first.wait();
        passes_on(language, &acts, start.token, &mut second);
    }
}
