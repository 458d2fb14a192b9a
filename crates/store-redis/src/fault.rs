//! What an error of Redis means to a caller, and what a person can do about it.
//!
//! A server that hangs up says why before it does, but a client that writes at once may only see that the connection
//! broke. So a connection that broke while it was made is followed by one that only listens.

use std::time::Duration;

use ::redis::{ErrorKind, RedisError, Value};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::route::Master;
use soloist_store::StoreError;

/// How long a server that hung up may take to say why.
const LAST_WORD: Duration = Duration::from_millis(200);

/// What happened, and what to do about it.
pub(super) fn in_words(error: &RedisError, address: &str) -> StoreError {
    let detail = error.detail().unwrap_or_default();
    if let Some(command) = unknown_command(detail) {
        return not_known(address, &command);
    }
    let what = match error.code() {
        Some("READONLY") => "is a read-only replica: use the address of the master".to_owned(),
        Some("LOADING") => "is still loading its data".to_owned(),
        Some("MASTERDOWN") => "is a replica that lost its master".to_owned(),
        Some("OOM") => "is out of memory: raise maxmemory".to_owned(),
        Some("NOREPLICAS") => "refuses writes, because too few replicas are connected".to_owned(),
        Some("MISCONF") => {
            "refuses writes, because it cannot save to disk: free space there and look into its log"
                .to_owned()
        }
        Some("CLUSTERDOWN") => {
            "says that the cluster is down: look at `redis-cli CLUSTER INFO`; with `cluster-require-full-coverage no` only the jobs of a lost master stop"
                .to_owned()
        }
        Some("MOVED" | "ASK" | "TRYAGAIN") => {
            "has handed this part of the cluster to another member, or is about to".to_owned()
        }
        Some("CROSSSLOT") => "is given keys of several slots in one call".to_owned(),
        Some("BUSY") => "is busy with a script: look at redis-cli SLOWLOG GET".to_owned(),
        Some(code @ ("NOAUTH" | "WRONGPASS")) => {
            format!("wants another user or password ({code}): correct them in the store URL")
        }
        Some("NOPERM") => not_permitted(detail),
        Some("ERR") if detail.contains("can't run this command") => {
            not_permitted("a command inside of a script")
        }
        Some("DENIED") => {
            "is in protected mode and refuses connections from other machines (DENIED): give it a password with `requirepass`, and write that into the store URL"
                .to_owned()
        }
        Some("WRONGTYPE") => {
            return StoreError::Unsupported(format!(
                "Redis at {address} has keys of another program under the names of Soloist's: use another database (the number at the end of the store URL) or another `prefix`"
            ));
        }
        Some("ERR") if detail.contains("max number of clients") => {
            "has no connection left: raise `maxclients` in redis.conf, or close others".to_owned()
        }
        Some("ERR") if detail.contains("DB index is out of range") => {
            return StoreError::Unsupported(format!(
                "Redis at {address} has no database of that number: use a smaller one at the end of the store URL, or raise `databases` in redis.conf"
            ));
        }
        Some("ERR") => return StoreError::Corrupt(format!("Redis at {address}: {error}")),
        Some(_) => format!("failed: {error}"),
        None => unheard(error),
    };
    StoreError::Unavailable(format!("Redis at {address} {what}"))
}

/// The command that a server does not know, by its own word; of one in a script it says no name.
fn unknown_command(detail: &str) -> Option<String> {
    let named = ["unknown command ", "unknown subcommand "];
    if let Some(rest) = named.iter().find_map(|words| Some(detail.split_once(words)?.1)) {
        let quoted = |c| matches!(c, '\'' | '`' | '"');
        let name = rest.trim_start_matches(quoted).split(|c: char| quoted(c) || c == ',').next()?;
        return Some(name.chars().take(64).collect::<String>().to_ascii_uppercase());
    }
    let inside = detail.contains("Unknown Redis command called from");
    inside.then(|| "a command inside of a script".to_owned())
}

/// Commands that are needed were renamed: no retry helps, and nothing in the store is damaged.
pub(super) fn not_known(address: &str, commands: &str) -> StoreError {
    StoreError::Unsupported(format!(
        "Redis at {address} does not know {commands}, and Soloist needs it: it was renamed or forbidden there. Take its `rename-command` out of redis.conf and restart Redis, or ask the provider; to forbid commands use an ACL (deploy/redis.acl lists what is needed)"
    ))
}

fn not_permitted(what: &str) -> String {
    format!(
        "does not permit its user enough ({what}; `redis-cli ACL LOG` names it): give the user the rights that deploy/redis.acl lists (docs/stores.md)"
    )
}

/// Of what is no answer of a Redis.
fn unheard(error: &RedisError) -> String {
    let text = error.to_string();
    if error.kind() == ErrorKind::AuthenticationFailed {
        return "wants another user or password: correct them in the store URL".to_owned();
    }
    if error.is_connection_refusal() {
        return "refuses the connection: start it, or correct the store URL".to_owned();
    }
    if text.contains("lookup address") {
        return format!("cannot be found ({text}): correct the host in the store URL");
    }
    if text.contains("InvalidContentType") {
        return "does not speak TLS on this port: write redis:// and not rediss://, or name its TLS port"
            .to_owned();
    }
    if error.kind() == ErrorKind::Parse {
        return "does not answer as Redis does: correct host and port in the store URL".to_owned();
    }
    format!("failed: {text}")
}

/// Of a connection that could not be made.
pub(super) async fn of_dialling(error: RedisError, master: &Master) -> StoreError {
    if error.is_timeout() {
        let hint = master.silence();
        return StoreError::Unavailable(format!(
            "Redis at {} did not answer{hint}",
            master.address
        ));
    }
    let broke = error.is_connection_dropped() && !error.is_connection_refusal();
    if !broke || master.over_tls() {
        return in_words(&error, &master.address);
    }
    match last_word(&master.address).await {
        Some(said) => in_words(&said, &master.address),
        None => StoreError::Unavailable(format!(
            "Redis at {} broke the connection ({error}): if it speaks only TLS, write rediss:// in the store URL",
            master.address
        )),
    }
}

/// What the server says to a connection that is not wanted.
async fn last_word(address: &str) -> Option<RedisError> {
    let listening = async {
        let (host, port) = address.rsplit_once(':')?;
        let mut stream = TcpStream::connect((host, port.parse().ok()?)).await.ok()?;
        let mut said = Vec::new();
        while !said.contains(&b'\n') && said.len() < 4_096 {
            if stream.read_buf(&mut said).await.ok()? == 0 {
                break;
            }
        }
        match ::redis::parse_redis_value(&said).ok()? {
            Value::ServerError(error) => Some(RedisError::from(error)),
            _ => None,
        }
    };
    tokio::time::timeout(LAST_WORD, listening).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answer: &str) -> StoreError {
        let Ok(Value::ServerError(error)) = ::redis::parse_redis_value(answer.as_bytes()) else {
            panic!("{answer:?} is no error of a server");
        };
        in_words(&RedisError::from(error), "here:6379")
    }

    #[test]
    fn a_command_that_was_renamed_is_named_with_a_remedy_and_is_no_damage() {
        for (answer, named) in [
            ("-ERR unknown command 'EVALSHA', with args beginning with: '1' '2' \r\n", "EVALSHA"),
            ("-ERR unknown command `time`, with args beginning with: \r\n", "TIME"),
            ("-ERR unknown command 'INFO'\r\n", "INFO"),
            ("-ERR unknown subcommand 'LOAD'. Try SCRIPT HELP.\r\n", "LOAD"),
            (
                "-ERR Unknown Redis command called from script script: 0bbf, on @user_script:1.\r\n",
                "a command inside of a script",
            ),
        ] {
            let error = told(answer);
            let said = error.to_string();
            assert!(matches!(error, StoreError::Unsupported(_)), "{answer}: {error:?}");
            let remedy = said.contains("here:6379") && said.contains("rename-command");
            assert!(said.contains(&format!("does not know {named},")) && remedy, "{said}");
            assert!(!said.contains("unreadable"), "{said}");
        }
        let permitted = told("-NOPERM User x has no permissions to run the 'evalsha' command\r\n");
        let said = permitted.to_string();
        assert!(matches!(permitted, StoreError::Unavailable(_)), "an ACL is changed at any time");
        assert!(said.contains("evalsha") && said.contains("deploy/redis.acl"), "{said}");
        assert!(matches!(told("-ERR value is not an integer\r\n"), StoreError::Corrupt(_)));
    }
}
