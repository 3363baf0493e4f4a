//! The world that a person's order sees: the memory as it stands, the reminders, and nothing that acts.

use std::{collections::BTreeSet, rc::Rc};

use chrono::{DateTime, Utc};

use reveille_base::types::ChatRef;
use reveille_config::Config;
use reveille_index::{IndexPlace, embed::Meaning};
use reveille_policy::Rules;
use reveille_store::{Result, Store, wake_lock::waker::Waker};
use reveille_tools::{
    Attachments, Chat, Documents, World,
    about::About,
    mcp::client::{self, settings::Settings},
};

/// The world of an order that was given in this chat.
pub fn world(config: &Config, store: &Store, now: DateTime<Utc>, chat: Chat) -> Result<World> {
    Ok(World {
        wake_id: String::new(),
        model: String::new(),
        is_stand_in: false,
        is_local: false,
        other_local_chats: Vec::new(),
        about: About::of(crate::VERSION, config),
        autonomy: config.autonomy,
        rules: Rules::default(),
        assignment: None,
        taint: None,
        exchanges: Vec::new(),
        shelter: Rc::new(client::shelter(config, &Rules::default(), &Settings::of(config))),
        catalogue: Rc::default(),
        now,
        tz: config.timezone,
        chat: Some(chat),
        open_messages: Vec::new(),
        own_words: Vec::new(),
        replies: 0,
        owner_chat: config.owner_chat,
        told_keys: BTreeSet::new(),
        told_today: 0,
        tell_per_day: config.tell_per_day,
        quiet_hours: config.quiet_hours,
        reminders: store.reminders()?,
        // What comes by Telegram comes by a bot, which wakes for what it sets.
        unwoken: if chat.id == ChatRef::TERMINAL { Waker::look(config, now).warning(config) } else { None },
        documents: Documents::new(&config.repo_dir(), Vec::new()),
        index: IndexPlace::of(config),
        meaning: Meaning::default(),
        skills: Vec::new(),
        attachments: Attachments::default(),
        undoable: Vec::new(),
        last_undoable: None,
        shown_tasks: Vec::new(),
    })
}
