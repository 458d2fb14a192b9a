//! TLS in this server: which certificate a client is shown, and reading it again when its files change.
//!
//! A pair that cannot be used changes nothing: the one before goes on, and the log says what to do. What makes a pair good is decided
//! in `config`. It knows nothing of HTTP beyond the name of its version.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use soloist_config::TlsFiles;

/// How often the files are looked at. Two looks must find the same: a program that renews them writes one file after the other.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A certificate and its key, as they were last good.
#[derive(Debug)]
pub struct Pair {
    files: TlsFiles,
    current: RwLock<Arc<CertifiedKey>>,
}

/// What changes when a file is written or replaced: device, number, length, seconds and nanoseconds of its change.
type Stamp = (u64, u64, u64, i64, i64);

impl Pair {
    /// Reads both files, and follows them from then on. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn open(files: TlsFiles) -> io::Result<Arc<Self>> {
        let stamps = stamps(&files);
        let first = files.pair().map_err(io::Error::other)?;
        let pair = Arc::new(Self { files, current: RwLock::new(Arc::new(first)) });
        tokio::spawn(follow(Arc::downgrade(&pair), stamps));
        Ok(pair)
    }

    /// What the listener needs: TLS 1.2 and 1.3, HTTP/1.1.
    ///
    /// # Errors
    /// Never with these versions.
    pub fn server_config(self: Arc<Self>) -> io::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
            .map_err(io::Error::other)?;
        // The framework adds what it speaks: HTTP/1.1.
        Ok(builder.with_no_client_auth().with_cert_resolver(self))
    }

    fn read_again(&self) {
        let cert = self.files.cert.display();
        match self.files.pair() {
            Ok(pair) => {
                *self.current.write() = Arc::new(pair);
                tracing::info!("the certificate {cert} is read again: new connections get it");
            }
            Err(why) => tracing::error!(
                "the new certificate is not taken, the one before goes on until it expires: {why}"
            ),
        }
    }
}

impl ResolvesServerCert for Pair {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

/// Looks at the files for as long as a server uses them.
async fn follow(pair: Weak<Pair>, read: [Option<Stamp>; 2]) {
    let (mut read, mut before) = (read, read);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(pair) = pair.upgrade() else { return };
        let now = stamps(&pair.files);
        if now != read && now == before {
            read = now;
            pair.read_again();
        }
        before = now;
    }
}

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 2] {
    let stamp = |file: &Path| std::fs::metadata(file).ok().as_ref().map(stamp_of);
    [stamp(&files.cert), stamp(&files.key)]
}

fn stamp_of(found: &Metadata) -> Stamp {
    (found.dev(), found.ino(), found.size(), found.ctime(), found.ctime_nsec())
}
