//! Messages in: the queue, the parts that one message comes in, and the files that come along.

pub(in crate::store) mod attachments;
pub(in crate::store) mod overheard;
pub(in crate::store) mod parts;
pub(in crate::store) mod provenance;
pub(in crate::store) mod queue;
pub(in crate::store) mod spoken;
