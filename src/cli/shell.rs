//! `wake completions` and `wake man`: shell completions and manual pages, generated from the arguments.

use std::process::ExitCode;

use clap::{Command, CommandFactory as _};
use clap_complete::Shell;

use super::{EXIT_USAGE, arguments::Arguments, bot, complain, health, out, report_failure};

/// One of the programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Program {
    /// The program for everyday use.
    Wake,
    /// The Telegram bot.
    Bot,
    /// Checks and repairs.
    Health,
}

impl Program {
    fn build_command(self) -> Command {
        match self {
            Self::Wake => Arguments::command(),
            Self::Bot => bot::build_command(),
            Self::Health => health::build_command(),
        }
    }
}

/// Prints the completion script of a program for a shell.
pub(super) fn print_completions(shell: Shell, program: Program) -> ExitCode {
    let mut command = program.build_command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    out::print_exactly(&String::from_utf8_lossy(&script));
    ExitCode::SUCCESS
}

/// Prints the manual page of a program or one of its commands.
pub(super) fn print_manual(program: Program, words: &[String]) -> ExitCode {
    let mut command = program.build_command();
    command.build();
    let mut name = command.get_name().to_owned();
    for word in words {
        let Some(found) = command.find_subcommand(word).cloned() else {
            complain(&format!("{name} has no command {word:?}; `{name} --help` lists them."));
            return ExitCode::from(EXIT_USAGE);
        };
        name = format!("{name} {word}");
        command = found;
    }
    let mut page = Vec::new();
    match clap_mangen::Man::new(command).render(&mut page) {
        Ok(()) => {
            out::print_exactly(&String::from_utf8_lossy(&page));
            ExitCode::SUCCESS
        }
        Err(error) => report_failure(&error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_arguments_hang_together() {
        for program in [Program::Wake, Program::Bot, Program::Health] {
            program.build_command().debug_assert();
        }
    }
}
