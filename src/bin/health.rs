//! The `health` binary; see [`reveille::cli::health`].

fn main() -> std::process::ExitCode {
    reveille::cli::health::main()
}
