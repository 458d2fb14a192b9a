//! Rules in words, and as OpenAPI describes them, by the tables of `domain`.

use serde_json::Value;
use soloist_domain::fields::{Field, Fields, Given, Lists, Unit, length};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    AdditionalProperties, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Schema, SchemaFormat,
    SchemaType, Type,
};

use crate::words::{Arg, Language, exactly, say};

/// Rules, one clause each, of those that `lists` says.
#[must_use]
pub fn clauses<R: Fields>(rules: &R, lang: Language, lists: impl Fn(Lists) -> bool) -> Vec<String> {
    let mut said = Given::of(rules).each();
    said.retain(|(field, _)| lists(field.lists));
    let clauses = said.chunk_by(|(a, _), (b, _)| a.clause.0 == b.clause.0);
    clauses.filter_map(|values| clause(values, lang)).collect()
}

fn clause<R>(values: &[(&Field<R>, Option<u64>)], lang: Language) -> Option<String> {
    let mut args = Vec::new();
    let mut id = "";
    for (field, value) in values {
        let value = value.filter(|value| field.is_rule(*value))?;
        let arg = match field.unit {
            Unit::Length => Some(Arg::from(exactly(lang, length(value)))),
            Unit::Count => Some(Arg::from(i64::try_from(value).unwrap_or(i64::MAX))),
            Unit::Flag | Unit::Word(_) => None,
        };
        id = match field.unit {
            Unit::Word(words) => words.get(usize::try_from(value).ok()?)?.clause,
            _ => field.clause.0,
        };
        args.extend(arg.map(|arg| (field.clause.1, arg)));
    }
    Some(say(lang, id, &args))
}

/// Rules as they are sent: what is left out gets its default, and what is no rule is refused.
#[must_use]
pub fn sent<R: Fields>() -> Object {
    let mut object = object::<R>(true);
    object.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    object
}

/// Rules as they are answered: all of them.
#[must_use]
pub fn shown<R: Fields>() -> Object {
    object::<R>(false)
}

fn object<R: Fields>(sent: bool) -> Object {
    let members = R::FIELDS.chunk_by(|a, b| a.member() == b.member());
    members
        .fold(ObjectBuilder::new().schema_type(Type::Object), |object, fields| {
            let Some((field, more)) = fields.split_first() else { return object };
            let schema =
                if more.is_empty() { one(field, sent).into() } else { several(fields, sent) };
            let object = object.property(field.member(), schema);
            if sent { object } else { object.required(field.member()) }
        })
        .build()
}

/// The object of fields that belong together.
fn several<R>(fields: &[Field<R>], sent: bool) -> RefOr<Schema> {
    let optional = sent || fields.iter().all(|field| field.default.is_none());
    let parts =
        fields.iter().fold(ObjectBuilder::new().schema_type(Type::Object), |object, field| {
            let (_, name) = field.json.split_once('.').unwrap_or_default();
            object.property(name, number(field)).required(name)
        });
    let parts = parts.additional_properties(Some(AdditionalProperties::FreeForm(false)));
    if !optional {
        return parts.into();
    }
    OneOfBuilder::new().item(ObjectBuilder::new().schema_type(Type::Null)).item(parts).into()
}

/// A field that is a member by itself.
fn one<R>(field: &Field<R>, sent: bool) -> Object {
    let mut object = number(field);
    if sent || field.default.is_none() {
        object.schema_type = match object.schema_type {
            SchemaType::Type(kind) => SchemaType::Array(vec![kind, Type::Null]),
            other => other,
        };
    }
    let tail = match field.default {
        Some(0) if matches!(field.unit, Unit::Length) => "; 0 for none",
        None if sent => "; no limit when null or left out",
        _ => "",
    };
    object.description = Some(format!("{}{tail}.", field.about));
    object.default = field.default.filter(|_| sent).map(|default| match field.unit {
        Unit::Flag => Value::from(default > 0),
        Unit::Word(_) => Value::from(field.text(default)),
        unit => Value::from(unit.in_json(default)),
    });
    object
}

fn number<R>(field: &Field<R>) -> Object {
    let object = ObjectBuilder::new().description(Some(format!("{}.", field.about)));
    match field.unit {
        Unit::Flag => object.schema_type(Type::Boolean),
        Unit::Word(words) => {
            object.schema_type(Type::String).enum_values(Some(words.iter().map(|word| word.word)))
        }
        unit => object
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(unit.in_json(field.least)))
            .maximum(Some(unit.in_json(field.most))),
    }
    .build()
}

#[cfg(test)]
mod tests {
    use soloist_domain::dispatch::{Rules, Window};
    use soloist_domain::fields::strict;
    use soloist_domain::rotation::{Rules as OfRotation, TypeRules, Written};
    use std::time::Duration;

    use super::*;

    fn has_its_words<R: Fields>() {
        for field in R::FIELDS {
            let form = field.form.map(|form| [form.group, form.label, form.means]);
            let said = match field.unit {
                Unit::Word(words) => words.iter().flat_map(|w| [w.choice, w.clause]).collect(),
                _ => vec![field.clause.0],
            };
            for id in form.into_iter().flatten().chain(said) {
                for lang in Language::ALL {
                    assert_ne!(say(lang, id, &[]), id, "{} of {}", id, field.json);
                }
            }
        }
    }

    #[test]
    fn every_field_has_its_words_in_both_languages() {
        has_its_words::<Rules>();
        has_its_words::<OfRotation>();
        has_its_words::<TypeRules>();
    }

    #[test]
    fn rules_are_written_as_the_api_says_and_read_again_as_the_same() {
        let window = Some(Window { count: 7, span: Duration::from_secs(90) });
        let gap = Duration::from_millis(1_500);
        let rules = Rules { gap, window, cap: Some(2), paused: true, ..Rules::default() };
        let text = r#"{"gap_ms":1500,"window":{"count":7,"ms":90000},"cap":2,"lease_ms":60000,"max_attempts":5,"backoff":{"first_ms":1000,"max_ms":300000},"paused":true}"#;
        assert_eq!(serde_json::to_string(&Given::of(&rules)).expect("JSON"), text);
        let read: Given<Rules> = serde_json::from_str(text).expect("rules");
        assert_eq!(read.onto(Rules::default()), Ok(rules));
        let mut rotation = OfRotation::default();
        rotation.types.push(TypeRules::of("a".parse().expect("a name")));
        let text = serde_json::to_string(&Written::of(&rotation)).expect("JSON");
        assert_eq!(
            text,
            r#"{"types":[{"name":"a","gap_ms":0,"quota":null}],"min_gap_ms":0,"lease_ms":30000,"skip":"absent"}"#
        );
    }

    #[test]
    fn what_is_sent_wrong_is_refused_with_its_name_and_a_newer_node_may_say_more() {
        for (text, why) in [
            (r#"{"gap":1}"#, "unknown field `gap`, expected one of `gap_ms`, `window`,"),
            (r#"{"window":{"count":1}}"#, "field window: missing field `ms`"),
            (
                r#"{"window":{"count":1,"ms":1,"x":1}}"#,
                "unknown field `x`, expected one of `count`, `ms`",
            ),
            (
                r#"{"window":7}"#,
                "field window: invalid type: integer `7`, expected an object of rules",
            ),
            (r#"{"cap":1,"cap":2}"#, "duplicate field `cap`"),
            (
                r#"{"gap_ms":-1}"#,
                "field gap_ms: invalid value: integer `-1`, expected a whole number",
            ),
            (r#"{"paused":"yes"}"#, "field paused: invalid type"),
        ] {
            let mut json = serde_json::Deserializer::from_str(text);
            let refused = strict::<_, Rules>(&mut json).expect_err(text).to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
        let more = r#"{"gap_ms":5,"hue":"red","window":{"count":1,"ms":2,"x":[]},"cap":null}"#;
        let read: Given<Rules> = serde_json::from_str(more).expect("rules");
        let rules = read.onto(Rules::default()).expect("rules");
        assert_eq!((rules.gap, rules.cap), (Duration::from_millis(5), None));
    }
}
