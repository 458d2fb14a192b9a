//! `soloist ping`: whether the node of this machine answers. For health checks of containers, which have nothing else at hand.
//!
//! It asks over the door that the configuration names, with TLS if that does, and accepts any certificate: the answer carries no
//! secret, and comes from this machine.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use super::output::print;
use super::{Cli, Failure};
use soloist_config::{Environment, Listening, listening};

/// A node that is slower is taken for dead.
const PATIENCE: Duration = Duration::from_secs(2);
/// More than the first line of an answer has.
const LINE: u64 = 128;

#[derive(Debug, Args)]
#[expect(missing_docs, reason = "doc comments here are help texts")]
pub struct PingArgs {
    /// Where the node listens, if it was started with --listen
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Whether it also reaches its store (/readyz instead of /healthz)
    #[arg(long)]
    pub ready: bool,
}

/// `ping`: succeeds when the node answers 200.
pub(super) fn ping(cli: &Cli, args: &PingArgs, env: Environment<'_>) -> Result<(), Failure> {
    let Listening { at, tls } = listening(cli.config.as_deref(), args.listen, env);
    let path = if args.ready { "/readyz" } else { "/healthz" };
    let url = format!("{}://{at}{path}", if tls { "https" } else { "http" });
    let line = asked(at, tls, path).map_err(|error| Failure::Failed(format!("{url}: {error}")))?;
    match line.split(' ').nth(1) {
        Some("200") => print(&format!("{url}: ok")),
        _ => Err(Failure::Failed(format!("{url}: the node answers {line:?}"))),
    }
}

/// The first line of the answer.
fn asked(at: SocketAddr, tls: bool, path: &str) -> Result<String, Box<dyn std::error::Error>> {
    let stream = TcpStream::connect_timeout(&at, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if !tls {
        return Ok(first_line(stream, path)?);
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from("localhost")?)?;
    Ok(first_line(StreamOwned::new(session, stream), path)?)
}

fn first_line(mut stream: impl Read + Write, path: &str) -> std::io::Result<String> {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    stream.flush()?;
    let mut line = Vec::new();
    BufReader::new(stream.take(LINE)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

/// Believes every certificate, and checks only that the peer has its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
