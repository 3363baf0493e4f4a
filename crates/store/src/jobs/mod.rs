//! Standing jobs: when each runs next, what it saw last, and what its runs came to.

pub(crate) mod rows;
pub(crate) mod runs;
