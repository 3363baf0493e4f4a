//! `wake`, which also acts as `bot` and `health` under those names; see [`reveille::cli::main`].

fn main() -> std::process::ExitCode {
    reveille::cli::main()
}
