//! Scripts that write down what they do, and the checker that finds two of them at one time.
//!
//! Every process appends to one file of this machine: `token node pid CLOCK_BOOTTIME word`. A line is one write with
//! O_APPEND, so the order of the lines is the order of the acts, whatever the clocks say.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use super::machine::holds;
use super::node::Ground;
use super::wait::until;

/// `/proc/uptime` is CLOCK_BOOTTIME in hundredths of a second, and reading it needs no other process.
const SCRIPT: &str = r#"
log=$1 mode=$2
say() { read -r up _ </proc/uptime; echo "$SOLOIST_TOKEN $SOLOIST_NODE $$ $up $1" >>"$log"; }
beat() { while :; do say "$1"; sleep 0.02; done; }
[ "$mode" = grandchild ] && { trap '' TERM; beat beat; }
say start
case $mode in
    crash) echo "about to crash" >&2; exit 3 ;;
    once) echo "once"; say end; exit 0 ;;
    stubborn)
        trap 'say ignored' TERM
        (setsid sh "$0" "$log" grandchild </dev/null >/dev/null 2>&1 &)
        ;;
    *) trap 'say end; exit 0' TERM ;;
esac
n=0
while :; do
    n=$((n + 1))
    say beat
    echo "::progress $n/100000 step $n"
    [ $((n % 25)) -ne 0 ] || echo "this is step $n"
    sleep 0.02
done
"#;

/// One act of one process.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Act {
    /// `$SOLOIST_TOKEN`.
    pub token: u64,
    /// `$SOLOIST_NODE`.
    pub node: String,
    /// Of the process.
    pub pid: i32,
    /// CLOCK_BOOTTIME in seconds.
    pub at: f64,
    /// `start`, `beat`, `ignored` (a TERM), `end`.
    pub word: String,
}

/// The file that the scripts of one job write to.
pub(crate) struct Witness {
    file: PathBuf,
}

impl Witness {
    /// Of the job `name`, whose file lies in `ground`.
    #[must_use]
    pub(crate) fn of(ground: &Ground, name: &str) -> Self {
        Self { file: ground.path(&format!("{name}.acts")) }
    }

    /// All acts so far, in order.
    #[must_use]
    pub(crate) fn acts(&self) -> Vec<Act> {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| act(line).unwrap_or_else(|| panic!("odd line {line:?}"))).collect()
    }

    /// How many runs have started.
    #[must_use]
    pub(crate) fn starts(&self) -> usize {
        self.acts().iter().filter(|act| act.word == "start").count()
    }

    /// Waits until `count` runs have started, and gives the first act of the last of them.
    #[must_use]
    pub(crate) fn until_started(&self, count: usize) -> Act {
        until(&format!("start number {count} in {}", self.file.display()), || {
            self.acts().into_iter().filter(|act| act.word == "start").nth(count - 1)
        })
    }

    /// Waits until `count` more acts of `token` have been written.
    pub(crate) fn until_more(&self, token: u64, count: usize) {
        let of = || self.acts().iter().filter(|act| act.token == token).count();
        let before = of();
        until("the script goes on", || (of() >= before + count).then_some(()));
    }

    /// The processes of the job that live now, by our numbers: those that a script writes down may be numbers of a
    /// pid namespace of its own, and there the first process alone has the same.
    #[must_use]
    pub(crate) fn living(&self) -> Vec<i32> {
        self.living_with(None)
    }

    /// Those of one token.
    #[must_use]
    pub(crate) fn living_under(&self, token: u64) -> Vec<i32> {
        self.living_with(Some(format!("SOLOIST_TOKEN={token}")))
    }

    fn living_with(&self, mark: Option<String>) -> Vec<i32> {
        let name = self.file.file_stem().and_then(|name| name.to_str()).expect("a job");
        living(name, self.file.parent().expect("a ground"), mark)
    }

    /// The first promise: once a run has started, no process of an earlier one acts, and each run
    /// has a token of its own, greater than every earlier one.
    ///
    /// # Panics
    /// With the two acts, when it was broken.
    pub(crate) fn check(&self) {
        let mut newest: Option<Act> = None;
        for act in self.acts() {
            if let Some(newest) = &newest {
                holds(act.token >= newest.token, || format!("overlap: {act:?} after {newest:?}"));
                holds(act.word != "start" || act.token > newest.token, || {
                    format!("a token was used twice: {newest:?}, {act:?}")
                });
            }
            if newest.as_ref().is_none_or(|newest| act.token > newest.token) {
                holds(act.word == "start", || format!("a run begins with its start, not {act:?}"));
            }
            newest = Some(act);
        }
    }
}

/// Whatever else goes wrong, and whatever the machine excuses: overlaps are judged.
impl Drop for Witness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // What cannot even be read is no reason to end the program.
            catch_unwind(AssertUnwindSafe(|| self.check())).ok();
        }
    }
}

/// The processes of the job `name` in `directory` that live now, by our numbers; with `mark` those whose environment has it.
#[must_use]
pub(crate) fn living(name: &str, directory: &Path, mark: Option<String>) -> Vec<i32> {
    let marks = [Some(format!("SOLOIST_JOB={name}")), mark];
    let ground = directory.canonicalize().expect("a ground");
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .filter(|entry| {
            let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            let carries = |mark: &String| {
                environ.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
            };
            marks.iter().flatten().all(carries)
                && std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == ground)
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn act(line: &str) -> Option<Act> {
    let mut words = line.split(' ');
    let act = Act {
        token: words.next()?.parse().ok()?,
        node: words.next()?.to_owned(),
        pid: words.next()?.parse().ok()?,
        at: words.next()?.parse().ok()?,
        word: words.next()?.to_owned(),
    };
    words.next().is_none().then_some(act)
}

/// The TOML of a job whose script is the witness in `mode` (`beat`, `stubborn`, `crash`, `once`); `more` are further
/// keys. [`place`] must write the script.
#[must_use]
pub(crate) fn job(name: &str, mode: &str, more: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\ncommand = [\"sh\", \"witness.sh\", \"{name}.acts\", \"{mode}\"]\nmin_uptime = \"300ms\"\n{more}\n"
    )
}

/// Writes the script beside the configuration.
///
/// # Panics
/// When it cannot be written.
pub(crate) fn place(ground: &Ground) {
    let file: &Path = &ground.path("witness.sh");
    std::fs::write(file, SCRIPT).expect("the script");
}

#[test]
fn the_checker_finds_an_overlap() {
    let ground = Ground::new("sqlite:unused.db", "");
    let witness = Witness::of(&ground, "job");
    let write = |text: &str| std::fs::write(ground.path("job.acts"), text).expect("written");
    write("5 a 1 1.00 start\n5 a 1 1.02 beat\n6 b 2 1.03 start\n6 b 2 1.05 beat\n");
    witness.check();
    for overlap in [
        "5 a 1 1.00 start\n6 b 2 1.03 start\n5 a 1 1.02 beat\n",
        "5 a 1 1.00 start\n5 a 2 1.03 start\n",
        "6 a 1 1.00 start\n5 a 2 1.03 start\n",
    ] {
        write(overlap);
        assert!(catch_unwind(|| witness.check()).is_err(), "{overlap}");
    }
}
