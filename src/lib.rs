//! Reveille: a personal assistant that wakes, works, writes down what it did, and goes back to sleep.
//!
//! The way of one message is the way of the modules:
//!
//! 1. [`channel`] and [`bot`]: Telegram in. A batch of updates and the next offset become one transaction in
//! 2. [`queue`]: the SQLite store: inbox, outbox, journal, lease, reminders, ledger.
//! 3. [`cycle`]: one wake: upkeep, gate, lock, observe, orient, decide and act, verify, publish, deliver.
//!    It asks a mind through [`model`], whose calls are carried out by [`tool`]s,
//! 4. which read and edit [`memory`] (Markdown as values), and speak of time through [`schedule`];
//! 5. [`repo`] makes one git commit of it and pushes; [`channel`] delivers the answer.
//!
//! Files that come with messages: [`media`] says what they are; the bot fetches them and has speech written down.
//!
//! [`health`] finds what crashes leave behind and repairs it. [`cli`] is what the four binaries are (`bot`, `wake`, `health`, and
//! `reveille-ear`, which only understands speech): arguments, wiring, exit codes. [`config`] alone reads the environment,
//! [`clock`] alone asks the time, [`zone`] alone reads zone files, [`random`] alone for what nobody guesses, [`process`] alone starts children.
//! [`policy`] decides what may be done without asking, [`shown`] is how a person reads what is asked; [`hands`] are what acts
//! outside our own stores. [`sandbox`] is the boundary around what the mind has run; [`net_guard`] knows which addresses are
//! public. [`web`] reads pages for the mind. [`mcp`] is the Model Context Protocol, both ways: other programs' tools for us, ours
//! for them. [`redact`] masks secrets in whatever is shown, sent or committed.
//! [`people`] joins the settings with who paired, [`disk`] says what is too little room. [`voice`] makes text of recordings.
//! [`words`] are times, counts and lists as a person reads them; [`json`] sees what a reader of JSON passes over.

pub mod bot;
pub mod channel;
pub mod cli;
pub mod clock;
pub mod config;
pub mod cycle;
pub mod disk;
pub mod hands;
pub mod health;
pub mod json;
pub mod mcp;
pub mod media;
pub mod memory;
pub mod model;
pub mod net_guard;
pub mod outside;
pub mod people;
pub mod policy;
pub mod process;
pub mod queue;
pub mod random;
pub mod redact;
pub mod repo;
pub mod sandbox;
pub mod schedule;
pub mod shown;
pub mod tool;
pub mod voice;
pub mod web;
pub mod words;
pub mod zone;
