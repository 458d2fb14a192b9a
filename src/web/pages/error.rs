//! Placeholder until the merge.
use crate::words::Language;
pub fn render(status: u16, title: &str, detail: &str, _lang: Language) -> String {
    format!("<!doctype html><h1>{status} {title}</h1><p>{}</p>", detail.replace('<', "&lt;"))
}
