//! The keys of `[[job]]` that say when it runs: its schedule, the rules for its ticks, its parameters.

use std::sync::Arc;
use std::time::Duration;

use super::document::{Field, Section};
use super::params::{self, Param};
use soloist_domain::backoff::Backoff;
use soloist_domain::lease::Timing;
use soloist_domain::name::JobName;
use soloist_domain::tick::{self, GRACE, Missed, OnLoss, Overlap, Rules, Ticks};
use soloist_domain::time::StoreTime;
use soloist_schedule::{Kind, Schedule, Spec, Wrong};

/// All keys of this room.
pub(super) const KEYS: [&str; 17] = [
    "schedule",
    "dialect",
    "every",
    "offset",
    "at",
    "zone",
    "jitter",
    "missed",
    "missed_window",
    "missed_most",
    "overlap",
    "on_loss",
    "retries",
    "params",
    "start_within",
    "finish_within",
    "at_least",
];
/// Keys that are refused by name until they are built.
pub(super) const LATER: [(&str, &str); 3] = [
    ("calendar", "calendars are not built yet: remove it, and leave such days out of the schedule"),
    ("on_holiday", "calendars are not built yet: remove it"),
    ("active", "active hours are not built yet: remove it, and use a schedule or the switches"),
];
const MAIN: [&str; 3] = ["schedule", "every", "at"];
const SHORTEST: Duration = Duration::from_secs(1);
/// The longest time that counts from a tick: ten years. What is longer is a slip, and sums of it must stay dates.
const LONGEST: Duration = Duration::from_secs(3_650 * 86_400);

/// When a job runs, and the rules for its ticks.
#[derive(Debug, Clone)]
pub struct Scheduled {
    /// Its expressions.
    pub plan: Arc<Schedule>,
    /// The same, with the rules, as the law takes it.
    pub law: tick::Schedule,
    /// Its parameters, by name.
    pub params: Vec<Param>,
}

impl Scheduled {
    /// Of a job that only other nodes define, whose text they tell: its ticks can be shown. Its rules and parameters are not known here.
    pub(super) fn told(job: &JobName, text: &str) -> Option<Self> {
        let plan = Arc::new(Schedule::of_text(job, text)?);
        let filler = params::Filler { params: Vec::new(), zone: jiff::tz::TimeZone::UTC };
        let (ticks, rules) = (plan.clone(), Rules::default());
        let law = tick::Schedule {
            ticks,
            rules,
            text: plan.text(),
            params: Arc::new(filler),
            lacks: Default::default(),
        };
        Some(Self { plan, law, params: Vec::new() })
    }
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        self.law == other.law && self.params == other.params
    }
}

impl Eq for Scheduled {}

/// The values of the other keys of the job.
pub(super) struct Beside<'a> {
    pub(super) name: Option<&'a JobName>,
    /// `zone` at the top of the file.
    pub(super) zone: Option<&'a str>,
    pub(super) timing: Option<Timing>,
    pub(super) backoff: Option<Backoff>,
    pub(super) max_runtime: Option<Duration>,
}

/// Reads all of it; `Some(None)`: the job runs continuously.
pub(super) fn read(section: &Section<'_>, beside: &Beside<'_>) -> Option<Option<Scheduled>> {
    for (key, why) in LATER {
        if let Some(field) = section.get(key) {
            field.wrong(why);
        }
    }
    let given: Vec<&str> = MAIN.into_iter().filter(|key| section.get(key).is_some()).collect();
    let Some(main) = given.first() else {
        return without(section);
    };
    if let Some(second) = given.get(1).and_then(|key| section.get(key)) {
        second.wrong(format!(
            "goes not with {main}: keep one of them (a schedule may be a list of expressions)"
        ));
        return None;
    }
    if let Some(field) = section.get("repeat") {
        field.wrong(format!(
            "goes not with {main}: a job runs at its ticks, or again and again; remove one of them"
        ));
        return None;
    }
    let plan = plan(section, main, beside);
    let rules = rules(section, beside);
    let params = params::read(section);
    let (plan, rules, params) = (Arc::new(plan?), rules?, params?);
    let zone = plan.zone().and_then(|zone| jiff::tz::TimeZone::get(zone).ok());
    let filler =
        params::Filler { params: params.clone(), zone: zone.unwrap_or(jiff::tz::TimeZone::UTC) };
    let law = tick::Schedule {
        ticks: plan.clone(),
        rules,
        text: plan.text(),
        params: Arc::new(filler),
        lacks: Default::default(),
    };
    let now = StoreTime(jiff::Timestamp::now().as_millisecond());
    if let Some(field) = section.get(main).filter(|_| law.ticks.after(now).is_none()) {
        field.warn("is over: no tick comes any more, and nothing runs by itself; write a later one, or remove the job");
    }
    for param in params.iter().filter(|param| param.default.is_none()) {
        if let Some(field) = section.get("params") {
            field.warn(format!(
                "{} has no default: the schedule gives it as empty, and who starts a run by hand must give it",
                param.name
            ));
        }
    }
    Some(Some(Scheduled { plan, law, params }))
}

/// A continuous job: none of these keys means anything.
fn without(section: &Section<'_>) -> Option<Option<Scheduled>> {
    let mut whole = true;
    for key in KEYS {
        if let Some(field) = section.get(key) {
            field.wrong("counts only beside schedule, every or at: add one of them, or remove it");
            whole = false;
        }
    }
    whole.then_some(None)
}

fn length(field: &Field<'_>) -> Option<Duration> {
    let length = field.duration()?;
    if length.is_zero() {
        field.wrong("is zero: leave it out, or use for example \"5m\"");
        return None;
    }
    if length > LONGEST {
        field.wrong("is longer than ten years: use at most \"3650d\"");
        return None;
    }
    Some(length)
}

/// One text, or a list of them.
fn texts<'a>(field: &Field<'a>, remedy: &str) -> Option<Vec<(Field<'a>, &'a str)>> {
    if field.value.as_str().is_some() {
        return field.text(remedy).map(|text| vec![(field.clone(), text)]);
    }
    let texts = field.texts(remedy)?;
    if texts.is_empty() {
        field.wrong(format!("is empty: {remedy}"));
        return None;
    }
    Some(texts)
}

fn plan(section: &Section<'_>, main: &str, beside: &Beside<'_>) -> Option<Schedule> {
    const CRON: &str = r#"write schedule = "30 2 * * 1-5" (minute, hour, day, month, day of the week), or a list of such"#;
    const AT: &str = r#"write at = "2026-12-01T08:00:00+08:00", or a list of such"#;
    let field = section.get(main)?;
    let quartz = dialect(section);
    let zone = match section.get("zone") {
        Some(field) => {
            field.text(r#"write zone = "Asia/Shanghai""#).map(|zone| Some(zone.to_owned()))
        }
        None => Some(beside.zone.map(ToOwned::to_owned)),
    };
    let jitter = section.get("jitter").map_or(Some(Duration::ZERO), |field| field.duration());
    let mut places = vec![field.clone()];
    let kind = match main {
        "every" => {
            let every = field.duration()?;
            if every < SHORTEST {
                field.wrong("is too short: use 1s or more, or a continuous job (repeat)");
                return None;
            }
            let offset = section.get("offset").map_or(Some(Duration::ZERO), |f| f.duration());
            Kind::Every { every, offset: offset? }
        }
        _ => {
            let cron = main == "schedule";
            let given = texts(&field, if cron { CRON } else { AT })?;
            places = given.iter().map(|(field, _)| field.clone()).collect();
            let lines = given.iter().map(|(_, text)| (*text).to_owned()).collect();
            if cron { Kind::Cron { lines, quartz: quartz? } } else { Kind::At(lines) }
        }
    };
    for (key, only) in [("offset", "every"), ("dialect", "schedule")] {
        if let Some(field) = section.get(key).filter(|_| main != only) {
            field.wrong(format!("counts only with {only}: remove it"));
            return None;
        }
    }
    let spec = Spec { kind, zone: zone?, jitter: jitter? };
    let nobody = JobName::new("job").ok();
    let name = beside.name.or(nobody.as_ref())?;
    match Schedule::read(name, &spec) {
        Ok(plan) => Some(plan),
        Err(wrongs) => {
            for wrong in wrongs {
                let place = wrong.line.and_then(|line| places.get(line)).unwrap_or(&field);
                place.wrong(wrong.text);
            }
            None
        }
    }
}

/// The ticks of a cron expression that a command line gives, for the lease `name`.
///
/// # Errors
/// What is wrong with which option, and what to write instead.
pub fn ticks(
    name: &JobName,
    expression: &str,
    zone: &str,
    quartz: bool,
) -> Result<Arc<dyn Ticks>, String> {
    if expression.trim_start().to_ascii_lowercase().starts_with("@every") {
        return Err("--once-per: an interval is no expression: write it as one, for example \"*/15 * * * *\"".to_owned());
    }
    let kind = Kind::Cron { lines: vec![expression.to_owned()], quartz };
    let spec = Spec { kind, zone: Some(zone.to_owned()), jitter: Duration::ZERO };
    let told = |wrong: Wrong| {
        let option = if wrong.line.is_some() { "--once-per" } else { "--zone" };
        // As a configuration has it.
        format!("{option}: {}", wrong.text.replace("dialect = \"quartz\"", "--dialect quartz"))
    };
    match Schedule::read(name, &spec) {
        Ok(schedule) => Ok(Arc::new(schedule)),
        Err(wrongs) => Err(wrongs.into_iter().map(told).collect::<Vec<_>>().join("\n")),
    }
}

fn dialect(section: &Section<'_>) -> Option<bool> {
    const REMEDY: &str = r#"write dialect = "quartz" for 6 or 7 fields as Quartz and XXL-JOB have them, or leave it out for 5 fields as cron has them"#;
    let Some(field) = section.get("dialect") else { return Some(false) };
    match field.text(REMEDY)? {
        "quartz" => Some(true),
        "cron" => Some(false),
        other => {
            field.wrong(format!("{other:?} is no dialect: {REMEDY}"));
            None
        }
    }
}

/// One of some words.
fn word<T: Copy>(section: &Section<'_>, key: &str, default: T, words: &[(&str, T)]) -> Option<T> {
    let Some(field) = section.get(key) else { return Some(default) };
    let all: Vec<String> = words.iter().map(|(word, _)| format!("{word:?}")).collect();
    let remedy = format!("write {key} = {}", all.join(" or "));
    let text = field.text(&remedy)?;
    let known = words.iter().find(|(word, _)| *word == text);
    if known.is_none() {
        field.wrong(format!("{text:?} is none of its words: {remedy}"));
    }
    known.map(|(_, value)| *value)
}

fn rules(section: &Section<'_>, beside: &Beside<'_>) -> Option<Rules> {
    let missed = [("skip", Missed::Skip), ("once", Missed::Once), ("all", Missed::All)];
    let overlap =
        [("skip", Overlap::Skip), ("queue", Overlap::Queue), ("replace", Overlap::Replace)];
    let loss = [("again", OnLoss::Again), ("spent", OnLoss::Spent)];
    let missed = word(section, "missed", Missed::Once, &missed);
    let overlap = word(section, "overlap", Overlap::Skip, &overlap);
    let on_loss = word(section, "on_loss", OnLoss::Again, &loss);
    let positive =
        |key: &str| section.get(key).map_or(Some(None), |field| length(&field).map(Some));
    let window = positive("missed_window");
    let (start, finish, least) =
        (positive("start_within"), positive("finish_within"), positive("at_least"));
    less(section, ("finish_within", finish), ("start_within", start));
    less(section, ("finish_within", finish), ("at_least", least));
    less(section, ("max_runtime", beside.max_runtime.map(Some)), ("at_least", least));
    let most = section.get("missed_most").map_or(Some(10_usize), |field| {
        let most = field.integer::<usize>(1, "use 1 to 1000: how many of the newest are run")?;
        if most > 1_000 {
            field.wrong("is more than 1000: use 1 to 1000");
            return None;
        }
        Some(most)
    });
    if let Some(field) = section.get("missed_most").filter(|_| missed != Some(Missed::All)) {
        field.wrong(r#"counts only with missed = "all": remove it"#);
        return None;
    }
    let retries = section.get("retries").map_or(Some(0), |field| {
        field.integer(0, "use 0 for none, or how often a crashed tick is run again")
    });
    let (timing, backoff) = (beside.timing?, beside.backoff?);
    Some(Rules {
        missed: missed?,
        missed_window: window?,
        missed_most: most?,
        overlap: overlap?,
        on_loss: on_loss?,
        retries: retries?,
        backoff: backoff.first,
        backoff_max: backoff.max,
        grace: GRACE.max(timing.ttl + Duration::from_secs(2)),
        start_within: start?,
        finish_within: finish?,
        at_least: least?,
    })
}

/// A length of a job, as it was read: `None` at first, it is wrong.
type Length = Option<Option<Duration>>;

/// Notes a time that counts from the start of a tick and is not less than one in which all must be over.
fn less(section: &Section<'_>, (whole, most): (&str, Length), (key, one): (&str, Length)) {
    if let (Some(field), Some(Some(most)), Some(Some(one))) = (section.get(key), most, one)
        && one >= most
    {
        field.wrong(format!("{one:?} is not less than {whole} {most:?}: make it shorter"));
    }
}

#[cfg(test)]
mod tests;
