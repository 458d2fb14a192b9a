//! The levels of containment, which keep every process of a script from outliving its lease: three, the strongest first.
//! `guard::containment` finds out which of them a machine allows; ADR 0007 explains why there are three.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A level of containment, the strongest first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(rename_all = "kebab-case")]
pub enum Containment {
    /// A pid namespace: the kernel kills everything in it when its first process dies, whichever other processes are dead already.
    PidNamespace,
    /// A cgroup: the kernel kills everything in it on one command, but a process must be alive to give it.
    Cgroup,
    /// The guard is the subreaper of all orphans, and finds them in /proc one by one.
    #[default]
    Subreaper,
}

impl Containment {
    /// Every level, the strongest first.
    pub const ALL: [Self; 3] = [Self::PidNamespace, Self::Cgroup, Self::Subreaper];
}

impl fmt::Display for Containment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PidNamespace => "pid namespace",
            Self::Cgroup => "cgroup",
            Self::Subreaper => "subreaper",
        })
    }
}

impl FromStr for Containment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pid-namespace" => Ok(Self::PidNamespace),
            "cgroup" => Ok(Self::Cgroup),
            "subreaper" => Ok(Self::Subreaper),
            _ => Err(format!(
                "{text:?} is no level of containment: write auto, pid-namespace, cgroup or subreaper"
            )),
        }
    }
}
