//! `sandbox` and `mcp`: checks that commands can be confined on this machine, and that the servers of `mcp.toml` have their
//! programs. No server is started; `wake mcp list` does that.

use std::path::{Path, PathBuf};

use reveille_base::process;
use reveille_config::OFFLINE_MODEL;
use reveille_sandbox::Sandbox;
use reveille_tools::mcp::client::settings::{Server, ServerPlace, Settings};

use crate::health::{
    finding::{Finding, Trouble},
    scene::Scene,
    words::format_count,
};

pub(super) fn check_sandbox(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    if scene.effective_config().effective_model() == OFFLINE_MODEL {
        return Ok(Finding::ok("not needed: without an AI model I run no commands"));
    }
    if scene.is_brief {
        return Ok(Finding::ok("not tested now"));
    }
    Ok(judge_sandbox(&Sandbox::detect(&process::resolve_sibling_program("wake"), &std::env::temp_dir())))
}

fn judge_sandbox(found: &Sandbox) -> Finding {
    match found {
        Sandbox::Bubblewrap { .. } => Finding::ok("commands are confined by bubblewrap"),
        Sandbox::Seatbelt { .. } => Finding::ok("commands are confined by macOS"),
        Sandbox::None { why } => Finding::warn(
            format!("{why}; I ask before each command"),
            "fix what it names; until then I run nothing unasked",
        ),
    }
}

pub(super) fn check_mcp(scene: &Scene<'_>) -> Result<Finding, Trouble> {
    let settings = Settings::for_workspace(scene.config);
    let missing = settings.servers.iter().filter_map(|server| Some((server.name.as_str(), find_missing(server)?)));
    Ok(judge_mcp(settings.servers.len(), &settings.problems, &missing.collect::<Vec<_>>()))
}

/// Returns the program of a server if it is missing.
fn find_missing(server: &Server) -> Option<PathBuf> {
    let ServerPlace::Command { command, .. } = &server.place else { return None };
    let program = Path::new(command.first()?);
    process::find_program(program).is_none().then(|| program.to_owned())
}

fn judge_mcp(servers: usize, problems: &[String], missing: &[(&str, PathBuf)]) -> Finding {
    let wrong = problems.iter().map(|problem| Finding::warn(problem.trim_end_matches('.'), "correct mcp.toml"));
    let absent = missing.iter().map(|(name, program)| {
        Finding::warn(
            format!("the server {name} can't start: {} is missing", program.display()),
            "install it, or give its absolute path in mcp.toml; then `wake mcp list`",
        )
    });
    let summary = match servers {
        0 => "none set up".to_owned(),
        n => format!("{} set up; `wake mcp list` tries them", format_count(n, "server")),
    };
    Finding::merge_all(wrong.chain(absent).collect(), Finding::ok(summary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::Status;

    #[test]
    fn a_missing_sandbox_is_reported_with_what_to_do() {
        let none = Sandbox::None { why: "bubblewrap isn't installed (apt-get install bubblewrap)".to_owned() };
        let finding = judge_sandbox(&none);
        assert!(finding.status == Status::Warn && finding.detail.contains("apt-get install"), "{finding:?}");
        let there = Sandbox::Bubblewrap { program: "/usr/bin/bwrap".into(), launcher: "/bin/wake".into() };
        assert_eq!(judge_sandbox(&there).status, Status::Ok);
    }

    #[test]
    fn a_server_that_can_not_start_is_reported_by_name() {
        assert_eq!(judge_mcp(0, &[], &[]), Finding::ok("none set up"));
        assert_eq!(judge_mcp(2, &[], &[]).status, Status::Ok);
        let problem = ["The MCP server \"a\" is not used: unknown field.".to_owned()];
        let finding = judge_mcp(1, &problem, &[("notes", "npx".into())]);
        assert_eq!(finding.status, Status::Warn);
        assert!(
            finding.detail.contains("\"a\" is not used") && finding.detail.contains("npx is missing"),
            "{finding:?}"
        );
    }
}
