//! Credentials and drain marks of schema 2 and older: instants stood before the JSON, and the marks were a set.
//!
//! Each row is converted by itself and stays as it is when it was converted before, so that an interrupted conversion is finished
//! by the next start. Reports of nodes and failed logins are dropped: the former come anew every second.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::RedisStore;
use super::link::Repeat;
use super::record::{from_json, to_json};
use crate::store::{Result, StoreError};

/// Tables of credentials, and the instants before the JSON of a row, in milliseconds; 0 is never.
const CREDENTIALS: [(&str, &[&str]); 3] = [
    ("sessions", &["created", "expires", "used"]),
    ("tokens", &["created", "expires"]),
    ("links", &["expires"]),
];

impl RedisStore {
    /// Makes schema 3 of what belongs to no job.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`], [`StoreError::Unavailable`].
    pub(super) async fn convert_shared(&self) -> Result<()> {
        for (table, instants) in CREDENTIALS {
            let key = self.keys().global(table);
            let mut read = ::redis::cmd("HGETALL");
            read.arg(&key);
            let rows: BTreeMap<String, String> =
                self.shared.rest.command(&key, &read, Repeat::Harmless).await?;
            for (row, text) in rows {
                if !text.starts_with('{') {
                    let text = as_json(&key, &text, instants)?;
                    let mut write = ::redis::cmd("HSET");
                    write.arg(&key).arg(row).arg(text);
                    self.shared.rest.command::<()>(&key, &write, Repeat::Harmless).await?;
                }
            }
        }
        let (marks, table) = (self.keys().global("drains"), self.keys().global("draining"));
        let mut read = ::redis::cmd("SMEMBERS");
        read.arg(&marks);
        let nodes: Vec<String> = self.shared.rest.command(&marks, &read, Repeat::Harmless).await?;
        for node in nodes {
            let mut write = ::redis::cmd("HSET");
            write.arg(&table).arg(node).arg("");
            self.shared.rest.command::<()>(&table, &write, Repeat::Harmless).await?;
        }
        for gone in ["drains", "nodes", "definitions"] {
            let key = self.keys().global(gone);
            let mut remove = ::redis::cmd("DEL");
            remove.arg(&key);
            self.shared.rest.command::<()>(&key, &remove, Repeat::Harmless).await?;
        }
        Ok(())
    }
}

/// `INSTANT... JSON` as JSON.
fn as_json(key: &str, text: &str, instants: &[&str]) -> Result<String> {
    let corrupt = || StoreError::Corrupt(format!("{key} has a row of another form"));
    let (mut members, mut rest): (Map<String, Value>, &str) = (Map::new(), text);
    for name in instants {
        let (instant, after) = rest.split_once(' ').ok_or_else(corrupt)?;
        let instant: i64 = instant.parse().map_err(|_| corrupt())?;
        members.insert((*name).to_owned(), if instant == 0 { Value::Null } else { instant.into() });
        rest = after;
    }
    members.extend(from_json::<Map<String, Value>>(key, rest)?);
    to_json(key, &members)
}
