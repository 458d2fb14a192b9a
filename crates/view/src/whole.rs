//! Whole numbers in bodies, also those of sixteen digits. How the others are read stands in `domain`.

use serde::Deserialize as _;
use serde::de::{Deserializer, Error, Unexpected};
use serde_json::value::RawValue;

use soloist_domain::fields::whole::EXPECTED;
pub use soloist_domain::fields::whole::{number, optional};

/// A field that must be there and may have sixteen digits, as tokens have: read from its text. As a floating-point number it could
/// become another one.
///
/// # Errors
/// As of [`number`].
pub fn exact<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + TryFrom<i64>,
{
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    read(&raw).map_err(D::Error::custom)
}

/// As [`exact`]; it may be null, and needs `#[serde(default)]` to be left out.
///
/// # Errors
/// As of [`number`].
pub fn exact_if_any<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64> + TryFrom<i64>,
{
    let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
    raw.map(|raw| read(&raw)).transpose().map_err(D::Error::custom)
}

fn read<T: TryFrom<u64> + TryFrom<i64>>(raw: &RawValue) -> Result<T, serde::de::value::Error> {
    let whole = written(raw.get()).and_then(|whole| match u64::try_from(whole) {
        Ok(whole) => T::try_from(whole).ok(),
        Err(_) => T::try_from(i64::try_from(whole).ok()?).ok(),
    });
    let shown = if raw.get().len() <= 40 { raw.get() } else { "something long" };
    whole.ok_or_else(|| Error::invalid_value(Unexpected::Other(shown), &EXPECTED))
}

/// The whole number that a JSON text says: `837`, `837.0`, `8.37e2`. `None`: it says none, or one of more than 30 digits.
fn written(json: &str) -> Option<i128> {
    let (sign, size) = json.strip_prefix('-').map_or((1, json), |size| (-1, size));
    let (mantissa, exponent) = size.split_once(['e', 'E']).unwrap_or((size, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    if digits.bytes().all(|digit| digit == b'0') {
        return Some(0).filter(|_| !digits.is_empty());
    }
    let point = i64::try_from(whole.len()).ok()? + exponent.parse::<i32>().map(i64::from).ok()?;
    let point = usize::try_from(point).ok().filter(|point| *point <= 30)?;
    while digits.len() < point {
        digits.push('0');
    }
    let (front, behind) = digits.split_at_checked(point)?;
    let is_whole = behind.bytes().all(|digit| digit == b'0');
    front.parse::<i128>().ok().filter(|_| is_whole).map(|size| sign * size)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Body {
        #[serde(deserialize_with = "super::number")]
        must: u32,
        #[serde(default, deserialize_with = "super::optional")]
        may: Option<u64>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Sent {
        #[serde(deserialize_with = "super::exact")]
        token: u64,
    }

    #[test]
    fn a_token_is_read_exactly_however_it_is_written_or_refused() {
        let largest: u64 = (1 << 53) - 1;
        let tokens = (1_838_896_323_138_735..).step_by(997).take(500);
        for token in tokens.chain([1, 837, largest - 1, largest]) {
            let digits = token.to_string();
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            for text in [
                digits.clone(),
                format!("{digits}.0"),
                format!("{digits}.000"),
                format!("{digits}e0"),
                format!("{first}{point}{rest}e{}", rest.len()),
                format!("{first}{point}{rest}E+{}", rest.len()),
                format!("{digits}000.0e-3"),
            ] {
                let read = serde_json::from_str::<Sent>(&format!(r#"{{"token": {text}}}"#));
                assert_eq!(read.ok(), Some(Sent { token }), "{text}");
            }
            for text in [
                format!("{digits}.25"),
                format!("{digits}.0000000000000000001"),
                format!("-{digits}.5"),
                format!("{digits}1e-1"),
                format!("\"{digits}\""),
                "null".to_owned(),
                "1e300".to_owned(),
                "1e-2147483649".to_owned(),
                "-1".to_owned(),
            ] {
                let error = serde_json::from_str::<Sent>(&format!(r#"{{"token": {text}}}"#));
                let error = error.expect_err(&text).to_string();
                assert!(error.contains("whole number"), "{text}: {error}");
            }
        }
    }

    #[test]
    fn a_number_without_a_fraction_is_whole_however_it_is_written() {
        for (text, must, may) in [
            (r#"{"must": 837.0}"#, 837, None),
            (r#"{"must": 8e2, "may": null}"#, 800, None),
            (r#"{"must": 0, "may": 9007199254740993}"#, 0, Some(9_007_199_254_740_993)),
            (r#"{"must": -0.0, "may": 1.0}"#, 0, Some(1)),
        ] {
            assert_eq!(serde_json::from_str::<Body>(text).ok(), Some(Body { must, may }), "{text}");
        }
        for text in [
            r#"{"must": 837.5}"#,
            r#"{"must": -1}"#,
            r#"{"must": -1.0}"#,
            r#"{"must": 4294967296}"#,
            r#"{"must": 4294967296.0}"#,
            r#"{"must": "1"}"#,
            r#"{"must": null}"#,
            r#"{"must": 1, "may": 1e300}"#,
            r#"{"may": 1}"#,
        ] {
            let error = serde_json::from_str::<Body>(text).expect_err(text).to_string();
            assert!(error.contains("whole number") || error.contains("missing"), "{text}: {error}");
        }
    }
}
