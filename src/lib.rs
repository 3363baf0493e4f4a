//! Reveille: a personal assistant that wakes, works, writes down what it did, and goes back to sleep.
//!
//! This is the application; what it stands on are the crates beside it (ARCHITECTURE.md has the map). The way of one message:
//!
//! 1. [`bot`] and [`reveille_channels`]: Telegram in. A batch of updates and the next offset become one transaction in the
//! 2. [`reveille_store`]: messages in and out, cycles with their journal, reminders, the lease, money.
//! 3. [`reveille_cycle`]: one wake: look, decide, run, maintain. It asks a [`reveille_model`], whose calls are
//! 4. [`reveille_tools`], judged by [`reveille_policy`]. They read and edit [`reveille_memory`] (Markdown as values) and search it by its
//!    [`reveille_index`]; what acts elsewhere does so in the [`reveille_sandbox`].
//! 5. [`reveille_git`] makes one commit of it and pushes. The answer goes to its channel.
//!
//! Around it: [`cli`] is what the programs are. [`orders`] carries out what a person orders without a model. [`overview`] has what `/status`,
//! `health status` and Today show. [`health`] finds and repairs
//! what crashes leave behind. [`setup`] asks for settings and checks them. [`backup`] keeps all of it in one file, and gives it back.
//! [`page`] is the local page.

pub mod backup;
pub mod bot;
pub mod cli;
pub mod health;
pub mod orders;
pub mod overview;
pub mod page;
pub mod setup;

/// The version, with the commit that was built where that is known.
pub const VERSION: &str = env!("REVEILLE_VERSION");
