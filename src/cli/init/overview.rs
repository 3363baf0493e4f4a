//! Shows the settings and their checks, one line per step.

use std::process::ExitCode;

use serde_json::json;

use reveille_config::{GivenSettings, SettingChanges, SettingProblem};
use reveille_store::database;

use super::{
    super::{EXIT_FAILED, EXIT_OK, OutputFormat, print, print_json},
    build_check_tools,
};
use crate::setup::{self, CheckReach, Checked, SetupStep};

/// Returns each applicable step with its check result, and all other problems.
pub(super) async fn check_steps(
    said: &GivenSettings,
    changes: &SettingChanges,
    reach: CheckReach,
    is_over: &dyn Fn() -> bool,
) -> (Vec<(SetupStep, Checked)>, Vec<SettingProblem>) {
    let (config, mut problems) = said.with_valid_settings(changes);
    let Some(mut config) = config else { return (Vec::new(), problems) };
    if let Ok(Some(store)) = database::open_read_only(&config) {
        // An old database may lack the choices table.
        config.chosen_model = store.chats().find_chosen_value("MODEL", &config.model).ok().flatten();
    }
    let temporary = std::env::temp_dir();
    let mut states = Vec::new();
    for step in SetupStep::ALL {
        if step.settings().is_empty() || !step.is_applicable(&config) {
            continue;
        }
        let own = problems.iter().position(|problem| step.settings().contains(&problem.subject.as_str()));
        let checked = match own {
            Some(at) => Checked::Wrong(problems.remove(at).to_string()),
            None => setup::check_step(step, &config, build_check_tools(&temporary, reach, is_over)).await,
        };
        states.push((step, checked));
    }
    (states, problems)
}

/// Renders the line of a step.
pub(super) fn render_step(step: SetupStep, checked: &Checked) -> String {
    let sign = match checked {
        Checked::Good(_) => '✓',
        Checked::Wrong(_) => '✗',
        Checked::Unknown(_) => '?',
    };
    format!("{sign} {:<11} {}", step.title(), checked.text())
}

pub(super) fn print_states(states: &[(SetupStep, Checked)], format: OutputFormat) {
    for (step, checked) in states {
        if format.is_json() {
            let state = match checked {
                Checked::Good(_) => "good",
                Checked::Wrong(_) => "wrong",
                Checked::Unknown(_) => "unknown",
            };
            print_json(
                &json!({"step": step.title(), "settings": step.settings(), "state": state, "told": checked.text()}),
            );
        } else {
            print(&format!("{}\n", render_step(*step, checked)));
        }
    }
}

/// Prints the state for `wake init --check`.
pub(super) async fn print_overview(said: &GivenSettings, format: OutputFormat) -> ExitCode {
    let (states, problems) = check_steps(said, &SettingChanges::new(), CheckReach::Others, &|| false).await;
    print_states(&states, format);
    for problem in &problems {
        if format.is_json() {
            print_json(
                &json!({"step": null, "settings": [problem.subject], "state": "wrong", "told": problem.to_string()}),
            );
        } else {
            print(&format!("✗ {problem}\n"));
        }
    }
    let is_well = problems.is_empty() && states.iter().all(|(_, checked)| checked.is_good());
    ExitCode::from(if is_well && !states.is_empty() { EXIT_OK } else { EXIT_FAILED })
}
