//! Messages out: planned in a transaction, sent part by part elsewhere.

pub(in crate::store) mod attempts;
pub(in crate::store) mod flood;
pub(in crate::store) mod outgoing;
pub(in crate::store) mod planned;
pub(in crate::store) mod proposed;
pub(in crate::store) mod provenance;
pub(in crate::store) mod questions;
pub(in crate::store) mod recipients;
pub(in crate::store) mod shortage;
pub(in crate::store) mod shown;
pub(in crate::store) mod undelivered;
