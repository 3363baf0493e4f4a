//! Layer 8: tests of the suite that show a promise of docs/SECURITY.md by themselves. The suite runs them anyway; here they are held
//! against their broken variants.

use std::{path::Path, process::Stdio};

/// Where a test is, and its name.
const STORIES: &[(&str, &str)] = &[
    ("integration", "approvals::nobody_else_nowhere_else_and_no_other_button_decides"),
    ("integration", "approvals::a_thousand_taps_run_it_once"),
    ("integration", "approvals::no_answer_in_time_is_a_no_and_the_question_says_so"),
    ("integration", "channel_telegram::a_rendered_answer_arrives_formatted_and_without_previews"),
    ("integration", "progress::no_step_of_a_plan_is_a_link_in_the_line"),
    ("integration", "stop::stop_drops_the_request_and_outlives_restarts_and_resume_goes_on_as_it_was"),
    ("integration", "stop::programs_that_a_stopped_wake_has_started_are_dead_when_the_order_is_carried_out"),
    ("integration", "mind_safety::links_are_text_in_an_answer_that_a_forwarded_message_had_a_hand_in"),
    ("integration", "web::a_redirect_that_leads_inside_is_not_followed"),
    ("integration", "web::a_redirect_to_where_a_rule_speaks_against_it_is_told_and_not_followed"),
    ("integration", "chats::a_guest_reads_the_public_web_alone_whatever_is_granted"),
    ("lib", "sandbox::proxy::tests::what_isnt_granted_is_neither_resolved_nor_dialled"),
    ("lib", "sandbox::proxy::tests::a_name_that_leads_inside_is_refused_and_never_dialled"),
    ("integration", "hands_shell::without_a_sandbox_each_command_asks_and_runs_unconfined_after_a_yes_to_just_that"),
    ("integration", "hands_shell::a_yes_to_a_confined_command_is_none_to_an_unconfined_one"),
    (
        "integration",
        "mcp_client::without_a_sandbox_each_call_asks_and_its_server_runs_unconfined_after_a_yes_to_just_that",
    ),
    ("lib", "mcp::client::tools::tests::without_a_sandbox_every_call_asks_and_only_what_was_agreed_to_runs"),
    ("lib", "policy::rules::pattern::tests::a_path_s_star_stays_within_a_part"),
    ("lib", "channel::telegram::incoming::tests::only_listed_people_are_heard"),
    ("lib", "queue::tests::joined::what_is_said_to_others_is_forgotten_unless_we_are_named_at_once"),
    ("lib", "queue::tests::joined::the_rest_of_a_text_that_reads_like_a_command_is_no_order"),
    ("lib", "queue::tests::moved::what_is_to_be_sent_to_a_group_waits_until_its_new_id_is_listed"),
    ("lib", "redact::tests::base64_is_masked_at_each_alignment_inside_longer_text"),
    ("lib", "redact::tests::none_of_two_thousand_planted_secrets_survives_in_any_form"),
    ("lib", "repo::tests::remotes::the_repositorys_own_programs_are_not_run"),
    ("integration", "mind_safety::the_programs_own_secrets_reach_no_request_commit_or_message"),
    ("lib", "repo::tests::publishing::a_secret_of_the_persons_stays_in_their_file_and_out_of_the_commit"),
    ("lib", "repo::tests::secrets::a_secret_that_a_person_committed_stays_here_until_they_take_it_out"),
    ("lib", "repo::tests::secrets::a_new_secret_beside_one_that_is_there_already_stays_here"),
    ("lib", "repo::tests::publishing::a_name_that_holds_a_secret_is_left_out_of_the_commit"),
    ("integration", "mind_safety::no_document_is_named_after_a_secret"),
    ("lib", "hands::beneath::tests::our_own_state_is_not_met_within_a_granted_folder"),
    ("lib", "process::tests::a_process_is_alive_until_it_is_dead_and_a_reused_pid_is_someone_else"),
    ("lib", "web::dial::tests::no_spelling_of_an_address_that_is_not_public_is_dialled"),
    ("integration", "limits::a_request_that_might_pass_the_cap_is_not_sent"),
    ("integration", "limits::at_a_limit_a_person_is_asked_and_a_yes_lets_it_go_on"),
    ("integration", "limits::a_mind_that_goes_round_in_circles_is_stopped_and_its_person_told_how"),
    ("integration", "limits::working_time_is_counted_over_wakes_and_bounded"),
    ("lib", "cycle::machine::tests::a_plan_is_raised_once_and_never_begins_to_count_anew"),
    ("integration", "limits::who_was_answered_in_the_middle_of_work_hears_that_the_rest_of_it_waits_for_the_budget"),
    ("integration", "claude_code::a_command_that_has_tools_of_its_own_is_not_used"),
    ("integration", "claude_code::only_calls_of_ours_are_taken_for_calls_and_one_that_has_to_ask_ends_its_run"),
    ("integration", "claude_code::it_is_given_no_secret_but_its_login"),
    ("integration", "mcp_client::changed_tools_are_not_called_until_a_person_has_accepted_what_changed"),
    ("integration", "mcp_client::a_key_in_a_servers_definitions_is_masked_wherever_they_are_shown"),
    ("integration", "mcp_client::a_yes_accepts_what_was_shown_and_no_later_change"),
    ("integration", "mcp_client::one_yes_is_one_request_though_its_wake_was_cut_off_in_the_middle"),
    ("lib", "mcp::server::tests::only_who_knows_the_token_and_names_this_machine_is_answered"),
    ("integration", "mcp_server::a_persons_rules_hold_for_what_only_reads_and_for_resources"),
    ("integration", "approvals::what_is_too_long_for_a_message_is_a_file_with_every_byte"),
    ("integration", "hands_shell::files_that_settings_name_for_keys_are_out_of_reach"),
    ("integration", "hands_shell::what_a_rule_denies_whole_is_hidden_from_commands_too"),
    ("lib", "tool::tests::files::the_memorys_history_is_listed_and_shown_to_its_person_alone"),
    ("lib", "tool::tests::files::the_history_tells_nothing_of_what_a_rule_keeps_back"),
    ("lib", "tool::tests::memory::a_rule_about_a_skills_files_holds_for_who_reads_the_skill"),
    ("integration", "approvals::a_rule_that_was_made_after_a_yes_counts_before_it"),
    ("integration", "mind_resume::who_goes_on_after_a_wake_that_had_read_others_words_has_read_them_too"),
    ("lib", "mcp::client::tools::tests::a_guest_has_a_server_only_if_a_person_opened_it_to_guests"),
    ("lib", "hands::shelter::tests::a_servers_folder_is_out_of_every_other_programs_reach"),
    ("lib", "hands::shelter::tests::no_link_stands_for_a_servers_folder"),
    ("lib", "mcp::client::pin::tests::a_question_holds_every_word_that_a_yes_would_let_the_mind_read"),
    ("integration", "hands_files::an_app_is_started_only_after_a_yes_to_a_question_that_says_what_it_is"),
];

/// How many there are.
pub(crate) const COUNT: u64 = STORIES.len() as u64;

/// Runs one of them, in the build that this campaign is of.
pub(crate) fn trial(id: u64) -> Result<(), String> {
    let story = usize::try_from(id).ok().and_then(|at| STORIES.get(at));
    let (place, name) = story.ok_or("there is no such story")?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    // `<target>/<profile>/deps/campaign-…`
    let target = program.ancestors().nth(3).ok_or("the campaign wasn't built by cargo")?;
    let place = if *place == "lib" { vec!["--lib"] } else { vec!["--test", place] };
    #[expect(clippy::disallowed_methods, reason = "the campaign's own child")]
    let ran = std::process::Command::new("cargo")
        .args(["test", "--quiet", "--locked", "--offline", "--target-dir"])
        .arg(target)
        .args(place)
        .args(["--", "--exact", name])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout);
    match (ran.status.success(), said.contains("1 passed")) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("{name} isn't there")),
        (false, _) if said.contains("1 failed") => Err(format!("{name} failed")),
        (false, _) => Err(format!("{name} couldn't be run: {}", String::from_utf8_lossy(&ran.stderr))),
    }
}
