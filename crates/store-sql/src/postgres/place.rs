//! Turns a store URL into the driver's options. No message repeats the URL: it has a password.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::sql::tls;
use soloist_store::{Options, Result, StoreError};

/// Where the tables are, and how to get there.
pub(crate) struct Place {
    /// For messages: `HOST:PORT/DATABASE, schema SCHEMA`.
    pub(super) name: String,
    pub(super) schema: String,
    pub(super) config: Config,
    pub(super) tls: Option<MakeRustlsConnect>,
}

impl Place {
    /// Of `postgres://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME&sslmode=MODE&sslrootcert=FILE`.
    pub(super) fn of(url: &str, options: &Options) -> Result<Self> {
        let (plain, asked) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut mode, mut root, mut rest) = (None, None, None, Vec::new());
        for pair in asked.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("schema", name)) => schema = Some(name.to_owned()),
                Some(("sslmode", word)) => mode = Some(word.to_owned()),
                Some(("sslrootcert", path)) => root = Some(path.to_owned()),
                _ => rest.push(pair),
            }
        }
        let cleared = format!("{plain}?{}", rest.join("&"));
        let mut config: Config = cleared.parse().map_err(|_| {
            refused("the PostgreSQL URL cannot be read: use postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for special characters in the password")
        })?;
        let schema = schema_of(schema.as_deref(), &options.prefix)?;
        let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
        let (host, near) = match config.get_hosts() {
            [Host::Tcp(host)] => {
                let address = host.parse::<std::net::IpAddr>();
                (host.clone(), host == "localhost" || address.is_ok_and(|ip| ip.is_loopback()))
            }
            [Host::Unix(path)] => (path.display().to_string(), true),
            [] => return Err(refused("the PostgreSQL URL names no host")),
            _ => {
                return Err(refused(
                    "the PostgreSQL URL names several hosts: name one address that always leads to the primary",
                ));
            }
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let name = format!("{host}:{port}/{database}, schema {schema}");
        let tls = protected(mode.as_deref(), root.as_deref(), near)?;
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        config.connect_timeout(options.timeout);
        config.tcp_user_timeout(options.timeout.max(Duration::from_secs(1)));
        config.keepalives_idle(Duration::from_secs(5));
        config.application_name("soloist");
        Ok(Self { name, schema, config, tls })
    }
}

/// `prefix` without what no name of a schema has; or what the URL says.
fn schema_of(said: Option<&str>, prefix: &str) -> Result<String> {
    let of_prefix: String = prefix
        .trim_end_matches([':', '_'])
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .collect();
    let name = said.map_or(of_prefix, str::to_owned);
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    if name.len() > 50 || !begins || !name.chars().all(good) || name.starts_with("pg_") {
        return Err(refused(
            "the schema in the PostgreSQL URL must be of small letters, digits and _, begin with a letter, and have 50 characters at most",
        ));
    }
    Ok(name)
}

/// How the connection is protected.
fn protected(
    mode: Option<&str>,
    root: Option<&str>,
    near: bool,
) -> Result<Option<MakeRustlsConnect>> {
    let Some(trusted) = tls::roots(mode, root, near)? else { return Ok(None) };
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(trusted);
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| refused(&format!("TLS: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}

fn refused(why: &str) -> StoreError {
    StoreError::Unsupported(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Result<Place> {
        Place::of(url, &Options::default())
    }

    #[test]
    fn a_password_goes_over_a_network_only_to_a_server_that_proved_its_name() {
        for (url, protected) in [
            ("postgres://u:p@db.example.org/jobs", true),
            ("postgresql://u:p@10.0.0.1:5433/jobs?sslmode=verify-full", true),
            ("postgres://u:p@10.0.0.1/jobs?sslmode=disable", false),
            ("postgres://u:p@127.0.0.1/jobs", false),
            ("postgres://u:p@[::1]/jobs", false),
            ("postgres://u:p@localhost/jobs?sslmode=verify-full", true),
        ] {
            assert_eq!(place(url).unwrap().tls.is_some(), protected, "{url}");
        }
        for mode in ["prefer", "allow", "require", "verify-ca", ""] {
            let url = format!("postgres://u:sesame@db/jobs?sslmode={mode}");
            let Err(StoreError::Unsupported(why)) = place(&url) else { panic!("{mode}") };
            assert!(!why.contains("sesame") && why.contains("verify-full"), "{why}");
        }
    }

    #[test]
    fn the_schema_is_what_the_url_says_or_the_prefix() {
        for (url, schema) in [
            ("postgres://u@localhost/jobs", "soloist"),
            ("postgres://u@localhost/jobs?schema=team_7", "team_7"),
        ] {
            let place = place(url).unwrap();
            assert_eq!(place.schema, schema);
            assert_eq!(place.name, format!("localhost:5432/jobs, schema {schema}"));
        }
        for bad in ["Team", "pg_x", "a-b", "a\"b", "7", ""] {
            assert!(place(&format!("postgres://u@localhost/jobs?schema={bad}")).is_err(), "{bad}");
        }
    }
}
