//! Values on their way in and out of columns: numbers, JSON, words. What cannot be read is named.

use serde::Serialize;
use serde::de::DeserializeOwned;

use soloist_store::{Result, StoreError};

/// The integers of SQL are signed; ours never come near the difference.
pub fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The way back.
pub fn uint(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// As a limit or an offset.
pub fn count(value: usize) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// `what` cannot be read, because of `why`.
pub fn corrupt(what: &str, why: &str) -> StoreError {
    StoreError::Corrupt(format!("{what}: {why}"))
}

/// The JSON of `value`.
pub fn text<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|why| corrupt("a value to be kept", &why.to_string()))
}

/// The variant whose word is in the column.
pub fn word<T: DeserializeOwned>(what: &str, word: &str) -> Result<T> {
    let value = serde_json::Value::String(word.to_owned());
    serde_json::from_value(value).map_err(|why| corrupt(what, &why.to_string()))
}
