//! `GET /api/v1/audit`: who did what, when, from where, why; a page of it, or all of it as a stream.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use futures_util::stream;
use serde::{Deserialize, Serialize};

use super::{clamp, query};
use crate::Web;
use crate::auth::{Caller, Shown};
use crate::error::WebError;
use soloist_domain::detail::Detail;
use soloist_domain::time::StoreTime;
use soloist_ops::audit::Sight;
use soloist_ops::chain::{Chain, Head, Members, is_hash};
use soloist_store::journal::{AuditEntry, AuditFilter, Journal};
use soloist_store::rotation::Rotations as _;
use soloist_store::{Store, StoreError};
use soloist_view::AuditView;

/// Entries that are read at once for a stream.
const AT_ONCE: usize = 500;

/// Entries, newest first.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Audit {
    /// The entries.
    pub entries: Vec<AuditView>,
    /// Give this as `before` for those that are older; `null`: there are none. A page may have fewer entries than `limit`, even none,
    /// and still have a next one: only so many are looked at for it.
    pub next: Option<u64>,
}

/// What is asked for, as in the address.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in the OpenAPI document")]
pub struct Wanted {
    pub limit: Option<u64>,
    pub before: Option<u64>,
    pub after: Option<u64>,
    pub who: Option<String>,
    pub act: Option<String>,
    pub target: Option<String>,
    pub kind: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub format: Option<String>,
    pub since_hash: Option<String>,
}

impl Wanted {
    /// What of it is a filter, as it was given.
    fn given(&self) -> Vec<(&'static str, String)> {
        let Self { who, act, target, kind, from, to, .. } = self;
        let all = [
            ("who", who),
            ("act", act),
            ("target", target),
            ("kind", kind),
            ("from", from),
            ("to", to),
        ];
        let given =
            all.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?.trim())));
        given
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name, text.to_owned()))
            .collect()
    }

    /// The entries asked for; empty words ask for nothing, as those of an empty form.
    ///
    /// # Errors
    /// [`WebError::BadRequest`] that names the parameter.
    pub fn filter(&self) -> Result<AuditFilter, WebError> {
        let given = |text: &Option<String>| {
            let text = text.as_deref().map(str::trim).filter(|text| !text.is_empty());
            text.map(str::to_owned)
        };
        let kind = given(&self.kind).map(|kind| kind.parse());
        let kind = kind.transpose().map_err(|why| address(format!("parameter kind: {why}")))?;
        let (from, to) = (instant("from", given(&self.from))?, instant("to", given(&self.to))?);
        if from.zip(to).is_some_and(|(from, to)| from > to) {
            let text = "parameter from is later than parameter to: exchange them";
            return Err(WebError::bad(Detail::new(text).told("refused-from-to", &[])));
        }
        Ok(AuditFilter {
            kinds: kind.into_iter().collect(),
            who: given(&self.who),
            act: given(&self.act),
            target: given(&self.target),
            from,
            to,
            ..AuditFilter::default()
        })
    }
}

/// Something in the address of a page, or of a call, is wrong.
fn address(text: String) -> WebError {
    WebError::bad(Detail::new(text).told("refused-address", &[]))
}

/// RFC 3339.
///
/// # Errors
/// [`WebError::BadRequest`] that names the parameter.
pub(super) fn instant(name: &str, text: Option<String>) -> Result<Option<StoreTime>, WebError> {
    let Some(text) = text else { return Ok(None) };
    let at = text.parse::<jiff::Timestamp>().map_err(|_| {
        let shown: String = text.chars().take(64).collect();
        address(format!(
            "parameter {name}: {shown:?} is no instant: use RFC 3339, as in 2026-05-04T01:02:03Z"
        ))
    })?;
    Ok(Some(StoreTime(at.as_millisecond())))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Lines,
    Csv,
}

impl Format {
    /// `format` of the query, else the first in `Accept` that there is.
    fn of(request: &HttpRequest, wanted: &Wanted) -> Result<Self, WebError> {
        match wanted.format.as_deref() {
            Some("json") => return Ok(Self::Json),
            Some("ndjson") => return Ok(Self::Lines),
            Some("csv") => return Ok(Self::Csv),
            Some(_) => return Err(WebError::bad("parameter format: use json, ndjson or csv")),
            None => {}
        }
        let lines = request.headers().get_all(header::ACCEPT).filter_map(|line| line.to_str().ok());
        let mut named = lines.flat_map(|line| line.split(',')).filter_map(|range| {
            match range.split(';').next()?.trim().to_ascii_lowercase().as_str() {
                "application/json" => Some(Self::Json),
                "application/x-ndjson" => Some(Self::Lines),
                "text/csv" => Some(Self::Csv),
                _ => None,
            }
        });
        Ok(named.next().unwrap_or(Self::Json))
    }
}

/// What of the audit `caller` may see. What was done to rotations is for admins while the store does not say which there are.
pub(crate) async fn sight(web: &Web, caller: &Caller) -> Sight {
    let (config, hidden) = (web.config(), web.live.hidden_from(Some(caller)));
    let rings = match caller.is_admin() {
        true => Vec::new(),
        false => web.store.rotations(None, 0).await.unwrap_or_default(),
    };
    Sight::of(caller.role, &caller.user, hidden.audited(&config.alerting, &rings))
}

/// The audit.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", operation_id = "list_audit",
    description = "Who did what, when, from where, why. Acts of people, acts of programs (API tokens) and refusals are kept apart, so that none \
        pushes out another, and are answered as one list. Only admins see refusals; viewers see no address (`from`) but their own.\n\n\
        With `Accept: application/x-ndjson` or `text/csv` (or `format`) all of it is answered, oldest first; `limit`, `before` and `after` are left \
        aside. Each line of `application/x-ndjson` is canonical JSON (RFC 8785) with `prev`, the `hash` of the line before, and \
        `hash`, the SHA-256 of `prev` followed by the line without `hash`. The first line is `{\"begin\":true,\"asked\":{...},\"by\":...,\"role\":...,\"newest\":N,...}`: \
        the filter, whose eyes, and the number of the newest entry of all; its `prev` is `since_hash`, or 64 zeros. The last line is \
        `{\"end\":true,\"lines\":N,\"first\":...,\"last\":...,...}`, and an answer without it was cut off. `soloist audit --verify FILE` checks all that.",
    params(
        ("limit" = Option<u64>, Query, description = "How many: 1 to 500, 50 when absent; what is outside is moved inside."),
        ("before" = Option<u64>, Query, description = "Only entries with a smaller id."),
        ("after" = Option<u64>, Query, description = "Only entries with a greater id, the oldest of them."),
        ("who" = Option<String>, Query, description = "Only by this account."),
        ("act" = Option<String>, Query, description = "Only this act, for example `job.hold`; with `*` at the end, all that begin so: `job.*`."),
        ("target" = Option<String>, Query, description = "Only on this job, node, source, rotation or account."),
        ("kind" = Option<String>, Query, description = "Only `person`, `program` or `refusal`."),
        ("from" = Option<String>, Query, description = "RFC 3339: not before this."),
        ("to" = Option<String>, Query, description = "RFC 3339: before this."),
        ("format" = Option<String>, Query, description = "`json`, `ndjson` or `csv`; goes before `Accept`."),
        ("since_hash" = Option<String>, Query, description = "The `hash` of the last line of the export before, which this one is to follow.")),
    responses((status = 200, description = "The entries.", content(
        (Audit = "application/json"), (String = "application/x-ndjson"), (String = "text/csv")))))]
pub async fn list(
    web: web::Data<Web>,
    caller: Caller,
    request: HttpRequest,
) -> Result<HttpResponse, WebError> {
    let wanted: Wanted = query(&request)?;
    caller.bound.check_reads_all("the audit")?;
    let sight = sight(&web, &caller).await;
    let filter = sight.narrow(wanted.filter()?)?;
    match Format::of(&request, &wanted)? {
        Format::Json => page(&web.store, &sight, &filter, &wanted).await,
        format => {
            let head = Head {
                by: (caller.shown != Shown::Terminal).then(|| caller.user.to_string()),
                role: caller.role.as_str(),
                asked: wanted.given(),
                newest: 0,
                since_hash: wanted.since_hash.clone(),
            };
            if head.since_hash.as_deref().is_some_and(|hash| !is_hash(hash)) {
                let text =
                    "parameter since_hash: use the hash of the last line of the export before";
                return Err(WebError::bad(text));
            }
            export(&web.store, sight, filter, (format, head)).await
        }
    }
}

async fn page(
    store: &Store,
    sight: &Sight,
    filter: &AuditFilter,
    wanted: &Wanted,
) -> Result<HttpResponse, WebError> {
    let limit = clamp(wanted.limit, 50, 500);
    let page = match (wanted.before, wanted.after) {
        (Some(_), Some(_)) => {
            return Err(WebError::bad("parameters before and after: give one of them"));
        }
        (before, None) => store.audit_page(filter, before, limit).await?,
        (None, Some(after)) => {
            let mut page = store.audit_after(filter, after, limit).await?;
            page.entries.reverse();
            page.next = page.entries.last().map(|oldest| oldest.id);
            page
        }
    };
    let entries = page.entries.into_iter().map(|entry| seen(sight, entry)).collect();
    Ok(HttpResponse::Ok().json(Audit { entries, next: page.next }))
}

fn seen(sight: &Sight, entry: AuditEntry) -> AuditView {
    let address = sight.sees_address(&entry);
    let view = AuditView::from(entry);
    if address { view } else { AuditView { from: None, ..view } }
}

async fn export(
    store: &Store,
    sight: Sight,
    filter: AuditFilter,
    (format, head): (Format, Head),
) -> Result<HttpResponse, WebError> {
    // What is added from now on is left for the next time: so it ends.
    let newest = store.audit_page(&AuditFilter::default(), None, 1).await?;
    let newest = newest.entries.first().map_or(0, |entry| entry.id);
    let store = store.clone();
    let (chain, begin) = Chain::begin(Head { newest, ..head });
    let export = Export { store, sight, filter, format, after: 0, newest, chain, over: false };
    let (kind, name) = match format {
        Format::Csv => ("text/csv; charset=utf-8", "audit.csv"),
        _ => ("application/x-ndjson", "audit.ndjson"),
    };
    let first = match format {
        Format::Csv => csv_line(&COLUMNS.map(str::to_owned)),
        _ => begin,
    };
    let first = stream::iter([Ok(first.into())]);
    let rest = stream::unfold(export, |mut export| async move {
        match export.next().await {
            Ok(None) => None,
            Ok(Some(text)) => Some((Ok(web::Bytes::from(text)), export)),
            Err(error) => {
                tracing::warn!(%error, "an export of the audit was cut off");
                export.over = true;
                Some((Err(WebError::from(error)), export))
            }
        }
    });
    let name = format!("attachment; filename=\"{name}\"");
    let answer = HttpResponse::Ok()
        .content_type(kind)
        .insert_header((header::CONTENT_DISPOSITION, name))
        .streaming(stream::StreamExt::chain(first, rest));
    Ok(answer)
}

struct Export {
    store: Store,
    sight: Sight,
    filter: AuditFilter,
    format: Format,
    /// All up to this id are written.
    after: u64,
    /// The last id that is written.
    newest: u64,
    chain: Chain,
    over: bool,
}

impl Export {
    /// The next lines; `None` behind the last.
    async fn next(&mut self) -> Result<Option<String>, StoreError> {
        let mut text = String::new();
        while text.is_empty() {
            if self.over {
                return Ok(None);
            }
            let page = self.store.audit_after(&self.filter, self.after, AT_ONCE).await?;
            let more = page.next.filter(|next| *next < self.newest);
            let newest = self.newest;
            for entry in page.entries.into_iter().filter(|entry| entry.id <= newest) {
                text.push_str(&self.line(entry));
            }
            self.over = more.is_none();
            self.after = more.unwrap_or(self.newest);
            if self.over && self.format == Format::Lines {
                text.push_str(&self.chain.end());
            }
        }
        Ok(Some(text))
    }

    fn line(&mut self, entry: AuditEntry) -> String {
        let view = seen(&self.sight, entry);
        match self.format {
            Format::Csv => csv_line(&cells(view)),
            _ => self.chain.line(members(&view)),
        }
    }
}

/// As a line of an export has them.
fn members(view: &AuditView) -> Members {
    match serde_json::to_value(view) {
        Ok(serde_json::Value::Object(members)) => members,
        _ => Members::new(),
    }
}

const COLUMNS: [&str; 10] =
    ["id", "at", "kind", "who", "from", "act", "target", "reason", "count", "until"];

fn cells(view: AuditView) -> [String; 10] {
    [
        view.id.to_string(),
        view.at.to_string(),
        view.kind.to_owned(),
        view.who,
        view.from.unwrap_or_default(),
        view.act,
        view.target,
        view.reason.unwrap_or_default(),
        view.count.to_string(),
        view.until.map(|at| at.to_string()).unwrap_or_default(),
    ]
}

/// A record of RFC 4180. A spreadsheet would take what begins with one of these signs for a formula: an apostrophe makes it text.
fn csv_line(cells: &[String]) -> String {
    let quoted = cells.iter().map(|cell| {
        let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '＝', '＋', '－', '＠']);
        let cell = if formula && cell != "-" { format!("'{cell}") } else { cell.clone() };
        match cell.contains(['"', ',', '\r', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell,
        }
    });
    quoted.collect::<Vec<_>>().join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_formulas() {
        let line = |cell: &str| csv_line(&["1".to_owned(), cell.to_owned()]);
        assert_eq!(line("a b"), "1,a b\r\n");
        assert_eq!(line("a,\"b\"\n"), "1,\"a,\"\"b\"\"\n\"\r\n");
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert!(line(formula).starts_with(&format!("1,'{formula}")), "{formula}");
        }
        assert_eq!(line("=\"a\""), "1,\"'=\"\"a\"\"\"\r\n");
    }

    #[test]
    fn what_is_asked_for_wrongly_is_answered_with_the_parameter() {
        let wrong = |wanted: Wanted| wanted.filter().unwrap_err().to_string();
        let text = |text: &str| Some(text.to_owned());
        let from = Wanted { from: text("yesterday"), ..Wanted::default() };
        assert!(wrong(from).contains("parameter from: \"yesterday\""));
        let kind = Wanted { kind: text("god"), ..Wanted::default() };
        assert!(wrong(kind).contains("parameter kind: use person"));
        let empty = Wanted { who: text(" "), kind: text(""), ..Wanted::default() };
        assert_eq!(empty.filter().unwrap(), AuditFilter::default());
    }
}
