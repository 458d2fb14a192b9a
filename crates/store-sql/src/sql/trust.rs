//! May the server be trusted? The epoch row, judged by `domain::doubt` as on Redis.
//!
//! A grant compares the row and the server's identity in its own packet. The row is not locked for that: a grant beside a quarantine that begins
//! at the same moment counts as before it. A process that changes the row goes through the gate.

use std::time::Duration;

use parking_lot::MutexGuard;

use super::SqlStore;
use super::packet::{Answers, Condition, Packet, Repeat, only, outcome};
use super::session::{Row, Value};
use soloist_domain::doubt::Epoch;
use soloist_domain::time::{Boot, Stamp, StoreTime, millis};
use soloist_process::clock;
use soloist_process::sabotage::{Bug, planted};
use soloist_store::engine::Way;
use soloist_store::latest::Latest;
use soloist_store::memory::{Asked, Memory, Opening, Seen};
use soloist_store::{Result, StoreError};

/// How often a store that keeps changing is judged anew.
const ATTEMPTS: usize = 32;

/// The epoch row, and who has it: the last columns of a statement [`FROM`] them. A server that runs has forgotten nothing by starting: only
/// its identity counts.
pub(super) const COLUMNS: &str = "{clock}, {server}, epoch.id, epoch.server, epoch.since_ms, epoch.until_ms, epoch.longest_ms, \
    epoch.before_ms, epoch.turned_ms, epoch.doubted_ms, epoch.version";
/// So many.
const WIDTH: usize = 11;
/// One row, whether there is an epoch or not.
pub(super) const FROM: &str = "FROM (SELECT 1 AS one) here LEFT JOIN epoch ON epoch.one = here.one";

/// Longer than any lease lasts: so long a server is taken to have been there, if nothing shows that it was used.
const LONG_AGO: Duration = Duration::from_secs(400 * 86_400);

/// An answer that was given while the store was as it was judged.
pub(crate) struct Trusted {
    pub(crate) epoch: String,
    pub(crate) now: StoreTime,
    /// Left of it; zero when leases are granted.
    pub(crate) quarantine: Duration,
    /// The server's clock jumped since this process called before.
    pub(crate) jumped: bool,
    pub(crate) answers: Answers,
}

impl SqlStore {
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.shared.memory.lock()
    }

    /// Sends a packet with a statement that ends with [`COLUMNS`], and that does nothing when the store is not as `asked` says.
    pub(crate) async fn trusted(
        &self,
        way: Way,
        ttl: Duration,
        opening: Option<Opening>,
        packet: impl Fn(&Asked) -> Packet,
    ) -> Result<Trusted> {
        for _ in 0..ATTEMPTS {
            let asked = self.ask(ttl, opening);
            if asked.seen.is_none() {
                self.learn(way).await?;
                continue;
            }
            if asked.write {
                self.write_epoch(way, &asked).await?;
                continue;
            }
            let sent = clock::boot();
            let whole = packet(&asked);
            let asks = whole.statements.iter().position(|one| one.sql.contains(COLUMNS));
            let answers = self.shared.server.send(way, &whole, Repeat::Harmless).await?;
            let (at, seen) = seen(only(&answers, asks.unwrap_or_default())?)?;
            let jumped = self.read_clock(at, sent);
            if asked.seen.as_ref().is_none_or(|before| !same(before, &seen)) {
                self.memory().learn(seen);
                continue;
            }
            let now = at.floor();
            let quarantine = asked.judged.quarantine(now.0);
            let quarantine = if planted(Bug::NoQuarantine) { 0 } else { quarantine };
            let quarantine = Duration::from_millis(u64::try_from(quarantine).unwrap_or(0));
            let epoch = self.accept(&asked);
            return Ok(Trusted { epoch, now, quarantine, jumped, answers });
        }
        Err(StoreError::Unavailable(format!(
            "what {} says of itself changes too often at this moment",
            self.shared.server.name()
        )))
    }

    /// What a statement that grants a lease for `ttl` may rely on, if it is a condition of it ([`as_seen`]); once it is done, that is to be
    /// [accepted](Self::accept). `None`: something must be learned or written first.
    pub(super) fn relied_on(&self, ttl: Duration) -> Option<Asked> {
        let asked = self.ask(ttl, None);
        (asked.seen.is_some() && !asked.write).then_some(asked)
    }

    fn ask(&self, ttl: Duration, opening: Option<Opening>) -> Asked {
        let ttl_ms = millis(ttl);
        let fresh = ulid::Ulid::generate().to_string();
        self.memory().ask(clock::boot(), ttl_ms, &fresh, opening)
    }

    /// Looks at what the store says of itself, and changes nothing.
    pub(crate) async fn learn(&self, way: Way) -> Result<()> {
        let mut packet = Packet::look(self.shared.server.dialect());
        ask(&mut packet);
        let sent = clock::boot();
        let answers = self.shared.server.send(way, &packet, Repeat::Harmless).await?;
        let (at, seen) = seen(only(&answers, 0)?)?;
        self.read_clock(at, sent);
        self.memory().learn(seen);
        Ok(())
    }

    /// Writes what was judged, if the row is still the one that it was judged by.
    async fn write_epoch(&self, way: Way, asked: &Asked) -> Result<()> {
        let dialect = self.shared.server.dialect();
        let mut packet = Packet::change(dialect);
        packet.through_the_gate("gate");
        packet.at_this_instant_if(vec![as_seen(asked)]);
        let Epoch { id, server, since, until, longest, before, turned, doubted, version } =
            &asked.judged;
        let columns = [
            "id",
            "server",
            "since_ms",
            "until_ms",
            "longest_ms",
            "before_ms",
            "turned_ms",
            "doubted_ms",
            "version",
        ];
        let sql = "INSERT INTO epoch (one, id, server, since_ms, until_ms, longest_ms, before_ms, turned_ms, doubted_ms, version) \
             SELECT 1, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM (SELECT 1 AS one) here WHERE {holds}";
        let mut params: Vec<Value> = vec![id.as_str().into(), server.as_str().into()];
        let version = i64::try_from(*version).unwrap_or(i64::MAX);
        let numbers = [*since, *until, *longest, *before, *turned, *doubted, version];
        params.extend(numbers.map(Value::from));
        packet.add(format!("{sql}{}", dialect.or_change("one", &columns)), params);
        let done = packet.ask_outcome();
        let sent = clock::boot();
        let answers = self.shared.server.send(way, &packet, Repeat::Harmless).await?;
        let (done, at) = outcome(&answers, done)?;
        self.read_clock(Stamp(at), sent);
        if !done {
            return Box::pin(self.learn(way)).await;
        }
        self.accept(asked);
        Ok(())
    }

    /// Notes that the store is as it was judged; returns the epoch.
    pub(super) fn accept(&self, asked: &Asked) -> String {
        let mut memory = self.memory();
        let epoch = asked.judged.id.clone();
        if !memory.epoch.is_empty() && memory.epoch != epoch {
            tracing::warn!(
                store = %self.shared.server.name(),
                "the store was emptied or replaced: no lease is granted until every old one has run out"
            );
        }
        memory.accept(asked);
        epoch
    }

    /// Notes what the server's clock said; whether it jumped since the reading before.
    pub(crate) fn read_clock(&self, at: Stamp, sent: Boot) -> bool {
        let received = clock::boot();
        let jumped = self.memory().read_clock(at.floor(), sent, received);
        if jumped {
            tracing::warn!(
                store = %self.shared.server.name(),
                "the store's clock jumped: no lease is granted until every old one has run out"
            );
        }
        let mut latest = self.shared.latest.lock();
        *latest = Some(Latest::read(*latest, at, sent, received));
        jumped
    }
}

/// The statement that such a packet has, if no other one has those columns.
pub(crate) fn ask(packet: &mut Packet) -> usize {
    packet.add(format!("SELECT {COLUMNS} {FROM}"), Vec::new())
}

/// The condition that no quarantine lasts.
pub(super) const CALM: &str = "NOT EXISTS (SELECT 1 FROM epoch WHERE until_ms > {at_ms})";

/// The condition that the store is as it was seen.
pub(super) fn as_seen(asked: &Asked) -> Condition {
    as_seen_and(asked, "")
}

/// The same and [`CALM`]: one look at the row answers both.
pub(super) fn as_seen_and_calm(asked: &Asked) -> Condition {
    as_seen_and(asked, " AND until_ms <= {at_ms}")
}

fn as_seen_and(asked: &Asked, more: &str) -> Condition {
    let seen = asked.seen.as_ref();
    let server = seen.map(|seen| seen.server.as_str()).unwrap_or_default();
    match seen.and_then(|seen| seen.record.as_ref()) {
        Some(record) => {
            let version = i64::try_from(record.version).unwrap_or(i64::MAX);
            // There is one row. Named by its key, MariaDB finds it sooner: 3 % of a grant.
            let same = format!(
                "{{server}} = ? AND EXISTS (SELECT 1 FROM epoch WHERE one = 1 AND id = ? AND version = ?{more})"
            );
            (same, vec![server.into(), record.id.as_str().into(), version.into()])
        }
        None => {
            let none = "{server} = ? AND NOT EXISTS (SELECT 1 FROM epoch)";
            (none.to_owned(), vec![server.into()])
        }
    }
}

/// Whether it is the same server with the same row.
fn same(before: &Seen, now: &Seen) -> bool {
    let key = |seen: &Seen| seen.record.as_ref().map(|record| (record.id.clone(), record.version));
    before.server == now.server && key(before) == key(now)
}

/// The server's clock and identity.
fn seen(row: &Row) -> Result<(Stamp, Seen)> {
    let begin = row.0.len().saturating_sub(WIDTH);
    let row = &Row(row.0.iter().skip(begin).cloned().collect());
    let record = match row.opt_text(2)? {
        None => None,
        Some(id) => Some(Epoch {
            id: id.to_owned(),
            server: row.text(3)?.to_owned(),
            since: row.int(4)?,
            until: row.int(5)?,
            longest: row.int(6)?,
            before: row.int(7)?,
            turned: row.int(8)?,
            doubted: row.int(9)?,
            version: u64::try_from(row.int(10)?).unwrap_or(0),
        }),
    };
    let seen = Seen { record, server: row.text(1)?.to_owned(), up: LONG_AGO };
    Ok((Stamp(row.int(0)?), seen))
}
