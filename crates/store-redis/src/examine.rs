//! What `soloist doctor` looks at in a Redis: version, persistence, eviction, memory, replication.

use super::RedisStore;
use super::link::{Link, Repeat};
use super::server::{Server, Servers};
use soloist_store::Result;
use soloist_store::examine::{Finding, Verdict};

impl RedisStore {
    /// As [`Store::examine`](soloist_store::Store::examine), without what concerns time.
    ///
    /// # Errors
    /// As there.
    pub(super) async fn findings(&self) -> Result<Vec<Finding>> {
        let servers = Servers::read(&self.shared).await?;
        let about = servers.describe(&self.shared).await?;
        let mut findings = vec![match servers.check(&self.shared) {
            Ok(()) => Finding::ok("store", about.what.clone()),
            Err(error) => Finding::bad("store", about.what.clone(), error.to_string()),
        }];
        // What it warns of beside persistence, which stands above; each says its own remedy.
        let others = about.warnings.into_iter().filter(|warning| !warning.contains("appendonly"));
        findings.extend(others.map(|what| Finding {
            check: "servers",
            verdict: Verdict::Warn,
            what,
            remedy: None,
        }));
        let links = self.shared.rest.links().await?;
        for server in &servers.each {
            let mut of_one = vec![persistence(server), eviction(server)];
            of_one.extend(memory(server));
            let link = links.iter().find(|link| link.address() == server.address());
            let least = match link {
                Some(link) => setting(link, "min-replicas-to-write").await,
                None => None,
            };
            of_one.push(replication(server, least));
            if servers.each.len() > 1 {
                for finding in &mut of_one {
                    finding.what = format!("{}: {}", server.address(), finding.what);
                }
            }
            findings.extend(of_one);
        }
        Ok(findings)
    }
}

/// A setting; `None` when the server does not tell (an ACL, a hosted service).
async fn setting(link: &Link, name: &str) -> Option<u64> {
    let mut ask = ::redis::cmd("CONFIG");
    ask.arg("GET").arg(name);
    let answer: std::collections::HashMap<String, String> =
        link.command(&ask, Repeat::Harmless).await.ok()?;
    answer.into_values().next()?.parse().ok()
}

fn persistence(server: &Server) -> Finding {
    let check = "persistence";
    if server.get("loading") == "1" {
        return Finding::warn(check, "the server is still loading its data", "wait");
    }
    if server.get("aof_enabled") != "1" {
        return Finding::warn(
            check,
            "not every change is written to disk: a restart may forget who wants what, and holds every new start back for one lease",
            "redis-cli CONFIG SET appendonly yes, and `appendonly yes` in redis.conf",
        );
    }
    if server.get("aof_last_write_status") != "ok"
        || server.get("aof_last_bgrewrite_status") == "err"
    {
        return Finding::bad(
            check,
            "the append-only file could not be written",
            "free disk space, and look at the log of Redis",
        );
    }
    Finding::ok(check, "append-only file")
}

fn eviction(server: &Server) -> Finding {
    let policy = server.eviction();
    if policy == "noeviction" {
        return Finding::ok("eviction", "noeviction: no lease is thrown away");
    }
    Finding::bad(
        "eviction",
        format!("leases may be thrown away (maxmemory-policy {policy})"),
        "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf",
    )
}

fn memory(server: &Server) -> Option<Finding> {
    let number = |field: &str| server.get(field).parse::<u64>().unwrap_or(0);
    let (used, most) = (number("used_memory"), number("maxmemory"));
    if most == 0 {
        return None;
    }
    let percent = used.saturating_mul(100) / most;
    let what = format!("{percent} % of maxmemory is in use");
    Some(match percent {
        90.. => Finding::bad(
            "memory",
            what,
            "raise maxmemory, or use a Redis of its own: a full one refuses every write, and jobs stop",
        ),
        75.. => Finding::warn("memory", what, "raise maxmemory before it is full"),
        _ => Finding::ok("memory", what),
    })
}

fn replication(server: &Server, least: Option<u64>) -> Finding {
    let check = "replication";
    let replicas: u64 = server.get("connected_slaves").parse().unwrap_or(0);
    let good = (0..replicas).filter(|n| server.get(&format!("slave{n}")).contains("state=online"));
    let online = good.count();
    let what = format!("{replicas} replicas, {online} of them online");
    match (replicas, least) {
        (0, _) => Finding::ok(
            check,
            "no replica: the store is one machine, and its outage stops every job until it is back",
        ),
        (_, None) => Finding::warn(
            check,
            format!("{what}; min-replicas-to-write cannot be read"),
            "make sure that it is 1 or more: otherwise a master that is cut off goes on granting leases",
        ),
        (_, Some(0)) => Finding::warn(
            check,
            format!("{what}; min-replicas-to-write is 0"),
            "redis-cli CONFIG SET min-replicas-to-write 1, with a min-replicas-max-lag below the lease: otherwise a master that is cut off goes on granting leases",
        ),
        (_, Some(least)) if (online as u64) < least => Finding::bad(
            check,
            format!("{what}; min-replicas-to-write is {least}"),
            "bring the replicas back: until then every write is refused",
        ),
        (_, Some(least)) => Finding::ok(check, format!("{what}; min-replicas-to-write {least}")),
    }
}
