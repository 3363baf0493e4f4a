//! A wake: look, lock, decide and act, verify, commit, deliver, push, unlock, look again.
//!
//! [`look`] finds due work, [`decide`] chooses what to do about it, [`run`] does it, and `maintain` keeps the stores in order meanwhile.
//! `session` holds the state of a wake that has the lock ([`reveille_store::wake_lock`]).

mod background;
pub mod context;
pub mod decide;
pub mod lease;
pub mod look;
mod maintain;
pub mod plan_file;
pub mod run;
mod session;
mod sharing;
pub mod standing;
pub mod stop;
mod tooling;
pub mod workspace;

pub use background::steps::look::is_step_held;
pub use context::{Context, LOOK_EVERY, Reply, Report, Screen, Terminal, WakeError, WakeOutcome};
pub use decide::merge::merge_texts;
pub use decide::{
    budget::{day_begin, month_begin},
    uptake::{CutOff, GivingUp, MAX_TRIES, Uptake, decide_resumption},
};
pub use look::{
    observe::{find_retry_time, read_model_state},
    undoable::{Choice, describe_wake_step, find_undoable, what_they_did, which_change},
    waiting::{DueItem, Waiting, read_waiting_work},
};
pub use run::begin::given_up::{Notifier, note_cut_off};
pub use run::once::run_wake;
pub use session::tainted_writes;
pub use workspace::{open_store, prepare_workspace};
