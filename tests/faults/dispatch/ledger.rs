//! What collectors write down: every call before it is made, and its answer when there was one.
//!
//! A line is one write with O_APPEND, so a collector that is killed leaves whole lines. An ask without an answer is a
//! call whose outcome nobody knows: the connection was dropped, the node was killed, or the collector was. Two clocks
//! stand here and are never mixed: CLOCK_BOOTTIME of this machine, which says what was surely before what, and the
//! store's, of which grants and ends of leases are made. Both in microseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A result that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) id: String,
    pub(crate) token: u64,
    pub(crate) outcome: String,
}

/// What was asked in one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Results and the next claim, either of which may be left out.
    Exchange {
        reports: Vec<Sent>,
        request: Option<String>,
    },
    Extend {
        claim: String,
    },
    Block {
        source: String,
        for_us: i64,
    },
}

/// A task that was handed out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Handed {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) token: u64,
    pub(crate) attempt: u32,
    /// When, by the store's clock.
    pub(crate) start: i64,
}

/// A claim that was granted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Granted {
    pub(crate) claim: String,
    /// By the store's clock.
    pub(crate) lease_until: i64,
    pub(crate) tasks: Vec<Handed>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// One status for each report.
    Exchange {
        statuses: Vec<String>,
        granted: Option<Granted>,
    },
    Extend {
        kept: Vec<String>,
        lost: Vec<String>,
    },
    /// It is blocked.
    Block,
    /// Refused, with this status: the claim is unknown or finished.
    Refused(u16),
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// Which process, and its how manieth call.
    pub(crate) call: (String, u64),
    /// On CLOCK_BOOTTIME.
    pub(crate) at: i64,
    pub(crate) act: Act,
}

/// Before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Act {
    Ask(Ask),
    Answer(Answer),
}

/// A call: both its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) by: String,
    pub(crate) sent: i64,
    pub(crate) ask: Ask,
    /// When it came, and what.
    pub(crate) answer: Option<(i64, Answer)>,
}

/// All calls, in the order in which they were sent.
pub(crate) fn calls(lines: impl IntoIterator<Item = Line>) -> Vec<Call> {
    let mut calls: BTreeMap<(String, u64), Call> = BTreeMap::new();
    for Line { call, at, act } in lines {
        match act {
            Act::Ask(ask) => {
                let by = call.0.clone();
                calls.insert(call, Call { by, sent: at, ask, answer: None });
            }
            Act::Answer(answer) => {
                let asked = calls.get_mut(&call).expect("asked before it was answered");
                asked.answer = Some((at, answer));
            }
        }
    }
    let mut calls: Vec<Call> = calls.into_values().collect();
    calls.sort_by_key(|call| call.sent);
    calls
}
