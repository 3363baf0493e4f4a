//! Outgoing messages: planned in a transaction, sent part by part elsewhere.

pub(crate) mod attempts;
pub(crate) mod flood;
pub(crate) mod outgoing;
pub(crate) mod planned;
pub(crate) mod proposed;
pub(crate) mod provenance;
pub(crate) mod questions;
pub(crate) mod recipients;
pub(crate) mod rich;
pub(crate) mod shortage;
pub(crate) mod shown;
pub(crate) mod undelivered;
