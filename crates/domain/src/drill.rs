//! A drill: an operator crashes the holder of a job on purpose, and the take-over is measured.
//!
//! The order is bound to one token, which is one grant of the lease: no later run, no other node and no restarted process can take it for
//! its own. It stays in the job's record with its result until the next one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::lease::Token;
use super::name::{NodeName, UserName};
use super::time::StoreTime;

/// The newest drill of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Drill {
    /// Of the lease whose holder must crash.
    pub token: Token,
    /// Who ordered it.
    pub by: UserName,
    /// When the order was written. The crash itself comes later, by the time that the order took to arrive. So a time
    /// measured from here is too long rather than too short.
    pub at: StoreTime,
    /// The node that started the next run; `None` until then.
    pub to: Option<NodeName>,
    /// When that run started.
    pub started: Option<StoreTime>,
}

impl Drill {
    /// From the order to the start of the next run, by the store's clock; `None` until a node took over.
    #[must_use]
    pub fn takeover(&self) -> Option<Duration> {
        Some(self.started?.since(self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_takeover_counts_from_the_order() {
        let mut drill = Drill {
            token: Token(7),
            by: UserName::new("ada").expect("a valid name"),
            at: StoreTime(1_000),
            to: None,
            started: None,
        };
        assert_eq!(drill.takeover(), None);
        drill.started = Some(StoreTime(1_042));
        assert_eq!(drill.takeover(), Some(Duration::from_millis(42)));
    }
}
