//! The `bot` binary; see [`reveille::cli::bot`].

fn main() -> std::process::ExitCode {
    reveille::cli::bot::main()
}
