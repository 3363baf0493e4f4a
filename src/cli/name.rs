//! `wake name`: shows or changes the assistant's name, as the person's own commit.

use std::process::ExitCode;

use reveille_account::provenance::ProvenanceError;
use reveille_config::Config;
use reveille_git::FileChange;
use reveille_memory::{CLAUDE, own_name};

use super::{
    EXIT_USAGE, complain, print,
    provenance::{self, report_commit, with_person_session},
    report_failure,
};

#[derive(Debug, clap::Args)]
pub(super) struct NameArguments {
    /// The new name; without it, the current name is printed.
    name: Vec<String>,
}

pub(super) fn run(config: &Config, arguments: &NameArguments) -> ExitCode {
    let repo = match super::history::open_repo(config) {
        Ok(repo) => repo,
        Err(code) => return code,
    };
    let orders = match repo.read_work_tree(CLAUDE) {
        Ok(orders) => orders.unwrap_or_default(),
        Err(error) => return report_failure(&error),
    };
    if arguments.name.is_empty() {
        return match own_name::own_name(&orders) {
            Some(name) => {
                print(&format!("{name}\n"));
                ExitCode::SUCCESS
            }
            None => report_refusal(&own_name::OwnNameError::NoPlace),
        };
    }
    let name = arguments.name.join(" ");
    if let Err(why) = own_name::replace_name(&orders, &name) {
        return report_refusal(&why);
    }
    drop(repo);
    let made = with_person_session(config, |hand| {
        // Read again under the lock, since a wake may have changed the file meanwhile.
        let now = hand.repo.read_work_tree(CLAUDE)?;
        let renamed = own_name::replace_name(now.as_deref().unwrap_or_default(), &name)
            .map_err(|why| ProvenanceError::Refused(format!("{why}. Nothing was changed.")))?;
        let name = own_name::own_name(&renamed).unwrap_or_default().to_owned();
        if now.as_ref() == Some(&renamed) {
            return Ok((name, None));
        }
        let change = FileChange { path: CLAUDE.to_owned(), base: now, content: Some(renamed) };
        let subject = format!("Call the assistant {name}");
        let did = format!("called the assistant {name}");
        Ok((name, Some(hand.commit_step(&[change], &subject, &did)?)))
    });
    match made {
        Ok((name, Some(made))) => {
            print(&format!("The assistant is now called {name}.\n"));
            report_commit(&made);
            ExitCode::SUCCESS
        }
        Ok((name, None)) => {
            print(&format!("The assistant is already called {name}.\n"));
            ExitCode::SUCCESS
        }
        Err(error) => provenance::report_refusal(&error),
    }
}

fn report_refusal(why: &own_name::OwnNameError) -> ExitCode {
    complain(&format!("{why}. Nothing was changed."));
    ExitCode::from(EXIT_USAGE)
}
