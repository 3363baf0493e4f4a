//! What the stories run against: real servers on loopback that check every request and fail a test on anything
//! unexpected or left over.

pub(crate) mod claude;
pub(crate) mod http;
