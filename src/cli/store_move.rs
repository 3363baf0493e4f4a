//! `wake store`: moves the database from the workspace's file to a shared server, or back.

use std::{fs, process::ExitCode};

use clap::Subcommand;

use reveille_config::Config;
use reveille_cycle::workspace;
use reveille_store::{database, wake_lock::WakeLock};

use super::{EXIT_FAILED, complain, print};

/// The name of the workspace's own file on the command line.
const FILE: &str = "file";

#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// Move everything into another, empty database, and compare the two. Afterwards you change the settings yourself.
    #[command(after_help = "\
Examples:
  wake store move --to postgres://reveille@db.example.org/reveille
  wake store move --to file")]
    Move {
        /// The address of a PostgreSQL server, or `file` for the workspace's own. The password is read from DATABASE_PASSWORD_FILE.
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

pub(super) fn run(config: &Config, StoreCommand::Move { to }: &StoreCommand) -> ExitCode {
    match move_store(config, to) {
        Ok(said) => {
            print(&said);
            ExitCode::SUCCESS
        }
        Err(why) => {
            complain(&format!("{why} Nothing was moved."));
            ExitCode::from(EXIT_FAILED)
        }
    }
}

fn move_store(config: &Config, to: &str) -> Result<String, String> {
    let is_file = to == FILE;
    if is_file == config.database_url.is_none() {
        let why = if is_file {
            "The database is the workspace's file already."
        } else {
            "The database is shared already: DATABASE_URL is set."
        };
        return Err(why.to_owned());
    }
    // Concurrent writes would be lost.
    let _wake = WakeLock::take(&config.lock_path()).map_err(|_| "A wake is running: try again when it is done.")?;
    let _bot = WakeLock::take(&config.bot_lock_path()).map_err(|_| "The bot is running: stop it first.")?;
    let told = |error: reveille_store::StoreError| format!("{error}.");
    let target = Config { database_url: (!is_file).then(|| to.to_owned()), ..config.clone() };
    let from = workspace::open_database(config).map_err(told)?;
    let mut there = database::open(&target).map_err(told)?;
    let rows = from.copy_all_rows(&mut there).map_err(told)?;
    drop((from, there));
    if is_file {
        return Ok(format!(
            "Moved {rows} rows into {} and compared them. Now remove DATABASE_URL from your settings. The shared database keeps its \
             content: let no other machine continue with it.",
            config.db_path().display()
        ));
    }
    let (path, now) = (config.db_path(), config.clock().now());
    let aside = path.with_extension(format!("db.moved-{}", now.format("%Y%m%dT%H%M%SZ")));
    fs::rename(&path, &aside)
        .map_err(|why| format!("Everything was copied, but {} couldn't be moved aside: {why}.", path.display()))?;
    Ok(format!(
        "Moved {rows} rows and compared them. Now set DATABASE_URL={to}. The old file is kept: {}.",
        aside.display()
    ))
}
