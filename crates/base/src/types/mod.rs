//! Plain values that several crates share. This module imports no other crate of this repository.

mod assistant_name;
mod bound;
mod call;
mod chat;
mod cycle_id;
mod figure;
mod message;
mod own_work;
mod turn;
mod verbs;

pub use assistant_name::AssistantName;
pub use bound::{BoundFile, BoundFiles};
pub use call::Effect;
pub use chat::{ChannelKind, ChatKind, ChatRef};
pub use cycle_id::is_cycle_id;
pub use figure::{Aim, Figure, Measured, StatedEffect};
pub use message::{ApprovalAnswer, ButtonChoice, NudgeAnswer, Question, ReminderAnswer, SampleAnswer, TextFile};
pub use own_work::{NotOwnWork, OwnWork};
pub use turn::{Stop, Usage};
pub use verbs::{VERB, VERB_GROUPS, VerbGroup};
