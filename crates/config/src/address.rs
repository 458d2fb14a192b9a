//! Addresses in a configuration: where to listen, the origin of browsers, the URL of the store, this node's name.
//!
//! Each function takes text and gives the checked value or a sentence with the remedy. No message repeats a store URL:
//! it may hold a password.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use soloist_domain::name::NodeName;

/// `ADDRESS:PORT`, literal: a name could change its meaning between the check and the start.
pub(super) fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not an address with a port: use for example \"127.0.0.1:8080\" or \"0.0.0.0:8080\"")
    })
}

/// The origin (RFC 6454) as browsers send it: lower case, no default port, no path.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let wrong = |what: &str| {
        Err(format!(
            "{text:?} is not an origin, {what}: use for example \"https://jobs.example.org\""
        ))
    };
    let lower = text.to_ascii_lowercase();
    let (scheme, rest) = match lower.split_once("://") {
        Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
        _ => return wrong("it must begin with http:// or https://"),
    };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.contains(['/', '?', '#']) {
        return wrong("it must not have a path, query or fragment");
    }
    if authority.contains('@') {
        return wrong("it must not have a user name");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let good_host = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
        }
    };
    if !good_host {
        return wrong("its host is not valid");
    }
    match (scheme, port) {
        (_, None) | ("http", Some("80")) | ("https", Some("443")) => {
            Ok(format!("{scheme}://{host}"))
        }
        (_, Some(port)) if port.parse::<u16>().is_ok() => Ok(format!("{scheme}://{host}:{port}")),
        _ => wrong("its port is not a number up to 65535"),
    }
}

/// The origin that goes with an address that has no `public_url`.
pub(super) fn origin_of(listen: SocketAddr, tls: bool) -> String {
    let (scheme, usual) = if tls { ("https", ":443") } else { ("http", ":80") };
    match listen {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => {
            format!("{scheme}://127.0.0.1:{}", v4.port())
        }
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => format!("{scheme}://[::1]:{}", v6.port()),
        other => {
            let url = format!("{scheme}://{other}");
            url.strip_suffix(usual).map(ToOwned::to_owned).unwrap_or(url)
        }
    }
}

/// A store URL with a relative SQLite path resolved against `base`.
pub(super) fn store(text: &str, base: &Path) -> Result<String, String> {
    const KINDS: &str = "use sqlite:PATH, redis://HOST:PORT/DB, rediss://HOST:PORT/DB, redis+sentinel://HOST1,HOST2,HOST3/MASTERNAME, redis+cluster://HOST1,HOST2,HOST3/, postgres://HOST:PORT/DATABASE or mysql://HOST:PORT/DATABASE";
    let Some((scheme, rest)) = text.split_once(':') else {
        return Err(format!("is not a store URL: {KINDS}"));
    };
    match scheme {
        "sqlite" => {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if path.is_empty() || path.starts_with(':') || path.ends_with('/') {
                return Err(
                    "needs the path of a file: use for example sqlite:data/soloist.db".to_owned()
                );
            }
            Ok(format!("sqlite:{}", absolute(base, Path::new(path)).display()))
        }
        "redis" | "rediss" => {
            let authority = rest.strip_prefix("//").and_then(|rest| rest.split('/').next());
            let host = authority.map(|authority| authority.rsplit('@').next().unwrap_or(authority));
            match host {
                Some(host) if !host.is_empty() && !host.starts_with(':') => Ok(text.to_owned()),
                _ => Err(format!("names no host: use for example {scheme}://127.0.0.1:6379/0")),
            }
        }
        "postgres" | "postgresql" | "mysql" | "mariadb" => {
            let port = if scheme.starts_with("postgres") { 5432 } else { 3306 };
            let place = rest.strip_prefix("//").map(|rest| rest.split('?').next().unwrap_or(rest));
            let (authority, database) =
                place.and_then(|place| place.split_once('/')).unwrap_or_default();
            let host = authority.rsplit('@').next().unwrap_or(authority);
            if host.is_empty() || host.starts_with(':') || database.is_empty() {
                return Err(format!(
                    "names no host, or no database: use for example {scheme}://soloist@127.0.0.1:{port}/soloist"
                ));
            }
            Ok(text.to_owned())
        }
        "redis+sentinel" | "rediss+sentinel" => {
            let place = rest.split('?').next().unwrap_or(rest).strip_prefix("//");
            match place.and_then(|place| place.split_once('/')) {
                Some((authority, name))
                    if !name.is_empty()
                        && !name.starts_with('/')
                        && !authority.is_empty()
                        && !authority.ends_with('@') =>
                {
                    Ok(text.to_owned())
                }
                _ => Err(format!(
                    "names no sentinel or no master: use for example {scheme}://10.0.0.1:26379,10.0.0.2:26379,10.0.0.3:26379/mymaster/0"
                )),
            }
        }
        "redis+cluster" | "rediss+cluster" => {
            let place =
                rest.strip_prefix("//").map(|rest| rest.split_once('/').unwrap_or((rest, "")));
            match place {
                Some((authority, "" | "0"))
                    if !authority.is_empty()
                        && !authority.ends_with('@')
                        && !authority.contains('?') =>
                {
                    Ok(text.to_owned())
                }
                _ => Err(format!(
                    "names no member of a cluster, or a database: use for example {scheme}://10.0.0.1:6379,10.0.0.2:6379,10.0.0.3:6379/"
                )),
            }
        }
        _ => Err(format!("unknown kind of store {scheme:?}: {KINDS}")),
    }
}

/// `path` made absolute against `base`, without asking the file system; `.` and what it adds are left out.
pub(super) fn absolute(base: &Path, path: &Path) -> PathBuf {
    let joined = base.join(path);
    std::path::absolute(&joined).unwrap_or(joined).components().collect()
}

/// The host's name made fit for a node, and four random letters: two nodes on one host must differ.
#[must_use]
pub fn own_node_name() -> Option<NodeName> {
    let host = nix::unistd::gethostname().unwrap_or_default();
    let letters: String = (0..4).map(|_| char::from(rand::random_range(b'a'..=b'z'))).collect();
    NodeName::new(&format!("{}-{letters}", sanitised(&host.to_string_lossy()))).ok()
}

fn sanitised(host: &str) -> String {
    let mapped: String = host
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .collect();
    let tidy: String = mapped.trim_matches(['.', '_', '-']).chars().take(59).collect();
    if tidy.is_empty() { "node".to_owned() } else { tidy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for (given, sent) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("HTTPS://Jobs.Example.org:443/", "https://jobs.example.org"),
            ("http://[::1]:80", "http://[::1]"),
        ] {
            assert_eq!(origin(given).as_deref(), Ok(sent));
        }
        for bad in [
            "jobs.example.org",
            "ftp://x",
            "http://",
            "http://x/y",
            "http://u@x",
            "http://x:99999",
            "http://a b",
        ] {
            assert!(origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn any_host_name_makes_a_node_name() {
        for host in ["Web_01.example.ORG", "-.-", "机器", &"x".repeat(200)] {
            assert!(NodeName::new(&format!("{}-abcd", sanitised(host))).is_ok(), "{host}");
        }
        assert!(own_node_name().is_some());
    }

    #[test]
    fn a_url_of_sentinels_names_them_and_the_master() {
        for url in [
            "redis+sentinel://u:p@a:26379,b,c/jobs/0",
            "rediss+sentinel://a/jobs?sentinel_password=p",
        ] {
            assert_eq!(store(url, Path::new("/")).as_deref(), Ok(url));
        }
        for url in ["redis+sentinel://a,b,c", "redis+sentinel:///jobs", "redis+sentinel://a/"] {
            assert!(store(url, Path::new("/")).is_err(), "{url}");
        }
    }

    #[test]
    fn no_message_about_a_store_repeats_its_password() {
        for url in [
            "redis+cluster://:sesame@",
            "redis+cluster://:sesame@h/3",
            "redis+sentinel://:sesame@h",
            "redis+sentinel://:sesame@/m",
            "mysql://u:sesame@h",
            "oracle://u:sesame@h/d",
            "redis://u:sesame@",
            "sesame",
        ] {
            let message = store(url, Path::new("/")).expect_err(url);
            assert!(!message.contains("sesame"), "{message}");
        }
    }
}
