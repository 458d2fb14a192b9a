//! Placeholder until the merge.
use crate::web::error::WebError;
use crate::words::Language;
use actix_web::HttpRequest;
#[derive(Debug)]
pub enum LinkFor {
    FirstAdmin,
    User(String),
}
#[derive(Debug)]
pub struct LoginForm {
    pub language: Language,
    pub csrf: String,
    pub next: String,
    pub name: String,
    pub link: Option<String>,
    pub link_for: Option<LinkFor>,
    pub error: Option<WebError>,
}
pub fn render(_request: &HttpRequest, form: &LoginForm) -> String {
    format!("<!doctype html><input name=\"csrf\" value=\"{}\"><p>{:?}</p>", form.csrf, form.error)
}
