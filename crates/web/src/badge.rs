//! `GET /badge/{job}.svg`: the state of a job as a small picture. Who may see the job may see it, by a session or a token;
//! no other reader may, and no token stands in an address.

use actix_web::http::header;
use actix_web::{HttpResponse, web};

use super::Web;
use super::api::seen;
use super::auth::Caller;
use super::error::WebError;
use super::parts::badge;

/// Shows the badge, in the words of the caller's language.
///
/// # Errors
/// [`WebError::NotFound`] for a job that there is not, or that the caller may not see; [`WebError::Forbidden`] for a token that is
/// bound to other names; [`WebError::Unavailable`].
pub async fn picture(
    web: web::Data<Web>,
    caller: Caller,
    job: web::Path<String>,
) -> Result<HttpResponse, WebError> {
    let job = web.job(&caller, &job)?;
    let view = seen(&web, &caller, &job).await?;
    Ok(HttpResponse::Ok()
        .content_type("image/svg+xml; charset=utf-8")
        .insert_header((header::CACHE_CONTROL, "no-cache"))
        .body(badge::svg(&view)))
}
