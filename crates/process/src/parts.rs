//! What a build may leave out (the features in `Cargo.toml`), and what it says when it is asked for that.

/// A part of Soloist.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    here: bool,
    name: &'static str,
    feature: &'static str,
}

/// MySQL and MariaDB as a store.
pub const MYSQL: Part = Part { here: cfg!(feature = "mysql"), name: "MySQL", feature: "mysql" };
/// ZooKeeper as coordination.
pub const ZOOKEEPER: Part =
    Part { here: cfg!(feature = "zookeeper"), name: "ZooKeeper", feature: "zookeeper" };
/// Alerts by mail.
pub const MAIL: Part =
    Part { here: cfg!(feature = "mail"), name: "alerts by mail", feature: "mail" };
/// Single sign-on.
pub const OIDC: Part =
    Part { here: cfg!(feature = "oidc"), name: "single sign-on", feature: "oidc" };

impl Part {
    /// What to do if this build is without it.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        (!self.here).then(|| self.absent())
    }

    fn absent(self) -> String {
        let Self { name, feature, .. } = self;
        format!(
            "this build has no {name}: build with `cargo build --release --features {feature}`, or use the package"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_a_part_says_how_to_get_it() {
        let part = Part { here: false, name: "single sign-on", feature: "oidc" };
        let said = part.missing().unwrap();
        assert!(said.starts_with("this build has no single sign-on: build with"), "{said}");
        assert!(said.contains("--features oidc"), "{said}");
        assert_eq!(Part { here: true, ..part }.missing(), None);
    }
}
