//! `health`: finds and repairs the traces of crashes. `wake` does the work under this name; see `src/cli/health.rs`.

mod launcher;

fn main() -> std::process::ExitCode {
    launcher::run_wake_as("health")
}
