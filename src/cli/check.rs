//! `soloist check`: the configuration, and nothing else; neither store nor network is touched.

use super::Failure;
use super::output::print;
use crate::config::Examination;

/// Prints what was found.
pub(super) fn check(examined: Examination) -> Result<(), Failure> {
    for warning in &examined.warnings.0 {
        eprintln!("soloist: warning: {warning}");
    }
    let config = examined.config?;
    let file = match &config.file {
        Some(file) => file.display().to_string(),
        None => "no file (defaults)".to_owned(),
    };
    let jobs = match config.jobs.len() {
        1 => "1 job".to_owned(),
        n => format!("{n} jobs"),
    };
    let alerting = &config.alerting;
    let alerts = match (alerting.rules.len(), alerting.channels.len()) {
        (0, 0) => String::new(),
        (rules, channels) => format!(", {rules} alert(s), {channels} channel(s)"),
    };
    print(&format!("{file}: {jobs}{alerts}, no problems"))
}
