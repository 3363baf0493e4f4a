//! The list of what a hostile mind has to find. What each breaks is a promise of docs/SECURITY.md.
//!
//! Where two walls stand before the same thing no trial sees one of them fall: the other one holds. Such a wall is here as far as a story looks
//! at it alone (docs/SECURITY.md names the others).

use super::{Trials, Variant};

/// So many trials are all that there are, and more.
const ALL: Trials = Trials::UpTo(1_000);

type Words = &'static str;

const fn hostile(name: Words, line: Words, broken: Words) -> Variant {
    Variant { name, layer: "hostile", line, broken, trials: ALL }
}

/// `test` is the one that has to fail, by its path from its crate on.
const fn story(test: Words, name: Words, line: Words, broken: Words) -> Variant {
    Variant { name, layer: "stories", line, broken, trials: Trials::Story(test) }
}

/// All of them.
pub(crate) const VARIANTS: &[Variant] = &[
    hostile(
        "granted folders are writable for a command that nobody was asked about",
        "confinement.is_read_only = !access.writes;",
        "confinement.is_read_only = false;",
    ),
    hostile(
        "writing to a granted folder needn't ask though no copy covers it",
        "let uncovered = circumstances.uncovered.filter(|_| access.writes);",
        "let uncovered = circumstances.uncovered.filter(|_| access.writes && false);",
    ),
    story(
        "integration::undo_files::what_was_changed_since_is_left_as_it_is_and_named",
        "an undo gives back what was changed since, too",
        "Some(left) if left.is_same(found) => Stand::Left,",
        "Some(_) => Stand::Left,",
    ),
    story(
        "reveille::policy::tests::no_hostile_command_runs_without_a_question_where_it_can_lose_something",
        "what destroys more than files runs unasked in the sandbox",
        "match destroys.filter(|found| !(found.is_files && is_contained)) {",
        "match destroys.filter(|_| !is_contained) {",
    ),
    story(
        "reveille::policy::tests::no_hostile_command_runs_without_a_question_where_it_can_lose_something",
        "a folder's end is one danger among others",
        r#""rm" | "grm" if is_recursive() =>"#,
        r#""rm" | "grm" if false && is_recursive() =>"#,
    ),
    hostile(
        "what leaves after others' words needn't ask",
        r#"scales.ask(format!("I have read text from {taint}, and this would send something off this machine."));"#,
        "drop(taint.len());",
    ),
    hostile(
        "what persists after others' words needn't ask",
        r#"scales.ask(format!("I have read text from {taint}, and this would last beyond this task."));"#,
        "drop(taint.len());",
    ),
    hostile(
        "notes stay free after others' words",
        "if subject.is_free && subject.reach != Reach::Steers && !outlives_taint {",
        "if subject.is_free && subject.reach != Reach::Steers && (!outlives_taint || true) {",
    ),
    hostile(
        "a forwarded message is taken for its sender's words",
        "joined(messages.iter().filter_map(|message| message.words_of_others()).chain(others))",
        "joined(messages.iter().filter_map(|message| message.words_of_others().filter(|_| false)).chain(others))",
    ),
    hostile(
        "a quotation is taken for its sender's words",
        "any(|message| message.quoted.is_some() && !message.quotes_own)",
        "any(|message| message.quoted.is_some() && message.quotes_own)",
    ),
    hostile("a page's words are nobody's", "taint: Some(page.origin),", "taint: None,"),
    hostile(
        "a program's words are nobody's",
        "brief(&command))),\n        taint: Some(TAINT.to_owned()),",
        "brief(&command))),\n        taint: Some(TAINT.to_owned()).filter(|_| false),",
    ),
    hostile(
        "a file's words are nobody's",
        "taint: files::origin(place, &whole, world),",
        "taint: files::origin(place, &whole, world).filter(|_| false),",
    ),
    hostile(
        "an MCP server's failure is nobody's word",
        "Done { content, taint: Some(origin(server)), is_failure: true",
        "Done { content, taint: Some(origin(server)).filter(|_| false), is_failure: true",
    ),
    hostile(
        "an MCP server's call stays on this machine",
        "risk: server.risk,\n        reach: Reach::Leaves,",
        "risk: server.risk,\n        reach: Reach::Within,",
    ),
    hostile(
        "what a cycle learns of others is known at once",
        "if let Some(taint) = &world.taint {",
        "if let Some(taint) = world.taint.as_ref().filter(|_| false) {",
    ),
    hostile(
        "a forward stands in the next opening",
        "Some(_) => super::provenance::of_incoming(&kind, &text, forwarded_from.as_deref()),",
        "Some(_) => super::provenance::of_incoming(&kind, &text, forwarded_from.as_deref()).filter(|_| false),",
    ),
    hostile(
        "an answer after others' words stands in the next opening",
        "None => words(row, 6)?,",
        "None => words(row, 6)?.filter(|_| false),",
    ),
    hostile(
        "facts in quarantine stand in the next opening",
        "folded(title) == folded(UNCONFIRMED)",
        "folded(title) == folded(UNCONFIRMED) && false",
    ),
    hostile(
        "what a marked wake did stands in the next opening",
        "others::mark(is_of_others || session.store.taints_of(&ending.cycle.id)?.is_some());",
        "others::mark(session.store.taints_of(&ending.cycle.id)?.is_some() && false);",
    ),
    hostile(
        "reading what was withheld is free",
        "taint: (!origins.is_empty()).then(",
        "taint: (!origins.is_empty() && false).then(",
    ),
    hostile(
        "an own answer is quoted as if nobody else had had a hand in it",
        "provenance::quotes_own(tx, bot_id, message)?,",
        "message.quotes_own || provenance::quotes_own(tx, bot_id, message)?,",
    ),
    hostile(
        "a yes counts for other bytes",
        "AND action = ?4 AND state = 'approved'",
        "AND ?4 = ?4 AND state = 'approved'",
    ),
    hostile(
        "a no counts as a yes",
        "(id, decided(is_approval), rfc3339(now)),",
        "(id, decided(is_approval || true), rfc3339(now)),",
    ),
    hostile(
        "a question can be answered for ever",
        r#"WHERE id = ?1 AND state = 'pending' AND expires_at > ?3","#,
        r#"WHERE id = ?1 AND state = 'pending' AND ?3 = ?3","#,
    ),
    hostile(
        "a mask hides what is agreed to",
        "if verdict.decision == Decision::Ask && is_masked() {",
        "if verdict.decision == Decision::Ask && is_masked() && false {",
    ),
    hostile(
        "what a screen doesn't show is asked about as it is",
        "if is_hidden(c) { c.escape_unicode()",
        "if is_hidden(c) && false { c.escape_unicode()",
    ),
    hostile(
        "a call carries a secret away",
        "if sends && redactor.carries_live_secret(input) {",
        "if sends && redactor.carries_live_secret(input) && false {",
    ),
    hostile("a secret spelled in part passes", "[text, &once, &twice].into_iter()", "[text].into_iter()"),
    hostile(
        "a place of keys isn't hidden",
        "    \".ssh\",\n    \".gnupg\",\n    \".pki\",\n",
        "    \".ssh\",\n    \".pki\",\n",
    ),
    hostile("the workspace isn't covered", "covered: vec![config.workspace_dir.clone()],", "covered: Vec::new(),"),
    hostile("a granted folder's settings aren't hidden", "add_hidden(&file, &mut add);", "drop(file);"),
    hostile("the shell has the machine's network", "        \"--unshare-net\",\n", ""),
    hostile("a variable that isn't listed comes along", "    \"LANGUAGE\",\n", "    \"CANARY_IN_ENV\",\n"),
    hostile("a file with a second name is read", "if found.nlink() > 1 {", "if found.nlink() > 2 {"),
    hostile(
        "a link to a folder is followed",
        ".union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);\n/// Without waiting",
        ".union(OFlags::CLOEXEC);\n/// Without waiting",
    ),
    hostile(
        "an address isn't judged before it is dialled",
        ".filter(|_| !target.is_granted);",
        ".filter(|_| !target.is_granted && false);",
    ),
    story(
        "reveille::process::tests::a_process_is_alive_until_it_is_dead_and_a_reused_pid_is_someone_else",
        "a number that somebody else has by now passes for the dead one",
        "living == *self",
        "living.boot_id == self.boot_id",
    ),
    story(
        "reveille::process::tests::a_process_is_alive_until_it_is_dead_and_a_reused_pid_is_someone_else",
        "a number of another boot passes for one of this",
        "living == *self",
        "living.started == self.started",
    ),
    story(
        "integration::approvals::nobody_else_nowhere_else_and_no_other_button_decides",
        "a press counts wherever it was made",
        r#"AND (p.channel_message_id = ?6 OR p.repeats > 0))","#,
        r#"AND ?6 = ?6)","#,
    ),
    story(
        "integration::approvals::a_thousand_taps_run_it_once",
        "a press counts after another",
        "WHERE nonce = ?1 AND state = 'pending' AND expires_at > ?3 AND chat_id = ?5",
        "WHERE nonce = ?1 AND expires_at > ?3 AND chat_id = ?5",
    ),
    story(
        "integration::approvals::no_answer_in_time_is_a_no_and_the_question_says_so",
        "no answer is a yes",
        r#"Some(ApprovalState::Approved) => Some((true, "")),"#,
        r#"Some(ApprovalState::Approved | ApprovalState::Expired) => Some((true, "")),"#,
    ),
    story(
        "integration::mcp_client::one_yes_is_one_request_though_its_wake_was_cut_off_in_the_middle",
        "a yes is good for the same again",
        "Some(Effect::Read | Effect::Idempotent) if !is_yes_used => None,",
        "Some(Effect::Read | Effect::Idempotent) if !is_yes_used || true => None,",
    ),
    story(
        "integration::channel_telegram::a_rendered_answer_arrives_formatted_and_without_previews",
        "links are looked at by Telegram",
        "is_disabled: true,",
        "is_disabled: false,",
    ),
    story(
        "integration::mind_safety::links_are_text_in_an_answer_that_a_forwarded_message_had_a_hand_in",
        "links can be followed after others' words",
        "let links = if message.links_as_text || taint.is_some() {",
        "let links = if message.links_as_text {",
    ),
    story(
        "integration::stop::programs_that_a_stopped_wake_has_started_are_dead_when_the_order_is_carried_out",
        "what a stopped wake has started lives on",
        "match process::end_children(&holder) {",
        "match 0 {",
    ),
    story(
        "integration::progress::no_step_of_a_plan_is_a_link_in_the_line",
        "a step of a plan is a link while it is worked on",
        "let text = addresses::defanged(text);",
        "let text = text.to_owned();",
    ),
    story(
        "integration::stop::stop_drops_the_request_and_outlives_restarts_and_resume_goes_on_as_it_was",
        "what waits for the mind isn't stopped",
        "() = session.halted() => Err(Interrupt::Halted),",
        "() = std::future::pending() => Err(Interrupt::Halted),",
    ),
    story(
        "reveille::sandbox::proxy::tests::what_isnt_granted_is_neither_resolved_nor_dialled",
        "a confined program reaches hosts that aren't granted",
        "if !shared.grants.contains(to) {",
        "if shared.grants.is_empty() {",
    ),
    story(
        "reveille::sandbox::proxy::tests::what_isnt_granted_is_neither_resolved_nor_dialled",
        "a granted host is reached at any port",
        "if !shared.grants.contains(to) {",
        "if !shared.grants.iter().any(|grant| grant.host == to.host) {",
    ),
    story(
        "reveille::sandbox::proxy::tests::a_name_that_leads_inside_is_refused_and_never_dialled",
        "a granted name that leads inside is dialled",
        "check(to, &found)?;",
        "check(to, &found).ok();",
    ),
    story(
        "integration::exec_shell::without_a_sandbox_each_command_asks_and_runs_unconfined_after_a_yes_to_just_that",
        "without a sandbox a command needn't ask",
        "if !circumstances.is_sandboxed {",
        "if !circumstances.is_sandboxed && false {",
    ),
    story(
        "integration::exec_shell::a_yes_to_a_confined_command_is_none_to_an_unconfined_one",
        "a yes to a confined command runs it unconfined",
        "} else if !self.agreed.iter().any(|reason| reason == policy::NO_SANDBOX) {",
        "} else if self.agreed.iter().any(|reason| reason.is_empty()) {",
    ),
    story(
        "integration::mcp_client::without_a_sandbox_each_call_asks_and_its_server_runs_unconfined_after_a_yes_to_just_that",
        "without a sandbox an MCP call needn't ask",
        "matches!(self.server.place, ServerPlace::Command { .. }) && !shelter.is_there();",
        "matches!(self.server.place, Place::Command { .. }) && !shelter.is_there() && false;",
    ),
    story(
        "reveille::mcp::client::tools::tests::without_a_sandbox_every_call_asks_and_only_what_was_agreed_to_runs",
        "an MCP server that nothing confines is started unasked",
        "if !may_be_loose {",
        "if !may_be_loose && false {",
    ),
    story(
        "reveille::policy::rules::pattern::tests::a_path_s_star_stays_within_a_part",
        "a plain `.` in a path passes a rule",
        "![\"\", \".\"].contains(part)",
        "![\"\", \"\"].contains(part)",
    ),
    story(
        "reveille::policy::rules::tests::what_forbids_a_path_forbids_whatever_a_disk_may_take_for_it_and_what_allows_is_exact",
        "a path in another letter case passes a rule",
        "let forbids = self.decision > Decision::Allow;",
        "let forbids = self.decision > Decision::Deny;",
    ),
    story(
        "reveille::tool::tests::memory::reading_what_others_may_have_had_a_hand_in_marks_the_cycle_and_the_rest_does_not",
        "a document is read by a name that a disk takes for it",
        "let is_another = !is_canonical || is_disguised(path);",
        "let is_another = !is_canonical || is_disguised(path) && path.is_empty();",
    ),
    story(
        "integration::web::a_redirect_that_leads_inside_is_not_followed",
        "redirects are followed unseen",
        ".redirect(Policy::none())",
        ".redirect(Policy::limited(5))",
    ),
    story(
        "integration::web::a_redirect_to_where_a_rule_speaks_against_it_is_told_and_not_followed",
        "a redirect passes a person's rules",
        "if let Some(why) = (ask.gate)(&next.url) {",
        "if let Some(why) = (ask.gate)(&next.url).filter(|_| false) {",
    ),
    story(
        "integration::chats::a_guest_reads_the_public_web_alone_whatever_is_granted",
        "guests reach the hosts that are granted to the owner",
        "None => rules.without_hosts(),",
        "None => rules,",
    ),
    story(
        "reveille::channel::telegram::incoming::tests::only_listed_people_are_heard",
        "in a listed group anybody is heard",
        "Some(chat) if is_group(chat) => listed(chat_id) && listed(sender_id),",
        "Some(chat) if is_group(chat) => listed(chat_id),",
    ),
    story(
        "reveille::channel::telegram::incoming::tests::what_the_library_would_lose_is_kept",
        "whose words a forward brings is what the library's types hold",
        "take(\"forward_origin\").map(|origin| origin_name(&origin)).or(via_bot)",
        "take(\"forward_origin\").and(None).or(via_bot)",
    ),
    story(
        "reveille::store::tests::joined::what_is_said_to_others_is_forgotten_unless_we_are_named_at_once",
        "what is said to others stays",
        "heard_at <= ?1 OR heard_at > ?2",
        "heard_at <= ?1 AND heard_at > ?2",
    ),
    story(
        "reveille::store::tests::joined::the_rest_of_a_text_that_reads_like_a_command_is_no_order",
        "the rest of a long text runs as a command",
        "if is_rest(tx, batch.bot_id, ordered)? {",
        "if is_rest(tx, batch.bot_id, ordered)? && false {",
    ),
    story(
        "reveille::store::tests::moved::what_is_to_be_sent_to_a_group_waits_until_its_new_id_is_listed",
        "a group's new id is written to before anybody has listed it",
        "o.chat_id NOT IN (SELECT to_id",
        "0 NOT IN (SELECT to_id",
    ),
    story(
        "reveille::redact::tests::base64_is_masked_at_each_alignment_inside_longer_text",
        "base64 is known at one alignment alone",
        "let coded = (0..3).flat_map(|alignment| {",
        "let coded = (0..1).flat_map(|alignment| {",
    ),
    story(
        "reveille::redact::tests::none_of_two_thousand_planted_secrets_survives_in_any_form",
        "hexadecimal isn't known",
        r#"let hexes = [hex("", ""), hex("", ":"),"#,
        r#"let hexes = [hex("", ":"), hex("", ":"),"#,
    ),
    story(
        "reveille::repo::tests::remotes::the_repositorys_own_programs_are_not_run",
        "the repository's own programs are run",
        r#"        "core.hooksPath=/dev/null","#,
        r#"        "core.hooksPath=.git/hooks","#,
    ),
    story(
        "reveille::repo::tests::publishing::a_secret_of_the_persons_stays_in_their_file_and_out_of_the_commit",
        "a wake commits a secret that a merge let through",
        "committed.as_deref().is_some_and(holds_secret) {",
        "committed.as_deref().is_some_and(holds_secret) && false {",
    ),
    story(
        "integration::mind_safety::the_programs_own_secrets_reach_no_request_commit_or_message",
        "a call writes a secret into the memory",
        "if done.changes.iter().any(writes_secret) {",
        "if done.changes.iter().any(writes_secret) && false {",
    ),
    story(
        "reveille::repo::tests::secrets::a_secret_that_a_person_committed_stays_here_until_they_take_it_out",
        "what is pushed isn't looked through",
        "self.would_expose(seen, tip, secrets_in)? {",
        "self.would_expose(seen, tip, secrets_in)?.filter(|_| false) {",
    ),
    story(
        "reveille::repo::tests::secrets::a_new_secret_beside_one_that_is_there_already_stays_here",
        "a file that has shown a secret may show others",
        "} else if !held.is_subset(&self.held(old, secrets_in)) {",
        "} else if self.held(old, secrets_in).is_empty() {",
    ),
    story(
        "integration::mind_safety::no_document_is_named_after_a_secret",
        "a wake names a document after a secret",
        "|| redactor.contains_secret(&file.path),",
        "|| redactor.contains_secret(&file.content),",
    ),
    story(
        "reveille::repo::tests::publishing::a_name_that_holds_a_secret_is_left_out_of_the_commit",
        "a wake commits a name that holds a secret",
        "(publish.is_secret)(text) || (publish.is_secret)(path);",
        "(publish.is_secret)(text);",
    ),
    story(
        "reveille::exec::beneath::tests::our_own_state_is_not_met_within_a_granted_folder",
        "our own state is met in a granted folder",
        "if self.barred.contains(&found) {",
        "if self.barred.contains(&found) && false {",
    ),
    story(
        "reveille::web::dial::tests::no_spelling_of_an_address_that_is_not_public_is_dialled",
        "IPv4 within IPv6 isn't looked at",
        "Some(carried) => why_not_public_v4(carried),",
        "Some(_) => None,",
    ),
    story(
        "integration::limits::a_request_that_might_pass_the_cap_is_not_sent",
        "a request passes the cap",
        ".cost_usd + most_usd > cap.usd {",
        ".cost_usd > cap.usd {",
    ),
    story(
        "integration::limits::at_a_limit_a_person_is_asked_and_a_yes_lets_it_go_on",
        "rounds have no limit",
        "taken.rounds >= stretch.rounds ||",
        "taken.rounds == u32::MAX ||",
    ),
    story(
        "integration::limits::a_mind_that_goes_round_in_circles_is_stopped_and_its_person_told_how",
        "a mind may go round in circles",
        ".filter(|most| most.times >= limits.same_results)",
        ".filter(|most| most.times >= limits.same_results.max(1_000))",
    ),
    story(
        "integration::limits::working_time_is_counted_over_wakes_and_bounded",
        "working time has no limit",
        "|| stretch.work.is_some_and(|work| taken.work >= work);",
        "|| stretch.work.is_some_and(|work| taken.work >= work * 1_000);",
    ),
    story(
        "reveille::cycle::decide::machine::tests::a_plan_is_raised_once_and_never_begins_to_count_anew",
        "a plan may be raised again and again",
        "self.raises < MAX_RAISES =>",
        "self.raises < MAX_RAISES.max(9) =>",
    ),
    story(
        "reveille::cycle::decide::machine::tests::a_plan_is_raised_once_and_never_begins_to_count_anew",
        "a raised plan begins anew",
        "self.raises += 1;",
        "(self.raises, self.from) = (self.raises + 1, self.taken);",
    ),
    story(
        "integration::limits::who_was_answered_in_the_middle_of_work_hears_that_the_rest_of_it_waits_for_the_budget",
        "work that waits for a budget waits in silence",
        "None => (budget.work_key(chat, *cap), budget.notice(*cap, *most_usd, Waits::Work)),",
        "None => return Ok(()),",
    ),
    story(
        "integration::limits::who_was_answered_in_the_middle_of_work_hears_that_the_rest_of_it_waits_for_the_budget",
        "a notice waits behind what its cycle has said",
        "ec.state IN ('waiting', 'parked')",
        "ec.state IN ('parked')",
    ),
    story(
        "integration::claude_code::a_command_that_has_tools_of_its_own_is_not_used",
        "Claude Code is used with tools of its own",
        "if !others.is_empty() {\n            let others",
        "if !others.is_empty() && false {\n            let others",
    ),
    story(
        "integration::claude_code::only_calls_of_ours_are_taken_for_calls_and_one_that_has_to_ask_ends_its_run",
        "a call of another's tool under the name of ours is one of ours",
        "let own = own_name(&called).filter(",
        "let own = own_name(&called).or(Some(called.as_str())).filter(",
    ),
    story(
        "integration::claude_code::only_calls_of_ours_are_taken_for_calls_and_one_that_has_to_ask_ends_its_run",
        "a run of Claude Code goes on while its person is asked",
        "session.context.model.rest();",
        "self.context.model.name();",
    ),
    story(
        "integration::claude_code::it_is_given_no_secret_but_its_login",
        "Claude Code is given a variable that isn't listed",
        "    \"NODE_EXTRA_CA_CERTS\",\n",
        "    \"OTHER\",\n",
    ),
    story(
        "integration::mcp_client::changed_tools_are_not_called_until_a_person_has_accepted_what_changed",
        "a server's new tools are taken for accepted",
        "let is_same = pin.accepted.is_some() && accepted.sha256() == sha256;",
        "let is_same = pin.accepted.is_some() || accepted.sha256() == sha256;",
    ),
    story(
        "integration::mcp_client::a_yes_accepts_what_was_shown_and_no_later_change",
        "a yes to a server's tools accepts any later ones",
        "asked.is_some_and(|asked| agreed.contains(&asked))",
        "asked.is_some_and(|_| !agreed.is_empty())",
    ),
    story(
        "reveille::mcp::client::pin::tests::a_question_holds_every_word_that_a_yes_would_let_the_mind_read",
        "a yes to a server's new words is asked without them",
        "words.filter(|words| !words.is_empty())",
        "words.filter(|words| words.is_empty())",
    ),
    story(
        "reveille::exec::shelter::tests::a_servers_folder_is_out_of_every_other_programs_reach",
        "a server's folder lies where commands write",
        r#"self.workspace_dir.join("mcp")"#,
        r#"self.scratch_dir().join("mcp")"#,
    ),
    story(
        "reveille::exec::shelter::tests::no_link_stands_for_a_servers_folder",
        "a link may stand for a server's folder",
        "if !place.symlink_metadata()?.is_dir() {",
        "if !place.metadata()?.is_dir() {",
    ),
    story(
        "integration::mcp_client::a_key_in_a_servers_definitions_is_masked_wherever_they_are_shown",
        "a server's definitions are believed to hold no key",
        "(system, redactor.redact_json(&offered))",
        "(system, offered)",
    ),
    story(
        "reveille::mcp::client::tools::tests::a_guest_has_a_server_only_if_a_person_opened_it_to_guests",
        "guests have the owner's servers",
        "is_owners: !server.guests,",
        "is_owners: server.guests,",
    ),
    story(
        "integration::settings::another_folders_file_is_named_and_not_read",
        "the current directory's settings count",
        "let own = self.workspace_dir.as_deref().and_then(env_file_in).filter(|_| named.is_none());",
        "let own = self.workspace_dir.as_deref().and_then(env_file_in).or_else(|| env_file_in(Path::new(\".\")));",
    ),
    story(
        "integration::exec_shell::files_that_settings_name_for_keys_are_out_of_reach",
        "files that settings name for keys are open to commands",
        "let named = config.env_file.iter().chain(&config.key_files).cloned();",
        "let named = config.env_file.iter().cloned();",
    ),
    story(
        "integration::exec_shell::files_that_settings_name_for_keys_are_out_of_reach",
        "files that servers are given for keys are open to commands",
        "confinement.hidden.extend(of_others.iter().cloned());",
        "drop(of_others.len());",
    ),
    story(
        "integration::exec_shell::files_that_settings_name_for_keys_are_out_of_reach",
        "files that settings name for keys are open to the editor",
        "Ok(roots.without(exec.key_files()))",
        "Ok(roots.without(exec.key_files().get(..0).unwrap_or_default()))",
    ),
    story(
        "integration::chats::what_the_owners_assistant_writes_by_hand_is_the_owners",
        "a guest is shown what isn't marked",
        "let is_public = is_for_all &&",
        "let is_public = (is_for_all || line.len() > 2) &&",
    ),
    story(
        "integration::chats::a_section_that_a_person_marks_for_all_is_and_no_mind_marks_one",
        "a mind marks a section for all",
        "if !view::reveals(name, old, new) {",
        "if !view::reveals(name, old, new) || !name.is_empty() {",
    ),
    story(
        "integration::remote::what_a_remote_says_is_shown_as_code_and_is_nobodys_order_later",
        "what a remote says is ours",
        "let outside = outside::origins_in(&message.text);",
        "let outside = outside::origins_in(&message.text).filter(|_| false);",
    ),
    story(
        "integration::stop::a_guests_stop_ends_what_is_done_for_them_and_nothing_of_the_owners",
        "a guest's stop ends all work",
        "let is_owners = desk.is_by_owner(asked);\n    let order = Order::Stop",
        "let is_owners = desk.is_by_owner(asked) || asked.update_id != 0;\n    let order = Order::Stop",
    ),
    story(
        "reveille::tool::tests::files::the_memorys_history_is_listed_and_shown_to_its_person_alone",
        "guests have the shell and the owner's files",
        "Self { is_owners: true, ..self }",
        "Self { is_owners: false, ..self }",
    ),
    hostile(
        "what a guest lets the owner be told is ours",
        "let said = of_another_chat(tx, cycle, message.chat)?;",
        "let said = of_another_chat(tx, cycle, message.chat)?.filter(|_| false);",
    ),
    hostile(
        "a question doesn't say that a guest wants it",
        "let chat = asked_in.filter(|chat| *chat != shown_in)?;",
        "let chat = asked_in.filter(|chat| *chat != shown_in && *chat < 0)?;",
    ),
    story(
        "reveille::tool::tests::files::the_memorys_history_is_listed_and_shown_to_its_person_alone",
        "a guest's call of the owner's tools asks",
        "        if self.is_owners && !world.sees_all() {\n",
        "        if self.is_owners && !world.sees_all() && false {\n",
    ),
    story(
        "reveille::tool::tests::files::the_memorys_history_is_listed_and_shown_to_its_person_alone",
        "a guest's call of the owner's tools is run",
        "Some(tool) if tool.is_owners && !world.sees_all() =>",
        "Some(tool) if tool.is_owners && !world.sees_all() && false =>",
    ),
    story(
        "integration::mind_resume::who_goes_on_after_a_wake_that_had_read_others_words_has_read_them_too",
        "whoever goes on with a wake's work doesn't know what it had read",
        ".chain(done_after)),",
        ".chain(done_after.into_iter().take(0))),",
    ),
    story(
        "integration::exec_shell::a_repository_within_a_clone_runs_nothing_when_it_is_looked_at",
        "git takes a repository that a clone brought along",
        r#"("GIT_CONFIG_VALUE_2", "explicit")"#,
        r#"("GIT_CONFIG_VALUE_2", "all")"#,
    ),
    story(
        "integration::exec_shell::what_a_rule_denies_whole_is_hidden_from_commands_too",
        "what a person's rule denies can be read by a command",
        "confinement.hidden.extend(hidden);",
        "drop(hidden);",
    ),
    story(
        "reveille::mcp::server::tests::only_who_knows_the_token_and_names_this_machine_is_answered",
        "any token opens `wake mcp`",
        "&& digest(token.trim()).as_ref() == digest(self.token.expose()).as_ref()",
        "&& digest(token.trim()).as_ref().len() == digest(self.token.expose()).as_ref().len()",
    ),
    story(
        "reveille::mcp::server::tests::only_who_knows_the_token_and_names_this_machine_is_answered",
        "`wake mcp` answers to any name of a host",
        "if !is_this_machine(host) ||",
        "if host.is_empty() ||",
    ),
    story(
        "reveille::mcp::server::tests::only_who_knows_the_token_and_names_this_machine_is_answered",
        "`wake mcp` answers pages of any origin",
        "|| !origin.is_none_or(is_from_here) {",
        "|| origin.is_some_and(|origin| origin.is_empty() && !is_from_here(origin)) {",
    ),
    story(
        "integration::mcp_server::a_persons_rules_hold_for_what_only_reads_and_for_resources",
        "what a client reads isn't judged",
        "match registry.judge(name, input, &world, Some(TAINT)).and_then(refused) {",
        "match registry.judge(name, input, &world, Some(TAINT)).and_then(refused).filter(|_| false) {",
    ),
    story(
        "integration::mcp_server::a_persons_rules_hold_for_what_only_reads_and_for_resources",
        "resources aren't judged",
        "verdict.and_then(refused).map_or(",
        "verdict.and_then(refused).filter(|_| false).map_or(",
    ),
    story(
        "integration::mcp_server::a_persons_rules_hold_for_what_only_reads_and_for_resources",
        "the queue is shown whatever the rules say",
        "match refused(queue_verdict(&world)) {",
        "match refused(queue_verdict(&world)).filter(|_| false) {",
    ),
    story(
        "integration::mcp_server::a_persons_rules_hold_for_what_only_reads_and_for_resources",
        "a search looks into what a rule keeps back",
        "let paths = in_memory(world).filter(|path| !is_kept_back(world, path));",
        "let paths = in_memory(world);",
    ),
    story(
        "reveille::tool::tests::files::the_history_tells_nothing_of_what_a_rule_keeps_back",
        "the memory's history tells what a rule keeps back",
        "[tool, READ].iter().any(|tool| world.rules.keeps_back(tool, place))",
        "[tool, READ].iter().any(|tool| world.rules.keeps_back(tool, place) && false)",
    ),
    story(
        "reveille::tool::tests::memory::a_rule_about_a_skills_files_holds_for_who_reads_the_skill",
        "a skill's files are read whatever the rules say",
        "Ok(args) => Touched::Documents(args.document(world).into_iter().collect()),",
        "Ok(args) => Touched::Documents(args.document(world).into_iter().take(0).collect()),",
    ),
    story(
        "integration::approvals::a_rule_that_was_made_after_a_yes_counts_before_it",
        "a yes counts before a rule that was made since",
        "if verdict.decision != Decision::Deny {",
        "if verdict.decision != Decision::Deny || true {",
    ),
    story(
        "integration::approvals::what_is_too_long_for_a_message_is_a_file_with_every_byte",
        "the hash is of how an action is shown",
        "            approval_text::sha256(action)\n",
        "            approval_text::sha256(&approval_text::action(tool, action))\n",
    ),
    story(
        "integration::approvals::what_is_too_long_for_a_message_is_a_file_with_every_byte",
        "a long action's file hides what a screen doesn't show",
        "        action(tool, arguments),\n",
        "        format!(\"{tool}\\n{arguments}\"),\n",
    ),
    story(
        "integration::exec_files::an_app_is_started_only_after_a_yes_to_a_question_that_says_what_it_is",
        "an app starts unasked",
        "What::App => scales.ask(APP),",
        "What::App => drop(APP.len()),",
    ),
];
