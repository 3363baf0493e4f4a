//! The `reveille-page` binary; see [`reveille::cli::page`].

fn main() -> std::process::ExitCode {
    reveille::cli::page::main()
}
