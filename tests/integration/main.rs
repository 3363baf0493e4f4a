//! The integration tests: stories told through real sockets, files, repositories and processes. One binary, one file a
//! story.

// `cfg(test)` holds for all of this; said aloud, it tells clippy that this is test code.
#[cfg(test)]
mod approvals;
#[cfg(test)]
mod backup;
#[cfg(test)]
mod bot;
#[cfg(test)]
mod bundle;
#[cfg(test)]
mod capabilities;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod chain_settings;
#[cfg(test)]
mod channel_telegram;
#[cfg(test)]
mod chat;
#[cfg(test)]
mod chats;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod claude_code;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod cycle;
#[cfg(test)]
mod cycle_due;
#[cfg(test)]
mod cycle_later;
#[cfg(test)]
mod cycle_resume;
#[cfg(test)]
mod cycle_safety;
#[cfg(test)]
mod cycle_tools;
#[cfg(test)]
mod cycle_trouble;
#[cfg(test)]
mod cycle_turns;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod did;
#[cfg(test)]
mod disk;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod door;
#[cfg(test)]
mod due_dates;
#[cfg(test)]
mod embed;
#[cfg(test)]
mod eval;
#[cfg(test)]
mod exec_files;
#[cfg(test)]
mod exec_shell;
#[cfg(test)]
mod fetch_model;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod fleet;
#[cfg(test)]
mod fold;
#[cfg(test)]
mod git;
#[cfg(test)]
mod health;
#[cfg(test)]
mod held_files;
#[cfg(test)]
mod import;
#[cfg(test)]
mod import_reported;
#[cfg(test)]
mod in_chat;
#[cfg(test)]
mod init;
#[cfg(test)]
mod init_beside;
#[cfg(test)]
mod initiative;
#[cfg(test)]
mod install;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod jobs;
#[cfg(test)]
mod knows_itself;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod lean;
#[cfg(test)]
mod lease;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod live;
#[cfg(test)]
mod local;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod long_tasks;
#[cfg(test)]
mod lost_database;
#[cfg(test)]
mod machines;
#[cfg(test)]
mod machines_ref;
#[cfg(test)]
mod mcp_client;
#[cfg(test)]
mod mcp_peers;
#[cfg(test)]
mod mcp_server;
#[cfg(test)]
mod media;
#[cfg(test)]
mod media_kinds;
#[cfg(test)]
mod media_pdf;
#[cfg(test)]
mod memory_search;
#[cfg(test)]
mod memory_worlds;
#[cfg(test)]
mod model_anthropic;
#[cfg(test)]
mod model_clouds;
#[cfg(test)]
mod model_openai;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod model_peers;
#[cfg(test)]
mod names;
#[cfg(test)]
mod offline_day;
#[cfg(test)]
mod orders;
#[cfg(test)]
mod orders_changed;
#[cfg(test)]
mod page;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod persons_edits;
#[cfg(test)]
mod plain_stop;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod projects;
#[cfg(test)]
mod provenance;
#[cfg(test)]
mod recalled;
#[cfg(test)]
mod recordings;
#[cfg(test)]
mod reflect;
#[cfg(test)]
mod reminded;
#[cfg(test)]
mod reminders_changed;
#[cfg(test)]
mod remote;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod rich;
#[cfg(test)]
mod rules;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod settings;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod shared_faults;
#[cfg(feature = "postgres")]
#[cfg(test)]
mod shared_store;
#[cfg(test)]
mod shell_share;
#[cfg(test)]
mod simulated_disk;
#[cfg(test)]
mod stop;
#[cfg(test)]
mod stories;
#[cfg(test)]
#[expect(dead_code, reason = "the fault campaign needs more of it than the stories")]
mod support;
#[cfg(test)]
mod terminal;
#[cfg(test)]
mod time;
#[cfg(test)]
mod typed_answers;
#[cfg(test)]
mod undo;
#[cfg(test)]
mod undo_files;
#[cfg(test)]
mod units;
#[cfg(test)]
mod unwoken;
#[cfg(test)]
mod updates;
#[cfg(target_os = "linux")]
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod voice;
#[cfg(test)]
mod wake;
#[cfg(test)]
mod web;
