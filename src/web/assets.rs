//! Style sheets, scripts and icons, embedded at compile time and served under a hash of all of them.
//!
//! The hash stands in the directory (`/static/<hash>/js/main.js`), so relative imports inherit it and every answer
//! may be cached for ever; another hash is another version of the program and gets 404.

use std::sync::OnceLock;

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use sha2::{Digest, Sha256};

macro_rules! embed {
    ($($path:literal)*) => {
        &[$(($path, include_bytes!(concat!("../../static/", $path)).as_slice())),*]
    };
}

/// Every file under `static/`; a test compares.
static FILES: &[(&str, &[u8])] = embed! {
    "css/tokens.css"
    "css/base.css"
    "css/layout.css"
    "css/components.css"
    "icon.svg"
    "icon-trouble.svg"
    "icons.svg"
    "js/clock.js"
    "js/confirm.js"
    "js/copy.js"
    "js/dispatch.js"
    "js/groups.js"
    "js/keyboard.js"
    "js/live.js"
    "js/log.js"
    "js/main.js"
    "js/mark.js"
    "js/morph.js"
    "js/nodes.js"
    "js/passwords.js"
    "js/rotations.js"
    "js/rows.js"
    "js/theme.js"
    "js/toggle.js"
    "js/truth.js"
    "js/words.js"
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

/// `GET /static/{hash}/{path}`.
pub async fn serve(address: web::Path<(String, String)>) -> HttpResponse {
    let (given, path) = address.into_inner();
    let found = FILES.iter().find(|(name, _)| given == hash() && *name == path);
    match found {
        Some((name, bytes)) => HttpResponse::Ok()
            .insert_header((header::CONTENT_TYPE, kind(name)))
            .insert_header((header::CACHE_CONTROL, "public, max-age=31536000, immutable"))
            .body(*bytes),
        None => HttpResponse::NotFound().finish(),
    }
}

/// `GET /favicon.ico`, for browsers that ask without having read a page.
pub async fn favicon() -> HttpResponse {
    HttpResponse::PermanentRedirect().insert_header((header::LOCATION, url("icon.svg"))).finish()
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn walk(dir: &Path, into: &mut BTreeSet<String>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("static");
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
        walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("static"), &mut there);
        let embedded: BTreeSet<_> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(there, embedded);
        assert!(embedded.iter().all(|name| kind(name) != "application/octet-stream"));
    }

    #[test]
    fn no_script_is_longer_than_a_page_and_none_writes_markup_from_data() {
        for (name, bytes) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(bytes).expect("UTF-8");
            assert!(text.lines().count() <= 100, "{name}");
            assert!(!text.contains("eval(") && !text.contains("document.write"), "{name}");
        }
    }

    #[actix_web::test]
    async fn only_the_present_hash_is_served_and_it_may_be_kept_for_ever() {
        let ask =
            |hash: &str, path: &str| serve(web::Path::from((hash.to_owned(), path.to_owned())));
        let found = ask(hash(), "js/main.js").await;
        assert_eq!(found.status(), 200);
        let cache = found.headers().get(header::CACHE_CONTROL).expect("a header");
        assert!(cache.to_str().expect("text").contains("immutable"));
        assert_eq!(ask("000000000000", "js/main.js").await.status(), 404);
        assert_eq!(ask(hash(), "../Cargo.toml").await.status(), 404);
    }
}
