//! Which failure becomes which answer.
//!
//! Machines get `application/problem+json` (RFC 9457), people get a page; the door decides which, by the path. Every
//! `detail` says what to do. This file logs only our own faults.

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;

use soloist_desk::waiting::DeskError;
use soloist_domain::detail::{Detail, Message};
use soloist_domain::handover::NoMove;
use soloist_domain::name::InvalidName;
use soloist_ops::OpsError;
use soloist_secrets::{PASSWORD_MAX, PASSWORD_MIN, PasswordError};
use soloist_store::StoreError;
use soloist_view::words::{Arg, Language, say};

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "`detail` is the sentence for the caller, `retry_after` seconds, `id` a message"
)]
pub enum WebError {
    /// 400: the request is malformed.
    #[error("{detail}")]
    BadRequest { detail: Detail },
    /// 401: the caller is not signed in.
    #[error("sign in, or send a valid token in the header Authorization: Bearer TOKEN")]
    Unauthorized,
    /// 403: signed in, but not allowed.
    #[error("{detail}")]
    Forbidden { detail: Detail },
    /// 404.
    #[error("{detail}")]
    NotFound { detail: Detail },
    /// 405, with the methods that exist.
    #[error("this address answers only {allow}")]
    MethodNotAllowed { allow: String },
    /// 409: the name is taken, or what it is about has changed meanwhile.
    #[error("{detail}")]
    Conflict { detail: Detail },
    /// Any of these that people meet on pages: a sentence that stands in both languages.
    #[error("{}", say(Language::En, .id, .args))]
    Told { status: u16, id: &'static str, args: Vec<(&'static str, Arg)> },
    /// 400: a password that is too easy to guess; ids of messages.
    #[error("{}", sentences(Language::En, .why))]
    Weak { why: Vec<&'static str> },
    /// 413.
    #[error("the request is larger than 64 KiB (1 MiB for tasks and results): send less at a time")]
    TooLarge,
    /// 429.
    #[error("{detail}")]
    TooMany { detail: Detail, retry_after: u64 },
    /// 500: our own fault.
    #[error("{detail}")]
    Internal { detail: String },
    /// 503: the store is out of reach, or this node is full.
    #[error("{detail}")]
    Unavailable { detail: Detail, retry_after: u64 },
}

/// The body of an error: RFC 9457.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(title = "Problem")]
pub struct Problem {
    /// `about:blank`: the status says it all.
    #[schema(example = "about:blank")]
    pub r#type: &'static str,
    /// The status in words.
    #[schema(example = "Not Found")]
    pub title: &'static str,
    /// The HTTP status.
    #[schema(example = 404)]
    pub status: u16,
    /// What went wrong and what to do.
    pub detail: String,
}

impl WebError {
    /// A 400 that says `detail`.
    pub fn bad(detail: impl Into<Detail>) -> Self {
        Self::BadRequest { detail: detail.into() }
    }

    /// A 403 that says `detail`.
    pub fn forbidden(detail: impl Into<Detail>) -> Self {
        Self::Forbidden { detail: detail.into() }
    }

    /// A 404 that says `detail`.
    pub fn not_found(detail: impl Into<Detail>) -> Self {
        Self::NotFound { detail: detail.into() }
    }

    /// A 409 that says `detail`.
    pub fn conflict(detail: impl Into<Detail>) -> Self {
        Self::Conflict { detail: detail.into() }
    }

    /// A refusal in both languages: `id` is the message, `args` are its variables.
    #[must_use]
    pub fn told(status: StatusCode, id: &'static str, args: &[(&'static str, &str)]) -> Self {
        let args = args.iter().map(|(name, value)| (*name, Arg::from(*value))).collect();
        Self::Told { status: status.as_u16(), id, args }
    }

    /// For people: the sentence, and, where that stands in English only, a general one before it.
    #[must_use]
    pub fn for_people(&self, lang: Language) -> (String, Option<String>) {
        match self {
            Self::Told { id, args, .. } => (say(lang, id, args), None),
            Self::Weak { why } => (sentences(lang, why), None),
            Self::Unauthorized => (say(lang, "error-unauthorized", &[]), None),
            Self::TooLarge => (say(lang, "error-too-large", &[]), None),
            Self::MethodNotAllowed { .. } => (say(lang, "error-method", &[]), None),
            error if error.message().is_some() => {
                let (id, args) = error.message().cloned().unwrap_or_default();
                let args: Vec<_> =
                    args.into_iter().map(|(name, value)| (name, Arg::from(value))).collect();
                (say(lang, id, &args), None)
            }
            error if lang == Language::En => (error.to_string(), None),
            error => (say(lang, error.general(), &[]), Some(error.to_string())),
        }
    }

    /// What tells it to people in their language.
    fn message(&self) -> Option<&Message> {
        match self {
            Self::BadRequest { detail }
            | Self::Forbidden { detail }
            | Self::NotFound { detail }
            | Self::Conflict { detail }
            | Self::TooMany { detail, .. }
            | Self::Unavailable { detail, .. } => detail.message(),
            _ => None,
        }
    }

    /// [`Self::for_people`] in one text.
    #[must_use]
    pub fn sentence(&self, lang: Language) -> String {
        let (text, detail) = self.for_people(lang);
        detail.map_or(text.clone(), |detail| format!("{text}{detail}"))
    }

    /// The message of the status in a few words.
    #[must_use]
    pub fn heading(&self) -> &'static str {
        match self.word() {
            "bad_request" => "error-title-bad-request",
            "unauthorized" => "error-title-unauthorized",
            "forbidden" => "error-title-forbidden",
            "not_found" => "error-title-not-found",
            "method_not_allowed" => "error-title-method",
            "conflict" => "error-title-conflict",
            "too_large" => "error-title-too-large",
            "timeout" => "error-title-timeout",
            "misdirected" => "error-title-misdirected",
            "too_many" => "error-title-too-many",
            "unavailable" => "error-title-unavailable",
            _ => "error-title-internal",
        }
    }

    fn general(&self) -> &'static str {
        match self.word() {
            "bad_request" => "error-bad-request",
            "forbidden" => "error-forbidden",
            "not_found" => "error-not-found",
            "conflict" => "error-conflict",
            "too_many" => "error-too-many",
            "unavailable" => "error-unavailable",
            _ => "error-internal",
        }
    }

    /// A word for programs (in replies on `/live`).
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::BadRequest { .. } | Self::Weak { .. } => "bad_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden { .. } => "forbidden",
            Self::NotFound { .. } => "not_found",
            Self::MethodNotAllowed { .. } => "method_not_allowed",
            Self::Conflict { .. } => "conflict",
            Self::TooLarge => "too_large",
            Self::TooMany { .. } => "too_many",
            Self::Internal { .. } => "internal",
            Self::Unavailable { .. } => "unavailable",
            Self::Told { status, .. } => match status {
                400 | 415 | 426 => "bad_request",
                403 => "forbidden",
                404 => "not_found",
                408 => "timeout",
                409 => "conflict",
                421 => "misdirected",
                429 => "too_many",
                503 => "unavailable",
                _ => "internal",
            },
        }
    }

    /// The status in words.
    #[must_use]
    pub fn title(&self) -> &'static str {
        self.status_code().canonical_reason().unwrap_or("Error")
    }

    /// What an arbitrary error of the framework amounts to.
    #[must_use]
    pub fn from_framework(error: &actix_web::Error) -> Self {
        if let Some(own) = error.as_error::<Self>() {
            return own.clone();
        }
        let detail = error.to_string();
        match error.as_response_error().status_code() {
            StatusCode::PAYLOAD_TOO_LARGE => Self::TooLarge,
            StatusCode::NOT_FOUND => {
                Self::not_found(Detail::new(detail).told("error-no-address", &[]))
            }
            StatusCode::UNAUTHORIZED => Self::Unauthorized,
            status if status.is_client_error() => {
                Self::bad(Detail::new(detail).told("refused-form", &[]))
            }
            _ => Self::Internal { detail },
        }
    }

    /// Adds the headers that belong to this error.
    pub fn dress(&self, response: &mut HttpResponse) {
        let headers = response.headers_mut();
        match self {
            Self::TooMany { retry_after, .. } | Self::Unavailable { retry_after, .. } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from(*retry_after));
            }
            Self::Unauthorized => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::MethodNotAllowed { allow } => {
                if let Ok(value) = HeaderValue::from_str(allow) {
                    headers.insert(header::ALLOW, value);
                }
            }
            Self::Told { status: 415, .. } => {
                headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            }
            Self::Told { status: 426, .. } => {
                headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
                headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            }
            _ => {}
        }
    }
}

/// Messages one after the other.
fn sentences(lang: Language, ids: &[&'static str]) -> String {
    let gap = say(lang, "sentence-gap", &[]);
    ids.iter().map(|id| say(lang, id, &[])).collect::<Vec<_>>().join(&gap)
}

impl From<PasswordError> for WebError {
    fn from(error: PasswordError) -> Self {
        let number = |n: usize| vec![("n", Arg::from(i64::try_from(n).unwrap_or(0)))];
        let told = |id, args| Self::Told { status: 400, id, args };
        match error {
            PasswordError::TooShort => told("password-short", number(PASSWORD_MIN)),
            PasswordError::TooLong => told("password-long", number(PASSWORD_MAX)),
            PasswordError::Weak(why) => Self::Weak { why },
            PasswordError::Busy => {
                let detail = Detail::new(error.to_string()).told("refused-busy", &[]);
                Self::TooMany { detail, retry_after: 3 }
            }
            PasswordError::Hash(detail) => Self::Internal { detail },
        }
    }
}

impl ResponseError for WebError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::BadRequest { .. } | Self::Weak { .. } => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden { .. } => StatusCode::FORBIDDEN,
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::Conflict { .. } => StatusCode::CONFLICT,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::Internal { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            Self::Told { status, .. } => {
                StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
        }
    }

    fn error_response(&self) -> HttpResponse {
        let status = self.status_code();
        let problem = Problem {
            r#type: "about:blank",
            title: self.title(),
            status: status.as_u16(),
            detail: self.to_string(),
        };
        let body = serde_json::to_string(&problem).unwrap_or_default();
        let mut response =
            HttpResponse::build(status).content_type("application/problem+json").body(body);
        self.dress(&mut response);
        response
    }
}

impl From<StoreError> for WebError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(what) => Self::Unavailable {
                detail: Detail::new(format!(
                    "the store is not reachable ({what}): try again in a moment"
                ))
                .told("refused-store-away", &[]),
                retry_after: 1,
            },
            StoreError::NotFound(_) => Self::not_found(error.to_string()),
            StoreError::LastAdmin(ref user) => Self::conflict(
                Detail::new(error.to_string()).told("refused-last-admin", &[("user", user)]),
            ),
            StoreError::Exists(_) | StoreError::Stale { .. } => Self::conflict(error.to_string()),
            StoreError::NewerSchema { .. }
            | StoreError::Unsupported(_)
            | StoreError::Absent(_)
            | StoreError::Corrupt(_) => {
                tracing::error!(%error, "the store cannot be used");
                Self::Internal { detail: error.to_string() }
            }
        }
    }
}

impl From<OpsError> for WebError {
    fn from(error: OpsError) -> Self {
        match error {
            OpsError::Field { field, what } => Self::bad(what.after(&format!("field {field} "))),
            OpsError::Move(none @ NoMove::NoSuchNode { .. }) => {
                Self::bad(none.detail().after("field to: "))
            }
            OpsError::Malformed(detail) => Self::BadRequest { detail },
            OpsError::Forbidden(detail) => Self::Forbidden { detail },
            OpsError::NotFound(detail) => Self::NotFound { detail },
            OpsError::Conflict(detail) => Self::Conflict { detail },
            OpsError::Move(refused) => Self::conflict(refused.detail()),
            OpsError::Store(error) | OpsError::Unnoted(error) => error.into(),
        }
    }
}

impl From<DeskError> for WebError {
    fn from(error: DeskError) -> Self {
        match error {
            DeskError::Store(StoreError::Unsupported(_)) | DeskError::Refused(_) => {
                Self::Unavailable { detail: error.to_string().into(), retry_after: 5 }
            }
            DeskError::Store(error) => error.into(),
        }
    }
}

impl From<InvalidName> for WebError {
    fn from(error: InvalidName) -> Self {
        Self::bad(error.detail())
    }
}
