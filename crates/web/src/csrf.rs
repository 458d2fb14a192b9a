//! Who may make a browser act: origins and the CSRF secret.
//!
//! A state-changing request that is allowed by a cookie must come from our own pages: by what the browser says of
//! its origin, and by a secret that only our pages know. Tokens are sent by programs on purpose and need neither.
//!
//! No template and no page names the secret: `fill_forms` puts it into every form when a template is rendered.

use std::sync::LazyLock;

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderMap};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use super::error::WebError;
use soloist_domain::detail::Detail;
use soloist_secrets as secrets;

/// Stands for the reader's secret in fragments that many readers share. It is random and leaves this process in no
/// answer, so no text of others can contain it: a script that printed it would have the secret of every reader of its output.
pub(super) fn mark() -> &'static str {
    static MARK: LazyLock<String> =
        LazyLock::new(|| format!("\u{fdd0}csrf-{:032x}\u{fdd0}", rand::random::<u128>()));
    &MARK
}

/// The secret under a mask that is new each time: pages are compressed, and equal bytes in many answers could be guessed by
/// their length (`super::compress`).
pub(super) fn masked(secret: &str) -> String {
    let mask: Vec<u8> = secret.bytes().map(|_| rand::random::<u8>()).collect();
    let hidden = secret.bytes().zip(&mask).map(|(byte, mask)| byte ^ mask);
    let both: Vec<u8> = mask.iter().copied().chain(hidden).collect();
    BASE64.encode(both)
}

/// Whether `given` is the secret, plain or masked.
#[must_use]
pub fn repeats(secret: &str, given: &str) -> bool {
    let unmasked = || {
        let both = BASE64.decode(given).ok()?;
        let (mask, hidden) = both.split_at_checked(both.len() / 2)?;
        let bytes = mask.iter().zip(hidden).map(|(mask, byte)| mask ^ byte).collect();
        String::from_utf8(bytes).ok()
    };
    secrets::equal(given, secret) || unmasked().is_some_and(|given| secrets::equal(&given, secret))
}

/// Puts a hidden field with `secret` into every form that posts. What people wrote is escaped and holds no tag.
pub(super) fn fill_forms(html: &str, secret: &str) -> String {
    let mut out = String::with_capacity(html.len() + 256);
    let mut rest = html;
    while let Some(end) = rest.find("<form").and_then(|at| Some(at + rest[at..].find('>')? + 1)) {
        let (before, after) = rest.split_at(end);
        out.push_str(before);
        if before[before.rfind("<form").unwrap_or(0)..].contains("method=\"post\"") {
            out.push_str("<input type=\"hidden\" name=\"csrf\" value=\"");
            out.push_str(secret);
            out.push_str("\">");
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Makes a shared text one of the reader whose secret this is.
pub(super) fn personal(text: String, secret: &str) -> String {
    if text.contains(mark()) { text.replace(mark(), secret) } else { text }
}

/// Whether browsers on `origin` show our pages: exactly the public origin, or, when that is a loopback address,
/// its other spelling on the same port.
#[must_use]
pub fn is_ours(public_url: &str, origin: &str) -> bool {
    if origin == public_url {
        return true;
    }
    let Some(port) = loopback_port(public_url) else { return false };
    loopback_port(origin) == Some(port)
}

/// The port (with its colon) of `http://127.0.0.1:PORT` or `http://localhost:PORT`.
fn loopback_port(origin: &str) -> Option<&str> {
    let rest = origin.strip_prefix("http://")?;
    let port = rest.strip_prefix("127.0.0.1").or_else(|| rest.strip_prefix("localhost"))?;
    let digits = port.strip_prefix(':')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then_some(port)
}

/// The value of the header `Origin`, if there is one.
#[must_use]
pub fn origin(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ORIGIN).map(|value| value.to_str().unwrap_or("unreadable"))
}

/// Refuses a state-changing request that the browser says comes from another site.
///
/// # Errors
/// [`WebError::Forbidden`].
pub fn check_source(public_url: &str, headers: &HeaderMap) -> Result<(), WebError> {
    let foreign = || {
        let text = format!(
            "this request comes from another site: open {public_url} and try again there (or correct public_url)"
        );
        WebError::forbidden(Detail::new(text).told("refused-other-site", &[("url", &public_url)]))
    };
    if origin(headers).is_some_and(|origin| !is_ours(public_url, origin)) {
        return Err(foreign());
    }
    match headers.get("sec-fetch-site").map(|value| value.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(foreign()),
    }
}

/// Refuses a request that does not repeat the secret, in `X-CSRF-Token` or the form field `csrf`.
///
/// # Errors
/// [`WebError::Forbidden`].
pub fn check_secret(
    secret: &str,
    request: &HttpRequest,
    field: Option<&str>,
) -> Result<(), WebError> {
    let header = request.headers().get("x-csrf-token").and_then(|value| value.to_str().ok());
    match header.or(field) {
        Some(given) if repeats(secret, given) => Ok(()),
        _ => Err(WebError::forbidden(
            Detail::new(
                "the form is out of date: reload the page and try again (programs: repeat the csrf value in X-CSRF-Token)",
            )
            .told("refused-form-old", &[]),
        )),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Every form of `html` that posts holds `secret` once, no other form holds it; returns how many post.
    pub(in super::super) fn posting_forms(html: &str, secret: &str) -> usize {
        let field = format!("name=\"csrf\" value=\"{secret}\"");
        let forms: Vec<&str> = html.split("<form").skip(1).collect();
        let posting = forms.iter().filter(|form| {
            let form = form.split("</form>").next().expect("a form");
            let posts = form.split('>').next().expect("a tag").to_lowercase().contains("\"post\"");
            assert_eq!(form.matches("name=\"csrf\"").count(), usize::from(posts), "{form}");
            assert_eq!(form.matches(&field).count(), usize::from(posts), "{form}");
            posts
        });
        posting.count()
    }

    #[test]
    fn every_form_that_posts_gets_the_secret_and_no_other() {
        let html = "a<form class=\"x\" method=\"post\" action=\"/a\">b</form><form method=\"get\">c</form>\
                    <form method=\"dialog\"></form><form\n method=\"post\"><input></form>&lt;form method=\"post\">";
        let filled = fill_forms(html, mark());
        assert_eq!(posting_forms(&filled, mark()), 2);
        let mine = personal(filled, "s");
        assert_eq!(posting_forms(&mine, "s"), 2);
        assert_eq!(mine.replace("<input type=\"hidden\" name=\"csrf\" value=\"s\">", ""), html);
    }

    #[test]
    fn a_masked_secret_is_another_text_each_time_and_is_known_again() {
        let secret = "5eb63bbbe01eeed093cb22bb8f5acdc35eb63bbbe01eeed093cb22bb8f5acdc3";
        let (one, two) = (masked(secret), masked(secret));
        assert_ne!(one, two);
        for given in [secret, &one, &two] {
            assert!(repeats(secret, given), "{given}");
        }
        let mut other = two.clone();
        other.replace_range(..1, if two.starts_with('A') { "B" } else { "A" });
        for given in ["", "0", "AA", &secret[1..], &one[2..], &other] {
            assert!(!repeats(secret, given), "{given}");
        }
    }

    #[test]
    fn no_text_of_a_script_is_taken_for_the_place_of_the_secret() {
        let printed = "\u{e000}csrf\u{e000} \u{e000}csrf-\u{e000} \u{e000}";
        assert_eq!(personal(printed.to_owned(), "secret"), printed);
        // What is random may not be guessed from another process either.
        assert!(mark().len() > 32 + "csrf".len(), "{:?}", mark());
    }

    #[test]
    fn only_the_public_origin_and_its_loopback_spelling_are_ours() {
        assert!(is_ours("https://soloist.example", "https://soloist.example"));
        assert!(is_ours("http://127.0.0.1:8080", "http://localhost:8080"));
        assert!(is_ours("http://localhost:8080", "http://127.0.0.1:8080"));
        for foreign in [
            "http://127.0.0.1:8081",
            "https://127.0.0.1:8080",
            "http://127.0.0.1:8080.evil.example",
            "http://127.0.0.1.evil.example:8080",
            "http://localhost",
            "null",
            "",
            "http://evil.example",
        ] {
            assert!(!is_ours("http://127.0.0.1:8080", foreign), "{foreign}");
        }
        assert!(!is_ours("https://soloist.example", "http://soloist.example"));
        assert!(!is_ours("https://soloist.example", "https://soloist.example.evil"));
        assert!(!is_ours("http://soloist.example:8080", "http://localhost:8080"));
    }
}
