//! `next`, `ticks` and `trigger`: when jobs with a schedule run, what became of their ticks, and a run now.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use serde_json::json;

use super::office::{Office, at};
use super::output::{print, print_json, table, visible};
use super::{ActArgs, Failure, ListArgs};
use soloist_remote::{Call, address};
use soloist_view::ticks::{NextTickView, NextTicks, TickList, TickView};

#[derive(Deserialize)]
struct AskedRun {
    tick: String,
}

/// How often a run that is waited for is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

pub(super) const TRIGGER_HELP: &str = "\
Examples:
  soloist trigger settle --param day=2026-11-11 --reason 'late files'
  soloist trigger settle --tick 'settle@2026-11-27T02:30+08:00[Asia/Shanghai]' --wait

The job runs once, also when it is off; a held job is refused. While a tick is open, the run waits. With --wait the command ends as the
run ends: 0 when it went well, else 1.";

#[derive(Debug, Args)]
pub struct NextArgs {
    /// Name of the job [default: all jobs with a schedule]
    pub job: Option<String>,
    /// How many ticks of each
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub count: usize,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
pub struct TicksArgs {
    /// Name of the job, as in the configuration
    pub job: String,
    /// How many entries
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Only these: running, done, failed, lost, missed, skipped, unwanted, covered or dropped
    #[arg(long, value_name = "WORD")]
    pub outcome: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

#[derive(Debug, Args)]
pub struct TriggerArgs {
    #[command(flatten)]
    pub act: ActArgs,
    /// A value of a parameter
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = pair)]
    pub params: Vec<(String, String)>,
    /// A tick of the schedule, by its name: its next attempt [default: a run by hand]
    #[arg(long, value_name = "TICK")]
    pub tick: Option<String>,
    /// Why, for the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
    /// Wait until it has ended, and end as it ended
    #[arg(long)]
    pub wait: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').ok_or("write NAME=VALUE, as in day=2026-11-11")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// The values by name.
fn each_once(given: &[(String, String)]) -> Result<BTreeMap<String, String>, Failure> {
    let mut params = BTreeMap::new();
    for (name, value) in given {
        if params.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::Usage(format!("--param {name}: is given twice: give it once")));
        }
    }
    Ok(params)
}

/// `next`.
pub(super) async fn next(office: &Office, args: &NextArgs) -> Result<(), Failure> {
    let names = match &args.job {
        Some(job) => vec![job.clone()],
        None => {
            let jobs = office.jobs().await?.jobs.into_iter();
            jobs.filter(|job| job.schedule.is_some()).map(|job| job.name).collect()
        }
    };
    let mut all = BTreeMap::new();
    for name in &names {
        let path = at(name, &format!("/next?count={}", args.count.clamp(1, 500)));
        let next: NextTicks = office.get(path).await?;
        all.insert(name.clone(), next);
    }
    if args.list.json {
        return match &args.job {
            Some(job) => print_json(&all[job]),
            None => print_json(&all),
        };
    }
    if names.is_empty() {
        return print("no job has a schedule: docs/schedules.md says how to give it one");
    }
    for name in &names {
        let next = &all[name];
        print(&format!("{name}: {}", visible(&next.words)))?;
        for tick in &next.next {
            print(&format!("  {}", line(tick)))?;
        }
        if next.next.is_empty() {
            print("  no tick comes any more")?;
        }
    }
    Ok(())
}

/// A tick that is to come: its own civil time, and what is special about it.
pub(super) fn line(tick: &NextTickView) -> String {
    let own = tick.tick.split_once('@').map_or(&*tick.tick, |(_, time)| time);
    let starts = match tick.starts == tick.due {
        true => String::new(),
        false => format!("  starts {}", tick.starts),
    };
    let note = match tick.note.as_deref() {
        Some("gap") => "  (clocks go forward: at the end of the gap)",
        Some("fold") => "  (clocks go back: the first time)",
        _ => "",
    };
    format!("{own}{starts}{note}")
}

/// `ticks`.
pub(super) async fn ticks(office: &Office, args: &TicksArgs) -> Result<(), Failure> {
    let limit = args.limit.clamp(1, 500);
    let list = list(office, &args.job, limit, args.outcome.as_deref()).await?;
    if args.list.json {
        return print_json(&list);
    }
    if list.ticks.is_empty() {
        return print("no tick was due yet");
    }
    let rows: Vec<_> = list.ticks.iter().map(row).collect();
    print(&table(&["TICK", "OUTCOME", "ATTEMPT", "LATE", "WHY"], &rows))
}

async fn list(
    office: &Office,
    job: &str,
    limit: usize,
    outcome: Option<&str>,
) -> Result<TickList, Failure> {
    let query = [("limit", Some(limit.to_string())), ("outcome", outcome.map(str::to_owned))];
    office.get(address(&at(job, "/ticks"), &query)).await
}

fn row(tick: &TickView) -> Vec<String> {
    let name = tick.tick.split_once('@').map_or(&*tick.tick, |(_, time)| time).to_owned();
    let name = match tick.count {
        1 => name,
        count => format!("{name} and {} more", count - 1),
    };
    let late = tick.late_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms"));
    let why = tick.why.as_deref().map(visible);
    let by = tick.by.as_ref().map(|by| format!("by {by}"));
    let why = by.into_iter().chain(why).collect::<Vec<_>>().join(": ");
    let attempt = if tick.attempt == 0 { "-".to_owned() } else { tick.attempt.to_string() };
    vec![name, tick.outcome.clone(), attempt, late, why]
}

/// `trigger`.
pub(super) async fn trigger(office: &Office, args: &TriggerArgs) -> Result<(), Failure> {
    let ask = json!({
        "params": each_once(&args.params)?,
        "reason": args.reason,
        "request_id": format!("{:032x}", rand::random::<u128>()),
        "tick": args.tick,
    });
    let job = &args.act.job;
    // Of a tick by name: what became of it before says nothing of the attempt that is asked for.
    let before = match &args.tick {
        Some(name) => attempt_of(office, job, name).await?,
        None => 0,
    };
    let call = Call::post(at(job, "/runs")).with(&ask).repeatable();
    let acting = office.acting(args.act.user.as_deref()).await?;
    let AskedRun { tick } = acting.ask(call).await?;
    if !args.wait {
        return print(&format!(
            "{tick} is asked for; follow it with: soloist ticks {job}. While it waits it can be taken back, on the page of the job or by DELETE /api/v1/jobs/{job}/runs/TICK"
        ));
    }
    eprintln!("soloist: {tick} is asked for, and waited for");
    loop {
        let list = list(office, job, 100, None).await?;
        let entry = list.ticks.iter().find(|entry| entry.tick == tick);
        match entry.map(|entry| (entry.outcome.as_str(), entry)) {
            Some((_, entry)) if entry.attempt <= before => tokio::time::sleep(LOOK_AGAIN).await,
            Some(("running", _)) | None => tokio::time::sleep(LOOK_AGAIN).await,
            Some(("done", _)) => return print(&format!("{tick} is done")),
            Some((word, entry)) => {
                let why = entry.why.as_deref().map(|why| format!(": {}", visible(why)));
                return Err(Failure::Failed(format!("{tick}: {word}{}", why.unwrap_or_default())));
            }
        }
    }
}

/// The newest attempt of that tick; 0: it has none.
async fn attempt_of(office: &Office, job: &str, name: &str) -> Result<u32, Failure> {
    let list = list(office, job, 500, None).await?;
    Ok(list.ticks.iter().find(|entry| entry.tick == name).map_or(0, |entry| entry.attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_that_is_given_twice_is_refused_and_named() {
        let given = |text: &str| pair(text).expect("a pair");
        let good = each_once(&[given("day=2026-11-11"), given("note=a=b")]).expect("two");
        assert_eq!(good["note"], "a=b");
        let twice = each_once(&[given("note=a"), given("note=b")]).expect_err("twice");
        assert!(matches!(&twice, Failure::Usage(said) if said.contains("--param note")), "{twice}");
    }
}
