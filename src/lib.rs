//! Reveille: a personal assistant that wakes, works, writes down what it did, and goes back to sleep.
//!
//! The way of one message is the way of the modules:
//!
//! 1. [`channel`] and [`bot`]: Telegram in. A batch of updates and the next offset become one transaction in the
//! 2. [`store`]: SQLite. Messages in and out, cycles with their journal, reminders, the lease, money.
//! 3. [`cycle`]: one wake, under the [`wake_lock`] and, among several machines, a [`lease`]: look, decide, run,
//!    maintain. It asks a [`model`], whose calls are
//! 4. [`tool`]s. They read and edit [`memory`] (Markdown as values), search it by its [`index`] and by what texts mean ([`embed`]), and
//!    speak of time through [`schedule`].
//! 5. [`repo`] makes one git commit of it and pushes. [`render`] and [`delivery`] bring the answer to its channel.
//!
//! What may be done: [`policy`] decides, and [`approval_text`] is how a person reads what is asked. [`standing`] makes
//! rules of single calls that a person allows for good. [`exec`] acts outside our own stores.
//! [`sandbox`] is the boundary around programs, and [`net_guard`] knows which addresses are public. [`redact`] masks secrets;
//! [`outside`] marks words that others have chosen.
//!
//! What comes from elsewhere: [`media`] and [`voice`] (files and recordings), [`web`] (pages), [`mcp`] (other programs' tools for us,
//! and ours for them).
//!
//! Around it: [`cli`] is what the binaries are: `bot`, `wake`, `health`, the page's server, one that understands speech, one that makes
//! vectors, and one that reads PDFs ([`pdf`]).
//! [`account`] tells what was done and what it cost. [`orders`] carries out what a person orders without a model. [`provenance`] tells
//! where what is remembered comes from, and forgets it. [`health`] finds and repairs what crashes leave behind. [`setup`] asks for
//! settings and checks them. [`backup`] keeps all of it in one file, and gives it back. [`import`] takes in
//! what another program holds. [`trial`] runs again what was done, and tries cases. [`page`] is the local page, [`fleet`] keeps
//! many assistants on one machine. [`access`] joins the settings with who paired, [`in_force`] with what was chosen in a chat.
//!
//! The ground: [`types`] are values that several modules speak of. [`config`] alone reads the environment, [`about`] tells how it is set up,
//! [`database`] which store it names. [`logs`] are files. [`clock`] alone asks the time, [`zone`] alone reads zone files, [`random`] alone for what nobody guesses, [`process`] alone starts children. [`disk`] says
//! what is too little room. [`words`] are times and counts as a person reads them. [`json`] sees what a reader of JSON passes over.
//! [`sse`] reads streams of events, and [`loopback`] serves HTTP to this machine.
//!
//! Nothing is imported upward: a test reads the imports.

pub mod backup;
pub mod bot;
pub mod cli;
pub mod health;
pub mod orders;
pub mod page;
pub mod setup;

/// The version, with the commit that was built where that is known.
pub const VERSION: &str = env!("REVEILLE_VERSION");
