//! People who paired.

pub(crate) mod pairing;
