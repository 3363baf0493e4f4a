//! The `reveille-ear` binary; see [`reveille::cli::ear`].

fn main() -> std::process::ExitCode {
    reveille::cli::ear::main()
}
