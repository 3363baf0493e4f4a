//! The `wake` binary; see [`reveille::cli::wake`].

fn main() -> std::process::ExitCode {
    reveille::cli::wake::main()
}
