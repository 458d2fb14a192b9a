//! Whole numbers in bodies. JSON Schema (draft 2020-12, 6.1.1 of its validation) calls 837.0 an integer, and some
//! languages write all their numbers so: they are read as what they are.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Beyond this a number with a point in it may be another than was meant.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// A field that must be there.
///
/// # Errors
/// When it is no number, not whole, or too large or small for `T`.
pub fn number<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + TryFrom<i64>,
{
    deserializer.deserialize_any(Number(PhantomData))
}

/// A field that may be null; it also needs `#[serde(default)]` to be left out.
///
/// # Errors
/// As of [`number`].
pub fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + TryFrom<i64>,
{
    deserializer.deserialize_option(Maybe(PhantomData))
}

/// What is said of anything else.
pub const EXPECTED: &str = "a whole number in the range of this field";

struct Number<T>(PhantomData<T>);

impl<T: TryFrom<u64> + TryFrom<i64>> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<T, E> {
        T::try_from(value).map_err(|_| E::invalid_value(Unexpected::Signed(value), &self))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        if value.fract() != 0.0 || value.abs() >= EXACT {
            return Err(E::invalid_value(Unexpected::Float(value), &self));
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
        self.visit_i64(value as i64)
    }
}

struct Maybe<T>(PhantomData<T>);

impl<'de, T: TryFrom<u64> + TryFrom<i64>> Visitor<'de> for Maybe<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        number(deserializer).map(Some)
    }
}
