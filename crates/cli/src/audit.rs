//! `soloist audit`: who did what, when, from where, why; as a table, as it happens, or as a file whose changes show.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::office::Office;
use super::output::{json, local, print, print_json, table};
use super::watch::Watch;
use super::{Failure, ListArgs};
use soloist_domain::time::StoreTime;
use soloist_ops::chain::{is_hash, verify};
use soloist_remote::{Call, Stream, address};
use soloist_store::journal::{AuditFilter, Kind};
use soloist_view::AuditView;
use soloist_view::words::iso;

/// The most entries of one page.
const AT_ONCE: usize = 500;
/// How long a node may take for all of it.
const EXPORT_MAX: Duration = Duration::from_secs(3_600);

pub(super) const HELP: &str = "\
Examples:
  soloist audit --who li --from 2026-05-04T00:00:00Z
  soloist audit --act 'login*' --kind refusal
  soloist audit --follow --json
  soloist audit --export audit.ndjson
  soloist audit --verify audit.ndjson
  soloist audit --export next.ndjson --since-hash HASH

Acts of people (also at this command line), acts of programs (API tokens) and refusals are kept apart: 100,000, 100,000 and 20,000.

An export is JSON lines, oldest first, each with the hash of the line before. Its first line says what was asked for and by whom, and
begins with the last hash of the export before, if --since-hash gave it. --verify follows that chain and says all this: exit code 0, or 1
with the first line that was changed, removed, inserted or moved, or where the file was cut off, or when it follows another export than
--since-hash says. Whoever can write the file can make a chain anew: keep the last hash, which both print, somewhere else.";

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct AuditArgs {
    /// Only by this account
    #[arg(long, value_name = "NAME")]
    pub who: Option<String>,
    /// Only this act, as in the JSON (job.hold); 'job.*' for all that begin so
    #[arg(long, value_name = "ACT")]
    pub act: Option<String>,
    /// Only on this job, node, source, rotation or account
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Only by person, by program, or refusal
    #[arg(long, value_name = "KIND")]
    pub kind: Option<Kind>,
    /// Not before this instant (RFC 3339: 2026-05-04T00:00:00Z)
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub from: Option<StoreTime>,
    /// Before this instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub to: Option<StoreTime>,
    /// How many of the newest
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub limit: usize,
    /// Go on with new entries as they come, until Ctrl-C
    #[arg(long, short, conflicts_with_all = ["export", "verify"])]
    pub follow: bool,
    /// Write all of it to this file, oldest first; - for standard output
    #[arg(long, value_name = "FILE", conflicts_with = "verify")]
    pub export: Option<PathBuf>,
    /// Check a file that --export or the API made; - for standard input. Needs no store
    #[arg(long, value_name = "FILE")]
    pub verify: Option<PathBuf>,
    /// The last hash of the export before, which this one follows; with --verify: which it must follow
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub since_hash: Option<String>,
    #[command(flatten)]
    pub list: ListArgs,
}

fn hash(text: &str) -> Result<String, String> {
    match is_hash(text) {
        true => Ok(text.to_owned()),
        false => Err("use the 64 hexadecimal digits that --export and --verify print".to_owned()),
    }
}

fn instant(text: &str) -> Result<StoreTime, String> {
    let at = text.parse::<jiff::Timestamp>();
    at.map(|at| StoreTime(at.as_millisecond()))
        .map_err(|_| "use RFC 3339, as in 2026-05-04T01:02:03Z".to_owned())
}

impl AuditArgs {
    fn filter(&self) -> AuditFilter {
        AuditFilter {
            kinds: self.kind.into_iter().collect(),
            who: self.who.clone(),
            act: self.act.clone(),
            target: self.target.clone(),
            from: self.from,
            to: self.to,
            ..AuditFilter::default()
        }
    }
}

/// A filter as the parameters of an address.
fn query(filter: &AuditFilter) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("who", filter.who.clone()),
        ("act", filter.act.clone()),
        ("target", filter.target.clone()),
        ("kind", filter.kinds.first().map(|kind| kind.as_str().to_owned())),
        ("from", filter.from.map(iso)),
        ("to", filter.to.map(iso)),
    ]
}

/// From where a page is read.
#[derive(Debug, Clone, Copy)]
enum AuditFrom {
    /// The newest, or those before this id; newest first.
    Before(Option<u64>),
    /// Those after this id; oldest first.
    After(u64),
}

/// A page.
#[derive(Deserialize)]
struct AuditPage {
    entries: Vec<AuditView>,
    /// Where the next one begins, as the last one did; `None`: there is none.
    next: Option<u64>,
}

/// A page of what `filter` lets through.
async fn page(
    office: &Office,
    filter: &AuditFilter,
    from: AuditFrom,
    limit: usize,
) -> Result<AuditPage, Failure> {
    let mut query = query(filter);
    query.push(("limit", Some(limit.clamp(1, AT_ONCE).to_string())));
    query.push(match from {
        AuditFrom::Before(before) => ("before", before.map(|id| id.to_string())),
        AuditFrom::After(after) => ("after", Some(after.to_string())),
    });
    let mut page: AuditPage = office.get(address("/api/v1/audit", &query)).await?;
    if let AuditFrom::After(_) = from {
        page.entries.reverse();
        // `next` of this call leads back; forward there is more after a full page.
        let newest = page.entries.last().map(|entry| entry.id);
        page.next = newest.filter(|_| page.entries.len() >= limit);
    }
    Ok(page)
}

#[derive(Serialize)]
struct Entries {
    entries: Vec<AuditView>,
}

/// `audit`.
pub(super) async fn audit(office: &Office, args: &AuditArgs) -> Result<(), Failure> {
    let filter = args.filter();
    if let Some(file) = &args.export {
        return export(office, &filter, file, args.since_hash.as_deref()).await;
    }
    // Subscribed before the first reading: an entry written in between is not missed.
    let watch = if args.follow { Some(Watch::start(office).await?) } else { None };
    let mut after = newest(office).await?;
    let (mut entries, mut before) = (Vec::new(), Some(after + 1));
    while entries.len() < args.limit && before.is_some() {
        let rest = args.limit - entries.len();
        let page = page(office, &filter, AuditFrom::Before(before), rest).await?;
        entries.extend(page.entries);
        before = page.next;
    }
    let Some(mut watch) = watch else {
        if args.list.json {
            return print_json(&Entries { entries });
        }
        if entries.is_empty() {
            return print("Nothing of that kind is in the audit.");
        }
        return print(&table(&HEADINGS, &entries.iter().map(row).collect::<Vec<_>>()));
    };
    entries.reverse();
    show(entries, args.list.json)?;
    while watch.change().await? {
        loop {
            let page = match page(office, &filter, AuditFrom::After(after), AT_ONCE).await {
                Ok(page) => page,
                Err(problem) => {
                    problem.say();
                    break;
                }
            };
            let newest = page.entries.last().map(|entry| entry.id);
            after = page.next.or(newest).unwrap_or(after);
            show(page.entries, args.list.json)?;
            if page.next.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// The id of the newest entry of any kind that may be seen; 0 when there is none.
async fn newest(office: &Office) -> Result<u64, Failure> {
    let page = page(office, &AuditFilter::default(), AuditFrom::Before(None), 1).await?;
    Ok(page.entries.first().map_or(0, |entry| entry.id))
}

const HEADINGS: [&str; 7] = ["AT", "WHO", "ACT", "ON", "TIMES", "FROM", "WHY"];

fn row(entry: &AuditView) -> Vec<String> {
    let who = match entry.kind.as_str() {
        "person" => entry.who.clone(),
        kind => format!("{} ({kind})", entry.who),
    };
    vec![
        local(entry.at),
        who,
        entry.act.clone(),
        entry.target.clone(),
        entry.count.to_string(),
        entry.from.clone().unwrap_or_default(),
        entry.reason.clone().unwrap_or_default(),
    ]
}

/// One entry a line.
fn show(entries: Vec<AuditView>, as_json: bool) -> Result<(), Failure> {
    for entry in entries {
        let text = match as_json {
            true => json(&entry, true)?,
            false => super::output::visible(&row(&entry).join("  ")).trim_end().to_owned(),
        };
        print(&text)?;
    }
    Ok(())
}

async fn export(
    office: &Office,
    filter: &AuditFilter,
    file: &Path,
    since_hash: Option<&str>,
) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::Failed(format!("cannot write {}: {error}", file.display()))
    };
    let mut query = query(filter);
    query.push(("since_hash", since_hash.map(str::to_owned)));
    let call = Call::get(address("/api/v1/audit", &query)).accepting("application/x-ndjson");
    // Asked before the file is made: a refusal leaves the old one as it is.
    let mut stream = office.stream(call.within(EXPORT_MAX)).await?;
    let mut out: Box<dyn Write> = if file.as_os_str() == "-" {
        Box::new(std::io::stdout().lock())
    } else {
        // It has addresses of people.
        let mut open = OpenOptions::new();
        let opened = open.write(true).create(true).truncate(true).mode(0o600).open(file);
        Box::new(BufWriter::new(opened.map_err(cannot)?))
    };
    let (lines, hash) = passed_on(&mut stream, &mut out, cannot).await?;
    eprintln!("soloist: {lines} entries; the last hash is {hash}");
    Ok(())
}

/// Writes what is streamed; how many entries its last line says there are, and with which hash.
async fn passed_on(
    stream: &mut Stream,
    out: &mut dyn Write,
    cannot: impl Fn(std::io::Error) -> Failure,
) -> Result<(u64, String), Failure> {
    let (mut line, mut last) = (Vec::new(), Vec::new());
    while let Some(piece) = stream.piece().await? {
        out.write_all(&piece).map_err(&cannot)?;
        for byte in piece {
            match byte {
                b'\n' => last = std::mem::take(&mut line),
                byte => line.push(byte),
            }
        }
    }
    out.flush().map_err(&cannot)?;
    let end: serde_json::Value = serde_json::from_slice(&last).unwrap_or_default();
    match (end["end"].as_bool(), end["lines"].as_u64(), end["hash"].as_str()) {
        (Some(true), Some(lines), Some(hash)) => Ok((lines, super::output::visible(hash))),
        _ => Err(Failure::Failed(
            "it stopped before the end, so the file is cut off: repeat it".to_owned(),
        )),
    }
}

/// `audit --verify`.
pub(super) fn check(file: &Path, since_hash: Option<&str>) -> Result<(), Failure> {
    let cannot =
        |error: std::io::Error| Failure::Failed(format!("cannot read {}: {error}", file.display()));
    let verified = if file.as_os_str() == "-" {
        verify(std::io::stdin().lock().lines())
    } else {
        let file = std::fs::File::open(file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Failure::NotFound(format!("there is no {}", file.display()))
            }
            _ => cannot(error),
        })?;
        verify(BufReader::new(file).lines())
    };
    match verified.map_err(cannot)? {
        Ok(whole) if since_hash.is_some() && since_hash != whole.since_hash.as_deref() => {
            Err(Failure::Failed(format!(
                "the chain is unbroken, but it does not follow that export: {}",
                super::output::visible(&whole.words())
            )))
        }
        Ok(whole) => print(&format!(
            "{} entries, chain unbroken; the last hash is {}\n{}",
            whole.lines,
            whole.hash,
            super::output::visible(&whole.words())
        )),
        Err(broken) => Err(Failure::Failed(format!("the chain is broken at {broken}"))),
    }
}
