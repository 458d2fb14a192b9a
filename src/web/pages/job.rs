//! Placeholder until the merge.
use actix_web::HttpResponse;
pub async fn page() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body("")
}
pub async fn participation() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body("")
}
pub async fn hold() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body("")
}
pub async fn resume() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body("")
}
pub async fn move_() -> HttpResponse {
    HttpResponse::Ok().content_type("text/html; charset=utf-8").body("")
}
