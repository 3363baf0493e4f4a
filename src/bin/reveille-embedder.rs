//! The `reveille-embedder` binary; see [`reveille::cli::embedder`].

fn main() -> std::process::ExitCode {
    reveille::cli::embedder::main()
}
