//! `health`: finds and repairs what crashed. `wake` does it under this name; see `src/cli/health.rs`.

mod launcher;

fn main() -> std::process::ExitCode {
    launcher::run_wake_as("health")
}
