//! Reveille: a personal assistant that wakes, works, writes down what it did, and goes back to sleep.
//!
//! This is the application on top of the crates beside it (ARCHITECTURE.md has the map). The way of one message:
//!
//! 1. [`bot`] and [`reveille_channels`]: Telegram in. A batch of updates and the next offset become one transaction in the
//! 2. [`reveille_store`]: messages in and out, cycles with their journal, reminders, the lease, money.
//! 3. [`reveille_cycle`]: one wake: look, decide, run, maintain. It asks a [`reveille_model`], which calls
//! 4. [`reveille_tools`], judged by [`reveille_policy`]. Tools read and edit [`reveille_memory`] (Markdown as values)
//!    and search it by its [`reveille_index`]; commands and other outside effects run in the [`reveille_sandbox`].
//! 5. [`reveille_git`] makes one commit of the changes and pushes. The answer goes to its channel.
//!
//! Around it: [`cli`] holds the programs. [`orders`] carries out a person's orders without a model. [`overview`]
//! gathers the facts for `/status`, `health status` and Today. [`health`] finds and repairs the traces of crashes.
//! [`setup`] asks for settings and checks them. [`backup`] saves everything in one file and restores it. [`page`]
//! serves the local page.

pub mod backup;
pub mod bot;
pub mod cli;
pub mod health;
pub mod orders;
pub mod overview;
pub mod page;
pub mod setup;

/// The version, with the commit of the build if known.
pub const VERSION: &str = env!("REVEILLE_VERSION");

/// Tells if a command changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// Carries out its changes.
    Real,
    /// Only names its changes.
    Dry,
}

impl RunMode {
    /// Converts the flag `--dry-run`.
    pub fn from_flag(dry_run: bool) -> Self {
        if dry_run { Self::Dry } else { Self::Real }
    }

    /// Returns `true` if nothing may be changed.
    pub fn is_dry(self) -> bool {
        self == Self::Dry
    }
}
