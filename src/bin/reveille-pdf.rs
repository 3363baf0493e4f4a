//! The `reveille-pdf` binary; see [`reveille::cli::pdf`].

fn main() -> std::process::ExitCode {
    reveille::cli::pdf::main()
}
