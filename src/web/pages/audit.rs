//! Placeholder until the merge.
use actix_web::HttpResponse;
pub async fn page() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body("")
}
