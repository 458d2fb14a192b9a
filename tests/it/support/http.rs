//! HTTP clients of the tests, which speak to this machine only and trust no certificate.

use reqwest::{Client, ClientBuilder, IntoUrl, Response};

/// A client.
pub(crate) fn client() -> ClientBuilder {
    // reqwest chooses no cryptography itself; another test may have chosen.
    drop(rustls::crypto::ring::default_provider().install_default());
    Client::builder().tls_certs_only([])
}

/// One answer.
pub(crate) async fn get(url: impl IntoUrl) -> reqwest::Result<Response> {
    client().build()?.get(url).send().await
}
