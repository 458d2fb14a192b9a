//! Turns a store URL into the driver's options. No message repeats the URL: it has a password.

use std::time::Duration;

use mysql_async::{Opts, OptsBuilder, SslOpts};

use crate::sql::tls;
use soloist_store::{Options, Result, StoreError};

/// So many statements stay prepared on a connection. There are fewer: those that change a job, and that of the bell.
const PREPARED: usize = 32;

/// Where the tables are, and how to get there.
pub(crate) struct Place {
    /// For messages: `HOST:PORT/DATABASE`.
    pub(super) name: String,
    pub(super) opts: Opts,
}

impl Place {
    /// Of `mysql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=MODE&sslrootcert=FILE`; `mariadb://` is the same.
    pub(super) fn of(url: &str, options: &Options) -> Result<Self> {
        let unreadable = || {
            refused(
                "the MySQL URL cannot be read: use mysql://USER:PASSWORD@HOST:PORT/DATABASE, with %XX for special characters in the password",
            )
        };
        let (plain, asked) = url.split_once('?').unwrap_or((url, ""));
        let (mut mode, mut root) = (None, None);
        for pair in asked.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", word)) => mode = Some(word),
                Some(("sslrootcert", path)) => root = Some(path),
                _ => {
                    return Err(refused(
                        "the MySQL URL knows only ?sslmode= and &sslrootcert= (docs/stores.md)",
                    ));
                }
            }
        }
        let (_, rest) = plain.split_once("://").ok_or_else(unreadable)?;
        if rest.rsplit('@').next().is_some_and(|place| place.contains(',')) {
            return Err(refused(
                "the MySQL URL names several hosts: name one address that always leads to the primary",
            ));
        }
        let read = Opts::from_url(&format!("mysql://{rest}")).map_err(|_| unreadable())?;
        let (host, port) = (read.ip_or_hostname().to_owned(), read.tcp_port());
        let database = read.db_name().filter(|name| !name.is_empty()).map(str::to_owned);
        let database = database.ok_or_else(|| {
            refused("the MySQL URL names no database: use mysql://USER:PASSWORD@HOST:PORT/DATABASE")
        })?;
        // A driver of its own kind, not the operating system, decides what an address in brackets is.
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let near = bare == "localhost"
            || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        let ssl = tls::roots(mode, root, near)?.map(|roots| {
            let roots = roots.iter().map(|one| one.as_ref().to_vec().into());
            SslOpts::default().with_disable_built_in_roots(true).with_root_certs(roots.collect())
        });
        let name = format!("{host}:{port}/{database}");
        let opts = OptsBuilder::from_opts(read)
            .ip_or_hostname(bare)
            .ssl_opts(ssl)
            .prefer_socket(false)
            .stmt_cache_size(PREPARED)
            // What a statement found and left as it was counts as changed, as on the other stores.
            .client_found_rows(true)
            .max_allowed_packet(Some(64 << 20))
            .wait_timeout(Some(28_800))
            .tcp_keepalive(Some(Duration::from_secs(5).min(options.timeout * 5)));
        Ok(Self { name, opts: opts.into() })
    }
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
            ("mysql://u:p@db.example.org/jobs", true),
            ("mariadb://u:p@10.0.0.1:3307/jobs?sslmode=verify-full", true),
            ("mysql://u:p@10.0.0.1/jobs?sslmode=disable", false),
            ("mysql://u:p@127.0.0.1/jobs", false),
            ("mysql://u:p@[::1]/jobs", false),
            ("mysql://u:p@localhost/jobs?sslmode=verify-full", true),
        ] {
            let ssl = place(url).unwrap().opts.ssl_opts().cloned();
            assert_eq!(ssl.is_some(), protected, "{url}");
            assert!(ssl.is_none_or(|ssl| !ssl.accept_invalid_certs()), "{url}");
        }
        for mode in ["prefer", "allow", "require", "verify-ca", ""] {
            let url = format!("mysql://u:sesame@db/jobs?sslmode={mode}");
            let Err(StoreError::Unsupported(why)) = place(&url) else { panic!("{mode}") };
            assert!(!why.contains("sesame") && why.contains("verify-full"), "{why}");
        }
    }

    #[test]
    fn a_url_names_one_host_and_a_database() {
        assert_eq!(place("mysql://u@localhost/jobs").unwrap().name, "localhost:3306/jobs");
        assert_eq!(place("mariadb://u:%40@h:1/j").unwrap().opts.pass(), Some("@"));
        for bad in [
            "mysql://u:sesame@localhost",
            "mysql://u:sesame@localhost/",
            "mysql://u:sesame@one,two/jobs",
            "mysql://u:sesame@h:99999/jobs",
            "mysql://u:sesame@h/jobs?pool_min=3",
            "mysql:jobs",
        ] {
            let Err(StoreError::Unsupported(why)) = place(bad) else { panic!("{bad}") };
            assert!(!why.contains("sesame"), "{why}");
        }
    }
}
