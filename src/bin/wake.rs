//! `wake`, which is also `bot` and `health` when it is called so; see [`reveille::cli::main`].

fn main() -> std::process::ExitCode {
    reveille::cli::main()
}
