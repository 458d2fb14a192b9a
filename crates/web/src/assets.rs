//! Style sheets, scripts and icons, embedded at compile time and served under a hash of all of them.
//!
//! The hash stands in the directory (`/static/<hash>/js/main.js`), so relative imports inherit it and every answer
//! may be cached for ever; another hash is another version of the program and gets 404.

use std::collections::HashMap;
use std::sync::OnceLock;

use actix_web::http::header::{self, ContentEncoding, ETag, EntityTag, Header as _, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::compress::{Effort, encode, wanted};

macro_rules! embed {
    ($($path:literal)*) => {
        &[$(($path, include_bytes!(concat!("../../../static/", $path)).as_slice())),*]
    };
}

/// Every file under `static/`; a test compares.
static FILES: &[(&str, &[u8])] = embed! {
    "css/tokens.css"
    "css/base.css"
    "css/layout.css"
    "css/components.css"
    "icon-192.png"
    "icon-512.png"
    "icon.svg"
    "icon-trouble.svg"
    "icons.svg"
    "soloist.webmanifest"
    "js/alerts.js"
    "js/board.js"
    "js/clock.js"
    "js/confirm.js"
    "js/elsewhere.js"
    "js/forms.js"
    "js/groups.js"
    "js/keyboard.js"
    "js/live.js"
    "js/log.js"
    "js/main.js"
    "js/mark.js"
    "js/morph.js"
    "js/notices.js"
    "js/rotations.js"
    "js/row.js"
    "js/rows.js"
    "js/theme.js"
    "js/toggle.js"
    "js/truth.js"
    "js/words.js"
    "js/zone.js"
    "vendor/LICENSE-idiomorph.txt"
    "vendor/idiomorph.esm.js"
};

/// Twelve hexadecimal digits that change with any file.
#[must_use]
pub fn hash() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| {
        let mut digest = Sha256::new();
        for (path, bytes) in FILES {
            digest.update(path.as_bytes());
            digest.update(bytes);
        }
        digest.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    })
}

/// The address of a file.
#[must_use]
pub fn url(path: &str) -> String {
    format!("/static/{}/{path}", hash())
}

/// A file in an encoding, compressed when it is asked for the first time.
fn encoded(name: &'static str, bytes: &'static [u8], encoding: ContentEncoding) -> Bytes {
    type Known = HashMap<(&'static str, &'static str), Bytes>;
    static KNOWN: OnceLock<Mutex<Known>> = OnceLock::new();
    let mut known = KNOWN.get_or_init(Mutex::default).lock();
    let make =
        || encode(bytes, encoding, Effort::Thorough).map_or(Bytes::from_static(bytes), Bytes::from);
    known.entry((name, encoding.as_str())).or_insert_with(make).clone()
}

/// `GET /static/{hash}/{path}`. Each encoding is a text of its own, with its own `ETag`.
pub async fn serve(address: web::Path<(String, String)>, request: HttpRequest) -> HttpResponse {
    let (given, path) = address.into_inner();
    let found = FILES.iter().find(|(name, _)| given == hash() && *name == path);
    let Some((name, bytes)) = found else { return HttpResponse::NotFound().finish() };
    let encoding = wanted(request.headers(), &request);
    let tag = EntityTag::new_strong(format!("{}-{}", hash(), encoding.as_str()));
    let mut answer = HttpResponse::Ok();
    answer
        .insert_header((header::CACHE_CONTROL, "public, max-age=31536000, immutable"))
        .insert_header((header::VARY, "accept-encoding"))
        .insert_header(ETag(tag.clone()));
    if let Ok(IfNoneMatch::Items(known)) = IfNoneMatch::parse(&request)
        && known.iter().any(|known| known.weak_eq(&tag))
    {
        return answer.status(actix_web::http::StatusCode::NOT_MODIFIED).finish();
    }
    answer.insert_header((header::CONTENT_TYPE, kind(name)));
    if encoding != ContentEncoding::Identity {
        answer.insert_header((header::CONTENT_ENCODING, encoding.as_str()));
    }
    answer.body(encoded(name, bytes, encoding))
}

/// `GET /favicon.ico`, for browsers that ask without having read a page.
pub async fn favicon() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((header::LOCATION, url("icon.svg"))).finish()
}

/// `GET /robots.txt`, for search engines and for tools that ask for it: what needs a sign-in is found by none of them.
pub async fn robots() -> HttpResponse {
    let rules =
        "# Every page asks for a sign-in: there is nothing to index.\nUser-agent: *\nDisallow:\n";
    HttpResponse::Ok().insert_header((header::CONTENT_TYPE, kind("robots.txt"))).body(rules)
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("webmanifest") => "application/manifest+json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use actix_web::test::TestRequest;

    use super::*;

    fn walk(dir: &Path, into: &mut BTreeSet<String>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../static");
        for entry in std::fs::read_dir(dir).expect("a readable directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                walk(&path, into);
            } else {
                let name = path.strip_prefix(&root).expect("inside");
                into.insert(name.to_string_lossy().into_owned());
            }
        }
    }

    #[test]
    fn every_static_file_is_embedded_with_a_known_type() {
        let mut there = BTreeSet::new();
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../static"), &mut there);
        let embedded: BTreeSet<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, embedded);
        assert!(embedded.iter().all(|name| kind(name) != "application/octet-stream"));
    }

    #[test]
    fn no_script_is_longer_than_a_page_and_none_writes_markup_from_data() {
        let mut lines = 0;
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).expect("UTF-8");
            assert!(!text.contains("eval(") && !text.contains("document.write"), "{name}");
            if name.starts_with("js/") {
                assert!(text.lines().count() <= 100, "{name}");
                lines += text.lines().count();
            }
        }
        assert!(lines < 1_050, "{lines} lines of our own");
    }

    #[actix_web::test]
    async fn only_the_present_hash_is_served_and_it_may_be_kept_for_ever() {
        let ask = |hash: &str, path: &str| {
            let request = TestRequest::default().to_http_request();
            serve(web::Path::from((hash.to_owned(), path.to_owned())), request)
        };
        let found = ask(hash(), "js/main.js").await;
        assert_eq!(found.status(), 200);
        let cache = found.headers().get(header::CACHE_CONTROL).expect("a header");
        assert!(cache.to_str().expect("text").contains("immutable"));
        assert_eq!(ask("000000000000", "js/main.js").await.status(), 404);
        assert_eq!(ask(hash(), "../Cargo.toml").await.status(), 404);
    }

    #[actix_web::test]
    async fn each_encoding_of_a_file_has_its_own_tag_and_is_not_sent_twice() {
        let ask = |name: &'static str, value: String| {
            let request = TestRequest::default().insert_header((name, value)).to_http_request();
            serve(web::Path::from((hash().to_owned(), "css/components.css".to_owned())), request)
        };
        let mut seen = Vec::new();
        for accepts in ["identity", "gzip", "br"] {
            let answer = ask("accept-encoding", accepts.to_owned()).await;
            let header = |name| {
                answer.headers().get(name).map(|value| value.to_str().expect("text").to_owned())
            };
            assert_eq!(header("vary").as_deref(), Some("accept-encoding"));
            assert_eq!(
                header("content-encoding").as_deref(),
                Some(accepts).filter(|name| *name != "identity")
            );
            let tag = header("etag").expect("a tag");
            let body = actix_web::body::to_bytes(answer.into_body()).await.expect("a body");
            seen.push((body.len(), tag));
        }
        assert!(seen[0].0 > 3 * seen[1].0 && seen[1].0 > seen[2].0, "{seen:?}");
        let tags: BTreeSet<_> = seen.iter().map(|(_, tag)| tag.clone()).collect();
        assert_eq!(tags.len(), 3);
        assert_eq!(ask("if-none-match", seen[0].1.clone()).await.status(), 304);
        assert_eq!(ask("if-none-match", seen[1].1.clone()).await.status(), 200);
    }
}
