//! The world for a person's order: the current memory and reminders, without anything that acts.

use std::rc::Rc;

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_policy::Rules;
use reveille_store::{Result, Store, wake_lock::waker::Waker};
use reveille_tools::{
    Chat, World,
    mcp::client::{self, settings::Settings},
};

/// Builds the world of an order from this chat.
pub fn world(config: &Config, store: &Store, now: DateTime<Utc>, chat: Chat) -> Result<World> {
    let rules = Rules::default();
    let shelter = Rc::new(client::shelter(config, &rules, &Settings::of(config)));
    Ok(World {
        chat: Some(chat),
        reminders: store.reminders().reminders()?,
        // On Telegram, a running bot starts wakes for the new reminders anyway.
        unwoken: if chat.id == ChatRef::TERMINAL { Waker::look(config, now).warning(config) } else { None },
        ..World::new(config, crate::VERSION, now, rules, shelter)
    })
}
