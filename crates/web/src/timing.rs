//! `Server-Timing`: how long this node worked on an answer, for the tools of a browser. Strangers are not told: how long a
//! password is looked at is not for them to know.

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;

use soloist_process::clock;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The middleware.
///
/// # Errors
/// What the handler failed with.
pub(super) async fn timing(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    let began = clock::boot();
    let mut response = next.call(request).await?;
    let stranger = response.request().path().starts_with("/login");
    if !stranger && response.status().is_success() {
        let took = clock::boot().since(began).as_secs_f64() * 1_000.0;
        if let Ok(value) = HeaderValue::from_str(&format!("node;dur={took:.1}")) {
            response.headers_mut().insert(SERVER_TIMING, value);
        }
    }
    Ok(response)
}
