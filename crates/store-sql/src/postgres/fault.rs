//! What an error of the server or of the connection means to a caller, and what a person can do about it.

use tokio_postgres::error::SqlState;

use crate::sql::fault::Fault;
use crate::sql::tls;
use soloist_store::StoreError;

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(said) => judge(said.code(), said.message()),
            // As the crate words it: it has no kind for this.
            None if words(&error).contains("server does not support TLS") => {
                Self::Ours(StoreError::Unsupported(
                    "PostgreSQL: the server speaks no TLS: give it a certificate, or say ?sslmode=disable in the store URL if nobody is on the way".to_owned(),
                ))
            }
            None if error.is_closed() || is_io(&error) => {
                Self::Broken(tls::with_remedy(words(&error)))
            }
            None => Self::Ours(StoreError::Corrupt(format!("PostgreSQL: {}", words(&error)))),
        }
    }
}

/// With every cause: the first words are only `error connecting to server`.
fn words(error: &tokio_postgres::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(why) = cause {
        words += &format!(": {why}");
        cause = why.source();
    }
    words
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(why) = cause {
        if why.is::<std::io::Error>() {
            return true;
        }
        cause = why.source();
    }
    // A server that is starting, and a handshake that did not end, have no kind of their own.
    let words = error.to_string();
    words.contains("connect") || words.contains("TLS") || words.contains("timed out")
}

/// What is wrong with a pooler in transaction mode.
pub(super) const POOLER: &str = "PostgreSQL: a pooler gives each transaction another connection, so nobody would hear of a change: name the address of the server itself, or of a pool in session mode";

fn judge(code: &SqlState, message: &str) -> Fault {
    let remedy = match code.code() {
        // Serialization failure, deadlock, lock_timeout.
        "40001" | "40P01" | "55P03" => return Fault::Again(message.to_owned()),
        "28P01" | "28000" => {
            return Fault::Login(format!(
                "{message}; check user and password in the store URL, and pg_hba.conf"
            ));
        }
        "3D000" => {
            return Fault::Ours(StoreError::Unsupported(format!(
                "PostgreSQL: {message}; make it with createdb, or name another in the store URL"
            )));
        }
        "42501" => {
            return Fault::Ours(StoreError::Unsupported(format!(
                "PostgreSQL: {message}; give the user what it needs: GRANT CONNECT ON DATABASE ... TO soloist; CREATE SCHEMA soloist AUTHORIZATION soloist"
            )));
        }
        // What one transaction prepared is unknown to the next.
        "26000" | "42P05" => return Fault::Ours(StoreError::Unsupported(POOLER.to_owned())),
        "53300" => "raise max_connections, or give the user fewer: each node needs six",
        "53100" => "free some disk space there",
        "25006" => {
            "this server takes no writes, as a replica does: name the address of the primary"
        }
        "55000" => "let connections in again: ALTER DATABASE ... ALLOW_CONNECTIONS true",
        "57P01" | "57P02" | "57P03" | "25P03" | "57P05" => {
            return Fault::Broken(message.to_owned());
        }
        "57014" => "it was slower than the time for one call",
        "42P01" | "3F000" => {
            "its tables are gone: restore them, or restart a node, which makes new ones"
        }
        code if code.starts_with("53") || code.starts_with("58") => "look at the log of the server",
        code if code.starts_with("08") => return Fault::Broken(message.to_owned()),
        code => {
            return Fault::Ours(StoreError::Corrupt(format!("PostgreSQL: {message} ({code})")));
        }
    };
    Fault::Ours(StoreError::Unavailable(format!("PostgreSQL: {message}; {remedy}")))
}
