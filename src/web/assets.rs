//! Placeholder until the merge.
#![expect(missing_docs, reason = "a placeholder until the merge")]
use actix_web::HttpResponse;
pub async fn serve() -> HttpResponse {
    HttpResponse::NotFound().finish()
}
