//! HTTP clients that this program makes: of nodes, of the provider of single sign-on, of the services that alerts go to.

use reqwest::{Client, ClientBuilder, redirect};

/// A client that goes where it is sent and nowhere else. It trusts the certificate authorities of the platform.
pub fn client() -> ClientBuilder {
    // reqwest chooses no cryptography itself.
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::trace!("the cryptography was chosen before");
    }
    Client::builder()
        .redirect(redirect::Policy::none())
        .user_agent(concat!("soloist/", env!("CARGO_PKG_VERSION")))
}
