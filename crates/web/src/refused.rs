//! What is refused at the door, written down: who or what asked, from where, for what.
//!
//! Every refusal is a line of the log (target `audit`). The audit has it as well, but a stranger must not keep the store busy: a node
//! writes a few entries a second, counts refusals that are alike in one, and counts what is too much without saying of whom.
//! Neither the log nor the audit contains passwords, tokens, or names that are no accounts.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::{HttpMessage as _, HttpRequest};
use parking_lot::Mutex;

use super::Web;
use super::auth::{self, Caller, Shown};
use super::here::Person;
use super::{cors, csrf};
use soloist_domain::time::Boot;
use soloist_ops::{self as ops, Act};
use soloist_process::clock;
use soloist_store::Store;

/// Entries that a node writes in a second.
const A_SECOND: usize = 10;
/// Different refusals that wait to be written.
const WAITING: usize = 256;
/// Longest name of what was asked for, in characters.
const TARGET_MAX: usize = 200;
const SECOND: Duration = Duration::from_secs(1);

/// What a handler knows of a refusal and the door does not; left with the request.
#[derive(Debug, Clone)]
pub struct Refused {
    /// As what it is noted.
    pub act: Act,
    /// For whose account something was tried.
    pub who: Option<String>,
}

/// Marks a request as one that another site may have made up.
pub fn as_forgery(request: &HttpRequest) {
    request.extensions_mut().insert(Refused { act: Act::RefusedForgery, who: None });
}

/// Notes the answer if it is a refusal; `reader` is who showed a good credential, `why` what the answer says.
pub async fn note(
    web: &Web,
    request: &HttpRequest,
    status: StatusCode,
    reader: impl FnOnce() -> Option<String>,
    why: Option<&str>,
) {
    // No stranger: it is told why, and has everything in its hands.
    if request.extensions().get::<Person>().is_some() {
        return;
    }
    let told = request.extensions().get::<Refused>().cloned();
    let act = match (&told, status) {
        (Some(told), _) => told.act,
        (None, StatusCode::FORBIDDEN) if is_foreign(web, request) => Act::RefusedForgery,
        (None, StatusCode::FORBIDDEN) => Act::RefusedRight,
        // A session ends by itself every day; a token that is not known is one that was revoked, or guessed.
        (None, StatusCode::UNAUTHORIZED) if shows_token(web, request) => Act::RefusedToken,
        _ => return,
    };
    let reader = reader();
    let known = reader.is_some();
    let account = told.and_then(|told| told.who).or(reader);
    let at_login = matches!(act, Act::LoginFailed | Act::LoginThrottled);
    // Strangers choose addresses: of theirs only what our table has is kept.
    let place = match request.match_pattern() {
        _ if known => request.path().to_owned(),
        Some(pattern) => pattern,
        None => "?".to_owned(),
    };
    let who = account.unwrap_or_else(|| "unknown".to_owned());
    let target = if at_login { who.clone() } else { format!("{} {place}", request.method()) };
    let refusal = Refusal {
        who,
        from: auth::peer(request),
        act: act.code(),
        target: target.chars().take(TARGET_MAX).collect(),
    };
    let why = why.filter(|_| status == StatusCode::FORBIDDEN && !at_login);
    note_one(web, act, refusal, why).await;
}

/// Notes that `caller` may not do what a frame on a live socket asked for; `what` is its type and name.
pub async fn note_frame(web: &Web, caller: &Caller, what: &str, why: &str) {
    let act = Act::RefusedRight;
    let target = format!("/live {what}");
    let refusal = Refusal {
        who: caller.user.to_string(),
        from: caller.from.clone(),
        act: act.code(),
        target: target.chars().take(TARGET_MAX).collect(),
    };
    note_one(web, act, refusal, Some(why)).await;
}

async fn note_one(web: &Web, act: Act, refusal: Refusal, why: Option<&str>) {
    let Refusal { who, from, act: code, target } = &refusal;
    tracing::warn!(target: "audit", who, from, act = code, kind = "refusal", target, why, "refused");
    web.refused.note(&web.store, act, refusal, why).await;
}

fn is_foreign(web: &Web, request: &HttpRequest) -> bool {
    let config = web.config();
    csrf::check_source(&config.public_url, request.headers()).is_err()
        && cors::front_end(&config, request.headers()).is_none()
}

fn shows_token(web: &Web, request: &HttpRequest) -> bool {
    matches!(Shown::in_request(request, &web.config()), Some(Shown::Token { .. }))
}

/// Refusals are alike that have all of this in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Refusal {
    who: String,
    from: String,
    act: &'static str,
    target: String,
}

/// What was refused of late at this node.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// When the present second began.
    began: Option<Boot>,
    /// How many entries were written in it.
    written: usize,
    /// How often each happened since it was written last.
    waiting: HashMap<Refusal, Waits>,
    /// How many there were for which there was no room.
    more: u64,
    /// A task writes what waits.
    writing: bool,
}

/// The act, why it was refused, and how often.
type Waits = (Act, Option<String>, u64);

impl State {
    /// Whether this may be written now; else it is counted.
    fn admits(&mut self, act: Act, refusal: &Refusal, why: Option<&str>, now: Boot) -> bool {
        if self.began.is_none_or(|began| now.since(began) >= SECOND) {
            (self.began, self.written) = (Some(now), 0);
        }
        if self.waiting.is_empty() && self.written < A_SECOND {
            self.written += 1;
            return true;
        }
        if let Some((_, _, count)) = self.waiting.get_mut(refusal) {
            *count += 1;
        } else if self.waiting.len() < WAITING {
            let waits = (act, why.map(str::to_owned), 1);
            self.waiting.insert(refusal.clone(), waits);
        } else {
            self.more += 1;
        }
        false
    }

    /// What is written in the next second.
    fn take(&mut self) -> Vec<(Refusal, Waits)> {
        let some: Vec<Refusal> = self.waiting.keys().take(A_SECOND - 1).cloned().collect();
        let mut taken: Vec<_> =
            some.into_iter().filter_map(|key| self.waiting.remove_entry(&key)).collect();
        if self.more > 0 {
            let act = Act::RefusedMore;
            let [who, from, target] = ["unknown", "-", "-"].map(str::to_owned);
            let refusal = Refusal { who, from, act: act.code(), target };
            taken.push((refusal, (act, None, std::mem::take(&mut self.more))));
        }
        taken
    }
}

impl Ledger {
    async fn note(&self, store: &Store, act: Act, refusal: Refusal, why: Option<&str>) {
        if self.state.lock().admits(act, &refusal, why, clock::boot()) {
            return write(store, &refusal, act, why, 1).await;
        }
        if !std::mem::replace(&mut self.state.lock().writing, true) {
            tokio::spawn(self.clone().write_waiting(store.clone()));
        }
    }

    /// Writes what waits, so much a second, until nothing does.
    async fn write_waiting(self, store: Store) {
        loop {
            tokio::time::sleep(SECOND).await;
            let taken = {
                let mut state = self.state.lock();
                let taken = state.take();
                state.writing = !taken.is_empty();
                taken
            };
            if taken.is_empty() {
                return;
            }
            for (refusal, (act, why, count)) in taken {
                write(&store, &refusal, act, why.as_deref(), count).await;
            }
        }
    }
}

/// The request was answered already, so only the log can be told.
async fn write(store: &Store, refusal: &Refusal, act: Act, why: Option<&str>, count: u64) {
    let Refusal { who, from, target, .. } = refusal;
    if let Err(error) = ops::note_refusal(store, (who, from), act, target, why, count).await {
        tracing::error!(%error, who, from, act = act.code(), target, count, "a refusal is not in the audit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(from: usize) -> Refusal {
        let [who, target] = ["unknown", "GET /"].map(str::to_owned);
        Refusal { who, from: from.to_string(), act: Act::RefusedToken.code(), target }
    }

    #[test]
    fn ten_a_second_are_written_the_rest_is_counted_and_nothing_grows_without_end() {
        let mut state = State::default();
        let now = Boot(1_000_000_000);
        let admitted = |state: &mut State, from, now| {
            state.admits(Act::RefusedToken, &refusal(from), None, now)
        };
        for from in 0..A_SECOND {
            assert!(admitted(&mut state, from, now));
        }
        for _ in 0..3 {
            for from in 0..WAITING + 50 {
                assert!(!admitted(&mut state, from, now));
            }
        }
        assert_eq!((state.waiting.len(), state.more), (WAITING, 150));
        // What waits is before what comes.
        assert!(!admitted(&mut state, 0, now + SECOND));
        let (mut sum, mut seconds) = (0, 0);
        loop {
            let taken = state.take();
            if taken.is_empty() {
                break;
            }
            assert!(taken.len() <= A_SECOND);
            sum += taken.iter().map(|(_, (_, _, count))| count).sum::<u64>();
            seconds += 1;
        }
        assert_eq!(sum, 3 * (WAITING as u64 + 50) + 1);
        assert!(seconds <= WAITING / (A_SECOND - 1) + 1);
        assert!(admitted(&mut state, 0, now + SECOND));
    }
}
