//! What an error of the server or of the connection means to a caller, and what a person can do about it.

use mysql_async::{DriverError, Error, IoError};

use crate::sql::fault::Fault;
use crate::sql::tls;
use soloist_store::StoreError;

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Server(said) => judge(said.code, &said.message),
            Error::Driver(DriverError::NoClientSslFlagFromServer) => {
                Self::Ours(StoreError::Unsupported(
                    "MySQL: the server speaks no TLS: give it a certificate, or say ?sslmode=disable in the store URL if nobody is on the way".to_owned(),
                ))
            }
            Error::Driver(DriverError::UnknownAuthPlugin { name }) => {
                Self::Ours(StoreError::Unsupported(format!(
                    "MySQL: the user signs in by {name}, which Soloist does not know: use mysql_native_password or caching_sha2_password"
                )))
            }
            Error::Io(IoError::Io(why)) => Self::Broken(tls::with_remedy(why.to_string())),
            Error::Io(IoError::Tls(why)) => Self::Broken(tls::with_remedy(format!("TLS: {why}"))),
            other => Self::Broken(other.to_string()),
        }
    }
}

fn judge(code: u16, message: &str) -> Fault {
    let unsupported =
        |remedy: &str| Fault::Ours(StoreError::Unsupported(format!("MySQL: {message}; {remedy}")));
    let remedy = match code {
        // Deadlock, lock wait timeout, a record that changed since it was read.
        1213 | 1205 | 1020 => return Fault::Again(message.to_owned()),
        // Access denied, no such host of users, a password that has run out, an account that is locked.
        1045 | 1698 | 1130 | 1820 | 1862 | 3118 | 4151 => {
            return Fault::Login(format!(
                "{message}; check user and password in the store URL, and from which hosts the user may come"
            ));
        }
        1049 => {
            return unsupported("make it with CREATE DATABASE, or name another in the store URL");
        }
        1142 if message.starts_with("ALTER") || message.starts_with("INDEX") => {
            return unsupported(
                "this version changes tables once: GRANT ALTER ON DATABASE.* TO USER for its first start",
            );
        }
        1044 | 1142 | 1143 | 1227 => {
            return unsupported(
                "give it to the user: GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON DATABASE.* TO USER",
            );
        }
        1665 => return unsupported("set binlog_format = ROW or MIXED"),
        1286 => return unsupported("every table must be of InnoDB: switch it on"),
        1040 | 1203 | 1226 => {
            "raise max_connections, or what the user may have: each node needs six"
        }
        1021 | 1114 | 1030 => "free some disk space there, and look at the log of the server",
        1290 | 1792 | 1836 => {
            "this server takes no writes, as a replica does: name the address of the primary"
        }
        1153 => "set max_allowed_packet = 64M",
        1146 => "its tables are gone: restore them, or restart a node, which makes new ones",
        1206 => "raise innodb_buffer_pool_size",
        1969 | 3024 => "it was slower than the time for one call",
        1047 => {
            "this node of a Galera cluster is not part of its majority: wait, or mend the cluster"
        }
        // The server goes, or has ended this connection.
        1053 | 1077 | 1079 | 1080 | 1152 | 1158..=1161 | 1184 | 1317 | 1927 | 3169 | 4031 => {
            return Fault::Broken(message.to_owned());
        }
        code => return Fault::Ours(StoreError::Corrupt(format!("MySQL: {message} ({code})"))),
    };
    Fault::Ours(StoreError::Unavailable(format!("MySQL: {message}; {remedy}")))
}
