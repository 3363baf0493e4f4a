//! `bot`: listens on Telegram and stores updates. `wake` does the work under this name; see `src/cli/bot.rs`.

mod launcher;

fn main() -> std::process::ExitCode {
    launcher::run_wake_as("bot")
}
