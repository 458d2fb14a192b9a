//! `soloist check`: the configuration, and nothing else; neither store nor network is touched.

use super::Failure;
use super::output::print;
use soloist_config::Examination;
use soloist_domain::time::StoreTime;
use soloist_view::ticks::next_ticks;
use soloist_view::words::Language;

/// So many ticks of each job are printed.
const NEXT: usize = 5;

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
    let counted = |n: usize, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let jobs = counted(config.jobs.len(), "job");
    let alerting = &config.alerting;
    let alerts = match (alerting.rules.len(), alerting.channels.len()) {
        (0, 0) => String::new(),
        (rules, channels) => {
            format!(", {}, {}", counted(rules, "alert"), counted(channels, "channel"))
        }
    };
    print(&format!("{file}: {jobs}{alerts}, no problems"))?;
    let now = StoreTime(jiff::Timestamp::now().as_millisecond());
    for job in &config.jobs {
        let Some(scheduled) = &job.schedule else { continue };
        let next = next_ticks(scheduled, now, NEXT, Language::En);
        print(&format!("{}: {}", job.name, next.words))?;
        for tick in &next.next {
            print(&format!("  {}", super::ticks::line(tick)))?;
        }
        if next.next.is_empty() {
            print("  no tick comes any more")?;
        }
    }
    Ok(())
}
