//! Standing jobs: a schedule or a watch from `memory/jobs/`, and orders for each run.

pub(crate) mod by_rule;
pub(crate) mod decide;
pub(crate) mod feed_news;
pub(crate) mod look;
pub(crate) mod run;
