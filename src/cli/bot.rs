//! `bot`: the door to Telegram.

use std::process::ExitCode;

/// Runs the binary.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
