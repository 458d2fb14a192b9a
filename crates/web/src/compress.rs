//! Answers made small on the wire: brotli or gzip, whichever the client takes.
//!
//! Only whole texts are compressed, in one go. A stream (events, a download) passes untouched: a compressor would hold its
//! pieces back. Nor is an answer that sets a cookie compressed. Sockets are not compressed; their frames are small instead.
//!
//! A page holds a secret (the CSRF secret) beside text that an attacker may choose (a search in the address), so the length of a
//! compressed page could tell the secret letter by letter (BREACH). Therefore a page shows the secret under a mask that is new in
//! each answer (`csrf::masked`): its bytes never repeat, and there is nothing to learn. Secrets that are shown once (a new token,
//! a link) stand in answers to forms, which another site cannot send.

use std::io::Write as _;

use actix_web::Error;
use actix_web::body::{BoxBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{
    self, AcceptEncoding, ContentEncoding, Encoding, Header as _, HeaderMap, HeaderValue,
};
use actix_web::middleware::Next;
use actix_web::web::{self, Bytes};
use tokio::sync::Semaphore;

/// Smaller texts fit into one packet anyway.
const WORTH_IT: usize = 1_024;
/// Larger ones are compressed where they block no other request.
const LARGE: usize = 32 * 1_024;

/// Of those, one at a time: a page of a thousand jobs takes some 10 ms and 8 MB, and many readers may come at once.
static AT_ONCE: Semaphore = Semaphore::const_new(1);

/// How hard to try: an answer is made once for one reader, a file once for all readers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Effort {
    /// While a reader waits.
    Quick,
    /// Once in the life of this process.
    Thorough,
}

/// The best of the encodings that the client takes and this program can write; [`ContentEncoding::Identity`] when it takes none.
pub(super) fn wanted(
    headers: &HeaderMap,
    request: &impl actix_web::HttpMessage,
) -> ContentEncoding {
    if !headers.contains_key(header::ACCEPT_ENCODING) {
        return ContentEncoding::Identity;
    }
    let ours = [Encoding::brotli(), Encoding::gzip(), Encoding::identity()];
    match AcceptEncoding::parse(request).ok().and_then(|accepted| accepted.negotiate(ours.iter())) {
        Some(Encoding::Known(encoding)) => encoding,
        _ => ContentEncoding::Identity,
    }
}

/// `text`, compressed; nothing for [`ContentEncoding::Identity`]. Writing to memory cannot fail.
pub(super) fn encode(text: &[u8], encoding: ContentEncoding, effort: Effort) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4);
    match encoding {
        ContentEncoding::Brotli => {
            let quality = match effort {
                Effort::Quick => 4,
                Effort::Thorough => 9,
            };
            let params =
                brotli::enc::BrotliEncoderParams { quality, lgwin: 20, ..Default::default() };
            brotli::BrotliCompress(&mut &*text, &mut out, &params).ok()?;
        }
        ContentEncoding::Gzip => {
            let level = match effort {
                Effort::Quick => flate2::Compression::new(5),
                Effort::Thorough => flate2::Compression::best(),
            };
            let mut encoder = flate2::write::GzEncoder::new(&mut out, level);
            encoder.write_all(text).ok()?;
            encoder.finish().ok()?;
        }
        _ => return None,
    }
    Some(out)
}

/// Whether it is text: an answer of another kind is small, or compressed already.
fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    kind.starts_with("text/") && kind != "text/event-stream"
        || kind == "application/json"
        || kind.ends_with("+json")
}

/// The middleware.
///
/// # Errors
/// What the handler failed with.
pub(super) async fn compress(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    let encoding = wanted(request.headers(), &request);
    let (request, response) = next.call(request).await?.into_parts();
    let (mut head, body) = response.into_parts();
    let headers = head.headers();
    if !is_text(headers)
        || headers.contains_key(header::CONTENT_ENCODING)
        || headers.contains_key(header::SET_COOKIE)
    {
        return Ok(ServiceResponse::new(request, head.set_body(body.boxed())));
    }
    head.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let text = match body.try_into_bytes() {
        Ok(text) => text,
        Err(stream) => return Ok(ServiceResponse::new(request, head.set_body(stream.boxed()))),
    };
    let small = match text.len() {
        ..WORTH_IT => None,
        WORTH_IT..LARGE => encode(&text, encoding, Effort::Quick),
        _ => {
            let text = text.clone();
            // Nothing closes it.
            let _turn = AT_ONCE.acquire().await.ok();
            web::block(move || encode(&text, encoding, Effort::Quick)).await?
        }
    };
    let body = match small {
        Some(small) => {
            let name = HeaderValue::from_static(encoding.as_str());
            head.headers_mut().insert(header::CONTENT_ENCODING, name);
            Bytes::from(small)
        }
        None => text,
    };
    Ok(ServiceResponse::new(request, head.set_body(BoxBody::new(body))))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use actix_web::test::TestRequest;

    use super::*;

    fn asked(accepts: Option<&str>) -> ContentEncoding {
        let request = match accepts {
            Some(accepts) => TestRequest::default().insert_header(("accept-encoding", accepts)),
            None => TestRequest::default(),
        };
        let request = request.to_http_request();
        wanted(request.headers(), &request)
    }

    #[test]
    fn the_client_decides_which_encoding_it_gets() {
        for (accepts, encoding) in [
            (None, ContentEncoding::Identity),
            (Some("gzip, deflate, br, zstd"), ContentEncoding::Brotli),
            (Some("gzip"), ContentEncoding::Gzip),
            (Some("gzip, br;q=0"), ContentEncoding::Gzip),
            (Some("br;q=0.1, gzip;q=0.9"), ContentEncoding::Gzip),
            (Some("identity"), ContentEncoding::Identity),
            (Some("zstd"), ContentEncoding::Identity),
            (Some(""), ContentEncoding::Identity),
        ] {
            assert_eq!(asked(accepts), encoding, "{accepts:?}");
        }
    }

    #[test]
    fn what_was_compressed_is_read_again() {
        let text = "<article>one</article>".repeat(400);
        for effort in [Effort::Quick, Effort::Thorough] {
            let small = encode(text.as_bytes(), ContentEncoding::Brotli, effort).expect("brotli");
            let mut read = Vec::new();
            brotli::BrotliDecompress(&mut &*small, &mut read).expect("brotli");
            assert_eq!(read, text.as_bytes());
            let small = encode(text.as_bytes(), ContentEncoding::Gzip, effort).expect("gzip");
            let mut read = String::new();
            flate2::read::GzDecoder::new(&*small).read_to_string(&mut read).expect("gzip");
            assert_eq!(read, text);
            assert!(small.len() * 10 < text.len());
        }
    }
}
