//! One sign-in on its way: what the browser keeps while it is at the provider.
//!
//! Everything is in one cookie, so any node can finish what another began, and a stranger who only begins writes nothing to the
//! store. The cookie carries a random secret. State, nonce and PKCE verifier are hashes of it: who sees one of them in an address or
//! a log knows neither the others nor the secret. The provider takes a code once, so a whole answer is good once.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use std::time::Duration;

use super::super::auth;
use soloist_config::Config;
use soloist_domain::time::StoreTime;
use soloist_secrets as secrets;

/// How long a person may take at the provider.
pub(super) const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Longest address to return to, in bytes.
const LONGEST_NEXT: usize = 1_024;

/// A sign-in on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flow {
    /// The whole cookie: all that follows is bound to all that stands in it.
    value: String,
    /// A path of ours.
    pub(super) next: String,
}

impl Flow {
    /// Begins at `now`, by the store's clock.
    pub(super) fn begin(now: StoreTime, next: &str) -> Self {
        let next = if next.len() > LONGEST_NEXT { "/" } else { next };
        let hex: String = next.bytes().map(|byte| format!("{byte:02x}")).collect();
        let value = format!("{}.{}.{hex}", now.0, secrets::random_secret());
        Self { value, next: next.to_owned() }
    }

    /// The one that the browser brings back, unless it is none or too old.
    pub(super) fn of(request: &HttpRequest, config: &Config, now: StoreTime) -> Option<Self> {
        Self::read(request.cookie(name(config))?.value(), now)
    }

    fn read(value: &str, now: StoreTime) -> Option<Self> {
        let mut parts = value.split('.');
        let (made, secret, hex) = (parts.next()?, parts.next()?, parts.next()?);
        let began = StoreTime(made.parse().ok()?);
        // A store's clock that was set back a little is no reason to refuse.
        let young = now.since(began) < LIFETIME && began.since(now) < LIFETIME;
        if parts.next().is_some() || secret.len() != 64 || !young || hex.len() > 2 * LONGEST_NEXT {
            return None;
        }
        let bytes: Option<Vec<u8>> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok())
            .collect();
        let next = String::from_utf8(bytes?).ok()?;
        Some(Self { value: value.to_owned(), next })
    }

    /// What the provider repeats in the address that it sends the browser back to.
    pub(super) fn state(&self) -> String {
        self.derived("state")
    }

    /// What the provider signs.
    pub(super) fn nonce(&self) -> String {
        self.derived("nonce")
    }

    /// What shows that the client that redeems the code also asked for it (RFC 7636).
    pub(super) fn verifier(&self) -> String {
        self.derived("verifier")
    }

    fn derived(&self, what: &str) -> String {
        secrets::sha256_hex(&format!("soloist single sign-on, {what}: {}", self.value))
    }

    /// What the browser keeps. `Lax`: it must come along when the provider sends the browser back.
    pub(super) fn cookie(&self, config: &Config) -> Cookie<'static> {
        auth::cookie(config, name(config), self.value.clone(), Some(LIFETIME))
    }
}

/// Takes the cookie away: one sign-in, one answer.
pub(super) fn over(config: &Config) -> Cookie<'static> {
    let mut gone = auth::cookie(config, name(config), String::new(), None);
    gone.make_removal();
    gone
}

fn name(config: &Config) -> &'static str {
    if auth::is_https(config) { "__Host-soloist-oidc" } else { "soloist-oidc" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: StoreTime = StoreTime(1_700_000_000_000);

    #[test]
    fn a_flow_comes_back_as_it_went_for_ten_minutes() {
        let flow = Flow::begin(NOW, "/jobs/a?b=%E5");
        assert_eq!(Flow::read(&flow.value, NOW), Some(flow.clone()));
        assert_eq!(
            Flow::read(&flow.value, NOW + (LIFETIME - Duration::from_millis(1))),
            Some(flow.clone())
        );
        assert_eq!(Flow::read(&flow.value, NOW + LIFETIME), None);
        let long = Flow::begin(NOW, &format!("/{}", "x".repeat(LONGEST_NEXT)));
        assert_eq!(long.next, "/");
    }

    #[test]
    fn what_is_no_flow_is_none_and_nothing_panics() {
        let whole = Flow::begin(NOW, "/a").value;
        for bad in [
            "",
            ".",
            "..",
            "1.2.3",
            &whole[..20],
            &format!("{whole}.x"),
            &format!("{whole}f"),
            &format!("{whole}é"),
        ] {
            assert_eq!(Flow::read(bad, NOW), None, "{bad}");
        }
    }

    #[test]
    fn state_nonce_and_verifier_differ_and_belong_to_one_cookie() {
        let (one, two) = (Flow::begin(NOW, "/"), Flow::begin(NOW, "/"));
        let of = |flow: &Flow| [flow.state(), flow.nonce(), flow.verifier()];
        let mut all: Vec<String> = of(&one).into_iter().chain(of(&two)).collect();
        assert!(all.iter().all(|text| text.len() == 64), "long enough for RFC 7636: {all:?}");
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6);
        assert_eq!(of(&one), of(&Flow::read(&one.value, NOW).unwrap()));
    }
}
