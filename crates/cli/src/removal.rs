//! The question before something is removed: what would be lost, and whether that is meant.
//!
//! It is asked on a terminal only. Without one no person can answer, and the command is refused unless it says `--yes`.

use std::io::{BufRead as _, IsTerminal as _};

use super::Failure;

/// Whether to go on: at once with `yes`, else as the person at the terminal answers to `question`.
///
/// # Errors
/// [`Failure::Refused`] without a terminal, or when the answer is no.
pub(super) fn sure(yes: bool, question: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::Refused(format!(
            "{question} Nobody can be asked here, so nothing was removed: say --yes if that is meant"
        )));
    }
    eprint!("{question} Remove it? [y/N] ");
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).map_err(|error| Failure::Failed(error.to_string()))?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("nothing was removed".to_owned())),
    }
}
