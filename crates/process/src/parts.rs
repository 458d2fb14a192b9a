//! What a build may leave out (the features in `Cargo.toml`), and the message when it is requested.

/// A part of Soloist.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    here: bool,
    name: &'static str,
}

/// MySQL and MariaDB as a store.
pub const MYSQL: Part = Part { here: cfg!(feature = "mysql"), name: "MySQL" };
/// ZooKeeper as coordination.
pub const ZOOKEEPER: Part = Part { here: cfg!(feature = "zookeeper"), name: "ZooKeeper" };
/// Alerts by mail.
pub const MAIL: Part = Part { here: cfg!(feature = "mail"), name: "alerts by mail" };
/// Single sign-on.
pub const OIDC: Part = Part { here: cfg!(feature = "oidc"), name: "single sign-on" };

impl Part {
    /// What to do if this build is without it. The remedy is the same for each part: of two remedies the second would take back
    /// what the first one gave.
    #[must_use]
    pub fn missing(self) -> Option<String> {
        let Self { here, name } = self;
        (!here).then(|| {
            format!(
                "this build has no {name}: build with `cargo build --release --features full`, or use the package"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_parts_says_one_way_to_get_all_of_them() {
        for part in [MYSQL, ZOOKEEPER, MAIL, OIDC] {
            let said = Part { here: false, ..part }.missing().unwrap();
            assert!(said.starts_with(&format!("this build has no {}: ", part.name)), "{said}");
            assert!(said.contains("--features full`"), "{said}");
            assert_eq!(Part { here: true, ..part }.missing(), None);
        }
    }
}
