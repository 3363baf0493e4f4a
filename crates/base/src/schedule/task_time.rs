//! The time in a task's `at:` line.

use chrono::{DateTime, NaiveDateTime, Utc};

use crate::zone::Tz;

/// The formats of `at:`.
pub const AT_FORMATS: [&str; 3] = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"];

/// Parses a task's `at:` as an instant.
pub fn task_time(at: &str, tz: Tz) -> Option<DateTime<Utc>> {
    if let Ok(at) = DateTime::parse_from_rfc3339(at.trim()) {
        return Some(at.with_timezone(&Utc));
    }
    let civil = AT_FORMATS.iter().find_map(|format| {
        NaiveDateTime::parse_from_str(at.trim(), format)
            .or_else(|_| {
                chrono::NaiveDate::parse_from_str(at.trim(), format).map(|day| day.and_time(super::when::DEFAULT_TIME))
            })
            .ok()
    })?;
    Some(super::resolve_local_time(civil, tz).at)
}
