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
pub fn build_world(config: &Config, store: &Store, now: DateTime<Utc>, chat: Chat) -> Result<World> {
    let rules = Rules::default();
    let shelter = Rc::new(client::build_shelter(config, &rules, &Settings::for_workspace(config)));
    Ok(World {
        chat: Some(chat),
        reminders: store.reminders().list_reminders()?,
        // On Telegram, a running bot starts wakes for the new reminders anyway.
        unwoken: if chat.id == ChatRef::TERMINAL { Waker::load(config, now).render_warning(config) } else { None },
        ..World::new(config, crate::VERSION, now, rules, shelter)
    })
}
