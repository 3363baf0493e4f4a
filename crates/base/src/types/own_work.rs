//! Background jobs: work with a cycle of its own and without a waiting person.

use std::{fmt, str::FromStr};

/// A background job. Each has a cycle of its own, which gives way to work that somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OwnWork {
    /// The nightly summary of some days.
    Reflection,
    /// A step of a long task.
    Step {
        /// The name of the plan's file.
        plan: String,
        /// The number of the step, from 1.
        step: u32,
        /// The number of earlier runs, which makes each run distinct.
        run: u32,
    },
    /// A run of a standing job.
    Job {
        /// The name of the job.
        name: String,
        /// The row of the run.
        run: i64,
    },
    /// A search for the most useful thing to say unasked.
    Initiative {
        /// The civil time at which the search was due.
        slot: String,
    },
}

impl OwnWork {
    /// Returns true if both belong to the same plan, to the same job or to the same kind.
    pub fn is_of_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Step { plan: one, .. }, Self::Step { plan: other, .. }) => one == other,
            (Self::Job { name: one, .. }, Self::Job { name: other, .. }) => one == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// The prefix of all runs of a plan's steps in the [`fmt::Display`] form.
    pub fn plan_prefix(plan: &str) -> String {
        format!("step/{plan}/")
    }

    /// The prefix of all runs of a job in the [`fmt::Display`] form.
    pub fn job_prefix(name: &str) -> String {
        format!("job/{name}/")
    }
}

impl fmt::Display for OwnWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reflection => f.write_str("reflection"),
            Self::Step { plan, step, run } => write!(f, "{}{step}/{run}", Self::plan_prefix(plan)),
            Self::Job { name, run } => write!(f, "{}{run}", Self::job_prefix(name)),
            Self::Initiative { slot } => write!(f, "initiative/{slot}"),
        }
    }
}

/// The error for a text that names no background job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotOwnWork;

impl FromStr for OwnWork {
    type Err = NotOwnWork;

    fn from_str(text: &str) -> Result<Self, NotOwnWork> {
        let (kind, rest) = text.split_once('/').unwrap_or((text, ""));
        let name = |rest: &str| Some(rest.to_owned()).filter(|name| !name.is_empty() && !name.contains('/'));
        let work = match kind {
            "reflection" if rest.is_empty() => Some(Self::Reflection),
            "step" => {
                let mut parts = rest.rsplitn(3, '/');
                let (run, step, plan) = (parts.next(), parts.next(), parts.next());
                let number = |part: Option<&str>| part?.parse().ok();
                number(run).zip(number(step)).and_then(|(run, step)| Some(Self::Step { plan: name(plan?)?, step, run }))
            }
            "job" => rest
                .rsplit_once('/')
                .and_then(|(job, run)| Some(Self::Job { name: name(job)?, run: run.parse().ok()? })),
            "initiative" => name(rest).map(|slot| Self::Initiative { slot }),
            _ => None,
        };
        work.ok_or(NotOwnWork)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_and_nothing_else_is_work() {
        let all = [
            OwnWork::Reflection,
            OwnWork::Step { plan: "photo-archive".to_owned(), step: 12, run: 0 },
            OwnWork::Job { name: "water-plants".to_owned(), run: 17 },
            OwnWork::Initiative { slot: "2026-11-25T09:00".to_owned() },
        ];
        for work in all {
            assert_eq!(work.to_string().parse(), Ok(work.clone()), "{work}");
        }
        for other in ["", "step/x/1", "step/a/b/1/2", "step//1/0", "job/x", "job//3", "job/x/y", "initiative/", "tea"] {
            assert_eq!(other.parse::<OwnWork>(), Err(NotOwnWork), "{other}");
        }
    }
}
