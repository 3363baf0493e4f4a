//! People who paired.

pub(in crate::store) mod pairing;
