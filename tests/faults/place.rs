//! The names of all stores under test.

use crate::sql::Kind;

/// Which store, and whether its leases are in ZooKeeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) base: Base,
    pub(crate) zookeeper: bool,
}

/// What holds the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// One server, or one with a replica.
    Redis,
    /// Three masters of a Redis Cluster, each with a replica.
    Cluster,
    /// One file for all nodes.
    Sqlite,
    Sql(Kind),
}

impl Default for Place {
    fn default() -> Self {
        Self::REDIS
    }
}

impl Place {
    pub(crate) const REDIS: Self = Self::of(Base::Redis);
    const POSTGRES: Self = Self::of(Base::Sql(Kind::Postgres));
    const MARIADB: Self = Self::of(Base::Sql(Kind::MariaDb));

    pub(crate) const ALL: [Self; 8] = [
        Self::REDIS,
        Self::of(Base::Cluster),
        Self::of(Base::Sqlite),
        Self::POSTGRES,
        Self::MARIADB,
        Self::POSTGRES.and_zookeeper(),
        Self::MARIADB.and_zookeeper(),
        Self::REDIS.and_zookeeper(),
    ];
    /// Those of which a round is run with everything else, beside the rounds on Redis.
    pub(crate) const SHORT: [Self; 3] =
        [Self::POSTGRES, Self::MARIADB, Self::POSTGRES.and_zookeeper()];

    const fn of(base: Base) -> Self {
        Self { base, zookeeper: false }
    }

    const fn and_zookeeper(self) -> Self {
        Self { zookeeper: true, ..self }
    }

    /// The word on the command line.
    pub(crate) fn word(self) -> String {
        let store = match self.base {
            Base::Redis => "redis",
            Base::Cluster => "cluster",
            Base::Sqlite => "sqlite",
            Base::Sql(Kind::Postgres) => "postgres",
            Base::Sql(Kind::MariaDb) => "mariadb",
        };
        let beside = if self.zookeeper { "+zookeeper" } else { "" };
        format!("{store}{beside}")
    }

    pub(crate) fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|place| place.word() == word)
    }
}
