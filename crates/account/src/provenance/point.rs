//! A point in the memory's past, as a person names it: a day, a time, a wake or a commit.

use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, Utc};

use reveille_base::{schedule, words::local, zone::Tz};
use reveille_git::{Commit, Repo, RepoError};

/// What is taken as a point.
const EXPECTED: &str =
    "today, yesterday, 2026-11-20, \"2026-11-20 14:00\", or the beginning of a wake's id or a commit's";
/// How a time is written.
const TIMES: [&str; 2] = ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];

/// Why nothing is meant by what was said.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// It is neither a time nor a commit.
    #[error("{text:?} is no time, and no wake or commit begins so. I understand {EXPECTED}")]
    Unknown {
        /// What was said.
        text: String,
    },
    /// The memory is younger.
    #[error("the memory doesn't go back to {0}")]
    TooEarly(String),
    /// The memory couldn't be read.
    #[error(transparent)]
    Repo(#[from] RepoError),
}

/// A day counts from its beginning, or to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayEdge {
    /// What changed since that day began.
    Begin,
    /// As it was when that day was over.
    End,
}

/// The commit that a person means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// The commit; the memory as it left it is meant.
    pub commit: Commit,
    /// How it is called, for people.
    pub name: String,
}

/// The zone and the time that words such as `yesterday` are read in.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    /// The person's zone.
    pub tz: Tz,
    /// Now.
    pub now: DateTime<Utc>,
}

/// What is meant by a text.
pub fn point(repo: &Repo, text: &str, edge: DayEdge, wall: WallClock) -> Result<Point, PointError> {
    let text = text.trim();
    if let Some(at) = time_of(text, edge, wall) {
        let found = repo.commit_by(at)?;
        let name = local(at, wall.tz);
        return found.map(|commit| Point { commit, name: name.clone() }).ok_or(PointError::TooEarly(name));
    }
    match repo.commit_called(text)? {
        Some(commit) => {
            let short: String = commit.id.to_string().chars().take(8).collect();
            let what = commit.wake_id.clone().map_or_else(|| format!("commit {short}"), |wake| format!("wake {wake}"));
            Ok(Point { name: format!("{what} ({})", local(commit.at, wall.tz)), commit })
        }
        None => Err(PointError::Unknown { text: text.to_owned() }),
    }
}

/// The instant that a text names.
fn time_of(text: &str, edge: DayEdge, wall: WallClock) -> Option<DateTime<Utc>> {
    let today = wall.now.with_timezone(&wall.tz).date_naive();
    let at = |local: NaiveDateTime| schedule::resolve(local, wall.tz).at;
    let day = match text {
        "today" => Some(today),
        "yesterday" => today.checked_sub_days(Days::new(1)),
        _ => NaiveDate::parse_from_str(text, "%Y-%m-%d").ok(),
    };
    if let Some(day) = day {
        // A commit carries whole seconds: the last one of the day is still the day's.
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
    use reveille_base::clock::{parse_time, rfc3339};

    #[test]
    fn days_and_times_are_the_persons_own() {
        let wall = WallClock { tz: "Europe/Berlin".parse().unwrap(), now: parse_time("2026-11-20T23:30:00Z").unwrap() };
        let at = |text, edge| time_of(text, edge, wall).map(rfc3339);
        assert_eq!(at("today", DayEdge::Begin).as_deref(), Some("2026-11-20T22:59:59.000Z"));
        assert_eq!(at("yesterday", DayEdge::End).as_deref(), Some("2026-11-20T22:59:59.000Z"));
        assert_eq!(at("2026-11-20 14:00", DayEdge::End).as_deref(), Some("2026-11-20T13:00:00.000Z"));
        assert_eq!(at("20261120T1400", DayEdge::End), None);
    }
}
