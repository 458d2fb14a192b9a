//! Texts of Redis on their way in and out; what cannot be read names its key.

use ::redis::{FromRedisValue, Value, from_redis_value};
use serde::Serialize;

use soloist_store::{Result, StoreError};

/// Converts a reply; what cannot be converted names `key`.
pub(super) fn parsed<T: FromRedisValue>(key: &str, value: Value) -> Result<T> {
    from_redis_value(value).map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))
}

/// JSON on its way to `key`.
pub(super) fn to_json(key: &str, value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Corrupt(format!("{key}: {error}")))
}
