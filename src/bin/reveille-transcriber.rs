//! The `reveille-transcriber` binary; see [`reveille::cli::transcriber`].

fn main() -> std::process::ExitCode {
    reveille::cli::transcriber::main()
}
