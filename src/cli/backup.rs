//! `wake backup`: saves everything in one file, and restores it.

use std::{path::PathBuf, process::ExitCode};

use clap::Subcommand;

use reveille_base::{
    clock::parse_time,
    disk,
    words::{self, format_local_time, quote_for_shell},
};
use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::SetAside;

use super::{OutputFormat, complain, print, print_json, report_failure};
use crate::backup::{self, BackupError, BackupMade, BackupManifest, RestoredBackup, SecretsInBackup};

#[derive(Debug, Subcommand)]
pub(super) enum BackupCommand {
    /// Write messages, memory, files, policy and your uncommitted edits into one new file, and test that it restores.
    /// Wakes and the bot may run meanwhile. Only you can read the file (0600), but it isn't encrypted. It says what it leaves
    /// out.
    #[command(after_help = "\
Examples:
  wake backup create reveille.tar
  wake backup create reveille.tar --with-secrets    your .env too, with its keys")]
    Create {
        /// The new file: a tar archive.
        file: PathBuf,
        /// Include your .env, with all keys and tokens. Without it, you have to set everything up again after restoring.
        #[arg(long)]
        with_secrets: bool,
        /// Print one JSON document: file, bytes, manifest.
        #[arg(long)]
        json: bool,
    },
    /// Test a backup by restoring it into a temporary folder, and show what is in it.
    #[command(after_help = "Example: wake backup verify reveille.tar")]
    Verify {
        /// The backup.
        file: PathBuf,
        /// Print one JSON document: manifest, set_aside.
        #[arg(long)]
        json: bool,
    },
    /// Restore a backup into an empty workspace. All work there stays stopped until `wake resume` or /resume.
    /// Open questions become void. Unsent messages may have been sent since: they are sent again after you resume, marked as
    /// repeats.
    #[command(after_help = "\
Examples:
  wake backup restore reveille.tar
  wake backup restore reveille.tar --to ~/reveille-of-monday")]
    Restore {
        /// The backup.
        file: PathBuf,
        /// Restore into this folder instead of the workspace.
        #[arg(long, value_name = "DIR")]
        to: Option<PathBuf>,
        /// Print one JSON document: workspace, set_aside, kept_settings, manifest.
        #[arg(long)]
        json: bool,
    },
}

impl BackupCommand {
    /// Returns `true` if JSON is asked for.
    pub(super) fn is_json(&self) -> bool {
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
pub(super) fn run(config: &Config, command: &BackupCommand, format: OutputFormat) -> ExitCode {
    let now = config.clock().now();
    let done = match command {
        BackupCommand::Create { file, with_secrets, .. } => workspace::open_store(config)
            .map_err(|error| error.to_string())
            .and_then(|store| {
                let secrets = if *with_secrets { SecretsInBackup::Included } else { SecretsInBackup::LeftOut };
                backup::create(config, &store, file, secrets, now).map_err(|error| error.to_string())
            })
            .map(|made| match format {
                OutputFormat::Json => print_json(&made),
                OutputFormat::Text => print(&made_in_words(&made, config)),
            }),
        BackupCommand::Verify { file, .. } => backup::verify(file, now)
            .map(|(manifest, set_aside)| match format {
                OutputFormat::Json => print_json(&VerifiedBackup { manifest, set_aside }),
                OutputFormat::Text => {
                    print(&format!("{} is good: a test restore worked.\n\n", file.display()));
                    print(&describe_manifest(&manifest, config));
                }
            })
            .map_err(|error| error.to_string()),
        BackupCommand::Restore { file, to, .. } => restore_backup(config, file, to.clone(), now)
            .map(|restored| match format {
                OutputFormat::Json => print_json(&restored),
                OutputFormat::Text => print(&describe_restored(&restored, config)),
            })
            .map_err(|error| error.to_string()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => report_failure(&super::build_redactor(config).redact(&why)),
    }
}

fn restore_backup(
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
        complain(&format!("Set REPO_NAME={}: that is the name of the memory's folder.", restored.manifest.repo_name));
    }
    Ok(restored)
}

fn made_in_words(made: &BackupMade, config: &Config) -> String {
    let BackupMade { file, bytes, manifest } = made;
    format!(
        "Backed up to {} ({}); a test restore worked.\n\n{}",
        file.display(),
        disk::format_size(*bytes),
        describe_manifest(manifest, config)
    )
}

fn describe_restored(restored: &RestoredBackup, config: &Config) -> String {
    let RestoredBackup { workspace, set_aside, kept_settings, manifest } = restored;
    let mut text = format!("Restored to {}.\n\n{}\n", workspace.display(), describe_manifest(manifest, config));
    let SetAside { questions, doubtful_parts, open_cycles } = set_aside;
    let mut line = |n: usize, words: &str| {
        if n > 0 {
            text.push_str(&format!("{words}: {n}\n"));
        }
    };
    line(*questions, "Open questions, now void; I'll ask again where I need an answer");
    line(
        *doubtful_parts,
        "Messages that may have been sent since; I'll send them again after you resume, marked as repeats",
    );
    line(*open_cycles, "Unfinished cycles; the next wake resumes them from their journals");
    if *kept_settings {
        text.push_str("The .env here was kept; the one in the backup was left out.\n");
    }
    text.push_str(
        "\nAll work is stopped. Make sure that nothing still runs on the old machine. To continue, run: wake resume\n",
    );
    if *workspace != config.workspace_dir {
        text.push_str(&format!("(with WORKSPACE_DIR={})\n", quote_for_shell(workspace)));
    }
    text
}

fn describe_manifest(manifest: &BackupManifest, config: &Config) -> String {
    let at = parse_time(&manifest.created_at).map(|at| format_local_time(at, config.timezone)).unwrap_or_default();
    let holds = manifest.holds;
    let mut text = format!("Made {at} by {} (schema {}).\n", manifest.program, manifest.schema);
    text.push_str(&format!(
        "Database: {}, {}, {} to come.\n",
        format_count(holds.messages, "message"),
        format_count(holds.wakes, "wake"),
        format_count(holds.reminders, "reminder")
    ));
    match &manifest.memory {
        Some(memory) => {
            let head = memory.head.as_deref().and_then(|head| head.get(..10)).unwrap_or("no commit yet");
            text.push_str(&format!("Memory: its whole history, {} at {head}.\n", memory.branch));
        }
        None => text.push_str("Memory: none yet.\n"),
    }
    let edits: Vec<&str> = manifest.list_uncommitted().collect();
    if !edits.is_empty() {
        text.push_str(&format!("Your uncommitted edits: {}.\n", edits.join(", ")));
    }
    let rest: Vec<String> = manifest
        .members
        .iter()
        .filter(|member| !member.path.starts_with("edits/") && !member.path.starts_with("me"))
        .map(|member| format!("{} ({})", member.path, disk::format_size(member.bytes)))
        .collect();
    if !rest.is_empty() {
        text.push_str(&format!("Files: {}.\n", rest.join(", ")));
    }
    if !manifest.settings.is_empty() {
        text.push_str(&format!("Settings to enter again: {}.\n", manifest.settings.join(", ")));
    }
    for left in &manifest.left_out {
        text.push_str(&format!("Left out: {} ({}).\n", left.what, left.why));
    }
    text
}

fn format_count(n: i64, what: &str) -> String {
    words::format_count(usize::try_from(n).unwrap_or(0), what)
}
