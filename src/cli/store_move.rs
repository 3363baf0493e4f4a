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
    /// Move everything into another database, which has to be empty, and compare. The settings are yours to change afterwards.
    #[command(after_help = "\
Examples:
  wake store move --to postgres://reveille@db.example.org/reveille
  wake store move --to file")]
    Move {
        /// The address of a PostgreSQL, or `file`: the workspace's own. A password is read from DATABASE_PASSWORD_FILE.
        #[arg(long, value_name = "URL")]
        to: String,
    },
}

pub(super) fn run(config: &Config, StoreCommand::Move { to }: &StoreCommand) -> ExitCode {
    match moved(config, to) {
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

fn moved(config: &Config, to: &str) -> Result<String, String> {
    let is_file = to == FILE;
    if is_file == config.database_url.is_none() {
        let why =
            if is_file { "It is the workspace's file already." } else { "It is shared already: DATABASE_URL is set." };
        return Err(why.to_owned());
    }
    // Concurrent writes would be lost.
    let _wake = WakeLock::take(&config.lock_path()).map_err(|_| "A wake is at work: try again once it is done.")?;
    let _bot = WakeLock::take(&config.bot_lock_path()).map_err(|_| "The bot is running: stop it first.")?;
    let told = |error: reveille_store::StoreError| format!("{error}.");
    let target = Config { database_url: (!is_file).then(|| to.to_owned()), ..config.clone() };
    let from = workspace::open(config).map_err(told)?;
    let mut there = database::open(&target).map_err(told)?;
    let rows = from.copy_to(&mut there).map_err(told)?;
    drop((from, there));
    if is_file {
        return Ok(format!(
            "{rows} rows were moved into {}, and read there as they were. Now take DATABASE_URL out of your settings. What is in the \
             shared database stays there: let no other machine go on with it.",
            config.db_path().display()
        ));
    }
    let (path, now) = (config.db_path(), config.clock().now());
    let aside = path.with_extension(format!("db.moved-{}", now.format("%Y%m%dT%H%M%SZ")));
    fs::rename(&path, &aside)
        .map_err(|why| format!("All was copied, but {} couldn't be put aside: {why}.", path.display()))?;
    Ok(format!(
        "{rows} rows were moved, and read there as they were. Now set DATABASE_URL={to}. The old file is kept: {}.",
        aside.display()
    ))
}
