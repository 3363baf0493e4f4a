//! A point in the memory's past, named by a person: a day, a time, a wake or a commit.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use reveille_base::{schedule, words::format_local_time, zone::Tz};
use reveille_git::{Commit, Repo, RepoError};

/// The accepted forms, for an error message.
const EXPECTED: &str =
    "today, yesterday, 2026-11-20, \"2026-11-20 14:00\", or the beginning of a wake's id or a commit's";
/// The formats of a time.
const TIMES: [&str; 2] = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];

/// The reason for an invalid point.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// The text is neither a time nor a commit.
    #[error("{text:?} isn't a time, and no wake or commit begins like that. I understand {EXPECTED}")]
    Unknown {
        /// The given text.
        text: String,
    },
    /// The memory is younger than the point.
    #[error("the memory doesn't go back as far as {0}")]
    TooEarly(String),
    /// The memory couldn't be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// The edge of a day to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayEdge {
    /// The beginning, for changes since that day.
    Begin,
    /// The end, for the state after that day.
    End,
}

/// A point in the memory's past.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The commit that left the memory in this state.
    pub commit: Commit,
    /// The name for people.
    pub name: String,
}

/// The zone and the time for words such as `yesterday`.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    /// The person's zone.
    pub tz: Tz,
    /// The present time.
    pub now: DateTime<Utc>,
}

/// Finds the point that a text names.
pub fn find_point(repo: &Repo, text: &str, edge: DayEdge, wall: WallClock) -> Result<Point, PointError> {
    let text = text.trim();
    if let Some(at) = parse_instant(text, edge, wall) {
        let found = repo.history().find_commit_before(at)?;
        let name = format_local_time(at, wall.tz);
        return found.map(|commit| Point { commit, name: name.clone() }).ok_or(PointError::TooEarly(name));
    }
    match repo.history().find_commit(text)? {
        Some(commit) => {
            let short: String = commit.id.to_string().chars().take(8).collect();
            let what = commit.wake_id.clone().map_or_else(|| format!("commit {short}"), |wake| format!("wake {wake}"));
            Ok(Point { name: format!("{what} ({})", format_local_time(commit.at, wall.tz)), commit })
        }
        None => Err(PointError::Unknown { text: text.to_owned() }),
    }
}

/// Parses a text as an instant.
fn parse_instant(text: &str, edge: DayEdge, wall: WallClock) -> Option<DateTime<Utc>> {
    let today = wall.now.with_timezone(&wall.tz).date_naive();
    let at = |local: NaiveDateTime| schedule::resolve_local_time(local, wall.tz).at;
    let day = match text {
        "today" => Some(today),
        "yesterday" => today.checked_sub_days(Days::new(1)),
        _ => NaiveDate::parse_from_str(text, "%Y-%m-%d").ok(),
    };
    if let Some(day) = day {
        // Commits have whole seconds: the last second still belongs to the day.
        return Some(match edge {
            DayEdge::Begin => at(day.and_time(NaiveTime::MIN)) - chrono::TimeDelta::seconds(1),
            DayEdge::End => {
                at(day.checked_add_days(Days::new(1))?.and_time(NaiveTime::MIN)) - chrono::TimeDelta::seconds(1)
            }
        });
    }
    TIMES.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok()).map(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reveille_base::clock::{format_rfc3339, parse_time};

    #[test]
    fn days_and_times_are_the_persons_own() {
        let wall = WallClock { tz: "Europe/Berlin".parse().unwrap(), now: parse_time("2026-11-20T23:30:00Z").unwrap() };
        let at = |text, edge| parse_instant(text, edge, wall).map(format_rfc3339);
        assert_eq!(at("today", DayEdge::Begin).as_deref(), Some("2026-11-20T22:59:59.000Z"));
        assert_eq!(at("yesterday", DayEdge::End).as_deref(), Some("2026-11-20T22:59:59.000Z"));
        assert_eq!(at("2026-11-20 14:00", DayEdge::End).as_deref(), Some("2026-11-20T13:00:00.000Z"));
        assert_eq!(at("20261120T1400", DayEdge::End), None);
    }
}
