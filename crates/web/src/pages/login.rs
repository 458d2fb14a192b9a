//! The sign-in form: by password, as the first admin, or once by a link. What it is sent is judged in `web::login`.

use actix_web::HttpRequest;
use askama::Template;

use super::{Frame, preferences, whole};
use crate::error::WebError;
use soloist_secrets::PASSWORD_MIN;
use soloist_view::words::{Arg, Language, say};

/// Whom a one-time link lets in.
#[derive(Debug)]
pub enum LinkFor {
    /// There is no account yet.
    FirstAdmin,
    /// This account.
    User(String),
    /// The person who sets the password of this account.
    Password(String),
}

/// What the form shows.
#[derive(Debug)]
pub struct LoginForm {
    /// The language of the reader.
    pub language: Language,
    /// What the form repeats.
    pub csrf: String,
    /// Where to go afterwards.
    pub next: String,
    /// The name entered before.
    pub name: String,
    /// The link's secret, while it is good.
    pub link: Option<String>,
    /// Whom it lets in.
    pub link_for: Option<LinkFor>,
    /// No account exists yet.
    pub nobody: bool,
    /// The words of the button for single sign-on, and where it leads.
    pub sso: Option<(String, String)>,
    /// What was wrong with the last try.
    pub error: Option<WebError>,
}

#[derive(Template)]
#[template(path = "pages/login.html")]
pub(super) struct Login<'a> {
    pub(super) frame: Frame,
    pub(super) form: &'a LoginForm,
    pub(super) error: Option<String>,
    pub(super) text: Option<String>,
    pub(super) enter: String,
    /// The name is asked for.
    pub(super) name: bool,
    /// A password is asked for: `current-password` or `new-password`.
    pub(super) password: Option<&'static str>,
    /// A new password is asked for twice.
    pub(super) again: bool,
    pub(super) minimum: usize,
    pub(super) rule: String,
}

/// The page.
#[must_use]
pub fn render(request: &HttpRequest, form: &LoginForm) -> String {
    whole(&of(form, preferences::theme(request)))
}

pub(super) fn of(form: &LoginForm, theme: Option<String>) -> Login<'_> {
    let lang = form.language;
    let word = |id: &str| say(lang, id, &[]);
    let rule = [("n", Arg::from(i64::try_from(PASSWORD_MIN).unwrap_or(0)))];
    let mut login = Login {
        frame: Frame::open(lang, theme, say(lang, "login-title", &[])),
        form,
        error: form.error.as_ref().map(|error| match error {
            WebError::Unauthorized => word("login-wrong"),
            error => error.sentence(lang),
        }),
        text: None,
        enter: say(lang, "login-enter", &[]),
        name: true,
        password: Some("current-password"),
        again: false,
        minimum: 1,
        rule: say(lang, "password-rule", &rule),
    };
    login.frame.csrf.clone_from(&form.csrf);
    login.frame.path = match &form.link {
        Some(link) => format!("/login?link={link}"),
        None => "/login".to_owned(),
    };
    match &form.link_for {
        None if form.nobody => login.text = Some(word("login-nobody")),
        None => {}
        Some(LinkFor::FirstAdmin) => {
            login.frame.title = word("first-title");
            login.text = Some(word("first-text"));
            login.enter = word("first-enter");
            login.password = Some("new-password");
            login.again = true;
            login.minimum = PASSWORD_MIN;
        }
        Some(LinkFor::Password(user)) => {
            login.frame.title = say(lang, "invite-title", &[("user", Arg::from(user.as_str()))]);
            login.text = Some(word("invite-text"));
            login.enter = word("invite-enter");
            login.name = false;
            login.password = Some("new-password");
            login.again = true;
            login.minimum = PASSWORD_MIN;
        }
        Some(LinkFor::User(user)) => {
            let title = say(lang, "link-title", &[("user", Arg::from(user.as_str()))]);
            login.frame.title = title.clone();
            login.text = Some(word("link-text"));
            login.enter = title;
            login.name = false;
            login.password = None;
        }
    }
    login
}
