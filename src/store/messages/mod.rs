//! Messages in: the queue, the parts that one message comes in, the files that come along, and from where on a chat tells of them.

pub(in crate::store) mod attachments;
pub(in crate::store) mod fresh;
pub(in crate::store) mod overheard;
pub(in crate::store) mod parts;
pub(in crate::store) mod provenance;
pub(in crate::store) mod queue;
pub(in crate::store) mod spoken;
