//! `wake backup`: saves everything in one file, and restores it.

use std::{path::PathBuf, process::ExitCode};

use clap::Subcommand;

use reveille_base::{
    clock::parse_time,
    disk,
    words::{self, in_shell, local},
};
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::SetAside;

use super::{complain, failed, print, print_json};
use crate::backup::{self, BackupError, BackupMade, BackupManifest, RestoredBackup};

#[derive(Debug, Subcommand)]
pub(super) enum BackupCommand {
    /// Write messages, memory, files, policy and what you haven't committed into one new file, and restore it for a try.
    ///
    /// Wakes and the bot may run meanwhile. The file is for you alone (0600), and isn't encrypted. What isn't in it is named.
    #[command(after_help = "\
Examples:
  wake backup create reveille.tar
  wake backup create reveille.tar --with-secrets    your .env too, with its keys")]
    Create {
        /// The new file: a tar archive.
        file: PathBuf,
        /// Put your .env into it, with all keys and tokens. Else the settings have to be made anew.
        #[arg(long)]
        with_secrets: bool,
        /// Print one JSON document: file, bytes, manifest.
        #[arg(long)]
        json: bool,
    },
    /// Restore a backup into a folder that is gone afterwards, and say what is in it.
    #[command(after_help = "Example: wake backup verify reveille.tar")]
    Verify {
        /// The backup.
        file: PathBuf,
        /// Print one JSON document: manifest, set_aside.
        #[arg(long)]
        json: bool,
    },
    /// Restore a backup into an empty workspace. All work is stopped there, until `wake resume` or /resume.
    ///
    /// Questions that were open are void. What was to be sent may have been sent since: it is sent once more after you resume, marked
    /// as a repeat.
    #[command(after_help = "\
Examples:
  wake backup restore reveille.tar
  wake backup restore reveille.tar --to ~/reveille-of-monday")]
    Restore {
        /// The backup.
        file: PathBuf,
        /// Restore into this folder in place of the workspace.
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Print one JSON document: workspace, set_aside, kept_settings, manifest.
        #[arg(long)]
        json: bool,
    },
}

impl BackupCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn json(&self) -> bool {
        match self {
            Self::Create { json, .. } | Self::Verify { json, .. } | Self::Restore { json, .. } => *json,
        }
    }
}

/// The result of `verify`, as JSON.
#[derive(serde::Serialize)]
struct VerifiedBackup {
    manifest: BackupManifest,
    set_aside: SetAside,
}

/// Creates, verifies or restores a backup.
pub(super) fn run(config: &Config, command: &BackupCommand, json: bool) -> ExitCode {
    let now = config.clock().now();
    let done = match command {
        BackupCommand::Create { file, with_secrets, .. } => workspace::open_store(config)
            .map_err(|error| error.to_string())
            .and_then(|store| {
                backup::create(config, &store, file, *with_secrets, now).map_err(|error| error.to_string())
            })
            .map(|made| match json {
                true => print_json(&made),
                false => print(&made_in_words(&made, config)),
            }),
        BackupCommand::Verify { file, .. } => backup::verify(file, now)
            .map(|(manifest, set_aside)| match json {
                true => print_json(&VerifiedBackup { manifest, set_aside }),
                false => {
                    print(&format!("{} is sound: restoring it works.\n\n", file.display()));
                    print(&in_words(&manifest, config));
                }
            })
            .map_err(|error| error.to_string()),
        BackupCommand::Restore { file, to, .. } => restored(config, file, to.clone(), now)
            .map(|restored| match json {
                true => print_json(&restored),
                false => print(&restored_in_words(&restored, config)),
            })
            .map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => failed(&super::redactor(config).redact(&why)),
    }
}

fn restored(
    config: &Config,
    file: &std::path::Path,
    to: Option<PathBuf>,
    now: chrono::DateTime<chrono::Utc>,
) -> Result<RestoredBackup, BackupError> {
    let workspace_dir = match to {
        Some(to) => std::path::absolute(&to).unwrap_or(to),
        None => config.workspace_dir.clone(),
    };
    let config = Config { workspace_dir, ..config.clone() };
    let restored = backup::restore(&config, file, now)?;
    if restored.manifest.repo_name != config.repo_name {
        complain(&format!("Set REPO_NAME={}: the memory's folder is called so.", restored.manifest.repo_name));
    }
    Ok(restored)
}

fn made_in_words(made: &BackupMade, config: &Config) -> String {
    let BackupMade { file, bytes, manifest } = made;
    format!(
        "Backed up to {} ({}), and restored from it for a try.\n\n{}",
        file.display(),
        disk::size(*bytes),
        in_words(manifest, config)
    )
}

fn restored_in_words(restored: &RestoredBackup, config: &Config) -> String {
    let RestoredBackup { workspace, set_aside, kept_settings, manifest } = restored;
    let mut text = format!("Restored to {}.\n\n{}\n", workspace.display(), in_words(manifest, config));
    let SetAside { questions, doubtful_parts, open_cycles } = set_aside;
    let mut line = |n: usize, words: &str| {
        if n > 0 {
            text.push_str(&format!("{words}: {n}\n"));
        }
    };
    line(*questions, "Open questions, now void; what needs them asks again");
    line(*doubtful_parts, "Messages that may have been sent since; sent once more after you resume, marked as repeats");
    line(*open_cycles, "Wakes that were under way; the next one goes on from what they wrote down");
    if *kept_settings {
        text.push_str("The .env that was here stands; the one in the backup was left out.\n");
    }
    text.push_str(
        "\nAll work is stopped. Make sure that nothing runs on the old machine any more. Then: wake resume\n",
    );
    if *workspace != config.workspace_dir {
        text.push_str(&format!("(with WORKSPACE_DIR={})\n", in_shell(workspace)));
    }
    text
}

fn in_words(manifest: &BackupManifest, config: &Config) -> String {
    let at = parse_time(&manifest.created_at).map(|at| local(at, config.timezone)).unwrap_or_default();
    let holds = manifest.holds;
    let mut text = format!("Made {at} by {} (schema {}).\n", manifest.program, manifest.schema);
    text.push_str(&format!(
        "Database: {}, {}, {} to come.\n",
        counted(holds.messages, "message"),
        counted(holds.wakes, "wake"),
        counted(holds.reminders, "reminder")
    ));
    match &manifest.memory {
        Some(memory) => {
            let head = memory.head.as_deref().and_then(|head| head.get(..10)).unwrap_or("no commit yet");
            text.push_str(&format!("Memory: all of its history, {} at {head}.\n", memory.branch));
        }
        None => text.push_str("Memory: none yet.\n"),
    }
    let edits: Vec<&str> = manifest.uncommitted().collect();
    if !edits.is_empty() {
        text.push_str(&format!("Your edits that aren't committed: {}.\n", edits.join(", ")));
    }
    let rest: Vec<String> = manifest
        .members
        .iter()
        .filter(|member| !member.path.starts_with("edits/") && !member.path.starts_with("me"))
        .map(|member| format!("{} ({})", member.path, disk::size(member.bytes)))
        .collect();
    if !rest.is_empty() {
        text.push_str(&format!("Files: {}.\n", rest.join(", ")));
    }
    if !manifest.settings.is_empty() {
        text.push_str(&format!("Settings to make anew: {}.\n", manifest.settings.join(", ")));
    }
    for left in &manifest.left_out {
        text.push_str(&format!("Left out: {} ({}).\n", left.what, left.why));
    }
    text
}

fn counted(n: i64, what: &str) -> String {
    words::count(usize::try_from(n).unwrap_or(0), what)
}
