//! Rules as JSON has them: a member for each field, and an object for those that belong together.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap as _, Serializer};
use serde::{Deserialize, Serialize};

use super::{Field, Fields, Given, MILLISECOND, Unit, place, whole};

/// A value as JSON has it.
#[derive(Serialize)]
#[serde(untagged)]
enum Plain {
    Nothing,
    Number(u64),
    Flag(bool),
    Word(&'static str),
}

impl Plain {
    fn of<R>(field: &Field<R>, value: Option<u64>) -> Self {
        let Some(value) = value else { return Self::Nothing };
        match field.unit {
            Unit::Length | Unit::Count => Self::Number(field.unit.in_json(value)),
            Unit::Flag => Self::Flag(value > 0),
            Unit::Word(words) => Self::Word(field.word(words, value)),
        }
    }
}

/// Fields of one object.
struct Parts<'p, R: 'static>(&'p [(&'static Field<R>, Option<u64>)]);

impl<R> Serialize for Parts<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.iter().all(|(_, value)| value.is_none()) {
            return serializer.serialize_none();
        }
        let part = |&(field, value): &(&'static Field<R>, _)| {
            let (_, name) = field.json.split_once('.').unwrap_or_default();
            (name, Plain::of(field, value))
        };
        serializer.collect_map(self.0.iter().map(part))
    }
}

impl<R: Fields> Serialize for Given<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for parts in self.each().chunk_by(|(a, _), (b, _)| a.member() == b.member()) {
            match parts {
                [(field, value)] => map.serialize_entry(field.json, &Plain::of(field, *value))?,
                [(field, _), ..] => map.serialize_entry(field.member(), &Parts(parts))?,
                [] => {}
            }
        }
        map.end()
    }
}

/// What is no field is passed over: a newer node may say more.
impl<'de, R: Fields> Deserialize<'de> for Given<R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, false)
    }
}

/// Rules as somebody sends them: what is no field is refused.
///
/// # Errors
/// When a member is no field, is there twice, or has a value of another kind; it is named.
pub fn strict<'de, D: Deserializer<'de>, R: Fields>(deserializer: D) -> Result<Given<R>, D::Error> {
    read(deserializer, true)
}

fn read<'de, D: Deserializer<'de>, R: Fields>(
    deserializer: D,
    strict: bool,
) -> Result<Given<R>, D::Error> {
    let mut given = Given::nothing();
    deserializer.deserialize_map(Reader { given: &mut given, object: "", strict })?;
    Ok(given)
}

/// Reads the members of `object`, of which each must be there; those of the whole, which may be left out, if that is empty.
struct Reader<'g, R: 'static> {
    given: &'g mut Given<R>,
    object: &'g str,
    strict: bool,
}

impl<'de, R: Fields> DeserializeSeed<'de> for Reader<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, R: Fields> Visitor<'de> for Reader<'_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of rules")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { given, object, strict } = self;
        // The name of a field in this object.
        let own = |field: &'static Field<R>| match field.json.split_once('.') {
            Some((of, name)) if of == object => Some(name),
            None if object.is_empty() => Some(field.json),
            _ => None,
        };
        let mut seen = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            let wrong = |error: A::Error| A::Error::custom(format_args!("field {name}: {error}"));
            let mut slots = R::FIELDS.iter().zip(&mut given.0);
            if let Some((field, slot)) = slots.find(|(field, _)| own(field) == Some(name.as_str()))
            {
                *slot = map.next_value_seed(Value(field)).map_err(wrong)?;
            } else if object.is_empty() && R::FIELDS.iter().any(|field| field.member() == name) {
                let reader = Reader { given: &mut *given, object: &name, strict };
                map.next_value_seed(reader).map_err(wrong)?;
            } else if strict {
                let members = R::FIELDS.iter().filter_map(|field| match object {
                    "" => Some(field.member()),
                    _ => own(field),
                });
                let beside = R::BESIDE.iter().copied().filter(|_| object.is_empty());
                let mut names: Vec<_> =
                    members.chain(beside).map(|name| format!("`{name}`")).collect();
                names.dedup();
                let names = names.join(", ");
                let what = format_args!("unknown field `{name}`, expected one of {names}");
                return Err(A::Error::custom(what));
            } else {
                map.next_value::<IgnoredAny>()?;
            }
            if seen.contains(&name) {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
            seen.push(name);
        }
        let needed = R::FIELDS.iter().filter(|_| !object.is_empty()).filter_map(own);
        for name in needed {
            if !seen.iter().any(|seen| seen == name) {
                return Err(A::Error::missing_field(name));
            }
        }
        Ok(())
    }
}

/// Reads the value of one field.
struct Value<R: 'static>(&'static Field<R>);

impl<'de, R> DeserializeSeed<'de> for Value<R> {
    type Value = Option<u64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0.unit {
            Unit::Count => whole::optional(deserializer),
            Unit::Length => {
                let ms: Option<u64> = whole::optional(deserializer)?;
                Ok(ms.map(|ms| ms.saturating_mul(MILLISECOND)))
            }
            Unit::Flag => Ok(Option::<bool>::deserialize(deserializer)?.map(u64::from)),
            Unit::Word(words) => {
                let Some(word) = Option::<String>::deserialize(deserializer)? else {
                    return Ok(None);
                };
                let known: Vec<_> = words.iter().map(|word| format!("`{}`", word.word)).collect();
                let unknown = || {
                    let known = known.join(" or ");
                    D::Error::custom(format_args!("unknown variant `{word}`, expected {known}"))
                };
                place(words, &word).map(Some).ok_or_else(unknown)
            }
        }
    }
}
