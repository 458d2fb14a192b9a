//! Says what this build is, for `soloist --version`: commit, profile and target, in `SOLOIST_BUILD`.
//!
//! It never fails: without git, or outside a checkout, the commit is unknown. The same sources give the same words: a date stands
//! there only if `SOURCE_DATE_EPOCH` gives one. A debug build asks nobody for its commit, or every commit would build it anew.

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
    let asked = || if profile == "release" { of_git() } else { None };
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

/// The commit that is checked out, with `-dirty` when tracked files differ from it.
fn of_git() -> Option<String> {
    for path in ["HEAD", "logs/HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for path in ["Cargo.toml", "Cargo.lock", "src", "templates", "static"] {
        println!("cargo::rerun-if-changed={path}");
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned()).filter(|said| !said.is_empty())
}

fn variable(name: &str) -> Option<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "cargo speaks to a build script by its environment"
    )]
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
