//! `bot`: listens on Telegram and stores what comes. `wake` does it under this name; see `src/cli/bot.rs`.

mod launcher;

fn main() -> std::process::ExitCode {
    launcher::run_wake_as("bot")
}
