//! Standing jobs: the next run, the last look's result, and the runs.

pub(crate) mod rows;
pub(crate) mod runs;
