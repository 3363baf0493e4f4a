//! Standing jobs: a schedule or a watch from `memory/jobs/`, and orders for each run.

pub(crate) mod check;
pub(crate) mod decide;
pub(crate) mod feed_news;
pub(crate) mod gate;
pub(crate) mod look;
pub(crate) mod run;
pub(crate) mod words;
