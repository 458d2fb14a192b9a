//! Which part of a new configuration a running node can apply.

use super::{Config, Doors, address};

impl Config {
    /// This one with everything of `newer` that can be taken while a node runs, and the keys that need a restart.
    #[must_use]
    pub fn taking(&self, newer: Self) -> (Self, Vec<&'static str>) {
        let kept = [
            ("store", self.store != newer.store),
            ("coordination", self.coordination != newer.coordination),
            ("prefix", self.prefix != newer.prefix),
            ("listen", self.listen != newer.listen),
            ("node", self.node != newer.node),
            ("lifeline", self.lifeline != newer.lifeline),
            ("containment", self.containment != newer.containment),
            ("log_lines", self.log.lines != newer.log.lines),
            ("log_bytes", self.log.bytes != newer.log.bytes),
            ("limits.max_connections", self.doors.max_connections != newer.doors.max_connections),
            ("tls", self.doors.tls != newer.doors.tls),
        ];
        let derived =
            newer.public_url == address::origin_of(newer.listen, newer.doors.tls.is_some());
        let public_url =
            match (self.listen != newer.listen || self.doors.tls != newer.doors.tls) && derived {
                true => self.public_url.clone(),
                false => newer.public_url.clone(),
            };
        let taken = Self {
            store: self.store.clone(),
            coordination: self.coordination.clone(),
            prefix: self.prefix.clone(),
            listen: self.listen,
            public_url,
            node: self.node.clone(),
            lifeline: self.lifeline.clone(),
            containment: self.containment,
            log: self.log,
            doors: Doors {
                max_connections: self.doors.max_connections,
                tls: self.doors.tls.clone(),
                ..newer.doors
            },
            ..newer
        };
        (taken, kept.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Overrides, examine};

    fn read(text: &str) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("soloist.toml");
        std::fs::write(&file, text).unwrap();
        let over = Overrides { own_name: Some("made-up".parse().unwrap()), ..Overrides::default() };
        examine(Some(&file), over, &|_| None).config.unwrap()
    }

    #[test]
    fn what_cannot_change_is_named_and_the_rest_is_taken() {
        let before = read("store = \"redis://h/0\"\nlisten = \"127.0.0.1:1\"\n");
        let text = "store = \"redis://h/1\"\nlisten = \"127.0.0.1:2\"\nnode = \"node-b\"\nlease_ttl = \"9s\"\n[[job]]\nname = \"a\"\ncommand = [\"true\"]\n";
        let (taken, restart) = before.taking(read(text));
        assert_eq!(restart, ["store", "listen", "node"]);
        assert_eq!((taken.store, taken.listen), (before.store, before.listen));
        assert_eq!(taken.public_url, "http://127.0.0.1:1", "it went with the address");
        assert_eq!(taken.node.as_str(), "made-up");
        assert_eq!((taken.timing.ttl.as_secs(), taken.jobs.len()), (9, 1));
    }

    #[test]
    fn a_public_address_that_was_written_down_is_taken() {
        // The embedded store would be another file in each directory.
        let same = "store = \"redis://h/0\"\nlisten = \"127.0.0.1:1\"\n";
        let newer = format!("public_url = \"https://jobs.example.org\"\n{same}");
        let (taken, restart) = read(same).taking(read(&newer));
        assert_eq!((taken.public_url.as_str(), restart.len()), ("https://jobs.example.org", 0));
    }
}
