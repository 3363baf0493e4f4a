//! Values on their way to and from the server.

use bytes::BytesMut;
use rusqlite::types::Value;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

type Refusal = Box<dyn std::error::Error + Sync + Send>;

/// A value, converted to the type that the server expects at its place in the statement. Callers name no type, as SQLite needs none.
#[derive(Debug)]
pub(crate) struct Parameter<'a>(pub(crate) &'a Value);

impl Parameter<'_> {
    fn to_integer(&self) -> Result<i64, Refusal> {
        match self.0 {
            Value::Integer(number) => Ok(*number),
            Value::Text(text) => Ok(text.parse()?),
            other => Err(format!("{:?} where a whole number belongs", other.data_type()).into()),
        }
    }

    fn to_real(&self) -> Result<f64, Refusal> {
        match self.0 {
            Value::Real(number) => Ok(*number),
            _ => Ok(self.to_integer()? as f64),
        }
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Refusal> {
        if *self.0 == Value::Null {
            return Ok(IsNull::Yes);
        }
        match *kind {
            Type::BOOL => (self.to_integer()? != 0).to_sql(kind, out),
            Type::INT2 => i16::try_from(self.to_integer()?)?.to_sql(kind, out),
            Type::INT4 => i32::try_from(self.to_integer()?)?.to_sql(kind, out),
            Type::INT8 => self.to_integer()?.to_sql(kind, out),
            Type::FLOAT4 => (self.to_real()? as f32).to_sql(kind, out),
            Type::FLOAT8 => self.to_real()?.to_sql(kind, out),
            Type::BYTEA => match self.0 {
                Value::Blob(bytes) => bytes.to_sql(kind, out),
                Value::Text(text) => text.as_bytes().to_sql(kind, out),
                _ => Err("a number where bytes belong".into()),
            },
            // All other types are text, or are parsed from text.
            _ => match self.0 {
                // PostgreSQL's texts can't hold this character.
                Value::Text(text) if text.contains('\0') => text.replace('\0', "\u{fffd}").to_sql(&Type::TEXT, out),
                Value::Text(text) => text.to_sql(&Type::TEXT, out),
                Value::Integer(number) => number.to_string().to_sql(&Type::TEXT, out),
                Value::Real(number) => number.to_string().to_sql(&Type::TEXT, out),
                Value::Blob(bytes) => String::from_utf8_lossy(bytes).to_sql(&Type::TEXT, out),
                Value::Null => Ok(IsNull::Yes),
            },
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A value of a row.
pub(crate) struct ColumnValue(pub(crate) Value);

impl<'a> FromSql<'a> for ColumnValue {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Refusal> {
        Ok(Self(match *kind {
            Type::BOOL => Value::Integer(bool::from_sql(kind, raw)?.into()),
            Type::INT2 => Value::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Value::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT4 => Value::Real(f32::from_sql(kind, raw)?.into()),
            Type::FLOAT8 => Value::Real(f64::from_sql(kind, raw)?),
            Type::NUMERIC => parse_numeric(raw).ok_or("a number that can't be read")?,
            Type::BYTEA => Value::Blob(raw.to_owned()),
            _ => Value::Text(std::str::from_utf8(raw)?.to_owned()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Refusal> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Parses the server's decimal form, used for sums of whole numbers: groups of four digits, of which the first counts `10000^weight`.
fn parse_numeric(raw: &[u8]) -> Option<Value> {
    let (fields, _) = raw.as_chunks::<2>();
    let mut fields = fields.iter().map(|field| i16::from_be_bytes(*field));
    let (count, weight, sign, scale) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let groups: Vec<i16> = fields.take(usize::try_from(count).ok()?).collect();
    let is_negative = sign == 0x4000;
    if scale == 0 {
        let mut whole: i128 = 0;
        for place in 0..=weight.max(-1) {
            let group = groups.get(usize::try_from(place).ok()?).copied().unwrap_or(0);
            whole = whole.checked_mul(10_000)?.checked_add(group.into())?;
        }
        let whole = i64::try_from(if is_negative { -whole } else { whole });
        if let Ok(whole) = whole {
            return Some(Value::Integer(whole));
        }
    }
    let powers = (0_i32..).map(|place| f64::powi(10_000.0, i32::from(weight) - place));
    let number: f64 = groups.iter().zip(powers).map(|(group, power)| f64::from(*group) * power).sum();
    Some(Value::Real(if is_negative { -number } else { number }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_a_whole_number_if_it_can_be() {
        let raw = |fields: &[i16]| fields.iter().flat_map(|field| field.to_be_bytes()).collect::<Vec<u8>>();
        for (fields, value) in [
            (&[0, 0, 0, 0][..], Value::Integer(0)),
            (&[2, 1, 0, 0, 12, 345], Value::Integer(120_345)),
            (&[1, 1, 0x4000, 0, 12], Value::Integer(-120_000)),
            (&[2, 0, 0, 2, 1, 5_000], Value::Real(1.5)),
            (&[1, 6, 0, 0, 1], Value::Real(1e24)),
        ] {
            assert_eq!(parse_numeric(&raw(fields)), Some(value), "{fields:?}");
        }
        assert_eq!(parse_numeric(&[0, 1]), None);
    }
}
