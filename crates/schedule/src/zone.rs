//! The machine's table of zones. The zone of the machine itself is never used.

use std::path::Path;

use jiff::tz::TimeZone;
use soloist_domain::time::StoreTime;

use crate::cron::DAY;
use crate::{Schedule, Times, hash, walk};

/// What is said about cron without a zone.
pub(crate) const MISSING: &str = "a cron expression needs a zone: write zone = \"Asia/Shanghai\", or zone = \"UTC\", in this job or once at the top of the file; the zone of the machine is never taken";

/// Names of files in the table that are no zones, or not the same zone on every machine.
const NO_ZONES: [&str; 4] = ["localtime", "posixrules", "factory", "etc/unknown"];

/// Where systems keep the table.
const TABLES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

/// The zone of that name, and the name as the table writes it.
pub(crate) fn of(name: &str) -> Result<(TimeZone, String), String> {
    let lower = name.to_ascii_lowercase();
    let refused = NO_ZONES.contains(&lower.as_str())
        || lower.starts_with("posix/")
        || lower.starts_with("right/");
    let db = jiff::tz::db();
    let found = if refused { None } else { db.get(name).ok() };
    let named = found.and_then(|zone| {
        let name = zone.iana_name()?.to_owned();
        Some((zone, name))
    });
    named.ok_or_else(|| {
        if refused {
            return format!("zone {name:?} is not the same on every machine: write the IANA name of a zone, such as \"Asia/Shanghai\" or \"UTC\"");
        }
        if db.get("Europe/Berlin").is_err() {
            return format!("zone {name:?} cannot be looked up: this machine has no table of zones; install the package tzdata");
        }
        format!("zone {name:?} is not in the zone table of this machine: write the IANA name of a zone, such as \"Asia/Shanghai\", \"Europe/Berlin\" or \"UTC\"")
    })
}

/// The version of this machine's table of zones, such as `2025b`; `None`: the table does not say.
#[must_use]
pub fn tzdb_version() -> Option<String> {
    TABLES.iter().find_map(|table| version_in(Path::new(table)))
}

fn version_in(table: &Path) -> Option<String> {
    let plain = |text: &str| {
        let text = text.trim();
        let letters = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.');
        (!text.is_empty() && text.len() <= 20 && letters).then(|| text.to_owned())
    };
    let first = |file: &str| {
        let text = std::fs::read_to_string(table.join(file)).ok()?;
        text.lines().next().map(str::to_owned)
    };
    first("tzdata.zi")
        .and_then(|line| plain(line.strip_prefix("# version ")?))
        .or_else(|| plain(&first("+VERSION")?))
}

impl Schedule {
    /// A hash of the offset of its zone at the begin of the day (UTC) of `from`, and of each change in the next `days`:
    /// nodes whose tables agree there have the same. Empty for intervals and instants, which no zone moves.
    #[must_use]
    pub fn zone_changes(&self, from: StoreTime, days: u32) -> String {
        let Times::Cron { zone, name, .. } = &self.times else { return String::new() };
        let from = walk::clamp(from.0.div_euclid(1_000)).div_euclid(DAY) * DAY;
        let until = from + i64::from(days) * DAY;
        let mut segment = Some(walk::Segment::at(zone, from));
        let mut text = name.clone();
        while let Some(now) = segment.filter(|now| now.start.is_none_or(|start| start < until)) {
            let start = now.start.filter(|start| *start > from);
            text += &format!(" {}:{}", start.unwrap_or_default(), now.offset);
            segment = now.next(zone);
        }
        hash::short(&text)
    }
}
