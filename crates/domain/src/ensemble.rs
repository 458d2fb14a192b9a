//! The URL of a ZooKeeper with the leases of a store; and how it travels with the URL of the store to every process that opens that, guards
//! too.
//!
//! Text only, for the rooms that configure a store and for the one that opens it. No message repeats the URL: it may hold a password.

const SCHEME: &str = "zookeeper://";
const PORT: u16 = 2181;

/// The address of a store with its coordination: the two URLs, with a blank between them. No URL has one.
#[must_use]
pub fn joined(store: &str, coordination: Option<&str>) -> String {
    coordination.map_or_else(|| store.to_owned(), |url| format!("{store} {url}"))
}

/// The way back.
#[must_use]
pub fn split(address: &str) -> (&str, Option<&str>) {
    match address.split_once(' ') {
        Some((store, url)) if url.starts_with(SCHEME) => (store, Some(url)),
        _ => (address, None),
    }
}

/// Where an ensemble is, and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ensemble {
    /// `HOST:PORT` of each server.
    pub servers: Vec<String>,
    /// Below it is everything; `/` and at least one name.
    pub chroot: String,
    /// `USER:PASSWORD`.
    pub login: Option<String>,
}

impl Ensemble {
    /// Of `zookeeper://[USER:PASSWORD@]HOST[:PORT],.../CHROOT`.
    ///
    /// # Errors
    /// What is wrong, in a sentence with the remedy.
    pub fn read(url: &str) -> Result<Self, String> {
        const KIND: &str = "use zookeeper://HOST1:2181,HOST2:2181,HOST3:2181/CHROOT";
        let wrong = |what: &str| Err(format!("{what}: {KIND}"));
        let Some(rest) = url.strip_prefix(SCHEME) else {
            return wrong("is no URL of ZooKeeper");
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        if login.is_some_and(|login| !login.contains(':') || login.starts_with(':')) {
            return wrong("has a login that is not USER:PASSWORD");
        }
        let path = path.trim_end_matches('/');
        let fits = |name: &str| {
            let letters = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !matches!(name, "" | "." | ".." | "zookeeper") && name.bytes().all(letters)
        };
        if !path.split('/').all(fits) {
            return wrong("names no chroot of letters, digits, '.', '_' and '-'");
        }
        let server = |host: &str| {
            let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
            let port = if port.is_empty() { Some(PORT) } else { port.parse().ok() };
            let good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            let named = !name.is_empty() && name.bytes().all(good);
            port.filter(|_| named).map(|port| format!("{name}:{port}"))
        };
        let Some(servers) = hosts.split(',').map(server).collect() else {
            return wrong("names no host, or a port that is not a number");
        };
        Ok(Self { servers, chroot: format!("/{path}"), login: login.map(ToOwned::to_owned) })
    }

    /// For messages; never a password.
    pub fn name(&self) -> String {
        format!("{}{}", self.servers.join(","), self.chroot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ensemble_has_hosts_and_a_chroot_of_its_own() {
        let place = Ensemble::read("zookeeper://li:se:cret@zoo1,zoo2:2182/apps/soloist/").unwrap();
        assert_eq!(place.servers, ["zoo1:2181", "zoo2:2182"]);
        assert_eq!(place.login.as_deref(), Some("li:se:cret"));
        assert_eq!(place.name(), "zoo1:2181,zoo2:2182/apps/soloist");
        for bad in [
            "zk://zoo1/soloist",
            "zookeeper://zoo1",
            "zookeeper://zoo1/",
            "zookeeper:///soloist",
            "zookeeper://zoo1:x/soloist",
            "zookeeper://zoo1,/soloist",
            "zookeeper://li@zoo1/soloist",
            "zookeeper://zoo1/a//b",
            "zookeeper://zoo1/zookeeper",
        ] {
            let why = Ensemble::read(bad).unwrap_err();
            assert!(why.contains("use zookeeper://"), "{bad}: {why}");
        }
    }

    #[test]
    fn the_two_urls_are_told_apart_again() {
        let both = joined("postgres://h/d", Some("zookeeper://z/c"));
        assert_eq!(split(&both), ("postgres://h/d", Some("zookeeper://z/c")));
        assert_eq!(split("sqlite:a b.db"), ("sqlite:a b.db", None));
        assert_eq!(joined("redis://h", None), "redis://h");
    }
}
