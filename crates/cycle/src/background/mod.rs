//! Background jobs, which nobody waits for: standing jobs, steps of long tasks, reflection, initiative. Each kind is a module, with `look`
//! for the due ones, `decide` for pure rules, `run` for its cycle, and `words` for prompts and notices.

pub(crate) mod begun;
pub(crate) mod initiative;
pub(crate) mod jobs;
pub(crate) mod reflection;
pub(crate) mod run;
pub(crate) mod steps;
