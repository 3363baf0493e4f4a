//! Incoming messages: the queue, the parts of a message, the files with it, and a chat's fresh start.

pub(crate) mod attachments;
pub(crate) mod fresh;
pub(crate) mod overheard;
pub(crate) mod parts;
pub(crate) mod provenance;
pub(crate) mod queue;
pub(crate) mod spoken;
