//! Says what this build is, for `soloist --version`: commit, profile and target, in `SOLOIST_BUILD`.
//!
//! It never fails: without git, or outside a checkout, the commit is unknown. The same sources give the same words: a date stands
//! there only if `SOURCE_DATE_EPOCH` gives one. A debug build asks nobody for its commit, or every commit would build it anew.

use std::path::Path;
use std::process::Command;

/// What a build is described by; each as cargo and the environment give it.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) commit: Option<String>,
    pub(crate) epoch: Option<String>,
    pub(crate) profile: String,
    pub(crate) target: String,
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=SOLOIST_COMMIT");
    println!("cargo::rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let profile = variable("PROFILE").unwrap_or_default();
    let asked = || if profile == "release" { of_git(Path::new(".")) } else { None };
    let facts = Facts {
        commit: variable("SOLOIST_COMMIT").or_else(asked),
        epoch: variable("SOURCE_DATE_EPOCH"),
        target: variable("TARGET").unwrap_or_default(),
        profile,
    };
    println!("cargo::rustc-env=SOLOIST_BUILD={}", described(&facts));
}

/// The facts in one line.
pub(crate) fn described(facts: &Facts) -> String {
    let plain = |text: &&String| {
        let known = |c: char| c.is_ascii_alphanumeric() || "-+.".contains(c);
        !text.is_empty() && text.len() <= 64 && text.chars().all(known)
    };
    let commit = facts.commit.as_ref().filter(plain).map_or("unknown", String::as_str);
    let date = facts.epoch.as_ref().and_then(|epoch| epoch.parse().ok()).map(date);
    let date = date.map(|date| format!(", {date}")).unwrap_or_default();
    format!("commit {commit}{date}, {} build for {}", facts.profile, facts.target)
}

/// The day of an instant in seconds since 1970, in UTC. After "chrono-Compatible Low-Level Date Algorithms" (Hinnant): years
/// begin in March, so that a leap day ends one.
fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The commit that is checked out in `at`, with `-dirty` when tracked files differ from it.
///
/// It writes nothing: `git describe --dirty` would write the index of a fresh clone, and whatever is newer than this build
/// makes cargo build all of it again.
pub(crate) fn of_git(at: &Path) -> Option<String> {
    for path in ["HEAD", "logs/HEAD"] {
        let path = git(at, &["rev-parse", "--git-path", path]);
        // What is not there would have been changed each time.
        if let Some(path) = path.filter(|path| at.join(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for path in ["Cargo.toml", "Cargo.lock", "crates", "src", "templates", "static"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let commit =
        git(at, &["rev-parse", "--short=12", "HEAD"]).filter(|commit| !commit.is_empty())?;
    let changed = git(at, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}-dirty") })
}

/// What `git` says; `None` when it says that something is wrong.
fn git(at: &Path, words: &[&str]) -> Option<String> {
    let output =
        Command::new("git").arg("--no-optional-locks").args(words).current_dir(at).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo speaks to a build script by its environment"
    )]
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
