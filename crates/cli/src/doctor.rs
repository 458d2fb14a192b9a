//! `soloist doctor`: looks at the configuration, the store, this machine and the cluster, and says what to do.
//!
//! It repairs nothing, and it finishes whatever is broken: a store out of reach is one finding among others.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use serde::Serialize;

use super::colour::painted;
use super::output::{json, print, visible};
use super::terminal::absent;
use super::{Failure, ListArgs};
use soloist_config::{Config, Examination};
use soloist_domain::containment::Containment;
use soloist_domain::definition::agreed;
use soloist_domain::name::JobName;
use soloist_domain::time::StoreTime;
use soloist_ops::external::unclaimed;
use soloist_runner::child::available;
use soloist_store::accounts::Accounts as _;
use soloist_store::examine::{Finding, Verdict};
use soloist_store::nodes::{NodeRecord, listed};
use soloist_store::{Options, StoreError};
use soloist_view::DriftView;

/// Descriptors that a job needs at its node: a guard's socket and two pipes, and what a start needs for a moment.
const DESCRIPTORS_PER_JOB: u64 = 8;
/// What a node needs besides jobs and sockets.
const DESCRIPTORS: u64 = 128;

#[derive(Serialize)]
struct Answer {
    findings: Vec<Finding>,
    bad: usize,
    warnings: usize,
}

/// `doctor`.
pub(super) async fn doctor(examined: Examination, args: &ListArgs) -> Result<(), Failure> {
    let mut findings = configuration(&examined);
    match &examined.config {
        Ok(config) => {
            findings.extend(commands(config, &examined));
            findings.extend(store(config).await);
            findings.extend(zone_table(config));
            findings.extend(descriptors(config));
            findings.extend(super::lifeline::of_a_node(config));
        }
        Err(_) => findings.push(Finding::warn(
            "store",
            "not looked at: the configuration that names it has problems",
            "put those right first",
        )),
    }
    findings.push(containment(examined.config.as_ref().ok().and_then(|c| c.containment)));
    finish(findings, args.json)
}

/// Prints what was found; fails if anything of it is bad.
pub(super) fn finish(findings: Vec<Finding>, as_json: bool) -> Result<(), Failure> {
    let count = |verdict| findings.iter().filter(|f| f.verdict == verdict).count();
    let (bad, warnings) = (count(Verdict::Bad), count(Verdict::Warn));
    if as_json {
        print(&json(&Answer { findings, bad, warnings }, false)?)?;
    } else {
        print(&report(&findings))?;
    }
    match bad {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 thing is bad".to_owned())),
        n => Err(Failure::Failed(format!("{n} things are bad"))),
    }
}

fn report(findings: &[Finding]) -> String {
    let wide = findings.iter().map(|f| f.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { check, verdict, what, remedy } in findings {
        let verdict = match verdict {
            Verdict::Ok => "ok  ",
            Verdict::Warn => "warn",
            Verdict::Bad => "BAD ",
        };
        let verdict = painted(verdict);
        text.push_str(&format!("{verdict}  {check:wide$}  {}\n", visible(what)));
        if let Some(remedy) = remedy {
            text.push_str(&format!("      {:wide$}  -> {}\n", "", visible(remedy)));
        }
    }
    text
}

/// What `soloist check` says, and who may change the file.
fn configuration(examined: &Examination) -> Vec<Finding> {
    let check = "configuration";
    let as_it_says = |verdict, text: String| Finding { check, verdict, what: text, remedy: None };
    let problems = examined.config.as_ref().err().map(|p| p.0.as_slice()).unwrap_or_default();
    let mut findings: Vec<Finding> =
        problems.iter().map(|p| as_it_says(Verdict::Bad, p.to_string())).collect();
    let warnings = examined.warnings.0.iter();
    findings.extend(warnings.map(|w| as_it_says(Verdict::Warn, w.to_string())));
    if let Ok(config) = &examined.config {
        match &config.file {
            Some(file) => findings.extend(permissions(file, &config.store)),
            None => findings.push(Finding::warn(
                check,
                "there is no file: the defaults rule, without jobs",
                "write a soloist.toml, or name one with --config",
            )),
        }
        if findings.is_empty() {
            let file = config.file.as_deref().map(|file| file.display().to_string());
            findings.push(Finding::ok(check, file.unwrap_or_default()));
        }
    }
    findings
}

/// A user who can write the file can run any command as the node's user. The configuration itself finds
/// that *every* user may.
fn permissions(file: &Path, store: &str) -> Vec<Finding> {
    let Ok(found) = std::fs::metadata(file) else { return Vec::new() };
    let (mode, shown) = (found.permissions().mode(), file.display());
    let mut findings = Vec::new();
    if mode & 0o020 != 0 {
        findings.push(Finding::warn(
            "configuration",
            format!(
                "the group of {shown} may change it, and with it run any command as the node's user"
            ),
            format!("chmod g-w {shown}, unless all of that group may do so"),
        ));
    }
    let me = nix::unistd::getuid().as_raw();
    if found.uid() != 0 && found.uid() != me {
        findings.push(Finding::warn(
            "configuration",
            format!("{shown} belongs to user {}, who may run any command through it", found.uid()),
            format!("chown {me} {shown}"),
        ));
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if mode & 0o004 != 0 && has_password(store) && text.contains(store) {
        findings.push(Finding::warn(
            "configuration",
            format!("{shown} holds the store's password and everybody may read it"),
            format!("chmod o-r {shown}, or set SOLOIST_STORE instead"),
        ));
    }
    findings
}

/// Whether the URL names more than a user before the `@`.
fn has_password(store: &str) -> bool {
    let before = store.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    let password = before.and_then(|(before, _)| before.split_once(':'));
    password.is_some_and(|(_, password)| !password.is_empty())
}

/// That commands and directories are there is checked with the configuration; a missing one stands there already.
fn commands(config: &Config, examined: &Examination) -> Option<Finding> {
    let here: Vec<&str> = config
        .jobs
        .iter()
        .filter(|job| job.runs_on(&config.node))
        .map(|job| job.name.as_str())
        .collect();
    let own = config.jobs.iter().filter(|job| !job.is_external()).count();
    let elsewhere = own - here.len();
    if config.jobs.is_empty() || !examined.warnings.0.is_empty() {
        return None;
    }
    let mut what = match here.as_slice() {
        [] => format!("no job may run on {}", config.node),
        here => format!("found, with their directories: {}", here.join(", ")),
    };
    if elsewhere > 0 {
        what.push_str(&format!("; {elsewhere} not for {}", config.node));
    }
    Some(Finding::ok("commands", what))
}

async fn store(config: &Config) -> Vec<Finding> {
    let options = Options {
        prefix: config.prefix.clone(),
        longest_lease: config.longest_lease(),
        make: false,
        ..Options::default()
    };
    let out_of_reach = |error: StoreError| {
        let remedy = match error {
            StoreError::Unavailable(_) => {
                "start it, or correct `store` (--store, SOLOIST_STORE); until then nothing runs"
            }
            _ => "as it says; until then no node starts",
        };
        vec![Finding::bad("store", error.to_string(), remedy)]
    };
    let store = match soloist_stores::connect(&config.address(), &options).await {
        Ok(store) => store,
        Err(StoreError::Absent(_)) => {
            return vec![Finding::bad("store", absent(config), "nothing runs until then")];
        }
        Err(error) => return out_of_reach(error),
    };
    let mut findings = store.examine().await.unwrap_or_else(out_of_reach);
    match listed(&store).await {
        Ok(nodes) => {
            findings.push(cluster(&nodes));
            findings.push(definitions(config, &nodes));
        }
        Err(error) => findings.extend(out_of_reach(error)),
    }
    match store.users().await {
        Ok(users) => findings.extend(unclaimed(config, &users).into_iter().map(|what| {
            let remedy = "before somebody signs in for the first time by that name";
            Finding::warn("accounts", what, remedy)
        })),
        Err(error) => findings.extend(out_of_reach(error)),
    }
    findings
}

fn cluster(nodes: &[NodeRecord]) -> Finding {
    let living: Vec<&NodeRecord> = nodes.iter().filter(|node| node.is_alive()).collect();
    let mut versions: Vec<&str> = living.iter().map(|n| n.beat.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let what = match living.len() {
        0 => "no node is alive".to_owned(),
        n => format!("{n} alive, version {}", versions.join(" and ")),
    };
    match (living.len(), versions.len()) {
        (0, _) => Finding::warn("nodes", what, "start one: soloist serve"),
        (1, _) => Finding::warn("nodes", what, "start a second one: nobody takes over from one"),
        (_, 1) => Finding::ok("nodes", what),
        _ => Finding::warn("nodes", what, "finish the upgrade: give all nodes one version"),
    }
}

/// Whether all living nodes define the same, and this configuration with them.
fn definitions(config: &Config, nodes: &[NodeRecord]) -> Finding {
    let check = "definitions";
    let mut said = BTreeSet::new();
    let told = nodes.iter().flat_map(|node| node.told.keys());
    let jobs: BTreeSet<&JobName> = told.chain(config.jobs.iter().map(|job| &job.name)).collect();
    let here = config.definitions(StoreTime(jiff::Timestamp::now().as_millisecond()));
    for job in &jobs {
        let drift = DriftView::of(job, nodes);
        said.extend(drift.iter().map(|drift| drift.sentence(job.as_str())));
        let theirs = nodes.iter().filter(|node| node.is_alive());
        let theirs: Vec<_> =
            theirs.filter_map(|node| Some((&node.beat.node, node.told.get(*job)?))).collect();
        let Some(agreed) = agreed(&theirs) else { continue };
        let Some(own) = here.get(*job) else {
            said.insert(format!("this configuration does not define {job}"));
            continue;
        };
        let keys = own.differs_from(agreed);
        if !keys.is_empty() {
            said.insert(format!(
                "this configuration defines {job} otherwise than most nodes: {}",
                keys.join(", ")
            ));
        }
    }
    if said.is_empty() {
        return Finding::ok(check, "every living node defines the same jobs alike");
    }
    Finding::warn(
        check,
        said.into_iter().collect::<Vec<_>>().join("; "),
        "give every node the same soloist.toml, then: kill -HUP its process (systemctl reload)",
    )
}

/// The version of this machine's table of zones, if a schedule needs one. What it says of them is compared as definitions are.
fn zone_table(config: &Config) -> Option<Finding> {
    let scheduled = config.jobs.iter().filter_map(|job| job.schedule.as_ref());
    let zones: BTreeSet<&str> = scheduled.filter_map(|one| one.plan.zone()).collect();
    if zones.is_empty() {
        return None;
    }
    let check = "zone table";
    let zones = zones.into_iter().collect::<Vec<_>>().join(", ");
    Some(match soloist_schedule::tzdb_version() {
        Some(version) => Finding::ok(check, format!("tzdata {version}; schedules are in {zones}")),
        None => Finding::warn(
            check,
            format!("the table does not say its version; schedules are in {zones}"),
            "install the package tzdata of your system, so that rules of zones are kept up to date",
        ),
    })
}

/// What this process may open is what a node started from here could.
fn descriptors(config: &Config) -> Option<Finding> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft: u64 = line.split_whitespace().next()?.parse().unwrap_or(u64::MAX);
    let jobs = config.jobs.len() as u64 * DESCRIPTORS_PER_JOB;
    let need = DESCRIPTORS + jobs + config.live.sockets_per_node as u64;
    let what = format!("{soft} may be open at once; jobs and live sockets may need {need}");
    let check = "descriptors";
    Some(match soft {
        soft if soft >= need => Finding::ok(check, what),
        soft if soft < DESCRIPTORS + jobs => Finding::bad(
            check,
            what,
            format!(
                "raise it for the node (systemd: LimitNOFILE={need}; shell: ulimit -n {need}): scripts could not be started"
            ),
        ),
        _ => Finding::warn(
            check,
            what,
            format!(
                "raise it (systemd: LimitNOFILE={need}; shell: ulimit -n {need}), or lower live.sockets_per_node"
            ),
        ),
    })
}

/// How a script's processes are kept together on this machine, and why not better.
fn containment(wanted: Option<Containment>) -> Finding {
    let check = "containment";
    let available = available();
    let level = match available.choose(wanted) {
        Ok(choice) => choice.level,
        Err(why) => return Finding::bad(check, why, "nodes refuse to start like this"),
    };
    let what = format!("scripts started here are contained by: {level}");
    let better = Containment::ALL.into_iter().filter(|better| *better < level);
    let whys: Vec<String> = better
        .filter_map(|better| Some(format!("{better}: {}", available.why_not(better)?)))
        .collect();
    if whys.is_empty() {
        return Finding::ok(check, what);
    }
    Finding::warn(
        check,
        what,
        format!(
            "what left its session outlives a kill -9 of node and guard together until the node starts again; better is {}",
            whys.join("; ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::has_password;

    #[test]
    fn a_user_without_a_password_is_no_secret() {
        for (url, secret) in [
            ("postgres://soloist@db/jobs", false),
            ("postgres://soloist:@db/jobs", false),
            ("postgres://soloist:sesame@db/jobs", true),
            ("mysql://soloist:sesame@db/jobs", true),
            ("rediss://:sesame@cache:6380", true),
            ("redis+sentinel://u:sesame@one,two/main", true),
            ("redis://cache:6379", false),
            ("sqlite:/var/lib/a@b.db", false),
        ] {
            assert_eq!(has_password(url), secret, "{url}");
        }
    }
}
