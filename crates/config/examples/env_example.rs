//! Prints `.env.example` from the table of settings.

#[expect(clippy::print_stdout, reason = "its output is the file")]
fn main() {
    print!("{}", reveille_config::render_example());
}
