//! Setting up: the questions, the check of each answer, and one write of all settings.
//!
//! Steps and checks are values without a terminal: `wake init` asks them there, and a page can show them. A check takes resolved settings,
//! so that it applies to a new answer and an old setting alike. [`install`] makes the assistant wake by itself.

mod check;
pub mod install;
mod local_models;
mod models;
mod names;
mod servers;
mod shown;
mod steps;
mod write;

pub use self::{
    check::{CheckReach, CheckTools, Checked, check_step},
    local_models::FoundServer,
    names::{AssistantNames, DEFAULT_NAME, parse_names, read_names, with_names},
    servers::{KnownServer, is_example_server},
    shown::{SettingGroup, ShownSetting, changed_since, find_value, list_settings},
    steps::{ParsedAnswer, SetupQuestion, SetupStep, copy_environment, parse_setting},
    write::{SaveError, WriteError, save_changes, write_settings},
};
