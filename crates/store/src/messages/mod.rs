//! Messages in: the queue, the parts that one message comes in, the files that come along, and from where on a chat tells of them.

pub(crate) mod attachments;
pub(crate) mod fresh;
pub(crate) mod overheard;
pub(crate) mod parts;
pub(crate) mod provenance;
pub(crate) mod queue;
pub(crate) mod spoken;
