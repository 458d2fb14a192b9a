//! The time zone of the reader: the form on `/account` that chooses it, and what pages say in it.
//!
//! Without a choice the server says instants in the zone of its machine, and scripts say them again in that of the browser.

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, web};
use serde::Deserialize;

use super::{Frame, account};
use crate::Web;
use crate::auth::Caller;
use crate::error::WebError;
use crate::parts::zoned::in_zone;
use soloist_domain::time::StoreTime;
use soloist_ops::accounts;
use soloist_view::words::{Arg, Zone, say};

impl Frame {
    /// The zone in which scripts say instants; empty: that of the browser.
    pub(super) fn chosen_zone(&self) -> &str {
        self.time_zone.as_deref().unwrap_or_default()
    }

    /// In which zone the server says instants, and reads those that are typed: `UTC+08:00`.
    pub(super) fn offset(&self) -> String {
        self.zone.offset(self.instant())
    }

    /// The label of a field for the instant from which on entries are wanted.
    pub(super) fn since_label(&self) -> String {
        say(self.lang, "audit-since", &[("zone", Arg::from(self.offset()))])
    }

    /// The same for the instant up to which they are.
    pub(super) fn until_label(&self) -> String {
        say(self.lang, "audit-until", &[("zone", Arg::from(self.offset()))])
    }

    /// `html`, whose instants are in the zone of this machine, as its reader reads it.
    pub(super) fn in_zone(&self, html: String) -> String {
        match self.zone == *Zone::here() {
            true => html,
            false => in_zone(&html, &self.zone, self.lang, self.instant()),
        }
    }

    /// Now: by the store's clock, where it is known.
    fn instant(&self) -> StoreTime {
        self.now.unwrap_or_else(|| StoreTime(jiff::Timestamp::now().as_millisecond()))
    }
}

/// Every zone that may be chosen, and whether it is. The chosen one is among them, even if this machine does not know it.
pub(super) fn choices(chosen: Option<&str>) -> Vec<(String, bool)> {
    let mut names = Zone::names();
    names.extend(chosen.map(str::to_owned).filter(|chosen| !names.contains(chosen)));
    let with_choice = |name: String| {
        let is_chosen = chosen == Some(name.as_str());
        (name, is_chosen)
    };
    names.into_iter().map(with_choice).collect()
}

/// What the choice does.
pub(super) fn rule(frame: &Frame) -> String {
    let zone = Zone::here().offset(frame.instant());
    say(frame.lang, "time-zone-rule", &[("zone", Arg::from(zone))])
}

/// The name of a zone; empty: that of the browser.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as in the form")]
pub struct ZoneForm {
    #[serde(default)]
    pub zone: String,
}

/// `POST /account/zone`.
///
/// # Errors
/// None that is not shown on the page, but [`WebError::Forbidden`] and [`WebError::Unavailable`].
pub async fn save(
    web: web::Data<Web>,
    caller: Caller,
    form: web::Form<ZoneForm>,
) -> Result<HttpResponse, WebError> {
    let chosen = Some(form.into_inner().zone).filter(|name| !name.is_empty());
    let unknown = chosen.as_deref().is_some_and(|name| Zone::named(name).is_none());
    let done = match unknown {
        true => Err(WebError::told(StatusCode::BAD_REQUEST, "time-zone-wrong", &[])),
        false => {
            accounts::choose_zone(&web.store, &caller.actor(), chosen).await?;
            Ok("zone")
        }
    };
    account::or_again(&web, &caller, done).await
}
