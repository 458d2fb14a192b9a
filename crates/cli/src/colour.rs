//! Colours for words that say a state, on a terminal that wants them; nothing else is coloured.
//!
//! A pipe gets plain text, and so does a person who sets `NO_COLOR` (no-color.org) or has a terminal that knows none.

use std::io::IsTerminal as _;
use std::sync::LazyLock;

/// A colour of ECMA-48, as SGR numbers it.
#[derive(Clone, Copy)]
enum Colour {
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Magenta = 35,
    Cyan = 36,
}

/// Whether this process colours what it prints; decided once.
static ON: LazyLock<bool> = LazyLock::new(|| {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let knows_none = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    std::io::stdout().is_terminal() && !set("NO_COLOR") && !knows_none
});

/// The states of jobs, nodes and tasks, and the verdicts of `doctor`.
fn of(word: &str) -> Option<Colour> {
    Some(match word {
        "running" | "alive" | "done" | "ok" => Colour::Green,
        "starting" | "resting" | "scheduled" | "leased" => Colour::Cyan,
        "waiting" | "late" | "backing_off" | "failing_over" | "stopping" | "draining" | "warn" => {
            Colour::Yellow
        }
        "given_up" | "silent" | "dead" | "BAD" => Colour::Red,
        "held" | "unknown" => Colour::Magenta,
        "off" => Colour::Dim,
        _ => return None,
    })
}

/// The same word in its colour, if it has one and this process colours; blanks around it stay as they are.
pub(super) fn painted(word: &str) -> String {
    if *ON { coloured(word) } else { word.to_owned() }
}

fn coloured(text: &str) -> String {
    let word = text.trim();
    match of(word) {
        Some(colour) => text.replacen(word, &format!("\x1b[{}m{word}\x1b[0m", colour as u8), 1),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use soloist_domain::dispatch::TaskState;
    use soloist_domain::job::State;

    #[test]
    fn a_state_is_coloured_and_other_text_is_not() {
        assert_eq!(coloured("running"), "\x1b[32mrunning\x1b[0m");
        assert_eq!(coloured("ok  "), "\x1b[32mok\x1b[0m  ");
        for plain in ["", "outbound", "run", "running late", "-"] {
            assert_eq!(coloured(plain), plain);
        }
    }

    #[test]
    fn every_state_of_a_job_has_a_colour_and_tasks_that_want_attention_too() {
        for state in State::ALL {
            assert!(of(state.as_str()).is_some(), "{}", state.as_str());
        }
        assert!(of(TaskState::Dead.as_str()).is_some());
    }
}
