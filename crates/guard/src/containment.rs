//! Which level of containment this machine allows: tested, not guessed, by a process made for it.
//!
//! A node tests once at its start and passes the result to every guard ([`Choice`]). It cannot test by itself: a process with threads
//! must not fork into a namespace, so this program is started once more and does exactly what a guard would do.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::choice::Choice;
use super::message::{PROBE, WORD};
use super::{cgroup, init};
use soloist_domain::containment::Containment;

/// What works here, and why the rest does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Available {
    /// Pid namespaces with a /proc of their own; else why not.
    pub pid_namespace: Result<(), String>,
    /// The directory for cgroups of runs; else why not.
    pub cgroup: Result<PathBuf, String>,
}

impl Available {
    /// The best that works.
    #[must_use]
    pub fn strongest(&self) -> Containment {
        match (&self.pid_namespace, &self.cgroup) {
            (Ok(()), _) => Containment::PidNamespace,
            (_, Ok(_)) => Containment::Cgroup,
            _ => Containment::Subreaper,
        }
    }

    /// Why `level` is not available here, with the remedy; `None` when it is.
    #[must_use]
    pub fn why_not(&self, level: Containment) -> Option<&str> {
        match level {
            Containment::PidNamespace => self.pid_namespace.as_ref().err().map(String::as_str),
            Containment::Cgroup => self.cgroup.as_ref().err().map(String::as_str),
            Containment::Subreaper => None,
        }
    }

    /// The choice for the guards: the level `wanted`, or without one the strongest.
    ///
    /// # Errors
    /// When `wanted` is not available: why, and what to do.
    pub fn choose(&self, wanted: Option<Containment>) -> Result<Choice, String> {
        let level = wanted.unwrap_or_else(|| self.strongest());
        if let Some(why) = self.why_not(level) {
            return Err(format!(
                "containment by {level} was asked for and cannot be had on this machine: {why}; or write containment = \"auto\""
            ));
        }
        Ok(Choice { level, cgroups: self.cgroup.clone().ok(), demanded: wanted.is_some() })
    }
}

/// Tries what this machine allows, in a process of its own. Takes some milliseconds.
#[must_use]
pub fn available() -> Available {
    available_to(Path::new("/proc/self/exe"))
}

/// As [`available`], with the program given (tests are not Soloist themselves).
#[must_use]
pub fn available_to(exe: &Path) -> Available {
    let unknown = |why: String| Available { pid_namespace: Err(why.clone()), cgroup: Err(why) };
    let output = Command::new(exe)
        .args([WORD, PROBE])
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    match output.map(|output| serde_json::from_slice(&output.stdout)) {
        Ok(Ok(available)) => available,
        Ok(Err(error)) => unknown(format!("the trial ended without a result: {error}")),
        Err(error) => unknown(format!("no process could be started to try it: {error}")),
    }
}

/// The trial, in the process that [`available`] started.
pub(super) fn try_everything() -> Available {
    Available { pid_namespace: init::probe(), cgroup: cgroup::probe() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_cannot_be_had_is_refused_and_never_replaced() {
        let none = Available { pid_namespace: Err("a".into()), cgroup: Err("b".into()) };
        assert_eq!(none.choose(None).map(|choice| choice.level), Ok(Containment::Subreaper));
        let refusal = none.choose(Some(Containment::PidNamespace)).unwrap_err();
        assert!(refusal.contains("pid namespace") && refusal.contains("auto"), "{refusal}");
        assert!(none.choose(Some(Containment::Cgroup)).is_err());
        let both = Available { pid_namespace: Ok(()), cgroup: Ok("/c".into()) };
        assert_eq!(both.strongest(), Containment::PidNamespace);
        let weaker = both.choose(Some(Containment::Subreaper)).unwrap();
        assert!(weaker.demanded && weaker.level == Containment::Subreaper);
    }
}
