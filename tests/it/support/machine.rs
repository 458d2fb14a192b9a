//! What the machine takes away, measured; and who is excused by it.
//!
//! A host that gives a core to others for a second, a disk that stands still, compilers on every core: all make promises
//! about time late, and no program can do anything about that. So every suite measures it, and does again what the
//! machine spoiled. Three kinds of promise are told apart (docs/faults.md):
//!
//! | kind | how a test says so | on a machine that spoiled it |
//! | --- | --- | --- |
//! | of the first three promises: overlaps, tokens, `off` | [`holds`] | fails at the first time |
//! | about time: milliseconds, "the same run goes on" | [`within`], [`in_time`] | done again; spoiled each time: not judged, and said so |
//! | anything else | any panic | done again; spoiled each time: fails |
//!
//! A test whose time may be judged is run by [`judge`], for instance by `judged!`; elsewhere [`within`] and [`in_time`] are as strict as `assert!`.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::{Seek as _, Write as _};
use std::panic::{AssertUnwindSafe, Location, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt as _;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use soloist::clock::boot;
use soloist::domain::time::{Boot, Stamp};

/// How often a test is tried on a machine that spoils it.
pub(crate) const TRIES: usize = 3;
/// A core or a disk that stands still for so long may cost a healthy node its lease of two seconds, or have a fault come at
/// another moment than was meant.
const STALLED: Duration = Duration::from_millis(400);
/// In percent of the time: how often something may wait for a core before promises about time are too much to ask.
const CROWDED: u64 = 80;
/// In percent of all cores: how busy they may be, whoever is at work. Tests that wait more than they work leave them idle.
const BUSY: u64 = 90;
/// In percent of all cores: how much the host may take.
const STOLEN: u64 = 10;
/// How long a watcher sleeps; what it wakes later than that was taken from it.
const NAP: Duration = Duration::from_millis(5);
/// How often the disk is tried, and what counts as quick.
const DISK_EVERY: Duration = Duration::from_millis(50);
/// A spoiled test is done again when the machine is calm, or after this.
const CALM_WITHIN: Duration = Duration::from_secs(5);

/// Where time was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// A core gave a thread that only sleeps no time.
    Core(usize),
    /// The disk under the temporary directory, where every store of the tests lies, took so long to keep a byte.
    Disk,
}

/// A time in which nothing went on somewhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stall {
    pub place: Place,
    pub from: Boot,
    pub lasted: Duration,
    /// Its end, by the machine's wall clock.
    #[allow(dead_code, reason = "tests/turns holds them against the store's clock")]
    pub ended: Stamp,
}

/// Watches every core and the disk by a thread of its own each, from the first question until the process ends.
pub(crate) struct Machine {
    seen: Mutex<Vec<Stall>>,
    /// Since when each place is being waited for, and how long that should take.
    waits: Vec<(Place, AtomicU64)>,
}

/// The machine that this process runs on, watched from now on.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    static WATCHED: OnceLock<()> = OnceLock::new();
    let machine = MACHINE.get_or_init(|| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let places = (0..cores).map(Place::Core).chain([Place::Disk]);
        let waits = places.map(|place| (place, AtomicU64::new(u64::MAX))).collect();
        Machine { seen: Mutex::default(), waits }
    });
    WATCHED.get_or_init(|| {
        for (place, wait) in &machine.waits {
            thread::spawn(move || match place {
                Place::Core(core) => machine.watch_core(*core, wait),
                Place::Disk => machine.watch_disk(wait),
            });
        }
    });
    machine
}

impl Machine {
    /// All stalls so far, of which the ends are in order for each place.
    #[allow(dead_code, reason = "tests/turns adds them up")]
    pub(crate) fn seen(&self) -> Vec<Stall> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The longest that was not over before `from`, one that still lasts included.
    fn longest_since(&self, from: Boot, disk: bool) -> Option<(Place, Duration)> {
        let of = |place: Place| (place == Place::Disk) == disk;
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let over =
            seen.iter().rev().take_while(|stall| stall.from + stall.lasted + CALM_WITHIN > from);
        let over = over.filter(|stall| stall.from + stall.lasted > from);
        let lasting = self.waits.iter().map(|(place, since)| {
            (*place, boot().since(Boot(since.load(Ordering::Relaxed))).saturating_sub(NAP))
        });
        let all = over.map(|stall| (stall.place, stall.lasted)).chain(lasting);
        all.filter(|(place, _)| of(*place)).max_by_key(|(_, lasted)| *lasted)
    }

    fn note(&self, place: Place, from: Boot, wait: &AtomicU64, quick: Duration) {
        wait.store(u64::MAX, Ordering::Relaxed);
        let lasted = boot().since(from).saturating_sub(NAP);
        if lasted > quick {
            let ended = Stamp(jiff::Timestamp::now().as_microsecond());
            let stall = Stall { place, from, lasted, ended };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(stall);
        }
    }

    fn watch_core(&self, core: usize, wait: &AtomicU64) {
        let mut only = CpuSet::new();
        only.set(core).expect("there are not that many");
        // Where that core is forbidden, it watches those that are not.
        sched_setaffinity(Pid::from_raw(0), &only).ok();
        loop {
            let from = boot();
            wait.store(from.0, Ordering::Relaxed);
            thread::sleep(NAP);
            self.note(Place::Core(core), from, wait, NAP);
        }
    }

    /// Appends and syncs as Redis does with its append-only file.
    fn watch_disk(&self, wait: &AtomicU64) {
        let mut file = tempfile::tempfile().expect("a file in the temporary directory");
        for nth in 0_u64.. {
            let from = boot();
            wait.store(from.0, Ordering::Relaxed);
            // A disk that is full keeps nothing, and is nobody's stall.
            file.write_all(b".").and_then(|()| file.sync_data()).ok();
            self.note(Place::Disk, from, wait, DISK_EVERY);
            if nth % 4_096 == 4_095 {
                file.set_len(0).and_then(|()| file.rewind()).ok();
            }
            thread::sleep(DISK_EVERY);
        }
    }
}

/// A stretch of time on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    from: Boot,
    /// Microseconds in which something waited for a core, if this kernel counts them.
    waited: Option<u64>,
    ticks: Ticks,
}

impl Stretch {
    /// Begins now.
    pub(crate) fn begin() -> Self {
        machine();
        Self { from: boot(), waited: waited(), ticks: ticks() }
    }

    /// What of it is the machine's fault; `None` when promises about time may be judged.
    pub(crate) fn spoiled(&self) -> Option<String> {
        let mut words = Vec::new();
        let stalled = stalled();
        match machine().longest_since(self.from, false) {
            Some((Place::Core(core), lasted)) if lasted >= stalled => {
                words.push(format!("core {core} stood still for {} ms", lasted.as_millis()));
            }
            _ => {}
        }
        match machine().longest_since(self.from, true) {
            Some((_, lasted)) if lasted >= stalled => {
                words.push(format!("the disk took {} ms to keep a byte", lasted.as_millis()));
            }
            _ => {}
        }
        let crowded = self.crowded();
        if crowded >= CROWDED {
            words.push(format!("something waited for a core {crowded} % of the time"));
        }
        let (busy, stolen) = ticks().since(self.ticks);
        if busy >= BUSY {
            words.push(format!("the cores were busy {busy} % of the time"));
        }
        if stolen >= STOLEN {
            words.push(format!("the host took {stolen} % of all cores"));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// In percent of its time: how long something has waited for a core.
    fn crowded(&self) -> u64 {
        let lasted = u64::try_from(boot().since(self.from).as_micros()).unwrap_or(u64::MAX);
        let waited = waited().zip(self.waited).map_or(0, |(now, then)| now.saturating_sub(then));
        (waited * 100).checked_div(lasted).unwrap_or(0)
    }
}

/// The kernel's own count, proc_pressure_cpu(5).
fn waited() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    text.lines().next()?.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Ticks of all cores together, of proc_stat(5).
#[derive(Debug, Clone, Copy)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Ticks {
    /// In percent of the time since `earlier`: busy, and taken by the host.
    fn since(self, earlier: Self) -> (u64, u64) {
        let all = self.all.saturating_sub(earlier.all);
        let percent = |some: u64| (some * 100).checked_div(all).unwrap_or(0);
        let idle = self.idle.saturating_sub(earlier.idle);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        (percent(all.saturating_sub(idle)), percent(stolen))
    }
}

fn ticks() -> Ticks {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let numbers = text.lines().next().unwrap_or_default().split_whitespace().skip(1).take(8);
    let numbers: Vec<u64> = numbers.map(|number| number.parse().unwrap_or(0)).collect();
    let number = |nth: usize| numbers.get(nth).copied().unwrap_or(0);
    // user, nice, system, idle, iowait, irq, softirq, steal
    Ticks { all: numbers.iter().sum(), idle: number(3) + number(4), stolen: number(7) }
}

/// Waits until a second has passed in which nothing stood still, for a while at most.
fn until_calm() {
    let end = boot() + CALM_WITHIN;
    while boot() < end {
        let second = Stretch::begin();
        thread::sleep(Duration::from_secs(1));
        if second.spoiled().is_none() {
            return;
        }
    }
}

thread_local! {
    /// The promises about time that the test of this thread has broken; nothing while no such test runs.
    static LATE: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
    /// What broke a promise of section 3 while another panic was on its way.
    static BROKEN: RefCell<Option<String>> = const { RefCell::new(None) };
    /// Which try the test of this thread is at, from 0.
    static TRY: Cell<u32> = const { Cell::new(0) };
    /// The shortest stall that spoils this try, where a test has little time for its steps (see [`stretched`]).
    static HASTE: Cell<Duration> = const { Cell::new(Duration::MAX) };
}

/// A stall of this length has spoiled the try of this thread.
fn stalled() -> Duration {
    STALLED.min(HASTE.get())
}

/// A span in which a test must do something, with many steps: each further try, which only a busy machine brings, has three times as
/// long. A stall of a third of the span has spoiled the try.
#[allow(dead_code, reason = "not every program has laws of gaps")]
pub(crate) fn stretched(span: Duration) -> Duration {
    let span = span * 3_u32.pow(TRY.get());
    HASTE.set(HASTE.get().min(span / 3));
    span
}

/// One of the promises (README, "What it promises") was broken: no machine excuses that.
struct Broken(String);
/// A promise about time was broken, and nothing after it means anything.
struct Late(String);

/// What is promised (README), or what follows from it: true on every machine.
///
/// # Panics
/// When it does not hold; then the test has failed.
#[track_caller]
pub(crate) fn holds(condition: bool, what: impl FnOnce() -> String) {
    if !condition {
        broken(what());
    }
}

/// As [`holds`], of what is known to be wrong. Said during a panic it outweighs that panic.
///
/// # Panics
/// Always, unless this thread panics already.
#[track_caller]
pub(crate) fn broken(what: String) {
    let text = format!("{what} ({})", Location::caller());
    if thread::panicking() {
        BROKEN.with(|broken| {
            broken.borrow_mut().get_or_insert(text);
        });
        return;
    }
    if LATE.with(|late| late.borrow().is_none()) {
        panic!("{text}");
    }
    resume_unwind(Box::new(Broken(text)));
}

/// A promise about time: `took` is less than `bound`. The test goes on, and is judged at its end.
///
/// # Panics
/// When it is broken outside of [`judge`].
#[track_caller]
pub(crate) fn within(took: Duration, bound: Duration, what: &str) {
    if took >= bound {
        let text = format!("{what}: {took:?}, not less than {bound:?} ({})", Location::caller());
        LATE.with(|late| match &mut *late.borrow_mut() {
            Some(late) => late.push(text),
            None => panic!("{text}"),
        });
    }
}

/// A promise that counts on time, such as that the same run goes on. Without it the rest of the test means nothing.
///
/// # Panics
/// When it is broken.
#[track_caller]
pub(crate) fn in_time(condition: bool, what: impl FnOnce() -> String) {
    if !condition {
        let text = format!("{} ({})", what(), Location::caller());
        if LATE.with(|late| late.borrow().is_none()) {
            panic!("{text}");
        }
        resume_unwind(Box::new(Late(text)));
    }
}

/// What is to become of a test after a try.
pub(crate) enum Step<T> {
    /// It went as it should.
    Passed(T),
    /// The machine spoiled it, in these words: once more.
    Again(String),
    /// The machine spoiled a promise about time every time, in these words; nothing else is wrong.
    NotJudged(String),
    /// It failed, in words.
    Failed(String),
}

/// The tries of one test.
pub(crate) struct Tries {
    name: String,
    done: usize,
    stretch: Stretch,
}

impl Tries {
    pub(crate) fn of(name: &str) -> Self {
        Self { name: name.to_owned(), done: 0, stretch: Stretch::begin() }
    }

    /// Before every try, on the thread that judges.
    pub(crate) fn begin(&mut self) {
        HASTE.set(Duration::MAX);
        if self.done > 0 {
            until_calm();
        }
        self.stretch = Stretch::begin();
        TRY.set(u32::try_from(self.done).unwrap_or_default());
        BROKEN.with(|broken| broken.borrow_mut().take());
        LATE.with(|late| *late.borrow_mut() = Some(Vec::new()));
    }

    /// After it, with what came of it; says aloud what the machine spoiled.
    pub(crate) fn end<T>(&mut self, result: thread::Result<T>) -> Step<T> {
        let spoiled = self.stretch.spoiled();
        let step = self.judge(result, spoiled);
        match &step {
            Step::Again(why) => aloud(&format!(">> again: {}, as {why}", self.name)),
            Step::NotJudged(why) => {
                aloud(&format!(">> not judged: {}, {TRIES} times, as {why}", self.name));
            }
            Step::Passed(_) | Step::Failed(_) => {}
        }
        step
    }

    fn judge<T>(&mut self, result: thread::Result<T>, spoiled: Option<String>) -> Step<T> {
        self.done += 1;
        let late = LATE.with(|late| late.borrow_mut().take()).unwrap_or_default().join("; ");
        if let Some(broken) = BROKEN.with(|broken| broken.borrow_mut().take()) {
            return Step::Failed(broken);
        }
        let (why, of_time) = match result {
            Ok(value) if late.is_empty() => return Step::Passed(value),
            Ok(_) => (late, true),
            Err(panic) => match panic.downcast::<Broken>() {
                Ok(broken) => return Step::Failed(broken.0),
                Err(panic) => match panic.downcast::<Late>() {
                    Ok(late) => (late.0, true),
                    Err(panic) => (in_words(&*panic), false),
                },
            },
        };
        let Some(spoiled) = spoiled else { return Step::Failed(why) };
        if self.done < TRIES {
            Step::Again(format!("{spoiled}: {why}"))
        } else if of_time {
            Step::NotJudged(format!("{spoiled}: {why}"))
        } else {
            Step::Failed(format!("{why}; {TRIES} times, the last time {spoiled}"))
        }
    }
}

/// The words of a panic.
pub(crate) fn in_words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

/// On a line of its own, and past what keeps back the output of a test that passes.
fn aloud(text: &str) {
    let mut line = String::new();
    writeln!(line, "\n{}", text.replace('\n', " ")).expect("memory");
    std::io::stderr().write_all(line.as_bytes()).ok();
}

/// Runs a test, and again for as long as the machine spoils it. What it promises about time must be said on its own thread.
///
/// # Panics
/// When the test has failed.
pub(crate) async fn judge(test: impl AsyncFn()) {
    let mut tries = Tries::of(thread::current().name().unwrap_or("a test"));
    loop {
        tries.begin();
        match tries.end(AssertUnwindSafe(test()).catch_unwind().await) {
            Step::Passed(()) | Step::NotJudged(_) => return,
            Step::Again(_) => {}
            Step::Failed(why) => panic!("{why}"),
        }
    }
}

/// Tests that are judged by [`judge`]: each is an `async fn` of this name, and becomes a test of this name in the room `judged`.
#[allow(unused_macros, reason = "not every program has any")]
macro_rules! judged {
    ($($test:ident)*) => {
        mod judged {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                crate::support::machine::judge(super::$test).await;
            })*
        }
    };
}
#[allow(unused_imports, reason = "not every program has any")]
pub(crate) use judged;

#[test]
fn who_has_little_time_is_spoiled_by_a_shorter_stall() {
    let mut tries = Tries::of("a test in haste");
    tries.begin();
    assert_eq!(stalled(), STALLED);
    let ms = Duration::from_millis;
    for (span, shortest) in [(3_000, STALLED), (600, ms(200)), (90, ms(30)), (600, ms(30))] {
        assert_eq!(stretched(ms(span)), ms(span));
        assert_eq!(stalled(), shortest, "{span}");
    }
    tries.begin();
    assert_eq!(stalled(), STALLED, "another try is another matter");
    LATE.with(|late| late.borrow_mut().take());
}

#[test]
fn a_machine_excuses_what_is_about_time_and_nothing_else() {
    let spoiled = || Some("core 0 stood still for 612 ms".to_owned());
    let judge = |tries: &mut Tries, test: &dyn Fn(), spoiled: Option<String>| {
        LATE.with(|late| *late.borrow_mut() = Some(Vec::new()));
        let result = std::panic::catch_unwind(AssertUnwindSafe(test));
        match tries.judge(result, spoiled) {
            Step::Passed(()) => "passed".to_owned(),
            Step::Again(_) => "again".to_owned(),
            Step::NotJudged(_) => "not judged".to_owned(),
            Step::Failed(why) => why,
        }
    };
    struct Checks;
    impl Drop for Checks {
        fn drop(&mut self) {
            broken("an overlap".to_owned());
        }
    }
    let second = Duration::from_secs(1);
    let late = || within(second, second, "the answer");
    let other_run = || in_time(false, || "the same run goes on".to_owned());
    let strange = || panic!("strange");
    let overlap = || holds(false, || "an overlap".to_owned());
    let overlap_while_late = || {
        let _checks = Checks;
        strange();
    };
    type Planted<'a> = (&'a str, &'a dyn Fn(), [&'a str; 3], &'a str);
    let tests: [Planted<'_>; 5] = [
        ("late", &late, ["again", "again", "not judged"], "the answer: 1s"),
        ("other run", &other_run, ["again", "again", "not judged"], "the same run"),
        ("strange", &strange, ["again", "again", "strange; 3 times"], "strange"),
        ("overlap", &overlap, ["an overlap"; 3], "an overlap"),
        ("overlap while late", &overlap_while_late, ["an overlap"; 3], "an overlap"),
    ];
    for (name, test, on_a_busy_machine, on_a_quiet_one) in tests {
        let mut tries = Tries::of(name);
        for expected in on_a_busy_machine {
            let step = judge(&mut tries, test, spoiled());
            assert!(step.starts_with(expected), "{name}: {step}, not {expected}");
        }
        let step = judge(&mut Tries::of(name), test, None);
        assert!(step.starts_with(on_a_quiet_one), "{name}: {step}, not {on_a_quiet_one}");
    }
    assert_eq!(judge(&mut Tries::of("fine"), &|| (), spoiled()), "passed");
    LATE.with(|late| late.borrow_mut().take());
    assert!(std::panic::catch_unwind(late).is_err(), "elsewhere it is as strict as an assertion");
}
