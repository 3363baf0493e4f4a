//! A browser of the assistant's own: Chromium or one of its relatives, driven over a pipe.
//!
//! [`Browser::run`] carries out one [`Verb`] and reports what changed. A look is the page as indented text, with a
//! reference for everything that can be acted on. All requests go through a proxy of this crate, which opens the public
//! internet and what a person granted. Whatever comes from a page is untrusted; [`trust`] tells which verbs need to ask.

mod act;
mod browser;
mod cdp;
mod error;
mod events;
mod fields;
mod gateway;
mod launch;
mod look;
mod mask;
mod references;
mod scripts;
mod shared;
#[cfg(test)]
mod tests;
pub mod trust;
mod verb;

pub use self::{
    browser::{Browser, BrowserOptions, BrowserPatience},
    error::BrowserError,
    gateway::HostGrants,
    launch::{LaunchError, WindowKind, find_browser},
    verb::{ActPlace, AwaitedState, BrowserOutcome, DialogAnswer, PagePicture, ScrollDirection, TabAct, Verb},
};
