//! Where a request comes from, and by which name it asks for us.
//!
//! A header may claim anything. It is trusted only as far as trusted proxies wrote it: from the right, up to the first address
//! that is none of theirs. This file decides nothing about who the client is.

use std::net::IpAddr;

use actix_web::http::header::{self, HeaderMap, HeaderName};

use soloist_config::{Config, Doors};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Whatever proxies add: a request with one of these came through one.
const FORWARDING: [HeaderName; 6] = [
    X_FORWARDED_FOR,
    header::FORWARDED,
    header::VIA,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-real-ip"),
];

/// The address of the client behind `peer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client(pub Option<IpAddr>);

impl Client {
    /// The client by the headers, as far as they are trusted.
    ///
    /// A proxy adds to one of the two headers and may hand the other on as it came. So when both are there and do not agree, the
    /// peer itself is the client: no other address is certain.
    #[must_use]
    pub fn of(peer: Option<IpAddr>, headers: &HeaderMap, doors: &Doors) -> Self {
        let Some(peer) = peer.map(|peer| peer.to_canonical()) else { return Self(None) };
        if !doors.trusts(peer) {
            return Self(Some(peer));
        }
        let walked = |name: HeaderName, parse: fn(&str) -> Option<IpAddr>| {
            let mut entries = Vec::new();
            for line in headers.get_all(&name) {
                entries.extend(list(line.to_str().unwrap_or("")));
            }
            (!entries.is_empty()).then(|| walk(peer, &entries, parse, doors))
        };
        let found = match (walked(X_FORWARDED_FOR, plain), walked(header::FORWARDED, element)) {
            (Some(one), Some(other)) if one != other => peer,
            (Some(one), _) | (None, Some(one)) => one,
            (None, None) => peer,
        };
        Self(Some(found))
    }

    /// Whether it is on this machine: the peer is, and neither a header nor the configuration says that another client may stand behind it;
    /// or proxies that are trusted say so.
    #[must_use]
    pub fn is_here(self, peer: Option<IpAddr>, headers: &HeaderMap, doors: &Doors) -> bool {
        let Some(peer) = peer.map(|peer| peer.to_canonical()) else { return false };
        let forwarded = FORWARDING.iter().any(|name| headers.contains_key(name));
        match forwarded {
            false => peer.is_loopback() && !doors.local_proxy,
            true => doors.trusts(peer) && self.0.is_some_and(|client| client.is_loopback()),
        }
    }
}

/// From the right: the first address that is not trusted; a malformed entry ends the walk before it.
fn walk(
    peer: IpAddr,
    entries: &[String],
    parse: fn(&str) -> Option<IpAddr>,
    doors: &Doors,
) -> IpAddr {
    let mut nearest = peer;
    for entry in entries.iter().rev() {
        if !doors.trusts(nearest) {
            break;
        }
        let Some(next) = parse(entry) else { break };
        nearest = next.to_canonical();
    }
    nearest
}

/// The entries of a list; a comma inside quotes separates nothing.
fn list(line: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    for c in line.chars() {
        match c {
            ',' if !quoted => {
                entries.push(String::new());
                continue;
            }
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = quoted && c == '\\' && !escaped;
        if let Some(last) = entries.last_mut() {
            last.push(c);
        }
    }
    entries.into_iter().map(|entry| entry.trim().to_owned()).collect()
}

/// An entry of `X-Forwarded-For`: an address, some proxies add its port.
fn plain(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(with_port) = text.parse::<std::net::SocketAddr>() {
        return Some(with_port.ip());
    }
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// An element of `Forwarded` (RFC 7239): `for=192.0.2.1;proto=https`.
fn element(text: &str) -> Option<IpAddr> {
    let mut named = text.split(';').filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
    });
    let value = named.next()?;
    if named.next().is_some() {
        return None;
    }
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    plain(bare)
}

/// Whether a request may ask for us by this name. A foreign page whose name was made to lead here (DNS rebinding) needs a name of its
/// own, so an address is always good.
#[must_use]
pub fn is_our_name(host: &str, config: &Config) -> bool {
    let host = host.trim().to_ascii_lowercase();
    let (name, _) = split_port(&host);
    let name = name.strip_suffix('.').unwrap_or(name);
    // Some clients leave the zone in (`[fe80::1%eth0]`): by which of their interfaces the address is reached.
    let zoned = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = zoned.and_then(|inside| Some(inside.split_once('%')?.0)).unwrap_or(name);
    if name == "localhost" || plain(address).is_some() {
        return true;
    }
    let public = config.public_url.split_once("://").map_or("", |(_, authority)| authority);
    let known = |allowed: &String| match allowed.strip_prefix("*.") {
        Some(below) => name.strip_suffix(below).is_some_and(|front| front.ends_with('.')),
        None => allowed == "*" || allowed == name,
    };
    split_port(public).0 == name || config.doors.allowed_hosts.iter().any(known)
}

fn split_port(authority: &str) -> (&str, &str) {
    match authority.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (authority, ""),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    fn client(trusted: &[&str], peer: &str, lines: &[(HeaderName, &str)]) -> String {
        let doors = Doors {
            trusted_proxies: trusted.iter().map(|net| net.parse().unwrap()).collect(),
            ..Doors::default()
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
        }
        Client::of(Some(peer.parse().unwrap()), &headers, &doors).0.unwrap().to_string()
    }

    #[test]
    fn a_header_is_believed_from_the_right_as_far_as_proxies_are_trusted() {
        let x = X_FORWARDED_FOR;
        let ours = ["10.0.0.0/8", "fd00::/8"];
        for (line, found) in [
            ("203.0.113.7", "203.0.113.7"),
            ("1.1.1.1, 203.0.113.7", "203.0.113.7"),
            ("1.1.1.1, 203.0.113.7, 10.0.0.9", "203.0.113.7"),
            ("10.0.0.8, 10.0.0.9", "10.0.0.8"),
            ("203.0.113.7, what, 10.0.0.9", "10.0.0.9"),
            ("203.0.113.7, ", "10.0.0.1"),
            ("unknown", "10.0.0.1"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("[2001:db8::7]:4711", "2001:db8::7"),
            ("2001:db8::7, fd00::1", "2001:db8::7"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
        ] {
            assert_eq!(client(&ours, "10.0.0.1", &[(x.clone(), line)]), found, "{line}");
        }
        let two = [(x.clone(), "1.1.1.1"), (x.clone(), "203.0.113.7")];
        assert_eq!(client(&ours, "10.0.0.1", &two), "203.0.113.7", "two lines are one list");
        let stranger = [(x, "1.1.1.1")];
        assert_eq!(client(&ours, "192.0.2.1", &stranger), "192.0.2.1", "not trusted");
        assert_eq!(client(&[], "127.0.0.1", &stranger), "127.0.0.1", "not even on this machine");
    }

    #[test]
    fn forwarded_is_read_as_its_standard_says() {
        for (line, found) in [
            ("for=203.0.113.7;proto=https", "203.0.113.7"),
            ("For=\"[2001:db8::7]:80\";by=10.0.0.1", "2001:db8::7"),
            ("for=1.1.1.1, for=203.0.113.7, for=10.0.0.2", "203.0.113.7"),
            ("for=1.1.1.1, for=_hidden", "10.0.0.1"),
            ("for=\"1.1.1.1, 2.2.2.2\"", "10.0.0.1"),
            ("for=1.1.1.1;for=2.2.2.2", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
        ] {
            let said = [(header::FORWARDED, line)];
            assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &said), found, "{line}");
        }
    }

    #[test]
    fn two_headers_that_do_not_agree_are_not_believed() {
        let said =
            |other: &'static str| [(X_FORWARDED_FOR, "203.0.113.7"), (header::FORWARDED, other)];
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &said("for=203.0.113.7")), "203.0.113.7");
        assert_eq!(client(&["10.0.0.0/8"], "10.0.0.1", &said("for=1.1.1.1")), "10.0.0.1");
    }

    #[test]
    fn this_machine_is_the_peer_itself_or_what_trusted_proxies_say() {
        let here = |trusted: &[&str], peer: &str, line: Option<(HeaderName, &str)>| {
            let doors = Doors {
                trusted_proxies: trusted.iter().map(|net| net.parse().unwrap()).collect(),
                ..Doors::default()
            };
            let mut headers = HeaderMap::new();
            if let Some((name, value)) = line {
                headers.append(name, HeaderValue::from_str(value).unwrap());
            }
            let peer = Some(peer.parse().unwrap());
            Client::of(peer, &headers, &doors).is_here(peer, &headers, &doors)
        };
        assert!(here(&[], "127.0.0.1", None) && here(&[], "::1", None));
        assert!(!here(&[], "192.0.2.1", None));
        for name in FORWARDING {
            assert!(!here(&[], "127.0.0.1", Some((name, "127.0.0.1"))), "an unknown proxy here");
        }
        let doors = Doors { local_proxy: true, ..Doors::default() };
        let peer = Some("127.0.0.1".parse().unwrap());
        let silent = HeaderMap::new();
        assert!(!Client::of(peer, &silent, &doors).is_here(peer, &silent, &doors));
        let proxied = |client| Some((X_FORWARDED_FOR, client));
        assert!(here(&["127.0.0.0/8"], "127.0.0.1", proxied("127.0.0.1")));
        assert!(!here(&["127.0.0.0/8"], "127.0.0.1", proxied("203.0.113.7")));
        assert!(!here(&["127.0.0.0/8"], "192.0.2.1", proxied("127.0.0.1")));
    }

    #[test]
    fn a_name_is_ours_if_it_is_public_or_allowed_and_every_address_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("soloist.toml");
        let text = "public_url = \"https://jobs.example.org:8443\"\nallowed_hosts = [\"soloist\", \"*.lan\"]";
        std::fs::write(&file, text).unwrap();
        let config = soloist_config::examine(Some(&file), Default::default(), &|_| None).config;
        let config = config.unwrap();
        for ours in [
            "jobs.example.org",
            "JOBS.example.org:8443",
            "jobs.example.org.",
            "127.0.0.1:8080",
            "[::1]:80",
            "[fe80::1%eth0]",
            "[fe80::1%25eth0]:8080",
            "203.0.113.7",
            "localhost:1",
            "soloist:8080",
            "a.lan",
            "b.a.lan:9",
        ] {
            assert!(is_our_name(ours, &config), "{ours}");
        }
        for foreign in [
            "evil.example",
            "jobs.example.org.evil.example",
            "lan",
            "evillan",
            "",
            "localhost.evil.example",
            "1.2.3",
            "[evil.example%25eth0]",
            "fe80::1%evil.example",
        ] {
            assert!(!is_our_name(foreign, &config), "{foreign}");
        }
    }
}
