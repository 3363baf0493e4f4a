//! Standing jobs: when each runs next, what it saw last, and what its runs came to.

pub(in crate::store) mod rows;
pub(in crate::store) mod runs;
