//! The part of the configuration about strangers: limits of connections, trusted proxies, host names, certificates.
//!
//! It reads and checks the values; `web` decides what they mean for a request.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use toml::de::DeValue;

use super::document::{Field, Section};
use super::problem::Place;
use super::{Environment, address, tls};

const LIMITS: &str = "write limits = { max_connections = 10000, body_idle = \"10s\" }";
const PROXIES: &str = "write trusted_proxies = [\"10.0.0.0/8\"]";
const LOCAL_PROXY: &str = "write local_proxy = true";
const HOSTS: &str = "write allowed_hosts = [\"jobs.example.org\"]";
const ORIGINS: &str = "write allowed_origins = [\"https://wall.example.org\"]";
const TLS: &str = "write tls = { cert = \"cert.pem\", key = \"key.pem\" }";

/// Caps, times, and who is trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doors {
    /// Connections at once; `None`: as many as there are descriptors for, within reason.
    pub max_connections: Option<usize>,
    /// Connections at once from one address; `None`: 200, and any number from this machine.
    pub connections_per_address: Option<usize>,
    /// Leases of own names that one account may have at once.
    pub leases_per_account: usize,
    /// A body of a request may pause this long.
    pub body_idle: Duration,
    /// A body of a request must be there after this long.
    pub body_total: Duration,
    /// Who is trusted about the address of a client.
    pub trusted_proxies: Vec<IpNet>,
    /// A proxy on this machine hands on requests of others: an address of this machine says nothing.
    pub local_proxy: bool,
    /// Names by which requests may address this node, besides that of `public_url`; `*.example.org` is any below it, `*` any.
    pub allowed_hosts: Vec<String>,
    /// Origins, besides that of `public_url`, whose pages may use the API and `/live` with a token, as browsers send them.
    pub allowed_origins: Vec<String>,
    /// The certificate and its key; `None`: no TLS here.
    pub tls: Option<TlsFiles>,
}

/// Two PEM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by its chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Default for Doors {
    fn default() -> Self {
        Self {
            max_connections: None,
            connections_per_address: None,
            leases_per_account: 10_000,
            body_idle: Duration::from_secs(10),
            body_total: Duration::from_secs(60),
            trusted_proxies: Vec::new(),
            local_proxy: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            tls: None,
        }
    }
}

impl Doors {
    /// Whether what this address says about the address of a client is trusted.
    #[must_use]
    pub fn trusts(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies.iter().any(|network| network.contains(&address))
    }
}

/// Reads `limits`, `trusted_proxies`, `local_proxy`, `allowed_hosts`, `allowed_origins` and `tls`; notes what is wrong.
///
/// A command that only `looks` leaves the files of `tls` unread.
pub(super) fn read(
    root: &Section<'_>,
    env: Environment<'_>,
    base: &Path,
    looks: bool,
) -> Option<Doors> {
    let mut doors = Doors::default();
    let (mut limits, mut tls, mut flag) = (true, true, true);
    let whole = given(root, env, "limits", false, |field| limits = read_limits(field, &mut doors));
    let listed = [
        given(root, env, "trusted_proxies", true, |field| {
            doors.trusted_proxies = each(field, PROXIES, network);
        }),
        given(root, env, "local_proxy", false, |field| match field.flag(LOCAL_PROXY) {
            Some(said) => doors.local_proxy = said,
            None => flag = false,
        }),
        given(root, env, "allowed_hosts", true, |field| {
            doors.allowed_hosts = each(field, HOSTS, host);
        }),
        given(root, env, "allowed_origins", true, |field| {
            doors.allowed_origins = each(field, ORIGINS, front_end);
        }),
    ];
    let there = given(root, env, "tls", false, |field| match read_tls(field, base, looks) {
        Some(files) => doors.tls = Some(files),
        None => tls = false,
    });
    (whole && limits && flag && there && tls && listed.into_iter().all(|ok| ok)).then_some(doors)
}

/// Hands the value to `read`, of the environment (as TOML; a list also as names with commas between) or of the file.
pub(super) fn given(
    root: &Section<'_>,
    env: Environment<'_>,
    key: &'static str,
    list: bool,
    read: impl FnOnce(&Field<'_>),
) -> bool {
    let report = root.report;
    let variable = format!("SOLOIST_{}", key.to_ascii_uppercase());
    let Some(text) = env(&variable) else {
        if let Some(field) = root.get(key) {
            read(&field);
        }
        return true;
    };
    let text = match list && !text.trim_start().starts_with('[') {
        true => {
            let names = text.split(',').map(|name| format!("\"{}\"", name.trim()));
            format!("[{}]", names.collect::<Vec<_>>().join(","))
        }
        false => text,
    };
    match DeValue::parse(&text) {
        Ok(value) => {
            let place = Place::Env(variable);
            read(&Field { report, key: key.to_owned(), place, value: value.get_ref() });
            true
        }
        Err(error) => {
            let why = format!("not valid TOML: {}", error.message());
            report.wrong(Place::Env(variable), key, why);
            false
        }
    }
}

fn read_limits(field: &Field<'_>, doors: &mut Doors) -> bool {
    let Some(table) = field.table(LIMITS) else { return false };
    table.only(&[
        "max_connections",
        "connections_per_address",
        "leases_per_account",
        "body_idle",
        "body_total",
    ]);
    let mut whole = true;
    if let Some(field) = table.get("leases_per_account") {
        match field.integer::<u32>(1, "use a whole number from 1") {
            Some(number) => doors.leases_per_account = number as usize,
            None => whole = false,
        }
    }
    let caps = [
        ("max_connections", &mut doors.max_connections),
        ("connections_per_address", &mut doors.connections_per_address),
    ];
    for (key, cap) in caps {
        let Some(field) = table.get(key) else { continue };
        match field.integer::<u32>(1, "use a whole number from 1") {
            Some(number) => *cap = Some(number as usize),
            None => whole = false,
        }
    }
    let times = [("body_idle", &mut doors.body_idle), ("body_total", &mut doors.body_total)];
    for (key, time) in times {
        let Some(field) = table.get(key) else { continue };
        match field.duration() {
            Some(zero) if zero.is_zero() => {
                field.wrong("must be more than zero: use for example \"10s\"");
                whole = false;
            }
            Some(given) => *time = given,
            None => whole = false,
        }
    }
    whole
}

fn each<T>(field: &Field<'_>, remedy: &str, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
    let mut good = Vec::new();
    for (item, text) in field.texts(remedy).unwrap_or_default() {
        match parse(text) {
            Ok(value) => good.push(value),
            Err(why) => item.wrong(why),
        }
    }
    good
}

/// A network, or one address.
fn network(text: &str) -> Result<IpNet, String> {
    let parsed = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let net: IpNet = parsed.map_err(|_| {
        format!(
            "{text:?} is not an address or network: use for example \"10.0.0.0/8\" or \"127.0.0.1\""
        )
    })?;
    if net.prefix_len() == 0 {
        return Err(format!(
            "{text:?} trusts everybody, so anybody could claim any address: name the networks of your proxies"
        ));
    }
    Ok(net.trunc())
}

fn host(text: &str) -> Result<String, String> {
    let lower = text.to_ascii_lowercase();
    let name = lower.strip_prefix("*.").unwrap_or(&lower);
    let good = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    match good || lower == "*" {
        true => Ok(lower),
        false => Err(format!(
            "{text:?} is not a host name: use for example \"jobs.example.org\", without scheme and port"
        )),
    }
}

/// An origin whose pages are trusted to be no attack. A pattern would trust every owner of a name that fits.
fn front_end(text: &str) -> Result<String, String> {
    match text.contains('*') {
        true => Err(format!(
            "{text:?} would let in more than one origin: name each, for example \"https://wall.example.org\""
        )),
        false => address::origin(text),
    }
}

fn read_tls(field: &Field<'_>, base: &Path, looks: bool) -> Option<TlsFiles> {
    let table = field.table(TLS)?;
    table.only(&["cert", "key"]);
    let base = match field.place {
        Place::File { .. } => base,
        _ => Path::new("."),
    };
    let path = |key: &str| match table.get(key) {
        Some(field) => Some(address::absolute(base, Path::new(field.text(TLS)?))),
        None => {
            table.missing(key, TLS);
            None
        }
    };
    let (cert, key) = (path("cert"), path("key"));
    let files = TlsFiles { cert: cert?, key: key? };
    if looks {
        return Some(files);
    }
    match tls::read(&files) {
        Ok(_) => Some(files),
        Err(why) => {
            field.wrong(why);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_address_or_many_but_never_everybody() {
        assert_eq!(network("10.1.2.3/8").unwrap().to_string(), "10.0.0.0/8");
        assert_eq!(network("::1").unwrap().to_string(), "::1/128");
        for wrong in ["0.0.0.0/0", "::/0", "10.0.0.0/33", "proxy.example.org", ""] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
        let doors =
            Doors { trusted_proxies: vec![network("10.0.0.0/8").unwrap()], ..Doors::default() };
        assert!(doors.trusts("10.9.9.9".parse().unwrap()));
        assert!(doors.trusts("::ffff:10.9.9.9".parse().unwrap()), "the same in IPv6");
        assert!(!doors.trusts("11.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_front_end_is_one_origin_and_no_pattern() {
        assert_eq!(front_end("HTTPS://Wall.example.org:443").unwrap(), "https://wall.example.org");
        assert_eq!(front_end("http://127.0.0.1:8000").unwrap(), "http://127.0.0.1:8000");
        for wrong in
            ["*", "https://*.example.org", "https://a/b", "a.example.org", "null", "file://", ""]
        {
            assert!(front_end(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_host_is_a_name_without_scheme_and_port() {
        assert_eq!(host("Jobs.Example.org").unwrap(), "jobs.example.org");
        assert_eq!(host("*.example.org").unwrap(), "*.example.org");
        assert_eq!(host("*").unwrap(), "*");
        for wrong in ["https://a", "a:80", "", "*.", "a b"] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }
}
